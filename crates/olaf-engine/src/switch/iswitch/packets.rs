//! Data packets, and the verbs about them: FBcast, Help, SetH, Ack.

use super::job::{Here, Job, Member};
use super::membership::halt_of;
use super::{Message, Outbox, Outgoing, Switch};
use crate::blocks::by_index::{Asked, Met, Piece, Reason as Unfit, State};
use crate::drop::DropReason;
use crate::engine::{Ecn, Receivers, Source, Verdict};
use crate::event::{Log, SumEvent};
use crate::ids::{JobId, PeerId};
use crate::time::Instant;
use alloc::collections::BTreeMap;
use olaf_wire::Refusal;
use olaf_wire::iswitch::{
    ANY, Action, Control, DataPacket, Halt, MAX_WORKERS_OF_NUMBERED, Outcome, Packets, SEG, Sender,
};
use olaf_wire::reduce::Reason;

/// The generation of a packet, and its sender's place among the members. The sender is heard now. This is the only
/// look-up of a packet.
pub(super) fn hear<'a>(
    jobs: &'a mut BTreeMap<JobId, Job>,
    seats: &BTreeMap<(PeerId, u8), (JobId, u32)>,
    out: &mut Outbox,
    now: Instant,
    peer: PeerId,
    generation: u8,
) -> Result<(Here<'a>, u32), DropReason> {
    let Some(&(id, member)) = seats.get(&(peer, generation)) else {
        // It may be a member of an earlier life of this switch.
        let halt = Halt { generation, reason: Reason::Unknown, culprit: ANY, index: 0, calls: 0 };
        out.tell(now, peer, Control::Halt(halt));
        return Err(DropReason::UnknownGeneration);
    };
    let job = jobs.get_mut(&id).expect("a seat is of a job");
    let here = job.here(id).expect("a seat is of the newest generation");
    let of = &mut here.current.members[member as usize];
    if of.has_left {
        // What it sent before it left may still be on the way.
        return Err(DropReason::NotAMember);
    }
    of.heard = now;
    if let Some(end) = here.current.end {
        // The Halt to all may be lost.
        out.tell(now, peer, Control::Halt(halt_of(generation, end)));
    }
    Ok((here, member))
}

impl Switch {
    pub(super) fn handle_data(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        let packet = match DataPacket::new_checked(bytes) {
            Ok(packet) => packet,
            Err(refusal) => return Verdict::Drop(DropReason::Malformed(refusal)),
        };
        let seg = packet.seg;
        let (jobs, out) = (&mut self.jobs, &mut self.out);
        let heard = hear(jobs, &self.seats, out, now, from.peer, seg.generation);
        let (mut here, member) = match heard {
            Ok(found) => found,
            Err(reason) => return Verdict::Drop(reason),
        };
        let (id, current) = (here.id, &mut *here.current);
        if packet.floats.len() > current.packet_floats as usize * 4 {
            return Verdict::Drop(DropReason::Malformed(Refusal::BadField("floats")));
        }
        // A worker's own packet lacks nobody: there the field numbers its vectors for this sum.
        let (of, tells) = (&current.members[member as usize], self.config.tells_numbered);
        let (missing, vector, is_numbered) = match of.sender {
            Sender::Worker => (0, seg.missing.into(), seg.missing > 0),
            Sender::Switch if !tells => (seg.missing.into(), 0, false),
            Sender::Switch => {
                let (vectors, is_numbered) = seg.vectors_of(of.contributors);
                (of.contributors - vectors, 0, is_numbered)
            }
        };
        if tells && is_numbered && current.workers > MAX_WORKERS_OF_NUMBERED {
            // A result has no room to say so.
            return Verdict::Drop(DropReason::Malformed(Refusal::BadField("missing")));
        }
        let piece = Piece {
            index: seg.index,
            member,
            missing,
            vector,
            last: seg.last,
            congested: from.class.ecn() == Ecn::Marked,
            floats: packet.floats,
        };
        let rank = current.members[member as usize].rank;
        let met = current.table.meet(&piece);
        let is_finite = current.table.last_piece_was_finite();
        if is_numbered && matches!(met, Met::Opened | Met::Added | Met::Complete) {
            current.note_numbered(seg.index, true);
        }
        if seg.last && matches!(met, Met::Opened | Met::Added | Met::Complete) {
            current.vectors.end_at(seg.index, current.table.first_incomplete());
        }
        if current.length.is_exceeded(&current.table) {
            self.close(now, id, Reason::Refused, rank);
            return Verdict::Drop(DropReason::TooManyParameters);
        }
        if !is_finite {
            self.counters.non_finite += 1;
            here.tell_of_non_finite(&mut self.events, member, seg.index);
        }
        match met {
            Met::Opened | Met::Added | Met::Held | Met::Occupied => {}
            Met::Complete => here.complete(out, now, seg.index, false),
            Met::Late | Met::Repeated => {
                if here.send_result(out, now, seg.index, member) == Again::TooOften {
                    self.counters.refuse(DropReason::TooOften);
                }
            }
            Met::Refused(reason) => {
                if reason == Unfit::NonFinite {
                    // A result has no field for the worker that it lacks, as those of `reduce` have.
                    here.tell_of_non_finite(&mut self.events, member, seg.index);
                    self.close(now, id, Reason::Refused, rank);
                }
                if matches!(reason, Unfit::Mismatch | Unfit::WrongSize) {
                    self.close(now, id, Reason::Mismatch, rank);
                }
                return Verdict::Drop(DropReason::Piece(reason));
            }
        }
        Verdict::Absorb
    }

    /// Help: results that are lost go again. The sender's own packets that are lost are asked back. For the
    /// rest the switch above is asked, where there is one.
    pub(super) fn handle_help(&mut self, now: Instant, from: Source, asked: &Packets) -> Verdict {
        let (jobs, out) = (&mut self.jobs, &mut self.out);
        let heard = hear(jobs, &self.seats, out, now, from.peer, asked.generation);
        let (mut here, member) = match heard {
            Ok(found) => found,
            Err(reason) => return Verdict::Drop(reason),
        };
        let (mut wanted, mut above, mut is_too_often) = (0, 0, false);
        for index in asked.iter() {
            let bit = 1u64 << (index - asked.index);
            match here.current.table.ask(member, index) {
                Asked::Result => {
                    is_too_often |= here.send_result(out, now, index, member) == Again::TooOften;
                }
                Asked::Wanted => {
                    wanted |= bit;
                    above |= bit;
                }
                Asked::Waiting => above |= bit,
                Asked::Held | Asked::Nothing => {}
            }
        }
        here.ask_above(out, now, Action::Help, &Packets { mask: above, ..*asked });
        if wanted != 0 {
            let help = Packets { mask: wanted, ..*asked };
            self.out.tell(now, from.peer, Control::Help(help));
        } else {
            let outcome = if above == 0 { Outcome::Success } else { Outcome::Waiting };
            let at = asked.sent_at_us;
            self.acknowledge(now, from.peer, asked.generation, Action::Help, outcome, at);
        }
        if is_too_often { Verdict::Drop(DropReason::TooOften) } else { Verdict::Absorb }
    }

    /// FBcast: sums go without the members that are missing.
    pub(super) fn handle_fbcast(&mut self, now: Instant, from: Source, asked: &Packets) -> Verdict {
        let (jobs, out) = (&mut self.jobs, &mut self.out);
        let heard = hear(jobs, &self.seats, out, now, from.peer, asked.generation);
        let (mut here, member) = match heard {
            Ok(found) => found,
            Err(reason) => return Verdict::Drop(reason),
        };
        let (mut done, mut above, mut is_too_often) = (0, 0, false);
        for index in asked.iter() {
            let bit = 1u64 << (index - asked.index);
            if here.current.table.force(index) {
                self.counters.forced += 1;
                here.complete(out, now, index, false);
                done |= bit;
                above |= bit;
                continue;
            }
            match here.send_result(out, now, index, member) {
                Again::Sent => done |= bit,
                Again::TooOften => is_too_often = true,
                Again::Nothing => above |= bit,
            }
        }
        here.ask_above(out, now, Action::FBcast, &Packets { mask: above, ..*asked });
        let has_above = out.above().is_some();
        let outcome = match (done, above) {
            (0, above) if above != 0 && has_above => Outcome::Waiting,
            (0, _) => Outcome::Refused,
            _ => Outcome::Success,
        };
        let at = asked.sent_at_us;
        self.acknowledge(now, from.peer, asked.generation, Action::FBcast, outcome, at);
        if is_too_often { Verdict::Drop(DropReason::TooOften) } else { Verdict::Absorb }
    }

    /// SetH: the threshold of this switch alone (`differs:` in `docs/design/030-iswitch.md`).
    pub(super) fn handle_set_h(
        &mut self,
        now: Instant,
        from: Source,
        generation: u8,
        h: u32,
    ) -> Verdict {
        let (jobs, out) = (&mut self.jobs, &mut self.out);
        let here = match hear(jobs, &self.seats, out, now, from.peer, generation) {
            Ok((here, _)) => here,
            Err(reason) => return Verdict::Drop(reason),
        };
        let can_be = here.current.table.set_threshold(h);
        let outcome = if can_be { Outcome::Success } else { Outcome::Refused };
        self.acknowledge(now, from.peer, generation, Action::SetH, outcome, 0);
        Verdict::Absorb
    }

    /// Ack from below: results are here, and the sender lives.
    pub(super) fn handle_ack(
        &mut self,
        now: Instant,
        from: Source,
        ack: &olaf_wire::iswitch::Ack,
    ) -> Verdict {
        let (jobs, out) = (&mut self.jobs, &mut self.out);
        let (here, member) = match hear(jobs, &self.seats, out, now, from.peer, ack.generation) {
            Ok(found) => found,
            Err(reason) => return Verdict::Drop(reason),
        };
        here.current.table.note_holds(member, ack.index);
        let at = ack.sent_at_us;
        self.acknowledge(now, from.peer, ack.generation, Action::Ack, Outcome::Success, at);
        Verdict::Absorb
    }
}

impl Here<'_> {
    /// Tells of floats that are no finite numbers: once for each worker's vector, by its first packet. The workers
    /// behind a lower switch are named there.
    fn tell_of_non_finite(&mut self, events: &mut Log, member: u32, index: u64) {
        let current = &mut *self.current;
        let Member { sender, rank, .. } = current.members[member as usize];
        let first = current.vectors.first_of(index);
        if sender == Sender::Worker && current.vectors.is_news(first, member) {
            let operation = u32::try_from(first).unwrap_or(u32::MAX);
            events.push(self.id, SumEvent::NonFinite { rank, operation });
        }
    }

    /// A sum leaves: up where there is a switch above, and otherwise to all members.
    pub(super) fn complete(&mut self, out: &mut Outbox, now: Instant, index: u64, again: bool) {
        if out.above().is_none() {
            self.current.table.finish_own(index);
            return self.broadcast(out, now, index);
        }
        if let Some(cell) = self.current.table.cell(index) {
            let outgoing = Outgoing {
                job: self.id,
                generation: self.current.number,
                index,
                up: true,
                again,
                bytes: SEG + cell.floats().len(),
                congested: cell.congested,
            };
            out.tell_above(now, Message::Data(outgoing));
        }
    }

    /// Sends a result to all members.
    pub(super) fn broadcast(&self, out: &mut Outbox, now: Instant, index: u64) {
        if let Some(outgoing) = self.result_of(index, false) {
            let to = Receivers::Many(self.current.group.clone());
            out.send(now, to, Message::Data(outgoing));
        }
    }

    /// Sends a result to one member, where there is a result.
    fn send_result(&mut self, out: &mut Outbox, now: Instant, index: u64, member: u32) -> Again {
        let Some(outgoing) = self.result_of(index, true) else { return Again::Nothing };
        if !self.current.may_draw(now, member) {
            return Again::TooOften;
        }
        let to = self.current.members[member as usize].peer;
        out.send(now, Receivers::One(to), Message::Data(outgoing));
        Again::Sent
    }

    /// The result of a packet, where there is one and the generation has it.
    fn result_of(&self, index: u64, again: bool) -> Option<Outgoing> {
        let table = &self.current.table;
        let cell = table.cell(index).filter(|cell| cell.state() == State::Final)?;
        (index < table.end()).then(|| Outgoing {
            job: self.id,
            generation: self.current.number,
            index,
            up: false,
            again,
            bytes: SEG + cell.floats().len(),
            congested: cell.congested,
        })
    }
}

/// What became of a result that one member alone lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    Sent,
    /// There is none.
    Nothing,
    /// The member has had too many.
    TooOften,
}
