//! What is usual: the newest value of each of a few voters, and the median of the others.

use super::Clip;
use crate::ids::{PeerId, WorkerId};
use crate::time::Instant;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_wire::Update;

/// Voters whose newest value is remembered.
const VOTES: usize = 15;
/// A voter that said nothing for this time gives way to a newcomer: several turns of a slow worker.
const KEPT: Duration = Duration::from_secs(60);

/// Who has one vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Voter {
    /// All that send for themselves from one address: a party with one socket has one vote, however
    /// many worker ids it joined with.
    At(PeerId),
    /// A worker that a switch sends for. The switch is a trusted member of the tree, and has seen the
    /// worker's address.
    Behind(WorkerId),
}

impl Voter {
    /// The voter of an update that came from that peer. `is_behind` says whether the worker that the update
    /// names joined through the peer: nobody votes in the name of another switch's worker.
    #[must_use]
    pub const fn of(from: PeerId, update: &Update, is_behind: bool) -> Self {
        if update.hops > 0 && is_behind {
            Self::Behind(update.address.worker)
        } else {
            Self::At(from)
        }
    }
}

/// The newest value of each voter.
#[derive(Debug, Default)]
pub(in crate::party) struct Recent(Vec<Vote>);

#[derive(Debug)]
struct Vote {
    by: Voter,
    value: f64,
    at: Instant,
}

impl Recent {
    /// Notes a value that says what is usual. Zero says nothing: a flood of zeros must not make
    /// everything else too large.
    pub(in crate::party) fn note(&mut self, now: Instant, by: Voter, value: f64) {
        if value > 0.0 && value.is_finite() {
            self.note_any(now, by, value);
        }
    }

    /// A newcomer gets a vote where one is free, or where a voter has said nothing for long: parties that
    /// join later do not take the votes of those that are at work.
    pub(super) fn note_any(&mut self, now: Instant, by: Voter, value: f64) {
        if let Some(own) = self.0.iter_mut().find(|vote| vote.by == by) {
            (own.value, own.at) = (value, now);
            return;
        }
        if self.0.len() == VOTES {
            let quiet = self.0.iter().enumerate().min_by_key(|(_, vote)| vote.at);
            let Some((quiet, vote)) = quiet else { return };
            if now.since(vote.at) < KEPT {
                return;
            }
            self.0.swap_remove(quiet);
        }
        self.0.push(Vote { by, value, at: now });
    }

    /// The values of the others, and how many there are.
    fn others(&self, by: Voter) -> ([f64; VOTES], usize) {
        let (mut values, mut count) = ([0.0; VOTES], 0);
        for vote in self.0.iter().filter(|vote| vote.by != by) {
            values[count] = vote.value;
            count += 1;
        }
        (values, count)
    }

    /// The median of the others' values; none while no other has sent anything.
    pub(in crate::party) fn median(&self, by: Voter) -> Option<f64> {
        let (mut values, count) = self.others(by);
        median(&mut values[..count])
    }

    /// The median, where it is larger than the value.
    pub(super) fn median_of_longer(&self, by: Voter, value: f64) -> Option<f64> {
        // Most values are not below the largest of the others, and need no median.
        let is_short = self.extremes(by).is_some_and(|(_, most)| value < most);
        is_short.then(|| self.median(by)).flatten().filter(|median| value < *median)
    }

    /// The least and the largest value of the others.
    fn extremes(&self, by: Voter) -> Option<(f64, f64)> {
        let others = self.0.iter().filter(|vote| vote.by != by);
        let extremes = others.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), vote| {
            (least.min(vote.value), most.max(vote.value))
        });
        (extremes.0 <= extremes.1).then_some(extremes)
    }

    /// Whether the value is surely not above the limit. The median is not below the least value, so that
    /// most updates need no median: it costs more than their arithmetic.
    pub(super) fn is_usual(&self, clip: Clip, by: Voter, value: f64) -> bool {
        let (Clip::Median(multiple), Some((least, _))) = (clip, self.extremes(by)) else {
            return false;
        };
        value <= least * multiple
    }

    /// Whether the reward surely lies in the [range](Self::range): its spread is at least 1.
    pub(super) fn is_usual_reward(&self, clip: Clip, by: Voter, reward: f64) -> bool {
        let (Clip::Median(multiple), Some((least, most))) = (clip, self.extremes(by)) else {
            return false;
        };
        most - multiple <= reward && reward <= least + multiple
    }

    pub(super) fn limit(&self, clip: Clip, by: Voter) -> Option<f64> {
        match clip {
            Clip::Off => None,
            Clip::At(limit) => Some(limit),
            Clip::Median(multiple) => {
                let (mut values, count) = self.others(by);
                let limit = median(&mut values[..count])? * multiple;
                // One other is no majority: it may be the liar. What was taken before is not too much.
                let own = self.0.iter().find(|vote| vote.by == by && count == 1);
                Some(own.map_or(limit, |own| limit.max(own.value)))
            }
        }
    }

    /// The least and the largest reward. The spread is at least the median's magnitude, and at least
    /// 1: rewards that are all alike have no spread of their own.
    pub(super) fn range(&self, clip: Clip, by: Voter) -> Option<(f64, f64)> {
        match clip {
            Clip::Off => None,
            Clip::At(limit) => Some((-limit, limit)),
            Clip::Median(multiple) => {
                let (mut values, count) = self.others(by);
                let values = &mut values[..count];
                let middle = median(values)?;
                values.iter_mut().for_each(|value| *value = (*value - middle).abs());
                let spread = median(values)?.max(middle.abs()).max(1.0) * multiple;
                Some((middle - spread, middle + spread))
            }
        }
    }
}

/// The upper median: of two values the larger, so that one tiny value makes nothing too large.
fn median(values: &mut [f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let middle = values.len() / 2;
    Some(*values.select_nth_unstable_by(middle, f64::total_cmp).1)
}
