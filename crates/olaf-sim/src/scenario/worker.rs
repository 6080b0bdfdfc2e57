//! A worker of a scenario: what it holds, and whether it sends.

use super::hop::Packet;
use crate::chance::Chance;
use core::time::Duration;
use olaf_engine::Instant;
use olaf_host::age::AgeOfModel;
use olaf_host::transmission::{Transmission, TransmissionConfig, Unsent};

pub(super) struct Worker {
    pub(super) id: u32,
    pub(super) cluster: u32,
    pub(super) switch: usize,
    pub(super) transmission: Transmission,
    /// Age of the newest of its own contributions at the server.
    pub(super) age: AgeOfModel,
    /// Updates given up.
    pub(super) discarded: u64,
    bytes: u32,
    chance: Chance,
    sequence: u32,
    held: Option<Held>,
    retry_planned: bool,
    /// Sum of P_s over all decisions, and how many.
    probability: (f64, u64),
}

/// Updates that are not sent yet.
#[derive(Clone, Copy)]
struct Held {
    count: u32,
    generated_ns: (u64, u64),
}

/// What a worker decided.
pub(super) enum Decision {
    Send(Packet),
    Hold,
    /// Hold, and decide anew so long from now.
    RetryAfter(Duration),
}

impl Worker {
    pub(super) fn new(
        place: (u32, u32, usize),
        bytes: u32,
        config: TransmissionConfig,
        chance: Chance,
    ) -> Self {
        let (id, cluster, switch) = place;
        Self {
            id,
            cluster,
            switch,
            transmission: Transmission::new(config),
            age: AgeOfModel::new(),
            discarded: 0,
            bytes,
            chance,
            sequence: 0,
            held: None,
            retry_planned: false,
            probability: (0.0, 0),
        }
    }

    /// One more update is ready.
    pub(super) fn generate(&mut self, now: Instant) -> Decision {
        let new = Held { count: 1, generated_ns: (now.0, now.0) };
        self.held = Some(match (self.held, self.transmission.config().unsent) {
            (Some(held), Unsent::Carry) => {
                Held { count: held.count + 1, generated_ns: (held.generated_ns.0, now.0) }
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

    fn consider(&mut self, now: Instant) -> Decision {
        let Some(held) = self.held else { return Decision::Hold };
        let newest_ns = held.generated_ns.1;
        self.probability.0 += self.transmission.probability(now, newest_ns);
        self.probability.1 += 1;
        let draw = self.chance.fraction();
        if self.transmission.decide(now, newest_ns, draw) {
            self.held = None;
            self.sequence += 1;
            return Decision::Send(self.packet(held));
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

    fn packet(&self, held: Held) -> Packet {
        Packet {
            cluster: self.cluster,
            worker: self.id,
            sequence: self.sequence,
            contributors: held.count,
            generated_ns: held.generated_ns,
            hops: 0,
            bytes: self.bytes,
            holds: vec![(self.id, held.generated_ns.1)],
            met: Vec::new(),
        }
    }

    /// Updates that are not sent yet.
    pub(super) fn held(&self) -> u64 {
        self.held.map_or(0, |held| u64::from(held.count))
    }

    /// Sum of P_s over all decisions, and how many.
    pub(super) const fn probability(&self) -> (f64, u64) {
        self.probability
    }
}
