//! Where each worker sits in the tree of switches: its bits and fan-in degrees (ATP §3.2, §3.4, §A.2).
//!
//! differs: the paper computes them from a topology that hosts know. Here they follow from the switches
//! that the workers' joins have passed, or from a file ([`topology`](super::topology)).

mod tree;
mod two;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use olaf_wire::atp::offsets::SHORT_LEVELS;
use olaf_wire::atp::{BITS, Header, LEVELS, Upper};

/// The first switches on a worker's way to its server, from the worker on; 0 stands for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub [u32; LEVELS]);

impl Path {
    /// The switches on the way.
    pub fn switches(&self) -> impl DoubleEndedIterator<Item = u32> {
        self.0.into_iter().filter(|id| *id != 0)
    }
}

/// A worker's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Its bit at each level: in its group, its group's among those that meet, and so on.
    pub bitmaps: [u32; LEVELS],
    /// Workers of its group, groups that meet, and so on.
    pub fan_ins: [u8; LEVELS],
    /// The level of the first switch on its way (ATP Figure 9: w4 and w5 begin at the second).
    pub level: u8,
    /// Whether each level and the next one are in the same switch.
    pub same_switch: [bool; LEVELS - 1],
    /// No switch adds its packets: there is none on the way, or the bitmaps reach no further.
    pub alone: bool,
}

impl Default for Seat {
    fn default() -> Self {
        Self {
            bitmaps: [1; LEVELS],
            fan_ins: [1; LEVELS],
            level: 0,
            same_switch: [false; LEVELS - 1],
            alone: false,
        }
    }
}

impl Seat {
    /// Its group at the first level: its bits at the others.
    #[must_use]
    pub fn group(&self) -> u32 {
        group(|level| self.bitmaps[level])
    }

    /// The third and the fourth level, as packets have them.
    #[must_use]
    pub fn upper(&self) -> Upper {
        let [_, _, bitmap2, bitmap3] = self.bitmaps;
        let [_, _, fan_in2, fan_in3] = self.fan_ins;
        let [_, second, third] = self.same_switch;
        Upper {
            bitmaps: [bitmap2, bitmap3],
            fan_ins: [fan_in2, fan_in3],
            passed: self.level.saturating_sub(1),
            same_switch: [second, third],
        }
    }
}

/// The number of a group of the first level, from the bitmaps of the others.
fn group(bitmap: impl Fn(usize) -> u32) -> u32 {
    let bit = |level: usize| bitmap(level).trailing_zeros() % BITS;
    (1..LEVELS).rev().fold(0, |group, level| group * BITS + bit(level))
}

/// The places of all workers.
#[derive(Clone, Debug)]
pub struct Seating {
    /// By rank.
    pub seats: Vec<Seat>,
    /// Levels that the packets need fields for: two, or all.
    pub levels: usize,
    /// Ranks by group and bit.
    groups: BTreeMap<u32, Vec<u32>>,
}

impl Default for Seating {
    fn default() -> Self {
        Self { seats: Vec::new(), levels: SHORT_LEVELS, groups: BTreeMap::new() }
    }
}

impl Seating {
    /// Seats workers by their paths, in the order of their ranks, at `most` levels.
    #[must_use]
    pub fn new(paths: &[Path], most: usize) -> Self {
        let short = two::seats(paths);
        let goes_alone = |seats: &[Seat]| {
            let has_switch = |path: &Path| path.0[0] != 0;
            seats.iter().zip(paths).filter(|(seat, path)| seat.alone && has_switch(path)).count()
        };
        let is_deep = |path: &Path| path.0[SHORT_LEVELS] != 0;
        if paths.len() > (BITS * BITS) as usize {
            // Two bitmaps do not tell them apart.
            return Self::of(tree::seats(paths).0, LEVELS);
        }
        if most > SHORT_LEVELS && (goes_alone(&short) > 0 || paths.iter().any(is_deep)) {
            let (seats, levels) = tree::seats(paths);
            if levels > SHORT_LEVELS && goes_alone(&seats) <= goes_alone(&short) {
                return Self::of(seats, LEVELS);
            }
        }
        Self::of(short, SHORT_LEVELS)
    }

    /// The same, where only the first switch on the way adds: above it nobody waits for others.
    #[must_use]
    pub fn in_racks_alone(mut self) -> Self {
        self.seats.iter_mut().for_each(|seat| seat.fan_ins[1..].fill(1));
        self
    }

    fn of(seats: Vec<Seat>, levels: usize) -> Self {
        let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (rank, seat) in (0..).zip(&seats) {
            let ranks = groups.entry(seat.group()).or_default();
            let bit = seat.bitmaps[0].trailing_zeros() as usize;
            ranks.resize(ranks.len().max(bit + 1), u32::MAX);
            ranks[bit] = rank;
        }
        Self { seats, levels, groups }
    }

    /// Calls `take` with the rank of each worker in a packet; false where a bit is nobody's.
    pub fn ranks(&self, header: &Header, mut take: impl FnMut(u32)) -> bool {
        // Below this level the packet names nobody: everyone there is in it.
        let settled = (0..LEVELS).find(|level| header.bitmap(*level) != 0).unwrap_or(LEVELS - 1);
        let mut take = |rank: u32| {
            let is_somebodys = rank != u32::MAX;
            is_somebodys.then(|| take(rank)).is_some()
        };
        if settled == 0 {
            let Some(ranks) = self.groups.get(&group(|level| header.bitmap(level))) else {
                return false;
            };
            return bits(header.bitmap0).all(|bit| ranks.get(bit).is_some_and(|rank| take(*rank)));
        }
        let span = BITS.pow(settled as u32 - 1);
        let above = group(|level| if level > settled { header.bitmap(level) } else { 1 });
        bits(header.bitmap(settled)).all(|bit| {
            let first = above + bit as u32 * span;
            let mut groups = self.groups.range(first..first + span).peekable();
            groups.peek().is_some() && groups.all(|(_, ranks)| ranks.iter().all(|rank| take(*rank)))
        })
    }
}

fn bits(bitmap: u32) -> impl Iterator<Item = usize> {
    (0..BITS as usize).filter(move |bit| bitmap >> bit & 1 == 1)
}

#[cfg(test)]
mod tests;
