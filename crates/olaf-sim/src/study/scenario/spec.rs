//! What a scenario is: data, checked once.

use crate::chance::Chance;
use core::ops::Range;
use core::time::Duration;
use olaf_engine::BitsPerSecond;
use olaf_engine::switch::native::{Config, QueueKind};
use olaf_host::transmission::{Fair, Transmission, TransmissionConfig, Words};
use serde::Deserialize;
use std::fmt;

/// A tree of queues, and the workers that send into it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Fixes phases, lateness and the senders' draws.
    pub seed: u64,
    /// How long workers send and ages are observed.
    pub duration_ns: u64,
    /// An update on the wire keeps its slot (hardware, OLAF §12.1), or leaves it as its first bit
    /// does (ns-3).
    #[serde(default = "yes")]
    pub head_keeps_slot: bool,
    /// The switches, each named before those whose uplink leads to it are not: any order.
    pub switches: Vec<SwitchSpec>,
    /// Groups of clusters of equal workers.
    pub groups: Vec<GroupSpec>,
    /// The reverse path.
    #[serde(default)]
    pub answers: AnswerSpec,
    /// The senders' control.
    #[serde(default)]
    pub control: ControlSpec,
}

fn yes() -> bool {
    true
}

/// A switch: a queue before a link.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchSpec {
    /// Its name, unique.
    pub name: String,
    /// `olaf`, `fifo` or another discipline's name.
    pub queue: String,
    /// Updates it holds.
    pub slots: usize,
    /// The reward gate's threshold.
    #[serde(default)]
    pub gate: Option<f64>,
    /// Rate of its uplink, bits per second.
    pub rate_bps: u64,
    /// The switch its uplink leads to; none: the server.
    #[serde(default)]
    pub upstream: Option<String>,
    /// From the uplink's last bit out to its last bit in.
    #[serde(default)]
    pub delay_ns: u64,
}

/// Clusters that are alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSpec {
    /// Its name, unique.
    pub name: String,
    /// The switch its workers send to.
    pub switch: String,
    /// Clusters in it.
    pub clusters: usize,
    /// Workers in each cluster.
    pub workers: usize,
    /// Time between two updates of a worker.
    pub interval_ns: u64,
    /// Longest delay of an update, drawn for each.
    #[serde(default)]
    pub late_ns: u64,
    /// Workers start at once, instead of at a time drawn within the first interval.
    #[serde(default)]
    pub in_step: bool,
    /// An update's bytes on the link.
    pub packet_bytes: u32,
}

/// The reverse path.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AnswerSpec {
    /// From the server to the workers.
    pub delay_ns: u64,
    /// `shared`: the contributors of the update; `cluster`: its whole cluster.
    pub to: String,
    /// A cluster heard within this time is active.
    pub active_ns: u64,
}

impl Default for AnswerSpec {
    fn default() -> Self {
        let switch = Config::default();
        Self { delay_ns: 1_000_000, to: "shared".into(), active_ns: ns(switch.active) }
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).expect("a default is far below 500 years")
}

/// The senders' control.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ControlSpec {
    /// `off`, `paper` or `fair`.
    pub kind: String,
    /// Of the paper's control: older feedback is obsolete.
    pub threshold_ns: u64,
    /// Of the paper's control: `urgency`, `fairness`, or a number per second.
    pub slope: String,
    /// `carry`, `discard` or `retry`.
    pub unsent: String,
    /// With `retry`: how long an unsent update waits.
    pub retry_ns: u64,
    /// Of the fair control: see [`Fair`].
    pub rounds: f64,
    /// Of the fair control: see [`Fair`].
    pub yields: f64,
}

impl Default for ControlSpec {
    fn default() -> Self {
        let Words { control, threshold, slope, unsent, retry, fair } = Words::default();
        Self {
            kind: control,
            threshold_ns: ns(threshold),
            slope,
            unsent,
            retry_ns: ns(retry),
            rounds: fair.rounds,
            yields: fair.yields,
        }
    }
}

/// Where a cluster is.
#[derive(Clone, Debug)]
pub(super) struct ClusterPlace {
    pub(super) group: usize,
    /// The switch that its workers send to.
    pub(super) switch: usize,
    /// Its workers, counted through all groups.
    pub(super) workers: Range<u32>,
}

/// What cannot be, where, and what may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError(pub String);

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SpecError {}

/// Most workers, switches and planned updates of one scenario: what fits a machine.
const MOST: usize = 50_000_000;

impl Scenario {
    /// The switch of that name.
    ///
    /// # Errors
    /// `by` is the place that names it, for the error.
    pub(super) fn switch(&self, name: &str, by: &str) -> Result<usize, SpecError> {
        self.switches
            .iter()
            .position(|s| s.name == name)
            .ok_or_else(|| SpecError(format!("{by} names switch {name:?}, which does not exist")))
    }

    /// Where each switch's uplink leads; `None`: to the server.
    ///
    /// # Errors
    /// An unknown name, or a ring.
    pub(super) fn upstreams(&self) -> Result<Vec<Option<usize>>, SpecError> {
        let by = |s: &SwitchSpec| format!("upstream of switch {:?}", s.name);
        let find =
            |s: &SwitchSpec| s.upstream.as_ref().map(|name| self.switch(name, &by(s))).transpose();
        let upstreams = self.switches.iter().map(find).collect::<Result<Vec<_>, _>>()?;
        for start in 0..upstreams.len() {
            let mut at = start;
            for _ in 0..=upstreams.len() {
                match upstreams[at] {
                    Some(next) => at = next,
                    None => break,
                }
            }
            if upstreams[at].is_some() {
                let name = &self.switches[start].name;
                return Err(SpecError(format!(
                    "switch {name:?} does not lead to the server: its upstreams form a ring"
                )));
            }
        }
        Ok(upstreams)
    }

    /// Where each cluster is, counted through all groups.
    ///
    /// # Errors
    /// A group names a switch that is not there.
    pub(super) fn clusters(&self) -> Result<Vec<ClusterPlace>, SpecError> {
        let mut places = Vec::new();
        let mut first = 0;
        for (group, spec) in self.groups.iter().enumerate() {
            let switch = self.switch(&spec.switch, &format!("group {:?}", spec.name))?;
            for _ in 0..spec.clusters {
                let workers = first..first + small(spec.workers);
                first = workers.end;
                places.push(ClusterPlace { group, switch, workers });
            }
        }
        Ok(places)
    }

    /// When the updates of one of a group's workers are ready, nanoseconds. An update that is very
    /// late can be ready after its next.
    pub(super) fn ready_of(&self, group: &GroupSpec, worker: u32) -> Vec<u64> {
        let mut ready = Vec::new();
        let mut chance = Chance::new(self.seed, u64::from(worker) << 1);
        let drawn = chance.up_to(group.interval_ns - 1);
        let mut tick = if group.in_step { 0 } else { drawn };
        while tick < self.duration_ns {
            let at_ns = tick.saturating_add(chance.up_to(group.late_ns));
            if at_ns < self.duration_ns {
                ready.push(at_ns);
            }
            tick = tick.saturating_add(group.interval_ns);
        }
        ready
    }

    /// Everything that [`super::run`] relies on.
    ///
    /// # Errors
    /// The first thing that cannot be.
    pub fn check(&self) -> Result<(), SpecError> {
        let fail = |text: String| Err(SpecError(text));
        if self.duration_ns == 0 {
            return fail("duration_ns must be above 0".into());
        }
        for switch in &self.switches {
            let name = &switch.name;
            if QueueKind::parse(&switch.queue).is_none() {
                return fail(format!(
                    "switch {name:?}: queue {:?} must be {}",
                    switch.queue,
                    QueueKind::names()
                ));
            }
            if switch.slots == 0 || switch.slots > 1 << 20 {
                return fail(format!("switch {name:?}: slots must be from 1 to 1048576"));
            }
            if BitsPerSecond::new(switch.rate_bps).is_none() {
                return fail(format!("switch {name:?}: rate_bps must be above 0"));
            }
        }
        self.upstreams()?;
        let mut planned = 0u128;
        for group in &self.groups {
            let name = &group.name;
            self.switch(&group.switch, &format!("group {name:?}"))?;
            if group.clusters == 0 || group.workers == 0 || group.packet_bytes == 0 {
                return fail(format!(
                    "group {name:?}: clusters, workers and packet_bytes must be above 0"
                ));
            }
            if group.interval_ns == 0 {
                return fail(format!("group {name:?}: interval_ns must be above 0"));
            }
            let workers = group.clusters as u128 * group.workers as u128;
            planned += workers * (1 + u128::from(self.duration_ns / group.interval_ns));
            if self.control.unsent == "retry" {
                // At worst every worker tries again all the time.
                let tries = self.duration_ns / self.control.retry_ns.max(1);
                planned += workers * u128::from(tries);
            }
        }
        if self.groups.is_empty() || planned > MOST as u128 {
            return fail(format!("{planned} updates planned: must be from 1 to {MOST}"));
        }
        if !matches!(self.answers.to.as_str(), "shared" | "cluster") {
            return fail(format!("answers.to {:?} is not one of shared, cluster", self.answers.to));
        }
        self.transmission().map(|_| ())
    }

    /// Returns true if switches tell a cluster's workers what they have taken in of it.
    ///
    /// # Errors
    /// The key of the control that cannot be.
    pub fn wants_notices(&self) -> Result<bool, SpecError> {
        Ok(Transmission::new(self.transmission()?).wants_notices())
    }

    /// The senders' control.
    ///
    /// # Errors
    /// The key that cannot be.
    pub fn transmission(&self) -> Result<TransmissionConfig, SpecError> {
        let spec = &self.control;
        let words = Words {
            control: spec.kind.clone(),
            threshold: Duration::from_nanos(spec.threshold_ns),
            slope: spec.slope.clone(),
            unsent: spec.unsent.clone(),
            retry: Duration::from_nanos(spec.retry_ns),
            fair: Fair { rounds: spec.rounds, yields: spec.yields },
        };
        words.read().map_err(|error| SpecError(format!("control: {error}")))
    }
}

pub(super) fn small(n: usize) -> u32 {
    u32::try_from(n).expect("a scenario is checked to be smaller")
}
