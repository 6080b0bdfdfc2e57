//! The two kinds of timers (Trio-ML §5). The first finds blocks that have aged out. The second counts
//! how often blocks went without each worker, tells temporary stragglers from permanent ones, and
//! notifies all workers.

use super::Switch;
use super::outbox::Message;
use crate::blocks::records::{Key, SourceCounts};
use crate::engine::Receivers;
use crate::event::SumEvent;
use crate::time::Instant;
use alloc::vec::Vec;
use olaf_wire::trio::{Straggler, Straggling};

impl Switch {
    /// Blocks that have aged out go without the stragglers.
    pub(super) fn check_blocks(&mut self, now: Instant) {
        for key in self.records.scan(now) {
            self.counters.aged += 1;
            self.complete(now, key);
        }
    }

    /// Looks at what each worker has contributed since the last look.
    pub(super) fn check_stragglers(&mut self, now: Instant) {
        let patience = self.config.permanent_after;
        let mut changes: Vec<(u8, u8, Straggling)> = Vec::new();
        for (id, job) in &mut self.jobs {
            let Some(term) = job.open_term().filter(|term| term.visits > 0) else { continue };
            for (source, member) in &mut term.members {
                let SourceCounts { pieces, late, events } = self.records.source(*id, *source);
                // A worker whose pieces come late is there: it straggles temporarily.
                let seen = (events, pieces + late);
                let (before, had) = core::mem::replace(&mut member.seen, seen);
                let (was_missing, has_come) = (events > before, pieces + late > had);
                if has_come {
                    member.absent_since = None;
                } else if was_missing {
                    member.absent_since.get_or_insert(now);
                }
                let is_absent =
                    member.absent_since.is_some_and(|since| now.since(since) >= patience);
                let is_now = match member.straggling {
                    // It is announced again: the last notice may be lost.
                    Straggling::Permanent => Straggling::Permanent,
                    _ if is_absent => Straggling::Permanent,
                    Straggling::Not if was_missing => Straggling::Temporary,
                    Straggling::Temporary if !was_missing && has_come => Straggling::Not,
                    _ => continue,
                };
                changes.push((*id, *source, is_now));
            }
        }
        for (id, source, straggling) in changes {
            self.set_straggling(now, id, source, straggling);
        }
    }

    /// A piece of a worker came in time: blocks wait for it again.
    pub(super) fn is_back(&mut self, now: Instant, id: u8, source: u8) {
        let member = self.open_term(id).and_then(|term| term.members.get_mut(&source));
        let Some(member) = member else { return };
        if member.straggling == Straggling::Permanent {
            member.absent_since = None;
            self.set_straggling(now, id, source, Straggling::Temporary);
        }
    }

    /// A piece of a worker came late. Blocks do not wait for a permanent straggler, so that all its
    /// pieces come late: it is back once one is not later than the time-out would allow.
    pub(super) fn is_almost_back(&mut self, now: Instant, key: Key, source: u8) {
        let Some(start) = self.records.record(key).map(|record| record.start) else { return };
        let Some(term) = self.open_term(key.job) else { return };
        let visits = u32::from(term.visits);
        if now.since(start) <= self.config.timer.saturating_mul(visits) {
            self.is_back(now, key.job, source);
        }
    }

    fn set_straggling(&mut self, now: Instant, id: u8, source: u8, is_now: Straggling) {
        let events = self.records.source(id, source).events;
        let Some(term) = self.open_term(id) else { return };
        let Some(member) = term.members.get_mut(&source) else { return };
        let was = core::mem::replace(&mut member.straggling, is_now);
        let peer = member.peer;
        let events = u32::try_from(events).unwrap_or(u32::MAX);
        let notice = Straggler { job: id, term: term.number, source, straggling: is_now, events };
        let everyone = Receivers::Many(term.everyone.clone());
        self.out.send(now, everyone, Message::Straggler(notice));
        if was == is_now {
            return;
        }
        let rank = u32::from(source);
        self.event(id, SumEvent::Straggler { rank, peer, straggling: is_now, events });
        match is_now {
            Straggling::Temporary => self.counters.temporary += 1,
            Straggling::Permanent => self.counters.permanent += 1,
            Straggling::Not => {}
        }
        let is_excused = is_now == Straggling::Permanent;
        if is_excused || was == Straggling::Permanent {
            for key in self.records.excuse(id, source, is_excused) {
                self.counters.excused += 1;
                self.complete(now, key);
            }
        }
    }
}
