//! The reference model: it keeps every piece as it came, and adds when somebody asks.

use super::{Id, Piece};
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

/// One piece as it came.
#[derive(Clone, Debug)]
struct Had {
    bitmap: u32,
    values: Vec<i32>,
}

#[derive(Clone, Debug)]
struct Open {
    id: Id,
    had: Vec<Had>,
    ecn: bool,
    at: Instant,
}

/// The same as [`super::Met`] in plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Met {
    /// In the sum.
    Kept,
    /// The sum is complete.
    Complete,
    /// Dropped.
    Repeated,
    /// Dropped.
    Late,
    /// On to the server.
    Occupied,
    /// On to the server.
    Pass,
    /// It leaves with this sum: bitmap, ECN and values.
    Flushed(u32, bool, Vec<i32>),
}

/// The table, slowly.
#[derive(Clone, Debug)]
pub struct Reference {
    size: u32,
    max_age: Duration,
    open: BTreeMap<u32, Open>,
    /// The last fragment of a cell, and whether it was answered.
    last: BTreeMap<u32, (Id, bool)>,
}

impl Open {
    fn bitmap(&self) -> u32 {
        self.had.iter().fold(0, |all, had| all | had.bitmap)
    }

    fn value(&self) -> Vec<i32> {
        let lanes = self.had[0].values.len();
        let lane = |at: usize| {
            self.had.iter().map(|had| had.values[at]).reduce(|sum, new| match (sum, new) {
                (i32::MAX | i32::MIN, _) => sum,
                (_, i32::MAX | i32::MIN) => new,
                _ => {
                    (i64::from(sum) + i64::from(new)).clamp(i32::MIN.into(), i32::MAX.into()) as i32
                }
            })
        };
        (0..lanes).filter_map(lane).collect()
    }
}

impl Reference {
    /// A table of that many cells.
    #[must_use]
    pub fn new(size: u32, max_age: Duration) -> Self {
        Self { size, max_age, open: BTreeMap::new(), last: BTreeMap::new() }
    }

    /// A piece comes.
    pub fn meet(&mut self, now: Instant, piece: &Piece<'_>) -> Met {
        let at = piece.index % self.size;
        let lanes = piece
            .values
            .chunks(4)
            .map(|lane| i32::from_be_bytes([lane[0], lane[1], lane[2], lane[3]]));
        let had = Had { bitmap: piece.bitmap, values: lanes.collect() };
        match self.open.get_mut(&at) {
            None if piece.resend => Met::Pass,
            None => match self.last.get(&at) {
                Some((id, true)) if *id == piece.id => Met::Late,
                Some((id, false)) if *id == piece.id => Met::Pass,
                _ => {
                    let open =
                        Open { id: piece.id, had: alloc::vec![had], ecn: piece.ecn, at: now };
                    let is_complete = open.bitmap().count_ones() >= u32::from(piece.fan_in);
                    self.open.insert(at, open);
                    if is_complete { Met::Complete } else { Met::Kept }
                }
            },
            Some(open) if open.id != piece.id && piece.resend => Met::Pass,
            Some(open) if open.id != piece.id => Met::Occupied,
            Some(open) => {
                let is_new = open.bitmap() & piece.bitmap == 0;
                let adds = is_new && (!piece.resend || piece.is_first_level);
                if adds {
                    (open.at, open.ecn) = (now, open.ecn | piece.ecn);
                    open.had.push(had);
                }
                if piece.resend {
                    let sum = Met::Flushed(open.bitmap(), open.ecn, open.value());
                    self.last.insert(at, (piece.id, false));
                    self.open.remove(&at);
                    return if piece.is_first_level { sum } else { Met::Pass };
                }
                open.ecn |= piece.ecn;
                match is_new {
                    false => Met::Repeated,
                    true if open.bitmap().count_ones() < u32::from(piece.fan_in) => Met::Kept,
                    true => Met::Complete,
                }
            }
        }
    }

    /// A parameter packet passes.
    pub fn release(&mut self, now: Instant, index: u32, id: &Id) {
        let at = index % self.size;
        let Some(open) = self.open.get(&at) else { return };
        let is_same = open.id == Id { values: open.id.values, ..*id };
        if is_same || now.since(open.at) >= self.max_age {
            self.last.insert(at, (open.id, is_same));
            self.open.remove(&at);
        }
    }

    /// A generation is over.
    pub fn give_up(&mut self, job: u16, server: u8, but: Option<u16>) {
        let is_over = |open: &Open| {
            (open.id.job, open.id.server) == (job, server) && Some(open.id.key.generation) != but
        };
        let over: Vec<(u32, Id)> = self
            .open
            .iter()
            .filter(|(_, open)| is_over(open))
            .map(|(at, open)| (*at, open.id))
            .collect();
        for (at, id) in over {
            self.open.remove(&at);
            self.last.insert(at, (id, false));
        }
    }

    /// Bitmap, ECN and values of the sum at an index.
    #[must_use]
    pub fn sum(&self, index: u32) -> Option<(u32, bool, Vec<i32>)> {
        let open = self.open.get(&(index % self.size))?;
        Some((open.bitmap(), open.ecn, open.value()))
    }

    /// Cells in use.
    #[must_use]
    pub fn used(&self) -> usize {
        self.open.len()
    }
}
