//! Sources, a table of the only switch, and its timers.

use super::super::progress::Progress;
use super::super::{JobSpec, Key, Met, Piece, Record, Records, State};
use super::tests as names;
use crate::time::Instant;
use alloc::vec;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::time::Duration;
use stateright::{Model, Property};

const JOB: u8 = 1;

/// What is explored.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) sources: u8,
    /// Of one generation.
    pub(super) blocks: u32,
    /// Visits of the timers after which a block without a new piece ages out.
    pub(super) visits: u16,
    /// Each timer looks at this share of the table.
    pub(super) threads: u32,
    /// Whether sources may become permanent stragglers, and come back.
    pub(super) excuses: bool,
    pub(super) bug: Option<Bug>,
}

/// A mistake, planted to see that the check finds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bug {
    /// A block forgets whose pieces are in it.
    ForgetsSources,
    /// A timer does not count the pieces of the block that it ends.
    Miscounts,
    /// A result is removed as soon as it is sent, and nothing remembers that its block is over.
    ForgetsBlocks,
    /// A result is open to late pieces.
    AddsLate,
    /// Timers do not clear the flag *recently referenced*.
    NeverAges,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Action {
    /// A piece arrives, for the first time or again.
    Piece { source: u8, block: u32 },
    /// The next timer starts.
    Scan,
    /// A result arrives at a source.
    Result { source: u8, block: u32 },
    /// A source says which results it holds.
    Holds { source: u8 },
    /// A source becomes a permanent straggler, or is back.
    Excuse { source: u8, is_excused: bool },
}

/// A result as it was sent: sources in it, digits of the sum, and whether workers are missing.
type Sent = (u16, i32, bool);

#[derive(Clone, Debug)]
pub(super) struct System {
    records: Records,
    /// The result of each block as it was sent first.
    results: Vec<Option<Sent>>,
    /// Blocks whose result a source has: a bit for each.
    has: Vec<u32>,
    /// What went wrong.
    twice: bool,
    wrong_count: bool,
    reopened: bool,
    changed: bool,
}

fn key_of(block: u32) -> Key {
    Key { job: JOB, generation: 0, block }
}

/// Each source has a digit of its own in a sum.
fn digit(source: u8) -> i32 {
    1 << (4 * source)
}

impl System {
    fn new(setup: &Setup) -> Self {
        let mut records = Records::new(2, Duration::from_nanos(8), setup.threads);
        records.add_job(
            JOB,
            &JobSpec {
                sources: (0..setup.sources).collect(),
                block_cnt_max: setup.blocks as u16,
                block_grad_max: 1,
                visits: setup.visits,
                first: 0,
            },
        );
        Self {
            records,
            results: vec![None; setup.blocks as usize],
            has: vec![0; usize::from(setup.sources)],
            twice: false,
            wrong_count: false,
            reopened: false,
            changed: false,
        }
    }

    fn record(&mut self, block: u32) -> Option<&mut Record> {
        self.records.table.get_mut(key_of(block))
    }

    fn piece(&mut self, setup: &Setup, source: u8, block: u32) {
        let bug = setup.bug;
        if let Some(record) = self.record(block) {
            if bug == Some(Bug::ForgetsSources) && record.state == State::Open {
                record.received.remove(source);
            }
            if bug == Some(Bug::AddsLate)
                && record.state == State::Final
                && !record.received.contains(source)
            {
                record.add(&piece(setup, source, block, &digit(source).to_be_bytes()));
            }
        }
        let met = self
            .records
            .meet(Instant(0), &piece(setup, source, block, &digit(source).to_be_bytes()));
        self.reopened |= met == Met::Opened && self.results[block as usize].is_some();
        if met == Met::Complete {
            self.send(setup, block);
        }
    }

    /// The sum of a block goes to all sources.
    fn send(&mut self, setup: &Setup, block: u32) {
        self.records.finish(key_of(block));
        let Some(record) = self.record(block) else { return };
        let sent = (record.workers, record.sum[0], record.degraded);
        self.results[block as usize] = Some(sent);
        if setup.bug == Some(Bug::ForgetsBlocks) {
            self.records.table.remove(key_of(block));
            let job = self.records.jobs.get_mut(&JOB).expect("the job is there");
            job.used -= 1;
            job.progress = Progress::new(0, 100);
        }
    }

    fn scan(&mut self, setup: &Setup) {
        if setup.bug == Some(Bug::NeverAges) {
            (0..setup.blocks).for_each(|block| {
                self.record(block).into_iter().for_each(|record| record.referenced = true);
            });
        }
        let Some(now) = self.records.next_scan() else { return };
        for key in self.records.scan(now) {
            if setup.bug == Some(Bug::Miscounts)
                && let Some(record) = self.record(key.block)
            {
                record.workers = 0;
            }
            self.send(setup, key.block);
        }
    }

    fn excuse(&mut self, setup: &Setup, source: u8, is_excused: bool) {
        for key in self.records.excuse(JOB, source, is_excused) {
            self.send(setup, key.block);
        }
    }

    fn act(&mut self, setup: &Setup, action: Action) {
        match action {
            Action::Piece { source, block } => self.piece(setup, source, block),
            Action::Scan => self.scan(setup),
            Action::Result { source, block } => self.has[usize::from(source)] |= 1 << block,
            Action::Holds { source } => {
                let holds = self.has[usize::from(source)].trailing_ones();
                self.records.note_holds(JOB, source, (0, holds));
            }
            Action::Excuse { source, is_excused } => self.excuse(setup, source, is_excused),
        }
        self.look(setup);
    }

    /// Compares every record with what may be in it.
    fn look(&mut self, setup: &Setup) {
        for record in self.records.table.iter() {
            let digits = (0..setup.sources).map(|source| record.sum[0] >> (4 * source) & 15);
            self.twice |= digits.clone().any(|digit| digit > 1);
            let sources = digits.filter(|digit| *digit > 0).count() as u16;
            let is_partial = sources < u16::from(setup.sources);
            if record.state == State::Final {
                let sent = (record.workers, record.sum[0], record.degraded);
                self.changed |= self.results[record.key.block as usize] != Some(sent);
                self.wrong_count |= record.workers != sources || record.degraded != is_partial;
            }
        }
    }

    /// No datagram is lost any more, and one source sends its pieces: timers end every block, every source gets
    /// every result, and no record stays.
    fn gets_on(&self, setup: &Setup) -> bool {
        let mut system = self.clone();
        for block in 0..setup.blocks {
            if system.results[block as usize].is_none() {
                system.piece(setup, 0, block);
            }
        }
        for _ in 0..(u32::from(setup.visits) + 1) * setup.threads {
            system.scan(setup);
        }
        for source in 0..setup.sources {
            for block in 0..setup.blocks {
                if system.results[block as usize].is_some() {
                    system.act(setup, Action::Result { source, block });
                }
            }
            system.act(setup, Action::Holds { source });
        }
        system.results.iter().all(Option::is_some) && system.records.used() == 0
    }

    fn counts_agree(&self) -> bool {
        self.records.counts().add_up()
    }

    fn is_excused(&self, source: u8) -> bool {
        self.records.jobs[&JOB].excused.contains(source)
    }

    /// A block is over and its record is gone, while a source's piece may still be on its way.
    fn awaits_a_stray(&self, setup: &Setup) -> bool {
        (0..).zip(&self.results).any(|(block, result)| {
            let is_partial = result.is_some_and(|(workers, ..)| workers < u16::from(setup.sources));
            is_partial && self.records.record(key_of(block)).is_none()
        })
    }

    fn all_sent(&self, is_as_wanted: impl Fn(&Sent) -> bool) -> bool {
        self.results.iter().all(|result| result.as_ref().is_some_and(&is_as_wanted))
    }
}

fn piece<'a>(setup: &Setup, source: u8, block: u32, gradients: &'a [u8]) -> Piece<'a> {
    let (degraded, aged) = (false, false);
    let is_final = block + 1 == setup.blocks;
    Piece { key: key_of(block), source, sources: 1, degraded, aged, is_final, call: 0, gradients }
}

/// `Setup` is the model: its states are systems.
impl Model for Setup {
    type State = System;
    type Action = Action;

    fn init_states(&self) -> Vec<System> {
        vec![System::new(self)]
    }

    fn actions(&self, system: &System, actions: &mut Vec<Action>) {
        actions.push(Action::Scan);
        for source in 0..self.sources {
            for block in 0..self.blocks {
                actions.push(Action::Piece { source, block });
                if system.results[block as usize].is_some() {
                    actions.push(Action::Result { source, block });
                }
            }
            actions.push(Action::Holds { source });
            if self.excuses {
                let is_excused = !system.is_excused(source);
                actions.push(Action::Excuse { source, is_excused });
            }
        }
    }

    fn next_state(&self, system: &System, action: Action) -> Option<System> {
        let mut next = system.clone();
        next.act(self, action);
        (next != *system).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(names::ONCE, |_, system: &System| !system.twice),
            Property::always(names::COUNTED, |_, system: &System| !system.wrong_count),
            Property::always(names::OVER, |_, system: &System| !system.reopened),
            Property::always(names::SAME, |_, system: &System| !system.changed),
            Property::always(names::ENDS, |setup: &Self, system: &System| system.gets_on(setup)),
            Property::always(names::FATES, |_, system: &System| system.counts_agree()),
            Property::sometimes(names::WHOLE, |setup: &Self, system: &System| {
                system.all_sent(|(workers, ..)| *workers == u16::from(setup.sources))
            }),
            Property::sometimes(names::PARTIAL, |_, system: &System| {
                system.all_sent(|(_, _, degraded)| *degraded)
            }),
            Property::sometimes(names::EMPTY, |_, system: &System| {
                system.all_sent(|_| true) && system.records.used() == 0
            }),
            Property::sometimes(names::STRAY, |setup: &Self, system: &System| {
                system.awaits_a_stray(setup)
            }),
        ]
    }
}

/// What the table's future depends on: no counts, no clock, and no places in memory.
fn key(records: &Records) -> impl Hash + PartialEq + use<> {
    let mut all: Vec<_> = records.table.iter().collect();
    all.sort_by_key(|record| record.key);
    let all: Vec<_> = all
        .into_iter()
        .map(|one| {
            let sum = (one.received, one.workers, one.pieces, one.sum.clone());
            let flags = (one.degraded, one.aged, one.referenced, one.age);
            (one.key, one.state, sum, flags)
        })
        .collect();
    let job = &records.jobs[&JOB];
    let holds = (job.holds.clone(), job.released, job.progress.clone());
    let thread = records.timers.phase();
    (all, (job.open, job.used, job.excused), holds, thread, records.timed)
}

impl PartialEq for System {
    fn eq(&self, other: &Self) -> bool {
        let faults = |of: &Self| (of.twice, of.wrong_count, of.reopened, of.changed);
        key(&self.records) == key(&other.records)
            && (&self.results, &self.has) == (&other.results, &other.has)
            && faults(self) == faults(other)
    }
}

impl Hash for System {
    fn hash<H: Hasher>(&self, state: &mut H) {
        key(&self.records).hash(state);
        (&self.results, &self.has).hash(state);
        (self.twice, self.wrong_count, self.reopened, self.changed).hash(state);
    }
}
