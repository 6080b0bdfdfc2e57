//! `olaf_queue` does with whole frames what the engine's queue does, bit for bit.

#[cfg(feature = "long")]
use olaf_cosim::frames::BROKEN;
use olaf_cosim::frames::{Counters, EIGHT_SLOTS, NAMES, Queue, THREE_SLOTS, compare};
use olaf_cosim::{Mismatch, Run};

const EIGHT: Queue = Queue { shim: &EIGHT_SLOTS, slots: 8, longest: 256, gate: true };
#[cfg(feature = "long")]
const WRONG: Queue = Queue { shim: &BROKEN, ..EIGHT };
const THREE: Queue = Queue { shim: &THREE_SLOTS, slots: 3, longest: 413, gate: false };

/// The run was not vacuous: every counter has counted.
fn all_counted(what: &str, gate: bool, found: Result<Counters, Mismatch>) {
    let counters = found.unwrap_or_else(|mismatch| panic!("{what}: {mismatch}"));
    let named: Vec<_> = NAMES.iter().zip(counters).collect();
    println!("{what}: {named:?}");
    for (name, counter) in named {
        assert_eq!(counter > 0, gate || !name.contains("filtered"), "{what}: {name}");
    }
}

#[test]
fn eight_slots_with_a_gate() {
    all_counted("8 slots", true, compare(EIGHT, Run::from_environment(1, 200_000)));
}

#[test]
fn three_slots_in_block_ram() {
    all_counted("3 slots", false, compare(THREE, Run::from_environment(2, 200_000)));
}

#[cfg(feature = "long")]
#[test]
fn a_planted_mistake_is_found() {
    let run = Run { seed: 1, cycles: 200_000 };
    let found = compare(WRONG, run).expect_err("a sum that is not forwarded is lost");
    println!("{}", found.to_string().split(['\n', '[']).next().unwrap_or_default());
    assert!(found.what.contains("an update leaves: byte"), "{found}");
    let again = Run { cycles: found.cycle + 1, ..run };
    assert_eq!(compare(WRONG, again).expect_err("the same seed").cycle, found.cycle);
}
