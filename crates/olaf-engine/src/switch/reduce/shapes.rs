//! The operations of a generation: which blocks each has, and what their lanes are.
//!
//! Every piece repeats the shape of its operation. The first piece of an operation sets the shape;
//! a later piece that contradicts it comes from a program that reduces something else.

use alloc::collections::BTreeMap;
use olaf_wire::Call;
use olaf_wire::reduce::{Block, Called, LaneType, Operator};

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) first: u32,
    /// The block behind its last one.
    pub(super) end: u32,
    pub(super) lanes: u64,
    lane_type: LaneType,
    operator: Operator,
    call: Call,
}

/// Why a piece does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    /// The message contradicts itself.
    Impossible,
    /// The operation, or one beside it, is another one at other workers.
    Mismatch,
}

/// The shapes of the operations whose blocks may still be in the table.
#[derive(Debug)]
pub(super) struct Shapes {
    block_bytes: u32,
    known: BTreeMap<u32, Shape>,
    /// Operations below this one are over, and their shapes are forgotten.
    over: u32,
}

impl Shapes {
    pub(super) const fn new(block_bytes: u32) -> Self {
        Self { block_bytes, known: BTreeMap::new(), over: 0 }
    }

    /// The shape that a piece with that many lanes says its operation has. It is not noted yet: see
    /// [`Shapes::note`].
    pub(super) fn of(&self, block: &Block, lanes: usize) -> Result<Shape, Misfit> {
        let shape = self.said(block, lanes).ok_or(Misfit::Impossible)?;
        if let Some(known) = self.known.get(&block.operation) {
            return if *known == shape { Ok(shape) } else { Err(Misfit::Mismatch) };
        }
        let before = self.known.range(..block.operation).next_back();
        let fits_before = before.is_none_or(|(operation, before)| {
            // Between two operations with known shapes there may be others without pieces yet.
            let is_next = operation + 1 == block.operation;
            before.end == shape.first || (!is_next && before.end < shape.first)
        });
        let after = self.known.range(block.operation..).next();
        let fits_after = after.is_none_or(|(_, after)| shape.end <= after.first);
        let fits_start = block.operation != 0 || shape.first == 0;
        if block.operation < self.over {
            // An old piece is the table's affair, unless its blocks are those of an operation that is not over.
            let oldest = self.known.first_key_value();
            let is_old = oldest.is_none_or(|(_, oldest)| shape.end <= oldest.first);
            return if is_old { Ok(shape) } else { Err(Misfit::Impossible) };
        }
        if fits_before && fits_after && fits_start { Ok(shape) } else { Err(Misfit::Mismatch) }
    }

    /// What the message says, where it does not contradict itself.
    fn said(&self, block: &Block, lanes: usize) -> Option<Shape> {
        // Behind the operation there is room for the number of the next one.
        block.operation.checked_add(1)?;
        let in_block = u64::from(self.block_bytes) / block.lane_type.bytes() as u64;
        let blocks = u32::try_from(block.lanes_of_operation.div_ceil(in_block)).ok()?;
        let end = block.first.checked_add(blocks)?;
        let index = u64::from(block.number.checked_sub(block.first)?);
        let left = block.lanes_of_operation.checked_sub(index * in_block)?;
        let shape = Shape {
            first: block.first,
            end,
            lanes: block.lanes_of_operation,
            lane_type: block.lane_type,
            operator: block.operator,
            call: block.call,
        };
        (left > 0 && lanes as u64 == left.min(in_block)).then_some(shape)
    }

    /// Remembers the shape of an operation, one of whose blocks has opened. Forgets operations all
    /// of whose blocks are before `held`: every worker holds them.
    pub(super) fn note(&mut self, operation: u32, shape: Shape, held: u32) {
        if operation < self.over || self.known.insert(operation, shape).is_some() {
            return;
        }
        while let Some(oldest) = self.known.first_entry()
            && oldest.get().end <= held
            && *oldest.key() < operation
        {
            self.over = oldest.key() + 1;
            oldest.remove();
        }
    }

    /// A block as its result describes it.
    pub(super) fn block(&self, number: u32) -> Option<Block> {
        let (operation, shape) = self.at(number)?;
        Some(Block {
            number,
            operation,
            first: shape.first,
            lanes_of_operation: shape.lanes,
            lane_type: shape.lane_type,
            operator: shape.operator,
            call: shape.call,
        })
    }

    /// What the workers call the operation, where a block of it has opened.
    pub(super) fn called(&self, operation: u32) -> Option<Called> {
        let Shape { lanes, lane_type, operator, call, .. } = *self.known.get(&operation)?;
        Some(Called { call, lane_type, operator, lanes })
    }

    /// The blocks of an operation, where one of them has opened.
    pub(super) fn blocks(&self, operation: u32) -> core::ops::Range<u32> {
        self.known.get(&operation).map_or(0..0, |shape| shape.first..shape.end)
    }

    /// The first operation that may still be in the table.
    pub(super) const fn over(&self) -> u32 {
        self.over
    }

    /// The operation that has the block.
    pub(super) fn at(&self, block: u32) -> Option<(u32, Shape)> {
        let mut older = self.known.iter().rev();
        let (operation, shape) = older.find(|(_, shape)| shape.first <= block)?;
        (block < shape.end).then_some((*operation, *shape))
    }

    /// The first block of an operation, where it is known.
    pub(super) fn first_block(&self, operation: u32) -> Option<u32> {
        if let Some(shape) = self.known.get(&operation) {
            return Some(shape.first);
        }
        let before = operation.checked_sub(1)?;
        self.known.get(&before).map(|shape| shape.end)
    }

    /// The first operation without a piece, and the block that it begins with.
    pub(super) fn next(&self) -> (u32, u32) {
        self.known.last_key_value().map_or((0, 0), |(newest, shape)| (newest + 1, shape.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(operation: u32, first: u32, number: u32, lanes: u64) -> Block {
        Block {
            number,
            operation,
            first,
            lanes_of_operation: lanes,
            lane_type: LaneType::F32,
            operator: Operator::Sum,
            call: Call::default(),
        }
    }

    #[test]
    fn a_later_piece_has_the_shape_of_the_first() {
        let mut shapes = Shapes::new(64);
        let first = shapes.of(&block(0, 0, 0, 40), 16).expect("three blocks");
        assert_eq!((first.first, first.end), (0, 3));
        shapes.note(0, first, 0);
        assert_eq!(shapes.of(&block(0, 0, 2, 40), 8), Ok(first), "the last block is shorter");
        assert_eq!(shapes.of(&block(0, 0, 2, 40), 16), Err(Misfit::Impossible));
        assert_eq!(shapes.of(&block(0, 0, 3, 40), 8), Err(Misfit::Impossible));
        assert_eq!(shapes.of(&block(0, 0, 0, 41), 16), Err(Misfit::Mismatch));
        let other = Block { operator: Operator::Max, ..block(0, 0, 0, 40) };
        assert_eq!(shapes.of(&other, 16), Err(Misfit::Mismatch));
        let mean = Block { call: Call::from_bits(1 << 13), ..block(0, 0, 0, 40) };
        assert_eq!(shapes.of(&mean, 16), Err(Misfit::Mismatch), "others call a sum");
        assert_eq!(shapes.called(0), Some(block(0, 0, 0, 40).called()));
        assert_eq!(shapes.block(2), Some(block(0, 0, 2, 40)));
        assert_eq!((shapes.block(3), shapes.next()), (None, (1, 3)));
    }

    #[test]
    fn operations_follow_each_other() {
        let mut shapes = Shapes::new(64);
        shapes.note(0, shapes.of(&block(0, 0, 0, 16), 16).expect("one block"), 0);
        assert_eq!(shapes.of(&block(1, 2, 2, 16), 16), Err(Misfit::Mismatch), "a gap");
        assert!(shapes.of(&block(1, 1, 1, 16), 16).is_ok());
        let later = shapes.of(&block(3, 9, 9, 16), 16).expect("two operations are between them");
        shapes.note(3, later, 0);
        assert_eq!(shapes.of(&block(2, 1, 1, 16 * 9), 16), Err(Misfit::Mismatch), "overlaps");
        assert_eq!(shapes.of(&block(4, 9, 9, 16), 16), Err(Misfit::Mismatch));
        assert_eq!(shapes.first_block(4), Some(10));
        let newest = shapes.of(&block(4, 10, 10, 16), 16).expect("it follows");
        shapes.note(4, newest, 5);
        assert_eq!(shapes.block(0), None, "forgotten: all workers hold its result");
        assert!(shapes.of(&block(0, 0, 0, 16), 16).is_ok(), "an old piece is the table's affair");
        assert_eq!(shapes.of(&block(0, 9, 9, 16), 16), Err(Misfit::Impossible), "no old block");
        assert_eq!(shapes.of(&block(0, 11, 11, 16), 16), Err(Misfit::Impossible), "a future one");
    }

    #[test]
    fn numbers_that_run_over_are_refused() {
        let shapes = Shapes::new(64);
        let huge = block(0, 0, 0, u64::MAX);
        assert_eq!(shapes.of(&huge, 16), Err(Misfit::Impossible));
        let last = block(9, u32::MAX, u32::MAX, 32);
        assert_eq!(shapes.of(&last, 16), Err(Misfit::Impossible));
    }
}
