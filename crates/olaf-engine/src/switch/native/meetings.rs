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

use super::answers::{Receiver, Sharer};
use super::ends::Holds;
use super::flows::{Hints, Seat};
use crate::engine::{Ecn, TrafficClass};
use crate::party::ends::Numbers;
use crate::queue::EntryId;
use crate::table::{Hint, Table};
use alloc::vec::Vec;
use olaf_wire::serial;

/// Of all entries, by their names.
#[derive(Debug, Default)]
pub(super) struct Meetings(Table<EntryId, Meeting>);

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
    pub(super) fn of(&mut self, entry: EntryId, hint: &mut Hint) -> &mut Meeting {
        self.0.at_or_insert(entry, hint, Meeting::default)
    }

    /// Forgets an entry that leaves or is evicted; returns who met in it.
    pub(super) fn take(&mut self, entry: EntryId) -> Meeting {
        self.0.remove(&entry).unwrap_or_default()
    }
}

impl Meeting {
    /// Notes an update of that number and class, which is in the entry's sum now.
    #[inline]
    pub(super) fn take_in(
        &mut self,
        sharer: Sharer,
        number: u32,
        class: TrafficClass,
        hints: &mut Hints,
    ) {
        self.share(sharer, class, hints);
        self.hold(sharer.receiver, number, &mut hints.held);
    }

    /// Notes an update of that class that met the entry.
    #[inline]
    pub(super) fn share(&mut self, sharer: Sharer, class: TrafficClass, hints: &mut Hints) {
        let Seat(at) = hints.sharer;
        let known = match self.sharers.get_mut(at as usize) {
            Some(known) if known.receiver == sharer.receiver => Some(known),
            _ => self.find(sharer.receiver, &mut hints.sharer),
        };
        match known {
            Some(known) => known.sequence = serial::later(known.sequence, sharer.sequence),
            None => {
                hints.sharer = Seat(self.sharers.len() as u32);
                self.sharers.push(sharer);
            }
        }
        self.class = met(self.class, class);
    }

    fn find(&mut self, receiver: Receiver, seat: &mut Seat) -> Option<&mut Sharer> {
        let at = self.sharers.iter().position(|known| known.receiver == receiver)?;
        *seat = Seat(at as u32);
        self.sharers.get_mut(at)
    }

    /// Numbers from 1 up; 0 stands for a sender that does not count.
    #[inline]
    fn hold(&mut self, receiver: Receiver, number: u32, seat: &mut Seat) {
        if number == 0 {
            return;
        }
        let known = match self.holds.get_mut(seat.0 as usize) {
            Some((known, numbers)) if *known == receiver => Some(numbers),
            _ => self.held_of(receiver, seat),
        };
        if !known.is_some_and(|numbers| numbers.add(number)) {
            *seat = Seat(self.holds.len() as u32);
            self.holds.push((receiver, Numbers::one(number)));
        }
    }

    /// The newest numbers of a party.
    fn held_of(&mut self, receiver: Receiver, seat: &mut Seat) -> Option<&mut Numbers> {
        let at = self.holds.iter().rposition(|(known, _)| *known == receiver)?;
        *seat = Seat(at as u32);
        self.holds.get_mut(at).map(|(_, numbers)| numbers)
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
