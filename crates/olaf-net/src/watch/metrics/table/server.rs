//! A parameter server.

use super::{MANY, Row, TEXT, counter, gauge, info, left};

pub(super) const ROWS: &[Row] = &[
    counter(
        "arrivals.{event=datagrams|skipped|late|repeated}",
        "olaf_hop_datagrams",
        "Updates of known senders: numbers that came, that were skipped, that came late, and that came again.",
    ),
    counter(
        "arrivals.unnumbered",
        "olaf_hop_unnumbered_updates",
        "Contributions of senders that are not known here, or that number nothing.",
    ),
    counter(
        "arrivals.forgotten",
        "olaf_hop_forgotten_lives",
        "Lives of senders whose counts gave way to others.",
    ),
    left("arrivals.forgotten_contributions", "a sum for the accounts of a run"),
    left("arrivals.hops[]", MANY),
    counter(
        "refused.{reason}",
        "olaf_refused_datagrams",
        "Datagrams that never became a contribution, by reason.",
    ),
    counter(
        "{event=answers_dropped|answers_superseded}",
        "olaf_server_answers",
        "Answers that did not leave: dropped at a full link, or replaced by a newer one.",
    ),
    counter("signatures", "olaf_server_signatures", "Signatures under versions of models."),
    counter(
        "checkpoint.{result=written|failed}",
        "olaf_checkpoints",
        "Checkpoints written and failed.",
    ),
    gauge("checkpoint.version", "olaf_checkpoint_version", "Model version of the last checkpoint."),
    gauge(
        "checkpoint.written_at_ns",
        "olaf_checkpoint_written_timestamp_seconds",
        "Time of the last checkpoint, since 1970.",
    ),
    left("checkpoint", TEXT),
    gauge("jobs[job].version", "olaf_model_version", "Version of a job's model."),
    gauge("jobs[job].parameters", "olaf_model_parameters", "Parameters of a job's model."),
    gauge("jobs[job].segments", "olaf_model_segments", "Datagrams that a job's model is cut into."),
    gauge("jobs[job].arrays", "olaf_model_arrays", "Named arrays of a job's model."),
    gauge("jobs[job].ready", "olaf_job_ready", "1: the job has a model that updates can change."),
    gauge(
        "jobs[job].fairness",
        "olaf_job_fairness",
        "Jain's index of the clusters' mean ages: 1 is fair.",
    ),
    gauge(
        "jobs[job].staleness_mean",
        "olaf_job_staleness_mean_versions",
        "Mean number of versions that a contribution was behind.",
    ),
    gauge(
        "jobs[job].staleness_max",
        "olaf_job_staleness_max_versions",
        "Largest number of versions that a contribution was behind.",
    ),
    counter(
        "jobs[job].received",
        "olaf_server_received_updates",
        "Contributions that reached the server.",
    ),
    counter(
        "jobs[job].deliveries",
        "olaf_deliveries",
        "Updates that reached the server, merged ones once.",
    ),
    counter(
        "jobs[job].collections",
        "olaf_collections",
        "Times a collection of contributions was applied.",
    ),
    counter(
        "jobs[job].rounds_short",
        "olaf_rounds_short",
        "Rounds that ended without a worker that was in the job.",
    ),
    counter(
        "jobs[job].fates.{fate!rejected|waiting}",
        "olaf_server_updates",
        "Contributions at the server by fate; of rejected ones also by reason.",
    ),
    counter(
        "jobs[job].fates.{fate=rejected}.{reason}",
        "olaf_server_updates",
        "Contributions at the server by fate; of rejected ones also by reason.",
    ),
    gauge(
        "jobs[job].fates.waiting",
        "olaf_server_waiting_updates",
        "Contributions that are not in the model yet.",
    ),
    counter(
        "jobs[job].clipped.{what}",
        "olaf_clipped_updates",
        "Updates that were reduced to a limit of their norm, weight, reward or movement.",
    ),
    info("jobs[job]", &["rule", "aggregate"], "olaf_job", "How updates change a job's model."),
    gauge(
        "jobs[job].clusters[cluster].aom_now_ns",
        "olaf_age_of_model_seconds",
        "Age-of-Model of a cluster now.",
    ),
    gauge(
        "jobs[job].clusters[cluster].aom_mean_ns",
        "olaf_age_of_model_mean_seconds",
        "Age-of-Model of a cluster, its time average.",
    ),
    gauge(
        "jobs[job].clusters[cluster].aom_peak_mean_ns",
        "olaf_age_of_model_peak_mean_seconds",
        "Mean of a cluster's ages just before each delivery.",
    ),
    gauge(
        "jobs[job].clusters[cluster].staleness_mean",
        "olaf_cluster_staleness_mean_versions",
        "Mean number of versions that a contribution of a cluster was behind.",
    ),
    gauge(
        "jobs[job].clusters[cluster].staleness_max",
        "olaf_cluster_staleness_max_versions",
        "Largest number of versions that a contribution of a cluster was behind.",
    ),
    gauge(
        "jobs[job].clusters[cluster].last_reward",
        "olaf_cluster_last_reward",
        "Reward of a cluster's last delivery.",
    ),
    gauge("jobs[job].clusters[cluster].workers", "olaf_cluster_workers", "Workers of a cluster."),
    gauge(
        "jobs[job].clusters[cluster].clock_error_ns",
        "olaf_cluster_clock_error_seconds",
        "Largest error of a cluster's clocks, which its ages may have.",
    ),
    counter(
        "jobs[job].clusters[cluster].deliveries",
        "olaf_cluster_deliveries",
        "Updates of a cluster that reached the server.",
    ),
    counter(
        "jobs[job].clusters[cluster].contributions",
        "olaf_cluster_contributions",
        "Contributions of a cluster that reached the server.",
    ),
    left("jobs[].clusters[].cluster", "a label of the other fields"),
    left("jobs[].job", "a label of the other fields"),
    left("jobs[].restored", "the state at the start; the counters continue from it"),
    left("jobs[].clipped_workers", MANY),
];
