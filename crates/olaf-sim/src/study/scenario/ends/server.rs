//! The server of a scenario that is an engine: it counts ages and answers after a time.

use crate::study::scenario::hop::Packet;
use crate::study::scenario::server::Server;
use crate::study::scenario::spec::{Scenario, SpecError};
use core::time::Duration;
use olaf_engine::report::{Report, walk};
use olaf_engine::{
    Contribution, Engine, Event, Instant, PeerId, PortId, Receivers, Refused, Session, Source,
    TrafficClass, Transmit, Verdict, Why, WorkerId,
};
use olaf_wire::{Address, Ages, Answer, Ends, QueueStatus, Update};
use serde::Serialize;
use std::collections::VecDeque;

/// A worker's update that met others on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contributor {
    /// The worker, counted through all groups.
    pub worker: u32,
    /// Generation time of the newest contribution in it, nanoseconds.
    pub generated_ns: u64,
    /// It is in the sum: it was neither replaced nor filtered.
    pub summed: bool,
}

/// The server. Its answers leave `answers.delay_ns` after the delivery.
pub struct ServerEnd {
    pub(super) server: Server,
    delay: Duration,
    /// What met in the datagram that comes next.
    met: Option<Vec<Contributor>>,
    /// Deliveries that are not answered yet, the oldest first: when each is, and to whom.
    due: VecDeque<(Instant, Update, Receivers)>,
    /// Version of the model: one more with each delivery.
    version: u32,
    refused: u64,
}

#[derive(Serialize)]
struct Statistics {
    packets: u32,
    contributions: u64,
    refused: u64,
}

impl ServerEnd {
    /// The server of a scenario.
    ///
    /// # Errors
    /// The scenario cannot be.
    pub fn new(scenario: &Scenario) -> Result<Self, SpecError> {
        Ok(Self {
            server: Server::new(scenario)?,
            delay: Duration::from_nanos(scenario.answers.delay_ns),
            met: None,
            due: VecDeque::new(),
            version: 0,
            refused: 0,
        })
    }

    /// Says whose updates met in the datagram that comes next. A real switch remembers them and
    /// forwards the answer; here the simulation does. Without this it is the update's own worker.
    pub fn met(&mut self, contributors: Vec<Contributor>) {
        self.met = Some(contributors);
    }

    fn deliver(&mut self, now: Instant, bytes: &[u8]) -> Result<(), Refused> {
        let met = self.met.take();
        let update = olaf_wire::Packet::new_checked(bytes)
            .and_then(|packet| Update::parse(&packet))
            .map_err(Refused::Malformed)?;
        let packet = packet(&update, bytes.len(), met);
        if !self.server.knows(&packet) {
            return Err(Refused::UnknownWorker);
        }
        self.version += 1;
        self.server.deliver(now, &packet);
        let to = self.server.receivers(&packet).into_iter().map(PeerId).collect();
        self.due.push_back((now + self.delay, update, Receivers::Many(to)));
        Ok(())
    }

    fn answer(&self, now: Instant, update: &Update) -> Answer {
        let cluster = update.address.cluster.0;
        let (own_ns, mean_ns) = self.server.recent_ages(now, cluster);
        let newest = self.server.clusters[cluster as usize].age.newest_generation_ns();
        Answer {
            address: Address { worker: WorkerId::ALL, session: Session(0), ..update.address },
            acknowledges: update.hop_sequence,
            segment: update.segment,
            segments: update.segments,
            model_version: self.version,
            parameters: 0,
            epoch: 0,
            delivered_version: update.version_newest,
            delivered_newest_ns: newest.unwrap_or_default(),
            server_time_ns: now.0,
            queue: QueueStatus::default(),
            // A conversion from a float saturates.
            ages: Ages { own_us: (own_ns / 1000.0) as u32, mean_us: (mean_ns / 1000.0) as u32 },
            ends: Ends::NONE,
        }
    }
}

fn packet(update: &Update, bytes: usize, met: Option<Vec<Contributor>>) -> Packet {
    let own = Contributor {
        worker: update.address.worker.0,
        generated_ns: update.generated_newest_ns,
        summed: true,
    };
    let (summed, gone): (Vec<_>, Vec<_>) =
        met.unwrap_or_else(|| vec![own]).into_iter().partition(|contributor| contributor.summed);
    Packet {
        contribution: Contribution::of_update(update, u32::try_from(bytes).unwrap_or(u32::MAX)),
        holds: summed.iter().map(|one| (one.worker, one.generated_ns)).collect(),
        met: gone.iter().map(|one| one.worker).collect(),
    }
}

impl Engine for ServerEnd {
    fn handle_packet(&mut self, now: Instant, _from: Source, bytes: &[u8]) -> Verdict {
        match self.deliver(now, bytes) {
            Ok(()) => Verdict::Absorb,
            Err(why) => {
                self.refused += 1;
                Verdict::refused(why)
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant, _port: PortId, buf: &mut [u8]) -> Option<Transmit> {
        self.due.front().filter(|(at, ..)| *at <= now)?;
        let (_, update, to) = self.due.pop_front()?;
        let len = self.answer(now, &update).emit(&[], buf);
        Some(Transmit { to, len, class: TrafficClass::NONE })
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        self.due.front().map(|(at, ..)| (*at, Why::Departure))
    }

    fn handle_timeout(&mut self, _now: Instant) {
        // What is due leaves by `poll_transmit`.
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }

    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        (0..).zip(&self.server.workers).for_each(|(worker, _)| keep(PeerId(worker)));
    }

    fn report(&self, _now: Instant, to: &mut dyn Report) {
        let statistics = Statistics {
            packets: self.version,
            contributions: self.server.clusters.iter().map(|c| c.contributions).sum(),
            refused: self.refused,
        };
        walk(&statistics, to);
    }
}
