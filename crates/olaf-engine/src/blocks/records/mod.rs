//! Trio-ML's table: job records, block records in a hash table, and timers that find the blocks that
//! age out (Trio-ML §4, §5, appendix A.1; `docs/design/032-trio.md`).
//!
//! A block record exists only where a job record is. The first piece of a block creates it. Its sum
//! is complete once every source has sent its piece, or ages out: the timers look at every record
//! once in an interval and clear its flag *recently referenced*. A record whose flag they find
//! cleared has had no piece for at least that long.
//!
//! differs: the paper removes a record together with its block. Here a record keeps the result until
//! every source says that it holds it, because a lost datagram would otherwise be lost for ever.

#[cfg(all(test, feature = "model"))]
mod check;
mod counts;
mod job;
mod progress;
mod record;
#[cfg(any(test, feature = "reference"))]
pub mod reference;
mod sources;
mod table;
#[cfg(test)]
mod tests;
mod timers;

pub use counts::{Counts, Met, Reason};
pub use job::{JobSpec, SourceCounts};
pub use progress::MAX_GENERATIONS;
pub use record::{Key, Piece, Record, State};
pub use sources::Sources;

use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;
use job::{Job, RECORDS_PER_BLOCK};
use progress::Standing;
use table::Table;
use timers::Timers;

/// Bytes of a gradient.
const GRADIENT: usize = 4;

/// Bytes that a job with that many incomplete blocks of that many gradients may take.
#[must_use]
pub const fn bytes_of(block_cnt_max: u64, block_grad_max: u16) -> u64 {
    let record = size_of::<Option<Record>>() + block_grad_max as usize * GRADIENT;
    block_cnt_max * RECORDS_PER_BLOCK as u64 * record as u64
}

/// What the table knows of a block that has no record, or of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It has a record.
    Record(State),
    /// It has not begun here.
    New,
    /// It is over, and its result is kept no longer.
    Gone,
}

/// Jobs, their blocks, and the timers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Records {
    jobs: BTreeMap<u8, Job>,
    table: Table,
    timers: Timers,
    /// Open blocks that can age out.
    timed: u32,
    /// Memory of sums that are not in use.
    spare: Vec<Vec<i32>>,
    counts: HashedCounts,
}

/// [`Counts`], which say nothing about what happens next: states that differ only there are the same.
#[derive(Clone, Debug, Default)]
struct HashedCounts(Counts);

impl PartialEq for HashedCounts {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for HashedCounts {}

impl core::hash::Hash for HashedCounts {
    fn hash<H: core::hash::Hasher>(&self, _: &mut H) {}
}

impl Records {
    /// A table without jobs. `buckets`: about as many as there will be records. `threads` timers look
    /// at all of it once in `interval`.
    ///
    /// # Panics
    /// Where there is no thread.
    #[must_use]
    pub fn new(buckets: u32, interval: Duration, threads: u32) -> Self {
        assert!(threads > 0, "a configuration without threads is refused");
        Self {
            jobs: BTreeMap::new(),
            table: Table::new(buckets),
            timers: Timers::new(interval, threads),
            timed: 0,
            spare: Vec::new(),
            counts: HashedCounts::default(),
        }
    }

    /// Creates a job record; the job's records of before are gone.
    pub fn add_job(&mut self, job: u8, spec: &JobSpec) {
        self.remove_job(job);
        self.jobs.insert(job, Job::new(spec));
    }

    /// Removes a job record with all its block records.
    pub fn remove_job(&mut self, job: u8) {
        if self.jobs.remove(&job).is_none() {
            return;
        }
        let keys: Vec<Key> =
            self.table.iter().map(|record| record.key).filter(|key| key.job == job).collect();
        for key in keys {
            let Some(record) = self.table.remove(key) else { continue };
            if record.state == State::Open {
                let counts = &mut self.counts.0;
                counts.waiting -= u64::from(record.pieces);
                counts.given_up += u64::from(record.pieces);
            }
        }
        self.timed = self.table.iter().filter(|record| self.can_age(record)).count() as u32;
        self.spare.clear();
        self.rest();
    }

    fn can_age(&self, record: &Record) -> bool {
        let visits = self.jobs.get(&record.key.job).map_or(0, |job| job.visits);
        record.state == State::Open && visits > 0
    }

    /// The timers rest while nothing can age out.
    fn rest(&mut self) {
        if self.timed == 0 {
            self.timers.stop();
        }
    }

    /// A piece comes.
    pub fn meet(&mut self, now: Instant, piece: &Piece<'_>) -> Met {
        let met = self.take(now, piece);
        self.counts.0.note(met);
        if let Some(counts) =
            self.jobs.get_mut(&piece.key.job).and_then(|job| job.counts_of(piece.source))
        {
            match met {
                Met::Opened | Met::Added | Met::Complete => counts.pieces += 1,
                Met::Late => counts.late += 1,
                Met::Repeated | Met::Refused(_) => {}
            }
        }
        if met == Met::Complete {
            self.sum_up(piece.key);
        }
        met
    }

    fn take(&mut self, now: Instant, piece: &Piece<'_>) -> Met {
        let Piece { key, source, is_final, call, gradients, .. } = *piece;
        let Some(job) = self.jobs.get_mut(&key.job) else { return Met::Refused(Reason::NoJob) };
        if !job.sources.contains(source) {
            return Met::Refused(Reason::NotASource);
        }
        if gradients.len() > usize::from(job.block_grad_max) * GRADIENT {
            return Met::Refused(Reason::TooManyGradients);
        }
        let Some(record) = self.table.get_mut(key) else {
            match job.progress.standing(key.generation, key.block) {
                Standing::Over => return Met::Late,
                Standing::TooFarAhead => return Met::Refused(Reason::TooFarAhead),
                Standing::Beyond => return Met::Refused(Reason::Mismatch),
                Standing::New => {}
            }
            if !job.has_room() {
                return Met::Refused(Reason::NoRecord);
            }
            if !job.progress.begin(key.generation, key.block, is_final) {
                return Met::Refused(Reason::Mismatch);
            }
            let sum = self.spare.pop().unwrap_or_default();
            let mut record = Record::new(now, key, (is_final, call), sum);
            record.add(piece);
            (job.open, job.used, job.total) = (job.open + 1, job.used + 1, job.total + 1);
            if job.visits > 0 {
                self.timed += 1;
                self.timers.start(now);
            }
            let is_complete = record.received.contains_all(&job.awaited());
            self.table.insert(record);
            return if is_complete { Met::Complete } else { Met::Opened };
        };
        if record.received.contains(source) {
            // differs: in the paper every lookup sets the flag. A piece that is sent again until its
            // result comes would then keep its block from ageing.
            return Met::Repeated;
        }
        if record.state != State::Open {
            return Met::Late;
        }
        if (record.is_final, record.call) != (is_final, call) {
            return Met::Refused(Reason::Mismatch);
        }
        if record.sum.len() * GRADIENT != gradients.len() {
            return Met::Refused(Reason::WrongSize);
        }
        record.add(piece);
        if record.received.contains_all(&job.awaited()) { Met::Complete } else { Met::Added }
    }

    /// No more pieces are added to an open block.
    fn sum_up(&mut self, key: Key) {
        let Some(record) = self.table.get_mut(key).filter(|record| record.state == State::Open)
        else {
            return;
        };
        record.state = State::Summed;
        let pieces = u64::from(record.pieces);
        self.counts.0.waiting -= pieces;
        self.counts.0.summed += pieces;
        let Some(job) = self.jobs.get_mut(&key.job) else { return };
        record.degraded |= !record.received.contains_all(&job.sources);
        job.open -= 1;
        if job.visits > 0 {
            self.timed -= 1;
        }
        self.rest();
    }

    /// A sum is the result: of the only switch, or of the uppermost.
    pub fn finish(&mut self, key: Key) {
        let Some(record) = self.table.get_mut(key).filter(|record| record.state == State::Summed)
        else {
            return;
        };
        record.state = State::Final;
        if let Some(job) = self.jobs.get_mut(&key.job) {
            job.progress.end(key.generation, key.block);
        }
    }

    /// The result of a block comes from above; whether it is new. Of pieces the block waits for no
    /// more.
    pub fn fulfil(&mut self, now: Instant, result: &Piece<'_>) -> bool {
        let Piece { key, is_final, call, .. } = *result;
        let Some(job) = self.jobs.get_mut(&key.job) else { return false };
        if result.gradients.len() > usize::from(job.block_grad_max) * GRADIENT {
            return false;
        }
        if self.table.get(key).is_none() {
            let is_new = job.progress.standing(key.generation, key.block) == Standing::New;
            if !is_new
                || !job.has_room()
                || !job.progress.begin(key.generation, key.block, is_final)
            {
                return false;
            }
            (job.used, job.total) = (job.used + 1, job.total + 1);
            let sum = self.spare.pop().unwrap_or_default();
            let mut record = Record::new(now, key, (is_final, call), sum);
            record.state = State::Summed;
            self.table.insert(record);
        }
        let Some(record) = self.table.get_mut(key) else { return false };
        if record.state == State::Final || (record.is_final, record.call) != (is_final, call) {
            return false;
        }
        if record.state == State::Open {
            self.counts.0.waiting -= u64::from(record.pieces);
            self.counts.0.overtaken += u64::from(record.pieces);
            job.open -= 1;
            if job.visits > 0 {
                self.timed -= 1;
            }
        }
        record.fulfil(result);
        job.progress.end(key.generation, key.block);
        self.rest();
        true
    }

    /// When the next timer starts.
    #[must_use]
    pub fn next_scan(&self) -> Option<Instant> {
        self.timers.due()
    }

    /// The timers that start by `now` look at their parts of the table. Returns the blocks that have
    /// aged out, in the order of their keys: their sums are complete without the stragglers.
    pub fn scan(&mut self, now: Instant) -> Vec<Key> {
        let mut aged = Vec::new();
        while let Some(part) = self.timers.begin(now, self.table.buckets()) {
            let jobs = &self.jobs;
            self.table.scan(part, |record| {
                let visits = jobs.get(&record.key.job).map_or(0, |job| job.visits);
                if record.state != State::Open || visits == 0 {
                    return;
                }
                if core::mem::take(&mut record.referenced) {
                    record.age = 0;
                    return;
                }
                record.age += 1;
                if record.age == visits {
                    aged.push(record.key);
                }
            });
        }
        aged.sort_unstable();
        for key in &aged {
            let Some(record) = self.table.get_mut(*key) else { continue };
            record.aged = true;
            let received = record.received;
            if let Some(job) = self.jobs.get_mut(&key.job) {
                for source in job.sources.without(&received).iter() {
                    job.counts_of(source).into_iter().for_each(|counts| counts.events += 1);
                }
            }
            self.sum_up(*key);
        }
        aged
    }

    /// Blocks wait no longer for a source, a permanent straggler, or do again. Returns the blocks
    /// that are complete without it.
    pub fn excuse(&mut self, job: u8, source: u8, is_excused: bool) -> Vec<Key> {
        let Some(record) = self.jobs.get_mut(&job) else { return Vec::new() };
        if !is_excused {
            record.welcome_back(source);
            return Vec::new();
        }
        let mut one = Sources::default();
        one.insert(source);
        let awaited = record.awaited().without(&one);
        if awaited.is_empty() {
            // Somebody must be waited for, or a block would be complete with any piece.
            return Vec::new();
        }
        record.excused.insert(source);
        let open = self.table.iter().filter(|one| one.key.job == job && one.state == State::Open);
        let complete = open.filter(|one| one.received.contains_all(&awaited));
        let mut complete: Vec<Key> = complete.map(|one| one.key).collect();
        complete.sort_unstable();
        complete.iter().for_each(|key| self.sum_up(*key));
        self.release(job);
        complete
    }

    /// A source holds the results of all generations before `holds.0`, and of this one those before
    /// block `holds.1`.
    pub fn note_holds(&mut self, job: u8, source: u8, holds: (u16, u32)) {
        if let Some(record) = self.jobs.get_mut(&job) {
            record.note_holds(source, holds);
            self.release(job);
        }
    }

    /// Releases the results that every source holds that blocks wait for.
    fn release(&mut self, id: u8) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let Some((generation, block)) = job.held_by_all() else { return };
        if generation.wrapping_sub(job.progress.first()) >= 1 << 15 {
            return;
        }
        loop {
            let (at, from) = job.released;
            // Generations go one by one; the last one goes as far as its results are held.
            let is_last = at == generation;
            let end = if is_last { block } else { u32::MAX }.min(job.progress.begun_of_first());
            for block in from..end {
                let key = Key { job: id, generation: at, block };
                let is_final =
                    self.table.get(key).is_some_and(|record| record.state == State::Final);
                if is_final && let Some(record) = self.table.remove(key) {
                    job.used -= 1;
                    self.spare.push(record.sum);
                }
            }
            if end > from {
                job.released = (at, end);
            }
            if is_last || job.progress.forget_before(generation).is_none() {
                return;
            }
            job.released = (job.progress.first(), 0);
        }
    }

    /// The record of a block.
    #[must_use]
    pub fn record(&self, key: Key) -> Option<&Record> {
        self.table.get(key)
    }

    /// What is known of a block.
    #[must_use]
    pub fn known(&self, key: Key) -> Known {
        if let Some(record) = self.table.get(key) {
            return Known::Record(record.state);
        }
        let job = self.jobs.get(&key.job);
        let is_over = |job: &Job| {
            job.is_released((key.generation, key.block))
                && job.progress.is_over(key.generation, key.block)
        };
        if job.is_some_and(is_over) { Known::Gone } else { Known::New }
    }

    /// The first generation of a job that is not finished, and the later ones that are: bit `i` stands
    /// for the `i`-th after it.
    #[must_use]
    pub fn finished(&self, job: u8) -> Option<(u16, u64)> {
        let progress = &self.jobs.get(&job)?.progress;
        let first = progress.first_unfinished();
        let bit = |ahead: u16| u64::from(progress.is_finished(first.wrapping_add(ahead)));
        Some((first, (1..MAX_GENERATIONS).map(|ahead| bit(ahead) << ahead).sum()))
    }

    /// What every source holds that blocks wait for.
    #[must_use]
    pub fn held_by_all(&self, job: u8) -> Option<(u16, u32)> {
        self.jobs.get(&job)?.held_by_all()
    }

    /// Sources that open blocks of the job lack.
    #[must_use]
    pub fn lacking(&self, job: u8) -> Sources {
        let Some(record) = self.jobs.get(&job) else { return Sources::default() };
        let open = self.table.iter().filter(|one| one.key.job == job && one.state == State::Open);
        let lacking = open.map(|one| record.awaited().without(&one.received));
        lacking.flat_map(|sources| sources.iter().collect::<Vec<_>>()).collect()
    }

    /// What a source has taken part in.
    #[must_use]
    pub fn source(&self, job: u8, source: u8) -> SourceCounts {
        let counts = self.jobs.get(&job).and_then(|job| job.counts.get(usize::from(source)));
        counts.copied().unwrap_or_default()
    }

    /// Incomplete blocks of a job, its records, and all blocks that it ever had: `block_curr_cnt` and
    /// `block_total_cnt`.
    #[must_use]
    pub fn usage(&self, job: u8) -> (u32, u32, u64) {
        self.jobs.get(&job).map_or((0, 0, 0), |job| (job.open, job.used, job.total))
    }

    /// Block records of all jobs.
    #[must_use]
    pub fn used(&self) -> usize {
        self.table.len()
    }

    /// What became of the pieces.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts.0
    }
}
