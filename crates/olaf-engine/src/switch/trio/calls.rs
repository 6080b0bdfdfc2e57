//! Members whose pieces of one block differ: their programs call different operations.

use super::Switch;
use super::job::Job;
use crate::blocks::records::{Key, Records};
use crate::sums::Dispute;
use crate::time::Instant;
use olaf_wire::Sides;
use olaf_wire::reduce::Reason;

/// What a piece says of its operation: its gradients, whether it is the last of its generation, and the call.
pub(super) type Says = ((usize, bool), u8);

/// A block on which the members' calls differ.
#[derive(Clone, Debug)]
pub(super) struct Disputed {
    key: Key,
    dispute: Dispute<Says>,
}

impl Switch {
    /// A piece differs from those of its block before it.
    #[cold]
    pub(super) fn handle_mismatch(&mut self, now: Instant, key: Key, source: u8, says: Says) {
        let Some(term) = self.jobs.get_mut(&key.job).and_then(Job::open_term) else { return };
        if self.records.record(key).is_none() && term.disputed.is_none() {
            // The operation has ended before this block at the others: nobody else has a piece of it.
            return self.close(now, key.job, Reason::Mismatch, Some(source));
        }
        if term.disputed.is_none() {
            term.disputed = Some(Disputed { key, dispute: Dispute::new(now) });
        }
        if let Some(disputed) = &mut term.disputed {
            disputed.note(&self.records, key, source, says);
        }
        self.name_the_odd(now, key.job);
    }

    /// Ends a term whose members differ, once it is clear whom to name.
    #[cold]
    pub(super) fn name_the_odd(&mut self, now: Instant, job: u8) {
        let Some(term) = self.jobs.get_mut(&job).and_then(Job::open_term) else { return };
        let Some(Disputed { dispute, .. }) = &term.disputed else { return };
        let members = term.members.values().filter(|member| !member.has_left).count();
        if let Some(odd) = dispute.odd(now, members) {
            let source = u8::try_from(odd.member).ok();
            let ((_, calls), (_, others)) = (odd.calls, odd.others);
            self.close_between(now, job, Reason::Mismatch, source, Sides::new(calls, others));
        }
    }
}

impl Disputed {
    /// Notes what a member says of a block.
    pub(super) fn note(&mut self, records: &Records, key: Key, source: u8, says: Says) {
        if key != self.key {
            return;
        }
        self.dispute.note(source.into(), says);
        if let Some(record) = records.record(key) {
            let known = ((record.sum().len(), record.is_final), record.call);
            let sources = (0..u8::MAX).filter(|source| record.received.contains(*source));
            sources.for_each(|source| self.dispute.note(source.into(), known));
        }
    }
}
