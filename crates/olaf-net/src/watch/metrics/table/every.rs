//! What every role counts: its identity, its socket.

use super::{ADDRESS, IDENTITY, Row, TEXT, counter, gauge, info, left};

pub(in super::super) const OWN: &[Row] = &[
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
