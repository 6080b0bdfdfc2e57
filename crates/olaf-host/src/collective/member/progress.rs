//! How far the program of a worker is in the operations of its job, and which of the next ones fail.
//!
//! All workers of a job begin the same operations in the same order, each at its own time. Where a generation ends, some
//! have begun operations that others have not. Those fail at all of them: a worker would otherwise sum its third
//! operation with the others' fourth one, a wrong sum without a sign.

use crate::collective::Failure;
use olaf_wire::{operations_after, operations_ahead};

/// Operations that begin next and fail, because they failed at the other workers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doomed {
    count: u32,
    why: Failure,
}

impl Default for Doomed {
    fn default() -> Self {
        Self { count: 0, why: Failure::NotJoined }
    }
}

impl Doomed {
    /// How the next operation fails; none: it does not.
    pub(crate) fn next(&self) -> Option<Failure> {
        (self.count > 0).then_some(self.why)
    }

    /// The same, of an operation that begins now.
    pub(crate) fn take(&mut self) -> Option<Failure> {
        let why = self.next()?;
        self.count -= 1;
        Some(why)
    }

    /// How operations failed at the end of the last generation. Those that are still to fail do so, too.
    pub(crate) const fn why(&self) -> Failure {
        self.why
    }

    /// A generation has ended so.
    pub(crate) const fn because(&mut self, why: Failure) {
        self.why = why;
    }

    /// The next `count` operations fail.
    pub(crate) const fn set(&mut self, count: u32) {
        self.count = count;
    }
}

/// The count of a program's operations, as the workers of a job tell each other when they join.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Operations that the program has begun in the job, and that begin in no later generation again; none before its
    /// first generation.
    begun: Option<u32>,
    doomed: Doomed,
    /// The count of the first join since this end has been joining.
    told: Option<Option<u32>>,
}

impl Progress {
    /// This end begins to join: none of its joins is on the way.
    pub(crate) const fn joins_anew(&mut self) {
        self.told = None;
    }

    /// A join with that count leaves.
    pub(crate) fn tell(&mut self, count: Option<u32>) -> Option<u32> {
        self.told.get_or_insert(count);
        count
    }

    /// Returns true if the switch says that all are behind this program, and may have heard an older count of it: an
    /// operation was given up while this end joined. It has to fail at the other workers, too, so this end must not take
    /// part before they know.
    pub(crate) fn is_unheard(&self, count: Option<u32>, furthest: u32) -> bool {
        let is_ahead = count.is_some_and(|count| operations_ahead(count, furthest) > 0);
        is_ahead && self.told.is_some_and(|told| told != count)
    }

    /// The program is new to the job, or has left it: nothing is behind it that may fail.
    pub(crate) const fn forget(&mut self) {
        self.begun = None;
        self.doomed.set(0);
    }

    /// The count without operations that are to fail.
    pub(crate) const fn begun(&self) -> Option<u32> {
        self.begun
    }

    /// The count with them.
    pub(crate) fn begun_and_doomed(&self) -> Option<u32> {
        self.begun.map(|begun| operations_after(begun, self.doomed.count))
    }

    pub(crate) const fn doomed(&self) -> &Doomed {
        &self.doomed
    }

    /// How the operation that begins now fails; none: it does not.
    pub(crate) fn take_doomed(&mut self) -> Option<Failure> {
        self.doomed.take()
    }

    /// That number of operations has begun.
    pub(crate) fn begin(&mut self, operations: u32) {
        self.begun = self.begun.map(|begun| operations_after(begun, operations));
    }

    /// An operation that had begun waits for a later generation, and begins there again.
    pub(crate) fn take_back(&mut self) {
        self.begin(1u32.wrapping_neg());
    }

    /// A generation has ended so. `dooms_next`: with an operation that the program has not begun.
    pub(crate) fn generation_ended(&mut self, why: Failure, dooms_next: bool) {
        self.doomed.because(why);
        self.doomed.count += u32::from(dooms_next);
    }

    /// A generation begins, and the switch says the count of the program that is the furthest. Operations fail that
    /// the furthest has begun and this one has not. Returns true if the switch says that all are behind this program.
    pub(crate) fn align(&mut self, furthest: u32) -> bool {
        let known = self.doomed.count;
        let ahead = self.begun.map(|begun| operations_ahead(furthest, begun));
        self.doomed.count = u32::try_from(ahead.unwrap_or(0)).unwrap_or(0).max(known);
        if self.doomed.count == known {
            // A newcomer is where the others are. So is a program that the switch does not believe.
            self.begun = Some(operations_after(furthest, known.wrapping_neg()));
        }
        ahead.is_some_and(|ahead| i64::from(ahead) < i64::from(known))
    }

    /// The same, of a worker whose join said the count without operations that are to fail: they are counted anew.
    pub(crate) fn align_anew(&mut self, furthest: u32) {
        self.doomed.count = 0;
        self.align(furthest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHY: Failure = Failure::SwitchSilent;

    /// A program that has begun that many operations.
    fn program(begun: u32) -> Progress {
        let mut progress = Progress::default();
        progress.align(begun);
        progress
    }

    #[test]
    fn a_newcomer_is_where_the_others_are() {
        let mut progress = Progress::default();
        assert_eq!(progress.begun_and_doomed(), None);
        assert!(!progress.align(7));
        assert_eq!((progress.begun(), progress.take_doomed()), (Some(7), None));
    }

    #[test]
    fn a_count_that_grew_while_it_joined_may_not_have_been_heard() {
        let mut progress = program(3);
        assert!(!progress.is_unheard(Some(4), 3), "no join has left");
        progress.tell(progress.begun_and_doomed());
        assert!(!progress.is_unheard(Some(3), 3));
        progress.begin(1);
        progress.tell(progress.begun_and_doomed());
        assert!(progress.is_unheard(Some(4), 3), "a join with the old count is on the way");
        assert!(!progress.is_unheard(Some(4), 4), "the switch has heard the new one");
        progress.joins_anew();
        progress.tell(progress.begun_and_doomed());
        assert!(!progress.is_unheard(Some(4), 3), "the switch does not believe it");
    }

    #[test]
    fn what_the_furthest_program_has_begun_fails_when_it_begins_here() {
        let mut progress = program(3);
        progress.generation_ended(WHY, false);
        assert!(!progress.align(5));
        assert_eq!((progress.begun(), progress.begun_and_doomed()), (Some(3), Some(5)));
        for _ in 0..2 {
            assert_eq!(progress.take_doomed(), Some(WHY));
            progress.begin(1);
        }
        assert_eq!((progress.take_doomed(), progress.begun()), (None, Some(5)));
    }

    #[test]
    fn an_operation_that_is_known_to_fail_stays_so_where_nobody_is_further() {
        let mut progress = program(3);
        progress.generation_ended(WHY, true);
        assert!(progress.align(3), "the switch does not believe this program");
        assert_eq!(progress.take_doomed(), Some(WHY));
    }

    #[test]
    fn a_count_anew_forgets_what_was_to_fail() {
        let mut progress = program(3);
        progress.align(5);
        progress.align_anew(4);
        assert_eq!((progress.doomed.count, progress.begun()), (1, Some(3)));
    }

    #[test]
    fn a_program_that_the_switch_does_not_believe_goes_back_to_the_others() {
        let mut progress = program(9);
        assert!(progress.align(7), "all are behind it");
        assert_eq!((progress.begun(), progress.doomed().next()), (Some(7), None));
    }

    #[test]
    fn an_operation_that_begins_again_counts_once() {
        let mut progress = program(0);
        progress.begin(2);
        progress.take_back();
        assert_eq!(progress.begun(), Some(1));
        let mut newcomer = Progress::default();
        newcomer.begin(1);
        assert_eq!(newcomer.begun(), None, "it counts from its first generation on");
    }
}
