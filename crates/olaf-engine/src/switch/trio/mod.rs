//! The switch of Trio-ML (`docs/design/032-trio.md`): it sums the pieces of a block, sends the result
//! to all workers, and goes on without stragglers.
//!
//! The table of records ([`Records`]) holds jobs, blocks and timers. This module decides who is in a
//! job, and which messages follow from a piece, a question or a timer.
//!
//! | file | what it decides |
//! |---|---|
//! | `membership` | how a job record comes to be, and how a term ends |
//! | `pieces` | what follows from a piece and from a question |
//! | `stragglers` | what the two kinds of timers do |
//! | `upward` | a lower switch's side towards the switch above |

mod calls;
mod config;
mod job;
mod membership;
mod outbox;
mod pieces;
mod statistics;
mod stragglers;
#[cfg(test)]
mod tests;
mod upward;

pub use config::Config;
pub use statistics::{JobStatistics, Pieces, Statistics, Worker};

use crate::blocks::records::{Records, State};
use crate::drop::DropReason;
use crate::engine::{Engine, Source, Transmit, Verdict, Why};
use crate::event::{Event, Log, SumEvent};
use crate::ids::{JobId, PeerId, PortId};
use crate::keys::ConfigError;
use crate::lanes::saturating;
use crate::party::Chance;
use crate::report::{self, Report};
use crate::sums::{Door, HEARTBEAT, Numbers, Patience};
use crate::time::Instant;
use alloc::collections::BTreeMap;
use core::time::Duration;
use job::Job;
use olaf_wire::trio::{ANY, Block, Kind, TrioPacket};
use outbox::{Message, Outbox};
use statistics::Counters;

/// Buckets of the hash table.
const BUCKETS: u32 = 1 << 15;

/// A switch that sums as Trio-ML does.
pub struct Switch {
    config: Config,
    records: Records,
    jobs: BTreeMap<u8, Job>,
    numbers: Numbers,
    /// For the switch above.
    next_session: u32,
    door: Door<u8>,
    patience: Patience,
    out: Outbox,
    counters: Counters,
    events: Log,
    next_silence_check: Instant,
    next_straggler_check: Instant,
    next_sign: Instant,
    /// When a sum was last sent up again.
    risen_again: BTreeMap<crate::blocks::records::Key, Instant>,
}

impl Switch {
    /// A switch without jobs. `epoch` names this life of the switch: draw it at random. Terms count
    /// from there, so that no message of an earlier life fits one of this life. With
    /// [`Switch::demand_proofs`] each job has numbers of its own, drawn at random.
    ///
    /// # Errors
    /// The key of `config` that cannot be, and why.
    pub fn new(config: Config, epoch: u32) -> Result<Self, ConfigError> {
        let config = config.check()?;
        Ok(Self {
            records: Records::new(BUCKETS, config.timer, config.threads),
            out: Outbox::of(&config),
            door: Door::new(config.tenants.clone(), config.jobs),
            patience: Patience::new(config.silence),
            config,
            jobs: BTreeMap::new(),
            numbers: Numbers::new(epoch),
            next_session: epoch.max(1),
            counters: Counters::default(),
            events: Log::default(),
            next_silence_check: Instant(0),
            next_straggler_check: Instant(0),
            next_sign: Instant(0),
            risen_again: BTreeMap::new(),
        })
    }

    /// Demands that members prove their addresses: needed where a sender can write any address into its
    /// datagrams, and no keys prove it.
    pub fn demand_proofs(&mut self, mut chance: Chance) {
        self.door.demand_proofs(&mut chance);
        // Sessions begin with the same number as terms did, and every worker was told of its term.
        self.next_session = self.next_session.wrapping_add(chance()).max(1);
        self.numbers.draw(chance);
    }

    /// Two programs may start with one job number: see [`Door::expect_strangers`](crate::sums::Door::expect_strangers).
    pub const fn expect_strangers(&mut self, settle: Duration) {
        self.door.expect_strangers(settle);
    }

    /// Names the switch above, to which this one sends its sums: Trio-ML's hierarchy (§4). Without a
    /// switch above, this one is the uppermost.
    pub fn set_upstream(&mut self, peer: PeerId) {
        self.out.set_above(peer);
    }

    /// Incomplete blocks of a job, its records, and all blocks that it ever had.
    #[must_use]
    pub fn usage(&self, job: u8) -> (u32, u32, u64) {
        self.records.usage(job)
    }

    fn event(&mut self, job: u8, event: SumEvent) {
        self.events.push(JobId(job.into()), event);
    }

    /// Writes a result, or a sum on its way up, as it is now; none if its record is gone.
    fn emit_block(&self, message: &Message, buf: &mut [u8]) -> Option<usize> {
        let (Message::Result { key, .. } | Message::Sum { key, .. }) = message else { return None };
        let is_up = matches!(message, Message::Sum { .. });
        let record = self.records.record(*key)?;
        let wanted = if is_up { State::Summed } else { State::Final };
        let term = self.jobs.get(&key.job)?.term.as_ref()?;
        if record.state != wanted {
            return None;
        }
        let source = if is_up { term.above.as_ref()?.source } else { ANY };
        let block = Block {
            job: key.job,
            block: key.block,
            aged: record.aged,
            is_final: record.is_final,
            degraded: record.degraded || record.aged,
            source,
            sources: record.sources().max(1),
            generation: key.generation,
            call: record.call,
        };
        let start = block.emit_header(record.sum().len(), buf);
        let end = start + record.sum().len() * 4;
        saturating::write(record.sum(), &mut buf[start..end]);
        Some(end)
    }

    fn handle_below(&mut self, now: Instant, from: Source, packet: &TrioPacket<'_>) -> Verdict {
        let verdict = match packet.kind() {
            Kind::Block | Kind::Aged => self.handle_piece(now, from, packet),
            Kind::Ask => self.handle_ask(now, from, packet),
            Kind::Hello => self.handle_hello(now, from, packet),
            Kind::Leave => self.handle_leave(now, from, packet),
            Kind::Welcome | Kind::Want | Kind::Closed | Kind::Straggler | Kind::Gone => {
                Ok(Verdict::Drop(DropReason::WrongDirection))
            }
        };
        verdict.unwrap_or_else(|refusal| Verdict::Drop(DropReason::Malformed(refusal)))
    }
}

impl Engine for Switch {
    fn comes_from(&mut self, address: crate::engine::Place) {
        self.door.comes_from(address);
    }

    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        self.events.at(now);
        let verdict = match &TrioPacket::new_checked(bytes) {
            Ok(packet) if from.port == PortId::UPLINK => self.handle_above(now, from, packet),
            Ok(packet) => self.handle_below(now, from, packet),
            Err(refusal) => Verdict::Drop(DropReason::Malformed(*refusal)),
        };
        if let Verdict::Drop(reason) = verdict {
            self.counters.refuse(reason);
        }
        verdict
    }

    fn poll_transmit(&mut self, now: Instant, port: PortId, buf: &mut [u8]) -> Option<Transmit> {
        loop {
            let (waiting, class) = self.out.leave(now, port)?;
            let copies = waiting.to.as_slice().len() as u64;
            let written = match &waiting.message {
                block @ (Message::Result { .. } | Message::Sum { .. }) => {
                    self.emit_block(block, buf)
                }
                Message::Welcome(message) => Some(message.emit(buf)),
                Message::Want(message) => Some(message.emit(buf)),
                Message::Gone(message) => Some(message.emit(buf)),
                Message::Closed(message) => Some(message.emit(buf)),
                Message::Straggler(message) => Some(message.emit(buf)),
                Message::Hello(message) => Some(message.emit(buf)),
                Message::Ask(message) => Some(message.emit(buf)),
                Message::Leave(message) => Some(message.emit(buf)),
            };
            let sent = &mut self.out.sent;
            let Some(len) = written else {
                sent.results_gone += copies;
                continue;
            };
            *match &waiting.message {
                Message::Result { again: false, .. } => &mut sent.results,
                Message::Result { .. } => &mut sent.results_again,
                Message::Sum { again: false, .. } => &mut sent.sums_up,
                Message::Sum { .. } => &mut sent.sums_up_again,
                Message::Welcome(_) => &mut sent.welcomes,
                Message::Want(_) => &mut sent.wants,
                Message::Gone(_) => &mut sent.gone,
                Message::Closed(_) => &mut sent.closed,
                Message::Straggler(_) => &mut sent.straggler_notices,
                Message::Hello(_) => &mut sent.hellos_up,
                Message::Ask(_) => &mut sent.asks_up,
                Message::Leave(_) => &mut sent.leaves_up,
            } += copies;
            return Some(Transmit { to: waiting.to, len, class });
        }
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        let departure = self.out.next_departure().map(|at| (at, Why::Departure));
        let scan = self.records.next_scan().map(|at| (at, Why::BlockDeadline));
        let has_jobs = !self.jobs.is_empty();
        let silence = has_jobs.then_some((self.next_silence_check, Why::SilenceCheck));
        let is_timed = |job: &Job| {
            job.term.as_ref().is_some_and(|term| term.visits > 0 && term.closed.is_none())
        };
        let watches = self.jobs.values().any(is_timed);
        let stragglers = watches.then_some((self.next_straggler_check, Why::SilenceCheck));
        let has_upstream = self.out.above().is_some() && has_jobs;
        let sign = has_upstream.then_some((self.next_sign, Why::Retransmission));
        let all = [departure, scan, silence, stragglers, sign];
        all.into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.events.at(now);
        self.check_blocks(now);
        if now >= self.next_straggler_check {
            self.check_stragglers(now);
            self.next_straggler_check = now + self.config.straggler_check;
        }
        if now >= self.next_silence_check {
            self.check_silence(now);
            self.next_silence_check = self.patience.next_look(now);
        }
        if self.out.above().is_some() && now >= self.next_sign {
            self.keep_up(now);
            self.next_sign = now + HEARTBEAT;
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.poll()
    }

    fn ports(&self) -> u16 {
        2
    }

    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        for job in self.jobs.values() {
            let members = job.term.iter().flat_map(|term| term.members.values());
            members.map(|member| member.peer).for_each(&mut *keep);
            job.lobby.values().map(|candidate| candidate.peer).for_each(&mut *keep);
        }
        self.out.above().into_iter().for_each(keep);
    }

    fn report(&self, now: Instant, to: &mut dyn Report) {
        report::walk(&self.statistics(now), to);
    }

    fn job_of(&self, _: Source, message: &[u8]) -> Option<u32> {
        olaf_wire::trio::job_of(message)
    }
}
