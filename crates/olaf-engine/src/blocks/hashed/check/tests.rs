//! Every state of some small systems; and that planted mistakes are found.

#![allow(clippy::disallowed_macros, reason = "a check says how much it looked at")]

extern crate std;

use super::system::{Bug, Setup};
use stateright::{Checker, Expectation, HasDiscoveries, Model};

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

/// Explores all states: whatever must always hold does, and these witnesses are there.
fn holds(setup: Setup, witnesses: &[&str]) {
    let checker = setup.checker().threads(2).spawn_bfs().join();
    let found = checker.discoveries();
    for property in checker.model().properties() {
        let path = found.get(property.name);
        match property.expectation {
            Expectation::Always => {
                let actions = path.map(|path| path.clone().into_actions());
                assert!(actions.is_none(), "{}: {actions:#?}", property.name);
            }
            _ => assert!(
                path.is_some() || !witnesses.contains(&property.name),
                "never seen: {}",
                property.name
            ),
        }
    }
    let (states, depth) = (checker.unique_state_count(), checker.max_depth());
    std::eprintln!("{:?}: {states} states, depth {depth}", checker.model());
}

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
            let setup = Setup { bug: Some(bug), ..levels };
            let finish = HasDiscoveries::AnyFailures;
            let checker = setup.checker().threads(2).finish_when(finish).spawn_bfs().join();
            let found = checker.discoveries();
            assert!([ONCE, GETS_ON].iter().any(|name| found.contains_key(name)), "{bug:?}");
        }
    }
}

#[test]
#[ignore = "minutes: make model-check"]
fn two_fragments_at_two_levels() {
    holds(Setup { fragments: 2, ..TWO_LEVELS }, &[DONE, FREED, TAKEN_ALONG, THROWN_AWAY]);
}
