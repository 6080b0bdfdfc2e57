//! A worker that sums with others.

use super::{IDENTITY, Row, TEXT, counter, gauge, info, left};

pub(super) const ROWS: &[Row] = &[
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
