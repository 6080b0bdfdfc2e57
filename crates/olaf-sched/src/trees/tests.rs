//! Forests under random commands, against the reference; and small stories.

use super::reference::{Churn, check, cluster, gained, optimum};
use super::*;
use std::collections::BTreeMap;

const POLICIES: [Policy; 9] = [
    Policy::None,
    Policy::First,
    Policy::FirstGain,
    Policy::Random,
    Policy::MINA,
    joining(Join::None),
    joining(Join::One),
    joining(Join::Several),
    Policy::EXACT,
];

const fn joining(join: Join) -> Policy {
    Policy::Gain { candidates: 64, join, price_millis: 50, depth: 3, work: 100_000 }
}

const CAPACITIES: [(Capacity, u32); 5] = [
    (Capacity::PerPort(1), 1),
    (Capacity::PerSwitch(1), 1),
    (Capacity::PerPort(2), 1),
    (Capacity::PerSwitch(2), 1),
    (Capacity::Slots(8), 5),
];

fn forest(capacity: Capacity, policy: Policy, conflicts: Conflicts) -> Forest {
    Forest::with(cluster(), Config { capacity, policy, conflicts, seed: 7 })
}

#[test]
fn whatever_happens_the_forest_is_one() {
    for policy in POLICIES {
        for (capacity, most_units) in CAPACITIES {
            for conflicts in [Conflicts::Capacity, Conflicts::Switch] {
                for seed in 0..4 {
                    let mut forest = forest(capacity, policy, conflicts);
                    let mut churn = Churn::new(&cluster(), most_units, seed);
                    let mut trees: BTreeMap<JobId, Option<Arc<Tree>>> = BTreeMap::new();
                    for _ in 0..120 {
                        let changes = churn.step(&mut forest);
                        check(&forest, &churn.arrivals);
                        // What it says is all that changed.
                        for change in changes {
                            assert!(trees.get(&change.job).is_none_or(|t| *t == change.from));
                            trees.insert(change.job, change.to);
                        }
                        for job in forest.jobs() {
                            let (tree, _) = forest.tree(job).expect("it runs");
                            assert_eq!(trees[&job].as_ref(), tree, "{policy:?} job {}", job.0);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn the_same_commands_give_the_same_trees() {
    for policy in POLICIES {
        let run = || {
            let mut forest = forest(Capacity::PerSwitch(1), policy, Conflicts::Capacity);
            let mut churn = Churn::new(&cluster(), 1, 3);
            (0..200).map(|_| churn.step(&mut forest)).collect::<Vec<_>>()
        };
        assert_eq!(run(), run());
    }
}

/// How near the best is what `gain` finds by moves from where it stood, over random churn. The
/// rates are stated in docs/design/015-trees.md; should they fall, something broke.
#[test]
fn gain_is_nearly_always_the_optimum_on_small_clusters() {
    for (capacity, most_units, rate) in [
        (Capacity::PerPort(1), 1, 970),
        (Capacity::PerSwitch(1), 1, 970),
        (Capacity::Slots(8), 5, 990),
    ] {
        let (mut solved, mut steps, mut found, mut best) = (0, 0, 0, 0);
        for seed in 0..20 {
            let mut forest = forest(capacity, Policy::GAIN, Conflicts::Capacity);
            let mut churn = Churn::new(&cluster(), most_units, seed);
            for _ in 0..50 {
                churn.step(&mut forest);
                if forest.drained().next().is_some() {
                    continue;
                }
                let (one, all) =
                    (gained(&forest, &churn.arrivals), optimum(&forest, &churn.arrivals));
                assert!(one <= all);
                (steps, solved) = (steps + 1, solved + i32::from(one == all));
                (found, best) = (found + one, best + all);
            }
        }
        let permille = solved * 1000 / steps;
        assert!(
            permille >= rate,
            "{capacity}: {solved} of {steps} solved, {found} of {best} gained"
        );
    }
}

/// A solver that tries everything.
fn brute(problem: &Problem) -> Option<Solution> {
    fn most(jobs: &[Chooser], problem: &Problem, chosen: &mut Vec<Chosen>) -> (u64, Solution) {
        let now = Solution { chosen: chosen.clone() };
        let Some((job, rest)) = jobs.split_first() else {
            return (problem.check(&now).unwrap_or(0), now);
        };
        let mut best = most(rest, problem, chosen);
        for candidate in 0..job.uses.len() {
            chosen.push(Chosen { job: job.job, candidate });
            if problem.check(&Solution { chosen: chosen.clone() }).is_ok() {
                let other = most(rest, problem, chosen);
                best = if other.0 > best.0 { other } else { best };
            }
            chosen.pop();
        }
        best
    }
    (problem.jobs.len() <= 5).then(|| most(&problem.jobs, problem, &mut Vec::new()).1)
}

#[test]
fn a_solver_makes_the_choice_the_best_there_is() {
    for (capacity, most_units) in CAPACITIES {
        let mut forest = forest(capacity, Policy::EXACT, Conflicts::Capacity);
        let mut churn = Churn::new(&cluster(), most_units, 5);
        for _ in 0..60 {
            churn.step(&mut forest);
            let problem = forest.problem();
            let now = problem.current();
            let Some(solution) = brute(&problem) else { continue };
            let best = problem.check(&solution).expect("a solution");
            assert!(best >= now);
            forest.adopt(&solution).expect("it was checked");
            check(&forest, &churn.arrivals);
            assert!(forest.problem().current() >= now);
            assert_eq!(
                brute(&forest.problem()).map(|s| s.chosen.len()),
                Some(solution.chosen.len())
            );
        }
    }
}

#[test]
fn a_solver_is_asked_where_a_job_has_no_place_of_its_own() {
    let mut forest = forest(Capacity::PerSwitch(1), Policy::EXACT, Conflicts::Capacity);
    let arrival = |job, hosts: [u32; 2], gain| Arrival {
        job: JobId(job),
        hosts: hosts.map(HostId).to_vec(),
        units: 1,
        gain,
    };
    let mut asked = 0;
    let mut solver = |problem: &Problem| {
        asked += 1;
        assert_eq!(problem.jobs.len(), 2);
        None
    };
    forest.arrive_with(vec![arrival(1, [0, 2], 5)], &mut solver);
    let said = forest.arrive_with(vec![arrival(2, [1, 3], 9)], &mut solver);
    assert_eq!(asked, 1);
    // Both need the same two switches: the job that gains more has them, the other takes turns.
    assert_eq!(said[0].reason, Reason::Shares { with: vec![JobId(1)] });
    assert!(forest.is_seated(JobId(2)) && !forest.is_seated(JobId(1)));
}

#[test]
fn what_is_no_solution_changes_nothing() {
    let mut forest = forest(Capacity::PerSwitch(1), Policy::EXACT, Conflicts::Capacity);
    for (job, hosts) in [(1, [0, 2]), (2, [1, 3])] {
        let hosts = hosts.map(HostId).to_vec();
        forest.arrive(vec![Arrival { job: JobId(job), hosts, units: 1, gain: job }]);
    }
    let tree = |forest: &Forest, job| forest.tree(JobId(job)).expect("it runs").0.cloned();
    let before = [tree(&forest, 1), tree(&forest, 2)];
    let chosen = |of: &[(u64, usize)]| Solution {
        chosen: of.iter().map(|&(job, candidate)| Chosen { job: JobId(job), candidate }).collect(),
    };
    let error = |of| forest.clone().adopt(&chosen(of)).expect_err("no solution");
    assert_eq!(error(&[(3, 0)]), SolutionError::Job(JobId(3)));
    assert_eq!(error(&[(1, 0), (1, 0)]), SolutionError::Job(JobId(1)));
    let two = Chosen { job: JobId(1), candidate: 2 };
    assert_eq!(error(&[(1, 2)]), SolutionError::Candidate(two));
    let over = SolutionError::Capacity { resource: 0, units: 2, capacity: 1 };
    assert_eq!(error(&[(1, 0), (2, 1)]), over);
    assert_eq!(over.to_string(), "2 units of resource 0, which has 1");
    forest.adopt(&chosen(&[(1, 2)])).expect_err("no solution");
    assert_eq!(before, [tree(&forest, 1), tree(&forest, 2)]);
}

#[test]
fn a_job_makes_room_for_one_that_has_no_other_place() {
    let mut forest = forest(Capacity::PerPort(1), Policy::GAIN, Conflicts::Capacity);
    let hosts = |of: [u32; 2]| of.map(HostId).to_vec();
    // Below two switches of one pod, with a root of two each: the second finds the first's taken.
    let first = Arrival { job: JobId(1), hosts: hosts([0, 2]), units: 1, gain: 5 };
    let said = forest.arrive(vec![first]);
    assert_eq!(said[0].reason, Reason::Alone);
    assert!(!said[0].is_migration());
    let other_root = forest.candidates(JobId(1))[1];
    forest.drain_switch(other_root);
    let second = Arrival { job: JobId(2), hosts: hosts([1, 3]), units: 1, gain: 9 };
    let said = forest.arrive(vec![second]);
    assert_eq!(said[0].reason, Reason::Shares { with: vec![JobId(1)] });
    assert_eq!(forest.group(JobId(1)), [JobId(1), JobId(2)]);
    // With the other root back, one of them moves; neither shares any more.
    let said = forest.undrain(other_root);
    assert_eq!((said.len(), said[0].is_migration()), (1, true));
    assert!(forest.rivals(JobId(1)).is_empty() && forest.rivals(JobId(2)).is_empty());
    // Without either root, no tree.
    let taken = forest.candidates(JobId(1))[0];
    forest.drain_switch(taken);
    forest.drain_switch(other_root);
    assert_eq!(
        forest.tree(JobId(2)).expect("it runs"),
        (None, &Reason::Cut { drained: vec![taken, other_root] })
    );
}

/// Two jobs with a switch each, and a third that needs both switches.
fn third_of_three(policy: Policy) -> (Option<SwitchId>, Reason) {
    let leaves = crate::topology::LeafSpine { leaves: 2, hosts: 4, spines: 1 };
    let topology = Arc::new(Topology::leaf_spine(leaves).expect("small"));
    let mut forest = Forest::new(topology, Capacity::PerSwitch(1), policy);
    let arrival = |job, hosts: [u32; 2], gain| Arrival {
        job: JobId(job),
        hosts: hosts.map(HostId).to_vec(),
        units: 1,
        gain,
    };
    forest.arrive(vec![arrival(1, [0, 1], 50)]);
    forest.arrive(vec![arrival(2, [4, 5], 50)]);
    forest.arrive(vec![arrival(3, [2, 6], 5)]);
    let (tree, reason) = forest.tree(JobId(3)).expect("it runs");
    (tree.map(|tree| tree.root), reason.clone())
}

#[test]
fn a_job_joins_no_group_one_group_or_several() {
    let with = vec![JobId(1), JobId(2)];
    let left_out = Reason::LeftOut { candidates: 1, with: with.clone() };
    let conflict = Reason::Conflict { candidates: 1, with: with.clone() };
    assert_eq!(third_of_three(joining(Join::None)), (None, conflict));
    assert_eq!(third_of_three(joining(Join::One)), (None, left_out.clone()));
    assert_eq!(third_of_three(Policy::MINA), (None, left_out));
    let (root, reason) = third_of_three(joining(Join::Several));
    assert!(root.is_some());
    assert_eq!(reason, Reason::Shares { with });
}

#[test]
fn a_sceptic_gives_no_tree_to_a_job_that_gains_nothing() {
    let mut forest = forest(Capacity::PerSwitch(1), Policy::FirstGain, Conflicts::Capacity);
    let arrival = |job, hosts: [u32; 2], gain| Arrival {
        job: JobId(job),
        hosts: hosts.map(HostId).to_vec(),
        units: 1,
        gain,
    };
    let said = forest.arrive(vec![arrival(1, [0, 2], 0)]);
    assert_eq!((said[0].to.is_some(), &said[0].reason), (false, &Reason::NoGain { with: vec![] }));
    let said = forest.arrive(vec![arrival(2, [1, 3], 1)]);
    assert_eq!((said[0].to.is_some(), &said[0].reason), (true, &Reason::Alone));
}

#[test]
fn a_policy_is_what_was_asked_for_and_nothing_else() {
    let resolve = |text: &str| -> Result<Policy, String> {
        let asked: Asked = serde_json::from_str(text).expect("JSON");
        asked.resolve().map_err(|error| error.to_string())
    };
    assert_eq!(resolve(r#"{"trees": "gain"}"#), Ok(Policy::GAIN));
    assert_eq!(resolve(r#"{"trees": "mina", "join": null}"#), Ok(Policy::MINA));
    let one = resolve(r#"{"trees": "gain", "join": "one", "price_millis": 50}"#);
    assert_eq!(one, Ok(joining(Join::One)));
    let alone = resolve(r#"{"trees": "mina", "join": "none", "candidates": 3}"#);
    assert!(matches!(alone, Ok(Policy::Mina { join: false, candidates: 3, .. })));
    for (text, words) in [
        (r#"{"trees": "best"}"#, "one of none, first, first-gain"),
        (r#"{"trees": "first", "join": "one"}"#, "join: trees `first` has no such parameter"),
        (r#"{"trees": "mina", "join": "several"}"#, "one sharing group at most"),
        (r#"{"trees": "mina", "price_millis": 1}"#, "migration price"),
        (r#"{"trees": "random", "candidates": 1}"#, "candidates"),
    ] {
        assert!(resolve(text).expect_err("refused").contains(words), "{text}");
    }
    // Stores of before have the older word.
    assert_eq!(serde_json::from_str::<Join>(r#""nobody""#).expect("known"), Join::None);
}

#[test]
fn who_gains_nothing_gives_way() {
    let mut forest = forest(Capacity::PerSwitch(1), Policy::GAIN, Conflicts::Capacity);
    let arrival = |job, hosts: [u32; 2], gain| Arrival {
        job: JobId(job),
        hosts: hosts.map(HostId).to_vec(),
        units: 1,
        gain,
    };
    forest.arrive(vec![arrival(1, [0, 2], 0)]);
    assert!(forest.is_seated(JobId(1)));
    let said = forest.arrive(vec![arrival(2, [1, 3], 1)]);
    assert_eq!(said[0].reason, Reason::Alone);
    assert_eq!((said[1].job, said[1].is_migration()), (JobId(1), true));
    assert_eq!(said[1].reason, Reason::NoGain { with: vec![JobId(2)] });
    let said = forest.leave(JobId(2));
    assert_eq!((said[0].job, &said[0].reason), (JobId(1), &Reason::Alone));
}

#[test]
fn units_that_add_up_beyond_32_bits_do_not_fit() {
    for policy in [Policy::First, Policy::Random, Policy::MINA, Policy::GAIN] {
        let capacity = Capacity::Slots(3_000_000_000);
        let mut forest = forest(capacity, policy, Conflicts::Capacity);
        let mut arrivals = BTreeMap::new();
        // All through the same two ToR switches.
        for job in 0..4u32 {
            let hosts = vec![HostId(job % 2), HostId(2 + job % 2)];
            let units = 2_500_000_000;
            let arrival = Arrival { job: JobId(job.into()), hosts, units, gain: u64::MAX };
            arrivals.insert(arrival.job, arrival.clone());
            forest.arrive(vec![arrival]);
            check(&forest, &arrivals);
        }
        assert_eq!(forest.jobs().filter(|&job| forest.is_seated(job)).count(), 1, "{policy:?}");
        while let Some((job, _)) = arrivals.pop_first() {
            forest.leave(job);
            check(&forest, &arrivals);
        }
    }
}
