//! The parameter server of ATP (ATP §2.1, §3.6): it completes what switches could not add, keeps the
//! results, and says who takes part.

mod config;
mod fragments;
mod gradients;
mod job;
mod membership;
mod statistics;

pub use config::ServerConfig;
pub use statistics::ServerStatistics;

use super::topology::Topology;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;
use job::Job;
use olaf_engine::event::Log;
use olaf_engine::keys::ConfigError;
use olaf_engine::link::pacer::Pacer;
use olaf_engine::link::{Datagram, Link};
use olaf_engine::party::Chance;
use olaf_engine::report::{self, Report};
use olaf_engine::sums::{Door, Patience};
use olaf_engine::{
    Engine, Event, Instant, PeerId, PortId, Receivers, Refused, Source, TrafficClass, Transmit,
    Verdict, Why,
};
use olaf_wire::atp::{AtpPacket, Kind, answer_to_another_version};
use statistics::Counts;

/// Bytes of the longest control message and of a packet without values.
const SHORT: usize = 128;

/// A datagram with its receivers.
struct Waiting {
    to: Receivers,
    bytes: Vec<u8>,
}

impl Datagram for Waiting {
    fn bytes(&self) -> u32 {
        let all = self.bytes.len().saturating_mul(self.to.as_slice().len());
        u32::try_from(all).unwrap_or(u32::MAX)
    }
}

/// A parameter server. One server may serve several jobs, and several parts of one job.
pub struct AtpServer {
    config: ServerConfig,
    topology: Topology,
    /// By job, and by the server's index in the job.
    jobs: BTreeMap<(u16, u8), Job>,
    next_generation: u16,
    door: Door<(u16, u8)>,
    patience: Patience,
    link: Link<Waiting>,
    events: Log,
    counts: Counts,
    next_check: Instant,
}

impl AtpServer {
    /// A server without jobs. `epoch` names this life of the server: draw it at random. Generations
    /// count from there, so that no packet of an earlier life fits one of this life.
    ///
    /// # Errors
    /// The key of `config` that cannot be, and why.
    pub fn new(config: ServerConfig, epoch: u16) -> Result<Self, ConfigError> {
        let config = config.check()?;
        Ok(Self {
            link: Link::new(Pacer::at(config.link)).with_datagrams(config.link_limit),
            door: Door::new(config.tenants.clone(), config.jobs),
            patience: Patience::new(config.silence),
            config,
            topology: Topology::default(),
            jobs: BTreeMap::new(),
            next_generation: epoch.max(1),
            events: Log::default(),
            counts: Counts::default(),
            next_check: Instant(0),
        })
    }

    /// Demands that workers and switches prove their addresses: needed where a sender can write any address
    /// into its datagrams, and no keys prove it.
    pub fn demand_proofs(&mut self, mut chance: Chance) {
        self.door.demand_proofs(&mut chance);
    }

    /// Two programs may start with one job number: see [`Door::expect_strangers`](olaf_engine::sums::Door::expect_strangers).
    pub const fn expect_strangers(&mut self, settle: Duration) {
        self.door.expect_strangers(settle);
    }

    /// Checks the workers of generations to come against this topology, and gives ranks by it.
    pub fn set_topology(&mut self, topology: Topology) {
        self.topology = topology;
    }

    fn take(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Result<(), Refused> {
        let packet = match AtpPacket::new_checked(bytes) {
            Ok(packet) => packet,
            Err(refusal) => {
                if let Some(answer) = answer_to_another_version(bytes) {
                    self.send(now, Receivers::One(from.peer), |buf| answer.emit(buf));
                }
                return Err(Refused::Malformed(refusal));
            }
        };
        match packet.kind() {
            Kind::Gradient => {
                let taken = self.handle_gradient(now, from, &packet);
                self.counts.gradients.refused += u64::from(taken.is_err());
                taken
            }
            Kind::Join => self.handle_join(now, from.peer, &packet),
            Kind::Leave => self.handle_leave(now, from.peer, &packet),
            Kind::Parameters | Kind::Welcome | Kind::Closed | Kind::Left => {
                Err(Refused::WrongDirection)
            }
        }
    }

    /// A short datagram waits for the link from now on.
    fn send(&mut self, now: Instant, to: Receivers, emit: impl FnOnce(&mut [u8]) -> usize) {
        let mut bytes = alloc::vec![0; SHORT];
        let len = emit(&mut bytes);
        bytes.truncate(len);
        self.push(now, to, bytes);
    }

    /// A datagram waits for the link from now on. Where the link is full it is dropped and counted.
    fn push(&mut self, now: Instant, to: Receivers, bytes: Vec<u8>) {
        let copies = to.as_slice().len() as u64;
        if copies > 0 && !self.link.send(now, Waiting { to, bytes }) {
            self.counts.link_full += copies;
        }
    }
}

impl Engine for AtpServer {
    fn comes_from(&mut self, address: olaf_engine::engine::Place) {
        self.door.comes_from(address);
    }

    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        self.events.at(now);
        match self.take(now, from, bytes) {
            Ok(()) => Verdict::Absorb,
            Err(refused) => {
                *self.counts.refused.entry(refused.name()).or_default() += 1;
                Verdict::refused(refused)
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant, _port: PortId, buf: &mut [u8]) -> Option<Transmit> {
        let departure = self.link.due(now)?;
        let Waiting { to, bytes } = self.link.take()?;
        buf[..bytes.len()].copy_from_slice(&bytes);
        let class = departure.mark(TrafficClass::ECN_CAPABLE);
        Some(Transmit { to, len: bytes.len(), class })
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        let departure = self.link.next_departure().map(|at| (at, Why::Departure));
        let check = (!self.jobs.is_empty()).then_some((self.next_check, Why::SilenceCheck));
        [departure, check].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.events.at(now);
        if now >= self.next_check {
            self.check(now);
            self.next_check = self.patience.next_look(now).min(now + self.config.settle);
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.poll()
    }

    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        for job in self.jobs.values() {
            let members = job.current.iter().flat_map(|current| &current.members);
            members.chain(job.lobby.values()).for_each(|member| keep(member.peer));
        }
    }

    fn report(&self, _now: Instant, to: &mut dyn Report) {
        report::walk(&self.statistics(), to);
    }

    fn job_of(&self, _: Source, message: &[u8]) -> Option<u32> {
        olaf_wire::atp::job_of(message)
    }
}
