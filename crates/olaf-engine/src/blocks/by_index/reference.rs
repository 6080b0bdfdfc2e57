//! The reference model: it keeps every packet for ever and derives each answer from the rules of
//! `docs/design/030-iswitch.md`.

use super::{Asked, Met, Piece, Reason};
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

/// A packet and what came for it.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Members and numbers of their vectors, workers in the pieces, floats; in the order of arrival.
    pieces: Vec<((u32, u32), u32, Vec<f32>)>,
    threshold: u32,
    last: bool,
    len: usize,
    /// No more pieces are added.
    is_summed: bool,
    /// Contributors and floats.
    result: Option<(u32, Vec<f32>)>,
    /// Its pieces came to nothing.
    given_up: bool,
}

impl Packet {
    /// Workers in the sum so far, and the sum.
    #[must_use]
    pub fn sum(&self) -> (u32, Vec<f32>) {
        let contributors = self.pieces.iter().map(|(_, contributors, _)| contributors).sum();
        let mut pieces = self.pieces.iter().map(|(_, _, floats)| floats);
        let mut sum = pieces.next().cloned().unwrap_or_default();
        for floats in pieces {
            sum.iter_mut().zip(floats).for_each(|(sum, float)| *sum += float);
        }
        (contributors, sum)
    }

    /// Workers in the result, and the result.
    #[must_use]
    pub const fn result(&self) -> Option<&(u32, Vec<f32>)> {
        self.result.as_ref()
    }
}

/// The reference model of [`super::ByIndex`].
#[derive(Debug)]
pub struct Reference {
    slots: u64,
    weights: Vec<u32>,
    threshold: u32,
    /// Every packet that ever began.
    pub packets: BTreeMap<u64, Packet>,
    holds: Vec<u64>,
    end: u64,
    refuses_non_finite: bool,
    /// As [`super::ByIndex::last_piece_was_finite`].
    pub last_piece_was_finite: bool,
}

fn floats_of(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|float| f32::from_le_bytes(*float)).collect()
}

fn is_finite(floats: &[f32]) -> bool {
    floats.iter().all(|float| float.is_finite())
}

impl Reference {
    /// As [`super::ByIndex::new`].
    #[must_use]
    pub fn new(slots: u32, weights: Vec<u32>) -> Self {
        Self {
            slots: slots.into(),
            threshold: weights.len() as u32,
            packets: BTreeMap::new(),
            holds: vec![0; weights.len()],
            weights,
            end: u64::MAX,
            refuses_non_finite: false,
            last_piece_was_finite: true,
        }
    }

    /// As [`super::ByIndex::refuse_non_finite`].
    pub const fn refuse_non_finite(&mut self, refuse: bool) {
        self.refuses_non_finite = refuse;
    }

    /// As [`super::ByIndex::set_threshold`].
    pub fn set_threshold(&mut self, h: u32) -> bool {
        let can_be = h >= 1 && h as usize <= self.weights.len();
        self.threshold = if can_be { h } else { self.threshold };
        can_be
    }

    fn has_result(&self, index: u64) -> bool {
        self.packets.get(&index).is_some_and(|packet| packet.result.is_some())
    }

    /// As [`super::ByIndex::first_incomplete`].
    #[must_use]
    pub fn first_incomplete(&self) -> u64 {
        (0..).find(|index| !self.has_result(*index)).expect("there are finitely many packets")
    }

    /// As [`super::ByIndex::note_holds`].
    pub fn note_holds(&mut self, member: u32, holds: u64) {
        let holds = holds.min(self.first_incomplete());
        if let Some(known) = self.holds.get_mut(member as usize) {
            *known = holds.max(*known);
        }
    }

    /// A newer packet took the cell.
    fn is_overtaken(&self, index: u64) -> bool {
        let same = self.packets.range(index + 1..);
        same.into_iter().any(|(newer, _)| (newer - index).is_multiple_of(2 * self.slots))
    }

    fn has_room(&self, index: u64) -> bool {
        let held_by_all = self.holds.iter().all(|holds| *holds + 2 * self.slots > index);
        index < 2 * self.slots || held_by_all
    }

    /// The result of `index - slots` is still there.
    fn may_be_sent(&self, index: u64) -> bool {
        index < self.slots
            || self.has_result(index - self.slots) && !self.is_overtaken(index - self.slots)
    }

    /// As [`super::ByIndex::meet`].
    pub fn meet(&mut self, piece: &Piece<'_>) -> Met {
        let &Piece { index, member, missing, vector, last, .. } = piece;
        self.last_piece_was_finite = true;
        let Some(weight) = self.weights.get(member as usize).copied() else {
            return Met::Refused(Reason::NotAMember);
        };
        if missing >= weight {
            return Met::Refused(Reason::Impossible);
        }
        if index >= self.end {
            return Met::Refused(Reason::Closed);
        }
        let is_overtaken = self.is_overtaken(index);
        let is_new = !self.packets.contains_key(&index) && !is_overtaken;
        if is_new && !self.may_be_sent(index) {
            return Met::Refused(Reason::TooEarly);
        }
        self.note_holds(member, (index + 1).saturating_sub(self.slots));
        if is_new && !self.has_room(index) {
            return Met::Occupied;
        }
        let len = piece.floats.len();
        if is_new {
            if !len.is_multiple_of(4) {
                return Met::Refused(Reason::WrongSize);
            }
            if self.refuses_non_finite && !is_finite(&floats_of(piece.floats)) {
                return Met::Refused(Reason::NonFinite);
            }
            let threshold = self.threshold;
            let (pieces, result) = (vec![], None);
            let (is_summed, given_up) = (false, false);
            let packet = Packet { pieces, threshold, last, len, is_summed, result, given_up };
            self.packets.insert(index, packet);
        } else if is_overtaken || self.holds[member as usize] > index {
            return Met::Held;
        }
        let packet = self.packets.get_mut(&index).expect("it was there or is now");
        if packet.pieces.iter().any(|(from, ..)| *from == (member, vector)) {
            return Met::Repeated;
        }
        if packet.len != len {
            return Met::Refused(Reason::WrongSize);
        }
        if packet.last != last {
            return Met::Refused(Reason::Mismatch);
        }
        if packet.is_summed {
            return Met::Late;
        }
        let was_finite = is_finite(&packet.sum().1);
        packet.pieces.push(((member, vector), weight - missing, floats_of(piece.floats)));
        let stays_finite = is_finite(&packet.sum().1);
        if self.refuses_non_finite && !stays_finite {
            packet.pieces.pop();
            return Met::Refused(Reason::NonFinite);
        }
        self.last_piece_was_finite =
            if was_finite { stays_finite } else { is_finite(&floats_of(piece.floats)) };
        if packet.pieces.len() >= packet.threshold as usize {
            packet.is_summed = true;
            return Met::Complete;
        }
        if is_new { Met::Opened } else { Met::Added }
    }

    /// As [`super::ByIndex::force`].
    pub fn force(&mut self, index: u64) -> bool {
        let end = self.end;
        let packet = self.packets.get_mut(&index).filter(|packet| !packet.is_summed && index < end);
        packet.is_some_and(|packet| {
            packet.is_summed = true;
            true
        })
    }

    /// As [`super::ByIndex::finish_own`].
    pub fn finish_own(&mut self, index: u64) {
        let packet = self.packets.get_mut(&index).expect("it is summed");
        packet.result = Some(packet.sum());
    }

    /// As [`super::ByIndex::finish`].
    pub fn finish(&mut self, index: u64, last: bool, contributors: u32, floats: &[u8]) -> bool {
        if index >= self.end || !floats.len().is_multiple_of(4) || self.is_overtaken(index) {
            return false;
        }
        let result = Some((contributors, floats_of(floats)));
        if let Some(packet) = self.packets.get_mut(&index) {
            let fits = packet.len == floats.len() && packet.last == last;
            if packet.result.is_some() || !fits {
                return false;
            }
            packet.given_up = !packet.is_summed;
            (packet.is_summed, packet.result) = (true, result);
            return true;
        }
        if !self.may_be_sent(index) || !self.has_room(index) {
            return false;
        }
        let (pieces, len, threshold) = (vec![], floats.len(), 0);
        let (is_summed, given_up) = (true, false);
        let packet = Packet { pieces, threshold, last, len, is_summed, result, given_up };
        self.packets.insert(index, packet);
        true
    }

    /// As [`super::ByIndex::ask`].
    #[must_use]
    pub fn ask(&self, member: u32, index: u64) -> Asked {
        let Some(holds) = self.holds.get(member as usize) else { return Asked::Nothing };
        if index >= self.end {
            return Asked::Nothing;
        }
        if *holds > index || self.is_overtaken(index) {
            return Asked::Held;
        }
        match self.packets.get(&index) {
            None if !self.may_be_sent(index) => Asked::Nothing,
            None if !self.has_room(index) => Asked::Waiting,
            None => Asked::Wanted,
            Some(packet) if packet.result.is_some() => Asked::Result,
            Some(packet) if packet.is_summed => Asked::Waiting,
            Some(packet) if packet.pieces.iter().any(|(from, ..)| *from == (member, 0)) => {
                Asked::Waiting
            }
            Some(_) => Asked::Wanted,
        }
    }

    /// As [`super::ByIndex::close`].
    pub fn close(&mut self, end: u64) {
        self.end = self.end.min(end);
        let end = self.end;
        for (_, packet) in self.packets.range_mut(end..) {
            if !packet.is_summed {
                (packet.is_summed, packet.given_up) = (true, true);
            }
        }
    }

    /// Pieces in sums that are complete, that wait, and that were given up.
    #[must_use]
    pub fn pieces(&self) -> (u64, u64, u64) {
        let mut counts = (0, 0, 0);
        for packet in self.packets.values() {
            let count = match (packet.given_up, packet.is_summed) {
                (true, _) => &mut counts.2,
                (false, true) => &mut counts.0,
                (false, false) => &mut counts.1,
            };
            *count += packet.pieces.len() as u64;
        }
        counts
    }
}
