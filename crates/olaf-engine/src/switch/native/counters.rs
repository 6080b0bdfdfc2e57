//! What happened to every contribution, by reason.

use crate::drop::DropReason;
use crate::party::Clipped;
use crate::party::arrivals::between;
use crate::queue::Outcome;
use crate::rejection::Rejection;
use crate::time::Instant;
use alloc::collections::BTreeMap;
use core::time::Duration;
use serde::Serialize;

/// Fates of contributions. At all times
/// `received = sent_alone + merged + replaced + filtered + dropped + rejected + waiting`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fates {
    /// Contributions that came, well-formed.
    pub received: u64,
    /// Left as they came.
    pub sent_alone: u64,
    /// Left in a merge with others.
    pub merged: u64,
    /// A newer or better one took their place.
    pub replaced: u64,
    /// Below the reward gate.
    pub filtered: u64,
    /// Found the queue full.
    pub dropped: u64,
    /// Gave its slot to one whose departure helped more: dropped too.
    pub evicted: u64,
    /// Turned away, by [`Rejection::index`].
    pub rejected: [u64; Rejection::ALL.len()],
    /// Datagrams that left.
    pub departures: u64,
}

impl Fates {
    /// Counts what became of an arrival and its contributions.
    pub fn count(&mut self, contributors: u32, outcome: Outcome) {
        let n = u64::from(contributors);
        self.received += n;
        match outcome {
            Outcome::Appended(_) | Outcome::Merged(_) => {}
            Outcome::Replaced { displaced, .. } => self.replaced += u64::from(displaced),
            Outcome::Filtered(_) => self.filtered += n,
            Outcome::Dropped => self.dropped += n,
            Outcome::Evicted { dropped, .. } => self.evicted += u64::from(dropped),
            Outcome::Rejected(rejection) => {
                self.rejected[Rejection::from(rejection).index()] += n;
            }
        }
    }

    /// Counts contributions that were turned away before they met the queue.
    pub fn reject(&mut self, contributors: u32, rejection: Rejection) {
        self.received += u64::from(contributors);
        self.rejected[rejection.index()] += u64::from(contributors);
    }

    /// Counts the contributions of a datagram that has left.
    pub fn departed(&mut self, contributors: u32) {
        self.departures += 1;
        if contributors == 1 {
            self.sent_alone += 1;
        } else {
            self.merged += u64::from(contributors);
        }
    }

    /// All rejections.
    #[must_use]
    pub fn rejected_sum(&self) -> u64 {
        self.rejected.iter().sum()
    }

    /// Contributions whose fate is settled.
    #[must_use]
    pub fn settled(&self) -> u64 {
        self.sent_alone
            + self.merged
            + self.replaced
            + self.filtered
            + self.dropped
            + self.evicted
            + self.rejected_sum()
    }
}

/// What left for a job, to be compared with what the party above counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Departed {
    /// Number of the last datagram.
    pub(super) hop_sequence: u32,
    /// Numbers that were left out: the job was forgotten meanwhile.
    pub(super) left_out: u64,
    pub(super) datagrams: u64,
    pub(super) contributions: u64,
}

impl Departed {
    pub(super) fn note(&mut self, hop_sequence: u32, contributors: u32) {
        self.left_out += u64::from(between(self.hop_sequence, hop_sequence));
        self.hop_sequence = hop_sequence;
        self.datagrams += 1;
        self.contributions += u64::from(contributors);
    }
}

/// Contributions that one sender sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account {
    pub(super) received: u64,
    pub(super) rejected: u64,
    /// Updates that were clipped, and when that was last told.
    pub(super) clipped: u64,
    pub(super) told_of_clipped: Option<Instant>,
}

impl Account {
    /// Counts an update that was clipped; whether it is time to tell of it.
    pub(super) fn clip(&mut self, now: Instant, every: Duration) -> bool {
        self.clipped += 1;
        let tells = self.told_of_clipped.is_none_or(|told| now.since(told) >= every);
        if tells {
            self.told_of_clipped = Some(now);
        }
        tells
    }

    /// Counts what became of an arrival and its contributions.
    pub(super) fn count(&mut self, contributors: u32, is_rejected: bool) {
        self.received += u64::from(contributors);
        if is_rejected {
            self.rejected += u64::from(contributors);
        }
    }
}

/// Updates that were clipped, by the clipped quantity.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ClippedCounts {
    /// The norm.
    pub norm: u64,
    /// The weight.
    pub weight: u64,
    /// The reward.
    pub reward: u64,
    /// What an address moved the model by in a while.
    pub movement: u64,
}

impl ClippedCounts {
    /// Counts one update.
    pub fn count(&mut self, clipped: Clipped) {
        self.norm += u64::from(clipped.norm);
        self.weight += u64::from(clipped.weight);
        self.reward += u64::from(clipped.reward);
        self.movement += u64::from(clipped.movement);
    }
}

/// What the switch counts beside its clusters.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Counters {
    #[serde(skip)]
    pub(super) total: Fates,
    pub(super) refused: BTreeMap<&'static str, u64>,
    pub(super) forwarded_untouched: u64,
    pub(super) events_forgotten: u64,
    #[serde(skip)]
    pub(super) clipped: ClippedCounts,
}

impl Counters {
    /// Counts a datagram that never became a contribution; what did is in the fates.
    pub(super) fn refuse(&mut self, reason: DropReason) {
        if !matches!(
            reason,
            DropReason::Contribution(_) | DropReason::QueueFull | DropReason::Filtered
        ) {
            *self.refused.entry(reason.name()).or_default() += 1;
        }
    }
}
