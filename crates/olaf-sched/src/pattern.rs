//! What a job communicates in one step, and how long that takes (MINA §II-C, §IV-B).

use serde::{Deserialize, Serialize};
use std::fmt;

/// One all-reduce of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Earliest start, from the step's begin: when its gradient is ready.
    pub start_ns: u64,
    /// What is summed.
    pub bytes: u64,
}

/// The all-reduces of one step of a job, as recorded; every step is the same (MINA §IV-B).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern {
    /// A name for people: `opt-125m-4`.
    pub name: String,
    /// When the step's computation ends, if it never waits.
    pub compute_ns: u64,
    /// In the order in which they run: each starts no earlier than its recorded start and not
    /// before the one before it has ended.
    pub operations: Vec<Operation>,
}

/// The most operations that a step may have.
pub const MOST_OPERATIONS: usize = 65_536;
/// The longest step, and the latest start in it: a day.
pub const LONGEST_NS: u64 = 86_400_000_000_000;
/// The largest all-reduce: 1 TiB.
pub const MOST_BYTES: u64 = 1 << 40;

/// Why a pattern is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// Its computation takes no time, or longer than [`LONGEST_NS`].
    Compute(u64),
    /// More than [`MOST_OPERATIONS`].
    Operations(usize),
    /// The operation at this place starts later than [`LONGEST_NS`].
    Start(usize),
    /// The operation at this place starts before the one before it.
    Order(usize),
    /// The operation at this place sums nothing, or more than [`MOST_BYTES`].
    Bytes(usize),
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compute(ns) => write!(f, "duration: {ns} ns; must be from 1 ns to a day"),
            Self::Operations(n) => write!(f, "allreduces: {n}; must be at most {MOST_OPERATIONS}"),
            Self::Start(at) => write!(f, "allreduces[{at}].start: must be within a day"),
            Self::Order(at) => {
                write!(f, "allreduces[{at}].start: earlier than the one before it; sort them")
            }
            Self::Bytes(at) => write!(f, "allreduces[{at}].size: must be from 1 byte to 1 TiB"),
        }
    }
}

impl std::error::Error for PatternError {}

impl Pattern {
    /// The pattern, if it is one.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn check(self) -> Result<Self, PatternError> {
        if self.compute_ns == 0 || self.compute_ns > LONGEST_NS {
            return Err(PatternError::Compute(self.compute_ns));
        }
        if self.operations.len() > MOST_OPERATIONS {
            return Err(PatternError::Operations(self.operations.len()));
        }
        let mut before = 0;
        for (at, operation) in self.operations.iter().enumerate() {
            if operation.start_ns > LONGEST_NS {
                return Err(PatternError::Start(at));
            }
            if operation.start_ns < before {
                return Err(PatternError::Order(at));
            }
            if operation.bytes == 0 || operation.bytes > MOST_BYTES {
                return Err(PatternError::Bytes(at));
            }
            before = operation.start_ns;
        }
        Ok(self)
    }

    /// The same step computed `millis / 1000` times as fast: all recorded times are divided.
    #[must_use]
    pub fn faster(&self, millis: u32) -> Self {
        let scale = |ns: u64| rounded(u128::from(ns) * 1000, u128::from(millis.max(1)));
        Self {
            name: self.name.clone(),
            compute_ns: scale(self.compute_ns).max(1),
            operations: self
                .operations
                .iter()
                .map(|operation| Operation { start_ns: scale(operation.start_ns), ..*operation })
                .collect(),
        }
    }
}

/// How long an all-reduce takes: latency + bytes / (bandwidth x speed-up, if the switch sums).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllReduceSpeed {
    /// Of an all-reduce among hosts alone: its algorithm bandwidth.
    pub bytes_per_second: u64,
    /// How much faster it is when the switches sum, in thousandths: 2000 is twice.
    pub speedup_millis: u32,
    /// Of each all-reduce, however large.
    pub latency_ns: u64,
}

impl AllReduceSpeed {
    /// MINA §V, as the authors' simulator sets it: 100 Gbit/s, twice as fast, 50 us.
    pub const PAPER: Self =
        Self { bytes_per_second: 12_500_000_000, speedup_millis: 2000, latency_ns: 50_000 };

    /// The speeds, if they can be.
    ///
    /// # Errors
    /// What is wrong with it.
    pub const fn check(self) -> Result<Self, &'static str> {
        if self.bytes_per_second == 0 {
            return Err("bandwidth: must be above 0");
        }
        if self.speedup_millis < 1000 {
            return Err("speedup: must be at least 1; a switch never slows an all-reduce down");
        }
        Ok(self)
    }

    /// Nanoseconds of one all-reduce of `bytes` among `hosts`, rounded to the nearest, at least
    /// one: what starts does not end at the same instant; at most [`LONGEST_NS`], so that no sum
    /// over a step overflows.
    /// A job on one host sums in its memory and waits for the latency only, as with the authors.
    #[must_use]
    pub fn operation_ns(&self, bytes: u64, in_network: bool, hosts: u32) -> u64 {
        if hosts < 2 {
            return self.latency_ns.clamp(1, LONGEST_NS);
        }
        let speedup = if in_network { u128::from(self.speedup_millis) } else { 1000 };
        let per_second = u128::from(self.bytes_per_second) * speedup;
        let moved_ns = rounded(u128::from(bytes) * 1_000_000_000_000, per_second);
        self.latency_ns.saturating_add(moved_ns).clamp(1, LONGEST_NS)
    }
}

fn rounded(above: u128, below: u128) -> u64 {
    u64::try_from((above + below / 2) / below).unwrap_or(u64::MAX)
}

/// A pattern on a network, for a number of hosts: every operation's two durations, computed once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    /// As [`Pattern::compute_ns`].
    pub compute_ns: u64,
    /// Of each operation: its recorded start.
    pub start_ns: Vec<u64>,
    /// Of each operation: its duration when the hosts sum.
    pub without_ns: Vec<u64>,
    /// Of each operation: its duration when the switches sum.
    pub with_ns: Vec<u64>,
    /// A whole step in which no operation uses the switches.
    pub none_ns: u64,
    /// A whole step in which all do.
    pub all_ns: u64,
    /// Of each operation, and of none at the end: what follows from it on if the hosts sum.
    rest_without: Vec<Rest>,
    /// The same if the switches sum.
    rest_with: Vec<Rest>,
}

/// The operations from one on: the step ends at the later of (when the first may start) + `sum_ns`
/// and `least_ns`, since each starts when it is ready or the one before it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Rest {
    sum_ns: u64,
    least_ns: u64,
}

impl Steps {
    /// `pattern` on `network` for a job of `hosts`.
    #[must_use]
    pub fn new(pattern: &Pattern, network: &AllReduceSpeed, hosts: u32) -> Self {
        let of = |in_network| -> Vec<u64> {
            let each = pattern.operations.iter();
            each.map(|o| network.operation_ns(o.bytes, in_network, hosts)).collect()
        };
        let mut steps = Self {
            compute_ns: pattern.compute_ns,
            start_ns: pattern.operations.iter().map(|operation| operation.start_ns).collect(),
            without_ns: of(false),
            with_ns: of(true),
            none_ns: 0,
            all_ns: 0,
            rest_without: Vec::new(),
            rest_with: Vec::new(),
        };
        steps.rest_without = steps.rests(&steps.without_ns);
        steps.rest_with = steps.rests(&steps.with_ns);
        steps.none_ns = steps.duration_ns(|_| false);
        steps.all_ns = steps.duration_ns(|_| true);
        steps
    }

    /// A whole step in which operation `i` uses the switches if `in_network(i)`.
    #[must_use]
    pub fn duration_ns(&self, in_network: impl Fn(usize) -> bool) -> u64 {
        self.finish_ns(0, 0, in_network)
    }

    /// When the step ends, from its begin, if operation `from` can start at `at_ns` at the
    /// earliest.
    #[must_use]
    pub fn finish_ns(&self, from: usize, at_ns: u64, in_network: impl Fn(usize) -> bool) -> u64 {
        let mut now = at_ns;
        for i in from..self.start_ns.len() {
            let duration = if in_network(i) { self.with_ns[i] } else { self.without_ns[i] };
            now = now.max(self.start_ns[i]) + duration;
        }
        now.max(self.compute_ns)
    }

    /// As [`Steps::finish_ns`] where the hosts sum from `from` on, without a walk.
    #[must_use]
    pub fn finish_without_ns(&self, from: usize, at_ns: u64) -> u64 {
        let rest = self.rest_without[from];
        rest.least_ns.max(at_ns + rest.sum_ns)
    }

    /// As [`Steps::finish_ns`] where the switches sum from `from` on, without a walk.
    #[must_use]
    pub fn finish_with_ns(&self, from: usize, at_ns: u64) -> u64 {
        let rest = self.rest_with[from];
        rest.least_ns.max(at_ns + rest.sum_ns)
    }

    /// How many operations a step has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.start_ns.len()
    }

    /// A step that only computes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start_ns.is_empty()
    }

    fn rests(&self, durations_ns: &[u64]) -> Vec<Rest> {
        let mut rests = vec![Rest { sum_ns: 0, least_ns: self.compute_ns }; self.len() + 1];
        for i in (0..self.len()).rev() {
            let after = rests[i + 1];
            let sum_ns = after.sum_ns + durations_ns[i];
            rests[i] = Rest { sum_ns, least_ns: after.least_ns.max(self.start_ns[i] + sum_ns) };
        }
        rests
    }

    /// What a whole step gains when every operation uses the switches.
    #[must_use]
    pub fn gain_ns(&self) -> u64 {
        self.none_ns - self.all_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(compute_ns: u64, operations: &[(u64, u64)]) -> Pattern {
        let operations =
            operations.iter().map(|&(start_ns, bytes)| Operation { start_ns, bytes }).collect();
        Pattern { name: "p".into(), compute_ns, operations }
    }

    const NET: AllReduceSpeed =
        AllReduceSpeed { bytes_per_second: 1_000_000_000, speedup_millis: 2000, latency_ns: 10 };

    #[test]
    fn an_operation_waits_for_its_gradient_and_for_the_one_before() {
        let steps = Steps::new(&pattern(500, &[(100, 200), (150, 400)]), &NET, 2);
        assert_eq!((steps.without_ns[0], steps.with_ns[1]), (210, 210));
        assert_eq!(steps.none_ns, 100 + 210 + 410);
        assert_eq!(steps.all_ns, 100 + 110 + 210 + 80);
        assert_eq!(steps.duration_ns(|i| i == 1), 100 + 210 + 210);
    }

    #[test]
    fn the_rest_of_a_step_needs_no_walk() {
        let steps = Steps::new(&pattern(900, &[(100, 200), (150, 400), (700, 50)]), &NET, 2);
        for from in 0..=steps.len() {
            for at_ns in [0, 120, 600, 690, 2000] {
                let without = steps.finish_ns(from, at_ns, |_| false);
                assert_eq!(steps.finish_without_ns(from, at_ns), without, "{from} at {at_ns}");
                let with = steps.finish_ns(from, at_ns, |_| true);
                assert_eq!(steps.finish_with_ns(from, at_ns), with, "{from} at {at_ns}");
            }
        }
    }

    #[test]
    fn one_host_does_not_use_the_network() {
        let steps = Steps::new(&pattern(50, &[(100, 200)]), &NET, 1);
        assert_eq!((steps.none_ns, steps.all_ns, steps.gain_ns()), (110, 110, 0));
    }

    #[test]
    fn the_slowest_network_overflows_nothing() {
        let network = AllReduceSpeed { bytes_per_second: 1, latency_ns: u64::MAX, ..NET };
        let many = vec![(LONGEST_NS, MOST_BYTES); MOST_OPERATIONS];
        for hosts in [1, 2] {
            let steps = Steps::new(&pattern(LONGEST_NS, &many), &network, hosts);
            assert_eq!(steps.none_ns, LONGEST_NS * (1 + MOST_OPERATIONS as u64));
        }
    }

    #[test]
    fn what_is_no_network_is_named() {
        let said = |network: AllReduceSpeed| network.check().expect_err("none");
        assert!(said(AllReduceSpeed { bytes_per_second: 0, ..NET }).starts_with("bandwidth"));
        assert!(said(AllReduceSpeed { speedup_millis: 999, ..NET }).starts_with("speedup"));
        assert_eq!(NET.check(), Ok(NET));
    }

    #[test]
    fn what_is_no_pattern_is_named() {
        assert_eq!(pattern(0, &[]).check(), Err(PatternError::Compute(0)));
        assert_eq!(pattern(9, &[(5, 1), (4, 1)]).check(), Err(PatternError::Order(1)));
        assert_eq!(pattern(9, &[(5, 0)]).check(), Err(PatternError::Bytes(0)));
        assert!(pattern(9, &[(5, 1)]).check().is_ok());
    }

    #[test]
    fn a_faster_computation_divides_the_recorded_times() {
        let faster = pattern(300, &[(150, 7)]).faster(1500);
        assert_eq!(faster, pattern(200, &[(100, 7)]));
    }
}
