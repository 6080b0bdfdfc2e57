//! A generation that this end is in: its numbers, its blocks and its open operations.

use super::blocks::Blocks;
use super::early::Early;
use super::operations::Open;
use crate::collective::{Config, Failure, Recovery};
use alloc::collections::VecDeque;
use olaf_wire::reduce::{Address, Reason, Welcome};

/// A generation.
#[derive(Debug)]
pub(super) struct Generation {
    /// This end in it, as its switch counts members. In a tree of switches each counts its own.
    pub(super) address: Address,
    /// This end's rank among the workers of all switches.
    pub(super) rank: u32,
    /// Workers of all switches.
    pub(super) workers: u32,
    block_bytes: u32,
    /// Cores of the switch.
    pub(super) cores: u32,
    /// See [`Options::scale`](crate::collective::Options::scale).
    scale: Option<f64>,
    pub(super) blocks: Blocks,
    /// Those that have begun and not ended, in the order of their blocks.
    pub(super) open: VecDeque<Open>,
    /// The number of the operation that begins next.
    pub(super) next_operation: u32,
    /// The first block of the operation that begins next.
    pub(super) next_block: u32,
    pub(super) early: Early,
    pub(super) closing: Option<Closing>,
}

/// How a generation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Closing {
    /// The first operation that has no sum in this generation.
    pub(super) operation: u32,
    pub(super) reason: Reason,
    pub(super) culprit: Option<u32>,
    /// Operations from here on may begin again in the next generation.
    pub(super) again_from: u32,
    /// This end gave the operation up.
    pub(super) is_own: bool,
}

impl Closing {
    /// This end leaves before it has begun anything, because the switch has not heard how far its program is.
    pub(super) const fn unheard(rank: u32) -> Self {
        Self {
            operation: 0,
            reason: Reason::Left,
            culprit: Some(rank),
            again_from: 0,
            is_own: true,
        }
    }

    pub(super) const fn failure(&self) -> Failure {
        Failure::Closed { reason: self.reason, culprit: self.culprit }
    }

    /// Returns true if the first operation without a sum fails at every worker: also where it has
    /// not begun.
    fn fails_first(&self) -> bool {
        self.again_from > self.operation && self.reason != Reason::Unknown && !self.is_own
    }
}

impl Generation {
    /// A worker of a fixed job keeps the rank that it asked for.
    pub(super) fn new(config: &Config, welcome: &Welcome) -> Self {
        let address = welcome.address;
        Self {
            address,
            rank: config.rank.filter(|_| config.workers > 0).unwrap_or(address.rank),
            workers: config.workers.max(welcome.workers),
            block_bytes: welcome.block_bytes,
            cores: welcome.cores,
            scale: config.options.scale,
            blocks: Blocks::new(welcome.slots, config.options.recovery == Recovery::Ask),
            open: VecDeque::new(),
            next_operation: 0,
            next_block: 0,
            early: Early::default(),
            closing: None,
        }
    }

    /// Returns true if an operation that begins now belongs into this generation.
    pub(super) fn takes_operations(&self) -> bool {
        self.closing.is_none_or(|closing| self.next_operation < closing.operation)
    }

    /// The failure of the operation that begins next, where it has failed at the other workers.
    pub(super) fn dooms_next(&mut self) -> Option<Failure> {
        let closing = self.closing?;
        let is_next = self.next_operation == closing.operation && closing.fails_first();
        is_next.then(|| {
            self.next_operation += 1;
            closing.failure()
        })
    }

    /// Of an order-free sum, the first operation would still belong into this generation, and the
    /// second would not: it begins in the next one, or fails with the returned failure.
    pub(super) fn cuts(&mut self, open: &Open) -> Option<Failure> {
        let closing = self.closing?;
        let (first, last) = (self.next_operation, self.next_operation + open.numbers() - 1);
        if !(first < closing.operation && closing.operation <= last) {
            return None;
        }
        let fails = closing.again_from > closing.operation;
        self.next_operation = closing.operation + u32::from(fails);
        fails.then(|| closing.failure())
    }

    /// Gives the operation its place behind all others.
    ///
    /// # Errors
    /// Why it can have none.
    pub(super) fn place(&self, open: &mut Open) -> Result<(), Failure> {
        let who = (self.rank, self.workers);
        open.place(self.next_operation, self.next_block, self.block_bytes, who, self.scale)
    }

    /// Begins the operation, which has its place.
    pub(super) fn begin(&mut self, open: Open) {
        self.next_operation = open.at.last + 1;
        self.next_block = open.at.end;
        self.open.push_back(open);
    }

    /// Where the open operation of a block stands in `open`.
    pub(super) fn index_of(&self, block: u32) -> Option<usize> {
        let after = self.open.partition_point(|open| open.at.first <= block);
        let index = after.checked_sub(1)?;
        self.open.get(index).filter(|open| open.has(block)).map(|_| index)
    }

    /// The open operation of a block.
    pub(super) fn open_of(&self, block: u32) -> Option<&Open> {
        self.index_of(block).and_then(|index| self.open.get(index))
    }

    /// The same, to read its lanes.
    pub(super) fn open_of_mut(&mut self, block: u32) -> Option<&mut Open> {
        let index = self.index_of(block)?;
        self.open.get_mut(index)
    }

    /// The first open operation, if all its results are here.
    pub(super) fn pop_complete(&mut self) -> Option<Open> {
        self.open.front().filter(|open| open.is_complete())?;
        self.open.pop_front()
    }

    /// The next block whose piece is to be sent. Blocks that this end sends nothing for are awaited
    /// from here on.
    pub(super) fn next_to_send(&mut self) -> Option<u32> {
        use super::blocks::State;
        loop {
            let block = self.blocks.next;
            if block >= self.next_block || !self.blocks.may_await_next() {
                return None;
            }
            if self.blocks.entry(block).state == State::Held {
                self.blocks.next += 1;
                continue;
            }
            match self.open_of(block) {
                Some(open) if !open.is_ready(block) => return None,
                Some(open) if open.sends(block) => {
                    return self.blocks.may_send_next().then_some(block);
                }
                Some(_) => {
                    self.blocks.entry_mut(block).state = State::Awaited;
                    self.blocks.next += 1;
                }
                // Its operation was given up.
                None => return None,
            }
        }
    }

    /// Returns true if nothing more is to be done in a generation that ends.
    pub(super) fn is_drained(&self) -> bool {
        self.closing.is_some_and(|closing| self.next_operation >= closing.operation)
            && self.open.is_empty()
    }
}
