//! The figures of the hardware: what leaves, and when.

use olaf_cosim::bursts::{Bursts, Outcome, Updates, measure, through_queue};

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
    through_queue(&bursts.check().expect("updates")).expect("hardware that does not hang")
}

#[test]
fn an_update_alone_leaves_after_it_came_in() {
    let outcome = run(bursts(&[(100, 1, 0)]));
    assert_eq!((outcome.received, outcome.aggregated, outcome.dropped), (1, 0, 0));
    let alone = measure(Updates { bytes: 256, updates: 2, seed: 1 }).expect("an update");
    // It comes in from cycle 25 on. The link takes each beat a cycle after it is offered.
    assert_eq!(outcome.cycles, 25 + alone.stored_and_sent + 1);
    assert_eq!(outcome.contributors, [1]);
    assert_eq!(outcome.age_ns, None, "no time has passed since the first departure");
}

#[test]
fn updates_of_a_cluster_merge_behind_the_one_that_departs() {
    let outcome = run(bursts(&[(0, 1, 0), (4, 2, 0), (8, 3, 0), (12, 3, 1)]));
    assert_eq!(outcome.received + outcome.aggregated, 4);
    assert_eq!(outcome.contributors.iter().sum::<u32>(), 4);
    assert!(outcome.aggregated > 0 && outcome.dropped == 0, "{outcome:?}");
}

#[test]
fn without_merging_each_update_leaves_alone_or_is_lost() {
    let updates: Vec<_> = (0u32..40).map(|worker| (u64::from(worker) * 4, worker % 3, 0)).collect();
    let narrow = Bursts { rate_bps: 1_000_000_000, merging: false, ..bursts(&updates) };
    let outcome = run(narrow.clone());
    // 8 slots, and beats of one more entry behind them: see `olaf_departures`.
    assert_eq!((outcome.received, outcome.aggregated, outcome.dropped), (8, 0, 32));
    let merged = run(Bursts { merging: true, ..narrow });
    assert_eq!((merged.received, merged.aggregated, merged.dropped), (2, 38, 0));
}

#[test]
fn a_link_of_fractional_cycles_keeps_its_rate() {
    // 51.2 ns, 12.8 cycles, for each update.
    let updates: Vec<_> = (0u32..1000).map(|n| (u64::from(n) * 48, 1, n)).collect();
    let outcome = run(Bursts { rate_bps: 40_000_000_000, ..bursts(&updates) });
    assert_eq!(outcome.dropped, 1000 - outcome.received);
    let cycles = outcome.received as f64 * 12.8;
    assert!((outcome.cycles as f64 - cycles).abs() < 64.0, "{outcome:?}");
}

#[test]
fn what_cannot_be_is_refused() {
    let one = bursts(&[(5, 1, 0), (6, 1, 0)]);
    let cases = [
        Bursts { worker: vec![1], ..one.clone() },
        Bursts { at_ns: vec![6, 5], ..one.clone() },
        Bursts { rate_bps: 0, ..one.clone() },
        Bursts { bytes: 260, ..one.clone() },
        Bursts { bytes: 254, ..one.clone() },
        Bursts { at_ns: vec![], worker: vec![], cluster: vec![], ..one },
    ];
    assert!(cases.into_iter().all(|case| case.check().is_err()));
    assert!(measure(Updates { bytes: 9040, updates: 2, seed: 1 }).is_err());
    assert!(measure(Updates { bytes: 256, updates: 0, seed: 1 }).is_err());
}

#[test]
fn updates_that_merge_come_in_at_one_beat_a_cycle() {
    for (bytes, beats) in [(128, 2), (192, 3), (256, 4), (320, 5), (1500, 24), (9036, 142)] {
        let seen = measure(Updates { bytes, updates: 50, seed: 3 }).expect("updates");
        assert_eq!((seen.beats, seen.one_flow, seen.many_flows), (beats, 50 * beats, 50 * beats));
        assert!(seen.last_in_to_first_out <= 12, "{seen:?}");
        // A short entry waits for its division.
        assert!((beats..beats + 40).contains(&seen.merged_departure), "{seen:?}");
    }
}
