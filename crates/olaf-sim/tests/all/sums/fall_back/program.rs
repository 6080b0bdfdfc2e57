//! The programs of a job: each worker begins the same operations, several at once, at its own pace.

use crate::common::sums::{Draws, Ended, operation};
use crate::sums::job::{Job, MS, Setting, peer};
use crate::sums::protocol::TOP;
use crate::sums::protocols::{SECOND, TwoSwitches};
use core::time::Duration;
use olaf_engine::Instant;
use olaf_host::collective::{
    Collective, FAREWELL, FallBack, OperationId, Options, Reduction, SecondSwitch,
};
use olaf_sim::Wire;
use std::collections::BTreeMap;

/// A worker takes a switch for silent after this time; before the switch takes a worker for dead.
pub(super) const PATIENCE: Duration = Duration::from_millis(1000);

/// An operation is given up after this time, in which the job does not move.
const LIMIT: Duration = Duration::from_secs(60);

/// An operation of all programs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    reduction: Reduction,
    lanes: usize,
}

impl Call {
    pub(super) const fn sum(lanes: usize) -> Self {
        Self { reduction: Reduction::Sum, lanes }
    }
}

/// Calls of all kinds.
pub(super) fn some_calls(draws: &mut Draws, workers: u32, count: usize) -> Vec<Call> {
    let largest = [10, 3000, 40_000][draws.below(3) as usize];
    let call = |_| {
        let root = draws.below(workers.into()) as u32;
        let reductions = [
            Reduction::Sum,
            Reduction::Mean,
            Reduction::ExactSum,
            Reduction::Max,
            Reduction::Broadcast { root },
        ];
        let reduction = reductions[draws.below(5) as usize];
        Call { reduction, lanes: 1 + draws.below(largest) as usize }
    };
    (0..count).map(call).collect()
}

/// A job and its programs.
pub(super) struct Programs {
    pub(super) job: Job<TwoSwitches>,
    pub(super) calls: Vec<Call>,
    pub(super) at_once: usize,
    begun: Vec<usize>,
    /// When each open operation of a worker began.
    open: BTreeMap<(u32, u64), Instant>,
}

impl Programs {
    pub(super) fn new(setting: Setting<TwoSwitches>, calls: Vec<Call>, at_once: usize) -> Self {
        let options = Options { silence: PATIENCE, ..Options::default() };
        let begun = vec![0; setting.workers as usize];
        let job = Job::met(Setting { options, ..setting });
        Self { job, calls, at_once, begun, open: BTreeMap::new() }
    }

    pub(super) fn workers(&self) -> u32 {
        self.job.setting.workers
    }

    /// Names the run where a test fails.
    fn seed(&self) -> String {
        format!("seed {}", self.job.setting.seed)
    }

    /// A worker begins its next operation.
    pub(super) fn begin(&mut self, end: u32) {
        let number = self.begun[end as usize];
        let Some(&Call { reduction, lanes }) = self.calls.get(number) else { return };
        let lanes = (0..lanes).map(|at| lane(end, number, at));
        let operation = operation(reduction, lanes, false);
        let begun = self.job.with(end, |worker, now| worker.begin(now, operation));
        self.begun[end as usize] += 1;
        self.open.insert((end, number as u64), self.job.net.now());
        if let Err((failure, operation)) = begun {
            // The program hears of it at once; the next operation fails, too.
            let lanes = Vec::new();
            let ended = Ended { outcome: Err(failure), lanes, took: Duration::ZERO };
            drop(operation);
            let id = OperationId(number as u64);
            self.job.ended.entry(peer(end)).or_default().insert(id, ended);
        }
    }

    /// A driver gives up what takes too long.
    fn give_up(&mut self) {
        let (now, job) = (self.job.net.now(), &self.job);
        self.open.retain(|(end, number), _| {
            let ended = job.ended.get(&peer(*end));
            !ended.is_some_and(|ended| ended.contains_key(&OperationId(*number)))
        });
        for ((end, number), began) in self.open.clone() {
            let worker = self.job.net.node::<FallBack>(peer(end));
            let since = worker.and_then(Collective::limits_since);
            let limit = if number < self.calls.len() as u64 { LIMIT } else { FAREWELL };
            if since.is_some_and(|since| now.since(began.max(since)) > limit) {
                self.job.give_up(end, number);
            }
        }
    }

    /// Begins what the programs are free to begin; some of them compute just now.
    pub(super) fn go_on(&mut self, draws: &mut Draws) {
        self.give_up();
        for end in 0..self.workers() {
            while self.job.open_at(end).is_some_and(|open| open < self.at_once)
                && self.begun[end as usize] < self.calls.len()
                && draws.below(4) > 0
            {
                self.begin(end);
            }
        }
    }

    pub(super) fn is_over(&self) -> bool {
        let has_begun = |end: u32| self.begun[end as usize] == self.calls.len();
        let living = (0..self.workers()).filter(|end| self.job.lives(*end));
        living.clone().all(has_begun) && self.job.open() == 0
    }

    /// Runs the programs for that long.
    pub(super) fn run_for(&mut self, draws: &mut Draws, time: Duration) {
        let until = self.job.net.now() + time;
        while self.job.net.now() < until && !self.is_over() {
            self.go_on(draws);
            self.job.run_for(MS / 2 * (1 + draws.below(4) as u32));
        }
        self.job.net.run_until(until);
        self.job.run_for(Duration::ZERO);
    }

    /// Runs the programs to their ends.
    #[track_caller]
    pub(super) fn run_to_the_end(&mut self, draws: &mut Draws, at_most: Duration) {
        let until = self.job.net.now() + at_most;
        while !self.is_over() {
            let state = || format!("{}, {:?}\n{}", self.seed(), self.begun, self.job.state());
            assert!(self.job.net.now() < until, "programs hang after {at_most:?}\n{}", state());
            self.go_on(draws);
            self.job.run_for(MS * (1 + draws.below(4) as u32));
        }
    }

    /// The same; then each worker says its farewell and leaves.
    #[track_caller]
    pub(super) fn run_and_leave(&mut self, draws: &mut Draws, at_most: Duration) {
        self.run_to_the_end(draws, at_most);
        for end in 0..self.workers() {
            if self.job.lives(end)
                && let Some(id) = self.job.with(end, |worker, now| worker.say_farewell(now))
            {
                self.open.insert((end, id.0), self.job.net.now());
            }
            self.job.run_for(MS * draws.below(20) as u32);
        }
        let until = self.job.net.now() + LIMIT + FAREWELL;
        while self.job.open() > 0 {
            let is_late = self.job.net.now() >= until;
            assert!(!is_late, "{}, a farewell hangs\n{}", self.seed(), self.job.state());
            self.give_up();
            self.job.run_for(10 * MS);
        }
        for end in 0..self.workers() {
            if self.job.lives(end) {
                self.job.with(end, |worker, now| worker.leave(now));
            }
        }
        self.job.run_for(1000 * MS);
    }

    pub(super) fn of(&self, end: u32) -> SecondSwitch {
        let worker = self.job.net.node::<FallBack>(peer(end));
        worker.and_then(Collective::second_switch).expect("the worker lives")
    }

    /// From now on nothing comes from a switch to a worker.
    pub(super) fn mute(&mut self, switch: olaf_engine::PeerId, end: u32) {
        let deaf = Wire { loss: 1.0, ..self.job.setting.wire };
        self.job.net.join_one_way(switch, peer(end), deaf);
    }

    /// A wire is as it was.
    pub(super) fn mend(&mut self, end: u32) {
        let wire = self.job.setting.wire;
        [TOP, SECOND].into_iter().for_each(|switch| self.job.net.join(switch, peer(end), wire));
    }

    fn ended(&self, end: u32, number: usize) -> &Ended {
        self.job.outcome(end, number as u64)
    }

    /// No result is wrong, and all workers have the same bits. Returns how many operations have no result somewhere.
    #[track_caller]
    pub(super) fn check(&self) -> usize {
        let living: Vec<u32> = (0..self.workers()).filter(|end| self.job.lives(*end)).collect();
        let mut failed = 0;
        for number in 0..self.calls.len() {
            let well = living.iter().map(|end| self.ended(*end, number));
            let mut well = well.filter(|ended| ended.outcome.is_ok());
            failed += usize::from(well.clone().count() < living.len());
            let Some(first) = well.next() else { continue };
            self.is_right(number, &first.lanes);
            let are_same = well.all(|other| same_bits(&other.lanes, &first.lanes));
            assert!(are_same, "{}, operation {number}", self.seed());
        }
        for end in living {
            let ended = self.job.ended[&peer(end)].len();
            let farewell = ended.saturating_sub(self.calls.len());
            assert!(farewell <= 1, "{}, worker {end}: more ends than operations", self.seed());
        }
        self.job.accounts();
        failed
    }

    /// All of them have a result at all workers that live.
    #[track_caller]
    pub(super) fn all_are_right(&self) {
        let failed = self.check();
        let why = || {
            let mut all = self.seed() + "\n";
            for end in 0..self.workers() {
                let failed = (0..self.calls.len()).map(|number| self.ended(end, number).outcome);
                let failed: Vec<_> = failed.filter(Result::is_err).collect();
                all += &format!("{end}: {failed:?}\n");
            }
            all + &self.job.state()
        };
        assert_eq!(failed, 0, "{}", why());
    }

    #[track_caller]
    fn is_right(&self, number: usize, lanes: &[f32]) {
        let Call { reduction, lanes: count } = self.calls[number];
        assert_eq!(lanes.len(), count);
        for (at, lane_of_result) in lanes.iter().enumerate() {
            let each = (0..self.workers()).map(|end| f64::from(lane(end, number, at)));
            let size: f64 = each.clone().map(f64::abs).sum();
            let expected = match reduction {
                Reduction::Sum | Reduction::ExactSum => each.sum(),
                Reduction::Mean => each.sum::<f64>() / f64::from(self.workers()),
                Reduction::Max => each.fold(f64::MIN, f64::max),
                Reduction::Broadcast { root } => f64::from(lane(root, number, at)),
                other => panic!("no program calls {other:?}"),
            };
            let error = (f64::from(*lane_of_result) - expected).abs();
            // An order-free sum is as exact as the largest lane of its block.
            let is_free = reduction == Reduction::ExactSum;
            let allowed = if is_free { 1e-3 } else { size * 1e-5 };
            let is_near = error <= allowed;
            let of = || format!("{}, operation {number}, lane {at}", self.seed());
            assert!(is_near, "{}: {lane_of_result}, {expected}", of());
        }
    }
}

fn same_bits(one: &[f32], other: &[f32]) -> bool {
    one.iter().map(|lane| lane.to_bits()).eq(other.iter().map(|lane| lane.to_bits()))
}

/// A lane of a worker: the sum of such numbers depends on the order of its terms.
fn lane(end: u32, number: usize, at: usize) -> f32 {
    let mixed = (at as u64 * 1_000_003 + number as u64 * 7919 + u64::from(end) * 104_729 + 1)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let fraction = ((mixed >> 40) as f32) / 16_777_216.0 - 0.5;
    fraction * [1.0, 37.0, 1e3, 3e-2][(mixed >> 20 & 3) as usize]
}
