//! What follows from a piece and from a question.

use super::Switch;
use super::job::{Job, Member, Term};
use super::outbox::{Message, Outbox};
use super::upward::send_sum;
use crate::blocks::records::{Key, Known, Met, Piece, Reason as Refused, Records, State};
use crate::drop::DropReason;
use crate::engine::{Receivers, Source, Verdict};
use crate::party::Moved;
use crate::time::Instant;
use alloc::collections::BTreeMap;
use olaf_wire::reduce::Reason;
use olaf_wire::trio::{ANY, Ask, Block, Closed, Gone, Straggling, TrioPacket, Want, datagram_len};
use olaf_wire::{Refusal, Sides};

impl Switch {
    /// A worker's piece of a block, or a lower switch's sum.
    pub(super) fn handle_piece(
        &mut self,
        now: Instant,
        from: Source,
        packet: &TrioPacket<'_>,
    ) -> Result<Verdict, Refusal> {
        let block = Block::parse(packet)?;
        let key = Key { job: block.job, generation: block.generation, block: block.block };
        let (jobs, out) = (&mut self.jobs, &mut self.out);
        let Heard { job, is_excused } = match hear(jobs, out, now, from, &block) {
            Ok(heard) => heard,
            Err(why) => return Ok(Verdict::Drop(why)),
        };
        let term = job.term.as_ref().expect("hear() found the sender in it");
        let before = u64::from(block.block) * u64::from(term.gradients);
        if before + packet.gradients().len() as u64 / 4 > term.most_gradients {
            self.close(now, key.job, Reason::Refused, Some(block.source));
            return Ok(Verdict::Drop(DropReason::TooManyParameters));
        }
        let piece = Piece {
            key,
            source: block.source,
            sources: block.sources,
            degraded: block.degraded,
            aged: block.aged,
            is_final: block.is_final,
            call: block.call,
            gradients: packet.gradients(),
        };
        let met = self.records.meet(now, &piece);
        let says = ((packet.gradients().len() / 4, block.is_final), block.call);
        let is_disputed = term.disputed.is_some() && met == Met::Added;
        match met {
            Met::Opened | Met::Added | Met::Complete => {
                if met == Met::Complete && !is_excused {
                    complete(&mut self.records, out, now, key, term);
                }
                job.note_newest(key.generation);
                if is_excused {
                    self.is_back(now, key.job, block.source);
                    if met == Met::Complete {
                        self.complete(now, key);
                    }
                }
            }
            Met::Late | Met::Repeated => {
                if met == Met::Late {
                    self.is_almost_back(now, key, block.source);
                }
                self.answer_block(now, key, block.source);
            }
            Met::Refused(reason) => {
                if matches!(reason, Refused::Mismatch | Refused::WrongSize) {
                    self.handle_mismatch(now, key, block.source, says);
                }
                return Ok(Verdict::Drop(DropReason::Record(reason)));
            }
        }
        if is_disputed {
            self.handle_mismatch(now, key, block.source, says);
        }
        Ok(Verdict::Absorb)
    }

    /// The sum of a block is complete.
    pub(super) fn complete(&mut self, now: Instant, key: Key) {
        if let Some(term) = self.jobs.get(&key.job).and_then(|job| job.term.as_ref()) {
            complete(&mut self.records, &mut self.out, now, key, term);
        }
    }

    /// Sends a result to one worker that lacks it; false where the worker has had too many.
    fn send_result_again(&mut self, now: Instant, key: Key, source: u8) -> bool {
        let (.., results) = self.records.usage(key.job);
        let Some(term) = self.jobs.get_mut(&key.job).and_then(|job| job.term.as_mut()) else {
            return true;
        };
        let window = term.window.into();
        let Some(member) = term.members.get_mut(&source) else { return true };
        let behind = member.sources.into();
        let may_draw = member.draws.take(now, Moved { results, window, behind });
        if may_draw {
            let to = Receivers::One(member.peer);
            send_result(&self.records, &mut self.out, now, key, to, true);
        }
        may_draw
    }

    /// A worker has sent a piece of a block that is over, or sent it again.
    fn answer_block(&mut self, now: Instant, key: Key, source: u8) {
        match self.records.known(key) {
            Known::Record(State::Final) => {
                if !self.send_result_again(now, key, source) {
                    self.counters.refuse(DropReason::TooOften);
                }
            }
            Known::Record(State::Summed) => self.send_sum_again(now, key),
            Known::Gone => self.tell_gone(now, key, source),
            Known::Record(State::Open) | Known::New => {}
        }
    }

    fn tell_gone(&mut self, now: Instant, key: Key, source: u8) {
        let Some(term) = self.jobs.get(&key.job).and_then(|job| job.term.as_ref()) else { return };
        let Some(member) = term.members.get(&source) else { return };
        let Member { peer, session, .. } = *member;
        let Key { job, generation, block } = key;
        let gone = Gone { job, term: term.number, source, session, generation, block };
        self.out.tell(now, peer, Message::Gone(gone));
    }

    /// A worker misses results, says what it holds, or that it is there.
    pub(super) fn handle_ask(
        &mut self,
        now: Instant,
        from: Source,
        packet: &TrioPacket<'_>,
    ) -> Result<Verdict, Refusal> {
        let ask = Ask::parse(packet)?;
        let term = self.jobs.get_mut(&ask.job).and_then(|job| job.term.as_mut());
        let Some(term) = term.filter(|term| term.number == ask.term) else {
            // The switch was restarted, or began another term.
            let (job, term, generation) = (ask.job, ask.term, ask.held_generation);
            let reason = Reason::Unknown;
            let sides = Sides::default();
            let closed = Closed { job, term, culprit: ANY, generation, mask: 0, reason, sides };
            self.out.tell(now, from.peer, Message::Closed(closed));
            return Ok(Verdict::Drop(DropReason::UnknownGeneration));
        };
        let member = term.members.get_mut(&ask.source);
        let Some(member) = member.filter(|member| member.session == ask.session) else {
            return Ok(Verdict::Drop(DropReason::NotAMember));
        };
        if member.peer != from.peer {
            return Ok(Verdict::Drop(DropReason::WrongSender));
        }
        self.counters.asks += 1;
        member.heard = now;
        if let Some(closed) = term.closed {
            self.out.tell(now, from.peer, Message::Closed(closed));
        }
        let is_closed = |generation| term.closed.is_some_and(|one| !one.finishes(generation));
        let wants = !is_closed(ask.generation);
        self.records.note_holds(ask.job, ask.source, (ask.held_generation, ask.held_block));
        self.acknowledge_some(now, ask.job);
        let mut missing = 0u64;
        let (mut gone, mut is_too_often) = (None, false);
        for number in ask.blocks() {
            let key = Key { job: ask.job, generation: ask.generation, block: number };
            let lacks = || {
                let record = self.records.record(key);
                record.is_none_or(|record| !record.received.contains(ask.source))
            };
            match self.records.known(key) {
                Known::Record(State::Final) => {
                    is_too_often |= !self.send_result_again(now, key, ask.source);
                }
                Known::Record(State::Summed) => self.send_sum_again(now, key),
                Known::Gone => gone = Some(key),
                Known::New | Known::Record(State::Open) if wants && lacks() => {
                    missing |= 1 << (number - ask.block);
                }
                Known::New | Known::Record(State::Open) => {}
            }
        }
        if let Some(key) = gone {
            self.tell_gone(now, key, ask.source);
        }
        let want = Want {
            job: ask.job,
            term: ask.term,
            source: ask.source,
            session: ask.session,
            generation: ask.generation,
            block: ask.block,
            mask: missing,
            sent_at_us: ask.sent_at_us,
        };
        self.out.tell(now, from.peer, Message::Want(want));
        self.name_the_odd(now, ask.job);
        Ok(if is_too_often { Verdict::Drop(DropReason::TooOften) } else { Verdict::Absorb })
    }

    /// The open term of a job.
    pub(super) fn open_term(&mut self, id: u8) -> Option<&mut super::job::Term> {
        self.jobs.get_mut(&id).and_then(Job::open_term)
    }
}

/// A job whose worker, or lower switch, was heard now.
struct Heard<'a> {
    job: &'a mut Job,
    /// Blocks do not wait for the sender: it is a permanent straggler.
    is_excused: bool,
}

/// The job of a piece, if a member of its term has sent it. This is the only look-up of a piece.
fn hear<'a>(
    jobs: &'a mut BTreeMap<u8, Job>,
    out: &mut Outbox,
    now: Instant,
    from: Source,
    block: &Block,
) -> Result<Heard<'a>, DropReason> {
    let job = jobs.get_mut(&block.job).ok_or(DropReason::UnknownJob)?;
    let term = job.term.as_mut().ok_or(DropReason::UnknownGeneration)?;
    let member = term.members.get_mut(&block.source).ok_or(DropReason::NotAMember)?;
    if member.peer != from.peer {
        // The printed header has no session: the address is all that tells members apart.
        return Err(DropReason::WrongSender);
    }
    if block.sources > member.sources {
        // Its sum would hold workers that belong to others.
        return Err(DropReason::Mismatch);
    }
    member.heard = now;
    let is_excused = member.straggling == Straggling::Permanent;
    if let Some(closed) = term.closed.filter(|closed| !closed.finishes(block.generation)) {
        // The sender has not heard of the end.
        out.tell(now, from.peer, Message::Closed(closed));
        return Err(DropReason::UnknownGeneration);
    }
    Ok(Heard { job, is_excused })
}

/// The sum of a block is complete: it is the result, or goes up.
fn complete(records: &mut Records, out: &mut Outbox, now: Instant, key: Key, term: &Term) {
    if out.above().is_some() {
        return send_sum(records, out, now, key, false);
    }
    records.finish(key);
    send_result(records, out, now, key, Receivers::Many(term.everyone.clone()), false);
}

/// Sends a result, if the block has one: to all workers, the stragglers too, or again to one.
pub(super) fn send_result(
    records: &Records,
    out: &mut Outbox,
    now: Instant,
    key: Key,
    to: Receivers,
    again: bool,
) {
    if let Some(record) = records.record(key).filter(|one| one.state == State::Final) {
        let bytes = datagram_len(record.sum().len());
        out.send(now, to, Message::Result { key, bytes, again });
    }
}
