//! What a worker does with updates that are ready: sends, carries, retries or gives up.

use crate::chance::Chance;
use core::time::Duration;
use olaf_engine::Instant;
use olaf_host::transmission::{Feedback, Transmission, TransmissionConfig, Unsent};

/// A worker's end of a scenario, without its link.
#[derive(Debug)]
pub(super) struct Sender {
    transmission: Transmission,
    chance: Chance,
    held: Option<Bundle>,
    retry_planned: bool,
    discarded: u64,
    /// Sum of P_s over all decisions, and how many.
    probability: (f64, u64),
}

/// Updates that are sent as one, or wait for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bundle {
    /// How many.
    pub(super) count: u32,
    /// Generation times of the oldest and the newest, nanoseconds.
    pub(super) generated_ns: (u64, u64),
}

/// What a worker decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Send these, as one datagram.
    Send(Bundle),
    /// Nothing is sent now.
    Hold,
    /// Nothing is sent now; call [`Sender::retry`] after this time.
    RetryAfter(Duration),
}

impl Sender {
    /// The sender of a worker, counted through all groups; its draws follow from the seed.
    pub(super) fn new(seed: u64, worker: u32, config: TransmissionConfig) -> Self {
        Self {
            transmission: Transmission::new(config),
            chance: Chance::new(seed, (u64::from(worker) << 1) | 1),
            held: None,
            retry_planned: false,
            discarded: 0,
            probability: (0.0, 0),
        }
    }

    /// One more update is ready.
    pub(super) fn ready(&mut self, now: Instant) -> Decision {
        let new = Bundle { count: 1, generated_ns: (now.0, now.0) };
        self.held = Some(match (self.held, self.transmission.config().unsent) {
            (Some(held), Unsent::Carry) => {
                Bundle { count: held.count + 1, generated_ns: (held.generated_ns.0, now.0) }
            }
            (Some(held), Unsent::Discard | Unsent::Retry(_)) => {
                self.discarded += u64::from(held.count);
                new
            }
            (None, _) => new,
        });
        self.consider(now)
    }

    /// The time of another try has come.
    pub(super) fn retry(&mut self, now: Instant) -> Decision {
        self.retry_planned = false;
        self.consider(now)
    }

    /// An answer came.
    pub(super) fn hear(&mut self, now: Instant, feedback: &Feedback) {
        self.transmission.hear(now, feedback);
    }

    /// The first switch has taken in an update of the cluster, generated at `newest_ns`.
    pub(super) fn taken(&mut self, now: Instant, newest_ns: u64) {
        self.transmission.taken(now, newest_ns);
    }

    /// Updates given up.
    pub(super) const fn discarded(&self) -> u64 {
        self.discarded
    }

    /// Updates that are not sent yet.
    pub(super) fn held(&self) -> u64 {
        self.held.map_or(0, |held| u64::from(held.count))
    }

    /// Sum of P_s over all decisions, and how many.
    pub(super) const fn probability(&self) -> (f64, u64) {
        self.probability
    }

    fn consider(&mut self, now: Instant) -> Decision {
        let Some(held) = self.held else { return Decision::Hold };
        let newest_ns = held.generated_ns.1;
        self.probability.0 += self.transmission.probability(now, newest_ns);
        self.probability.1 += 1;
        let draw = self.chance.fraction();
        if self.transmission.decide(now, newest_ns, draw) {
            self.held = None;
            return Decision::Send(held);
        }
        match self.transmission.config().unsent {
            Unsent::Discard => {
                self.held = None;
                self.discarded += u64::from(held.count);
                Decision::Hold
            }
            Unsent::Retry(after) if !self.retry_planned => {
                self.retry_planned = true;
                Decision::RetryAfter(after)
            }
            Unsent::Retry(_) | Unsent::Carry => Decision::Hold,
        }
    }
}
