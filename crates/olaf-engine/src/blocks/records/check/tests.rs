//! Every state of some small tables; and that planted mistakes are found.

use super::system::{Bug, Setup};
use olaf_samples::exploring::{broken, holds};

pub(super) const ONCE: &str = "a source is in a sum at most once";
pub(super) const COUNTED: &str = "a result says how many sources are in it";
pub(super) const OVER: &str = "a late piece opens no block";
pub(super) const SAME: &str = "a result that was sent does not change";
pub(super) const ENDS: &str = "timers end every block, and no record stays for ever";
pub(super) const FATES: &str = "every piece has one fate";
pub(super) const WHOLE: &str = "all results are whole";
pub(super) const PARTIAL: &str = "all results are partial";
pub(super) const EMPTY: &str = "all results are held, and there is no record";
pub(super) const STRAY: &str = "a piece may come to a block without a record that is over";

const WITNESSES: [&str; 4] = [WHOLE, PARTIAL, EMPTY, STRAY];

const ONE_BLOCK: Setup =
    Setup { sources: 2, blocks: 1, visits: 1, threads: 1, excuses: false, bug: None };
const TWO_BLOCKS: Setup = Setup { blocks: 2, ..ONE_BLOCK };

#[test]
fn one_block() {
    holds(ONE_BLOCK, &WITNESSES);
    holds(Setup { visits: 2, ..ONE_BLOCK }, &WITNESSES);
    holds(Setup { sources: 3, ..ONE_BLOCK }, &WITNESSES);
}

#[test]
fn a_permanent_straggler_and_its_return() {
    holds(Setup { excuses: true, ..ONE_BLOCK }, &WITNESSES);
}

#[test]
fn two_blocks() {
    holds(TWO_BLOCKS, &WITNESSES);
}

#[test]
fn a_planted_mistake_is_found() {
    for (bug, name) in [
        (Bug::ForgetsSources, ONCE),
        (Bug::Miscounts, COUNTED),
        (Bug::ForgetsBlocks, OVER),
        (Bug::AddsLate, SAME),
        (Bug::NeverAges, ENDS),
    ] {
        let found = broken(Setup { bug: Some(bug), ..ONE_BLOCK }, &[name]);
        assert!(found.contains(&name), "{bug:?} does not break: {name}");
    }
}

#[test]
fn larger_tables() {
    for setup in [
        Setup { visits: 2, threads: 2, ..TWO_BLOCKS },
        Setup { excuses: true, ..TWO_BLOCKS },
        Setup { sources: 3, excuses: true, visits: 2, ..ONE_BLOCK },
        Setup { sources: 3, ..TWO_BLOCKS },
        Setup { blocks: 3, ..ONE_BLOCK },
    ] {
        holds(setup, &WITNESSES);
    }
}
