//! A lower switch's side towards the switch above (Trio-ML §4, hierarchical aggregation): it is one
//! source there, and its `src_cnt` is the number of workers in its sum.
//!
//! A lower switch keeps no time-out for what it sends up. Its workers ask when they miss a result,
//! and it sends its sum again. The switch above answers a sum that it has with the result.

use super::Switch;
use super::job::{Above, Job};
use super::outbox::{Message, Outbox};
use super::pieces::send_result;
use crate::blocks::records::{Key, Piece, Records, State};
use crate::drop::DropReason;
use crate::engine::{Receivers, Source, Verdict};
use crate::sums::REPEAT;
use crate::time::Instant;
use alloc::vec::Vec;
use olaf_wire::reduce::{Reason, WelcomeCode};
use olaf_wire::trio::{
    ANY, Ask, Block, Closed, Gone, Hello, Kind, Leave, Straggler, TrioPacket, Want, Welcome,
    datagram_len,
};
use olaf_wire::{Refusal, Sides};

/// The switch remembers for this many sums when it sent them again.
const MOST_AGAIN: usize = 4096;

/// A lower switch's place in the term above.
pub(super) const fn above(welcome: &Welcome) -> Above {
    Above {
        source: welcome.source,
        session: welcome.session,
        told: (welcome.first, 0),
        leaves: None,
    }
}

impl Switch {
    /// Sends the sum of a block up again, because its result has not come.
    pub(super) fn send_sum_again(&mut self, now: Instant, key: Key) {
        if self.out.above().is_none() {
            return;
        }
        if self.risen_again.len() >= MOST_AGAIN {
            self.risen_again.clear();
        }
        let last = self.risen_again.insert(key, now);
        if let Some(last) = last.filter(|last| now.since(*last) < REPEAT) {
            self.risen_again.insert(key, last);
            return;
        }
        send_sum(&self.records, &mut self.out, now, key, true);
    }

    /// Joins the term above for the workers in the lobby.
    pub(super) fn join_above(&mut self, now: Instant, id: u8) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.has_open_term() || job.lobby.is_empty() {
            return;
        }
        let hellos = || job.lobby.values().map(|candidate| candidate.wish.hello);
        let waiting = job.lobby.contributors();
        let nonce = job.upward.joins_for(waiting);
        // The switch above waits for twice as long: a sum that has aged out here is not late there.
        let own = self.config.deadline.map_or(0, |deadline| deadline.as_millis());
        let asked = hellos().map(|hello| hello.timeout_ms).max().unwrap_or(0);
        let own = u16::try_from(own).unwrap_or(u16::MAX);
        let timeout_ms = if asked > 0 { asked } else { own }.saturating_mul(2);
        let gradients = hellos().map(|hello| hello.gradients).min().unwrap_or(1);
        let window = hellos().map(|hello| hello.window).min().unwrap_or(1);
        let hello = Hello {
            job: id,
            term: hellos().map(|hello| hello.term).max().unwrap_or(0),
            source: ANY,
            sources: u8::try_from(waiting).unwrap_or(u8::MAX).max(1),
            newest: job.newest_of_all(),
            session: job.upward.session,
            workers: job.workers,
            gradients,
            timeout_ms,
            window: window.min(self.config.room(gradients)),
            sent_at_us: 0,
            nonce,
            program: job.owner.program(),
        };
        self.out.tell_above(now, Message::Hello(hello));
    }

    /// A datagram from the switch above.
    pub(super) fn handle_above(
        &mut self,
        now: Instant,
        from: Source,
        packet: &TrioPacket<'_>,
    ) -> Verdict {
        if Some(from.peer) != self.out.above() {
            return Verdict::Drop(DropReason::WrongSender);
        }
        let Some(job) = self.jobs.get_mut(&packet.job()) else {
            return Verdict::Drop(DropReason::UnknownJob);
        };
        job.upward.hear(now);
        let verdict = match packet.kind() {
            Kind::Block | Kind::Aged => self.handle_result(now, packet),
            Kind::Welcome => self.handle_welcome(now, packet),
            Kind::Want => self.handle_want(now, packet),
            Kind::Closed => self.handle_closed(now, packet),
            Kind::Gone => self.handle_gone(now, packet),
            Kind::Straggler => self.handle_straggler(now, packet),
            Kind::Hello | Kind::Ask | Kind::Leave => Ok(Verdict::Drop(DropReason::WrongDirection)),
        };
        verdict.unwrap_or_else(|refusal| Verdict::Drop(DropReason::Malformed(refusal)))
    }

    fn handle_result(&mut self, now: Instant, packet: &TrioPacket<'_>) -> Result<Verdict, Refusal> {
        let block = Block::parse(packet)?;
        let key = Key { job: block.job, generation: block.generation, block: block.block };
        let result = Piece {
            key,
            source: ANY,
            sources: block.sources,
            degraded: block.degraded,
            aged: block.aged,
            is_final: block.is_final,
            call: block.call,
            gradients: packet.gradients(),
        };
        if self.records.fulfil(now, &result) {
            self.counters.results_above += 1;
            self.risen_again.remove(&key);
            if let Some(term) = self.jobs.get(&key.job).and_then(|job| job.term.as_ref()) {
                let everyone = Receivers::Many(term.everyone.clone());
                send_result(&self.records, &mut self.out, now, key, everyone, false);
            }
        } else {
            self.counters.results_above_again += 1;
        }
        Ok(Verdict::Absorb)
    }

    fn handle_want(&mut self, now: Instant, packet: &TrioPacket<'_>) -> Result<Verdict, Refusal> {
        let want = Want::parse(packet)?;
        for block in want.blocks() {
            let key = Key { job: want.job, generation: want.generation, block };
            send_sum(&self.records, &mut self.out, now, key, true);
        }
        Ok(Verdict::Absorb)
    }

    fn handle_closed(&mut self, now: Instant, packet: &TrioPacket<'_>) -> Result<Verdict, Refusal> {
        let closed = Closed::parse(packet)?;
        let is_known = self.open_term(closed.job).is_some_and(|term| term.number == closed.term);
        if !is_known {
            return Ok(Verdict::Absorb);
        }
        // Its numbers of workers are not the ones here.
        self.end(now, &Closed { culprit: ANY, ..closed });
        Ok(Verdict::Absorb)
    }

    /// All workers here were away for too long.
    fn handle_gone(&mut self, now: Instant, packet: &TrioPacket<'_>) -> Result<Verdict, Refusal> {
        let gone = Gone::parse(packet)?;
        let Some(term) = self.jobs.get(&gone.job).and_then(|job| job.term.as_ref()) else {
            return Ok(Verdict::Drop(DropReason::UnknownGeneration));
        };
        if term.number != gone.term {
            return Ok(Verdict::Drop(DropReason::UnknownGeneration));
        }
        for (source, member) in &term.members {
            let gone = Gone { source: *source, session: member.session, ..gone };
            self.out.tell(now, member.peer, Message::Gone(gone));
        }
        Ok(Verdict::Absorb)
    }

    /// A worker, or a lower switch, straggles in the term above.
    fn handle_straggler(
        &mut self,
        now: Instant,
        packet: &TrioPacket<'_>,
    ) -> Result<Verdict, Refusal> {
        let straggler = Straggler::parse(packet)?;
        let Some(term) = self.open_term(straggler.job) else {
            return Ok(Verdict::Drop(DropReason::UnknownGeneration));
        };
        let everyone = Receivers::Many(term.everyone.clone());
        self.out.send(now, everyone, Message::Straggler(straggler));
        Ok(Verdict::Absorb)
    }

    /// The word of the switch above on this one's hello.
    fn handle_welcome(
        &mut self,
        now: Instant,
        packet: &TrioPacket<'_>,
    ) -> Result<Verdict, Refusal> {
        let welcome = Welcome::parse(packet)?;
        let id = welcome.job;
        let Some(job) = self.jobs.get_mut(&id).filter(|job| job.upward.session == welcome.session)
        else {
            return Ok(Verdict::Drop(DropReason::UnknownReceiver));
        };
        match welcome.code {
            WelcomeCode::Waiting => {
                if job.upward.is_to_prove(welcome.nonce) {
                    self.join_above(now, id);
                }
            }
            WelcomeCode::Welcome => {
                if job.term.as_ref().is_some_and(|term| term.number == welcome.term) {
                    return Ok(Verdict::Absorb);
                }
                if !job.upward.is_for(job.lobby.contributors()) {
                    let Welcome { job, term, source, session, .. } = welcome;
                    let reason = Reason::Joined;
                    let leave = Leave { job, term, source, session, reason };
                    self.out.tell_above(now, Message::Leave(leave));
                    return Ok(Verdict::Absorb);
                }
                self.begin(now, id, Some(&welcome));
            }
            code => {
                for candidate in job.lobby.take().into_values() {
                    let (session, sent_at_us) =
                        (candidate.wish.hello.session, candidate.wish.hello.sent_at_us);
                    let refused = Welcome { session, sent_at_us, source: ANY, ..welcome };
                    self.out.tell(now, candidate.peer, Message::Welcome(refused));
                }
                return Ok(Verdict::Drop(DropReason::SumJoinRefused(code)));
            }
        }
        Ok(Verdict::Absorb)
    }

    /// Tells the switch above what all members hold, once that is a good part of a window more.
    pub(super) fn acknowledge_some(&mut self, now: Instant, id: u8) {
        let Some(held) = self.records.held_by_all(id) else { return };
        let Some(term) = self.open_term(id) else { return };
        let part = u32::from(term.window).div_ceil(8);
        let Some(above) = &term.above else { return };
        let is_more = above.told.0 != held.0 || held.1 >= above.told.1.saturating_add(part);
        if is_more {
            self.acknowledge(now, id);
        }
    }

    /// Tells the switch above what all members hold: a heartbeat too.
    fn acknowledge(&mut self, now: Instant, id: u8) {
        let Some(held) = self.records.held_by_all(id) else { return };
        let Some(term) = self.jobs.get_mut(&id).and_then(|job| job.term.as_mut()) else { return };
        let number = term.number;
        let Some(above) = &mut term.above else { return };
        above.told = held;
        let ask = Ask {
            job: id,
            term: number,
            source: above.source,
            session: above.session,
            generation: held.0,
            block: held.1,
            mask: 0,
            held_generation: held.0,
            held_block: held.1,
            sent_at_us: 0,
        };
        self.out.tell_above(now, Message::Ask(ask));
    }

    /// Repeats what must not get lost, sends heartbeats, and notices that there is none above.
    pub(super) fn keep_up(&mut self, now: Instant) {
        let patience = self.patience;
        let ids: Vec<u8> = self.jobs.keys().copied().collect();
        for id in ids {
            self.join_above(now, id);
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            let is_silent = job.upward.is_silent(now, patience);
            let Some(term) = Job::open_term(job) else { continue };
            let leaves = term.above.as_ref().and_then(|above| above.leaves);
            let (number, first) = (term.number, term.first);
            if is_silent {
                let (generation, mask) = self.records.finished(id).unwrap_or((first, 0));
                let (culprit, reason) = (ANY, Reason::SwitchSilent);
                let (job, term, sides) = (id, number, Sides::default());
                self.end(now, &Closed { job, term, culprit, generation, mask, reason, sides });
            } else if let Some(leave) = leaves {
                self.out.tell_above(now, Message::Leave(leave));
            } else {
                self.acknowledge(now, id);
            }
        }
    }
}

/// Sends the sum of a block up.
pub(super) fn send_sum(records: &Records, out: &mut Outbox, now: Instant, key: Key, again: bool) {
    if let Some(record) = records.record(key).filter(|record| record.state == State::Summed) {
        let bytes = datagram_len(record.sum().len());
        out.tell_above(now, Message::Sum { key, bytes, again });
    }
}
