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

/// How long a median is used again where it need not be exact: most updates find it worked out.
const FRESH: Duration = Duration::from_millis(100);

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
#[derive(Debug)]
pub(in crate::party) struct Recent {
    votes: Vec<Vote>,
    /// No value is below the first or above the second. They decide most questions without a median, and
    /// are worked out anew when they do not.
    bounds: (f64, f64),
    /// A bit for each voter; two may share one. Most parties without a vote have none of these bits.
    marks: u64,
    /// No vote is older.
    since: Instant,
    /// For those without a vote.
    usual: Usual,
}

/// A median that was worked out lately; 0 where there was none.
#[derive(Clone, Copy, Debug, Default)]
struct Usual {
    median: f64,
    until: Instant,
}

#[derive(Debug)]
struct Vote {
    by: Voter,
    value: f64,
    at: Instant,
    /// For its voter: of the others.
    usual: Usual,
}

/// Where a voter's vote was last. It may be wrong at any time.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::party) struct Seat(u8);

/// Where a voter's vote is now; none where it has no vote.
pub(in crate::party) type Own = Option<usize>;

impl Voter {
    const fn mark(self) -> u64 {
        let (Self::At(PeerId(number)) | Self::Behind(WorkerId(number))) = self;
        1 << (number.wrapping_mul(0x9e37_79b9) >> 26)
    }
}

impl Default for Recent {
    fn default() -> Self {
        let bounds = (f64::INFINITY, f64::NEG_INFINITY);
        let (since, usual) = (Instant(u64::MAX), Usual::default());
        Self { votes: Vec::new(), bounds, marks: 0, since, usual }
    }
}

impl Recent {
    /// The vote of a voter, which is looked for at its seat first.
    #[inline]
    pub(in crate::party) fn own(&self, by: Voter, seat: &mut Seat) -> Own {
        match self.votes.get(usize::from(seat.0)) {
            Some(vote) if vote.by == by => Some(usize::from(seat.0)),
            _ => self.find(by, seat),
        }
    }

    fn find(&self, by: Voter, seat: &mut Seat) -> Own {
        if self.marks & by.mark() == 0 {
            return None;
        }
        let found = self.votes.iter().position(|vote| vote.by == by)?;
        *seat = Seat(found as u8);
        Some(found)
    }

    /// Notes a value that says what is usual. Zero says nothing: a flood of zeros must not make
    /// everything else too large.
    #[inline]
    pub(in crate::party) fn note(&mut self, now: Instant, by: Voter, own: Own, value: f64) {
        // Positive numbers are in the order of their bits: one comparison.
        if (1..f64::INFINITY.to_bits()).contains(&value.to_bits()) {
            self.note_any(now, by, own, value);
        }
    }

    /// A newcomer gets a vote where one is free, or where a voter has said nothing for long: parties that
    /// join later do not take the votes of those that are at work. The value is a number.
    #[inline]
    pub(super) fn note_any(&mut self, now: Instant, by: Voter, own: Own, value: f64) {
        if let Some(own) = own {
            let own = &mut self.votes[own];
            (own.value, own.at) = (value, now);
        } else if !self.welcome(now, by, value) {
            return;
        }
        // Not `f64::min`: it would first ask whether the value is a number.
        if value < self.bounds.0 {
            self.bounds.0 = value;
        }
        if value > self.bounds.1 {
            self.bounds.1 = value;
        }
    }

    /// Returns true if a newcomer gets a vote.
    #[inline(never)]
    fn welcome(&mut self, now: Instant, by: Voter, value: f64) -> bool {
        if self.votes.len() == VOTES {
            if now.since(self.since) < KEPT {
                return false;
            }
            let quiet = self.votes.iter().enumerate().min_by_key(|(_, vote)| vote.at);
            let Some((quiet, vote)) = quiet else { return false };
            self.since = vote.at;
            if now.since(vote.at) < KEPT {
                return false;
            }
            self.votes.swap_remove(quiet);
            self.marks = self.votes.iter().fold(0, |marks, vote| marks | vote.by.mark());
        }
        self.since = self.since.min(now);
        self.votes.push(Vote { by, value, at: now, usual: Usual::default() });
        self.marks |= by.mark();
        true
    }

    /// Returns true if that voter has a vote.
    pub(in crate::party) fn knows(&self, by: Voter) -> bool {
        self.votes.iter().any(|vote| vote.by == by)
    }

    /// The values of the others, and how many there are.
    pub(super) fn others(&self, own: Own) -> ([f64; VOTES], usize) {
        let (mut values, mut count) = ([0.0; VOTES], 0);
        for (_, vote) in self.votes.iter().enumerate().filter(|(at, _)| Some(*at) != own) {
            values[count] = vote.value;
            count += 1;
        }
        (values, count)
    }

    pub(super) fn has_others(&self, own: Own) -> bool {
        self.votes.len() > usize::from(own.is_some())
    }

    /// The median of the others' values; none while no other has sent anything.
    pub(in crate::party) fn median(&self, own: Own) -> Option<f64> {
        let (mut values, count) = self.others(own);
        median(&mut values[..count])
    }

    /// The [median](Self::median), at most [`FRESH`] old.
    #[inline]
    pub(super) fn usual(&mut self, now: Instant, own: Own) -> Option<f64> {
        let known = own.map_or(self.usual, |own| self.votes[own].usual);
        let usual = if now < known.until { known } else { self.renew_usual(now, own) };
        (usual.median > 0.0).then_some(usual.median)
    }

    #[inline(never)]
    fn renew_usual(&mut self, now: Instant, own: Own) -> Usual {
        let usual = Usual { median: self.median(own).unwrap_or(0.0), until: now + FRESH };
        *own.map_or(&mut self.usual, |own| &mut self.votes[own].usual) = usual;
        usual
    }

    /// The median, where it is larger than the value.
    pub(super) fn median_above(&self, own: Own, value: f64) -> Option<f64> {
        // Most values are not below the largest of the others, and need no median.
        let is_short = value < self.bounds.1;
        is_short.then(|| self.median(own)).flatten().filter(|median| value < *median)
    }

    /// Works the bounds out anew.
    #[inline(never)]
    fn tighten(&mut self) {
        let none = (f64::INFINITY, f64::NEG_INFINITY);
        self.bounds = self
            .votes
            .iter()
            .fold(none, |(least, most), vote| (least.min(vote.value), most.max(vote.value)));
    }

    /// The limit that `is_over`; none where there is no limit, or the value is not above it.
    #[inline]
    pub(super) fn limit_below(
        &mut self,
        clip: Clip,
        own: Own,
        value: f64,
        is_over: impl FnOnce(f64) -> bool,
    ) -> Option<f64> {
        // The median is not below the least value, so that most values need no median: it costs more
        // than their arithmetic.
        match clip {
            Clip::Off => return None,
            Clip::Median(multiple) if value <= self.bounds.0 * multiple => return None,
            _ => {}
        }
        self.exact_limit(clip, own).filter(|limit| is_over(*limit))
    }

    #[inline(never)]
    fn exact_limit(&mut self, clip: Clip, own: Own) -> Option<f64> {
        self.tighten();
        self.limit(clip, own)
    }

    pub(super) fn limit(&self, clip: Clip, own: Own) -> Option<f64> {
        match clip {
            Clip::Off => None,
            Clip::At(limit) => Some(limit),
            Clip::Median(multiple) => {
                let (mut values, count) = self.others(own);
                let limit = median(&mut values[..count])? * multiple;
                // One other is no majority: it may be the liar. What was taken before is not too much.
                let own = own.filter(|_| count == 1).and_then(|own| self.votes.get(own));
                Some(own.map_or(limit, |own| limit.max(own.value)))
            }
        }
    }

    /// Where the reward lies outside of the [range](Self::range): the end that is nearer.
    #[inline]
    pub(super) fn clamped(&mut self, clip: Clip, own: Own, reward: f64) -> Option<f64> {
        // The spread is at least 1, and the middle is between the bounds.
        if let Clip::Median(multiple) = clip
            && self.bounds.1 - multiple <= reward
            && reward <= self.bounds.0 + multiple
        {
            return None;
        }
        self.exact_clamped(clip, own, reward)
    }

    #[inline(never)]
    fn exact_clamped(&mut self, clip: Clip, own: Own, reward: f64) -> Option<f64> {
        self.tighten();
        let (least, most) = self.range(clip, own, reward)?;
        Some(reward.clamp(least, most)).filter(|clamped| *clamped != reward)
    }

    /// The least and the largest reward. The spread is at least the median's magnitude, and at least
    /// 1: rewards that are all alike have no spread of their own. None where the reward is not outside
    /// whatever the spread is.
    pub(super) fn range(&self, clip: Clip, own: Own, reward: f64) -> Option<(f64, f64)> {
        match clip {
            Clip::Off => None,
            Clip::At(limit) => Some((-limit, limit)),
            Clip::Median(multiple) => {
                let (mut values, count) = self.others(own);
                let values = &mut values[..count];
                let middle = median(values)?;
                let least = middle.abs().max(1.0);
                if (reward - middle).abs() <= least * multiple {
                    return None;
                }
                values.iter_mut().for_each(|value| *value = (*value - middle).abs());
                let spread = median(values)?.max(least) * multiple;
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
