//! How long until the server has a given number of updates of each worker, over one queue (OLAF
//! §8.2).
//!
//! Workers push when recorded ones did: each follows the intervals of a recorded worker from a
//! drawn place in them, round and round. What a full queue drops is sent again after a while, in
//! order, by a worker that has one update under way at a time; or it is gone. The queue and the
//! pacer are those of the real switch.

mod run;
mod spec;

pub use spec::Delivery;

use crate::study::scenario::SpecError;
use serde::Serialize;

/// What a delivery came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// When the last worker had the wanted number delivered; none: not within the limit.
    pub done_ns: Option<u64>,
    /// When each worker had, in order of time; shorter than the workers where some had not.
    pub worker_done_ns: Vec<u64>,
    /// Updates that workers had ready.
    pub generated: u64,
    /// Datagrams that workers sent, those sent again among them.
    pub sent: u64,
    /// Datagrams sent again.
    pub sent_again: u64,
    /// Contributions that reached the server, each once.
    pub delivered: u64,
    /// Contributions that it had already: they were sent again too soon.
    pub repeated: u64,
    /// Datagrams that reached the server.
    pub departures: u64,
    /// Contributions that met a full queue.
    pub dropped: u64,
    /// Contributions that gave way to a newer one of the same worker.
    pub replaced: u64,
    /// Contributions still in the queue at the end.
    pub waiting: u64,
}

/// Runs a delivery to its end.
///
/// # Errors
/// What cannot be in it.
pub fn run(delivery: &Delivery) -> Result<Outcome, SpecError> {
    delivery.check()?;
    Ok(run::Run::new(delivery).until_done())
}
