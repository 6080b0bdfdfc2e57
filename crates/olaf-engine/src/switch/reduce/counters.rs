//! What the switch counts.

use crate::blocks::pool::Counts;
use crate::drop::DropReason;
use crate::sums::{ByReason, refuse};
use serde::Serialize;

/// Datagrams down, each receiver counted, and up.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Sent {
    /// Results to all members of a generation.
    pub(super) results: u64,
    /// Results to one member: it asked, or came late.
    pub(super) results_again: u64,
    /// Results whose cell had given way before they left.
    pub(super) results_gone: u64,
    pub(super) wants: u64,
    pub(super) welcomes: u64,
    pub(super) closed: u64,
    /// Sums to the switch above.
    pub(super) sums_up: u64,
    /// Sums that it asked for again.
    pub(super) sums_up_again: u64,
    /// Questions to the switch above, and heartbeats.
    pub(super) asks_up: u64,
}

/// Everything else.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    /// Datagrams that reached no table, by reason.
    pub(super) refused: ByReason,
    /// Pieces of generations that are forgotten.
    pub(super) pieces: Counts,
    pub(super) joins: u64,
    pub(super) asks: u64,
    pub(super) leaves: u64,
    pub(super) generations: u64,
    /// Generations that ended, by reason.
    pub(super) closed: ByReason,
    /// Blocks that went out without some of their workers.
    pub(super) overdue: u64,
    /// Results from the switch above that were taken in.
    pub(super) results_above: u64,
    /// Others, which were here already or found their cell in use.
    pub(super) results_above_again: u64,
}

impl Counters {
    pub(super) fn refuse(&mut self, reason: DropReason) {
        refuse(&mut self.refused, reason);
    }
}
