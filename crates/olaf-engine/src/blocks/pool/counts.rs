//! What became of every piece.

use super::{Met, Reason};
use alloc::collections::BTreeMap;

/// Fates of pieces. At all times `received = summed + waiting + late + repeated + held + occupied +
/// given_up + refused`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pieces that came.
    pub received: u64,
    /// In a sum that is complete, or that went without others.
    pub summed: u64,
    /// In a sum that waits for others.
    pub waiting: u64,
    /// Came when the sum had gone without them.
    pub late: u64,
    /// Came again while their block was in its cell.
    pub repeated: u64,
    /// Came again when their sender held the result.
    pub held: u64,
    /// Found the cell of their block in use.
    pub occupied: u64,
    /// In an incomplete sum of a generation that ended.
    pub given_up: u64,
    /// Refused, by reason.
    pub refused: BTreeMap<Reason, u64>,
}

impl Counts {
    /// Notes what became of a piece; `pieces` are in the sum of its block.
    pub(in crate::blocks) fn note(&mut self, met: Met, pieces: u32) {
        self.received += 1;
        match met {
            Met::Opened | Met::Added => {}
            Met::Complete => self.close(pieces),
            Met::Late => self.late += 1,
            Met::Repeated => self.repeated += 1,
            Met::Held => self.held += 1,
            Met::Occupied => self.occupied += 1,
            Met::Refused(reason) => *self.refused.entry(reason).or_default() += 1,
        }
    }

    /// A sum of that many pieces is closed.
    pub(in crate::blocks) fn close(&mut self, pieces: u32) {
        self.summed += u64::from(pieces);
    }

    /// A sum of that many pieces will never be complete.
    pub(in crate::blocks) fn give_up(&mut self, pieces: u32) {
        self.given_up += u64::from(pieces);
    }

    /// Adds what became of the pieces of another table.
    pub fn add(&mut self, other: &Self) {
        self.received += other.received;
        self.summed += other.summed;
        self.waiting += other.waiting;
        self.late += other.late;
        self.repeated += other.repeated;
        self.held += other.held;
        self.occupied += other.occupied;
        self.given_up += other.given_up;
        for (reason, count) in &other.refused {
            *self.refused.entry(*reason).or_default() += count;
        }
    }

    /// The same of a table that is forgotten: what waited in it waits no more.
    pub fn retire(&mut self, other: &Self) {
        self.add(other);
        self.given_up += core::mem::take(&mut self.waiting);
    }

    /// The pieces with a fate.
    #[must_use]
    pub fn settled(&self) -> u64 {
        let refused: u64 = self.refused.values().sum();
        let again = self.late + self.repeated + self.held;
        self.summed + again + self.occupied + self.given_up + refused
    }
}
