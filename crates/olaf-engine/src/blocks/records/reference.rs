//! The reference model of the table: it keeps every piece, finds everything by looking at everything, and
//! has one timer.

use super::{Key, Known, Met, Piece, Reason, Sources, State};
use crate::time::Instant;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;

/// A piece that was taken in.
#[derive(Clone, Debug)]
struct Kept {
    source: u8,
    sources: u8,
    degraded: bool,
    aged: bool,
    gradients: Vec<i32>,
}

impl Kept {
    fn of(piece: &Piece<'_>) -> Self {
        let gradients = piece.gradients.as_chunks().0.iter();
        Self {
            source: piece.source,
            sources: piece.sources,
            degraded: piece.degraded,
            aged: piece.aged,
            gradients: gradients.map(|gradient| i32::from_be_bytes(*gradient)).collect(),
        }
    }
}

/// A block.
#[derive(Clone, Debug)]
struct Block {
    state: State,
    is_final: bool,
    call: u8,
    /// In the order of their arrival.
    pieces: Vec<Kept>,
    /// From above.
    result: Option<Kept>,
    is_degraded: bool,
    has_aged: bool,
    /// Looks of the timer since the last piece; none: it has not looked yet.
    looks: Option<u16>,
}

impl Block {
    fn sum(&self) -> Kept {
        if let Some(result) = &self.result {
            return result.clone();
        }
        let mut sum = self.pieces[0].clone();
        for piece in &self.pieces[1..] {
            sum.sources += piece.sources;
            sum.degraded |= piece.degraded;
            sum.aged |= piece.aged;
            for (sum, gradient) in sum.gradients.iter_mut().zip(&piece.gradients) {
                *sum = match (*sum, *gradient) {
                    // As ATP has it: what ran over stays so.
                    (over @ (i32::MAX | i32::MIN), _) | (_, over @ (i32::MAX | i32::MIN)) => over,
                    (sum, gradient) => sum.saturating_add(gradient),
                };
            }
        }
        sum.degraded |= self.is_degraded;
        sum.aged |= self.has_aged;
        sum
    }
}

/// The reference model of [`Records`](super::Records) for one job. Sources say truly what they hold.
#[derive(Clone, Debug)]
pub struct Reference {
    job: u8,
    sources: Vec<u8>,
    excused: BTreeSet<u8>,
    max: usize,
    gradients: usize,
    visits: u16,
    interval: Duration,
    first: u16,
    blocks: BTreeMap<(u16, u32), Block>,
    over: BTreeSet<(u16, u32)>,
    begun: BTreeSet<(u16, u32)>,
    blocks_of: BTreeMap<u16, u32>,
    holds: BTreeMap<u8, (u16, u32)>,
    /// Results before this place are gone.
    released: (u16, u32),
    last_scan: Instant,
}

impl Reference {
    /// A job whose generations begin at 0 and never wrap.
    #[must_use]
    pub fn new(job: u8, spec: &super::JobSpec, interval: Duration, now: Instant) -> Self {
        let sources: Vec<u8> = spec.sources.iter().collect();
        Self {
            job,
            excused: BTreeSet::new(),
            max: spec.block_cnt_max.into(),
            gradients: spec.block_grad_max.into(),
            visits: spec.visits,
            interval,
            first: 0,
            blocks: BTreeMap::new(),
            over: BTreeSet::new(),
            begun: BTreeSet::new(),
            blocks_of: BTreeMap::new(),
            holds: sources.iter().map(|source| (*source, (0, 0))).collect(),
            sources,
            released: (0, 0),
            last_scan: now,
        }
    }

    fn awaited(&self) -> Vec<u8> {
        self.sources.iter().copied().filter(|source| !self.excused.contains(source)).collect()
    }

    fn is_finished(&self, generation: u16) -> bool {
        let blocks = self.blocks_of.get(&generation);
        blocks.is_some_and(|blocks| (0..*blocks).all(|b| self.over.contains(&(generation, b))))
    }

    fn has_all(&self, block: &Block, sources: &[u8]) -> bool {
        sources.iter().all(|source| block.pieces.iter().any(|piece| piece.source == *source))
    }

    /// The reference model of [`Records::meet`](super::Records::meet).
    pub fn meet(&mut self, piece: &Piece<'_>) -> Met {
        let place = (piece.key.generation, piece.key.block);
        let lanes = piece.gradients.len() / 4;
        if piece.key.job != self.job {
            return Met::Refused(Reason::NoJob);
        }
        if !self.sources.contains(&piece.source) {
            return Met::Refused(Reason::NotASource);
        }
        if lanes > self.gradients {
            return Met::Refused(Reason::TooManyGradients);
        }
        if !self.blocks.contains_key(&place)
            && let Some(met) = self.open(place, piece.is_final)
        {
            return met;
        }
        let is_first = !self.blocks.contains_key(&place);
        let block = self.blocks.entry(place).or_insert_with(|| Block {
            state: State::Open,
            is_final: piece.is_final,
            call: piece.call,
            pieces: Vec::new(),
            result: None,
            is_degraded: false,
            has_aged: false,
            looks: None,
        });
        if block.pieces.iter().any(|kept| kept.source == piece.source) {
            return Met::Repeated;
        }
        if block.state != State::Open {
            return Met::Late;
        }
        if (block.is_final, block.call) != (piece.is_final, piece.call) {
            return Met::Refused(Reason::Mismatch);
        }
        if block.pieces.first().is_some_and(|first| first.gradients.len() != lanes) {
            return Met::Refused(Reason::WrongSize);
        }
        block.pieces.push(Kept::of(piece));
        block.looks = None;
        let block = self.blocks[&place].clone();
        if self.has_all(&block, &self.awaited()) {
            self.sum_up(place);
            return Met::Complete;
        }
        if is_first { Met::Opened } else { Met::Added }
    }

    /// Begins a block, or says why it cannot begin.
    fn open(&mut self, place: (u16, u32), is_final: bool) -> Option<Met> {
        let (generation, number) = place;
        if generation < self.first || self.over.contains(&place) {
            return Some(Met::Late);
        }
        let prefix = (0..).take_while(|block| self.over.contains(&(generation, *block))).count();
        let is_far = generation - self.first >= super::MAX_GENERATIONS;
        let has_later = self.begun.range((generation, number + 1)..(generation + 1, 0)).count() > 0;
        let open = self.blocks.values().filter(|block| block.state == State::Open).count();
        let reason = if is_far {
            Reason::TooFarAhead
        } else if self.blocks_of.get(&generation).is_some_and(|blocks| number >= *blocks) {
            Reason::Mismatch
        } else if number as usize - prefix >= 4 * self.max {
            Reason::TooFarAhead
        } else if open >= self.max || self.blocks.len() >= 4 * self.max {
            Reason::NoRecord
        } else if is_final && has_later {
            Reason::Mismatch
        } else {
            self.begun.insert(place);
            if is_final {
                self.blocks_of.insert(generation, number + 1);
            }
            return None;
        };
        Some(Met::Refused(reason))
    }

    fn sum_up(&mut self, place: (u16, u32)) {
        let has_everyone = self.has_all(&self.blocks[&place], &self.sources);
        let block = self.blocks.get_mut(&place).expect("it is open");
        block.state = State::Summed;
        block.is_degraded = !has_everyone;
    }

    /// The reference model of [`Records::finish`](super::Records::finish).
    pub fn finish(&mut self, key: Key) {
        let place = (key.generation, key.block);
        if let Some(block) = self.blocks.get_mut(&place).filter(|b| b.state == State::Summed) {
            block.state = State::Final;
            self.over.insert(place);
        }
    }

    /// The reference model of [`Records::fulfil`](super::Records::fulfil), for a block with a record.
    pub fn fulfil(&mut self, result: &Piece<'_>) -> bool {
        let place = (result.key.generation, result.key.block);
        let Some(block) = self.blocks.get_mut(&place) else { return false };
        if block.state == State::Final
            || (block.is_final, block.call) != (result.is_final, result.call)
            || result.gradients.len() / 4 > self.gradients
        {
            return false;
        }
        block.result = Some(Kept::of(result));
        block.state = State::Final;
        self.over.insert(place);
        true
    }

    /// Time passes until `now`: the reference model of [`Records::scan`](super::Records::scan).
    pub fn scan(&mut self, now: Instant) -> Vec<Key> {
        let step = self.interval.as_nanos() as u64;
        let is_due = now.0 / step > self.last_scan.0 / step;
        self.last_scan = now;
        if !is_due || self.visits == 0 {
            return Vec::new();
        }
        let mut aged = Vec::new();
        for (place, block) in &mut self.blocks {
            if block.state != State::Open {
                continue;
            }
            let looks = block.looks.map_or(0, |looks| looks + 1);
            block.looks = Some(looks);
            if looks == self.visits {
                block.has_aged = true;
                aged.push(*place);
            }
        }
        aged.iter().for_each(|place| self.sum_up(*place));
        let key = |(generation, block)| Key { job: self.job, generation, block };
        aged.into_iter().map(key).collect()
    }

    /// The reference model of [`Records::excuse`](super::Records::excuse).
    pub fn excuse(&mut self, source: u8, is_excused: bool) -> Vec<Key> {
        if !is_excused {
            self.excused.remove(&source);
            let holds = self.holds.entry(source).or_default();
            *holds = (*holds).max(self.released);
            return Vec::new();
        }
        if self.awaited().iter().all(|awaited| *awaited == source) {
            return Vec::new();
        }
        self.excused.insert(source);
        let awaited = self.awaited();
        let open = self.blocks.iter().filter(|(_, block)| block.state == State::Open);
        let complete = open.filter(|(_, block)| self.has_all(block, &awaited));
        let complete: Vec<(u16, u32)> = complete.map(|(place, _)| *place).collect();
        complete.iter().for_each(|place| self.sum_up(*place));
        self.release();
        let key = |(generation, block)| Key { job: self.job, generation, block };
        complete.into_iter().map(key).collect()
    }

    /// The furthest place that a source can hold now.
    #[must_use]
    pub fn holdable(&self) -> (u16, u32) {
        let mut generation = self.first;
        while self.is_finished(generation) {
            generation += 1;
        }
        let open = (0..).find(|block| !self.over.contains(&(generation, *block)));
        (generation, open.unwrap_or(0))
    }

    /// The reference model of [`Records::note_holds`](super::Records::note_holds).
    pub fn note_holds(&mut self, source: u8, place: (u16, u32)) {
        if let Some(holds) = self.holds.get_mut(&source) {
            *holds = (*holds).max(place);
            self.release();
        }
    }

    fn release(&mut self) {
        let holds = self.awaited().into_iter().map(|source| self.holds[&source]).min();
        let Some(holds) = holds else { return };
        self.released = self.released.max(holds);
        self.blocks.retain(|place, block| block.state != State::Final || *place >= holds);
        while self.first < holds.0 && self.is_finished(self.first) {
            self.first += 1;
        }
    }

    /// The reference model of [`Records::known`](super::Records::known).
    #[must_use]
    pub fn known(&self, place: (u16, u32)) -> Known {
        match self.blocks.get(&place) {
            Some(block) => Known::Record(block.state),
            None if self.over.contains(&place) || place.0 < self.first => Known::Gone,
            None => Known::New,
        }
    }

    /// Workers, flags and gradients of a block's sum: sources, `degraded`, `aged`.
    #[must_use]
    pub fn sum(&self, place: (u16, u32)) -> Option<(u8, bool, bool, Vec<i32>)> {
        let sum = self.blocks.get(&place)?.sum();
        Some((sum.sources, sum.degraded, sum.aged, sum.gradients))
    }

    /// Sources that open blocks lack.
    #[must_use]
    pub fn lacking(&self) -> Sources {
        let open = self.blocks.values().filter(|block| block.state == State::Open);
        let lacks = |block: &Block, source: &u8| block.pieces.iter().all(|p| p.source != *source);
        let awaited = self.awaited();
        open.flat_map(|block| awaited.iter().copied().filter(|source| lacks(block, source)))
            .collect()
    }

    /// Returns true if a generation is finished.
    #[must_use]
    pub fn finished(&self, generation: u16) -> bool {
        generation < self.first || self.is_finished(generation)
    }
}
