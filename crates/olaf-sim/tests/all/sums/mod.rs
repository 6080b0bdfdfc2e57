//! One suite for the four protocols that sum: what each of them promises its workers, whatever happens.
//!
//! | file | what happens |
//! |---|---|
//! | `faults` | the network loses, repeats, delays and reorders datagrams |
//! | `membership` | workers and switches die, come back, come late, give up and leave |
//! | `rows` | the rows of `docs/design/041-one-membership.md`, and how a protocol differs from them today |
//! | `silence` | workers are silent for less, and for more, than the default |
//! | `programs` | two programs, or two workers, want one job or one rank |
//! | `calls` | workers call different operations under one number |
//! | `chaos` | deaths and restarts at random times |
//! | `uneven` | workers are never at the same operation, and generations end all the time |
//! | `trees` | switches are below other switches |
//! | `fall_back` | jobs of `reduce` with two switches, whose first one fails, or seems to |
//! | `forged` | a stranger sends in a worker's name |
//!
//! A [`Protocol`] says how to make its parties; a [`Job`](job::Job) of them runs in virtual time. Everywhere the
//! same holds: a sum that a worker gets is the exact sum of all workers, and otherwise the operation fails with a
//! reason.

mod calls;
mod chaos;
mod fall_back;
mod faults;
mod forged;
pub(crate) mod job;
mod membership;
mod programs;
pub(crate) mod protocol;
pub(crate) mod protocols;
mod rows;
mod silence;
mod trees;
mod uneven;

pub(crate) use protocol::Protocol;

/// Makes a test of each function for each protocol, named by both.
macro_rules! for_all_protocols {
    ($($(#[$attribute:meta])* $name:ident),* $(,)?) => {
        $crate::sums::of_one!(reduce, Reduce, [$($(#[$attribute])* $name),*]);
        $crate::sums::of_one!(iswitch, Iswitch, [$($(#[$attribute])* $name),*]);
        $crate::sums::of_one!(trio, Trio, [$($(#[$attribute])* $name),*]);
        $crate::sums::of_one!(atp, Atp, [$($(#[$attribute])* $name),*]);
    };
}

macro_rules! of_one {
    ($module:ident, $protocol:ident, [$($(#[$attribute:meta])* $name:ident),*]) => {
        mod $module {
            $(#[test]
            $(#[$attribute])*
            fn $name() {
                super::$name::<$crate::sums::protocols::$protocol>();
            })*
        }
    };
}

pub(crate) use {for_all_protocols, of_one};
