//! `olaf_queue_control` decides as the engine's queue does, in every cycle.

#[cfg(feature = "long")]
use olaf_cosim::control::BROKEN;
use olaf_cosim::control::{Counts, EIGHT_SLOTS, THREE_SLOTS, compare};
use olaf_cosim::{Mismatch, Run};

fn printed(what: &str, found: Result<Counts, Mismatch>) -> Counts {
    let counts = found.unwrap_or_else(|mismatch| panic!("{what}: {mismatch}"));
    println!("{what}: {counts:?}");
    counts
}

/// The run was not vacuous: each fate and each rare instant occurred.
fn all_occurred(counts: &Counts, with_gate: bool) {
    let Counts { appended, merged, replaced, displaced, filtered, dropped, rejected, .. } = *counts;
    let rare = [counts.departed, counts.appended_at_an_end, counts.behind_the_head, counts.ties];
    let fates = [appended, merged, replaced, displaced, dropped, rejected];
    assert!(fates.iter().chain(&rare).all(|count| *count > 0), "{counts:?}");
    assert_eq!(filtered > 0, with_gate, "{counts:?}");
}

#[test]
fn eight_slots_without_a_gate() {
    let run = Run::from_environment(1, 200_000);
    all_occurred(&printed("8 slots", compare(&EIGHT_SLOTS, 8, None, run)), false);
}

#[test]
fn eight_slots_with_a_gate() {
    let run = Run::from_environment(2, 200_000);
    let counts = printed("8 slots, gate 5", compare(&EIGHT_SLOTS, 8, Some(5.0), run));
    all_occurred(&counts, true);
}

#[test]
fn three_slots() {
    let run = Run::from_environment(3, 200_000);
    let counts = printed("3 slots, gate 0", compare(&THREE_SLOTS, 3, Some(0.0), run));
    all_occurred(&counts, true);
}

#[cfg(feature = "long")]
#[test]
fn a_planted_mistake_is_found() {
    let run = Run { seed: 1, cycles: 200_000 };
    let found = compare(&BROKEN, 8, None, run).expect_err("a merge must not be replaceable");
    assert!(found.what.contains("fate"), "{found}");
    // The same seed finds it in the same cycle, as the text of a mismatch promises.
    let again = Run { cycles: found.cycle + 1, ..run };
    assert_eq!(compare(&BROKEN, 8, None, again).expect_err("again").cycle, found.cycle);
    assert!(compare(&BROKEN, 8, None, Run { cycles: found.cycle, ..run }).is_ok());
}
