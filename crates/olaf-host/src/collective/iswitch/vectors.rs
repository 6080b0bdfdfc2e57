//! Vectors of a worker that trains asynchronously (iSwitch §4.1): several may go into one sum.
//!
//! A packet of the worker's `n`-th vector for a sum carries `n`, so that the switch adds it once. The worker keeps
//! its vectors until the sum is here. A lost packet is sent again:
//!
//! | the switch lacks a packet of | how the worker knows |
//! |---|---|
//! | vector 0 | the answer to a Help |
//! | a later vector | it does not: it repeats these packets after 20 ms, 40 ms, .. 1 s |

use super::Worker;
use super::generation::{Generation, State};
use super::operations::Open;
use super::pipeline::{Commit, decide};
use crate::collective::{Buffer, Failure};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_engine::Instant;

/// Packets of later vectors are repeated after this time, then after twice as long, and so on.
const FIRST_REPEAT: Duration = Duration::from_millis(20);
/// The longest wait.
const LONGEST_REPEAT: Duration = Duration::from_secs(1);
/// Packets that are repeated at a time.
const REPEATED_AT_ONCE: u64 = 64;

/// A vector.
#[derive(Debug)]
struct Vector {
    floats: Box<dyn Buffer>,
    /// Its first packet that was not sent.
    next: u64,
}

/// The vectors of this worker for one sum, by their numbers.
#[derive(Debug)]
pub(super) struct Vectors {
    all: Vec<Vector>,
    repeat_at: Option<Instant>,
    wait: Duration,
}

impl Default for Vectors {
    fn default() -> Self {
        Self { all: Vec::new(), repeat_at: None, wait: FIRST_REPEAT }
    }
}

impl Vectors {
    pub(super) fn len(&self) -> u32 {
        self.all.len() as u32
    }

    /// The bytes of a vector.
    pub(super) fn bytes(&self, vector: u32) -> Option<&[u8]> {
        self.all.get(vector as usize).map(|vector| vector.floats.bytes())
    }

    fn push(&mut self, first: u64, floats: Box<dyn Buffer>) {
        self.all.push(Vector { floats, next: first });
    }

    /// The vectors that sent a packet with this number.
    pub(super) fn sent(&self, index: u64) -> impl Iterator<Item = u32> + use<'_> {
        (0..).zip(&self.all).filter(move |(_, of)| of.next > index).map(|(number, _)| number)
    }

    /// A result came: the sum makes progress.
    pub(super) fn progressed(&mut self) {
        self.wait = FIRST_REPEAT;
    }

    /// When packets of later vectors are sent again.
    pub(super) fn repeat_at(&self) -> Option<Instant> {
        self.repeat_at
    }
}

impl Worker {
    /// Takes a vector for the first sum that is open.
    pub(super) fn take_vector(
        &mut self,
        began: u64,
        bound: u64,
        floats: Box<dyn Buffer>,
    ) -> Result<Commit, Failure> {
        let threshold = self.own.threshold.unwrap_or(self.config.workers);
        let generation = self.generation.as_mut().filter(|generation| !generation.is_closing);
        let open = generation.and_then(Generation::open_sum);
        let commit = match open {
            None => Commit::NoSum,
            Some((open, _)) if open.len() != floats.bytes().len() => {
                return Err(Failure::BadOperation("the vector has another size than the sum"));
            }
            Some((open, iteration)) => {
                let commit = decide(iteration, began, bound, open.vectors.len(), threshold);
                if matches!(commit, Commit::Send { .. }) {
                    open.vectors.push(open.first, floats);
                }
                commit
            }
        };
        self.counts.vectors.note(commit);
        Ok(commit)
    }
}

impl Generation {
    /// The first pipelined sum whose results are not all here, and its iteration.
    fn open_sum(&mut self) -> Option<(&mut Open, u64)> {
        self.open.iter_mut().find_map(|open| {
            let iteration = open.iteration().filter(|_| !open.is_complete())?;
            Some((open, iteration))
        })
    }

    /// The next packet of a vector, and the vector's number. `has_room`: the window takes another packet. A packet
    /// takes room once, whichever vectors it is sent of: one result answers them all.
    pub(super) fn next_of_vectors(&mut self, has_room: bool) -> Option<(u64, u32)> {
        if self.is_closing || self.set_h_at.is_some() {
            return None;
        }
        let (holds, end) = (self.holds, self.holds + self.slots);
        let entries = &self.entries;
        for open in self.open.iter_mut().filter(|open| open.vectors.len() > 0) {
            for (number, vector) in (0..).zip(&mut open.vectors.all) {
                vector.next = vector.next.max(holds);
                let entry = |index: u64| entries.get((index - holds) as usize);
                while vector.next < open.end
                    && entry(vector.next).is_some_and(|entry| entry.state == State::Done)
                {
                    vector.next += 1;
                }
                if vector.next >= end.min(open.end) {
                    continue;
                }
                if has_room || entry(vector.next).is_some_and(|entry| entry.takes_room) {
                    return Some((vector.next, number));
                }
            }
        }
        None
    }

    /// A packet of a vector was sent for the first time. Returns true if it takes room in the window from now on.
    pub(super) fn sent_of_vector(&mut self, now: Instant, index: u64, vector: u32) -> bool {
        if let Some(open) = self.open_of(index) {
            open.vectors.all[vector as usize].next = index + 1;
            let wait = open.vectors.wait;
            open.vectors.repeat_at.get_or_insert(now + wait);
        }
        self.entry(index).is_some_and(|entry| !core::mem::replace(&mut entry.takes_room, true))
    }

    /// Later vectors whose sum is not here after a while: their packets may be lost.
    pub(super) fn repeat_vectors(&mut self, now: Instant) {
        let holds = self.holds;
        let (entries, resend) = (&self.entries, &mut self.resend);
        for open in &mut self.open {
            if open.vectors.repeat_at.is_none_or(|at| at > now) {
                continue;
            }
            let indices = open.first.max(holds)..open.end;
            let is_open = |index: &u64| {
                let entry = entries.get((*index - holds) as usize);
                entry.is_some_and(|entry| entry.state != State::Done)
            };
            for index in indices.filter(is_open).take(REPEATED_AT_ONCE as usize) {
                let later = open.vectors.sent(index).filter(|vector| *vector > 0);
                resend.extend(later.map(|vector| (index, vector)));
            }
            open.vectors.repeat_at = Some(now + open.vectors.wait);
            open.vectors.wait = (open.vectors.wait * 2).min(LONGEST_REPEAT);
        }
    }

    /// When vectors are sent again.
    pub(super) fn repeats_at(&self) -> Option<Instant> {
        self.open.iter().filter_map(|open| open.vectors.repeat_at()).min()
    }
}
