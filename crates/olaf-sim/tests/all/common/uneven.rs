//! Workers that are never at the same operation, in a job that ends and begins again all the time.

use super::sums::{Draws, operation};
use core::time::Duration;
use olaf_engine::PeerId;
use olaf_host::collective::{Collective, Failure, Operation, OperationId, Reduction, Sum};
use olaf_sim::Network;
use olaf_sim::network::Node;

const MS: Duration = Duration::from_millis(1);
/// Operations of each worker.
const OPERATIONS: u32 = 60;

/// How an operation ended, and its lanes.
pub(crate) type Outcome<'a> = (Result<Sum, Failure>, &'a [f32]);

/// A job of one of the protocols.
pub(crate) trait Uneven {
    /// Its worker's end.
    type End: Collective + Node;
    /// Whether an operation that fails at one worker fails at all.
    const FAIL_ALIKE: bool;

    fn net(&mut self) -> &mut Network;
    fn peer(end: u32) -> PeerId;
    fn open_operations(end: &Self::End) -> usize;
    /// The operation of a number at a worker.
    fn operation(end: u32, lanes: usize, number: u32) -> Operation;
    /// The sum of it that these workers should get.
    fn expected(lanes: usize, number: u32, ends: &[u32]) -> Vec<f32>;
    /// Runs, and keeps how operations ended.
    fn run_for(&mut self, time: Duration);
    fn ended(&self, end: u32, id: OperationId) -> Option<Outcome<'_>>;
    fn state(&self) -> String;
}

/// Runs jobs in which the last worker dies and comes back again and again, and gives zeros. The others begin their
/// operations at their own pace. An operation ends alike at all of them, and its sum is of that operation of each.
pub(crate) fn run<J: Uneven>(make: impl Fn(u64, &mut Draws) -> (u32, J)) {
    let (mut sums, mut failures) = (0u64, 0u64);
    let seeds = u64::from(olaf_samples::cases(40));
    for seed in 0..seeds {
        let draws = &mut Draws(3000 + seed);
        let (workers, mut job) = make(seed, draws);
        let others: Vec<u32> = (0..workers - 1).collect();
        job.run_for(2000 * MS);
        let lanes = [1, 300, 4000][draws.below(3) as usize];
        to_the_end(&mut job, draws, &others, lanes);
        for number in 0..OPERATIONS {
            let of = |end: u32| {
                let ended = job.ended(end, OperationId(number.into()));
                ended.unwrap_or_else(|| panic!("seed {seed}, {number}, {end}\n{}", job.state()))
            };
            let (first, _) = of(0);
            *(if first.is_ok() { &mut sums } else { &mut failures }) += 1;
            for end in &others {
                let (outcome, sum) = of(*end);
                let is_alike = outcome.is_ok() == first.is_ok() || !J::FAIL_ALIKE;
                assert!(is_alike, "seed {seed}, {number}, {end}: {outcome:?}, {first:?}");
                let is_right = outcome.is_err() || sum == J::expected(lanes, number, &others);
                assert!(is_right, "seed {seed}, {number}, {end}: a wrong sum");
            }
        }
    }
    let is_mixed = sums > 5 * seeds && failures > 2 * seeds;
    assert!(is_mixed, "{sums} sums and {failures} failures of {seeds} jobs: this tests nothing");
}

/// Runs until the others have begun all their operations, and all have ended.
fn to_the_end<J: Uneven>(job: &mut J, draws: &mut Draws, others: &[u32], lanes: usize) {
    let last = J::peer(others.len() as u32);
    let begin = |job: &mut J, at: PeerId, operation: Operation| {
        let begun = job.net().with(at, |end: &mut J::End, now| {
            end.begin(now, operation).map_err(|(failure, _)| failure)
        });
        begun.expect("the end is alive").expect("the operation begins");
    };
    let open = |job: &mut J, at: PeerId| job.net().node::<J::End>(at).map(J::open_operations);
    let mut begun = vec![0; others.len()];
    for _ in 0..20_000 {
        let end = draws.below(others.len() as u64) as u32;
        for _ in 0..1 + draws.below(4) {
            let number = begun[end as usize];
            if number < OPERATIONS {
                begin(job, J::peer(end), J::operation(end, lanes, number));
                begun[end as usize] += 1;
            }
        }
        let lives = open(job, last).is_some();
        let now = job.net().now();
        match draws.below(20) {
            0 if lives => job.net().kill_at(now, last),
            0..6 if !lives => job.net().start_at(now, last),
            _ => {}
        }
        job.run_for(MS * (draws.below(3) * draws.below(12)) as u32);
        if let Some(open) = open(job, last) {
            for _ in open..3 {
                begin(job, last, operation(Reduction::Sum, (0..lanes).map(|_| 0.0), false));
            }
        }
        let is_done = begun.iter().all(|begun| *begun == OPERATIONS);
        if is_done && others.iter().all(|end| open(job, J::peer(*end)) == Some(0)) {
            return;
        }
    }
}

/// [`Uneven`] for the module's `Job`: its worker, whether operations fail alike, and what makes an operation of a task.
macro_rules! uneven {
    ($end:ty, $fail_alike:literal, $operation:expr) => {
        impl crate::common::uneven::Uneven for Job {
            type End = $end;
            const FAIL_ALIKE: bool = $fail_alike;

            fn net(&mut self) -> &mut Network {
                &mut self.net
            }
            fn peer(end: u32) -> PeerId {
                peer(end)
            }
            fn open_operations(end: &$end) -> usize {
                end.open_operations()
            }
            fn operation(end: u32, lanes: usize, number: u32) -> Operation {
                let of: fn(Task, u32) -> Operation = $operation;
                of(Task::sum(lanes, number), end)
            }
            fn expected(lanes: usize, number: u32, ends: &[u32]) -> Vec<f32> {
                Task::sum(lanes, number).expected(ends)
            }
            fn run_for(&mut self, time: Duration) {
                Self::run_for(self, time);
            }
            fn ended(
                &self,
                end: u32,
                id: OperationId,
            ) -> Option<crate::common::uneven::Outcome<'_>> {
                let ended = self.ended.get(&peer(end))?.get(&id)?;
                Some((ended.outcome, &ended.lanes))
            }
            fn state(&self) -> String {
                Self::state(self)
            }
        }
    };
}
pub(crate) use uneven;
