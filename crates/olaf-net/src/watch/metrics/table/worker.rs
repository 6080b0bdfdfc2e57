//! A worker that trains at a server.

use super::{IDENTITY, Row, TEXT, counter, gauge, info, left};

pub(super) const ROWS: &[Row] = &[
    info("", &["job", "cluster", "worker"], "olaf_worker", "Which worker this is."),
    left("session", IDENTITY),
    left("hop_sequence", "the number of the last datagram; `datagrams` counts them"),
    gauge("joined", "olaf_worker_joined", "1: the worker is in its job."),
    gauge(
        "awaits_admission",
        "olaf_worker_awaits_admission",
        "1: the switch asks whether the worker's cluster may join.",
    ),
    counter("updates", "olaf_worker_pushed_updates", "Updates that the learner pushed."),
    counter(
        "contributions",
        "olaf_worker_contributions",
        "Contributions that the learner pushed: segments of updates.",
    ),
    counter("sent", "olaf_worker_sent_updates", "Contributions sent."),
    counter(
        "{fate=acknowledged|not_delivered|unconfirmed|replaced_unsent|discarded}",
        "olaf_worker_updates",
        "Contributions of this worker by fate.",
    ),
    gauge(
        "{state=awaited|unsent|held}",
        "olaf_worker_open_updates",
        "Contributions without a fate yet: on their way, not sent, or held back.",
    ),
    counter(
        "{event=datagrams|carried|notices|acknowledgements|models|models_missed|fetches|joins|offers}",
        "olaf_worker_events",
        "Counters of the worker, under the names of its statistics.",
    ),
    gauge(
        "probability",
        "olaf_worker_send_probability",
        "Probability with which transmission control sends.",
    ),
    gauge("model_version", "olaf_model_version", "Version of the model that the worker has."),
    gauge("segments", "olaf_model_segments", "Datagrams that the model is cut into."),
    gauge(
        "staleness_last",
        "olaf_worker_staleness_versions",
        "Versions that the last answered update was behind.",
    ),
    info(
        "rule",
        &["kind", "aggregate", "step", "gate"],
        "olaf_rule",
        "How the server applies updates.",
    ),
    gauge("rule.factor", "olaf_rule_factor", "Factor on every update."),
    gauge(
        "rule.staleness_power",
        "olaf_rule_staleness_power",
        "Exponent by which stale updates count less.",
    ),
    gauge(
        "queue.round_us",
        "olaf_queue_round_seconds",
        "Time that the switch's queue needs for all of its clusters.",
    ),
    gauge("queue.slots", "olaf_queue_slots", "Segments that the queue holds at most."),
    gauge("queue.used", "olaf_queue_used_slots", "Segments in the queue now."),
    gauge("queue.active_clusters", "olaf_active_clusters", "Clusters that sent an update lately."),
    gauge("queue.switches", "olaf_worker_switches", "Switches on the way to the server."),
    gauge(
        "signatures.checks",
        "olaf_worker_checks_signatures",
        "1: the worker takes a model with the server's signature only.",
    ),
    gauge(
        "signatures.held",
        "olaf_worker_held_models",
        "Whole models that wait for the server's signature.",
    ),
    counter(
        "signatures.{result=checked|forged|unsigned|wrong}",
        "olaf_worker_signatures",
        "Models with the right signature, models that the server did not sign, models without a signature in time, and wrong signatures.",
    ),
    counter(
        "signatures.asked",
        "olaf_worker_signature_questions",
        "Questions for a signature of the server.",
    ),
    gauge("path.mtu_bytes", "olaf_path_mtu_bytes", "Longest IP packet that passed both ways."),
    gauge("path.narrow", "olaf_path_narrow", "1: the path has become too narrow."),
    counter("path.probes", "olaf_path_probes", "Probes of the path."),
    gauge("path.segment_lanes", "olaf_segment_parameters", "Parameters of a segment."),
    gauge(
        "round_trip_ns",
        "olaf_round_trip_seconds",
        "Round trip of updates, with their waits in queues.",
    ),
    gauge("path_round_trip_ns", "olaf_path_round_trip_seconds", "Round trip of joins."),
    gauge("clock_offset_ns", "olaf_clock_offset_seconds", "The server's clock minus this one."),
    gauge("clock_error_ns", "olaf_clock_error_seconds", "Largest error of that offset."),
    gauge("{peer=switch_alive|server_alive}", "olaf_peer_up", "1: the peer was heard lately."),
    gauge(
        "switch_silent_ns",
        "olaf_switch_silent_seconds",
        "Time that the switch has not answered for.",
    ),
    gauge(
        "server_silent_ns",
        "olaf_server_silent_seconds",
        "Time that the server has not answered for.",
    ),
    counter(
        "refused.{reason}",
        "olaf_refused_datagrams",
        "Datagrams that the worker refused, by reason.",
    ),
    left("{field=other_version|turned_away}", TEXT),
];
