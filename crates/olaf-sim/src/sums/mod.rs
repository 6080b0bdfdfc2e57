//! Jobs that sum their gradients, iteration by iteration, in virtual time (`olaf simulate sums`).
//!
//! Workers, switches and servers of `reduce`, iSwitch, Trio-ML and ATP are the real state machines. Beside them run
//! three baselines with the same contract, [`Collective`](olaf_host::collective::Collective): parameter servers that
//! wait for whole vectors, a ring, and an ideal network. All of them send over the same links.
//!
//! | file | what it does |
//! |---|---|
//! | `spec`, `check` | a scenario: data, checked once |
//! | `link`, `fabric` | links with a queue, and the one order of events |
//! | `party`, `placing` | the engines, and how they are placed and joined |
//! | `baseline` | parameter server and ring |
//! | `work` | how long each worker computes |
//! | `job`, `running` | iterations of a job; all jobs together |
//! | `outcome` | what came of it |
//!
//! [`Network`](crate::Network) has one link between two parties, whose queue has no end, and lets parties die. Here a
//! datagram may cross several links, which jobs share, and links drop and mark what waits for too long.

mod baseline;
mod check;
mod fabric;
mod job;
mod link;
mod outcome;
mod party;
mod placing;
mod running;
mod spec;
#[cfg(test)]
mod tests;
mod work;

pub use outcome::{IterationOutcome, JobOutcome, LinkOutcome, Outcome};
pub use running::run;
pub use spec::{BurstSpec, Engine, JobSpec, NetworkSpec, Scenario, StragglerSpec, SwitchSpecs};
