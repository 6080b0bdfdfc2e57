//! What became of every piece.

use alloc::collections::BTreeMap;

/// Why a piece cannot be summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// There is no job record: a block record exists only where one is (Trio-ML §4).
    NoJob,
    /// The job has no such source.
    NotASource,
    /// The piece has more gradients than `block_grad_max`.
    TooManyGradients,
    /// It has another number of gradients than the block's other pieces.
    WrongSize,
    /// It says otherwise than others which block is its generation's last.
    Mismatch,
    /// No sender that follows the protocol is that far ahead.
    TooFarAhead,
    /// The job has `block_cnt_max` incomplete blocks, or all its records are in use.
    NoRecord,
}

impl Reason {
    /// A short stable name, for counters and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoJob => "no_job",
            Self::NotASource => "not_a_source",
            Self::TooManyGradients => "too_many_gradients",
            Self::WrongSize => "wrong_size",
            Self::Mismatch => "mismatch",
            Self::TooFarAhead => "too_far_ahead",
            Self::NoRecord => "no_record",
        }
    }
}

/// What became of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// It is the first of its block.
    Opened,
    /// It is in the sum, which waits for others.
    Added,
    /// It is in the sum, which is complete.
    Complete,
    /// Its block went without it.
    Late,
    /// It came before.
    Repeated,
    /// It cannot be summed.
    Refused(Reason),
}

/// Fates of pieces. At all times `received = summed + waiting + late + repeated + overtaken +
/// given_up + refused`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pieces that came.
    pub received: u64,
    /// In a sum that is complete, or that went without others.
    pub summed: u64,
    /// In a sum that waits for others.
    pub waiting: u64,
    /// Came when the sum had gone without them, or when everybody held the result.
    pub late: u64,
    /// Came again.
    pub repeated: u64,
    /// In a sum whose result came from above without it.
    pub overtaken: u64,
    /// In an incomplete sum of a term that ended.
    pub given_up: u64,
    /// Refused, by reason.
    pub refused: BTreeMap<Reason, u64>,
}

impl Counts {
    pub(super) fn note(&mut self, met: Met) {
        self.received += 1;
        match met {
            Met::Opened | Met::Added | Met::Complete => self.waiting += 1,
            Met::Late => self.late += 1,
            Met::Repeated => self.repeated += 1,
            Met::Refused(reason) => *self.refused.entry(reason).or_default() += 1,
        }
    }

    /// Returns true if the fates add up to what came.
    #[must_use]
    pub fn add_up(&self) -> bool {
        let refused: u64 = self.refused.values().sum();
        let summed = self.summed + self.waiting + self.overtaken + self.given_up;
        self.received == summed + self.late + self.repeated + refused
    }
}
