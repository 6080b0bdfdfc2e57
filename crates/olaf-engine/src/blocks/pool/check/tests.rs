//! Every state of some small tables; and that planted mistakes are found.
//!
//! `make model-check` explores the larger ones.

use super::model::{Bug, First, Setup};
use olaf_samples::exploring::{broken, holds};

pub(super) const ONCE: &str = "every piece is summed once, and every block";
pub(super) const KEPT: &str = "no result is lost that somebody needs";
pub(super) const GETS_ON: &str = "everybody gets all results once nothing is lost";
pub(super) const FATES: &str = "every piece has one fate";
pub(super) const DONE: &str = "everybody has all results";
pub(super) const PARTIAL: &str = "everybody has all results, one of them partial";
pub(super) const AGAIN: &str = "a cell has its second block";
pub(super) const OCCUPIED: &str = "a piece is on its way whose cell has an older result";
pub(super) const ENDED: &str = "the generation has ended, and everybody has the results before";

/// Without deadlines and broadcasts no cell is ever [`OCCUPIED`].
const PLAIN: Setup = Setup {
    slots: 1,
    members: 2,
    lower: 0,
    blocks: 4,
    overdue: None,
    broadcasts: false,
    ends: false,
    bug: None,
};

#[test]
fn two_members() {
    let ends = true;
    holds(Setup { ends, ..PLAIN }, &[DONE, AGAIN, ENDED]);
    holds(Setup { slots: 2, blocks: 5, ends, ..PLAIN }, &[DONE, AGAIN, ENDED]);
}

#[test]
fn two_members_with_deadlines() {
    for first in [First::Oldest, First::Newest] {
        let overdue = Some(first);
        let setup = Setup { blocks: 3, overdue, ends: true, ..PLAIN };
        holds(setup, &[DONE, PARTIAL, AGAIN, OCCUPIED, ENDED]);
    }
}

#[test]
fn broadcasts() {
    let broadcasts = true;
    holds(Setup { broadcasts, ..PLAIN }, &[DONE, AGAIN, OCCUPIED]);
    let overdue = Some(First::Oldest);
    let setup = Setup { blocks: 3, broadcasts, overdue, ..PLAIN };
    holds(setup, &[DONE, PARTIAL, AGAIN, OCCUPIED]);
}

#[test]
fn a_lower_switch() {
    let tree = Setup { lower: 1, blocks: 3, ..PLAIN };
    holds(tree.clone(), &[DONE, AGAIN]);
    holds(Setup { overdue: Some(First::Oldest), ..tree }, &[DONE, PARTIAL, AGAIN, OCCUPIED]);
}

#[test]
fn a_planted_mistake_is_found() {
    for bug in [Bug::ClaimMore, Bug::SendAhead, Bug::OtherName] {
        let found = broken(Setup { bug: Some(bug), ..PLAIN }, &[]);
        assert!(!found.is_empty(), "{bug:?}");
    }
}

/// Minutes each, in release.
mod large {
    use super::*;

    #[test]
    #[ignore = "minutes: make model-check"]
    fn three_members() {
        let three = Setup { slots: 2, members: 3, blocks: 5, ends: true, ..PLAIN };
        holds(three.clone(), &[DONE, AGAIN, ENDED]);
        holds(Setup { broadcasts: true, ..three }, &[DONE, AGAIN, OCCUPIED, ENDED]);
    }

    #[test]
    #[ignore = "minutes: make model-check"]
    fn two_slots_with_deadlines() {
        for first in [First::Oldest, First::Newest] {
            let overdue = Some(first);
            let setup = Setup { slots: 2, blocks: 5, overdue, ends: true, ..PLAIN };
            holds(setup, &[DONE, PARTIAL, AGAIN, OCCUPIED, ENDED]);
        }
    }

    #[test]
    #[ignore = "minutes: make model-check"]
    fn a_lower_switch_of_two_members() {
        // Beside another member, and with deadlines: then the upper switch has no other member.
        holds(Setup { members: 3, lower: 2, ..PLAIN }, &[DONE, AGAIN]);
        let overdue = Some(First::Oldest);
        let setup = Setup { lower: 2, overdue, ..PLAIN };
        holds(setup, &[DONE, PARTIAL, AGAIN, OCCUPIED]);
    }
}
