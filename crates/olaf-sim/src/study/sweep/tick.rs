//! One tick of a run: on which comparisons of ranks what happened in it depended.
//!
//! A tick holds arrivals, one of a sender at most, and one departure at most, for a service takes
//! a tick at least. All of them are ordered by rank; the departure's is the largest of a set, see
//! [`Tick::begun`]. Whatever order agrees with the pairs that [`Tick::needs`] tells puts the same
//! updates in the same places.

use super::order::{Set, each, only};
use olaf_engine::EntryId;

/// What became of an arrival, as the engine said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Met {
    Appended(EntryId),
    /// Merged, or replaced: the entry is as new as the arrival either way.
    Joined(EntryId),
    Dropped,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    pub(super) sender: usize,
    pub(super) cluster: usize,
    pub(super) met: Met,
}

/// What happened in a tick.
#[derive(Debug, Default)]
pub(super) struct Tick {
    /// In their order.
    pub(super) arrived: Vec<Arrived>,
    /// How many of them came before the departure; none: nothing departed.
    pub(super) departed: Option<usize>,
    /// Whether nothing was on the wire before.
    pub(super) idle: bool,
    /// Whether an update waited before, the one on the wire not counted.
    pub(super) waiting: bool,
    /// Slots that were free before.
    pub(super) free: usize,
    /// Entries from this name on were made in the tick.
    pub(super) first_new: u64,
    /// What the link began to send in the tick, and its cluster.
    pub(super) locked: Option<(EntryId, usize)>,
    /// The departure has the rank of the latest of these arrivals. One of them began the busy
    /// period; which one is not known if it made no difference whether an arrival met the end of
    /// the last departure.
    pub(super) begun: Set,
    /// The arrival that began it in this run.
    pub(super) begun_by: usize,
}

/// Pairs of senders: the first has the lower rank.
pub(super) type Pairs = Vec<(u8, u8)>;

/// An event that others are told to come after.
#[derive(Clone, Copy)]
enum Event {
    Arrival(usize),
    Departure,
}

impl Tick {
    /// Tells what the tick depended on; returns [`Tick::begun`] after it.
    pub(super) fn needs(&self, pairs: &mut Pairs) -> Set {
        if self.arrived.len() + usize::from(self.departed.is_some()) > 1 {
            self.compare(pairs);
        }
        self.begun_after()
    }

    fn compare(&self, pairs: &mut Pairs) {
        let crowded = self.crowded();
        // The last event that changed which arrivals may still come in, or where.
        let mut last = None;
        for (index, arrived) in self.arrived.iter().enumerate() {
            if crowded && self.departed == Some(index) {
                self.after(last, Event::Departure, pairs);
                last = Some(Event::Departure);
            }
            let gone = self.departed.is_some_and(|before| before <= index);
            let this = Event::Arrival(arrived.sender);
            match arrived.met {
                Met::Appended(id) => {
                    self.after(last, this, pairs);
                    last = Some(this);
                    // It would have joined what is sent now, had it come before the departure.
                    let late = self.locked.is_some_and(|(locked, cluster)| {
                        locked != id && cluster == arrived.cluster
                    });
                    if gone && late {
                        self.after(Some(Event::Departure), this, pairs);
                    }
                }
                Met::Joined(id) => {
                    // What waited before and is not sent yet takes it in at any time.
                    if id.0 >= self.first_new {
                        self.after(self.maker(id), this, pairs);
                    }
                    if self.locked.is_some_and(|(locked, _)| locked == id) {
                        self.after(Some(this), Event::Departure, pairs);
                    }
                }
                Met::Dropped => {
                    self.after(last, this, pairs);
                    if self.departed.is_some() && !gone {
                        self.after(Some(this), Event::Departure, pairs);
                    }
                }
            }
        }
        if crowded && self.departed == Some(self.arrived.len()) {
            self.after(last, Event::Departure, pairs);
        }
    }

    /// Returns true if the slot that the departure frees was needed, or its absence felt.
    fn crowded(&self) -> bool {
        let met = |what: fn(&Met) -> bool| self.arrived.iter().filter(|a| what(&a.met)).count();
        self.departed.is_some()
            && (met(|met| matches!(met, Met::Dropped)) > 0
                || met(|met| matches!(met, Met::Appended(_))) > self.free)
    }

    fn after(&self, earlier: Option<Event>, later: Event, pairs: &mut Pairs) {
        let mut tell = |earlier: usize, later: usize| {
            let number = |sender| u8::try_from(sender).expect("there are at most 64 senders");
            pairs.push((number(earlier), number(later)));
        };
        match (earlier, later) {
            (Some(Event::Arrival(earlier)), Event::Arrival(later)) => tell(earlier, later),
            (Some(Event::Arrival(earlier)), Event::Departure) => tell(earlier, self.begun_by),
            // Of equal ranks, where it began the busy period itself, the departure comes first.
            (Some(Event::Departure), Event::Arrival(later)) => {
                each(self.begun & !only(later)).for_each(|earlier| tell(earlier, later));
            }
            (None, _) | (Some(Event::Departure), Event::Departure) => {}
        }
    }

    /// Whose arrival made an entry in this tick.
    fn maker(&self, id: EntryId) -> Option<Event> {
        let made = self.arrived.iter().find(|arrived| arrived.met == Met::Appended(id))?;
        Some(Event::Arrival(made.sender))
    }

    fn begun_after(&self) -> Set {
        if !self.idle && (self.departed.is_none() || self.waiting) {
            return self.begun;
        }
        let first = self.arrived.iter().position(|arrived| arrived.met != Met::Dropped);
        let Some(first) = first else { return 0 };
        let first_sender = only(self.arrived[first].sender);
        match self.departed {
            None => first_sender,
            // It came before the departure and waited for it, or after it and found the link
            // free: its update is sent from this tick on, with the later one's rank.
            Some(_) if !self.crowded() => self.begun | first_sender,
            Some(before) if first < before => self.begun,
            Some(_) => first_sender,
        }
    }
}
