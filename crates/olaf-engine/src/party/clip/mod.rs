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

mod limits;
mod recent;
#[cfg(test)]
mod tests;

pub use limits::{Clip, Limits};
pub(super) use recent::Recent;
pub use recent::Voter;

use crate::lanes;
use crate::time::Instant;
use alloc::collections::BTreeMap;
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
    /// Whether anything was.
    #[must_use]
    pub const fn any(self) -> bool {
        self.norm || self.weight || self.reward
    }

    /// The first of them, as logs name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self { norm: true, .. } => "norm",
            Self { weight: true, .. } => "weight",
            _ => "reward",
        }
    }
}

/// The parts of an update that are measured.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Whose vote it is.
    pub voter: Voter,
    /// The segment.
    pub segment: u32,
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
    norms: BTreeMap<u32, Recent>,
    weights: Recent,
    rewards: Recent,
    scaled: Vec<u8>,
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
        let mut clipped = Clipped::default();
        let mut effect = 1.0;
        let mut factor = 1.0;
        if limits.clip_weight != Clip::Off {
            let own = of.weight / f64::from(of.contributors);
            let limit = || self.weights.limit(limits.clip_weight, of.voter);
            let unusual = !self.weights.is_usual(limits.clip_weight, of.voter, own);
            if let Some(limit) = unusual.then(limit).flatten().filter(|limit| own > *limit) {
                factor = limit / own;
                of.weight = limit * f64::from(of.contributors);
                clipped.weight = true;
            }
            self.weights.note(now, of.voter, of.weight / f64::from(of.contributors));
        }
        if limits.clip_norm != Clip::Off {
            let length = lanes::length(lanes) * factor;
            let norms = self.norms.entry(of.segment).or_default();
            let mean = length / of.weight;
            let mut over = None;
            if !norms.is_usual(limits.clip_norm, of.voter, mean) {
                let limit = norms.limit(limits.clip_norm, of.voter);
                let limit = match (limit, limits.clip_norm) {
                    (None, Clip::Median(multiple)) => unknown(multiple),
                    (limit, _) => limit,
                };
                over = limit.filter(|limit| length.is_finite() && length > limit * of.weight);
            }
            if let Some(limit) = over {
                factor *= limit * of.weight / length;
                clipped.norm = true;
            }
            if matches!(limits.clip_norm, Clip::Median(_))
                && let Some(median) = norms.median_of_longer(of.voter, mean * SMALL)
            {
                effect = mean * SMALL / median;
            }
            norms.note(now, of.voter, over.unwrap_or(mean));
        }
        // A receiver refuses a reward that is no number; it is no vote for the usual reward.
        let is_number = of.reward.is_finite();
        let usual = self.rewards.is_usual_reward(limits.clip_reward, of.voter, of.reward);
        if is_number
            && !usual
            && let Some((least, most)) = self.rewards.range(limits.clip_reward, of.voter)
        {
            let reward = of.reward.clamp(least, most);
            clipped.reward = reward != of.reward;
            of.reward = reward;
        }
        if is_number && limits.clip_reward != Clip::Off {
            self.rewards.note_any(now, of.voter, of.reward);
        }
        if factor >= 1.0 {
            return Kept { lanes, clipped, effect };
        }
        self.scaled.clear();
        self.scaled.extend(lanes.as_chunks::<LANE>().0.iter().flat_map(|lane| {
            let lane = f64::from(f32::from_le_bytes(*lane)) * factor;
            (lane as f32).to_le_bytes()
        }));
        Kept { lanes: &self.scaled, clipped, effect }
    }
}
