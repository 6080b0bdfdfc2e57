//! What a queue of updates is: arrivals meet waiting entries, one entry at a time departs.

use crate::contribution::{Contribution, NoSum};
use crate::ids::Flow;
use crate::lanes::Lanes;
use crate::queue::slots::Ready;
use crate::table::Hint;
use alloc::vec::Vec;

/// One contribution, or a merge from an earlier switch, as it meets the queue.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Its header.
    pub contribution: Contribution,
    /// Sum of the contributions' lanes, little-endian `f32`; empty where only the queue is
    /// studied.
    pub lanes: &'a [u8],
}

/// Names an entry for as long as it is in the queue; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryId(pub u64);

/// A waiting or departing update: what arrived first, and what has merged into it since.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name.
    pub id: EntryId,
    /// The header of its sum. It names the first contributor since the entry was last replaced.
    pub contribution: Contribution,
    /// Whether it is one worker's unmerged update, which a newer one of that worker replaces.
    pub replaceable: bool,
    /// Sum of the contributions' lanes.
    pub lanes: Lanes,
}

/// What became of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It waits in a slot of its own.
    Appended(EntryId),
    /// It was added to the waiting entry.
    Merged(EntryId),
    /// It took the waiting entry's place; the contributions that waited there are gone.
    Replaced {
        /// The entry, which keeps its name and position.
        entry: EntryId,
        /// Contributions replaced.
        displaced: u32,
    },
    /// Its reward is below the waiting entry's by more than the threshold.
    Filtered(EntryId),
    /// No slot was free.
    Dropped,
    /// No slot was free, and it got that of a waiting entry whose departure would have helped
    /// less; what was in that one is dropped.
    Evicted {
        /// The entry that the arrival waits in.
        entry: EntryId,
        /// The entry that is gone.
        evicted: EntryId,
        /// What the gone one was of: perhaps another job's.
        flow: Flow,
        /// Contributions in the gone one.
        dropped: u32,
    },
    /// It cannot be summed.
    Rejected(Rejection),
}

/// An entry that gave up its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenUp {
    /// Its name.
    pub entry: EntryId,
    /// What it was of.
    pub flow: Flow,
    /// Contributions in it.
    pub contributors: u32,
}

impl From<&Entry> for GivenUp {
    fn from(entry: &Entry) -> Self {
        let Contribution { flow, contributors, .. } = entry.contribution;
        Self { entry: entry.id, flow, contributors }
    }
}

/// Why a queue turns a contribution away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// It, its reward, or the sum with it, is not a finite number.
    NonFinite,
    /// Its lanes are not as many as the waiting entry's.
    WrongSize,
    /// Counts or weights would overflow.
    Overflow,
}

impl Rejection {
    /// A short stable name, for counters and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NonFinite => "non_finite",
            Self::WrongSize => "wrong_size",
            Self::Overflow => "overflow",
        }
    }
}

impl From<NoSum> for Rejection {
    fn from(why: NoSum) -> Self {
        match why {
            NoSum::NonFinite => Self::NonFinite,
            NoSum::Overflow => Self::Overflow,
        }
    }
}

/// A queue of updates with a fixed number of slots.
///
/// The entry that departs is *locked*: it keeps its slot and takes nothing in until
/// [`end_departure`](Discipline::end_departure).
pub trait Discipline {
    /// An update arrives.
    fn arrive(&mut self, arrival: &Arrival<'_>) -> Outcome;

    /// Does what the queue does with an arrival's lanes, beside everything, and measures them: it adds them
    /// to those of the entry that the arrival would merge with, or copies them. Nothing changes but scratch
    /// memory. None where the result is not finite. The hint says where the open entry of the flow was
    /// last.
    fn prepare(&mut self, _arrival: &Arrival<'_>, _hint: &mut Hint) -> Option<Ready> {
        None
    }

    /// The arrival meets the open entry of its flow; none where the flow has none, or the queue merges
    /// nothing, and then nothing has changed. `ready` is what [`prepare`](Discipline::prepare) made of the
    /// same lanes just before.
    fn meet(
        &mut self,
        _arrival: &Arrival<'_>,
        _ready: Option<Ready>,
        _hint: &mut Hint,
    ) -> Option<Outcome> {
        None
    }

    /// An arrival that met no open entry takes a slot of its own. `ready` is as for
    /// [`meet`](Discipline::meet).
    fn join(&mut self, arrival: &Arrival<'_>, _ready: Option<Ready>) -> Outcome {
        self.arrive(arrival)
    }

    /// Locks the entry whose turn it is. Nothing when none waits or one departs already.
    fn begin_departure(&mut self) -> Option<&Entry>;

    /// The entry that departs now.
    fn departing(&self) -> Option<&Entry>;

    /// The departing entry has left: its slot is free.
    fn end_departure(&mut self) -> Option<EntryId>;

    /// Fixes whose turn is next: the next departure is of this entry, which still takes others in and does
    /// not give up its slot before. For a link whose head is open.
    fn choose(&mut self) -> Option<&Entry>;

    /// Of slots that several queues share, this one may fill this number from now on, the departing entry's
    /// included, and the next entry has the name `next`. What waits stays.
    fn share(&mut self, slots: usize, next: EntryId);

    /// Gives up a slot for another queue: that of the waiting entry whose departure would help least.
    fn give_up(&mut self) -> Option<GivenUp>;

    /// Segments it can hold, the departing one included.
    fn slots(&self) -> usize;

    /// Segments it holds, the departing one included.
    fn used(&self) -> usize;

    /// Every entry: the departing one, then the one whose turn is next, then the others in the
    /// order of their turns as far as it is known.
    fn entries(&self) -> Vec<&Entry>;
}
