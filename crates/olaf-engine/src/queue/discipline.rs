//! What a queue of updates is: arrivals meet waiting entries, one entry at a time departs.

use crate::ids::{Flow, WorkerId};
use crate::lanes::Lanes;
use alloc::vec::Vec;

/// One contribution, or a merge from an earlier switch, as it meets the queue.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// What it may merge with.
    pub flow: Flow,
    /// Its worker; of a merge, its first contributor.
    pub worker: WorkerId,
    /// The worker's count of its updates.
    pub sequence: u32,
    /// Segments the model has.
    pub segments: u32,
    /// Contributions in it.
    pub contributors: u32,
    /// Their weights, summed; finite and above 0.
    pub weight: f64,
    /// Their mean reward by weight.
    pub reward: f64,
    /// Generation times of the oldest and the newest, nanoseconds.
    pub generated_ns: (u64, u64),
    /// Model versions of the oldest and the newest.
    pub versions: (u32, u32),
    /// Switches passed.
    pub hops: u8,
    /// Bytes it takes on the link.
    pub bytes: u32,
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
    /// What may merge into it.
    pub flow: Flow,
    /// Its first contributor since it was last replaced.
    pub worker: WorkerId,
    /// That contributor's sequence number.
    pub sequence: u32,
    /// Segments the model has.
    pub segments: u32,
    /// Contributions in it.
    pub contributors: u32,
    /// Their weights, summed.
    pub weight: f64,
    /// Their mean reward by weight.
    pub reward: f64,
    /// Generation times of the oldest and the newest, nanoseconds.
    pub generated_ns: (u64, u64),
    /// Model versions of the oldest and the newest.
    pub versions: (u32, u32),
    /// Most switches a contribution has passed.
    pub hops: u8,
    /// Bytes it takes on the link: the largest contribution's.
    pub bytes: u32,
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
    /// It took the waiting entry's place; so many contributions that waited there are gone.
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

/// Why a contribution is turned away, always with its worker's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rejection {
    /// It, its reward, or the sum with it, is not a finite number.
    NonFinite,
    /// Its lanes are not as many as the segment has.
    WrongSize,
    /// The same contribution came before.
    Duplicate,
    /// A newer contribution of its worker came before.
    Superseded,
    /// Its worker is not known here, or has not been let in yet.
    UnknownWorker,
    /// It came from another address than its worker's, or with another session.
    WrongSender,
    /// It names another cluster than its worker joined.
    WrongCluster,
    /// It has passed as many switches as may be: a loop.
    TooManyHops,
    /// Counts or weights would overflow.
    Overflow,
    /// It says that it has passed a switch, and its sender is none.
    NotASwitch,
    /// It says to hold more contributions than one worker may carry.
    TooManyContributors,
}

impl Rejection {
    /// All reasons, in the order of [`Rejection::index`].
    pub const ALL: [Self; 11] = [
        Self::NonFinite,
        Self::WrongSize,
        Self::Duplicate,
        Self::Superseded,
        Self::UnknownWorker,
        Self::WrongSender,
        Self::WrongCluster,
        Self::TooManyHops,
        Self::Overflow,
        Self::NotASwitch,
        Self::TooManyContributors,
    ];

    /// Position in [`Rejection::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// How many contributions are counted for it: what somebody claims who is not who they say, or
    /// claims what cannot be, inflates nothing.
    #[must_use]
    pub const fn counts(self, claimed: u32) -> u32 {
        match self {
            Self::UnknownWorker
            | Self::WrongSender
            | Self::NotASwitch
            | Self::TooManyContributors => 1,
            _ => claimed,
        }
    }

    /// A short stable name, for counters and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NonFinite => "non_finite",
            Self::WrongSize => "wrong_size",
            Self::Duplicate => "duplicate",
            Self::Superseded => "superseded",
            Self::UnknownWorker => "unknown_worker",
            Self::WrongSender => "wrong_sender",
            Self::WrongCluster => "wrong_cluster",
            Self::TooManyHops => "too_many_hops",
            Self::Overflow => "overflow",
            Self::NotASwitch => "not_a_switch",
            Self::TooManyContributors => "too_many_contributors",
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

    /// Locks the entry whose turn it is. Nothing when none waits or one departs already.
    fn begin_departure(&mut self) -> Option<&Entry>;

    /// The entry that departs now.
    fn departing(&self) -> Option<&Entry>;

    /// The departing entry has left: its slot is free.
    fn end_departure(&mut self) -> Option<EntryId>;

    /// Segments it can hold, the departing one included.
    fn slots(&self) -> usize;

    /// Segments it holds, the departing one included.
    fn used(&self) -> usize;

    /// Every entry: the departing one, then the one whose turn is next, then the others in the
    /// order of their turns as far as it is known.
    fn entries(&self) -> Vec<&Entry>;
}
