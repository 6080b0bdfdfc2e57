//! The switch of `reduce` (`docs/design/028-reduce.md`): it sums the pieces of a block and sends the
//! result to all workers.
//!
//! The switch keeps a table of blocks for each generation of a job
//! ([`Pool`](crate::blocks::Pool)). This module decides who is in a generation, which
//! messages follow from a piece, and when a generation ends.

mod calls;
mod closing;
mod config;
mod counters;
mod generation;
mod job;
mod membership;
mod outbox;
mod pieces;
mod shapes;
mod silence;
mod statistics;
#[cfg(test)]
mod tests;
mod upward;

pub use super::NonFinite;
pub use config::Config;
pub use statistics::Statistics;

use crate::blocks::pool::State;
use crate::drop::DropReason;
use crate::engine::{Engine, Source, Transmit, Verdict, Why};
use crate::event::{Event, Log, SumEvent};
use crate::ids::{JobId, PeerId, PortId, Session};
use crate::keys::ConfigError;
use crate::party::{Chance, Deadlines};
use crate::report::{self, Report};
use crate::sums::{Door, HEARTBEAT, Numbers, Patience};
use crate::time::Instant;
use alloc::collections::BTreeMap;
use core::time::Duration;
use counters::Counters;
use job::Job;
use olaf_wire::reduce::{
    ALL, Address, BlockResult, Kind, Marks, Piece, ReducePacket, join_of_another_version,
};
use outbox::{Message, Outbox, Outgoing};

/// A switch that sums.
pub struct Switch {
    config: Config,
    jobs: BTreeMap<JobId, Job>,
    /// When the next block of each job is overdue.
    deadlines: Deadlines<JobId>,
    numbers: Numbers,
    door: Door<JobId>,
    patience: Patience,
    out: Outbox,
    counters: Counters,
    events: Log,
    next_silence_check: Instant,
    /// For the switch above.
    next_session: u32,
    next_sign: Instant,
}

impl Switch {
    /// A switch without jobs. `epoch` names this life of the switch: draw it at random. Generations
    /// count from there, so that no message of an earlier life fits one of this life. With
    /// [`Switch::demand_proofs`] each job has numbers of its own, drawn at random.
    ///
    /// # Errors
    /// The key of `config` that cannot be, and why.
    pub fn new(config: Config, epoch: u32) -> Result<Self, ConfigError> {
        let config = config.check()?;
        Ok(Self {
            out: Outbox::of(&config),
            door: Door::new(config.tenants.clone(), config.jobs),
            patience: Patience::new(config.silence),
            config,
            jobs: BTreeMap::new(),
            deadlines: Deadlines::default(),
            numbers: Numbers::new(epoch),
            counters: Counters::default(),
            events: Log::default(),
            next_silence_check: Instant(0),
            next_session: epoch.max(1),
            next_sign: Instant(0),
        })
    }

    /// Demands that members prove their addresses: needed where a sender can write any address into its
    /// datagrams, and no keys prove it. Who guesses a session or a generation could do without the proof:
    /// from now on `chance` draws them.
    pub fn demand_proofs(&mut self, mut chance: Chance) {
        self.door.demand_proofs(&mut chance);
        self.numbers.draw(chance);
    }

    /// Two programs may start with one job number: see [`Door::expect_strangers`](crate::sums::Door::expect_strangers).
    pub const fn expect_strangers(&mut self, settle: Duration) {
        self.door.expect_strangers(settle);
    }

    /// Names the switch above, to which this one sends its sums; `datagram_bytes` is the longest
    /// datagram that the path takes. Without a switch above, this one is the uppermost.
    pub fn set_upstream(&mut self, peer: PeerId, datagram_bytes: u32) {
        self.out.set_above(peer);
        self.config.uplink_datagram_bytes = datagram_bytes;
    }

    fn event(&mut self, job: JobId, event: SumEvent) {
        self.events.push(job, event);
    }

    /// Everything but a piece from below.
    fn handle_message(&mut self, now: Instant, from: Source, packet: &ReducePacket<'_>) -> Verdict {
        if from.port == PortId::UPLINK {
            return self.handle_above(now, packet);
        }
        match packet.kind() {
            Kind::Ask => self.handle_ask(now, from, packet),
            Kind::Join => self.handle_join(now, from, packet),
            Kind::Leave => self.handle_leave(now, from, packet),
            Kind::Closed => self.handle_closed(now, from, packet),
            _ => Verdict::Drop(DropReason::WrongDirection),
        }
    }

    /// Writes a sum on its way up as it is now; none if its block is over.
    fn emit_sum(&mut self, sum: &Outgoing, buf: &mut [u8]) -> Option<usize> {
        let Outgoing { job, generation, block, again, sent_at_us, .. } = *sum;
        let generation = self.jobs.get_mut(&job)?.generation(generation)?;
        let cell = generation.pool.cell(block.number)?;
        if cell.state() != State::Summed {
            return None;
        }
        let message = Piece {
            address: upward::above_address(job, generation.above.as_ref()?),
            block,
            contributors: cell.contributors,
            holds: generation.pool.min_holds().min(block.number),
            sent_at_us,
            marks: Marks {
                resent: again,
                not_finite: cell.not_finite(),
                congested: cell.congested,
            },
        };
        let is_partial = cell.contributors < generation.expected_here(block.operator);
        let words: &[u64] = if is_partial { cell.from().words() } else { &[] };
        let start = message.emit_header(words, cell.lane_count(), buf);
        let end = start + cell.result_bytes();
        cell.write_result(&mut buf[start..end]);
        Some(end)
    }

    /// Writes a result as it is now; none if its cell has given way.
    fn emit_result(&mut self, result: &Outgoing, buf: &mut [u8]) -> Option<usize> {
        let Outgoing { job, generation, block, to, sent_at_us, .. } = *result;
        let generation = self.jobs.get_mut(&job)?.generation(generation)?;
        let cell = generation.pool.cell(block.number)?;
        if cell.state() != State::Final {
            return None;
        }
        let (rank, session) = to.unwrap_or((ALL, 0));
        let expected = generation.expected(block.operator);
        let message = BlockResult {
            address: Address {
                job,
                generation: generation.number,
                rank,
                session: Session(session),
            },
            block,
            contributors: cell.contributors,
            expected,
            sent_at_us,
            marks: Marks {
                resent: to.is_some(),
                not_finite: cell.not_finite() || generation.has_refused(block.number),
                congested: cell.congested,
            },
        };
        let words = generation.words(block.number, block.operator);
        let start = message.emit_header(words, cell.lane_count(), buf);
        let end = start + cell.result_bytes();
        cell.write_result(&mut buf[start..end]);
        Some(end)
    }
}

impl Engine for Switch {
    fn comes_from(&mut self, address: crate::engine::Place) {
        self.door.comes_from(address);
    }

    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        self.events.at(now);
        let verdict = match &ReducePacket::new_checked(bytes) {
            Ok(packet) if packet.kind() == Kind::Piece && from.port != PortId::UPLINK => {
                self.handle_piece(now, from, packet)
            }
            Ok(packet) => {
                let verdict = self.handle_message(now, from, packet);
                self.plan(packet.address().job);
                verdict
            }
            Err(refusal) => {
                if let Some(address) = join_of_another_version(bytes) {
                    self.answer_other_version(now, from, address);
                }
                Verdict::Drop(DropReason::Malformed(*refusal))
            }
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
            let sent = &mut self.out.sent;
            let len = match &waiting.message {
                Message::Result(result) => {
                    let to_all = result.to.is_none();
                    let Some(len) = self.emit_result(result, buf) else {
                        self.out.sent.results_gone += copies;
                        continue;
                    };
                    let sent = &mut self.out.sent;
                    *(if to_all { &mut sent.results } else { &mut sent.results_again }) += copies;
                    len
                }
                Message::Piece(sum) => {
                    let again = sum.again;
                    let Some(len) = self.emit_sum(sum, buf) else {
                        self.out.sent.results_gone += copies;
                        continue;
                    };
                    let sent = &mut self.out.sent;
                    *(if again { &mut sent.sums_up_again } else { &mut sent.sums_up }) += 1;
                    len
                }
                Message::Ask(ask) => {
                    sent.asks_up += 1;
                    ask.emit(buf)
                }
                Message::Join(join) => join.emit(buf),
                Message::Want(want) => {
                    sent.wants += copies;
                    want.emit(buf)
                }
                Message::Welcome(welcome) => {
                    sent.welcomes += copies;
                    welcome.emit(buf)
                }
                Message::Closed(closed) => {
                    sent.closed += copies;
                    closed.emit(buf)
                }
            };
            return Some(Transmit { to: waiting.to, len, class });
        }
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        let departure = self.out.next_departure().map(|at| (at, Why::Departure));
        debug_assert_eq!(self.deadlines.next(), self.jobs.values().filter_map(Job::overdue).min());
        let overdue = self.deadlines.next().map(|at| (at, Why::BlockDeadline));
        let silence =
            (!self.jobs.is_empty()).then_some((self.next_silence_check, Why::SilenceCheck));
        let has_upstream = self.out.above().is_some() && !self.jobs.is_empty();
        let sign = has_upstream.then_some((self.next_sign, Why::Retransmission));
        [departure, overdue, silence, sign].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.events.at(now);
        self.check_deadlines(now);
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
            let members = job.generations().flat_map(|generation| &generation.members);
            members.map(|member| member.peer).for_each(&mut *keep);
            job.lobby.values().map(|candidate| candidate.peer).for_each(&mut *keep);
        }
        self.out.above().into_iter().for_each(keep);
    }

    fn report(&self, now: Instant, to: &mut dyn Report) {
        report::walk(&self.statistics(now), to);
    }

    fn job_of(&self, _: Source, message: &[u8]) -> Option<u32> {
        olaf_wire::reduce::job_of(message)
    }
}
