//! The aggregators of ATP (ATP §3.3, §3.5, §3.7, §A.1): cells that packets find by hash.
//!
//! A fragment's first piece takes the cell at its index, if that is free, and keeps it until the
//! fragment's parameter packet passes. A piece whose cell another fragment has goes on to the server
//! alone. The table thus never makes anybody wait, and whatever it loses is sent again to the server.

#[cfg(all(test, feature = "model"))]
mod check;
mod counts;
#[cfg(any(test, feature = "reference"))]
pub mod reference;
#[cfg(test)]
mod tests;

pub use counts::Counts;

use crate::lanes::saturating;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_wire::atp::Key;

/// The fragment of a job that an aggregator serves, at one level.
///
/// differs: the paper's identity is job and sequence number. Ours has all that must agree before two
/// packets may be added: a fragment of another tensor, or with another number of values, is another
/// fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id {
    /// The job.
    pub job: u16,
    /// The server.
    pub server: u8,
    /// The level, and the group whose members meet there.
    pub place: u32,
    /// The sequence number.
    pub sequence: u16,
    /// Generation, tensor and wraps.
    pub key: Key,
    /// Values of the whole tensor.
    pub tensor_length: u32,
    /// Values of the fragment.
    pub values: u16,
}

/// One packet of a fragment.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// The fragment.
    pub id: Id,
    /// The aggregator that the packet names. The table has it modulo its size.
    pub index: u32,
    /// The workers or groups in it.
    pub bitmap: u32,
    /// Workers or groups that belong into the sum.
    pub fan_in: u8,
    /// It has met congestion.
    pub ecn: bool,
    /// It is sent again, or no switch may keep it.
    pub resend: bool,
    /// The level has a bitmap, so that a resent piece leaves with the sum; otherwise the sum is thrown
    /// away (ATP §3.7).
    pub is_first_level: bool,
    /// Big-endian i32.
    pub values: &'a [u8],
}

/// What became of a piece.
#[derive(Debug, PartialEq, Eq)]
pub enum Met {
    /// It is in the sum, which waits for others.
    Kept,
    /// It completed the sum: [`Hashed::aggregator`] has it until the parameter packet passes.
    Complete,
    /// It was in the sum already: dropped.
    Repeated,
    /// Its parameter packet has passed: dropped.
    Late,
    /// Another fragment has the cell: on to the server.
    Occupied,
    /// No aggregator may keep it: on to the server.
    Pass,
    /// It was resent, and leaves with the sum.
    Flushed(Box<Aggregator>),
}

/// A sum and what is known of it (ATP Figure 6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aggregator {
    /// The fragment.
    pub id: Id,
    /// The sum.
    pub value: Vec<i32>,
    /// The workers or groups in it.
    pub bitmap: u32,
    /// A piece had met congestion.
    pub ecn: bool,
    /// When it was last added to.
    timestamp: Instant,
    /// Pieces that are in it and have not left; none of a complete sum, which has left.
    pieces: u64,
}

/// Why a cell is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Ended {
    /// The parameter packet passed: the server has the whole sum.
    Answered,
    /// The sum left before it was complete, or was thrown away: the server needs the rest.
    Sent,
}

#[derive(Clone, Debug, Default)]
struct Cell {
    open: Option<Box<Aggregator>>,
    /// differs: the fragment that the cell served last. A piece of it that comes late takes no cell:
    /// nothing would free that cell again (ATP §3.7 waits for its age).
    last: Option<(Id, Ended)>,
}

/// The table.
#[derive(Clone, Debug)]
pub struct Hashed {
    cells: Vec<Cell>,
    /// Bytes of all sums.
    bytes: u64,
    most_bytes: u64,
    /// An aggregator that is not added to for this time may be freed by another fragment's parameter
    /// packet.
    max_age: Duration,
    counts: Counts,
}

impl Hashed {
    /// A table of `aggregators` cells, at least one, whose sums take at most `most_bytes` bytes.
    #[must_use]
    pub fn new(aggregators: u32, most_bytes: u64, max_age: Duration) -> Self {
        let mut cells = Vec::new();
        cells.resize_with(aggregators.max(1) as usize, Cell::default);
        Self { cells, bytes: 0, most_bytes, max_age, counts: Counts::default() }
    }

    /// A piece comes (ATP Figures 7 and 17).
    pub fn meet(&mut self, now: Instant, piece: &Piece<'_>) -> Met {
        let met = self.find(now, piece);
        self.counts.received += 1;
        let fate = match &met {
            Met::Kept => &mut self.counts.waiting,
            Met::Complete => &mut self.counts.summed,
            Met::Repeated => &mut self.counts.repeated,
            Met::Late => &mut self.counts.late,
            Met::Occupied => &mut self.counts.occupied,
            Met::Pass => &mut self.counts.passed,
            Met::Flushed(_) => &mut self.counts.flushed,
        };
        *fate += 1;
        met
    }

    fn find(&mut self, now: Instant, piece: &Piece<'_>) -> Met {
        let at = self.at(piece.index);
        let Some(open) = &mut self.cells[at].open else { return self.open(now, at, piece) };
        if open.id != piece.id {
            // A resent piece needs no cell: its fragment has none.
            return if piece.resend { Met::Pass } else { Met::Occupied };
        }
        let is_new = open.bitmap & piece.bitmap == 0;
        if piece.resend {
            if piece.is_first_level && is_new {
                open.add(now, piece);
            }
            return self.give(at, piece);
        }
        open.ecn |= piece.ecn;
        if !is_new {
            return Met::Repeated;
        }
        open.add(now, piece);
        if open.bitmap.count_ones() < u32::from(piece.fan_in) {
            open.pieces += 1;
            return Met::Kept;
        }
        let left = core::mem::take(&mut open.pieces);
        self.counts.waiting -= left;
        self.counts.summed += left;
        Met::Complete
    }

    /// The first piece of a fragment finds its cell free.
    fn open(&mut self, now: Instant, at: usize, piece: &Piece<'_>) -> Met {
        let cell = &mut self.cells[at];
        if piece.resend {
            return Met::Pass;
        }
        match cell.last {
            Some((last, Ended::Answered)) if last == piece.id => return Met::Late,
            Some((last, Ended::Sent)) if last == piece.id => return Met::Pass,
            _ => {}
        }
        let bytes = piece.values.len() as u64;
        if self.bytes + bytes > self.most_bytes {
            self.counts.without_memory += 1;
            return Met::Occupied;
        }
        self.bytes += bytes;
        let mut value = alloc::vec![0; piece.values.len() / 4];
        saturating::copy(&mut value, piece.values);
        let is_complete = piece.bitmap.count_ones() >= u32::from(piece.fan_in);
        cell.open = Some(Box::new(Aggregator {
            id: piece.id,
            value,
            bitmap: piece.bitmap,
            ecn: piece.ecn,
            timestamp: now,
            pieces: u64::from(!is_complete),
        }));
        if is_complete { Met::Complete } else { Met::Kept }
    }

    /// A resent piece takes the sum with it, or has it thrown away.
    fn give(&mut self, at: usize, piece: &Piece<'_>) -> Met {
        let Some(open) = self.free(at, Ended::Sent) else { return Met::Pass };
        self.counts.waiting -= open.pieces;
        if piece.is_first_level {
            self.counts.flushed += open.pieces;
            return Met::Flushed(open);
        }
        self.counts.discarded += open.pieces;
        Met::Pass
    }

    /// A parameter packet of the fragment passes: its aggregator is free, and so is one that is too old
    /// (ATP §3.5, §3.7).
    pub fn release(&mut self, now: Instant, index: u32, id: &Id) {
        let at = self.at(index);
        let Some(open) = &self.cells[at].open else { return };
        // A server that asks for f32 sends no values.
        let (pieces, is_same) = (open.pieces, open.id == Id { values: open.id.values, ..*id });
        if is_same {
            self.free(at, Ended::Answered);
            self.counts.waiting -= pieces;
            self.counts.answered += pieces;
        } else if now.since(open.timestamp) >= self.max_age {
            self.free(at, Ended::Sent);
            self.counts.waiting -= pieces;
            self.counts.aged += pieces;
        }
    }

    /// A job's generation is over, or the job: frees its aggregators, but those of the generation
    /// `but`.
    pub fn give_up(&mut self, job: u16, server: u8, but: Option<u16>) {
        for at in 0..self.cells.len() {
            let Some(open) = &self.cells[at].open else { continue };
            let Id { job: of, server: at_server, key, .. } = open.id;
            if (of, at_server) == (job, server) && Some(key.generation) != but {
                let pieces = open.pieces;
                self.free(at, Ended::Sent);
                self.counts.waiting -= pieces;
                self.counts.given_up += pieces;
            }
        }
    }

    /// The aggregator at an index.
    #[must_use]
    pub fn aggregator(&self, index: u32) -> Option<&Aggregator> {
        self.cells[self.at(index)].open.as_deref()
    }

    /// What became of the pieces.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Cells.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.cells.len()
    }

    /// Cells in use.
    #[must_use]
    pub fn used(&self) -> usize {
        self.cells.iter().filter(|cell| cell.open.is_some()).count()
    }

    /// Bytes of all sums.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    fn at(&self, index: u32) -> usize {
        index as usize % self.cells.len()
    }

    fn free(&mut self, at: usize, why: Ended) -> Option<Box<Aggregator>> {
        let cell = &mut self.cells[at];
        let open = cell.open.take()?;
        cell.last = Some((open.id, why));
        self.bytes -= 4 * open.value.len() as u64;
        Some(open)
    }
}

impl Aggregator {
    fn add(&mut self, now: Instant, piece: &Piece<'_>) {
        saturating::add(&mut self.value, piece.values);
        self.bitmap |= piece.bitmap;
        self.ecn |= piece.ecn;
        self.timestamp = now;
    }
}
