//! One generation of a job: its members and the table of their blocks.

use super::shapes::Shapes;
use crate::blocks::Pool;
use crate::blocks::pool::{Cell, State};
use crate::drop::DropReason;
use crate::engine::Source;
use crate::ids::{JobId, PeerId, Session};
use crate::party::{Draws, Moved};
use crate::sums::{Dead, Dispute, Patience, Presence};
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_wire::reduce::{Address, Blocks, Called, Clash, Closed, Operator, RankSet, Reason};

/// A worker in a generation.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) session: Session,
    pub(super) peer: PeerId,
    /// The rank that it asked for. Errors in a fixed job name the worker by it.
    pub(super) wanted: Option<u32>,
    /// Workers that it stands for.
    pub(super) contributors: u32,
    pub(super) heard: Instant,
    pub(super) has_left: bool,
    /// The newest operation for which an event said that this member sent a NaN or an infinity.
    pub(super) told_not_finite: Option<u32>,
    /// The results that it alone got.
    pub(super) draws: Draws,
}

impl Member {
    /// The member, as far as its life goes.
    pub(super) const fn presence(&self) -> Presence {
        Presence { heard: self.heard, has_left: self.has_left }
    }
}

/// How a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// The first operation that it does not finish.
    pub(super) operation: u32,
    /// The rank of the worker that is the reason, or `ALL`.
    pub(super) culprit: u32,
    pub(super) reason: Reason,
    pub(super) at: Instant,
    /// What the culprit and the others call, where they differ.
    pub(super) clash: Option<Clash>,
}

/// What a lower switch is in the generation above.
#[derive(Debug)]
pub(super) struct Above {
    pub(super) generation: u32,
    pub(super) rank: u32,
    pub(super) session: Session,
    /// Workers of the whole tree; 0: no result has said it yet.
    pub(super) expected: u32,
    /// The switch above knows that the members here hold all results below this one.
    pub(super) acknowledged: u32,
    /// The generation above has ended.
    pub(super) is_closed: bool,
    /// When a question for a block was last passed on.
    pub(super) asked: BTreeMap<u32, Instant>,
    /// The bitmaps of partial results.
    pub(super) words: BTreeMap<u32, Vec<u64>>,
}

/// A time with one set of workers.
#[derive(Debug)]
pub(super) struct Generation {
    pub(super) job: JobId,
    pub(super) number: u32,
    /// Whether the job waits for a number of workers, whose ranks are then their names.
    pub(super) is_fixed: bool,
    /// By rank.
    pub(super) members: Vec<Member>,
    /// Those that have not left.
    pub(super) group: Arc<[PeerId]>,
    pub(super) pool: Pool,
    pub(super) shapes: Shapes,
    pub(super) block_bytes: u32,
    /// Cores among which the workers divide their operations.
    pub(super) cores: u32,
    /// Workers that belong into a sum.
    pub(super) contributors: u32,
    pub(super) deadline: Option<Duration>,
    /// Lanes that an operation may have.
    pub(super) most_lanes: u64,
    pub(super) end: Option<End>,
    /// The count of operations of the program that was the furthest.
    pub(super) began_with: u32,
    /// Pieces that found their cells occupied, by rank. Their senders wait for the cells.
    occupied: BTreeMap<u32, Blocks>,
    /// When a member last asked for a result in vain.
    pub(super) asked_in_vain: Option<Instant>,
    /// Members whose pieces were refused because a lane was no finite number, by block. The block goes
    /// without them.
    refused: BTreeMap<u32, RankSet>,
    /// The first operation that the members call differently.
    pub(super) dispute: Option<(u32, Dispute<Called>)>,
    /// What members say of operations that no piece has come of: by operation, and by rank.
    pub(super) awaited: BTreeMap<u32, BTreeMap<u32, Called>>,
    /// None at the uppermost switch.
    pub(super) above: Option<Above>,
}

/// What a generation begins with.
pub(super) struct Beginning {
    pub(super) job: JobId,
    pub(super) number: u32,
    pub(super) is_fixed: bool,
    pub(super) members: Vec<Member>,
    pub(super) block_bytes: u32,
    pub(super) cores: u32,
    pub(super) slots: u32,
    pub(super) deadline: Option<Duration>,
    pub(super) most_lanes: u64,
    pub(super) began_with: u32,
    pub(super) above: Option<Above>,
}

impl Generation {
    pub(super) fn new(beginning: Beginning, pool: Pool) -> Self {
        let Beginning {
            job,
            number,
            is_fixed,
            members,
            block_bytes,
            cores,
            deadline,
            most_lanes,
            began_with,
            above,
            ..
        } = beginning;
        let contributors =
            members.iter().fold(0u32, |sum, member| sum.saturating_add(member.contributors));
        let mut generation = Self {
            job,
            number,
            is_fixed,
            group: Arc::from([]),
            pool,
            shapes: Shapes::new(block_bytes),
            block_bytes,
            cores,
            contributors,
            members,
            deadline,
            most_lanes,
            end: None,
            began_with,
            occupied: BTreeMap::new(),
            asked_in_vain: None,
            refused: BTreeMap::new(),
            dispute: None,
            awaited: BTreeMap::new(),
            above,
        };
        generation.regroup();
        generation
    }

    /// Forms the group of receivers again, after a member has left or moved.
    pub(super) fn regroup(&mut self) {
        let here = self.members.iter().filter(|member| !member.has_left);
        self.group = here.map(|member| member.peer).collect();
    }

    /// A message that says to come from a member came in.
    pub(super) fn hear(
        &mut self,
        now: Instant,
        from: Source,
        address: &Address,
    ) -> Result<(), DropReason> {
        let member = self.members.get_mut(address.rank as usize);
        let member = member.filter(|member| !member.has_left).ok_or(DropReason::NotAMember)?;
        if member.session != address.session || member.peer != from.peer {
            return Err(DropReason::WrongSender);
        }
        member.heard = now;
        Ok(())
    }

    /// Returns true if a member may have one result more for itself alone.
    pub(super) fn may_draw(&mut self, now: Instant, rank: u32) -> bool {
        let window = self.pool.slots();
        let results = self.shapes.next().1.min(self.pool.min_holds().saturating_add(window));
        let member = &mut self.members[rank as usize];
        let moved = Moved { results: results.into(), window, behind: member.contributors };
        member.draws.take(now, moved)
    }

    /// The member with that session.
    pub(super) fn rank_of(&self, session: Session) -> Option<u32> {
        let at = self.members.iter().position(|member| member.session == session)?;
        u32::try_from(at).ok()
    }

    /// Returns true if operation and generation go on: not so from its end on.
    pub(super) fn has(&self, operation: u32) -> bool {
        self.end.is_none_or(|end| operation < end.operation)
    }

    /// Workers that belong into a block of that operator.
    pub(super) fn expected(&self, operator: Operator) -> u32 {
        match (operator, &self.above) {
            (Operator::Broadcast, _) => 1,
            (_, Some(above)) => above.expected,
            (_, None) => self.contributors,
        }
    }

    /// The same for the part of the sum that is made here.
    pub(super) const fn expected_here(&self, operator: Operator) -> u32 {
        match operator {
            Operator::Broadcast => 1,
            Operator::Sum | Operator::Min | Operator::Max => self.contributors,
        }
    }

    /// The bitmap of a partial result.
    pub(super) fn words(&self, block: u32, operator: Operator) -> &[u64] {
        let Some(cell) = self.pool.cell(block) else { return &[] };
        match &self.above {
            _ if cell.contributors >= self.expected(operator) => &[],
            Some(above) => above.words.get(&block).map_or(&[], Vec::as_slice),
            None => cell.from().words(),
        }
    }

    /// The name of a member in errors.
    pub(super) fn name(&self, rank: u32) -> u32 {
        let member = self.members.get(rank as usize);
        member.and_then(|member| member.wanted).filter(|_| self.is_fixed).unwrap_or(rank)
    }

    /// A piece found its cell occupied: its sender is told when the cell is free.
    pub(super) fn note_occupied(&mut self, rank: u32, block: u32) {
        let known = self.occupied.entry(rank).or_insert(Blocks { first: block, mask: 1 });
        if block < known.first {
            let shift = known.first - block;
            let mask = known.mask.checked_shl(shift).unwrap_or(0) | 1;
            *known = Blocks { first: block, mask };
        } else if block - known.first < u64::BITS {
            known.mask |= 1 << (block - known.first);
        }
    }

    /// The next member that may send pieces again which found their cells occupied.
    pub(super) fn poll_freed(&mut self) -> Option<(u32, Blocks)> {
        let room = self.pool.min_holds().saturating_add(2 * self.pool.slots());
        let (rank, _) = self.occupied.iter().find(|(_, blocks)| blocks.first < room)?;
        let rank = *rank;
        self.occupied.remove(&rank).map(|blocks| (rank, blocks))
    }

    /// A piece was refused because a lane is no finite number. Says whether no member has a piece of
    /// the block that could be summed.
    pub(super) fn note_refused(&mut self, block: u32, rank: u32) -> bool {
        // What every member holds is over.
        self.refused = self.refused.split_off(&self.pool.min_holds().min(block));
        let refused = self.refused.entry(block).or_default();
        refused.insert(rank);
        refused.len() as usize >= self.members.len()
    }

    /// Closes an open block in which only refused pieces are missing; whether it did.
    pub(super) fn go_without_refused(&mut self, block: u32) -> bool {
        let Some(refused) = self.refused.get(&block) else { return false };
        let pieces = self.pool.cell(block).map_or(0, Cell::pieces);
        (pieces + refused.len()) as usize >= self.members.len() && self.pool.go_without(block)
    }

    /// Returns true if pieces of the block were refused.
    pub(super) fn has_refused(&self, block: u32) -> bool {
        self.refused.contains_key(&block)
    }

    /// Ends the generation at that operation. A generation may end again, at an earlier operation.
    pub(super) fn close(&mut self, end: End) {
        let (next, next_block) = self.shapes.next();
        let operation = end.operation.min(next);
        let block = self.shapes.first_block(operation).unwrap_or(next_block);
        self.pool.close(block);
        self.end = Some(End { operation, ..end });
    }

    /// What a member hears of the end.
    pub(super) fn closed(&self, address: Address) -> Option<Closed> {
        let End { operation, culprit, reason, clash, .. } = self.end?;
        Some(Closed { address, operation, culprit, reason, clash })
    }

    /// The operation of the first incomplete block.
    pub(super) fn first_incomplete(&self) -> u32 {
        match self.shapes.at(self.pool.first_incomplete()) {
            Some((operation, _)) => operation,
            None => self.shapes.next().0,
        }
    }

    /// The operation of the first block without a result. A lower switch may have sent its sum up.
    pub(super) fn first_without_result(&self) -> u32 {
        let (next, end) = self.shapes.next();
        let has_result =
            |block| self.pool.cell(block).is_some_and(|cell| cell.state() == State::Final);
        let first = (self.pool.min_holds()..end).find(|block| !has_result(*block));
        first.and_then(|block| self.shapes.at(block)).map_or(next, |(operation, _)| operation)
    }

    /// The member that others wait for in vain, if there is one.
    pub(super) fn dead(&self, now: Instant, patience: Patience) -> Option<Dead<u32>> {
        let is_missed =
            self.asked_in_vain.is_some_and(|at| !patience.is_silent(now, at)) && self.is_missing();
        let first = self.pool.first_incomplete();
        let lacks = |rank| {
            let mut cells = (first..).map_while(|block| self.pool.cell(block));
            cells.any(|cell| cell.state() == State::Open && !cell.from().contains(rank))
        };
        let members = (0..).zip(self.members.iter().map(Member::presence));
        patience.dead(now, members, is_missed, lacks)
    }

    /// Returns true if an operation that the generation has is not complete.
    fn is_missing(&self) -> bool {
        self.end.is_none() || self.has(self.first_incomplete())
    }
}
