//! A switch: the engine `queue` at the top of the document, each other engine in a table of its own.

use super::{ADDRESS, IDENTITY, MANY, Row, TEXT, count, counter, gauge, info, left};

pub(super) const ROWS: &[Row] = &[
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
        "Updates that were reduced to a limit of their norm, weight, reward or movement.",
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
        "{engine=reduce|iswitch|trio|atp|atp_server}.{closed=closed_generations|closed_terms}.{reason}",
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
        "{engine=reduce|iswitch|trio|atp|atp_server}.{event=results|results_again|results_gone|results_above|results_above_again|sums_up|sums_up_again|wants|welcomes|closed|asks|asks_up|joins|leaves|leaves_up|hellos|hellos_up|gone|generations|terms|overdue_blocks|aged_blocks|excused_blocks|forced_packets|non_finite_packets|passed_on|link_full|link_full_up|link_full_down|marked|straggler_notices|temporary_stragglers|permanent_stragglers|alone|floats|strangers|parts|too_many_groups|gradients|parameters|sent_up|sent_down|fragments|collisions|replaced_indices|seated_anew}",
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
