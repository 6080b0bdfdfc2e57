//! What follows from a piece and from a question.

use super::Switch;
use super::job::{Job, Member};
use super::outbox::Message;
use crate::blocks::records::{Key, Known, Met, Piece, Reason as Refused, State};
use crate::drop::DropReason;
use crate::engine::{Receivers, Source, Verdict};
use crate::party::Moved;
use crate::time::Instant;
use olaf_wire::Refusal;
use olaf_wire::reduce::Reason;
use olaf_wire::trio::{ANY, Ask, Block, Closed, Gone, TrioPacket, Want, datagram_len};

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
        let Some(job) = self.jobs.get_mut(&key.job) else {
            return Ok(Verdict::Drop(DropReason::UnknownJob));
        };
        let Some(term) = &mut job.term else {
            return Ok(Verdict::Drop(DropReason::UnknownGeneration));
        };
        let Some(member) = term.members.get_mut(&block.source) else {
            return Ok(Verdict::Drop(DropReason::NotAMember));
        };
        if member.peer != from.peer {
            return Ok(Verdict::Drop(DropReason::WrongSender));
        }
        if block.sources > member.sources {
            return Ok(Verdict::Drop(DropReason::Mismatch));
        }
        member.heard = now;
        if let Some(closed) = term.closed.filter(|closed| !closed.finishes(key.generation)) {
            self.out.tell(now, from.peer, Message::Closed(closed));
            return Ok(Verdict::Drop(DropReason::UnknownGeneration));
        }
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
            gradients: packet.gradients(),
        };
        let met = self.records.meet(now, &piece);
        match met {
            Met::Opened | Met::Added | Met::Complete => {
                self.contributes(now, key, block.source);
                if met == Met::Complete {
                    self.complete(now, key);
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
                    self.close(now, key.job, Reason::Mismatch, Some(block.source));
                }
                return Ok(Verdict::Drop(DropReason::Record(reason)));
            }
        }
        Ok(Verdict::Absorb)
    }

    /// A piece of a source is in a sum.
    fn contributes(&mut self, now: Instant, key: Key, source: u8) {
        if let Some(job) = self.jobs.get_mut(&key.job) {
            job.note_newest(key.generation);
            self.is_back(now, key.job, source);
        }
    }

    /// The sum of a block is complete: it is the result, or goes up.
    pub(super) fn complete(&mut self, now: Instant, key: Key) {
        let is_lower = self.out.above().is_some();
        if is_lower {
            self.send_sum(now, key, false);
            return;
        }
        self.records.finish(key);
        self.send_result(now, key, None);
    }

    /// Sends a result to one worker, or to all: to the stragglers too.
    pub(super) fn send_result(&mut self, now: Instant, key: Key, to: Option<u8>) {
        let Some(record) = self.records.record(key).filter(|one| one.state == State::Final) else {
            return;
        };
        let bytes = datagram_len(record.sum().len());
        let Some(term) = self.jobs.get(&key.job).and_then(|job| job.term.as_ref()) else { return };
        let receivers = match to {
            None => Receivers::Many(term.everyone.clone()),
            Some(source) => match term.members.get(&source) {
                Some(member) => Receivers::One(member.peer),
                None => return,
            },
        };
        let again = to.is_some();
        self.out.send(now, receivers, Message::Result { key, bytes, again });
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
            self.send_result(now, key, Some(source));
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
            let closed = Closed { job, term, culprit: ANY, generation, mask: 0, reason };
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
        Ok(if is_too_often { Verdict::Drop(DropReason::TooOften) } else { Verdict::Absorb })
    }

    /// The open term of a job.
    pub(super) fn open_term(&mut self, id: u8) -> Option<&mut super::job::Term> {
        self.jobs.get_mut(&id).and_then(Job::open_term)
    }
}
