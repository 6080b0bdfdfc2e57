//! How an update changes the model.

use alloc::vec::Vec;
use olaf_engine::keys::{ConfigError, named};
pub use olaf_wire::{RuleKind, ServerGate, Step};
use serde::{Deserialize, Serialize};

/// The set-up of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct RuleConfig {
    /// Which rule. `delta`, which learns.
    #[serde(rename = "rule", with = "named")]
    pub kind: RuleKind,
    /// Gamma of OLAF §2.1, above 0. differs: 1 by default, where the paper has 0.001: a push then
    /// moves the model by what it says. Workers that divide by 0.001 first come to the same.
    pub learning_rate: f64,
    /// How far a merge moves the model. `overlap`, which counts what it overshoots by.
    #[serde(with = "named")]
    pub step: Step,
    /// The gate, for [`RuleKind::Delta`]. `none` applies every update.
    #[serde(with = "named")]
    pub gate: ServerGate,
    /// How far below the gate's reference a reward may be, in units of reward, at least 0.
    pub gate_margin: f64,
    /// An update computed on a model `b` versions old counts `(1 + b)^-power`; 0 counts all alike.
    /// [`Step::Overlap`] counts the updates that overlap in place of versions. 0.7 is measured for
    /// updates of whole turns (docs/training.md): those that did not know of each other overshoot
    /// together.
    pub staleness_power: f64,
}

impl Default for RuleConfig {
    fn default() -> Self {
        Self {
            kind: RuleKind::Delta,
            learning_rate: 1.0,
            step: Step::Overlap,
            gate: ServerGate::None,
            gate_margin: 0.0,
            staleness_power: 0.7,
        }
    }
}

impl RuleConfig {
    /// The same, when it can be.
    ///
    /// # Errors
    /// The first key that cannot.
    pub fn check(self) -> Result<Self, ConfigError> {
        if !(self.learning_rate.is_finite() && self.learning_rate > 0.0) {
            return Err(ConfigError { key: "learning_rate", allowed: "must be a number above 0" });
        }
        if !(self.gate_margin.is_finite() && self.gate_margin >= 0.0) {
            return Err(ConfigError {
                key: "gate_margin",
                allowed: "must be a number of at least 0",
            });
        }
        if !(self.staleness_power.is_finite() && self.staleness_power >= 0.0) {
            let allowed = "must be a number of at least 0";
            return Err(ConfigError { key: "staleness_power", allowed });
        }
        Ok(self)
    }
}

/// One update as the rule sees it.
#[derive(Clone, Copy, Debug)]
pub struct Delivered<'a> {
    /// Sum of the contributions' lanes, little-endian `f32`, as many as the weights.
    pub sum: &'a [u8],
    /// Sum of the contributions' weights.
    pub weight: f64,
    /// Their mean reward.
    pub reward: f64,
    /// A reward was larger than is usual, and was clipped: no later one is measured by it.
    pub reward_is_clipped: bool,
    /// Versions since the model they were computed on.
    pub versions_behind: u32,
    /// How many contributions the sum is of, at least 1.
    pub contributors: u32,
    /// Contributions that overlap these: of the other workers, or those that changed the model since
    /// the one that these were computed on, whichever is more.
    pub overlapped: f64,
}

/// What became of a delivered update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// The model moved.
    Yes,
    /// The gate kept it out.
    Gated,
    /// The update, or the model with it, is not finite: nothing moved.
    NonFinite,
}

/// What a rule remembers of one segment.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleState {
    /// The best reward accepted; minus infinity before the first.
    pub best: f64,
    /// The recent mean of rewards; none before the first.
    pub recent: Option<f64>,
    /// `g_a` of OLAF §2.1; empty before the first update, and for other rules.
    pub average: Vec<f32>,
}

/// A rule and what it remembers of one segment: each segment of a model is a problem of its own,
/// so that one may be applied whatever became of the others.
#[derive(Clone, Debug)]
pub struct Rule {
    config: RuleConfig,
    best: f64,
    recent: Option<f64>,
    /// `g_a` of OLAF §2.1.
    average: Vec<f32>,
}

impl Rule {
    /// A rule that has seen nothing.
    #[must_use]
    pub const fn new(config: RuleConfig) -> Self {
        Self { config, best: f64::NEG_INFINITY, recent: None, average: Vec::new() }
    }

    /// A rule that goes on where another left.
    pub(super) fn remembering(config: RuleConfig, state: RuleState) -> Self {
        let RuleState { best, recent, average } = state;
        Self { config, best, recent, average }
    }

    pub(super) fn state(&self) -> RuleState {
        RuleState { best: self.best, recent: self.recent, average: self.average.clone() }
    }

    /// Changes `weights` by one update, or leaves them as they are. What is not finite, or would
    /// make the model so, leaves no trace in what the rule remembers either.
    ///
    /// The mean is taken here, once: `sum / weight`.
    ///
    /// # Panics
    /// When the sum has not four bytes for each weight.
    pub fn apply(&mut self, weights: &mut Vec<f32>, update: &Delivered<'_>) -> Applied {
        assert_eq!(update.sum.len(), weights.len() * 4, "the server compares the shapes first");
        let numbers = update.reward.is_finite() && update.weight.is_finite();
        if !numbers || !olaf_engine::lanes::all_finite(update.sum) {
            return Applied::NonFinite;
        }
        let applied = if !self.admits(update.reward) {
            Applied::Gated
        } else {
            match self.config.kind {
                RuleKind::Delta => self.delta(weights, update),
                RuleKind::PaperLiteral => self.paper_literal(weights, update),
            }
        };
        if !update.reward_is_clipped {
            self.remember(update.reward, applied);
        }
        applied
    }

    fn admits(&self, reward: f64) -> bool {
        let margin = self.config.gate_margin;
        match (self.config.kind, self.config.gate) {
            (RuleKind::PaperLiteral, _) => reward > self.best,
            (RuleKind::Delta, ServerGate::None) => true,
            (RuleKind::Delta, ServerGate::Best) => reward >= self.best - margin,
            (RuleKind::Delta, ServerGate::Recent) => {
                self.recent.is_none_or(|recent| reward >= recent - margin)
            }
        }
    }

    fn remember(&mut self, reward: f64, applied: Applied) {
        if applied == Applied::NonFinite {
            return;
        }
        self.recent = Some(self.recent.map_or(reward, |recent| recent * 0.9 + reward * 0.1));
        if applied == Applied::Yes {
            self.best = self.best.max(reward);
        }
    }

    fn delta(&self, weights: &mut Vec<f32>, update: &Delivered<'_>) -> Applied {
        let exponent = -self.config.staleness_power;
        let stale = || power(1.0 + f64::from(update.versions_behind), exponent);
        let factor = match self.config.step {
            Step::Mean => stale() / update.weight,
            Step::Sum => stale(),
            // differs: the paper applies the mean of a merge as one update. The n contributions of a
            // merge are n steps that did not know of each other, like n updates that came one by
            // one; so they count alike, however the queue merged them.
            Step::Overlap => {
                let n = f64::from(update.contributors);
                n * power(n + update.overlapped, exponent) / update.weight
            }
        };
        let factor = (self.config.learning_rate * factor) as f32;
        moved(weights, lanes(update.sum).map(|g| factor * g))
    }

    fn paper_literal(&mut self, weights: &mut Vec<f32>, update: &Delivered<'_>) -> Applied {
        let scale = (1.0 / update.weight) as f32;
        let means = lanes(update.sum).map(|g| g * scale);
        let average: Vec<f32> = if self.average.is_empty() {
            means.collect()
        } else {
            self.average.iter().zip(means).map(|(average, g)| (average + g) / 2.0).collect()
        };
        let rate = self.config.learning_rate as f32;
        let applied = moved(weights, average.iter().map(|g| rate * g));
        if applied == Applied::Yes {
            self.average = average;
        }
        applied
    }
}

/// Moves all weights, or none when one of them would not be finite.
fn moved(weights: &mut Vec<f32>, steps: impl Iterator<Item = f32>) -> Applied {
    let moved: Vec<f32> = weights.iter().zip(steps).map(|(w, step)| w + step).collect();
    if moved.iter().all(|w| w.is_finite()) {
        *weights = moved;
        Applied::Yes
    } else {
        Applied::NonFinite
    }
}

fn lanes(bytes: &[u8]) -> impl Iterator<Item = f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

/// `base` to `exponent`, for a base of at least 1: core has no `powf`.
fn power(base: f64, exponent: f64) -> f64 {
    if exponent == 0.0 { 1.0 } else { libm::pow(base, exponent) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(lanes: &[f32]) -> Vec<u8> {
        lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect()
    }

    fn delivered(sum: &[u8], weight: f64, reward: f64) -> Delivered<'_> {
        Delivered {
            sum,
            weight,
            reward,
            reward_is_clipped: false,
            versions_behind: 0,
            contributors: 1,
            overlapped: 0.0,
        }
    }

    fn config() -> RuleConfig {
        RuleConfig { learning_rate: 0.5, ..RuleConfig::default() }
    }

    #[test]
    fn delta_moves_by_the_mean_or_by_the_sum() {
        let sum = bytes(&[4.0, -8.0]);
        let mut weights = alloc::vec![1.0, 1.0];
        let mut rule = Rule::new(RuleConfig { step: Step::Mean, ..config() });
        assert_eq!(rule.apply(&mut weights, &delivered(&sum, 2.0, 0.0)), Applied::Yes);
        assert_eq!(weights, [2.0, -1.0]);
        let mut rule = Rule::new(RuleConfig { step: Step::Sum, ..config() });
        rule.apply(&mut weights, &delivered(&sum, 2.0, 0.0));
        assert_eq!(weights, [4.0, -5.0]);
    }

    #[test]
    fn staleness_weighs_an_update_less() {
        let stale = RuleConfig { staleness_power: 1.0, ..config() };
        let sum = bytes(&[8.0]);
        let late = Delivered { versions_behind: 3, overlapped: 7.0, ..delivered(&sum, 1.0, 0.0) };
        for (step, moved) in [(Step::Mean, 1.0), (Step::Sum, 1.0), (Step::Overlap, 0.5)] {
            let mut weights = alloc::vec![0.0];
            Rule::new(RuleConfig { step, ..stale }).apply(&mut weights, &late);
            assert_eq!(weights, [moved], "{step:?}");
        }
    }

    #[test]
    fn with_overlap_it_does_not_matter_whether_the_queue_merged() {
        // Four updates of 1 that do not know of each other, three more before them.
        let rule = RuleConfig { staleness_power: 0.7, ..config() };
        let (one, four) = (bytes(&[1.0]), bytes(&[4.0]));
        let mut merged = alloc::vec![0.0];
        let all = Delivered { contributors: 4, overlapped: 3.0, ..delivered(&four, 4.0, 0.0) };
        Rule::new(rule).apply(&mut merged, &all);
        let mut alone = alloc::vec![0.0];
        let last = Delivered { overlapped: 6.0, ..delivered(&one, 1.0, 0.0) };
        Rule::new(rule).apply(&mut alone, &last);
        assert!((merged[0] - 4.0 * alone[0]).abs() < 1e-6, "{merged:?} {alone:?}");
        assert!((alone[0] - 0.5 * 7f32.powf(-0.7)).abs() < 1e-6);
    }

    #[test]
    fn the_paper_s_rule_takes_only_a_better_reward_and_averages() {
        let mut rule = Rule::new(RuleConfig { kind: RuleKind::PaperLiteral, ..config() });
        let mut weights = alloc::vec![0.0];
        assert_eq!(rule.apply(&mut weights, &delivered(&bytes(&[4.0]), 1.0, 10.0)), Applied::Yes);
        assert_eq!(weights, [2.0]);
        assert_eq!(rule.apply(&mut weights, &delivered(&bytes(&[4.0]), 1.0, 10.0)), Applied::Gated);
        assert_eq!(weights, [2.0]);
        // g_a = (4 + 8) / 2.
        assert_eq!(rule.apply(&mut weights, &delivered(&bytes(&[8.0]), 1.0, 11.0)), Applied::Yes);
        assert_eq!(weights, [5.0]);
    }

    #[test]
    fn gates_compare_with_the_best_or_the_recent_reward() {
        let sum = bytes(&[0.0]);
        let verdicts = |gate, rewards: &[f64]| -> Vec<Applied> {
            let mut rule = Rule::new(RuleConfig { gate, gate_margin: 1.0, ..config() });
            let mut weights = alloc::vec![0.0];
            rewards.iter().map(|r| rule.apply(&mut weights, &delivered(&sum, 1.0, *r))).collect()
        };
        use Applied::{Gated, Yes};
        assert_eq!(verdicts(ServerGate::Best, &[0.0, 10.0, 9.0, 8.9]), [Yes, Yes, Yes, Gated]);
        assert_eq!(verdicts(ServerGate::Recent, &[0.0, 10.0, 0.0, -0.2]), [Yes, Yes, Yes, Gated]);
        assert_eq!(verdicts(ServerGate::None, &[0.0, -1e9]), [Yes, Yes]);
    }

    #[test]
    fn what_is_not_finite_moves_nothing() {
        let mut weights = alloc::vec![f32::MAX];
        let mut rule = Rule::new(config());
        assert_eq!(
            rule.apply(&mut weights, &delivered(&bytes(&[f32::NAN]), 1.0, 0.0)),
            Applied::NonFinite
        );
        assert_eq!(
            rule.apply(&mut weights, &delivered(&bytes(&[f32::MAX]), 1.0, 0.0)),
            Applied::NonFinite
        );
        assert_eq!(weights, [f32::MAX]);
    }

    #[test]
    fn what_is_refused_leaves_no_trace_that_keeps_out_what_comes_later() {
        let (step, huge) = (bytes(&[1.0]), bytes(&[f32::MAX]));
        let literal = RuleConfig { kind: RuleKind::PaperLiteral, ..config() };
        let gated = |gate| RuleConfig { gate, ..config() };
        for config in [literal, gated(ServerGate::Best), gated(ServerGate::Recent)] {
            let mut rule = Rule::new(config);
            let mut weights = alloc::vec![0.0];
            for bad in [
                delivered(&step, 1.0, f64::INFINITY),
                delivered(&step, 1.0, f64::NAN),
                delivered(&step, f64::INFINITY, 1e300),
                // Its mean, and the model with it, would be infinite.
                delivered(&huge, 1e-9, 1e300),
            ] {
                assert_eq!(rule.apply(&mut weights, &bad), Applied::NonFinite, "{bad:?}");
                assert_eq!(weights, [0.0]);
            }
            let good = delivered(&step, 1.0, 5.0);
            assert_eq!(rule.apply(&mut weights, &good), Applied::Yes, "{config:?}");
        }
    }
}
