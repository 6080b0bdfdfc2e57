//! The engine's queue, told when to decide, and what it leads one to expect of the hardware.

use crate::frames::counters::{COUNTERS, Counters};
use crate::frames::frame::{BEAT, Frame, What, is_update};
use crate::mismatch::same;
use olaf_engine::queue::{Gate, Merging, Rejection};
use olaf_engine::{Arrival, Contribution, Discipline, Entry, Outcome, Session};
use olaf_wire::offsets::{answer, common};
use olaf_wire::{QueueStatus, Update};
use std::collections::VecDeque;

/// What the host tells the hardware; it changes with a reset only.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) session: u32,
    pub(super) gate: Gate,
    pub(super) active_clusters: u16,
    pub(super) round_us: u32,
}

/// A frame that passes the queue.
struct Other {
    bytes: Vec<u8>,
    /// Of an answer.
    looked: Option<Looked>,
    /// There was room for it in any case.
    must_pass: bool,
}

/// When `olaf_status` looks at the slots in use, and what it sees.
struct Looked {
    at: u64,
    used: Option<usize>,
}

/// The engine's queue, and everything that is expected.
pub(super) struct Reference {
    settings: Settings,
    slots: usize,
    /// Beats of other frames for which there is room.
    room: usize,
    engine: Merging,
    /// Updates that no decision was made about.
    updates: VecDeque<(Contribution, Vec<u8>)>,
    /// Departures that have not left.
    entries: VecDeque<Vec<u8>>,
    others: VecDeque<Other>,
    /// Of the frame that is coming in.
    looking: Option<Looked>,
    /// Beats of other frames that had not left when this frame began.
    waiting: usize,
    departures: u32,
    pub(super) counters: Counters,
}

/// Cycles from a beat's arrival to `olaf_status`.
const TO_STATUS: u64 = 2;

impl Reference {
    pub(super) fn new(settings: Settings, slots: usize, room: usize) -> Self {
        Self {
            settings,
            slots,
            room,
            engine: Merging::new(slots, settings.gate),
            updates: VecDeque::new(),
            entries: VecDeque::new(),
            others: VecDeque::new(),
            looking: None,
            waiting: 0,
            departures: 0,
            counters: [0; COUNTERS],
        }
    }

    /// Everything has left, but for frames for which there was no room.
    pub(super) fn is_empty(&self) -> bool {
        self.updates.is_empty() && self.entries.is_empty() && self.engine.used() == 0
    }

    pub(super) fn end(&mut self) -> Result<(), String> {
        let head = self.engine.departing().ok_or("a slot is freed, and no entry departs")?;
        self.counters[14] += 1;
        self.counters[22] += u64::from(head.contribution.contributors);
        self.engine.end_departure();
        Ok(())
    }

    /// An entry is locked: it will leave as it is now.
    pub(super) fn begin(&mut self) -> Result<(), String> {
        let (session, number) = (Session(self.settings.session), self.departures);
        let head = self.engine.begin_departure();
        let Entry { contribution, lanes, .. } = head.ok_or("an entry is locked, and none waits")?;
        let hops = contribution.hops.saturating_add(1);
        let update = Contribution { hops, ..*contribution }.to_update(session, number, number);
        let mut bytes = vec![0; Update::datagram_len(lanes.len())];
        update.emit(lanes, &mut bytes);
        self.entries.push_back(bytes);
        self.departures = self.departures.wrapping_add(1);
        Ok(())
    }

    /// The hardware decides about the oldest update; `fate` has a bit for each fate.
    pub(super) fn arrive(&mut self, fate: u8) -> Result<(), String> {
        let (contribution, lanes) =
            self.updates.pop_front().ok_or("a decision, and no update came in")?;
        let outcome = self.engine.arrive(&Arrival { contribution, lanes: &lanes });
        let contributors = u64::from(contribution.contributors);
        let (expected, counter) = match outcome {
            Outcome::Appended(_) => (0, 6),
            Outcome::Merged(_) => (1, 7),
            Outcome::Replaced { displaced, .. } => {
                self.counters[21] += u64::from(displaced);
                (2, 8)
            }
            Outcome::Filtered(_) => (3, 9),
            Outcome::Dropped => (4, 10),
            Outcome::Rejected(Rejection::NonFinite) => (5, 11),
            Outcome::Rejected(Rejection::WrongSize) => (5, 12),
            Outcome::Rejected(Rejection::Overflow) => (5, 13),
            Outcome::Evicted { .. } => return Err(format!("the engine's queue says {outcome:?}")),
        };
        self.counters[counter] += 1;
        self.counters[15 + expected] += contributors;
        let named = |bits: u8| -> Vec<&str> {
            let names = ["appended", "merged", "replaced", "filtered", "dropped", "rejected"];
            (0..6).filter(|bit| bits >> bit & 1 == 1).map(|bit| names[bit]).collect()
        };
        same("fate", named(fate), named(1 << expected))
            .map_err(|text| format!("{text} ({outcome:?} of {contribution:?})"))
    }

    /// The beat of that number was taken. With the second one of an answer, `olaf_status` looks at the slots in use.
    pub(super) fn beat_in(&mut self, cycle: u64, beat: usize) {
        if beat == 0 {
            let beats = |other: &Other| other.bytes.len().div_ceil(BEAT);
            self.waiting = self.others.iter().map(beats).sum();
        }
        if beat == 1 {
            self.looking = Some(Looked { at: cycle + TO_STATUS, used: None });
        }
    }

    /// Before the events of a cycle.
    pub(super) fn observe_used(&mut self, cycle: u64) {
        let used = self.engine.used();
        let coming = self.looking.iter_mut();
        // At most three short frames are between the input and `olaf_status`.
        let came = self.others.iter_mut().rev().take(4).filter_map(|other| other.looked.as_mut());
        for looked in coming.chain(came).filter(|looked| looked.at == cycle) {
            looked.used = Some(used);
        }
    }

    /// The last beat of a frame was taken.
    pub(super) fn frame_in(&mut self, frame: Frame) {
        let looked = self.looking.take();
        match frame.what {
            What::Framing => self.counters[0] += 1,
            What::TooLong => self.counters[1] += 1,
            What::Refused => self.counters[2] += 1,
            What::Update(contribution, lanes) => self.updates.push_back((contribution, lanes)),
            What::Answer(bytes) => {
                self.counters[5] += 1;
                self.passes(bytes, frame.beats.len(), looked);
            }
            What::Other(bytes) => self.passes(bytes, frame.beats.len(), None),
        }
    }

    fn passes(&mut self, bytes: Vec<u8>, beats: usize, looked: Option<Looked>) {
        // Two short frames may be equal: then nobody knows which of them was lost.
        let must_pass = self.waiting + beats <= self.room && bytes.len() >= common::LEN;
        self.others.push_back(Other { bytes, looked, must_pass });
    }

    /// A frame has left.
    pub(super) fn frame_out(&mut self, bytes: &[u8]) -> Result<(), String> {
        if is_update(bytes) {
            let expected =
                self.entries.pop_front().ok_or("an update leaves, and no entry departed")?;
            return same_bytes("an update leaves", bytes, &expected);
        }
        while let Some(other) = self.others.pop_front() {
            if self.stamped(&other)? == bytes {
                self.counters[3] += 1;
                return Ok(());
            }
            self.no_room(&other)?;
        }
        Err(format!("a frame leaves that did not come in: {bytes:02x?}"))
    }

    /// Nothing comes any more: there was no room for the frames that have not left.
    pub(super) fn drained(&mut self) -> Result<(), String> {
        while let Some(other) = self.others.pop_front() {
            self.no_room(&other)?;
        }
        Ok(())
    }

    fn no_room(&mut self, other: &Other) -> Result<(), String> {
        if other.must_pass {
            return Err(format!("a frame is lost for which there was room: {:02x?}", other.bytes));
        }
        self.counters[4] += 1;
        Ok(())
    }

    /// The frame with this queue's status in it, if it is an answer (OLAF §5).
    fn stamped(&self, other: &Other) -> Result<Vec<u8>, String> {
        let mut bytes = other.bytes.clone();
        let Some(looked) = &other.looked else { return Ok(bytes) };
        let used = looked.used.ok_or("an answer leaves before its status is known")?;
        let own = QueueStatus {
            active_clusters: self.settings.active_clusters,
            slots: self.slots as u16,
            used: used as u16,
            switches: 1,
            round_us: self.settings.round_us,
        };
        let word = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let round: [u8; 4] = std::array::from_fn(|byte| bytes[answer::ROUND_US + byte]);
        let above = QueueStatus {
            active_clusters: word(answer::ACTIVE_CLUSTERS),
            slots: word(answer::SLOTS),
            used: word(answer::USED),
            switches: bytes[answer::SWITCHES],
            round_us: u32::from_be_bytes(round),
        };
        let told = above.passing(own);
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(answer::ACTIVE_CLUSTERS, &told.active_clusters.to_be_bytes());
        put(answer::SLOTS, &told.slots.to_be_bytes());
        put(answer::USED, &told.used.to_be_bytes());
        put(answer::SWITCHES, &[told.switches]);
        put(answer::ROUND_US, &told.round_us.to_be_bytes());
        Ok(bytes)
    }
}

/// Names the first byte that differs.
fn same_bytes(what: &str, hardware: &[u8], engine: &[u8]) -> Result<(), String> {
    same(&format!("{what}: bytes"), hardware.len(), engine.len())?;
    match hardware.iter().zip(engine).position(|(a, b)| a != b) {
        None => Ok(()),
        Some(at) => Err(format!(
            "{what}: byte {at} differs\n  hardware {hardware:02x?}\n  engine   {engine:02x?}"
        )),
    }
}
