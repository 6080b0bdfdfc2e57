//! Whose updates met in the entries of the uplink's queue.
//!
//! Two lists for each entry, because being answered and being delivered are two things. Example:
//! workers 1 and 2 of a cluster send, and worker 1 sends again before the entry leaves.
//!
//! | arrival | outcome | sharers | holds |
//! |---|---|---|---|
//! | worker 1, number 7 | appended | 1 | 1: 7 |
//! | worker 1, number 8 | replaced | 1 | 1: 8 |
//! | worker 2, number 4 | merged | 1, 2 | 1: 8; 2: 4 |
//!
//! Workers 1 and 2 hear the answer to the departure; numbers 8 and 4 are delivered by it, and 7 has
//! ended.

use super::answers::{Hearer, Sharer};
use super::ends::Holds;
use crate::engine::{Ecn, TrafficClass};
use crate::party::ends::Numbers;
use crate::queue::EntryId;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use olaf_wire::serial;

/// Of all entries, by their names.
#[derive(Debug, Default)]
pub(super) struct Meetings(BTreeMap<EntryId, Meeting>);

/// Of one entry.
#[derive(Debug, Default)]
pub(super) struct Meeting {
    /// Who hears the answer to it: every sender whose update met it.
    pub(super) sharers: Vec<Sharer>,
    /// Whose updates are in its sum, by their own numbers.
    pub(super) holds: Holds,
    /// The class that it leaves with: that of the first update that has one, marked where one of the
    /// updates is.
    pub(super) class: TrafficClass,
}

impl Meetings {
    /// Who met in an entry; of a new one, nobody yet.
    pub(super) fn of(&mut self, entry: EntryId) -> &mut Meeting {
        self.0.entry(entry).or_default()
    }

    /// Forgets an entry that leaves or is evicted; returns who met in it.
    pub(super) fn take(&mut self, entry: EntryId) -> Meeting {
        self.0.remove(&entry).unwrap_or_default()
    }
}

impl Meeting {
    /// Notes an update of that number and class, which is in the entry's sum now.
    pub(super) fn take_in(&mut self, sharer: Sharer, number: u32, class: TrafficClass) {
        self.share(sharer, class);
        self.hold(sharer.hearer, number);
    }

    /// Notes an update of that class that met the entry.
    pub(super) fn share(&mut self, sharer: Sharer, class: TrafficClass) {
        match self.sharers.iter_mut().find(|known| known.hearer == sharer.hearer) {
            Some(known) => known.sequence = serial::later(known.sequence, sharer.sequence),
            None => self.sharers.push(sharer),
        }
        self.class = met(self.class, class);
    }

    /// Numbers from 1 up; 0 stands for a sender that does not count.
    fn hold(&mut self, hearer: Hearer, number: u32) {
        if number == 0 {
            return;
        }
        let known = self.holds.iter_mut().rev().find(|(known, _)| *known == hearer);
        if !known.is_some_and(|(_, numbers)| numbers.add(number)) {
            self.holds.push((hearer, Numbers::one(number)));
        }
    }
}

/// The class of an entry of class `known` that another update meets.
const fn met(known: TrafficClass, other: TrafficClass) -> TrafficClass {
    match other.ecn() {
        _ if known.0 == TrafficClass::NONE.0 => other,
        Ecn::Marked => TrafficClass::new(known.dscp(), Ecn::Marked),
        _ => known,
    }
}
