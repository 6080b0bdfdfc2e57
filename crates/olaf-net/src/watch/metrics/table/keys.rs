//! What keys kept out: at the top of a role's document, or in the table of an engine.

use super::{Row, counter, gauge};

/// The rows below a table of the document.
macro_rules! rows {
    ($($table:literal),*) => { &[$(
        counter(
            concat!($table, "keys.received"),
            "olaf_keys_received_datagrams",
            "Datagrams that came to a party with keys.",
        ),
        counter(
            concat!($table, "keys.{fate=opened|handshakes}"),
            "olaf_keys_datagrams",
            "Received datagrams that were verified: messages, and handshakes.",
        ),
        counter(
            concat!($table, "keys.refused.{reason}"),
            "olaf_keys_refused_datagrams",
            "Datagrams that keys kept out, by reason.",
        ),
        counter(
            concat!($table, "keys.reclassified"),
            "olaf_keys_reclassified_datagrams",
            "Verified datagrams whose class of service somebody rewrote on the way.",
        ),
        counter(
            concat!($table, "keys.{fate=sealed|held_too_long|no_association|too_long|unanswered}"),
            "olaf_keys_sent_datagrams",
            "Messages by fate: sealed and sent, or dropped.",
        ),
        counter(
            concat!($table, "keys.{event=associations_begun|associations_ended}"),
            "olaf_keys_association_events",
            "Associations that began, and that ended.",
        ),
        gauge(
            concat!($table, "keys.associations"),
            "olaf_keys_associations",
            "Parties that have proved their key.",
        ),
        gauge(
            concat!($table, "keys.with_old_key"),
            "olaf_keys_old_key_associations",
            "Parties that use an old key, whose time is not over.",
        ),
        gauge(
            concat!($table, "keys.waiting"),
            "olaf_keys_waiting_datagrams",
            "Messages that wait for a handshake.",
        ),
    )*] };
}

pub(in super::super) const KEYS: &[Row] = rows!("", "{engine=reduce|iswitch|trio|atp|atp_server}.");
