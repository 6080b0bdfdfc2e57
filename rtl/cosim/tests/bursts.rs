//! The bursts of OLAF §8.1: what leaves, and when.

use olaf_cosim::bursts::{Bursts, Outcome, through_control};

/// 256 bytes take 4 cycles to come in, and 16 ns to leave at 128 Gbit/s.
fn bursts(updates: &[(u64, u32, u32)]) -> Bursts {
    Bursts {
        at_ns: updates.iter().map(|(at_ns, ..)| *at_ns).collect(),
        worker: updates.iter().map(|(_, worker, _)| *worker).collect(),
        cluster: updates.iter().map(|(.., cluster)| *cluster).collect(),
        bytes: 256,
        rate_bps: 128_000_000_000,
        merging: true,
        seed: 1,
    }
}

fn run(bursts: Bursts) -> Outcome {
    through_control(&bursts.check().expect("updates"))
        .expect("hardware that does not contradict itself")
}

#[test]
fn an_update_alone_leaves_after_it_came_in() {
    let outcome = run(bursts(&[(100, 1, 0)]));
    assert_eq!((outcome.received, outcome.aggregated, outcome.dropped), (1, 0, 0));
    // In by 116 ns (cycle 29), locked in the next cycle, gone four cycles later.
    assert_eq!(outcome.cycles, 29 + 1 + 4 + 1);
    assert_eq!(outcome.contributors, [1]);
    assert_eq!(outcome.age_ns, None, "no time has passed since the first departure");
}

#[test]
fn updates_of_a_cluster_merge_behind_the_one_that_departs() {
    let outcome = run(bursts(&[(0, 1, 0), (4, 2, 0), (8, 3, 0), (12, 3, 1)]));
    // The first waits for one cycle: the second merges with it or comes behind it.
    assert_eq!((outcome.received, outcome.aggregated, outcome.dropped), (3, 1, 0));
    assert_eq!(outcome.contributors, [1, 2, 1]);
}

#[test]
fn without_merging_each_update_leaves_alone_or_is_lost() {
    let updates: Vec<_> = (0u32..20).map(|worker| (u64::from(worker) * 4, worker % 3, 0)).collect();
    let narrow = Bursts { rate_bps: 1_000_000_000, merging: false, ..bursts(&updates) };
    let outcome = run(narrow.clone());
    // 8 slots: the departing one and seven that wait.
    assert_eq!((outcome.received, outcome.aggregated, outcome.dropped), (8, 0, 12));
    let merged = run(Bursts { merging: true, ..narrow });
    assert_eq!((merged.received, merged.aggregated, merged.dropped), (2, 18, 0));
}

#[test]
fn a_link_of_fractional_cycles_keeps_its_rate() {
    // 51.2 ns, 12.8 cycles, for each update.
    let updates: Vec<_> = (0u32..1000).map(|n| (u64::from(n) * 48, 1, n)).collect();
    let outcome = run(Bursts { rate_bps: 40_000_000_000, ..bursts(&updates) });
    assert_eq!(outcome.dropped, 1000 - outcome.received);
    let cycles = outcome.received as f64 * 12.8;
    assert!((outcome.cycles as f64 - cycles).abs() < 16.0, "{outcome:?}");
}

#[test]
fn what_cannot_be_is_refused() {
    let one = bursts(&[(5, 1, 0), (6, 1, 0)]);
    let cases = [
        Bursts { worker: vec![1], ..one.clone() },
        Bursts { at_ns: vec![6, 5], ..one.clone() },
        Bursts { rate_bps: 0, ..one.clone() },
        Bursts { bytes: 0, ..one.clone() },
        Bursts { at_ns: vec![], worker: vec![], cluster: vec![], ..one },
    ];
    assert!(cases.into_iter().all(|case| case.check().is_err()));
}
