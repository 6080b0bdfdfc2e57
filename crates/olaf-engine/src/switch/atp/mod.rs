//! The switch of ATP (`docs/design/031-atp.md`): best effort, shared by all jobs.
//!
//! The switch adds gradient fragment packets up where an aggregator is free, and sends everything else
//! on to the server. It keeps no promise: whatever it forgets, the workers send again.

mod config;
mod control;
mod departed;
mod job;
mod outbox;
mod pieces;
mod places;
mod seats;
mod statistics;
#[cfg(test)]
mod tests;

pub use config::Config;
pub use statistics::{JobStatistics, Statistics};

use crate::blocks::Hashed;
use crate::drop::DropReason;
use crate::engine::{Engine, Source, Transmit, Verdict, Why};
use crate::event::{Event, Log};
use crate::ids::{PeerId, PortId};
use crate::keys::ConfigError;
use crate::party::{Bucket, Chance, Cookies, Joins};
use crate::report::{self, Report};
use crate::sums::Patience;
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use departed::Departures;
use job::Job;
use olaf_wire::atp::{AtpPacket, Kind, MAX_SERVERS};
use outbox::{Buffers, Outbox};
use statistics::Counters;

/// A switch that adds where it can.
pub struct Switch {
    config: Config,
    /// Names this switch among those of the network; never 0.
    id: u32,
    servers: Vec<PeerId>,
    cookies: Cookies,
    senders: Joins<(u16, u8)>,
    /// The number with which this switch proves its address, by the next hop that asked for it.
    nonces: BTreeMap<PeerId, u32>,
    table: Hashed,
    /// By job and server.
    jobs: BTreeMap<(u16, u8), Job>,
    departures: Departures,
    out: Outbox,
    buffers: Buffers,
    counters: Counters,
    /// Datagrams that were dropped, by reason.
    refused: BTreeMap<&'static str, u64>,
    next_silence_check: Instant,
    events: Log,
    /// How often refused joins are told.
    tells: Bucket,
    /// A sum on its way from one level to the next, or to the link.
    sum: Vec<u8>,
}

impl Switch {
    /// How long it keeps places for workers that it does not hear. The server decides who is dead.
    const fn patience(&self) -> Patience {
        Patience::new(self.config.silence)
    }

    /// A switch without jobs and servers. `id` names it among the switches of the network: workers with
    /// the same first switch in their joins are added up there. A random number will do.
    ///
    /// # Errors
    /// The key of `config` that cannot be, and why.
    pub fn new(config: Config, id: u32) -> Result<Self, ConfigError> {
        let config = config.check()?;
        Ok(Self {
            table: Hashed::new(config.aggregators, config.memory_bytes, config.max_age),
            out: Outbox::of(&config),
            config,
            id: id.max(1),
            servers: Vec::new(),
            cookies: Cookies::default(),
            senders: Joins::default(),
            nonces: BTreeMap::new(),
            jobs: BTreeMap::new(),
            departures: Departures::default(),
            counters: Counters::default(),
            refused: BTreeMap::new(),
            next_silence_check: Instant(0),
            events: Log::default(),
            tells: Bucket::default(),
            sum: Vec::new(),
            buffers: Buffers::default(),
        })
    }

    /// Demands that the workers and switches below prove their addresses: needed where a sender can write any
    /// address into its datagrams, and no keys prove it.
    pub fn demand_proofs(&mut self, mut chance: Chance) {
        self.cookies.demand(&mut chance);
    }

    /// Names the next hop towards each server, in the order of their indices; at most four. A lower
    /// switch names the switch above. One next hop alone is that of all servers.
    pub fn set_servers(&mut self, servers: &[PeerId]) {
        self.servers = servers[..servers.len().min(usize::from(MAX_SERVERS))].to_vec();
    }

    fn server(&self, index: u8) -> Option<PeerId> {
        match self.servers.as_slice() {
            [only] => Some(*only),
            servers => servers.get(usize::from(index)).copied(),
        }
    }

    fn take(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        let packet = match AtpPacket::new_checked(bytes) {
            Ok(packet) => packet,
            Err(refusal) => {
                if from.port != PortId::UPLINK {
                    self.answer_another_version(now, from.peer, bytes);
                }
                return Verdict::Drop(DropReason::Malformed(refusal));
            }
        };
        let is_above = from.port == PortId::UPLINK;
        if is_above && !self.servers.contains(&from.peer) {
            return Verdict::Drop(DropReason::NotTheServer);
        }
        match packet.kind() {
            Kind::Gradient if !is_above => {
                self.counters.gradients += 1;
                self.handle_gradient(now, from, &packet)
            }
            Kind::Join if !is_above => self.handle_join(now, from, &packet),
            Kind::Leave if !is_above => self.handle_leave(now, from, &packet, bytes),
            Kind::Parameters if is_above => self.handle_parameters(now, from, &packet, bytes),
            Kind::Welcome if is_above => self.handle_welcome(now, from, &packet, bytes),
            Kind::Closed if is_above => self.handle_closed(now, &packet, bytes),
            Kind::Left if is_above => self.handle_left(now, &packet, bytes),
            _ => Verdict::Drop(DropReason::WrongDirection),
        }
    }
}

impl Engine for Switch {
    fn comes_from(&mut self, address: crate::engine::Place) {
        self.cookies.comes_from(address);
    }

    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        let verdict = self.take(now, from, bytes);
        if let Verdict::Drop(reason) = verdict {
            *self.refused.entry(reason.name()).or_default() += 1;
        }
        verdict
    }

    fn poll_transmit(&mut self, now: Instant, port: PortId, buf: &mut [u8]) -> Option<Transmit> {
        let (waiting, class) = self.out.leave(now, port)?;
        let len = waiting.message.len();
        buf[..len].copy_from_slice(&waiting.message);
        let copies = waiting.to.as_slice().len() as u64;
        let sent = &mut self.out.sent;
        *(if port == PortId::UPLINK { &mut sent.up } else { &mut sent.down }) += copies;
        self.buffers.keep(waiting.message);
        Some(Transmit { to: waiting.to, len, class })
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        let departure = self.out.next_departure().map(|at| (at, Why::Departure));
        let has_jobs = !self.jobs.is_empty() || !self.departures.is_empty();
        let silence = has_jobs.then_some((self.next_silence_check, Why::SilenceCheck));
        [departure, silence].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    fn handle_timeout(&mut self, now: Instant) {
        if now >= self.next_silence_check {
            self.check_silence(now);
            self.next_silence_check = self.patience().next_look(now);
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.poll()
    }

    fn ports(&self) -> u16 {
        2
    }

    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        let members = self.jobs.values().flat_map(Job::peers);
        members.chain(self.departures.peers()).for_each(&mut *keep);
        self.servers.iter().copied().for_each(keep);
    }

    fn report(&self, _now: Instant, to: &mut dyn Report) {
        report::walk(&self.statistics(), to);
    }

    fn job_of(&self, _: Source, message: &[u8]) -> Option<u32> {
        olaf_wire::atp::job_of(message)
    }
}
