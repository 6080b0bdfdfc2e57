//! How far one contribution may move a model: limits on its norm, its weight and its reward.
//!
//! A limit is a number, or a multiple of what the other workers sent lately. The median counts,
//! with one vote for each [voter](Voter), so that one party cannot move the limit, however much it sends
//! and under however many ids.
//!
//! | quantity | measured | above the limit |
//! |---|---|---|
//! | norm | length of the mean gradient: of the sum, divided by the weight | the sum is scaled down |
//! | weight | weight of one contribution | weight and sum are scaled down |
//! | reward | distance from the median, in units of the spread | the reward moves to the limit |
//! | movement | norms of an address in a while, in usual steps | the sum is scaled down, see `movement.rs` |

mod limits;
mod movement;
mod recent;
#[cfg(test)]
mod tests;

pub use limits::{Clip, Limits};
pub use recent::Voter;
pub(super) use recent::{Recent, Seat};

use self::movement::{Move, Movement};
use crate::lanes;
use crate::table::{Hint, Table};
use crate::time::Instant;
use alloc::vec::Vec;
use olaf_wire::offsets::LANE;

/// A mean gradient shorter than the median by this factor counts as a part of a step, in proportion to its
/// length. The norms of honest updates differ less from their median.
const SMALL: f64 = 4.0;

/// What was clipped of one update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clipped {
    /// Its norm.
    pub norm: bool,
    /// Its weight.
    pub weight: bool,
    /// Its reward.
    pub reward: bool,
    /// What its address moved the model by lately.
    pub movement: bool,
}

/// An update after clipping.
#[derive(Clone, Copy, Debug)]
pub struct Kept<'a> {
    /// Its lanes.
    pub lanes: &'a [u8],
    /// What was clipped of it.
    pub clipped: Clipped,
    /// How much it counts as a step that others overlap with: 1, and less where it is far smaller than
    /// what is usual. A flood of zeros counts nothing.
    pub effect: f64,
}

impl Clipped {
    /// Returns true if anything was.
    #[must_use]
    pub const fn any(self) -> bool {
        self.norm || self.weight || self.reward || self.movement
    }

    /// The first of them, as logs name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self { norm: true, .. } => "norm",
            Self { weight: true, .. } => "weight",
            Self { reward: true, .. } => "reward",
            _ => "movement",
        }
    }
}

/// The parts of an update that are measured.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Whose vote it is.
    pub voter: Voter,
    /// The segment, and how many an update has.
    pub segment: (u32, u32),
    /// The update came from its worker's address. Another one was merged or judged below.
    pub is_direct: bool,
    /// Contributions in it, at least 1.
    pub contributors: u32,
    /// Their weights, summed; above 0.
    pub weight: f64,
    /// Their mean reward, finite.
    pub reward: f64,
}

/// What the workers of one job sent lately.
#[derive(Debug, Default)]
pub struct Clipping {
    norms: Table<u32, Recent>,
    weights: Recent,
    rewards: Recent,
    movement: Movement,
    scaled: Vec<u8>,
}

/// Where a flow's votes were found last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hints {
    segment: Hint,
    norm: Seat,
    weight: Seat,
    reward: Seat,
    movement: movement::Hints,
}

/// What is to become of an update.
#[derive(Clone, Copy, Debug)]
pub struct Judged {
    /// What was clipped of it.
    pub clipped: Clipped,
    /// Its lanes are to be multiplied by that, where it is below 1.
    factor: f64,
}

impl Judged {
    /// Returns true if its lanes stay as they are.
    #[must_use]
    pub fn keeps_lanes(&self) -> bool {
        self.factor >= 1.0
    }
}

impl Clipping {
    /// Clips one update: returns its lanes, and changes weight and reward in place. `unknown` is the
    /// limit of the norm where no other worker has sent anything and the limit is a multiple.
    ///
    /// Lanes that are not finite come back as they are: whoever adds them refuses them.
    pub fn clip<'a>(
        &'a mut self,
        now: Instant,
        limits: &Limits,
        of: &mut Measured,
        lanes: &'a [u8],
        unknown: impl FnOnce(f64) -> Option<f64>,
    ) -> Kept<'a> {
        let (mut effect, length) = (1.0, || lanes::length(lanes));
        let hints = &mut Hints::default();
        let judged = self.judge(now, limits, of, length, hints, Some(&mut effect), unknown);
        Kept { lanes: self.scale(judged, lanes), clipped: judged.clipped, effect }
    }

    /// Judges one update whose lanes are that long as a vector, and changes weight and reward in place.
    /// Each update is judged once: its values are votes from then on. `effect` becomes
    /// [`Kept::effect`] where somebody asks for it.
    #[inline]
    #[allow(
        clippy::too_many_arguments,
        reason = "the hints and the effect are the switch's and the server's"
    )]
    pub fn judge(
        &mut self,
        now: Instant,
        limits: &Limits,
        of: &mut Measured,
        length: impl FnOnce() -> f64,
        hints: &mut Hints,
        effect: Option<&mut f64>,
        unknown: impl FnOnce(f64) -> Option<f64>,
    ) -> Judged {
        let mut clipped = Clipped::default();
        let mut factor = 1.0;
        if !limits.clip_weight.is_off() {
            let one = of.weight / f64::from(of.contributors);
            let own = self.weights.own(of.voter, &mut hints.weight);
            let limit = self.weights.limit_below(limits.clip_weight, own, one, |l| one > l);
            if let Some(limit) = limit {
                factor = limit / one;
                of.weight = limit * f64::from(of.contributors);
                clipped.weight = true;
            }
            self.weights.note(now, of.voter, own, limit.unwrap_or(one));
        }
        if limits.measure_norms() {
            let length = length() * factor;
            let norms = self.norms.at_or_insert(of.segment.0, &mut hints.segment, Recent::default);
            let own = norms.own(of.voter, &mut hints.norm);
            let mean = length / of.weight;
            let is_over = |limit: f64| length.is_finite() && length > limit * of.weight;
            let over = match limits.clip_norm {
                Clip::Median(multiple) if !norms.has_others(own) => {
                    unknown(multiple).filter(|limit| is_over(*limit))
                }
                clip => norms.limit_below(clip, own, mean, is_over),
            };
            if let Some(limit) = over {
                factor *= limit * of.weight / length;
                clipped.norm = true;
            }
            if let (Clip::Median(_), Some(effect)) = (limits.clip_norm, effect)
                && let Some(median) = norms.median_above(own, mean * SMALL)
            {
                *effect = mean * SMALL / median;
            }
            let mean = over.unwrap_or(mean);
            norms.note(now, of.voter, own, mean);
            // Who adds lanes that are no numbers refuses them: they move nothing.
            if !limits.max_movement.is_off()
                && of.is_direct
                && (f64::MIN_POSITIVE..f64::INFINITY).contains(&mean)
            {
                // The steps of an address that is alone are the usual ones.
                let usual = norms.usual(now, own).unwrap_or(mean);
                let (segment, segments) = of.segment;
                let steps = mean * f64::from(of.contributors) / (usual * f64::from(segments));
                let turns = if segment == 0 { of.contributors } else { 0 };
                let by = Move { by: of.voter, steps, turns };
                let kept = self.movement.kept(now, limits.max_movement, by, &mut hints.movement);
                if kept < 1.0 {
                    clipped.movement = true;
                    factor *= kept;
                }
            }
        }
        // A receiver refuses a reward that is no number; it is no vote for the usual reward.
        if !limits.clip_reward.is_off() && of.reward.is_finite() {
            let own = self.rewards.own(of.voter, &mut hints.reward);
            if let Some(reward) = self.rewards.clamped(limits.clip_reward, own, of.reward) {
                of.reward = reward;
                clipped.reward = true;
            }
            self.rewards.note_any(now, of.voter, own, of.reward);
        }
        Judged { clipped, factor }
    }

    /// The lanes of an update that was judged.
    pub fn scale<'a>(&'a mut self, judged: Judged, lanes: &'a [u8]) -> &'a [u8] {
        if judged.keeps_lanes() {
            return lanes;
        }
        self.scaled.clear();
        self.scaled.extend(lanes.as_chunks::<LANE>().0.iter().flat_map(|lane| {
            let lane = f64::from(f32::from_le_bytes(*lane)) * judged.factor;
            (lane as f32).to_le_bytes()
        }));
        &self.scaled
    }
}
