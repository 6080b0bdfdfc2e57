//! A switch's notices to its workers: what its queue has taken in of their cluster.

use crate::study::scenario::spec::{Scenario, SpecError};
use core::time::Duration;
use olaf_engine::report::{Report, walk};
use olaf_engine::{
    Engine, Event, Instant, PeerId, PortId, Receivers, Refused, Session, Source, TrafficClass,
    Transmit, Verdict, Why, WorkerId,
};
use olaf_wire::{Address, Notice, Packet, Update};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::Arc;

/// Each datagram that it gets is an update that the switch's queue has taken in, straight from its
/// worker. A notice of it leaves `answers.delay_ns` later, to the update's whole cluster.
pub struct Notices {
    /// Workers of each cluster.
    members: Vec<Arc<[PeerId]>>,
    delay: Duration,
    /// Notices that have not left, the oldest first.
    due: VecDeque<(Instant, Notice)>,
    statistics: Statistics,
}

#[derive(Default, Serialize)]
struct Statistics {
    taken: u64,
    notices: u64,
    refused: u64,
}

impl Notices {
    /// The notices of any switch of a scenario.
    ///
    /// # Errors
    /// The scenario cannot be.
    pub fn new(scenario: &Scenario) -> Result<Self, SpecError> {
        let places = scenario.clusters()?.into_iter();
        Ok(Self {
            members: places.map(|place| place.workers.map(PeerId).collect()).collect(),
            delay: Duration::from_nanos(scenario.answers.delay_ns),
            due: VecDeque::new(),
            statistics: Statistics::default(),
        })
    }

    fn taken(&mut self, now: Instant, bytes: &[u8]) -> Result<(), Refused> {
        let update = Packet::new_checked(bytes)
            .and_then(|packet| Update::parse(&packet))
            .map_err(Refused::Malformed)?;
        if update.address.cluster.0 as usize >= self.members.len() {
            return Err(Refused::UnknownWorker);
        }
        self.statistics.taken += 1;
        let address = Address { worker: WorkerId::ALL, session: Session(0), ..update.address };
        let notice = Notice { address, taken_newest_ns: update.generated_newest_ns };
        self.due.push_back((now + self.delay, notice));
        Ok(())
    }
}

impl Engine for Notices {
    fn handle_packet(&mut self, now: Instant, _from: Source, bytes: &[u8]) -> Verdict {
        match self.taken(now, bytes) {
            Ok(()) => Verdict::Absorb,
            Err(why) => {
                self.statistics.refused += 1;
                Verdict::refused(why)
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant, _port: PortId, buf: &mut [u8]) -> Option<Transmit> {
        self.due.front().filter(|(at, _)| *at <= now)?;
        let (_, notice) = self.due.pop_front()?;
        self.statistics.notices += 1;
        let members = &self.members[notice.address.cluster.0 as usize];
        let to = Receivers::Many(Arc::clone(members));
        Some(Transmit { to, len: notice.emit(buf), class: TrafficClass::NONE })
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        self.due.front().map(|(at, _)| (*at, Why::Departure))
    }

    fn handle_timeout(&mut self, _now: Instant) {
        // What is due leaves by `poll_transmit`.
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }

    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        self.members.iter().flat_map(|members| members.iter()).for_each(|peer| keep(*peer));
    }

    fn report(&self, _now: Instant, to: &mut dyn Report) {
        walk(&self.statistics, to);
    }
}
