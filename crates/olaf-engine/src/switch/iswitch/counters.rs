//! What the switch counts.

use crate::blocks::by_index::Counts;
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
    /// Sums and results whose cell had given way before they left.
    pub(super) results_gone: u64,
    /// Control messages down and up, by verb.
    pub(super) controls: ByReason,
    /// Sums to the switch above.
    pub(super) sums_up: u64,
    /// Sums that it asked for again.
    pub(super) sums_up_again: u64,
}

/// Everything else.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    /// Datagrams that reached no table, by reason.
    pub(super) refused: ByReason,
    /// Datagrams of no class of ours that went up.
    pub(super) passed_on: u64,
    /// Control messages that came, by verb.
    pub(super) controls: ByReason,
    /// Pieces of generations that are forgotten.
    pub(super) pieces: Counts,
    pub(super) generations: u64,
    /// Generations that ended, by reason.
    pub(super) closed: ByReason,
    /// Sums that went out without some of their members, because of an FBcast.
    pub(super) forced: u64,
    /// Pieces with a NaN or an infinity, or with which a sum overflowed, that are in sums.
    pub(super) non_finite: u64,
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
