//! How far one contribution may move a model: limits on its norm, its weight and its reward.
//!
//! A limit is a number, or a multiple of what the other workers sent lately. The median counts,
//! with one vote for each worker, so that one worker cannot move the limit, however much it sends.
//!
//! | quantity | measured | above the limit |
//! |---|---|---|
//! | norm | length of the mean gradient: of the sum, divided by the weight | the sum is scaled down |
//! | weight | weight of one contribution | weight and sum are scaled down |
//! | reward | distance from the median, in units of the spread | the reward moves to the limit |

use crate::ids::WorkerId;
use crate::keys::ConfigError;
use crate::lanes;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use olaf_wire::offsets::LANE;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A mean gradient shorter than the median by this factor counts as a part of a step, in proportion to its
/// length. The norms of honest updates differ less from their median.
const SMALL: f64 = 4.0;
/// Workers whose newest value is remembered.
const VOTES: usize = 15;

/// A limit. Configurations write `off` as nothing, a number, or a multiple as a text: `"100x"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Clip {
    /// No limit.
    Off,
    /// This value.
    At(f64),
    /// This multiple of the recent median of the other workers.
    Median(f64),
}

impl Clip {
    fn is_possible(self) -> bool {
        match self {
            Self::Off => true,
            Self::At(limit) | Self::Median(limit) => limit > 0.0 && limit.is_finite(),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if text == "off" {
            return Some(Self::Off);
        }
        let clip = match text.strip_suffix('x') {
            Some(multiple) => Self::Median(multiple.trim().parse().ok()?),
            None => Self::At(text.parse().ok()?),
        };
        clip.is_possible().then_some(clip)
    }
}

impl Serialize for Clip {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => to.serialize_none(),
            Self::At(limit) => to.serialize_f64(*limit),
            Self::Median(multiple) => to.serialize_str(&format!("{multiple}x")),
        }
    }
}

impl<'de> Deserialize<'de> for Clip {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ClipVisitor)
    }
}

struct ClipVisitor;

impl Visitor<'_> for ClipVisitor {
    type Value = Clip;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("off, a number above 0, or a multiple such as \"100x\"")
    }

    fn visit_unit<E>(self) -> Result<Clip, E> {
        Ok(Clip::Off)
    }

    fn visit_none<E>(self) -> Result<Clip, E> {
        Ok(Clip::Off)
    }

    fn visit_u64<E: de::Error>(self, limit: u64) -> Result<Clip, E> {
        self.visit_f64(limit as f64)
    }

    fn visit_i64<E: de::Error>(self, limit: i64) -> Result<Clip, E> {
        self.visit_f64(limit as f64)
    }

    fn visit_f64<E: de::Error>(self, limit: f64) -> Result<Clip, E> {
        let clip = Clip::At(limit);
        clip.is_possible()
            .then_some(clip)
            .ok_or_else(|| E::invalid_value(de::Unexpected::Float(limit), &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Clip, E> {
        Clip::parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

/// The limits of a party, a flat part of its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Limits {
    /// Of the norm of a mean gradient, segment by segment.
    pub clip_norm: Clip,
    /// Of the weight of one contribution.
    pub clip_weight: Clip,
    /// Of a reward: its magnitude, or its distance from the median in units of the spread.
    pub clip_reward: Clip,
    /// Of a worker's updates in a second. More are refused.
    pub max_rate: Clip,
}

impl Default for Limits {
    /// 100 times what is usual: honest training does not come near, and nothing destroys a model.
    fn default() -> Self {
        let usual = Clip::Median(100.0);
        // Honest workers differ ten times in speed, and somewhat from second to second.
        let max_rate = Clip::Median(20.0);
        Self { clip_norm: usual, clip_weight: usual, clip_reward: usual, max_rate }
    }
}

impl Limits {
    /// No limits.
    pub const OFF: Self = Self {
        clip_norm: Clip::Off,
        clip_weight: Clip::Off,
        clip_reward: Clip::Off,
        max_rate: Clip::Off,
    };

    /// Refuses a limit that is none.
    ///
    /// # Errors
    /// The key.
    pub fn check(&self) -> Result<(), ConfigError> {
        let limits = [
            ("clip_norm", self.clip_norm),
            ("clip_weight", self.clip_weight),
            ("clip_reward", self.clip_reward),
            ("max_rate", self.max_rate),
        ];
        let bad = limits.into_iter().find(|(_, clip)| !clip.is_possible());
        let allowed = "must be off, a number above 0, or a multiple such as \"100x\"";
        bad.map_or(Ok(()), |(key, _)| Err(ConfigError { key, allowed }))
    }
}

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
    /// The worker that it names.
    pub worker: WorkerId,
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
            let limit = || self.weights.limit(limits.clip_weight, of.worker);
            let unusual = !self.weights.is_usual(limits.clip_weight, of.worker, own);
            if let Some(limit) = unusual.then(limit).flatten().filter(|limit| own > *limit) {
                factor = limit / own;
                of.weight = limit * f64::from(of.contributors);
                clipped.weight = true;
            }
            self.weights.note(of.worker, of.weight / f64::from(of.contributors));
        }
        if limits.clip_norm != Clip::Off {
            let length = lanes::length(lanes) * factor;
            let norms = self.norms.entry(of.segment).or_default();
            let mean = length / of.weight;
            let mut over = None;
            if !norms.is_usual(limits.clip_norm, of.worker, mean) {
                let limit = norms.limit(limits.clip_norm, of.worker);
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
                && let Some(median) = norms.median_of_longer(of.worker, mean * SMALL)
            {
                effect = mean * SMALL / median;
            }
            norms.note(of.worker, over.unwrap_or(mean));
        }
        // A receiver refuses a reward that is no number; it is no vote for the usual reward.
        let is_number = of.reward.is_finite();
        let usual = self.rewards.is_usual_reward(limits.clip_reward, of.worker, of.reward);
        if is_number
            && !usual
            && let Some((least, most)) = self.rewards.range(limits.clip_reward, of.worker)
        {
            let reward = of.reward.clamp(least, most);
            clipped.reward = reward != of.reward;
            of.reward = reward;
        }
        if is_number && limits.clip_reward != Clip::Off {
            self.rewards.note_any(of.worker, of.reward);
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

/// The newest value of each of the last workers.
#[derive(Debug, Default)]
pub(super) struct Recent(VecDeque<(WorkerId, f64)>);

impl Recent {
    /// Notes a value that says what is usual. Zero says nothing: a flood of zeros must not make
    /// everything else too large.
    pub(super) fn note(&mut self, worker: WorkerId, value: f64) {
        if value > 0.0 && value.is_finite() {
            self.note_any(worker, value);
        }
    }

    fn note_any(&mut self, worker: WorkerId, value: f64) {
        if let Some(own) = self.0.iter_mut().find(|(known, _)| *known == worker) {
            own.1 = value;
            return;
        }
        if self.0.len() == VOTES {
            self.0.pop_front();
        }
        self.0.push_back((worker, value));
    }

    /// The values of the others, as many as `out` says.
    fn others(&self, worker: WorkerId) -> ([f64; VOTES], usize) {
        let (mut values, mut count) = ([0.0; VOTES], 0);
        for (_, value) in self.0.iter().filter(|(known, _)| *known != worker) {
            values[count] = *value;
            count += 1;
        }
        (values, count)
    }

    /// The median of the others' values; none while no other has sent anything.
    pub(super) fn median(&self, worker: WorkerId) -> Option<f64> {
        let (mut values, count) = self.others(worker);
        median(&mut values[..count])
    }

    /// The median, where it is larger than the value.
    fn median_of_longer(&self, worker: WorkerId, value: f64) -> Option<f64> {
        // Most values are not below the largest of the others, and need no median.
        let is_short = self.extremes(worker).is_some_and(|(_, most)| value < most);
        is_short.then(|| self.median(worker)).flatten().filter(|median| value < *median)
    }

    /// The least and the largest value of the others.
    fn extremes(&self, worker: WorkerId) -> Option<(f64, f64)> {
        let others = self.0.iter().filter(|(known, _)| *known != worker);
        let extremes = others
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), (_, value)| {
                (least.min(*value), most.max(*value))
            });
        (extremes.0 <= extremes.1).then_some(extremes)
    }

    /// Whether the value is surely not above the limit. The median is not below the least value, so that
    /// most updates need no median: it costs more than their arithmetic.
    fn is_usual(&self, clip: Clip, worker: WorkerId, value: f64) -> bool {
        let (Clip::Median(multiple), Some((least, _))) = (clip, self.extremes(worker)) else {
            return false;
        };
        value <= least * multiple
    }

    /// Whether the reward surely lies in the [range](Self::range): its spread is at least 1.
    fn is_usual_reward(&self, clip: Clip, worker: WorkerId, reward: f64) -> bool {
        let (Clip::Median(multiple), Some((least, most))) = (clip, self.extremes(worker)) else {
            return false;
        };
        most - multiple <= reward && reward <= least + multiple
    }

    fn limit(&self, clip: Clip, worker: WorkerId) -> Option<f64> {
        match clip {
            Clip::Off => None,
            Clip::At(limit) => Some(limit),
            Clip::Median(multiple) => {
                let (mut values, count) = self.others(worker);
                let limit = median(&mut values[..count])? * multiple;
                // One other is no majority: it may be the liar. What was taken before is not too much.
                let own = self.0.iter().find(|(known, _)| *known == worker && count == 1);
                Some(own.map_or(limit, |(_, own)| limit.max(*own)))
            }
        }
    }

    /// The least and the largest reward. The spread is at least the median's magnitude, and at least
    /// 1: rewards that are all alike have no spread of their own.
    fn range(&self, clip: Clip, worker: WorkerId) -> Option<(f64, f64)> {
        match clip {
            Clip::Off => None,
            Clip::At(limit) => Some((-limit, limit)),
            Clip::Median(multiple) => {
                let (mut values, count) = self.others(worker);
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

/// As configurations and messages write it.
impl fmt::Display for Clip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = match self {
            Self::Off => "off".into(),
            Self::At(limit) => format!("{limit}"),
            Self::Median(multiple) => format!("{multiple}x"),
        };
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(lanes: &[f32]) -> Vec<u8> {
        lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect()
    }

    fn of(worker: u32, weight: f64, reward: f64) -> Measured {
        Measured { worker: WorkerId(worker), segment: 0, contributors: 1, weight, reward }
    }

    fn only(clip_norm: Clip) -> Limits {
        Limits { clip_norm, ..Limits::OFF }
    }

    /// Clips, and returns lanes as numbers.
    fn clip(
        clipping: &mut Clipping,
        limits: &Limits,
        mut of: Measured,
        lanes: &[f32],
    ) -> (Vec<f32>, Measured, Clipped) {
        let lanes = bytes(lanes);
        let Kept { lanes, clipped, .. } = clipping.clip(limits, &mut of, &lanes, |_| None);
        let lanes = lanes.as_chunks::<4>().0.iter().map(|lane| f32::from_le_bytes(*lane)).collect();
        (lanes, of, clipped)
    }

    #[test]
    fn a_norm_is_scaled_to_the_limit_and_keeps_its_direction() {
        let mut clipping = Clipping::default();
        let (lanes, _, clipped) =
            clip(&mut clipping, &only(Clip::At(5.0)), of(1, 2.0, 0.0), &[30.0, 40.0]);
        assert_eq!(
            (lanes, clipped.norm),
            (alloc::vec![6.0, 8.0], true),
            "5 for each unit of weight"
        );
        let (lanes, _, clipped) =
            clip(&mut clipping, &only(Clip::At(5.0)), of(1, 2.0, 0.0), &[6.0, 8.0]);
        assert_eq!((lanes, clipped.any()), (alloc::vec![6.0, 8.0], false));
    }

    #[test]
    fn the_median_is_of_the_others_with_a_vote_each() {
        let limits = only(Clip::Median(10.0));
        let mut clipping = Clipping::default();
        // The first to come has nobody to be compared with.
        assert!(!clip(&mut clipping, &limits, of(1, 1.0, 0.0), &[1e30]).2.any());
        for worker in 2..5 {
            assert!(!clip(&mut clipping, &limits, of(worker, 1.0, 0.0), &[2.0]).2.any());
        }
        for _ in 0..100 {
            let (lanes, _, clipped) = clip(&mut clipping, &limits, of(1, 1.0, 0.0), &[1e30]);
            assert!(clipped.norm && (lanes[0] - 20.0).abs() < 1e-3, "{lanes:?}");
        }
        // Its many votes are one: the limit of the others is what it was.
        let (lanes, ..) = clip(&mut clipping, &limits, of(2, 1.0, 0.0), &[1e30]);
        assert!((lanes[0] - 20.0).abs() < 1e-3, "{lanes:?}");
    }

    #[test]
    fn what_is_far_smaller_than_usual_counts_less() {
        let limits = only(Clip::Median(10.0));
        let mut clipping = Clipping::default();
        let mut effect = |worker, lane: f32| {
            let lanes = bytes(&[lane]);
            clipping.clip(&limits, &mut of(worker, 1.0, 0.0), &lanes, |_| None).effect
        };
        assert_eq!(effect(1, 2.0), 1.0);
        let effects = [2.0, 0.5, 0.25, 0.02, 0.0].map(|lane| effect(2, lane));
        assert!((effects[3] - 0.04).abs() < 1e-6, "{effects:?}");
        assert_eq!([effects[0], effects[1], effects[2], effects[4]], [1.0, 1.0, 0.5, 0.0]);
    }

    #[test]
    fn one_tiny_value_does_not_make_the_values_of_others_too_large() {
        let limits = Limits { clip_weight: Clip::Median(10.0), ..Limits::OFF };
        for honest in [1, 2] {
            let mut clipping = Clipping::default();
            for worker in 0..honest {
                assert!(!clip(&mut clipping, &limits, of(worker, 1.0, 0.0), &[1.0]).2.any());
            }
            clip(&mut clipping, &limits, of(9, 1e-300, 0.0), &[1.0]);
            for worker in 0..honest {
                assert!(!clip(&mut clipping, &limits, of(worker, 1.0, 0.0), &[1.0]).2.any());
            }
        }
    }

    #[test]
    fn a_mean_that_is_infinite_is_clipped() {
        let mut clipping = Clipping::default();
        let (lanes, _, clipped) =
            clip(&mut clipping, &only(Clip::At(5.0)), of(1, 1e-300, 0.0), &[1e30]);
        assert_eq!((lanes, clipped.norm), (alloc::vec![0.0], true));
    }

    #[test]
    fn a_flood_of_zeros_makes_nothing_too_large() {
        let limits = only(Clip::Median(10.0));
        let mut clipping = Clipping::default();
        for worker in 1..9 {
            clip(&mut clipping, &limits, of(worker, 1.0, 0.0), &[0.0]);
        }
        assert!(!clip(&mut clipping, &limits, of(9, 1.0, 0.0), &[3.0]).2.any());
    }

    #[test]
    fn a_weight_takes_its_sum_along_and_a_reward_stays_near_the_others() {
        let limits = Limits { clip_norm: Clip::Off, ..Limits::default() };
        let mut clipping = Clipping::default();
        for worker in 1..4 {
            clip(&mut clipping, &limits, of(worker, 2.0, -5.0), &[2.0]);
        }
        let (lanes, measured, clipped) = clip(&mut clipping, &limits, of(4, 1e300, 1e30), &[1e3]);
        assert_eq!((measured.weight, measured.reward), (200.0, 495.0));
        assert_eq!((lanes[0], clipped), (0.0, Clipped { weight: true, reward: true, norm: false }));
    }

    proptest! {
        /// A value that is usual by the extremes is one that the medians leave as it is.
        #[test]
        fn the_short_way_says_nothing_else_than_the_medians(
            values in prop::collection::vec((0u32..20, -300.0f64..300.0), 0..30),
            value in -300.0f64..300.0,
            multiple in 0.1f64..20.0,
        ) {
            let (mut sizes, mut rewards) = (Recent::default(), Recent::default());
            for (worker, value) in values {
                sizes.note(WorkerId(worker), value.abs());
                rewards.note_any(WorkerId(worker), value);
            }
            let (clip, own) = (Clip::Median(multiple), WorkerId(0));
            if sizes.is_usual(clip, own, value.abs()) {
                let limit = sizes.limit(clip, own).expect("others");
                prop_assert!(value.abs() <= limit);
            }
            if rewards.is_usual_reward(clip, own, value) {
                let (least, most) = rewards.range(clip, own).expect("others");
                prop_assert!(least - 1e-9 <= value && value <= most + 1e-9);
            }
        }
    }

    #[test]
    fn a_limit_is_written_as_it_is_read() {
        let read = |text: &str| serde_json::from_str::<Clip>(text).ok();
        let cases = [
            ("null", Some(Clip::Off)),
            ("\"off\"", Some(Clip::Off)),
            ("3", Some(Clip::At(3.0))),
            ("0.5", Some(Clip::At(0.5))),
            ("\"100x\"", Some(Clip::Median(100.0))),
            ("\"2.5\"", Some(Clip::At(2.5))),
            ("0", None),
            ("-1", None),
            ("\"-2x\"", None),
            ("\"NaNx\"", None),
            ("\"x\"", None),
        ];
        for (text, clip) in cases {
            assert_eq!(read(text), clip, "{text}");
            if let Some(clip) = clip {
                assert_eq!(read(&serde_json::to_string(&clip).expect("plain")), Some(clip));
            }
        }
        let bad = Limits { clip_weight: Clip::At(f64::NAN), ..Limits::OFF };
        assert_eq!(bad.check().expect_err("not a number").key, "clip_weight");
    }
}
