//! `iswitch_accelerator` does with whole datagrams what the engine's switch does, bit for bit.

#[cfg(feature = "long")]
use olaf_cosim::accelerator::BROKEN;
use olaf_cosim::accelerator::{Accelerator, Counters, FOUR_PORTS, NAMES, THREE_PORTS, compare};
use olaf_cosim::{Mismatch, Run};

const FOUR: Accelerator =
    Accelerator { shim: &FOUR_PORTS, ports: 4, slots: 4, lanes: 8, beats: 4, proofs: false };
#[cfg(feature = "long")]
const WRONG: Accelerator = Accelerator { shim: &BROKEN, ..FOUR };
const THREE: Accelerator =
    Accelerator { shim: &THREE_PORTS, ports: 3, slots: 2, lanes: 16, beats: 3, proofs: false };

/// The run was not vacuous: every counter has counted.
fn all_counted(what: &str, found: Result<Counters, Mismatch>) {
    let counters = found.unwrap_or_else(|mismatch| panic!("{what}: {mismatch}"));
    let named: Vec<_> = NAMES.iter().zip(counters).collect();
    println!("{what}: {named:?}");
    assert_eq!(
        counters[0],
        counters[1..22].iter().sum::<u64>(),
        "{what}: each datagram has one fate"
    );
    for (name, counter) in named {
        assert!(counter > 0, "{what}: no {name}");
    }
}

#[test]
fn four_ports_of_256_bit() {
    all_counted("4 ports", compare(FOUR, Run::from_environment(1, 100_000)));
}

#[test]
fn three_ports_of_512_bit() {
    all_counted("3 ports", compare(THREE, Run::from_environment(2, 100_000)));
}

#[test]
fn where_addresses_have_to_be_proved_only_a_confirmed_join_counts() {
    let four = Accelerator { proofs: true, ..FOUR };
    all_counted("4 ports, proofs", compare(four, Run::from_environment(3, 100_000)));
    let three = Accelerator { proofs: true, ..THREE };
    all_counted("3 ports, proofs", compare(three, Run::from_environment(4, 100_000)));
}

#[cfg(feature = "long")]
#[test]
fn a_planted_mistake_is_found() {
    let run = Run { seed: 1, cycles: 100_000 };
    let found = compare(WRONG, run).expect_err("a sum that is not forwarded is lost");
    println!("{found}");
    assert!(found.what.contains("bits of float"), "{found}");
    let again = Run { cycles: found.cycle + 1, ..run };
    assert_eq!(compare(WRONG, again).expect_err("the same seed").cycle, found.cycle);
}
