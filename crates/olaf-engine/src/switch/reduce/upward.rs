//! A lower switch's side towards the switch above: a member of the generation there.
//!
//! A lower switch keeps no time-out for what it sends up. Its members ask when they miss a result,
//! and it passes on what it cannot answer. It repeats only its join, its heartbeats and the end
//! of a generation.

use super::Switch;
use super::closing::culprit_is;
use super::generation::{Above, End, Generation};
use super::job::Wish;
use super::outbox::{Message, Outbox, Outgoing};
use super::pieces::send_result;
use crate::blocks::pool::{About, State};
use crate::drop::DropReason;
use crate::engine::Verdict;
use crate::event::SumEvent;
use crate::ids::{JobId, Session};
use crate::sums::REPEAT;
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use olaf_wire::reduce::{
    ALL, Address, Ask, BlockResult, Blocks, Called, Closed, Join, Kind, Operator, Reason,
    ReducePacket, Want, Welcome, WelcomeCode, datagram_len,
};

impl Switch {
    /// A datagram from the switch above.
    pub(super) fn handle_above(&mut self, now: Instant, packet: &ReducePacket<'_>) -> Verdict {
        let address = packet.address();
        let Some(job) = self.jobs.get_mut(&address.job) else {
            return Verdict::Drop(DropReason::UnknownJob);
        };
        if packet.kind() == Kind::Welcome {
            if job.upward.session != address.session {
                return Verdict::Drop(DropReason::UnknownReceiver);
            }
            job.upward.hear(now);
            return match Welcome::parse(packet) {
                Ok(welcome) => self.handle_welcome(now, &welcome),
                Err(refusal) => Verdict::Drop(DropReason::Malformed(refusal)),
            };
        }
        let generation = job.generations().find_map(|generation| {
            let above = generation.above.as_ref()?;
            (above.generation == address.generation).then_some(generation.number)
        });
        let Some(number) = generation else {
            return Verdict::Drop(DropReason::UnknownGeneration);
        };
        job.upward.hear(now);
        let verdict = match packet.kind() {
            Kind::Result => self.handle_result(now, address.job, number, packet),
            Kind::Want => self.handle_want(now, address.job, number, packet),
            Kind::Closed => self.handle_closed_above(now, address.job, number, packet),
            _ => return Verdict::Drop(DropReason::WrongDirection),
        };
        verdict.unwrap_or_else(|refusal| Verdict::Drop(DropReason::Malformed(refusal)))
    }

    /// The switch above has the sum of a block.
    fn handle_result(
        &mut self,
        now: Instant,
        job: JobId,
        number: u32,
        packet: &ReducePacket<'_>,
    ) -> Result<Verdict, olaf_wire::Refusal> {
        let result = BlockResult::parse(packet)?;
        let generation = self.jobs.get_mut(&job).and_then(|job| job.generation(number));
        let generation = generation.expect("handle_above() has just found it");
        let lanes = packet.lanes();
        let number = result.block.number;
        let count = lanes.len() / result.block.lane_type.bytes();
        let Ok(shape) = generation.shapes.of(&result.block, count) else {
            return Ok(Verdict::Drop(DropReason::Mismatch));
        };
        let above = generation.above.as_mut().expect("handle_above() has just found it");
        let known = match result.block.operator {
            Operator::Broadcast => 1,
            _ if above.expected == 0 => result.expected,
            _ => above.expected,
        };
        if result.expected != known {
            return Ok(Verdict::Drop(DropReason::Mismatch));
        }
        let about = About {
            lane_type: result.block.lane_type,
            operator: result.block.operator,
            not_finite: result.marks.not_finite,
            congested: result.marks.congested,
        };
        let fulfilled = generation.pool.fulfil(number, result.contributors, lanes, &about);
        if !fulfilled {
            // It is here already, or its cell has another block.
            self.counters.results_above_again += 1;
            return Ok(Verdict::Absorb);
        }
        self.counters.results_above += 1;
        let held = generation.pool.min_holds();
        generation.shapes.note(result.block.operation, shape, held);
        let above = generation.above.as_mut().expect("handle_above() has just found it");
        if result.block.operator != Operator::Broadcast {
            above.expected = result.expected;
        }
        if result.is_partial() {
            above.words.insert(number, packet.contributor_words().collect());
        }
        let oldest = number.saturating_sub(2 * generation.pool.slots());
        above.words = above.words.split_off(&oldest);
        above.asked = above.asked.split_off(&held);
        send_result(&mut self.out, now, generation, number, None, result.sent_at_us);
        Ok(Verdict::Absorb)
    }

    /// The switch above misses sums, or sends a heartbeat.
    fn handle_want(
        &mut self,
        now: Instant,
        job: JobId,
        number: u32,
        packet: &ReducePacket<'_>,
    ) -> Result<Verdict, olaf_wire::Refusal> {
        let want = Want::parse(packet)?;
        let generation = self.jobs.get_mut(&job).and_then(|job| job.generation(number));
        let generation = generation.expect("handle_above() has just found it");
        for block in want.blocks.iter() {
            send_sum(&mut self.out, now, generation, block, want.sent_at_us, true);
        }
        Ok(Verdict::Absorb)
    }

    fn handle_closed_above(
        &mut self,
        now: Instant,
        job: JobId,
        number: u32,
        packet: &ReducePacket<'_>,
    ) -> Result<Verdict, olaf_wire::Refusal> {
        let Closed { operation, culprit, reason, clash, .. } = Closed::parse(packet)?;
        let known = self.jobs.get_mut(&job).and_then(|job| job.generation(number));
        if let Some(above) = known.and_then(|generation| generation.above.as_mut()) {
            above.is_closed = true;
        }
        self.close(now, job, number, End { operation, culprit, reason, at: now, clash });
        Ok(Verdict::Absorb)
    }

    /// The word of the switch above on this one's join.
    fn handle_welcome(&mut self, now: Instant, welcome: &Welcome) -> Verdict {
        let id = welcome.address.job;
        let Some(job) = self.jobs.get_mut(&id) else {
            return Verdict::Drop(DropReason::UnknownJob);
        };
        match welcome.code {
            WelcomeCode::Waiting => {
                if job.upward.is_to_prove(welcome.nonce) {
                    self.join_above(now, id);
                }
                Verdict::Absorb
            }
            WelcomeCode::Welcome => {
                let is_known = job.generations().any(|generation| {
                    let above = generation.above.as_ref();
                    above.is_some_and(|above| above.generation == welcome.address.generation)
                });
                if is_known {
                    return Verdict::Absorb;
                }
                if welcome.cores > self.config.cores {
                    // Workers of other lower switches use cores that this one does not have.
                    let event =
                        SumEvent::CoresDiffer { here: self.config.cores, above: welcome.cores };
                    self.refuse_welcome(now, welcome);
                    self.refuse_lobby(now, welcome, WelcomeCode::Refused);
                    self.event(id, event);
                    return Verdict::Drop(DropReason::Mismatch);
                }
                if !job.upward.is_for(job.lobby.contributors()) {
                    self.refuse_welcome(now, welcome);
                    return Verdict::Absorb;
                }
                self.begin(now, id, Some(welcome));
                Verdict::Absorb
            }
            code => {
                self.refuse_lobby(now, welcome, code);
                Verdict::Drop(DropReason::SumJoinRefused(code))
            }
        }
    }

    /// Turns away the workers that wait for the generation above.
    fn refuse_lobby(&mut self, now: Instant, welcome: &Welcome, code: WelcomeCode) {
        let job = self.jobs.get_mut(&welcome.address.job);
        let lobby = job.map(|job| job.lobby.take()).unwrap_or_default();
        for (session, candidate) in lobby {
            let address = Address { session, rank: ALL, ..welcome.address };
            let sent_at_us = candidate.wish.sent_at_us;
            let refused = Welcome { address, code, sent_at_us, ..*welcome };
            self.out.tell(now, candidate.peer, Message::Welcome(refused));
        }
    }

    /// Ends a generation above before its first operation.
    fn refuse_welcome(&mut self, now: Instant, welcome: &Welcome) {
        let End { culprit, .. } = culprit_is(None, now);
        let address = welcome.address;
        let reason = Reason::Joined;
        let closed = Closed { address, operation: 0, culprit, reason, clash: None };
        self.out.tell_above(now, Message::Closed(closed));
    }

    /// Joins the generation above for the workers in the lobby.
    pub(super) fn join_above(&mut self, now: Instant, id: JobId) {
        let patience = self.patience;
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let is_ready = job.fixed > 0 && !job.lobby.is_empty() || job.is_complete(now, patience);
        let is_open = job.current.as_ref().is_some_and(|current| current.end.is_none());
        if !is_ready || is_open {
            return;
        }
        if job.upward.session == Session(0) {
            // The members know this life's generations: nothing of them may lead to the session.
            job.upward.session = Session(match self.numbers.secret() {
                Some(secret) => secret.max(1),
                None => self.next_session,
            });
            self.next_session = self.next_session.checked_add(1).unwrap_or(1);
        }
        let contributors = job.lobby.contributors();
        let nonce = job.upward.joins_for(contributors);
        let operation = job.operations();
        let least = |of: fn(&Wish) -> u32| {
            job.lobby
                .values()
                .map(|candidate| of(&candidate.wish))
                .filter(|number| *number > 0)
                .min()
                .unwrap_or(0)
        };
        let generation = job.current.as_ref().and_then(|current| current.above.as_ref());
        let join = Join {
            address: Address {
                job: id,
                generation: generation.map_or(0, |above| above.generation),
                rank: ALL,
                session: job.upward.session,
            },
            workers: job.fixed,
            contributors,
            deadline_us: job.deadline_us,
            block_bytes: least(|wish| wish.block_bytes),
            datagram_bytes: least(|wish| wish.datagram_bytes)
                .min(self.config.uplink_datagram_bytes),
            sent_at_us: 0,
            nonce,
            operation: operation.filter(|_| generation.is_some()).unwrap_or(0),
            program: job.owner.program(),
        };
        self.out.tell_above(now, Message::Join(join));
    }

    /// Repeats what must not get lost, sends heartbeats, and notices that there is none above.
    pub(super) fn keep_up(&mut self, now: Instant) {
        let patience = self.patience;
        let ids: Vec<JobId> = self.jobs.keys().copied().collect();
        for id in ids {
            self.join_above(now, id);
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            let is_silent = job.upward.is_silent(now, patience);
            let mut silent = Vec::new();
            for generation in job.generations_mut() {
                let Some(above) = &generation.above else { continue };
                let address = above_address(id, above);
                match generation.end {
                    None if is_silent => {
                        silent.push((generation.number, generation.first_without_result()));
                    }
                    Some(_) if !above.is_closed => {
                        let closed = generation.closed(address).expect("it has ended");
                        self.out.tell_above(now, Message::Closed(closed));
                    }
                    None => acknowledge(&mut self.out, now, generation),
                    Some(_) => {}
                }
            }
            for (number, operation) in silent {
                let reason = Reason::SwitchSilent;
                self.close(now, id, number, End { operation, reason, ..culprit_is(None, now) });
            }
        }
    }
}

/// What a generation is in the one above.
pub(super) fn above(welcome: &Welcome) -> Above {
    Above {
        generation: welcome.address.generation,
        rank: welcome.address.rank,
        session: welcome.address.session,
        expected: 0,
        acknowledged: 0,
        is_closed: false,
        asked: BTreeMap::new(),
        words: BTreeMap::new(),
    }
}

/// This switch's address in the generation above.
pub(super) fn above_address(job: JobId, above: &Above) -> Address {
    Address { job, generation: above.generation, rank: above.rank, session: above.session }
}

/// Sends the sum of a block up; nothing where it is not complete here, or the result is there.
pub(super) fn send_sum(
    out: &mut Outbox,
    now: Instant,
    generation: &mut Generation,
    block: u32,
    sent_at_us: u32,
    again: bool,
) {
    let Some(cell) = generation.pool.cell(block).filter(|cell| cell.state() == State::Summed)
    else {
        return;
    };
    let Some(block) = generation.shapes.block(block) else { return };
    let is_partial = cell.contributors < generation.expected_here(block.operator);
    let words = if is_partial { cell.from().words().len() } else { 0 };
    let bytes = datagram_len(words, block.lane_type, cell.lane_count());
    let Generation { job, number, .. } = *generation;
    let sum = Outgoing { job, generation: number, block, to: None, again, sent_at_us, bytes };
    out.tell_above(now, Message::Piece(sum));
    let holds = generation.pool.min_holds();
    if let Some(above) = &mut generation.above {
        above.acknowledged = holds;
    }
}

/// Passes a question on for the blocks whose results are not here.
pub(super) fn ask_above(
    out: &mut Outbox,
    now: Instant,
    generation: &mut Generation,
    mut blocks: Blocks,
    sent_at_us: u32,
    awaits: Option<(u32, Called)>,
) {
    let holds = generation.pool.min_holds();
    let operation = generation.shapes.next().0;
    let job = generation.job;
    let awaits = awaits.filter(|(awaited, called)| generation.agrees(*awaited, called));
    let Some(above) = &mut generation.above else { return };
    for block in blocks.iter() {
        let last = above.asked.get(&block);
        if last.is_some_and(|last| now.since(*last) < REPEAT) {
            blocks.mask &= !(1 << (block - blocks.first));
        } else {
            above.asked.insert(block, now);
        }
    }
    if blocks.mask == 0 {
        return;
    }
    above.acknowledged = holds;
    let address = above_address(job, above);
    let operation = operation.saturating_sub(1);
    let ask = Ask { address, operation, blocks, holds, sent_at_us, awaits };
    out.tell_above(now, Message::Ask(ask));
}

/// Tells the switch above which results all members hold: a heartbeat too.
pub(super) fn acknowledge(out: &mut Outbox, now: Instant, generation: &mut Generation) {
    let holds = generation.pool.min_holds().min(generation.shapes.next().1);
    let operation = generation.shapes.next().0.saturating_sub(1);
    let job = generation.job;
    let Some(above) = &mut generation.above else { return };
    above.acknowledged = holds;
    let (address, blocks) = (above_address(job, above), Blocks::default());
    let ask = Ask { address, operation, blocks, holds, sent_at_us: 0, awaits: None };
    out.tell_above(now, Message::Ask(ask));
}
