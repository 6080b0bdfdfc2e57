//! Which metric each field of a role's statistics is. Names, units and help as Prometheus has them:
//! base units, `_total` for counters (the encoder adds it), one meaning a name.
//!
//! A label is never `job` or `instance`, because Prometheus gives those names to its own labels.

/// What a field becomes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Only grows while the role runs.
    Counter,
    /// A state; a truth is 1 or 0.
    Gauge,
    /// Texts of a table, as labels of the constant 1.
    Info(&'static [&'static str]),
    /// The number of elements by each value of these fields.
    Count(&'static [&'static str]),
    /// No metric. The help says why.
    Left,
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) path: &'static str,
    pub(super) kind: Kind,
    pub(super) name: &'static str,
    pub(super) help: &'static str,
}

const fn counter(path: &'static str, name: &'static str, help: &'static str) -> Row {
    Row { path, kind: Kind::Counter, name, help }
}

const fn gauge(path: &'static str, name: &'static str, help: &'static str) -> Row {
    Row { path, kind: Kind::Gauge, name, help }
}

const fn info(
    path: &'static str,
    fields: &'static [&'static str],
    name: &'static str,
    help: &'static str,
) -> Row {
    Row { path, kind: Kind::Info(fields), name, help }
}

const fn count(
    path: &'static str,
    fields: &'static [&'static str],
    name: &'static str,
    help: &'static str,
) -> Row {
    Row { path, kind: Kind::Count(fields), name, help }
}

/// No metric, with everything below it.
const fn left(path: &'static str, why: &'static str) -> Row {
    Row { path, kind: Kind::Left, name: "", help: why }
}

/// The name of the label that a field becomes.
pub(super) fn label(field: &str) -> &str {
    match field {
        "job" => "job_id",
        "cluster" => "cluster_id",
        "worker" => "worker_id",
        "alive" => "is_alive",
        "left" => "has_left",
        other => other,
    }
}

/// The value of a label that is a field's name, without what the label or the metric's unit says already.
pub(super) fn value<'a>(label: &str, field: &'a str) -> &'a str {
    let suffixes: &[&str] = match label {
        "direction" => &["_datagrams", "_bytes"],
        "call" => &["_calls"],
        "buffer" => &["_buffer_bytes"],
        "peer" => &["_alive"],
        _ => &[],
    };
    suffixes.iter().find_map(|suffix| field.strip_suffix(suffix)).unwrap_or(field)
}

/// The rows of each role.
pub(super) const ROLES: [(&str, &[Row]); 4] =
    [("switch", SWITCH), ("server", SERVER), ("worker", WORKER), ("sum", SUM)];

const ADDRESS: &str = "the label `instance` of a scrape says it";
const IDENTITY: &str = "a number drawn at the start; it measures nothing";
const MANY: &str = "one series a worker would be too many; /status.json has it";
const TEXT: &str = "a text; /status.json has it";

/// The rows of every role.
pub(super) const OWN: &[Row] = &[
    info(
        "",
        &["role"],
        "olaf_build",
        "The role, the version of Olaf, and the version of its messages.",
    ),
    left("address", ADDRESS),
    left("epoch", IDENTITY),
    gauge("uptime_s", "olaf_uptime_seconds", "Time since the role was started."),
    counter(
        "events_forgotten",
        "olaf_engine_events_forgotten",
        "Events that an engine left out because nobody fetched them.",
    ),
    counter(
        "io.{direction=received_datagrams|sent_datagrams}",
        "olaf_datagrams",
        "Datagrams received and sent.",
    ),
    counter(
        "io.{direction=received_bytes|sent_bytes}",
        "olaf_traffic_bytes",
        "Bytes of UDP payload received and sent.",
    ),
    counter(
        "io.{call=receive_calls|send_calls}",
        "olaf_socket_calls",
        "System calls that receive or send.",
    ),
    counter(
        "io.{reason=send_errors|kernel_drops|too_large|not_opened|unroutable|truncated|receive_errors|connection_refused|lost_on_purpose|probes_too_large}",
        "olaf_socket_trouble",
        "Datagrams that were lost or refused at the socket, by reason.",
    ),
    counter(
        "io.ecn_marked",
        "olaf_ecn_marked_received_datagrams",
        "Received datagrams that a link on the way marked as congested.",
    ),
    counter(
        "io.send_waits",
        "olaf_socket_full",
        "Times the socket was full; nothing is lost by it.",
    ),
    counter(
        "io.events_forgotten",
        "olaf_events_forgotten",
        "Events that were not fetched in time.",
    ),
    counter(
        "io.cpu_s",
        "olaf_packet_cpu_seconds",
        "Processor time of the thread that drives the socket.",
    ),
    gauge(
        "io.{buffer=receive_buffer_bytes|send_buffer_bytes}",
        "olaf_socket_buffer_bytes",
        "Size of the socket's buffers.",
    ),
    gauge(
        "io.segments_per_send",
        "olaf_segments_per_send",
        "Datagrams that one send may carry; 1: no segmentation offload.",
    ),
    left("io.warnings[]", TEXT),
    left("olaf", "when the document was made, and by which version"),
    left("ready", "/readyz says it"),
    left("recent_events[]", TEXT),
];

/// A switch: the engine `queue` at the top of the document, each other engine in a table of its own.
const SWITCH: &[Row] = &[
    counter(
        "received",
        "olaf_received_updates",
        "Contributions that reached the queue: segments of single workers' updates.",
    ),
    counter(
        "fates.{fate!dropped|rejected|waiting}",
        "olaf_updates",
        "Contributions by fate; of dropped and rejected ones also by reason.",
    ),
    counter(
        "fates.{fate=dropped|rejected}.{reason}",
        "olaf_updates",
        "Contributions by fate; of dropped and rejected ones also by reason.",
    ),
    gauge("fates.waiting", "olaf_waiting_updates", "Contributions in the queue now."),
    counter("departures", "olaf_departures", "Updates that left for the server, merged ones once."),
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
    left("departed[]", "by job, what `departures` counts"),
    counter(
        "clipped.{what}",
        "olaf_clipped_updates",
        "Updates whose norm, weight or reward was reduced to its limit.",
    ),
    counter(
        "refused.{reason}",
        "olaf_refused_datagrams",
        "Datagrams that never became a contribution, by reason.",
    ),
    counter(
        "forwarded.{direction}",
        "olaf_forwarded_datagrams",
        "Datagrams passed on that are not updates.",
    ),
    info("queue", &["discipline"], "olaf_queue", "The discipline of the queue."),
    gauge("queue.slots", "olaf_queue_slots", "Segments that the queue holds at most."),
    gauge("queue.used", "olaf_queue_used_slots", "Segments in the queue now."),
    gauge("queue.active_clusters", "olaf_active_clusters", "Clusters that sent an update lately."),
    gauge("queue.gate", "olaf_queue_gate", "Threshold of the reward gate."),
    counter(
        "uplink:link=up.{event=forwarded|sent|marked}",
        "olaf_link_datagrams",
        "Datagrams of a link: that found room, that left, that were marked as congested.",
    ),
    counter(
        "downlinks[port].{event=forwarded|sent|marked}",
        "olaf_link_datagrams",
        "Datagrams of a link: that found room, that left, that were marked as congested.",
    ),
    counter(
        "uplink:link=up.dropped.{reason}",
        "olaf_link_dropped_datagrams",
        "Datagrams that found a link full.",
    ),
    counter(
        "downlinks[port].dropped.{reason}",
        "olaf_link_dropped_datagrams",
        "Datagrams that found a link full.",
    ),
    gauge(
        "uplink:link=up.waiting",
        "olaf_link_waiting_datagrams",
        "Datagrams that wait for a link.",
    ),
    gauge(
        "downlinks[port].waiting",
        "olaf_link_waiting_datagrams",
        "Datagrams that wait for a link.",
    ),
    gauge(
        "uplink:link=up.limit_datagrams",
        "olaf_link_limit_datagrams",
        "Datagrams that may wait for a link.",
    ),
    gauge(
        "downlinks[port].limit_datagrams",
        "olaf_link_limit_datagrams",
        "Datagrams that may wait for a link.",
    ),
    gauge(
        "uplink:link=up.ecn_depth_datagrams",
        "olaf_link_ecn_depth_datagrams",
        "Backlog from which a link marks datagrams.",
    ),
    gauge(
        "downlinks[port].ecn_depth_datagrams",
        "olaf_link_ecn_depth_datagrams",
        "Backlog from which a link marks datagrams.",
    ),
    gauge(
        "uplink:link=up.bits_per_second",
        "olaf_link_rate_bytes_per_second",
        "Bandwidth that a link is paced to, in bytes; none: not paced.",
    ),
    gauge(
        "downlinks[port].bits_per_second",
        "olaf_link_rate_bytes_per_second",
        "Bandwidth that a link is paced to, in bytes; none: not paced.",
    ),
    gauge(
        "uplink.credits",
        "olaf_uplink_credits",
        "Most unanswered updates on the way to the server.",
    ),
    gauge(
        "uplink.outstanding",
        "olaf_uplink_outstanding_updates",
        "Unanswered updates on the way to the server.",
    ),
    counter(
        "uplink.credits_expired",
        "olaf_uplink_expired_credits",
        "Updates whose answer never came.",
    ),
    info("uplink:link=up", &["pacer"], "olaf_link", "How a link is paced."),
    info("downlinks[port]", &["pacer"], "olaf_link", "How a link is paced."),
    left("downlinks[port].port", "a label of the other fields"),
    counter(
        "clusters[job,cluster].{fate=sent_alone|merged|replaced|filtered|dropped|rejected}",
        "olaf_cluster_updates",
        "Contributions of a cluster by fate.",
    ),
    counter(
        "clusters[job,cluster].received",
        "olaf_cluster_received_updates",
        "Contributions of a cluster that reached the queue.",
    ),
    counter(
        "clusters[job,cluster].departures",
        "olaf_cluster_departures",
        "Updates of a cluster that left for the server.",
    ),
    gauge(
        "clusters[job,cluster].waiting",
        "olaf_cluster_waiting_updates",
        "Contributions of a cluster in the queue now.",
    ),
    gauge(
        "clusters[job,cluster].active",
        "olaf_cluster_active",
        "1: the cluster sent an update lately.",
    ),
    left("clusters[].{field=job|cluster}", "a label of the other fields"),
    count(
        "workers[job]",
        &["alive"],
        "olaf_workers",
        "Workers of a job, by whether they were heard lately.",
    ),
    left("workers[]", MANY),
    gauge(
        "switches[job,address].alive",
        "olaf_lower_switch_up",
        "1: the switch below was heard lately.",
    ),
    gauge(
        "switches[job,address].silent_ns",
        "olaf_lower_switch_silent_seconds",
        "Time since the switch below was heard.",
    ),
    gauge(
        "switches[job,address].workers",
        "olaf_lower_switch_workers",
        "Workers behind the switch below.",
    ),
    counter(
        "switches[job,address].received",
        "olaf_lower_switch_received_updates",
        "Contributions from the switch below.",
    ),
    counter(
        "switches[job,address].rejected",
        "olaf_lower_switch_rejected_updates",
        "Contributions from the switch below that were refused.",
    ),
    left("switches[].{field=job|address}", "a label of the other fields"),
    gauge(
        "servers[job,address].alive",
        "olaf_upstream_up",
        "1: the server, or the switch above, was heard lately.",
    ),
    gauge(
        "servers[job,address].silent_ns",
        "olaf_upstream_silent_seconds",
        "Time that the server, or the switch above, has not answered for.",
    ),
    left("servers[].{field=job|address|epoch|is_switch}", IDENTITY),
    counter(
        "admission.{event!open}",
        "olaf_admission_questions",
        "Questions whether a cluster may join, and joins meanwhile, by outcome.",
    ),
    gauge("admission.open", "olaf_admission_open_questions", "Questions that have no answer yet."),
    left("admission", "null: the switch does not ask before a cluster joins"),
    // Every engine that sums.
    counter(
        "{engine=reduce|iswitch|trio|atp}.pieces.{fate!received|waiting|refused}",
        "olaf_sum_pieces",
        "Pieces of arrays by fate; of refused ones also by reason.",
    ),
    counter(
        "{engine=reduce|iswitch|trio|atp}.pieces.{fate=refused}.{reason}",
        "olaf_sum_pieces",
        "Pieces of arrays by fate; of refused ones also by reason.",
    ),
    counter(
        "{engine=reduce|iswitch|trio|atp}.pieces.received",
        "olaf_sum_received_pieces",
        "Pieces of arrays that reached the table.",
    ),
    gauge(
        "{engine=reduce|iswitch|trio|atp}.pieces.waiting",
        "olaf_sum_waiting_pieces",
        "Pieces in sums that wait for other workers.",
    ),
    counter(
        "atp_server:engine=atp_server.gradients.{fate!received}",
        "olaf_sum_pieces",
        "Pieces of arrays by fate; of refused ones also by reason.",
    ),
    counter(
        "atp_server:engine=atp_server.gradients.received",
        "olaf_sum_received_pieces",
        "Pieces of arrays that reached the table.",
    ),
    counter(
        "{engine=reduce|iswitch|trio|atp|atp_server}.refused.{reason}",
        "olaf_sum_refused_datagrams",
        "Datagrams that reached no table, by reason.",
    ),
    counter(
        "{engine=reduce|iswitch|trio|atp|atp_server}.{reason=closed_generations|closed_terms}.{why}",
        "olaf_sum_closed_generations",
        "Times with the same workers that ended, by reason.",
    ),
    counter(
        "iswitch:engine=iswitch.{direction=controls|controls_received}.{verb}",
        "olaf_sum_controls",
        "Control messages by verb: `controls` were sent.",
    ),
    counter(
        "atp_server:engine=atp_server.parameters.{event}",
        "olaf_sum_parameters",
        "Packets with results: sent, sent again, asked for.",
    ),
    counter(
        "{engine=reduce|iswitch|trio|atp|atp_server}.{event=results|results_again|results_gone|results_above|results_above_again|sums_up|sums_up_again|wants|welcomes|closed|asks|asks_up|joins|leaves|leaves_up|hellos|hellos_up|gone|generations|terms|overdue_blocks|aged_blocks|excused_blocks|forced_packets|passed_on|link_full|link_full_up|link_full_down|marked|straggler_notices|temporary_stragglers|permanent_stragglers|alone|floats|strangers|parts|too_many_groups|gradients|parameters|sent_up|sent_down|fragments|collisions|replaced_indices|seated_anew}",
        "olaf_sum_events",
        "Counters of an engine that sums, under the names of its statistics.",
    ),
    gauge(
        "{engine=reduce|iswitch|trio|atp|atp_server}.waiting_datagrams",
        "olaf_sum_waiting_datagrams",
        "Datagrams that wait for a link.",
    ),
    gauge(
        "{engine=atp_server}.misplaced",
        "olaf_sum_misplaced_workers",
        "Workers that are elsewhere than the topology file says.",
    ),
    gauge("{engine=atp}.aggregators", "olaf_sum_aggregators", "Cells for sums."),
    gauge("{engine=atp}.used_aggregators", "olaf_sum_used_aggregators", "Cells with a sum."),
    gauge("{engine=atp}.sum_bytes", "olaf_sum_memory_bytes", "Bytes of all sums."),
    counter(
        "{engine=reduce|iswitch|trio|atp|atp_server}.events_forgotten",
        "olaf_sum_events_forgotten",
        "Events that an engine left out because nobody fetched them.",
    ),
    gauge(
        "{engine=reduce|trio}.jobs[job,core].fixed_workers",
        "olaf_sum_workers",
        "Workers of a job.",
    ),
    gauge(
        "{engine=iswitch|atp|atp_server}.jobs[job,server].workers",
        "olaf_sum_workers",
        "Workers of a job.",
    ),
    gauge(
        "{engine=reduce|iswitch|trio|atp_server}.jobs[job,core].waiting_workers",
        "olaf_sum_waiting_workers",
        "Workers that wait for a job to begin.",
    ),
    gauge(
        "{engine=reduce|iswitch}.jobs[job,core].slots",
        "olaf_sum_slots",
        "Places of a job for sums.",
    ),
    gauge(
        "{engine=reduce|iswitch}.jobs[job,core].used_slots",
        "olaf_sum_used_slots",
        "Places with an incomplete sum.",
    ),
    gauge(
        "trio:engine=trio.jobs[job].used_records",
        "olaf_sum_used_slots",
        "Places with an incomplete sum.",
    ),
    left("{engine=reduce|trio}.jobs[].workers[]", MANY),
    left("{engine=iswitch|atp_server}.jobs[].members[]", MANY),
    left("atp_server.jobs[].misplaced[]", MANY),
    left(
        "{engine=reduce|iswitch|trio|atp|atp_server}.jobs[]",
        "what the job is cut into; /status.json has it",
    ),
    left("iswitch.above", TEXT),
    counter(
        "{engine=reduce|iswitch|trio|atp|atp_server}.io.{direction=received_datagrams|sent_datagrams}",
        "olaf_datagrams",
        "Datagrams received and sent.",
    ),
    counter(
        "{engine=reduce|iswitch|trio|atp|atp_server}.io.{direction=received_bytes|sent_bytes}",
        "olaf_traffic_bytes",
        "Bytes of UDP payload received and sent.",
    ),
    counter(
        "{engine=reduce|iswitch|trio|atp|atp_server}.io.{call=receive_calls|send_calls}",
        "olaf_socket_calls",
        "System calls that receive or send.",
    ),
    counter(
        "{engine=reduce|iswitch|trio|atp|atp_server}.io.{reason=send_errors|kernel_drops|too_large|not_opened|unroutable|truncated|receive_errors|connection_refused|lost_on_purpose|probes_too_large}",
        "olaf_socket_trouble",
        "Datagrams that were lost or refused at the socket, by reason.",
    ),
    counter(
        "{engine=reduce|iswitch|trio|atp|atp_server}.io.ecn_marked",
        "olaf_ecn_marked_received_datagrams",
        "Received datagrams that a link on the way marked as congested.",
    ),
    counter(
        "{engine=reduce|iswitch|trio|atp|atp_server}.io.send_waits",
        "olaf_socket_full",
        "Times the socket was full; nothing is lost by it.",
    ),
    counter(
        "{engine=reduce|iswitch|trio|atp|atp_server}.io.events_forgotten",
        "olaf_events_forgotten",
        "Events that were not fetched in time.",
    ),
    counter(
        "{engine=reduce|iswitch|trio|atp|atp_server}.io.cpu_s",
        "olaf_packet_cpu_seconds",
        "Processor time of the thread that drives the socket.",
    ),
    left("{engine=reduce|iswitch|trio|atp|atp_server}.io", "as of the first engine"),
    left(
        "{engine=reduce|iswitch|trio|atp|atp_server}.{field=address|role|uptime_s|epoch}",
        ADDRESS,
    ),
];

const SERVER: &[Row] = &[
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
        "Updates whose norm, weight or reward was reduced to its limit.",
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

const WORKER: &[Row] = &[
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

/// A worker that sums.
const SUM: &[Row] = &[
    info(
        "",
        &["job", "standing", "switch"],
        "olaf_sum_worker",
        "Which job this worker is in, and how it stands.",
    ),
    gauge("rank", "olaf_sum_rank", "Rank of the worker."),
    gauge("workers", "olaf_sum_workers", "Workers of the job."),
    counter("operations.{state!open}", "olaf_sum_operations", "Operations: begun, done, failed."),
    gauge("operations.open", "olaf_sum_open_operations", "Operations that are not done."),
    counter(
        "{table=pieces|packets|fragments|results|parameters|vectors}.{event!in_flight|early_waiting}",
        "olaf_sum_worker_events",
        "Pieces sent and results received, under the names of the worker's statistics.",
    ),
    gauge(
        "{table=pieces|packets|fragments|results}.{event=in_flight|early_waiting}",
        "olaf_sum_in_flight",
        "Pieces without a result, and results that wait.",
    ),
    counter(
        "{event=acknowledgements|asked_blocks|asks|generations|terms|joins|hellos|leaves|time_outs|losses|marked|seated_anew|acks|helps|helped_packets|fbcasts}",
        "olaf_sum_worker_messages",
        "Counters of the worker, under the names of its statistics.",
    ),
    gauge("round_trip_ns", "olaf_round_trip_seconds", "Round trip of pieces."),
    gauge(
        "switch_silent_ns",
        "olaf_switch_silent_seconds",
        "Time that the switch has not answered for.",
    ),
    gauge("{peer=switch_alive}", "olaf_peer_up", "1: the switch was heard lately."),
    gauge(
        "{window=window_blocks|window_packets}",
        "olaf_sum_window",
        "Blocks or packets that may be on their way.",
    ),
    gauge(
        "flows[server].{window=window_packets}",
        "olaf_sum_window",
        "Blocks or packets that may be on their way.",
    ),
    gauge("flows[server].round_trip_ns", "olaf_round_trip_seconds", "Round trip of pieces."),
    counter(
        "refused.{reason}",
        "olaf_refused_datagrams",
        "Datagrams that the worker refused, by reason.",
    ),
    left("flows[]", "the state of a flow; the statistics have it"),
    left("other_cores[]", "as of the first core; the statistics have it"),
    left("stragglers", TEXT),
    left(
        "{field=generation|term|session|here|holds|slots|packet_floats|cores|turned_away|other_version}",
        IDENTITY,
    ),
];
