//! Data packets, and the verbs about them: FBcast, Help, SetH, Ack.

use super::job::Member;
use super::{Message, Outgoing, Switch};
use crate::blocks::by_index::{Asked, Met, Piece, Reason as Unfit, State};
use crate::drop::DropReason;
use crate::engine::{Ecn, Receivers, Source, Verdict};
use crate::event::SumEvent;
use crate::ids::{JobId, PeerId};
use crate::time::Instant;
use olaf_wire::Refusal;
use olaf_wire::iswitch::{
    Action, Control, DataPacket, MAX_WORKERS_OF_NUMBERED, Outcome, Packets, SEG, Sender,
};
use olaf_wire::reduce::Reason;

impl Switch {
    /// The job and the member behind a peer, which was heard now.
    pub(super) fn member(
        &mut self,
        now: Instant,
        peer: PeerId,
        generation: u8,
    ) -> Result<(JobId, u32), DropReason> {
        let Some(&(id, member)) = self.seats.get(&(peer, generation)) else {
            // It may be a member of an earlier life of this switch.
            self.halt_unknown(now, peer, generation);
            return Err(DropReason::UnknownGeneration);
        };
        let job = self.jobs.get_mut(&id).expect("a seat is of a job");
        let current = job.generation(generation).expect("a seat is of the newest generation");
        let of = &mut current.members[member as usize];
        if of.has_left {
            return Err(DropReason::NotAMember);
        }
        of.heard = now;
        if current.end.is_some() {
            self.halt_again(now, id, peer);
        }
        Ok((id, member))
    }

    pub(super) fn handle_data(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        let packet = match DataPacket::new_checked(bytes) {
            Ok(packet) => packet,
            Err(refusal) => return Verdict::Drop(DropReason::Malformed(refusal)),
        };
        let seg = packet.seg;
        let (id, member) = match self.member(now, from.peer, seg.generation) {
            Ok(found) => found,
            Err(reason) => return Verdict::Drop(reason),
        };
        let current = self.jobs.get_mut(&id).and_then(|job| job.current.as_mut());
        let current = current.expect("member() found it");
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
            self.tell_of_non_finite(id, member, seg.index);
        }
        match met {
            Met::Opened | Met::Added | Met::Held | Met::Occupied => {}
            Met::Complete => self.sum_is_complete(now, id, seg.index, false),
            Met::Late | Met::Repeated => {
                if self.send_result(now, id, seg.index, member) == Again::TooOften {
                    self.counters.refuse(DropReason::TooOften);
                }
            }
            Met::Refused(reason) => {
                if reason == Unfit::NonFinite {
                    // A result has no field for the worker that it lacks, as those of `reduce` have.
                    self.tell_of_non_finite(id, member, seg.index);
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

    /// Tells of floats that are no finite numbers: once for each worker's vector, by its first packet. The workers
    /// behind a lower switch are named there.
    fn tell_of_non_finite(&mut self, id: JobId, member: u32, index: u64) {
        let current = self.jobs.get_mut(&id).and_then(|job| job.current.as_mut());
        let current = current.expect("member() found the generation");
        let Member { sender, rank, .. } = current.members[member as usize];
        let first = current.vectors.first_of(index);
        if sender == Sender::Worker && current.vectors.is_news(first, member) {
            let operation = u32::try_from(first).unwrap_or(u32::MAX);
            self.event(id, SumEvent::NonFinite { rank, operation });
        }
    }

    /// A sum leaves: up where there is a switch above, and otherwise to all members.
    pub(super) fn sum_is_complete(&mut self, now: Instant, id: JobId, index: u64, again: bool) {
        let has_above = self.out.above().is_some();
        let job = self.jobs.get_mut(&id).expect("callers know the job");
        let current = job.current.as_mut().expect("callers know the generation");
        if !has_above {
            current.table.finish_own(index);
            return self.broadcast(now, id, index);
        }
        if let Some(cell) = current.table.cell(index) {
            let outgoing = Outgoing {
                job: id,
                generation: current.number,
                index,
                up: true,
                again,
                bytes: SEG + cell.floats().len(),
                congested: cell.congested,
            };
            self.out.tell_above(now, Message::Data(outgoing));
            job.upward.waiting_since.get_or_insert(now);
        }
    }

    /// Sends a result to all members.
    pub(super) fn broadcast(&mut self, now: Instant, id: JobId, index: u64) {
        let current = self.jobs.get(&id).and_then(|job| job.current.as_ref());
        if let Some((outgoing, current)) =
            current.and_then(|current| Some((result_of(id, current, index, false)?, current)))
        {
            let to = Receivers::Many(current.group.clone());
            self.out.send(now, to, Message::Data(outgoing));
        }
    }

    /// Sends a result to one member, where there is a result.
    fn send_result(&mut self, now: Instant, id: JobId, index: u64, member: u32) -> Again {
        let current = self.jobs.get_mut(&id).and_then(|job| job.current.as_mut());
        let current = current.expect("member() found the generation");
        let Some(outgoing) = result_of(id, current, index, true) else { return Again::Nothing };
        if !current.may_draw(now, member) {
            return Again::TooOften;
        }
        let to = current.members[member as usize].peer;
        self.out.send(now, Receivers::One(to), Message::Data(outgoing));
        Again::Sent
    }

    /// Help: results that are lost go again. The sender's own packets that are lost are asked back. For the
    /// rest the switch above is asked, where there is one.
    pub(super) fn handle_help(&mut self, now: Instant, from: Source, asked: &Packets) -> Verdict {
        let (id, member) = match self.member(now, from.peer, asked.generation) {
            Ok(found) => found,
            Err(reason) => return Verdict::Drop(reason),
        };
        let (mut wanted, mut above, mut is_too_often) = (0, 0, false);
        for index in asked.iter() {
            let bit = 1u64 << (index - asked.index);
            match self.table(id).ask(member, index) {
                Asked::Result => {
                    is_too_often |= self.send_result(now, id, index, member) == Again::TooOften;
                }
                Asked::Wanted => {
                    wanted |= bit;
                    above |= bit;
                }
                Asked::Waiting => above |= bit,
                Asked::Held | Asked::Nothing => {}
            }
        }
        if wanted != 0 {
            let help = Packets { mask: wanted, ..*asked };
            self.out.tell(now, from.peer, Control::Help(help));
        } else {
            let outcome = if above == 0 { Outcome::Success } else { Outcome::Waiting };
            let at = asked.sent_at_us;
            self.acknowledge(now, from.peer, asked.generation, Action::Help, outcome, at);
        }
        self.ask_above(now, id, Action::Help, &Packets { mask: above, ..*asked });
        if is_too_often { Verdict::Drop(DropReason::TooOften) } else { Verdict::Absorb }
    }

    /// FBcast: sums go without the members that are missing.
    pub(super) fn handle_fbcast(&mut self, now: Instant, from: Source, asked: &Packets) -> Verdict {
        let (id, member) = match self.member(now, from.peer, asked.generation) {
            Ok(found) => found,
            Err(reason) => return Verdict::Drop(reason),
        };
        let (mut done, mut above, mut is_too_often) = (0, 0, false);
        for index in asked.iter() {
            let bit = 1u64 << (index - asked.index);
            if self.table(id).force(index) {
                self.counters.forced += 1;
                self.sum_is_complete(now, id, index, false);
                done |= bit;
                above |= bit;
                continue;
            }
            match self.send_result(now, id, index, member) {
                Again::Sent => done |= bit,
                Again::TooOften => is_too_often = true,
                Again::Nothing => above |= bit,
            }
        }
        let has_above = self.out.above().is_some();
        let outcome = match (done, above) {
            (0, above) if above != 0 && has_above => Outcome::Waiting,
            (0, _) => Outcome::Refused,
            _ => Outcome::Success,
        };
        let at = asked.sent_at_us;
        self.acknowledge(now, from.peer, asked.generation, Action::FBcast, outcome, at);
        self.ask_above(now, id, Action::FBcast, &Packets { mask: above, ..*asked });
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
        let id = match self.member(now, from.peer, generation) {
            Ok((id, _)) => id,
            Err(reason) => return Verdict::Drop(reason),
        };
        let can_be = self.table(id).set_threshold(h);
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
        let (id, member) = match self.member(now, from.peer, ack.generation) {
            Ok(found) => found,
            Err(reason) => return Verdict::Drop(reason),
        };
        self.table(id).note_holds(member, ack.index);
        let at = ack.sent_at_us;
        self.acknowledge(now, from.peer, ack.generation, Action::Ack, Outcome::Success, at);
        Verdict::Absorb
    }

    fn table(&mut self, id: JobId) -> &mut crate::blocks::ByIndex {
        let current = self.jobs.get_mut(&id).and_then(|job| job.current.as_mut());
        &mut current.expect("member() found the generation").table
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

/// The result of a packet, where there is one and the generation has it.
fn result_of(
    job: JobId,
    current: &super::job::Generation,
    index: u64,
    again: bool,
) -> Option<Outgoing> {
    let cell = current.table.cell(index).filter(|cell| cell.state() == State::Final)?;
    (index < current.table.end()).then(|| Outgoing {
        job,
        generation: current.number,
        index,
        up: false,
        again,
        bytes: SEG + cell.floats().len(),
        congested: cell.congested,
    })
}
