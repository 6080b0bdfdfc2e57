//! A worker whose floats are no finite numbers is named, behind whichever switch it is.

use super::job::*;
use crate::common::sums::{operation, peer};
use core::time::Duration;
use olaf_engine::switch::iswitch::{Config as SwitchConfig, NonFinite, Switch};
use olaf_engine::{Event, PeerId, SumEvent};
use olaf_host::collective::{Collective, Failure, Reduction};
use olaf_sim::Wire;
use olaf_wire::reduce::Reason;

const MS: Duration = Duration::from_millis(1);
const LANES: usize = 20_000;
const BAD: u32 = 1;

/// Every case: one switch and a tree, with and without loss.
fn cases(non_finite: NonFinite) -> impl Iterator<Item = Job> {
    let leaves = [vec![], vec![Some(0), Some(1), Some(0)]];
    let each = leaves.into_iter().flat_map(|leaves| [(leaves.clone(), 0.0), (leaves, 0.02)]);
    each.map(move |(leaves, loss)| {
        let delay = Duration::from_micros(200);
        let wire = Wire { loss, reordering: loss, late: MS, delay, ..Wire::default() };
        let switch = SwitchConfig { non_finite, ..Setting::default().switch };
        let keeps_records = true;
        Job::new(Setting { leaves, wire, switch, keeps_records, ..Setting::default() })
    })
}

/// All ends begin a sum in which many lanes of one end are NaN.
fn begin_with_nan(job: &mut Job, task: Task) {
    for end in 0..3 {
        let bad = |at: usize| end == BAD && at >= LANES / 2;
        let lanes =
            (0..LANES).map(|at| if bad(at) { f32::NAN } else { lane(end, task.number, at) });
        let operation = operation(Reduction::Sum, lanes, false);
        let begun = job.with(end, |worker, now| worker.begin(now, operation));
        begun.map_err(|(failure, _)| failure).expect("the operation begins");
    }
}

/// For each switch, the ranks of the workers that it named.
fn told(job: &Job) -> Vec<(PeerId, u32)> {
    let told = job.net.events().iter().filter_map(|(_, at, event)| match event {
        Event::Sum(_, SumEvent::NonFinite { rank, .. }) => Some((*at, *rank)),
        _ => None,
    });
    told.collect()
}

/// What the switch in front of the bad worker counted.
fn counted(job: &Job) -> (u64, bool) {
    let switch = job.net.node::<Switch>(job.switch_of(BAD)).expect("it lives");
    let counts = switch.statistics(job.net.now());
    (counts.non_finite_packets, counts.pieces.refused.contains_key("non_finite"))
}

#[test]
fn nan_goes_into_the_sum_and_its_worker_is_named_once_for_each_operation() {
    for mut job in cases(NonFinite::Pass) {
        for number in 0..2 {
            let task = Task::sum(LANES, number);
            begin_with_nan(&mut job, task);
            job.run_until_done(20_000 * MS);
            for end in 0..3 {
                let ended = job.outcome(end, number.into());
                assert!(ended.outcome.expect("it ends").not_finite);
                let (sound, bad) = ended.lanes.split_at(LANES / 2);
                assert_eq!(sound, &task.expected(&[0, 1, 2])[..LANES / 2]);
                assert!(bad.iter().all(|lane| lane.is_nan()));
            }
        }
        let own = job.switch_of(BAD);
        assert_eq!(told(&job), [(own, BAD), (own, BAD)]);
        // 366 floats a packet: the second half of 55 packets, twice.
        assert_eq!(counted(&job), (2 * 28, false));
        job.accounts();
    }
}

#[test]
fn a_switch_that_refuses_nan_ends_the_operation_at_all_workers_and_names_the_worker() {
    for mut job in cases(NonFinite::Refuse) {
        let sound = Task::sum(LANES, 0);
        job.begin_all(sound);
        job.run_until_done(20_000 * MS);
        begin_with_nan(&mut job, Task::sum(LANES, 1));
        job.run_until_done(20_000 * MS);
        let closed = Failure::Closed { reason: Reason::Refused, culprit: Some(BAD) };
        for end in 0..3 {
            assert_eq!(job.outcome(end, 1).outcome, Err(closed), "end {end}");
        }
        assert_eq!(told(&job), [(job.switch_of(BAD), BAD)]);
        assert_eq!(counted(&job), (0, true));
        // The job goes on.
        job.run_for(1000 * MS);
        job.begin_all(Task::sum(LANES, 2));
        job.run_until_done(20_000 * MS);
        for end in 0..3 {
            let expected = Task::sum(LANES, 2).expected(&[0, 1, 2]);
            assert!(job.outcome(end, 2).lanes == expected, "{:?}", job.ended[&peer(end)].len());
        }
        job.accounts();
    }
}
