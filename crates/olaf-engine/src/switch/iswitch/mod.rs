//! The switch of iSwitch (`docs/design/030-iswitch.md`): it sums the packets of the workers' gradient vectors
//! and sends each sum to all of them.
//!
//! | file | what it decides |
//! |---|---|
//! | `membership`, `job` | Join, Leave, Halt: who is in the membership table, when a generation begins and ends |
//! | `packets` | data packets, Help, FBcast, SetH, Ack |
//! | `upward` | what a switch says to the switch above, and takes from it |
//! | `length` | how long a vector may be |
//! | `vectors` | which vector a packet is of |
//! | `silence` | who is dead |
//!
//! The class of service tells our packets from all others. Others go up untouched where a list names their
//! sender, and are dropped where none does.

mod config;
mod counters;
mod job;
mod length;
mod membership;
mod outbox;
mod packets;
mod silence;
mod statistics;
#[cfg(test)]
mod tests;
mod upward;
mod vectors;

pub use super::NonFinite;
pub use crate::sums::Pieces;
pub use config::Config;
pub use statistics::{Entry, JobStatistics, Statistics};

use crate::blocks::by_index::State;
use crate::drop::DropReason;
use crate::engine::{Engine, Source, Transmit, Verdict, Why};
use crate::event::{Event, Log};
use crate::ids::{JobId, PeerId, PortId, Session};
use crate::keys::ConfigError;
use crate::party::Chance;
use crate::report::{self, Report};
use crate::sums::{Door, HEARTBEAT, Patience};
use crate::time::Instant;
use alloc::collections::BTreeMap;
use core::time::Duration;
use counters::Counters;
use job::{Job, Member};
use olaf_wire::iswitch::offsets::ack::LEN_OF_JOIN;
use olaf_wire::iswitch::{
    ANY, Ack, Action, Admission, CONTROL_CLASS, Control, DATA_CLASS, DataPacket, Outcome, SEG, Seg,
    Sender, emit_seg, generation_of, job_of, join_of_another_version,
};
use olaf_wire::reduce::Reason;
use outbox::{Message, Outbox, Outgoing};
use packets::hear;

/// A switch that sums packets.
pub struct Switch {
    config: Config,
    jobs: BTreeMap<JobId, Job>,
    /// Job and member, by the sender's address and the number of its generation.
    ///
    /// differs: the printed formats have no field for the job. No two generations of the switch have the same
    /// number, so a worker at one address may take part in several jobs.
    seats: BTreeMap<(PeerId, u8), (JobId, u32)>,
    next_generation: u8,
    next_member: u32,
    /// For the switch above.
    next_session: u32,
    /// Most floats of a packet to the switch above.
    uplink_floats: u32,
    door: Door<JobId>,
    patience: Patience,
    /// Peers whose regular traffic goes up, and to whom.
    passes_on: BTreeMap<PeerId, PeerId>,
    out: Outbox,
    counters: Counters,
    events: Log,
    next_silence_check: Instant,
    next_sign: Instant,
}

impl Switch {
    /// A switch without jobs. `epoch` names this life of the switch: draw it at random. Generations
    /// count from there.
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
            passes_on: BTreeMap::new(),
            jobs: BTreeMap::new(),
            seats: BTreeMap::new(),
            next_generation: epoch as u8,
            next_member: 0,
            next_session: epoch,
            uplink_floats: 1,
            counters: Counters::default(),
            events: Log::default(),
            next_silence_check: Instant(0),
            next_sign: Instant(0),
        })
    }

    /// Demands that members prove their addresses: needed where a sender can write any address into its
    /// datagrams, and no keys prove it.
    pub fn demand_proofs(&mut self, mut chance: Chance) {
        self.door.demand_proofs(&mut chance);
        // Generations begin with the same number, and every worker is told of its generation.
        self.next_session = self.next_session.wrapping_add(chance());
    }

    /// Two programs may start with one job number: see [`Door::expect_strangers`](crate::sums::Door::expect_strangers).
    pub const fn expect_strangers(&mut self, settle: Duration) {
        self.door.expect_strangers(settle);
    }

    /// Passes regular traffic from that peer on to another one, over the link up.
    pub fn pass_on(&mut self, from: PeerId, to: PeerId) {
        self.passes_on.insert(from, to);
    }

    /// Names the switch above, to which this one sends its sums; `datagram_bytes` is the longest datagram that
    /// the path takes. Without a switch above, this one is the uppermost.
    pub fn set_upstream(&mut self, peer: PeerId, datagram_bytes: u32) {
        self.out.set_above(peer);
        self.uplink_floats = (datagram_bytes.saturating_sub(SEG as u32) / 4).max(1);
    }

    /// Chooses the switch above among several: the one with the smallest address (iSwitch §3.4), so that all
    /// switches choose alike. Addresses compare as numbers. None is chosen from an empty list.
    pub fn set_upstream_of(&mut self, switches: &[(u128, PeerId)], datagram_bytes: u32) {
        if let Some((_, peer)) = switches.iter().min() {
            self.set_upstream(*peer, datagram_bytes);
        }
    }

    /// A datagram of another class (iSwitch §3.3: regular traffic takes its usual way). It goes up through the
    /// link and its pacer, where a list names its sender; one datagram in is one datagram out.
    ///
    /// differs: without a list nothing passes. A switch that passed everything on would be an open relay,
    /// whose traffic no pacer holds back.
    fn handle_foreign(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        let listed = self.passes_on.get(&from.peer).filter(|_| from.port != PortId::UPLINK);
        let Some(to) = listed.copied() else { return Verdict::Drop(DropReason::Foreign) };
        self.counters.passed_on += 1;
        self.out.send_up(now, to, Message::Untouched(bytes.into(), from.class));
        Verdict::Absorb
    }

    fn handle_control(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        let message = match Control::parse(bytes) {
            Ok(message) => message,
            Err(refusal) => {
                // No answer is more than three times as long as what it answers.
                let is_long = bytes.len() * 3 >= LEN_OF_JOIN;
                if let Some(session) = join_of_another_version(bytes).filter(|_| is_long) {
                    self.answer_other_version(now, from, session);
                }
                return Verdict::Drop(DropReason::Malformed(refusal));
            }
        };
        *self.counters.controls.entry(message.action().name()).or_default() += 1;
        if from.port == PortId::UPLINK {
            return self.handle_control_from_above(now, &message);
        }
        match message {
            Control::Join(join) => self.handle_join(now, from, &join),
            Control::Leave(leave) => self.handle_leave(now, from, &leave),
            Control::Reset { generation } => {
                self.handle_end(now, from, generation, Action::Reset, (Reason::Renewed, ANY, 0))
            }
            Control::Halt(halt) => {
                let why = (halt.reason, halt.culprit, halt.calls);
                self.handle_end(now, from, halt.generation, Action::Halt, why)
            }
            Control::SetH { generation, h } => self.handle_set_h(now, from, generation, h),
            Control::FBcast(asked) => self.handle_fbcast(now, from, &asked),
            Control::Help(asked) => self.handle_help(now, from, &asked),
            Control::Ack(ack) => self.handle_ack(now, from, &ack),
        }
    }

    /// Reset and Halt: a member ends its job's generation. A switch below says why. A worker that suspends the
    /// job is itself the reason.
    fn handle_end(
        &mut self,
        now: Instant,
        from: Source,
        generation: u8,
        action: Action,
        (reason, culprit, calls): (Reason, u32, u8),
    ) -> Verdict {
        if action == Action::Reset && !self.seats.contains_key(&(from.peer, generation)) {
            // A Halt would be four times as long as the Reset that anybody can send.
            return Verdict::Drop(DropReason::UnknownGeneration);
        }
        let (jobs, out) = (&mut self.jobs, &mut self.out);
        let (here, member) = match hear(jobs, &self.seats, out, now, from.peer, generation) {
            Ok(found) => found,
            Err(why) => return Verdict::Drop(why),
        };
        let (id, members) = (here.id, &here.current.members);
        let member = &members[member as usize];
        // Anybody may say that it is a switch. A worker of this switch is not behind another one.
        let is_direct = |one: &Member| one.sender == Sender::Worker && one.rank == culprit;
        let names_others = member.sender == Sender::Switch && members.iter().any(is_direct);
        let (reason, culprit) = match (member.sender, action) {
            (Sender::Switch, _) if names_others => (reason, ANY),
            (Sender::Switch, _) => (reason, culprit),
            (Sender::Worker, Action::Reset) => (reason, member.rank),
            // It calls another operation than the others.
            (Sender::Worker, _) if reason == Reason::Mismatch => (reason, member.rank),
            (Sender::Worker, _) => (Reason::Left, member.rank),
        };
        self.acknowledge(now, from.peer, generation, action, Outcome::Success, 0);
        let calls = if reason == Reason::Mismatch { calls } else { 0 };
        self.close_because(now, id, (reason, culprit, calls));
        if names_others { Verdict::Drop(DropReason::WrongSender) } else { Verdict::Absorb }
    }

    fn answer_other_version(&mut self, now: Instant, from: Source, session: Session) {
        let admission = Admission { member: ANY, rank: ANY, session, ..Admission::default() };
        let ack = Ack {
            generation: 0,
            action: Action::Join,
            outcome: Outcome::OtherVersion,
            sent_at_us: 0,
            index: 0,
            admission: Some(admission),
        };
        self.out.tell(now, from.peer, Control::Ack(ack));
    }

    /// Writes a sum or a result as it is now; none if its cell has given way.
    fn emit_data(&self, data: &Outgoing, buf: &mut [u8]) -> Option<usize> {
        let current = self.jobs.get(&data.job)?.current.as_ref()?;
        let current = (current.number == data.generation).then_some(current)?;
        let cell = current.table.cell(data.index)?;
        let (state, generation, workers) = if data.up {
            (State::Summed, current.above?, current.here())
        } else {
            (State::Final, current.number, current.workers)
        };
        if cell.state() != state || data.index >= current.table.end() {
            return None;
        }
        let is_numbered = self.config.tells_numbered && current.vectors.is_numbered(data.index);
        let missing = Seg::missing_of(workers, cell.contributors, is_numbered);
        let seg = Seg { generation, last: cell.last, missing, index: data.index };
        let start = emit_seg(seg, buf);
        let end = start + cell.floats().len();
        buf[start..end].copy_from_slice(cell.floats());
        Some(end)
    }
}

impl Engine for Switch {
    fn comes_from(&mut self, address: crate::engine::Place) {
        self.door.comes_from(address);
    }

    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        self.events.at(now);
        let is_from_above = from.port == PortId::UPLINK;
        let verdict = match from.class.dscp() {
            DATA_CLASS if is_from_above => self.handle_data_from_above(now, bytes),
            DATA_CLASS => self.handle_data(now, from, bytes),
            CONTROL_CLASS => self.handle_control(now, from, bytes),
            _ => self.handle_foreign(now, from, bytes),
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
            let len = match &waiting.message {
                Message::Data(data) => {
                    let Some(len) = self.emit_data(data, buf) else {
                        self.out.sent.results_gone += copies;
                        continue;
                    };
                    let sent = &mut self.out.sent;
                    *(match (data.up, data.again) {
                        (true, false) => &mut sent.sums_up,
                        (true, true) => &mut sent.sums_up_again,
                        (false, false) => &mut sent.results,
                        (false, true) => &mut sent.results_again,
                    }) += copies;
                    len
                }
                Message::Control(message) => {
                    let name = message.action().name();
                    *self.out.sent.controls.entry(name).or_default() += copies;
                    message.emit(buf)
                }
                Message::Untouched(bytes, _) => {
                    buf[..bytes.len()].copy_from_slice(bytes);
                    bytes.len()
                }
            };
            return Some(Transmit { to: waiting.to, len, class });
        }
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        let departure = self.out.next_departure().map(|at| (at, Why::Departure));
        let has_jobs = !self.jobs.is_empty();
        let silence = has_jobs.then_some((self.next_silence_check, Why::SilenceCheck));
        let has_above = self.out.above().is_some() && has_jobs;
        let sign = has_above.then_some((self.next_sign, Why::Retransmission));
        [departure, silence, sign].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.events.at(now);
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
            let members = job.current.iter().flat_map(|current| &current.members);
            members.map(|member| member.peer).for_each(&mut *keep);
            job.lobby.values().map(|candidate| candidate.peer).for_each(&mut *keep);
        }
        self.out.above().into_iter().for_each(keep);
    }

    fn report(&self, now: Instant, to: &mut dyn Report) {
        report::walk(&self.statistics(now), to);
    }

    /// Joins and leaves name their job. The printed formats have no room for it in other packets:
    /// these are of the job that the party at this address is in.
    fn job_of(&self, at: Source, message: &[u8]) -> Option<u32> {
        let (named, generation) = match at.class.dscp() {
            DATA_CLASS => (None, DataPacket::new_checked(message).ok()?.seg.generation),
            CONTROL_CLASS => (job_of(message), generation_of(message)?),
            _ => return None,
        };
        let seat = || self.seats.get(&(at.peer, generation)).map(|(job, _)| job.0);
        named.or_else(seat)
    }
}
