//! The rule by hand, and the group against what must hold of every policy.

use super::bound::score_bound;
use super::group::{Ran, Started, Until, score, simulate, simulate_with};
use super::reference::least_ns;
use super::{Decision, Policy, Reason, Running, Surroundings, decide, decide_among};
use crate::{AllReduceSpeed, JobId, Operation, Pattern, Steps};
use proptest::prelude::*;

/// One byte a nanosecond, twice as fast by the switches, no latency.
const NET: AllReduceSpeed =
    AllReduceSpeed { bytes_per_second: 1_000_000_000, speedup_millis: 2000, latency_ns: 0 };

fn steps(compute_ns: u64, operations: &[(u64, u64)]) -> Steps {
    let operations =
        operations.iter().map(|&(start_ns, bytes)| Operation { start_ns, bytes }).collect();
    let pattern = Pattern { name: "p".into(), compute_ns, operations };
    Steps::new(&pattern.check().expect("a pattern"), &NET, 2)
}

fn job(number: u64, steps: &Steps) -> Running<'_> {
    Running {
        job: JobId(number),
        steps,
        hosts: 1,
        step_begin_ns: 0,
        next: 0,
        ready_ns: 0,
        in_network_now: false,
        running: false,
        steps_left: 10,
    }
}

const YIELDS: Decision = Decision { in_network: false, reason: Reason::Yields { to: JobId(2) } };
const AHEAD: Decision = Decision { in_network: true, reason: Reason::Ahead };
const FREE: Decision = Decision { in_network: true, reason: Reason::Free };

#[test]
fn a_group_runs_for_146_years_at_most() {
    let day = steps(86_400_000_000_000, &[(0, 100)]);
    assert!(Until::Steps(1 << 32).is_too_long(&[(&day, 1)]));
    assert!(Until::Ns(u64::MAX).is_too_long(&[(&day, 1)]));
    assert!(!Until::Steps(50_000).is_too_long(&[(&day, 1)]));
    let ran = simulate(Policy::Plan, &[(&day, 1), (&day, 1)], Until::Steps(50_000));
    assert_eq!(ran[0].ns, 50_000 * day.all_ns);
}

#[test]
fn without_rivals_an_operation_uses_the_switches() {
    let steps = steps(50, &[(0, 100)]);
    let me = job(1, &steps);
    assert_eq!(decide(Policy::None, 0, &me, &[]).reason, Reason::Off);
    assert_eq!(decide(Policy::Greedy, 0, &me, &[]), FREE);
    assert_eq!(decide(Policy::Mina, 0, &me, &[]), FREE);
}

#[test]
fn mina_yields_to_the_one_that_gains_more_in_the_time() {
    // Mine: 200 -> 100, but the computation ends at 180: gains 20 in 100.
    let mine = steps(180, &[(0, 200)]);
    // Theirs: from 30, 100 -> 50: gains 50 in 80.
    let theirs = steps(10, &[(30, 100)]);
    let (me, rival) = (job(1, &mine), job(2, &theirs));
    assert_eq!(decide(Policy::Mina, 0, &me, &[rival]), YIELDS);
    assert_eq!(decide(Policy::Greedy, 0, &me, &[rival]), FREE);
    // And they do not to me: they begin after me, but ask now, which is theirs.
    assert_eq!(
        decide(
            Policy::Mina,
            30,
            &rival,
            &[Running { ready_ns: 200, running: true, next: 1, ..me }]
        ),
        FREE
    );
}

#[test]
fn mina_weighs_by_hosts() {
    let mine = steps(180, &[(0, 200)]);
    let theirs = steps(10, &[(30, 100)]);
    // 20 x 4 / 100 against 50 / 80, then 20 x 3 / 100: 64 > 50 > 48 of 80.
    let (me, rival) = (job(1, &mine), job(2, &theirs));
    assert_eq!(decide(Policy::Mina, 0, &Running { hosts: 4, ..me }, &[rival]), AHEAD);
    assert_eq!(decide(Policy::Mina, 0, &Running { hosts: 3, ..me }, &[rival]), YIELDS);
}

#[test]
fn mina_goes_ahead_of_an_equal_one_and_of_one_that_comes_later() {
    let mine = steps(10, &[(0, 100)]);
    let (me, rival) = (job(1, &mine), job(2, &mine));
    assert_eq!(decide(Policy::Mina, 0, &me, &[rival]), AHEAD);
    // Mine ends at 50. Theirs gains all it can, from 50 on.
    let later = steps(10, &[(50, 1000)]);
    assert_eq!(decide(Policy::Mina, 0, &me, &[job(2, &later)]), FREE);
    // One ns earlier: 50 / 50 against 500 / 549.
    let sooner = steps(10, &[(49, 1000)]);
    assert_eq!(decide(Policy::Mina, 0, &me, &[job(2, &sooner)]), AHEAD);
}

#[test]
fn mina_sees_a_rival_past_its_running_operation_and_its_step() {
    let mine = steps(180, &[(0, 200)]);
    let theirs = steps(40, &[(0, 100), (10, 100)]);
    let me = job(1, &mine);
    // Its second operation starts at 30 when the first ends then: gains 50 in 80.
    let runs = Running { next: 1, ready_ns: 30, running: true, ..job(2, &theirs) };
    assert_eq!(decide(Policy::Mina, 0, &me, &[runs]), YIELDS);
    // All started: its step ends at 40, the next one's first operation gains 50 in 90.
    let last = Running { next: 2, ready_ns: 30, running: true, ..job(2, &theirs) };
    assert_eq!(decide(Policy::Mina, 0, &me, &[last]), YIELDS);
    assert_eq!(decide(Policy::Mina, 0, &me, &[Running { steps_left: 1, ..last }]), FREE);
}

#[test]
fn mina_stands_back_while_another_of_the_group_uses_the_switches() {
    let mine = steps(10, &[(0, 100)]);
    let rival = Running { running: true, in_network_now: true, next: 1, ..job(2, &mine) };
    assert_eq!(decide(Policy::Mina, 0, &job(1, &mine), &[rival]), Decision::BUSY);
}

#[test]
fn a_group_of_two_by_hand() {
    // Both start at 0; the first in the list takes the switch until 50, the other does without.
    let both = steps(10, &[(0, 100)]);
    let ran = simulate(Policy::Greedy, &[(&both, 1), (&both, 1)], Until::Steps(2));
    // 0: 0-50, 50-100. 1: 0-100 without; at 100 the first has left.
    assert_eq!((ran[0].ns, ran[1].ns), (100, 150));
    assert_eq!((ran[1].shortest_ns, ran[1].longest_ns, ran[1].in_network), (50, 100, 1));
    let ran = simulate(Policy::Greedy, &[(&both, 1), (&both, 1)], Until::Ns(120));
    assert_eq!((ran[0].steps, ran[0].ns, ran[1].steps), (2, 100, 1));
}

fn any_steps() -> impl Strategy<Value = Steps> {
    let operation = (0u64..60, 1u64..120);
    (1u64..300, prop::collection::vec(operation, 0..6)).prop_map(|(compute_ns, mut each)| {
        for i in 1..each.len() {
            each[i].0 += each[i - 1].0;
        }
        steps(compute_ns, &each)
    })
}

fn any_policy() -> impl Strategy<Value = Policy> {
    prop::sample::select(vec![Policy::None, Policy::Greedy, Policy::Mina, Policy::Plan])
}

/// What a group did, by `policy`, seen.
fn seen(policy: Policy, jobs: &[(&Steps, u32)]) -> (Vec<Ran>, Vec<Started>) {
    let mut all = Vec::new();
    let decision = |now, me: &Running<'_>, rivals: &[Running<'_>]| decide(policy, now, me, rivals);
    let ran = simulate_with(decision, jobs, Until::Steps(8), |one| all.push(one));
    (ran, all)
}

proptest! {
    #[test]
    fn nobody_uses_the_switches_with_another_and_no_step_is_out_of_bounds(
        each in prop::collection::vec((any_steps(), 1u32..9), 1..5),
        policy in any_policy(),
    ) {
        let jobs: Vec<_> = each.iter().map(|(steps, hosts)| (steps, *hosts)).collect();
        let (ran, started) = seen(policy, &jobs);
        let mut free_ns = 0;
        for one in started.iter().filter(|one| one.decision.in_network) {
            prop_assert!(one.start_ns >= free_ns, "{one:?} before {free_ns}");
            free_ns = one.end_ns;
        }
        for (ran, (steps, _)) in ran.iter().zip(&jobs) {
            prop_assert_eq!(ran.steps, 8);
            prop_assert!(ran.shortest_ns >= steps.all_ns && ran.longest_ns <= steps.none_ns);
        }
        prop_assert_eq!(seen(policy, &jobs), (ran, started));
    }

    #[test]
    fn alone_a_job_is_as_fast_as_it_can_be(one in any_steps()) {
        for policy in [Policy::Greedy, Policy::Mina, Policy::Plan] {
            let ran = simulate(policy, &[(&one, 2)], Until::Steps(5));
            prop_assert_eq!(ran[0].ns, 5 * one.all_ns);
        }
    }
}

/// My tree conflicts with all, theirs with none of each other.
struct Star {
    free_ns: u64,
}

impl Surroundings for Star {
    fn conflict(&self, a: usize, b: usize) -> bool {
        a == b
    }

    fn free_ns(&self, _: usize) -> u64 {
        self.free_ns
    }
}

#[test]
fn plan_lets_an_operation_pass_that_the_rest_of_the_step_makes_good() {
    // Mine: 0-100 without, the next is ready at 200 and ends at 250 with the switches: as if.
    let mine = steps(10, &[(0, 100), (200, 100)]);
    let theirs = steps(10, &[(30, 100)]);
    let (me, rival) = (job(1, &mine), Running { steps_left: 1, ..job(2, &theirs) });
    let me = Running { steps_left: 1, ..me };
    assert_eq!(decide(Policy::Plan, 0, &me, &[rival]), YIELDS);
    // One that comes when mine has ended is no reason.
    let later = Running { ready_ns: 50, running: true, ..rival };
    assert_eq!(decide(Policy::Plan, 0, &me, &[later]), FREE);
}

#[test]
fn plan_yields_to_two_that_use_the_switches_side_by_side() {
    // Mine gains 60 of 60, each of theirs 50 of 50, from 10 on.
    let (mine, theirs) = (steps(10, &[(0, 120)]), steps(10, &[(10, 100)]));
    let last = |running| Running { steps_left: 1, ..running };
    let me = last(job(1, &mine));
    let rivals = [last(job(2, &theirs)), last(job(3, &theirs))];
    let among = |star| decide_among(Policy::Plan, 0, &me, &rivals, &star);
    assert_eq!(decide(Policy::Plan, 0, &me, &rivals), AHEAD);
    assert_eq!(among(Star { free_ns: 0 }), YIELDS);
    // They cannot use what somebody else uses until then.
    assert_eq!(among(Star { free_ns: 11 }), AHEAD);
}

#[test]
fn plan_looks_at_the_nearest_of_many() {
    let (mine, theirs) = (steps(10, &[(0, 100), (200, 100)]), steps(10, &[(1000, 100)]));
    let near = steps(10, &[(30, 100)]);
    let me = job(1, &mine);
    let mut rivals: Vec<_> = (3..20).map(|number| job(number, &theirs)).collect();
    assert_eq!(decide(Policy::Plan, 0, &me, &rivals), FREE);
    rivals.push(job(2, &near));
    assert_eq!(decide(Policy::Plan, 0, &me, &rivals), YIELDS);
}

/// How many small groups are tried by [`policies_beside_the_optimum`].
const GROUPS: u64 = 400;

/// The gain of each policy as a share of the optimum's, host-weighted, over random small groups.
#[test]
fn policies_beside_the_optimum() {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut gained = [0u64; 3];
    let mut possible = 0;
    for _ in 0..GROUPS {
        let each: Vec<_> = (0..rng.usize(2..4))
            .map(|_| {
                let mut start_ns = 0;
                let operations: Vec<_> = (0..rng.usize(1..4))
                    .map(|_| {
                        start_ns += rng.u64(0..60);
                        (start_ns, rng.u64(1..120))
                    })
                    .collect();
                (steps(rng.u64(1..200), &operations), rng.u32(1..4))
            })
            .collect();
        let jobs: Vec<_> = each.iter().map(|(steps, hosts)| (steps, *hosts)).collect();
        let weighed = |ran: &[Ran]| -> u64 {
            ran.iter().zip(&jobs).map(|(ran, (_, hosts))| ran.ns * u64::from(*hosts)).sum()
        };
        let none: u64 =
            jobs.iter().map(|(steps, hosts)| 2 * steps.none_ns * u64::from(*hosts)).sum();
        let least = least_ns(&jobs, 2);
        possible += none - least;
        for (gained, policy) in gained.iter_mut().zip([Policy::Greedy, Policy::Mina, Policy::Plan])
        {
            let weighed = weighed(&simulate(policy, &jobs, Until::Steps(2)));
            assert!(weighed >= least, "{policy:?} is better than the best: {jobs:?}");
            *gained += none - weighed;
        }
    }
    let [greedy, mina, plan] = gained;
    assert!(plan > mina && plan > greedy, "{gained:?} of {possible}");
    assert!(plan * 100 >= possible * 93, "{gained:?} of {possible}");
}

proptest! {
    #[test]
    fn no_policy_exceeds_the_bound(
        each in prop::collection::vec((any_steps(), 1u32..9), 1..4),
        policy in any_policy(),
        weighted in any::<bool>(),
    ) {
        let jobs: Vec<_> = each.iter().map(|(steps, hosts)| (steps, *hosts)).collect();
        let longest = jobs.iter().map(|(steps, _)| steps.none_ns).max().unwrap_or(1);
        let ran = simulate(policy, &jobs, Until::Ns(500 * longest));
        if let Some(score) = score(&jobs, &ran, weighted) {
            // The last step of a job that has not ended by then leaves its time to the others.
            prop_assert!(score <= score_bound(&jobs, weighted) + 0.02, "{score}");
        }
    }
}
