//! Pieces, results and questions for them.

use super::Switch;
use super::closing::culprit_is;
use super::generation::{End, Generation};
use super::job::{Job, hear};
use super::outbox::{Message, Outbox, Outgoing};
use super::shapes::{Misfit, Shape};
use super::upward::{acknowledge, ask_above, send_sum};
use crate::blocks::pool::{Asked, Met, Piece as Table, Reason as TableReason, State};
use crate::drop::DropReason;
use crate::engine::{Ecn, Receivers, Source, Verdict};
use crate::event::{Log, SumEvent};
use crate::ids::JobId;
use crate::time::Instant;
use olaf_wire::Refusal;
use olaf_wire::reduce::{
    Address, Ask, Blocks, Operator, Piece, Reason, ReducePacket, Want, datagram_len,
};

impl Switch {
    pub(super) fn handle_piece(
        &mut self,
        now: Instant,
        from: Source,
        packet: &ReducePacket<'_>,
    ) -> Verdict {
        let piece = match Piece::parse(packet) {
            Ok(piece) => piece,
            Err(refusal) => return Verdict::Drop(DropReason::Malformed(refusal)),
        };
        let address = piece.address;
        let job = self.jobs.get_mut(&address.job);
        let generation = match hear(job, now, from, &address) {
            Ok(generation) => generation,
            Err(why) => return self.handle_unheard(now, from, &address, why),
        };
        let most = match piece.block.operator {
            Operator::Broadcast => 1,
            _ => generation.members[address.rank as usize].contributors,
        };
        if piece.contributors > most {
            return Verdict::Drop(DropReason::Malformed(Refusal::BadField("contributors")));
        }
        let lanes = packet.lanes();
        let shape = generation.shapes.of(&piece.block, lanes.len() / piece.block.lane_type.bytes());
        let shape = match shape {
            Ok(shape) => shape,
            Err(Misfit::Impossible) => {
                return Verdict::Drop(DropReason::Malformed(Refusal::BadField("lanes")));
            }
            Err(Misfit::Mismatch) => return self.handle_mismatch(now, &piece, false),
        };
        if generation.is_disputed(&piece) {
            return self.handle_mismatch(now, &piece, true);
        }
        if shape.lanes > generation.most_lanes {
            self.end_because_of(now, &piece, Reason::Refused);
            return Verdict::Drop(DropReason::TooManyParameters);
        }
        let operation = piece.block.operation;
        if shape.first >= self.config.renew_at && generation.has(operation) {
            // The numbers of blocks would run out.
            let end = End { operation, reason: Reason::Renewed, ..culprit_is(None, now) };
            self.close(now, address.job, address.generation, end);
            return Verdict::Drop(DropReason::Piece(TableReason::Closed));
        }
        let met = generation.pool.meet(
            now,
            &Table {
                block: piece.block.number,
                member: address.rank,
                holds: piece.holds,
                contributors: piece.contributors,
                congested: piece.marks.congested || from.class.ecn() == Ecn::Marked,
                not_finite: piece.marks.not_finite,
                deadline: generation.deadline,
                lane_type: piece.block.lane_type,
                operator: piece.block.operator,
                lanes,
            },
        );
        if let Met::Refused(reason) = met {
            return self.handle_refused(now, &piece, reason);
        }
        follow(&mut self.out, now, generation, &piece, shape, met);
        if !generation.pool.last_piece_was_finite() {
            tell_of_non_finite(&mut self.events, generation, address.rank, operation);
        }
        if generation.deadline.is_some() {
            self.plan(address.job);
        }
        Verdict::Absorb
    }

    /// The table refused a piece.
    #[cold]
    fn handle_refused(&mut self, now: Instant, piece: &Piece, reason: TableReason) -> Verdict {
        let address = &piece.address;
        match reason {
            TableReason::Mismatch => return self.handle_mismatch(now, piece, false),
            TableReason::NonFinite => {
                self.refuse_non_finite(now, piece);
                self.plan(address.job);
            }
            TableReason::Closed => {
                // The sender has not heard of the end.
                let job = self.jobs.get(&address.job);
                let generation = job.and_then(|job| job.known(address.generation));
                let generation = generation.expect("the piece has just met its table");
                let peer = generation.members[address.rank as usize].peer;
                if let Some(closed) = generation.closed(*address) {
                    self.out.tell(now, peer, Message::Closed(closed));
                }
            }
            _ => {}
        }
        Verdict::Drop(DropReason::Piece(reason))
    }

    /// The worker's piece counts as missing. A block without any piece has no sum.
    fn refuse_non_finite(&mut self, now: Instant, piece: &Piece) {
        let address = &piece.address;
        let job = self.jobs.get_mut(&address.job);
        let generation = job.and_then(|job| job.generation(address.generation));
        let generation = generation.expect("the piece has just met its table");
        tell_of_non_finite(&mut self.events, generation, address.rank, piece.block.operation);
        let block = piece.block.number;
        if generation.note_refused(block, address.rank) {
            let end = End {
                operation: piece.block.operation,
                ..culprit_is(Some(generation.name(address.rank)), now)
            };
            self.close(now, address.job, address.generation, end);
        } else if generation.go_without_refused(block) {
            settle(&mut self.out, now, generation, block, piece.sent_at_us);
        }
    }

    /// The generation ends with the operation of a piece, and its sender is named.
    pub(super) fn end_because_of(&mut self, now: Instant, piece: &Piece, reason: Reason) {
        let address = piece.address;
        let generation = self.jobs.get(&address.job).and_then(|job| job.known(address.generation));
        let culprit = generation.map(|generation| generation.name(address.rank));
        let end = End { operation: piece.block.operation, reason, ..culprit_is(culprit, now) };
        self.close(now, address.job, address.generation, end);
    }

    pub(super) fn handle_ask(
        &mut self,
        now: Instant,
        from: Source,
        packet: &ReducePacket<'_>,
    ) -> Verdict {
        let ask = match Ask::parse(packet) {
            Ok(ask) => ask,
            Err(refusal) => return Verdict::Drop(DropReason::Malformed(refusal)),
        };
        let address = ask.address;
        let job = self.jobs.get_mut(&address.job);
        let generation = match hear(job, now, from, &address) {
            Ok(generation) => generation,
            Err(why) => return self.handle_unheard(now, from, &address, why),
        };
        self.counters.asks += 1;
        let is_disputed = generation.hears_of(now, address.rank, ask.awaits);
        if ask.holds > generation.shapes.next().1 {
            return Verdict::Drop(DropReason::Malformed(Refusal::BadField("holds")));
        }
        generation.pool.note_holds(address.rank, ask.holds);
        let mut wanted = Blocks { first: ask.blocks.first, mask: 0 };
        let mut missing = Blocks { first: ask.blocks.first, mask: 0 };
        let (mut results, mut is_too_often) = (false, false);
        for block in ask.blocks.iter() {
            match generation.pool.asked(address.rank, block) {
                Asked::Result if !generation.may_draw(now, address.rank) => is_too_often = true,
                Asked::Result => {
                    let to = Some(address.rank);
                    send_result(&mut self.out, now, generation, block, to, ask.sent_at_us);
                    results = true;
                }
                Asked::Wanted => {
                    wanted.mask |= 1 << (block - ask.blocks.first);
                    missing.mask |= 1 << (block - ask.blocks.first);
                }
                Asked::Waiting => missing.mask |= 1 << (block - ask.blocks.first),
                Asked::Held | Asked::Nothing => {}
            }
        }
        // A question without any other answer gets an empty wish: the sender hears that this switch
        // is there.
        if wanted.mask != 0 || !results {
            want(&mut self.out, now, generation, address.rank, wanted, ask.sent_at_us);
        }
        ask_above(&mut self.out, now, generation, missing, ask.sent_at_us, ask.awaits);
        if !results && missing.mask != 0 {
            generation.asked_in_vain = Some(now);
        }
        if !generation.has(ask.operation)
            && let Some(closed) = generation.closed(address)
        {
            self.out.tell(now, from.peer, Message::Closed(closed));
        }
        free_cells(&mut self.out, now, generation);
        if is_disputed {
            self.name_the_odd(now, address.job, address.generation);
        }
        if is_too_often { Verdict::Drop(DropReason::TooOften) } else { Verdict::Absorb }
    }

    /// Blocks whose deadline has passed go out as they are.
    pub(super) fn check_deadlines(&mut self, now: Instant) {
        while let Some(id) = self.deadlines.pop(now) {
            let job = self.jobs.get_mut(&id);
            for generation in job.into_iter().flat_map(Job::generations_mut) {
                while let Some(block) = generation.pool.poll_overdue(now) {
                    self.counters.overdue += 1;
                    settle(&mut self.out, now, generation, block, 0);
                }
            }
            self.plan(id);
        }
    }

    /// Notes when the next block of a job is overdue.
    pub(super) fn plan(&mut self, id: JobId) {
        self.deadlines.set(id, self.jobs.get(&id).and_then(Job::overdue));
    }
}

/// Does what follows from a piece that the table took in.
fn follow(
    out: &mut Outbox,
    now: Instant,
    generation: &mut Generation,
    piece: &Piece,
    shape: Shape,
    met: Met,
) {
    let (block, rank) = (piece.block.number, piece.address.rank);
    if matches!(met, Met::Opened | Met::Complete) {
        let held = generation.pool.min_holds();
        generation.shapes.note(piece.block.operation, shape, held);
        if !generation.awaited.is_empty() {
            generation.awaited = generation.awaited.split_off(&piece.block.operation);
        }
    }
    match met {
        Met::Opened | Met::Added => {
            if generation.go_without_refused(block) {
                settle(out, now, generation, block, piece.sent_at_us);
            }
        }
        Met::Complete => settle(out, now, generation, block, piece.sent_at_us),
        Met::Late | Met::Repeated => {
            send_result(out, now, generation, block, Some(rank), piece.sent_at_us);
            ask_for_result(out, now, generation, block, piece.sent_at_us);
        }
        Met::Occupied => generation.note_occupied(rank, block),
        Met::Held | Met::Refused(_) => {}
    }
    free_cells(out, now, generation);
}

/// A worker that repeats its piece misses the result, and asks in no other way (`recovery = "timer"`): where the result
/// is not here, the sum or the result was lost between this switch and the one above.
fn ask_for_result(
    out: &mut Outbox,
    now: Instant,
    generation: &mut Generation,
    block: u32,
    sent_at_us: u32,
) {
    if generation.pool.cell(block).is_none_or(|cell| cell.state() != State::Final) {
        ask_above(out, now, generation, Blocks { first: block, mask: 1 }, sent_at_us, None);
    }
}

/// Tells of a lane that is no finite number: once for each worker's operation, and not for an older one.
fn tell_of_non_finite(events: &mut Log, generation: &mut Generation, rank: u32, operation: u32) {
    let name = generation.name(rank);
    let member = &mut generation.members[rank as usize];
    if member.told_not_finite.is_none_or(|newest| newest < operation) {
        member.told_not_finite = Some(operation);
        events.push(generation.job, SumEvent::NonFinite { rank: name, operation });
    }
}

/// No more pieces of a block are added: its sum is the result, or goes up.
fn settle(
    out: &mut Outbox,
    now: Instant,
    generation: &mut Generation,
    block: u32,
    sent_at_us: u32,
) {
    if generation.above.is_some() {
        send_sum(out, now, generation, block, sent_at_us, false);
    } else {
        generation.pool.finish(block);
        send_result(out, now, generation, block, None, sent_at_us);
    }
}

/// Sends the result of a block, if its cell has one, to the member of that rank, or to all.
pub(super) fn send_result(
    out: &mut Outbox,
    now: Instant,
    generation: &Generation,
    block: u32,
    to: Option<u32>,
    sent_at_us: u32,
) {
    let Some(cell) = generation.pool.cell(block).filter(|cell| cell.state() == State::Final) else {
        return;
    };
    let Some(block) = generation.shapes.block(block) else { return };
    let words = generation.words(block.number, block.operator).len();
    let member = to.map(|rank| (rank, &generation.members[rank as usize]));
    let receivers = match member {
        Some((_, member)) => Receivers::One(member.peer),
        None => Receivers::Many(generation.group.clone()),
    };
    let result = Outgoing {
        job: generation.job,
        generation: generation.number,
        block,
        to: member.map(|(rank, member)| (rank, member.session.0)),
        again: to.is_some(),
        sent_at_us,
        bytes: datagram_len(words, block.lane_type, cell.lane_count()),
    };
    out.send(now, receivers, Message::Result(result));
}

/// Asks a member for its pieces of these blocks.
fn want(
    out: &mut Outbox,
    now: Instant,
    generation: &Generation,
    rank: u32,
    blocks: Blocks,
    sent_at_us: u32,
) {
    let Generation { job, number, .. } = *generation;
    let member = &generation.members[rank as usize];
    let address = Address { job, generation: number, rank, session: member.session };
    let operation = generation.shapes.at(blocks.first).map_or(0, |(operation, _)| operation);
    let holds = generation.pool.min_holds();
    let want = Want { address, operation, blocks, holds, sent_at_us };
    out.tell(now, member.peer, Message::Want(want));
}

/// Asks for the pieces whose cells were occupied and are free now. Tells the switch above that cells
/// are free, where no sums tell it.
fn free_cells(out: &mut Outbox, now: Instant, generation: &mut Generation) {
    let (held, step) = (generation.pool.min_holds(), (generation.pool.slots() / 4).max(1));
    if generation.above.as_ref().is_some_and(|above| held >= above.acknowledged + step) {
        acknowledge(out, now, generation);
    }
    while let Some((rank, blocks)) = generation.poll_freed() {
        want(out, now, generation, rank, blocks, 0);
    }
}
