//! Every state of some small clusters; and that planted mistakes are found.
//!
//! The quick ones run with every `cargo test`; `make model-check` explores the large ones.

use super::cluster::Setup;
use crate::protocol::timing::Bug;
use olaf_samples::exploring::{broken, holds};

const OVER: &str = "no resource is used beyond its units";
const MIXED: &str = "no job mixes modes within an all-reduce";
const STUCK: &str = "everybody gets on once the faults end";
const USED: &str = "a grant is used";
const HANDED: &str = "it is handed on";
const RETRIED: &str = "a round is aborted and tried again";
const GIVEN_ON: &str = "a dead job's tree is torn down and given on";
const TOLD: &str = "a host in doubt hears the outcome of another";

#[test]
fn one_job_of_two_hosts() {
    let setup = Setup { jobs: vec![2], rounds: 2, knows: true, rest: false, ..Setup::default() };
    holds(setup, &[USED, RETRIED, TOLD]);
}

#[test]
fn two_jobs_of_one_host() {
    holds(Setup { jobs: vec![1, 1], rounds: 2, ..Setup::default() }, &[USED, HANDED]);
}

#[test]
fn a_planted_mistake_is_found() {
    let two = Setup { jobs: vec![2], rounds: 2, knows: true, rest: false, ..Setup::default() };
    let rest = Setup { rest: true, operations: 1, ..two.clone() };
    let shared =
        Setup { jobs: vec![1, 1], rounds: 2, knows: true, rest: false, ..Setup::default() };
    let again = Setup { epochs: 2, rounds: 1, operations: 1, ..shared.clone() };
    let in_doubt = Setup { epochs: 2, rounds: 1, operations: 1, ..two.clone() };
    for (bug, setup, what) in [
        (Bug::SkipIndices, &two, MIXED),
        (Bug::AbortAlone, &two, MIXED),
        (Bug::TakeLate, &two, MIXED),
        (Bug::SkipLock, &two, MIXED),
        (Bug::ForgetDoubt, &in_doubt, MIXED),
        (Bug::SkipFence, &shared, OVER),
        (Bug::SkipRelease, &shared, OVER),
        (Bug::SkipAsking, &again, OVER),
        (Bug::NeverAsk, &rest, STUCK),
    ] {
        let found = broken(Setup { bug, ..setup.clone() }, &[]);
        assert_eq!(found, [what], "{bug:?}");
    }
}

/// Minutes each, in release.
mod large {
    use super::*;

    #[test]
    #[ignore = "minutes: make model-check"]
    fn two_jobs_of_two_hosts() {
        let jobs = vec![2, 2];
        let setup = Setup {
            jobs,
            rounds: 2,
            knows: true,
            rest: false,
            witnesses: false,
            ..Setup::default()
        };
        holds(setup, &[USED, HANDED, TOLD]);
    }

    #[test]
    #[ignore = "minutes: make model-check"]
    fn a_controller_that_is_replaced_while_it_is_at_work() {
        let replaced = |jobs| Setup {
            jobs,
            operations: 1,
            rounds: 1,
            epochs: 2,
            knows: true,
            rest: false,
            witnesses: false,
            ..Setup::default()
        };
        holds(replaced(vec![2]), &[USED, TOLD]);
        holds(replaced(vec![1, 1]), &[USED, HANDED]);
    }

    #[test]
    #[ignore = "minutes: make model-check"]
    fn three_jobs() {
        let jobs = vec![1, 1, 1];
        let setup = Setup {
            jobs,
            rounds: 2,
            knows: true,
            rest: false,
            witnesses: true,
            ..Setup::default()
        };
        holds(setup, &[USED, HANDED, GIVEN_ON]);
    }

    #[test]
    #[ignore = "minutes: make model-check"]
    fn everybody_gets_on() {
        let setup =
            Setup { jobs: vec![2, 1], operations: 1, rounds: 2, knows: true, ..Setup::default() };
        holds(setup, &[USED, RETRIED, TOLD]);
    }
}
