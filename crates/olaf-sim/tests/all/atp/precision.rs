//! Sums that would run over, and values that fixed point rounds away (ATP §3.8, appendix B).

use super::job::*;
use core::time::Duration;
use olaf_engine::switch::NonFinite;
use olaf_engine::{Event, SumEvent};
use olaf_host::collective::Failure;
use olaf_host::collective::atp::{Factor, Options, Overflow, ServerConfig};
use olaf_sim::Wire;
use olaf_wire::reduce::Reason;

const LONG: Duration = Duration::from_secs(120);

fn faulty() -> Wire {
    let delay = Duration::from_micros(100);
    Wire { delay, loss: 0.1, duplication: 0.1, reordering: 0.1, late: MS, ..Wire::default() }
}

fn proactive() -> Options {
    Options { overflow: Overflow::Proactive, ..Options::default() }
}

fn dynamic() -> Options {
    // A change takes effect a window later.
    Options { factor: Factor::Dynamic, first_packets: 32, most_packets: 32, ..Options::default() }
}

fn run(setting: Setting, tasks: &[Task]) -> Jobs {
    let mut jobs = Jobs::new(setting);
    for task in tasks {
        jobs.begin_all(0, *task);
        jobs.run_until_done(LONG);
    }
    jobs.accounts();
    jobs
}

fn too_large(jobs: &Jobs) -> u64 {
    jobs.worker(0, 0).statistics().fragments.too_large
}

#[test]
fn small_values_are_added_by_switches_with_the_proactive_variant_too() {
    let task = Task::sum(5000, 0);
    let jobs = run(Setting { own: proactive(), racks: vec![4], ..Setting::default() }, &[task]);
    jobs.all_are_right(0, &[task]);
    let of = jobs.server(0).statistics().gradients;
    assert_eq!((of.singles, too_large(&jobs)), (0, 0), "the bound of four workers is 5.4");
}

#[test]
fn the_proactive_variant_sends_no_sum_that_runs_over() {
    // Lanes of up to 20 fit, and sums of them do not.
    for (racks, wire) in [(vec![15], Wire::default()), (vec![3, 2, 1], faulty())] {
        let own = proactive();
        let tasks = [Task { times: 20.0, ..Task::sum(2000, 0) }, Task::sum(2000, 1)];
        let jobs = run(Setting { own, racks, wire, trunk: wire, ..Setting::default() }, &tasks);
        jobs.all_are_right(0, &tasks);
        let of = jobs.server(0).statistics();
        assert_eq!((of.gradients.ran_over, of.parameters.requests), (0, 0));
        assert_eq!(too_large(&jobs), 33, "each packet of the first tensor");
    }
}

#[test]
fn a_value_that_does_not_fit_alone_goes_as_f32_with_the_proactive_variant() {
    for wire in [Wire::default(), faulty()] {
        let tasks = [Task { times: 1e6, ..Task::sum(2000, 0) }, Task::sum(2000, 1)];
        let jobs =
            run(Setting { own: proactive(), wire, trunk: wire, ..Setting::default() }, &tasks);
        jobs.all_are_right(0, &tasks);
    }
}

/// The largest error of an operation at any worker, compared with its largest lane.
#[track_caller]
fn error(jobs: &Jobs, number: usize, task: Task) -> f64 {
    let expected = task.expected(jobs.setting.workers());
    let most = expected.iter().map(|lane| f64::from(lane.abs())).fold(0.0, f64::max);
    let mut largest = 0f64;
    for rank in 0..jobs.setting.workers() {
        let ended = jobs.ended[&worker(0, rank)].values().nth(number).expect("it has ended");
        assert!(ended.outcome.is_ok());
        for (lane, expected) in ended.lanes.iter().zip(&expected) {
            largest = largest.max(f64::from((lane - expected).abs()) / most);
        }
    }
    largest
}

#[test]
fn a_dynamic_factor_keeps_the_digits_of_small_values() {
    for (racks, wire) in [(vec![4], Wire::default()), (vec![3, 2, 1], faulty())] {
        for times in [1e-7, 1e-12] {
            // Values that the first factor rounds to 0 take two changes of the factor.
            let tasks =
                [0, 1, 2, 3, 4, 5].map(|number| Task { times, ..Task::sum(62 * 40, number) });
            let of = |own: Options| {
                let (racks, trunk) = (racks.clone(), wire);
                run(Setting { own, racks, wire, trunk, ..Setting::default() }, &tasks)
            };
            let fixed = error(&of(Options::default()), 5, tasks[5]);
            let jobs = of(dynamic());
            let dynamic = error(&jobs, 5, tasks[5]);
            assert!(dynamic < 1e-6 && fixed > 1e-3, "{times}: {dynamic}, and {fixed} if fixed");
            assert_eq!(jobs.server(0).statistics().parameters.requests, 0);
        }
    }
}

#[test]
fn a_dynamic_factor_makes_room_for_large_values() {
    for (racks, wire) in [(vec![4], Wire::default()), (vec![3, 2, 1], faulty())] {
        let large = [0, 1, 2].map(|number| Task { times: 1e4, ..Task::sum(62 * 40, number) });
        let small = [3, 4, 5, 6].map(|number| Task { times: 1e-4, ..Task::sum(62 * 40, number) });
        let tasks = [large.as_slice(), &small].concat();
        let setting = Setting { own: dynamic(), racks, wire, trunk: wire, ..Setting::default() };
        let jobs = run(setting, &tasks);
        for (number, task) in tasks.iter().enumerate() {
            // Behind the large values come small ones with the factor of the large ones.
            let least = if (3..6).contains(&number) { 1.0 } else { 1e-6 };
            assert!(error(&jobs, number, *task) < least, "operation {number}");
        }
        let wanted = jobs.worker(0, 0).statistics().parameters.float_requests;
        assert!(wanted >= 32, "the first window: {wanted}");
        let ran_over = jobs.server(0).statistics().gradients.ran_over;
        assert!(ran_over <= 2 * 32, "and nothing behind it: {ran_over}");
    }
}

/// Whom the server told of, and for which tensors.
fn told(jobs: &Jobs) -> Vec<(u32, u32)> {
    let told = jobs.net.events().iter().filter_map(|(_, _, event)| match event {
        Event::Sum(_, SumEvent::NonFinite { rank, operation }) => Some((*rank, *operation)),
        _ => None,
    });
    told.collect()
}

#[test]
fn a_worker_of_nan_or_infinities_is_named_once_for_each_tensor() {
    for (racks, wire) in [(vec![4], Wire::default()), (vec![3, 2, 1], faulty())] {
        for own in [Options::default(), proactive()] {
            let setting =
                Setting { own, racks: racks.clone(), wire, trunk: wire, ..Setting::default() };
            let mut jobs = Jobs::new(Setting { keeps_records: true, ..setting });
            let sound = Task::sum(62 * 20, 0);
            for (number, bad) in [f32::NAN, 1e9, f32::NEG_INFINITY].into_iter().enumerate() {
                for rank in 0..jobs.setting.workers() {
                    let times = if rank == 2 { bad } else { 1.0 };
                    jobs.begin(0, rank, Task { times, ..sound });
                }
                jobs.run_until_done(LONG);
                let ended = jobs.ended[&worker(0, 0)].values().nth(number).expect("it has ended");
                let sum = ended.outcome.as_ref().expect("it has a result");
                assert_eq!(sum.not_finite, !bad.is_finite(), "{bad}");
            }
            assert_eq!(told(&jobs), [(2, 0), (2, 2)], "values of 10^9 are sound");
            // Each fragment of two tensors: a packet that came again counts once.
            assert_eq!(jobs.server(0).statistics().non_finite_packets, 2 * 20);
            jobs.accounts();
        }
    }
}

/// A worker of NaN is named; of four finite values whose sum no f32 holds each may be the wrong one.
#[test]
fn a_server_that_refuses_what_is_no_number_ends_the_operation_everywhere_and_the_job_goes_on() {
    let refusing = ServerConfig { non_finite: NonFinite::Refuse, ..ServerConfig::default() };
    let faulty = (2..12).map(|seed| (seed, vec![3, 1, 0], faulty()));
    for (seed, racks, wire) in faulty.chain([(1, vec![4], Wire::default())]) {
        for (bad, others, culprit) in
            [(f32::NAN, 1.0, Some(2)), (f32::INFINITY, 1.0, Some(2)), (3e38, 3e38, None)]
        {
            let setting = Setting { racks: racks.clone(), wire, trunk: wire, ..Setting::default() };
            let setting = Setting { keeps_records: true, seed, ..setting };
            let mut jobs = Jobs::new(Setting { server: refusing.clone(), ..setting });
            let sound = Task::sum(62 * 20, 0);
            for rank in 0..4 {
                let times = if rank == 2 { bad } else { others };
                jobs.begin(0, rank, Task { times, ..sound });
            }
            jobs.run_until_done(LONG);
            let refused = Failure::Closed { reason: Reason::Refused, culprit };
            for rank in 0..4 {
                let ended = jobs.ended[&worker(0, rank)].values().next().unwrap();
                assert_eq!(ended.outcome, Err(refused), "{bad}, rank {rank}");
            }
            let named: Vec<_> = culprit.map(|rank| (rank, 0)).into_iter().collect();
            assert_eq!(told(&jobs), named, "{bad}");
            let seen = jobs.server(0).statistics();
            assert_eq!(seen.non_finite_packets, 0, "none is in a sum");
            assert!(seen.refused["non_finite"] > 0);
            // Each switch is told, and the workers join again.
            jobs.run_for(2000 * MS);
            jobs.begin_all(0, sound);
            jobs.run_until_done(LONG);
            for rank in 0..4 {
                let ended = jobs.ended[&worker(0, rank)].values().last().unwrap();
                assert!(ended.outcome.is_ok() && ended.lanes == sound.expected(4), "rank {rank}");
            }
            jobs.accounts();
        }
    }
}
