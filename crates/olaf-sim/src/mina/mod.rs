//! MINA's jobs in virtual time, at the level of all-reduces (MINA §II-C, §V).
//!
//! What this module is: time. It says when an all-reduce starts and ends and what it holds
//! meanwhile; where a job runs, what tree it has and which of its all-reduces use it is asked of
//! `olaf_sched`, the code that a real cluster asks. At one instant there are three phases, and in
//! each phase jobs go in the order of the list:
//!
//! 1. what ends: operations, steps, jobs; what they held is free;
//! 2. the cluster changes: jobs that ended leave, those at the head of the line are placed and
//!    arrive together (or one end after the other, [`Ties`]), trees change;
//! 3. what starts: operations, each with a decision on the state as the one before it left it.
//!
//! An operation takes at least a nanosecond, so an instant has each phase once. A job whose tree
//! conflicts with no other (or that has none) is not taken operation by operation: its end is
//! computed, and if its surroundings change before, it is taken forward to that instant by whole
//! steps. `reference.rs` does without this, and comes to the same to the bit.
//!
//! What it is not: it knows no clock; the driver passes one if it wants to know what the decisions
//! cost.

mod around;
mod changes;
mod course;
mod outcome;
#[cfg(test)]
mod reference;
mod running;
mod setting;
mod sharers;
mod simulation;
#[cfg(test)]
mod tests;

pub use outcome::{Costs, JobLine, JobOutcome, Outcome, Timeline, TreeSpan, Use};
pub use setting::{Job, MOST_JOBS, Setting, SettingError, Shape, Ties, Window};
pub use simulation::{Advanced, Clock, Simulation};
