//! The link of a replay, by what it does with the update it sends.

use super::Parameters;
use olaf_engine::link::egress::Egress;
use olaf_engine::link::pacer::{Pacer, RatePacer};
use olaf_engine::{Arrival, Discipline, Entry, Instant, Outcome};

/// What becomes of an update in the queue while the link sends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Head {
    /// It keeps its slot and takes nothing in: the hardware's text (OLAF §12.1), and our switch.
    #[default]
    Locked,
    /// It keeps its slot and takes others in until its last bit has left. differs: no link can do
    /// this; it shows what the lock costs.
    Open,
    /// It leaves its slot when its first bit does, as in a simulator whose device has a buffer.
    Gone,
}

impl Head {
    /// Every one and its name.
    pub const ALL: [(&'static str, Self); 3] =
        [("locked", Self::Locked), ("open", Self::Open), ("gone", Self::Gone)];

    /// The one of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, head)| *head)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Locked => "locked",
            Self::Open => "open",
            Self::Gone => "gone",
        }
    }
}

pub(super) enum Link {
    /// The switch's own.
    Locked(Egress),
    Other(OtherLink),
}

/// A queue and a pacer with another view of the head.
pub(super) struct OtherLink {
    queue: Box<dyn Discipline + Send>,
    pacer: RatePacer,
    open: bool,
    /// From when to when something is sent.
    busy: Option<(Instant, Instant)>,
    /// What it is, once it is out of the queue.
    gone: Option<Entry>,
}

impl Link {
    pub(super) fn new(parameters: &Parameters) -> Self {
        let queue = parameters.engine.queue(parameters.slots, parameters.gate);
        let pacer = RatePacer::new(parameters.rate);
        if parameters.head == Head::Locked {
            return Self::Locked(Egress::new(queue, Pacer::Rate(pacer), 1));
        }
        let open = parameters.head == Head::Open;
        Self::Other(OtherLink { queue, pacer, open, busy: None, gone: None })
    }

    /// Departures that end by `now` come first: take them out before.
    pub(super) fn arrive(&mut self, now: Instant, arrival: &Arrival<'_>) -> Outcome {
        match self {
            Self::Locked(link) => link.arrive(now, arrival),
            Self::Other(link) => {
                let outcome = link.queue.arrive(arrival);
                if link.busy.is_none() {
                    link.begin(|pacer, bytes| pacer.begin(now, bytes));
                }
                outcome
            }
        }
    }

    /// When the departure under way ends.
    pub(super) fn next_departure(&self) -> Option<Instant> {
        match self {
            Self::Locked(link) => link.next_departure(),
            Self::Other(link) => link.busy.map(|(_, end)| end),
        }
    }

    /// Takes out the next departure that ends by `now`: what left, and from when to when.
    pub(super) fn depart<T>(
        &mut self,
        now: Instant,
        take: impl FnOnce(&Entry, (Instant, Instant)) -> T,
    ) -> Option<T> {
        match self {
            Self::Locked(link) => {
                let departure = link.due(now)?;
                let entry = link.leaving_update().expect("nothing but updates is sent here");
                let taken = take(entry, (departure.start, departure.end));
                link.release(now, None);
                Some(taken)
            }
            Self::Other(link) => link.depart(now, take),
        }
    }
}

impl OtherLink {
    fn depart<T>(
        &mut self,
        now: Instant,
        take: impl FnOnce(&Entry, (Instant, Instant)) -> T,
    ) -> Option<T> {
        let times = self.busy.filter(|(_, end)| *end <= now)?;
        self.busy = None;
        let entry = match self.gone.take() {
            Some(entry) => entry,
            None => self.take_next().expect("it has waited since the link began to send it"),
        };
        self.begin(RatePacer::follow);
        Some(take(&entry, times))
    }

    fn begin(&mut self, pace: impl FnOnce(&mut RatePacer, u32) -> (Instant, Instant)) {
        // Open, the link's time is that of the head as it is now.
        let next = if self.open {
            self.queue.entries().first().map(|entry| entry.bytes)
        } else {
            self.gone = self.take_next();
            self.gone.as_ref().map(|entry| entry.bytes)
        };
        self.busy = next.map(|bytes| pace(&mut self.pacer, bytes));
    }

    fn take_next(&mut self) -> Option<Entry> {
        let entry = self.queue.begin_departure()?.clone();
        self.queue.end_departure();
        Some(entry)
    }
}
