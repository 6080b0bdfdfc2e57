//! What a socket did, in the names of `docs/reference/statistics.md`.

use serde::Serialize;

/// Counts of one socket.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct IoStatistics {
    pub(crate) received_datagrams: u64,
    pub(crate) received_bytes: u64,
    pub(crate) sent_datagrams: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) receive_calls: u64,
    pub(crate) send_calls: u64,
    /// Datagrams the system refused to send; those by reason below are among them.
    pub(crate) send_errors: u64,
    /// Datagrams longer than the path takes.
    pub(crate) too_large: u64,
    /// Probes of the path's size that were too long for the path: no trouble.
    pub(crate) probes_too_large: u64,
    /// Datagrams that came in and were not opened, because their seal is not valid.
    pub(crate) not_opened: u64,
    /// Datagrams for a party whose address is not known any more, or for no party.
    pub(crate) unroutable: u64,
    /// Times the socket was full and what was to be sent waited.
    pub(crate) send_waits: u64,
    /// Times a peer's machine said that no program listens there.
    pub(crate) connection_refused: u64,
    pub(crate) receive_errors: u64,
    /// Received datagrams that a link on the way marked as "congestion experienced" (ECN).
    pub(crate) ecn_marked: u64,
    /// Receives that the system cut short, because a buffer was too small. Their datagrams are
    /// lost.
    pub(crate) truncated: u64,
    /// Datagrams that `receive_loss` threw away.
    pub(crate) lost_on_purpose: u64,
    /// Datagrams the kernel dropped because the receive buffer was full.
    pub(crate) kernel_drops: u64,
    pub(crate) receive_buffer_bytes: usize,
    pub(crate) send_buffer_bytes: usize,
    pub(crate) segments_per_send: usize,
    /// Processor time of the thread that drives the socket.
    pub(crate) cpu_s: f64,
    pub(crate) events_forgotten: u64,
    /// What a person should look at.
    pub(crate) warnings: Vec<String>,
}
