//! What became of the pieces.

use serde::Serialize;

/// Pieces by their fate. `received` is the sum of all others but `without_memory`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Pieces that met the table.
    pub received: u64,
    /// In a sum that waits for others.
    pub waiting: u64,
    /// Left in a complete sum.
    pub summed: u64,
    /// Left in a sum that a resent piece took along.
    pub flushed: u64,
    /// Was in the sum already.
    pub repeated: u64,
    /// Came behind its parameter packet.
    pub late: u64,
    /// Another fragment had the cell: went on alone.
    pub occupied: u64,
    /// No aggregator may keep it: went on alone.
    pub passed: u64,
    /// Thrown away at the second level, because a piece of its fragment was resent.
    pub discarded: u64,
    /// Still waited when the parameter packet came.
    pub answered: u64,
    /// Was too old when another fragment's parameter packet came.
    pub aged: u64,
    /// Its generation or its job was over.
    pub given_up: u64,
    /// Of `occupied`: no memory was left for a sum.
    pub without_memory: u64,
}

impl Counts {
    /// Pieces whose fate is known or that wait.
    #[must_use]
    pub const fn settled(&self) -> u64 {
        self.waiting
            + self.summed
            + self.flushed
            + self.repeated
            + self.late
            + self.occupied
            + self.passed
            + self.discarded
            + self.answered
            + self.aged
            + self.given_up
    }
}
