//! When a worker sends what it has (OLAF §5), decided from what the reverse path tells it.
//!
//! The paper leaves corners open; these are our answers, argued in
//! `docs/design/009-transmission-control.md`:
//! - an update that is not sent is *carried*: it joins the worker's next one ([`Unsent`]);
//! - before the first feedback nothing is known of any congestion: everything is sent;
//! - of several switches on the path the most crowded one speaks: the largest N / Qmax;
//! - "time since the last acknowledgement" counts every answer that tells of the queue, to
//!   whichever of the worker's updates, or, where the switch answers clusters, to its cluster.

mod fair;
mod paper;
#[cfg(test)]
mod tests;
mod words;

pub use fair::Fair;
pub use paper::{Paper, Slope};
pub use words::{WordError, Words};

use core::time::Duration;
use olaf_engine::Instant;
use olaf_wire::QueueStatus;

/// Which control decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Control {
    /// Every update is sent at once.
    Off,
    /// OLAF §5 as written.
    Paper(Paper),
    /// Ours: one update of each cluster a round, from the worker that is first.
    Fair(Fair),
}

/// What becomes of an update that is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// It joins the worker's next update: nothing that was learned is lost.
    Carry,
    /// It is gone, and counted.
    Discard,
    /// It waits for this time and is decided on anew, unless a newer update takes its place.
    Retry(Duration),
}

/// The set-up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransmissionConfig {
    /// Which control decides.
    pub control: Control,
    /// What becomes of an update that is not sent.
    pub unsent: Unsent,
}

impl Default for TransmissionConfig {
    fn default() -> Self {
        Words::default().read().expect("the usual words mean something")
    }
}

/// What one answer tells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Feedback {
    /// The most crowded queue on the path.
    pub queue: QueueStatus,
    /// Longest time that a queue on the path takes to serve each active cluster once,
    /// nanoseconds; 0: not known.
    pub round_ns: u64,
    /// The cluster's Age-of-Model at the server, of late, nanoseconds; 0: not known.
    pub own_age_ns: u64,
    /// The same, averaged over all clusters that the server serves; 0: not known.
    pub mean_age_ns: u64,
}

/// A worker's transmission control.
#[derive(Clone, Copy, Debug)]
pub struct Transmission {
    config: TransmissionConfig,
    queue: QueueStatus,
    heard: Option<Instant>,
    fair: fair::State,
}

impl Transmission {
    /// Before any feedback.
    #[must_use]
    pub fn new(config: TransmissionConfig) -> Self {
        Self { config, queue: QueueStatus::default(), heard: None, fair: fair::State::default() }
    }

    /// How it was set up.
    #[must_use]
    pub const fn config(&self) -> &TransmissionConfig {
        &self.config
    }

    /// Returns true if it wants to hear what its switch has taken in of its cluster.
    #[must_use]
    pub const fn wants_notices(&self) -> bool {
        matches!(self.config.control, Control::Fair(_))
    }

    /// An answer came at `now`.
    pub fn hear(&mut self, now: Instant, feedback: &Feedback) {
        if feedback.queue.switches > 0 {
            self.queue = feedback.queue;
        }
        if let Control::Fair(config) = &self.config.control {
            self.fair.hear(config, now, feedback);
        }
        self.heard = Some(now);
    }

    /// Word came at `now`: the first switch has taken in an update of the cluster, generated at
    /// `newest_ns`.
    pub fn taken(&mut self, now: Instant, newest_ns: u64) {
        self.fair.taken(now, newest_ns);
    }

    /// The cluster, the switch or the server is another from here on: what was heard is not of it.
    pub fn forget(&mut self) {
        *self = Self::new(self.config);
    }

    /// Probability with which an update that was generated at `generated_ns` and is ready at
    /// `now` is sent: the paper's P_s. The two may be of different clocks; the first is that of
    /// [`Transmission::taken`].
    #[must_use]
    pub fn probability(&self, now: Instant, generated_ns: u64) -> f64 {
        let Some(heard) = self.heard else { return 1.0 };
        // OLAF §5: if every cluster has a slot, an update that waits only ages.
        if self.queue.active_clusters <= self.queue.slots {
            return 1.0;
        }
        match &self.config.control {
            Control::Off => 1.0,
            Control::Paper(paper) => paper.probability(&self.queue, now.since(heard)),
            Control::Fair(_) => self.fair.probability(now, generated_ns),
        }
    }

    /// Returns true if that update is sent; `chance` is a draw from 0 to below 1.
    #[must_use]
    pub fn decide(&self, now: Instant, generated_ns: u64, chance: f64) -> bool {
        chance < self.probability(now, generated_ns)
    }
}
