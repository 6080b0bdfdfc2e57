//! Every state of some small systems; and that planted mistakes are found.

use super::system::{Bug, Setup};
use olaf_samples::exploring::{broken, holds};

pub(super) const ONCE: &str = "every worker is in every sum once";
pub(super) const GETS_ON: &str = "all sums complete once nothing is lost";
pub(super) const FATES: &str = "every piece has one fate";
pub(super) const DONE: &str = "all sums are complete";
pub(super) const FREED: &str = "all sums are complete and all aggregators free";
pub(super) const THROWN_AWAY: &str = "the last level has thrown a sum away";
pub(super) const TAKEN_ALONG: &str = "a resent piece has taken a sum along";

const ONE_LEVEL: Setup = Setup { below: 2, beside: 0, fragments: 1, bug: None };
const TWO_LEVELS: Setup = Setup { beside: 1, ..ONE_LEVEL };

const THREE_LEVELS: Setup = Setup { beside: 2, ..ONE_LEVEL };

#[test]
fn one_level() {
    holds(ONE_LEVEL, &[DONE, FREED, TAKEN_ALONG]);
    holds(Setup { below: 3, ..ONE_LEVEL }, &[DONE, FREED, TAKEN_ALONG]);
}

#[test]
fn two_fragments_in_one_cell() {
    holds(Setup { fragments: 2, ..ONE_LEVEL }, &[DONE, FREED, TAKEN_ALONG]);
}

#[test]
fn two_levels() {
    holds(TWO_LEVELS, &[DONE, FREED, TAKEN_ALONG, THROWN_AWAY]);
}

#[test]
fn three_levels() {
    holds(THREE_LEVELS, &[DONE, FREED, TAKEN_ALONG, THROWN_AWAY]);
}

#[test]
fn a_planted_mistake_is_found() {
    for bug in [Bug::AddsAgain, Bug::AddsParts, Bug::NoResend] {
        for levels in [TWO_LEVELS, THREE_LEVELS] {
            let found = broken(Setup { bug: Some(bug), ..levels }, &[]);
            assert!(found.contains(&ONCE) || found.contains(&GETS_ON), "{bug:?}: {found:?}");
        }
    }
}

#[test]
#[ignore = "minutes: make model-check"]
fn two_fragments_at_two_levels() {
    holds(Setup { fragments: 2, ..TWO_LEVELS }, &[DONE, FREED, TAKEN_ALONG, THROWN_AWAY]);
}
