//! Every state of a small system, for the model checks of the other crates.
//!
//! The quick checks run in `make test-slow`; `make model-check` explores the larger systems.

#![allow(clippy::disallowed_macros, clippy::print_stderr, reason = "a check says how much it saw")]

use stateright::{Checker, Expectation, HasDiscoveries, Model};
use std::fmt::Debug;
use std::hash::Hash;
use std::time::Instant;

/// Explores all states with two threads.
///
/// # Panics
/// When a property that must always hold does not (with the actions that lead there), or when no state shows one of
/// the `witnesses`: properties of which the check is to see an example.
pub fn holds<M>(setup: M, witnesses: &[&str])
where
    M: Model<
            State: Clone + Debug + Hash + PartialEq + Send + Sync,
            Action: Clone + Debug + PartialEq,
        > + Debug
        + Send
        + Sync
        + 'static,
{
    let began = Instant::now();
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
    let known: Vec<_> = checker.model().properties().iter().map(|property| property.name).collect();
    let unknown: Vec<_> = witnesses.iter().filter(|name| !known.contains(name)).collect();
    assert!(unknown.is_empty(), "the model has no such property: {unknown:?}");
    let (states, depth) = (checker.unique_state_count(), checker.max_depth());
    eprintln!("{:?}: {states} states, depth {depth}, {:.1?}", checker.model(), began.elapsed());
}

/// Explores until one of the `wanted` properties fails that must always hold; an empty list: any of them. Returns the
/// names of all that were seen to fail, in the order of the model's list.
pub fn broken<M>(setup: M, wanted: &[&'static str]) -> Vec<&'static str>
where
    M: Model<
            State: Clone + Debug + Hash + PartialEq + Send + Sync,
            Action: Clone + Debug + PartialEq,
        > + Send
        + Sync
        + 'static,
{
    let finish = if wanted.is_empty() {
        HasDiscoveries::AnyFailures
    } else {
        HasDiscoveries::AnyOf(wanted.iter().copied().collect())
    };
    let checker = setup.checker().threads(2).finish_when(finish).spawn_bfs().join();
    let found = checker.discoveries();
    let properties = checker.model().properties().into_iter();
    let failed = properties.filter(|property| {
        property.expectation == Expectation::Always && found.contains_key(property.name)
    });
    failed.map(|property| property.name).collect()
}
