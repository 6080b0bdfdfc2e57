//! A block record (Trio-ML, Figure 18).

use super::sources::Sources;
use crate::lanes::saturating;
use crate::time::Instant;
use alloc::vec::Vec;

/// Names a block.
///
/// differs: the paper's key is `job_id` and `block_id`, and a second generation waits until the first
/// one is over. Here it has `gen_id` too, so that several operations can be open at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The job.
    pub job: u8,
    /// The generation: one all-reduce of a model.
    pub generation: u16,
    /// The block in the generation.
    pub block: u32,
}

/// A part of a block's sum.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// The block.
    pub key: Key,
    /// The source that it is from.
    pub source: u8,
    /// Workers in it: more than one from a lower switch.
    pub sources: u8,
    /// It went without some workers at a lower switch.
    pub degraded: bool,
    /// It aged out there.
    pub aged: bool,
    /// The block is the last one of its generation.
    pub is_final: bool,
    /// What the workers call.
    pub call: u8,
    /// The gradients: big-endian, four bytes each.
    pub gradients: &'a [u8],
}

/// How far a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Pieces are missing.
    Open,
    /// No more pieces are added. A lower switch waits for the result from above.
    Summed,
    /// The gradients are the result.
    Final,
}

/// A block, its sum, and later its result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// The block.
    pub key: Key,
    /// How far it is.
    pub state: State,
    /// Sources whose pieces are in the sum: `rcvd_mask`.
    pub received: Sources,
    /// Workers in the sum, or in the result.
    pub workers: u16,
    /// Workers are missing.
    pub degraded: bool,
    /// The block has aged out, here or below: `age_op` of the result.
    pub aged: bool,
    /// The block is the last one of its generation.
    pub is_final: bool,
    /// What the workers call.
    pub call: u8,
    /// When the first piece came: `block_start_time`.
    pub start: Instant,
    /// Pieces in the sum: `rcvd_cnt`.
    pub pieces: u32,
    /// *Recently referenced* (§5): since a timer looked at it last, a piece was added.
    pub(super) referenced: bool,
    /// Visits of the timers since then: `block_age`.
    pub(super) age: u16,
    /// `aggr_paddr` and `grad_cnt`: the sum, or the result.
    pub(super) sum: Vec<i32>,
    /// The next record of the same bucket.
    pub(super) next: Option<u32>,
}

impl Record {
    /// A record without a piece.
    pub(super) fn new(now: Instant, key: Key, (is_final, call): (bool, u8), sum: Vec<i32>) -> Self {
        Self {
            key,
            state: State::Open,
            received: Sources::default(),
            workers: 0,
            degraded: false,
            aged: false,
            is_final,
            call,
            start: now,
            pieces: 0,
            referenced: true,
            age: 0,
            sum,
            next: None,
        }
    }

    fn begin(&mut self, gradients: &[u8]) {
        self.sum.clear();
        self.sum.resize(gradients.len() / 4, 0);
        saturating::copy(&mut self.sum, gradients);
    }

    /// Takes in a piece that fits.
    pub(super) fn add(&mut self, piece: &Piece<'_>) {
        if self.pieces == 0 {
            self.begin(piece.gradients);
        } else {
            saturating::add(&mut self.sum, piece.gradients);
        }
        self.received.insert(piece.source);
        self.pieces += 1;
        self.workers += u16::from(piece.sources);
        self.degraded |= piece.degraded;
        self.aged |= piece.aged;
        self.referenced = true;
    }

    /// Takes the result from above.
    pub(super) fn fulfil(&mut self, result: &Piece<'_>) {
        self.begin(result.gradients);
        self.workers = result.sources.into();
        (self.degraded, self.aged) = (result.degraded, result.aged);
        self.state = State::Final;
    }

    /// The sum, or the result.
    #[must_use]
    pub fn sum(&self) -> &[i32] {
        &self.sum
    }

    /// Workers in the sum as a header says it.
    #[must_use]
    pub fn sources(&self) -> u8 {
        u8::try_from(self.workers).unwrap_or(u8::MAX)
    }
}
