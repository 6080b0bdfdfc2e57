//! Forests under random commands, against the reference; and small stories.

use super::reference::{Churn, check, cluster, gained, optimum};
use super::*;
use std::collections::BTreeMap;

const POLICIES: [Policy; 5] =
    [Policy::None, Policy::First, Policy::Random, Policy::MINA, Policy::GAIN];

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
        (Capacity::Slots(8), 5, 800),
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
