//! The front door of an authority: which joins reach the membership of their job.

use super::{Evicted, Held, Owner, evicted};
use crate::drop::DropReason;
use crate::engine::{Place, Verdict};
use crate::ids::{JobId, PeerId};
use crate::party::{Chance, Cookies, Joins, Tenant, Tenants};
use crate::time::Instant;
use core::time::Duration;

/// A join, as far as the door looks at it. `Id` names a job of the authority.
#[derive(Clone, Copy, Debug)]
pub struct Knock<Id> {
    /// The job.
    pub id: Id,
    /// The same job, as a list of jobs names it.
    pub job: JobId,
    /// Where the join came from.
    pub peer: PeerId,
    /// The number with which the sender proves its address; 0: none.
    pub nonce: u32,
    /// Workers that the sender stands for: it may join as often as they may.
    pub behind: u32,
    /// Workers that the job has at least, if the join is right.
    pub workers: u32,
    /// How the join fits the job.
    pub fit: Fit,
}

/// How a join fits the job that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// No job can be as the join says.
    Impossible,
    /// The job is not known.
    New,
    /// The job is as the join says.
    Agrees,
    /// The workers that joined before said something else of the job.
    Contradicts {
        /// None of them has been heard for the silence that makes a worker count as dead.
        is_deserted: bool,
    },
    /// The workers that joined before are of another program, as [`Owner::fit`] says.
    OtherProgram {
        /// None of them has been heard for the silence that makes a worker count as dead.
        is_deserted: bool,
    },
    /// Nobody can say which workers of the job belong together, see [`Owner::meet_rival`].
    Contested,
}

/// What the door decides about a join.
#[derive(Clone, Copy, Debug)]
pub enum Entry<Id> {
    /// The sender has to prove its address: the answer carries `nonce`, and nothing else follows.
    ProveFirst {
        /// What the sender has to send back.
        nonce: u32,
        /// What becomes of the join.
        verdict: Verdict,
    },
    /// The join is dropped without an answer.
    TooOften,
    /// The answer says that the job does not take this sender.
    Refused,
    /// The answer says that there is no room.
    Full,
    /// [`Owner::meet_stranger`] says the answer.
    OtherProgram,
    /// The answer says that the job is contested.
    Contested,
    /// The membership of the job decides.
    Come {
        /// What the job may take.
        tenant: Tenant,
        /// The job that is forgotten first: its place, or its name, is the new one's.
        evicted: Option<Evicted<Id>>,
    },
}

/// Looks at joins. The order of its questions is that of their costs for the authority: before a sender has proved its
/// address, the authority remembers nothing of it.
pub struct Door<Id> {
    cookies: Cookies,
    senders: Joins<Id>,
    tenants: Tenants,
    /// Most jobs at once.
    most_jobs: usize,
    /// How long the first generation of a job waits whose workers name no program.
    settle: Duration,
}

impl<Id: Copy + Ord> Door<Id> {
    /// A door to these jobs, and to `most_jobs` of them at once. It believes all addresses.
    #[must_use]
    pub fn new(tenants: Tenants, most_jobs: u32) -> Self {
        let most_jobs = usize::try_from(most_jobs).unwrap_or(usize::MAX);
        Self {
            cookies: Cookies::default(),
            senders: Joins::default(),
            tenants,
            most_jobs,
            settle: Duration::ZERO,
        }
    }

    /// From now on senders have to prove their addresses. `chance` draws the secret.
    pub fn demand_proofs(&mut self, chance: &mut Chance) {
        self.cookies.demand(chance);
    }

    /// From now on two programs may start with one job number. The first generation of a job that names no program waits
    /// for `settle`, and workers of one rank are turned away, see [`Owner::meet_rival`].
    pub const fn expect_strangers(&mut self, settle: Duration) {
        self.settle = settle;
    }

    /// The owner of a new job.
    #[must_use]
    pub const fn owner(&self, program: u64) -> Owner {
        Owner::new(program, self.settle)
    }

    /// The next joins come from this address.
    pub const fn comes_from(&mut self, address: Place) {
        self.cookies.comes_from(address);
    }

    /// Decides about a join. `jobs` are all jobs that the authority knows; they are looked at only where a new job needs
    /// a place.
    pub fn enter(
        &mut self,
        now: Instant,
        knock: &Knock<Id>,
        jobs: impl ExactSizeIterator<Item = Held<Id>>,
    ) -> Entry<Id> {
        let Knock { id, peer, nonce, .. } = *knock;
        if !self.cookies.proves(now, peer, nonce) {
            // Results, and answers to questions, go to members: nobody makes a member of another's address.
            let verdict = match nonce {
                // Nobody can know a cookie before the first answer.
                0 => Verdict::Absorb,
                _ => Verdict::Drop(DropReason::NotProven),
            };
            return Entry::ProveFirst { nonce: self.cookies.asked(now, peer), verdict };
        }
        if !self.senders.takes(now, id, peer, knock.behind) {
            // An answer would make the flood of joins a flood of answers.
            return Entry::TooOften;
        }
        if knock.fit == Fit::Impossible {
            // It must not evict a job for one that cannot begin.
            return Entry::Refused;
        }
        let Some(tenant) = self.tenants.of(knock.job) else {
            // The list of jobs is how an operator keeps others out.
            return Entry::Refused;
        };
        if !tenant.takes_workers(usize::try_from(knock.workers).unwrap_or(usize::MAX)) {
            // The job would wait for workers that it may not have.
            return Entry::Full;
        }
        let evicted = match knock.fit {
            // One worker must not change what the others get.
            Fit::Contradicts { is_deserted: false } => return Entry::Refused,
            // One program must not be in another one's sums.
            Fit::OtherProgram { is_deserted: false } => return Entry::OtherProgram,
            Fit::Contested => return Entry::Contested,
            // Nobody is left whom it would change: a new job has the name.
            Fit::Contradicts { is_deserted: true } | Fit::OtherProgram { is_deserted: true } => {
                Some(Evicted { id, turned_away: 0 })
            }
            Fit::New if jobs.len() >= self.most_jobs => match evicted(peer, jobs) {
                // All jobs live, or the sender's own jobs hold the places.
                None => return Entry::Full,
                evicted => evicted,
            },
            Fit::New | Fit::Agrees | Fit::Impossible => None,
        };
        Entry::Come { tenant, evicted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::boxed::Box;
    use alloc::vec::Vec;

    const A: PeerId = PeerId(1);
    const B: PeerId = PeerId(2);
    const NOW: Instant = Instant(1 << 40);

    fn knock(id: u32, fit: Fit) -> Knock<u32> {
        Knock { id, job: JobId(id), peer: A, nonce: 0, behind: 1, workers: 2, fit }
    }

    fn running(id: u32) -> Held<u32> {
        Held { id, is_deserted: false, unbegun: None }
    }

    fn enter(door: &mut Door<u32>, knock: &Knock<u32>, jobs: &[Held<u32>]) -> Entry<u32> {
        door.enter(NOW, knock, jobs.iter().cloned())
    }

    #[test]
    fn nothing_is_looked_at_before_the_address_is_proved() {
        let mut last = 7;
        let mut chance: Chance = Box::new(move || {
            last += 1;
            last
        });
        let mut door = Door::new(Tenants::only([]), 0);
        door.demand_proofs(&mut chance);
        let first = knock(1, Fit::Impossible);
        let Entry::ProveFirst { nonce, verdict } = enter(&mut door, &first, &[]) else { panic!() };
        assert!(nonce != 0 && verdict == Verdict::Absorb);
        let Entry::ProveFirst { verdict, .. } =
            enter(&mut door, &Knock { nonce: nonce ^ 1, ..first }, &[])
        else {
            panic!()
        };
        assert_eq!(verdict, Verdict::Drop(DropReason::NotProven));
        assert!(matches!(enter(&mut door, &Knock { nonce, ..first }, &[]), Entry::Refused));
        let another = Knock { nonce, peer: B, ..first };
        assert!(matches!(enter(&mut door, &another, &[]), Entry::ProveFirst { .. }));
    }

    #[test]
    fn a_flood_is_not_answered_and_another_sender_is() {
        let mut door = Door::new(Tenants::default(), 8);
        let flood = (0..1000).map(|_| enter(&mut door, &knock(1, Fit::New), &[]));
        let entries: Vec<_> = flood.collect();
        assert!(matches!(entries[0], Entry::Come { .. }));
        assert!(matches!(entries[999], Entry::TooOften));
        let other = Knock { peer: B, ..knock(1, Fit::New) };
        assert!(matches!(enter(&mut door, &other, &[]), Entry::Come { .. }));
    }

    #[test]
    fn a_list_says_which_jobs_come_in_and_how_many_workers_they_have() {
        let two = Tenant { max_workers: Some(2), ..Tenant::default() };
        let mut door = Door::new(Tenants::only([(JobId(1), two)]), 8);
        assert!(matches!(enter(&mut door, &knock(1, Fit::New), &[]), Entry::Come { .. }));
        let larger = Knock { workers: 3, ..knock(1, Fit::New) };
        assert!(matches!(enter(&mut door, &larger, &[]), Entry::Full));
        assert!(matches!(enter(&mut door, &knock(2, Fit::New), &[]), Entry::Refused));
    }

    #[test]
    fn a_job_that_lives_keeps_its_place_and_its_name_and_one_without_workers_does_not() {
        let mut door = Door::new(Tenants::default(), 1);
        let evicts = |entry| match entry {
            Entry::Come { evicted, .. } => evicted.map(|evicted: Evicted<u32>| evicted.id),
            other => panic!("{other:?}"),
        };
        let (lives, deserted) = ([running(1)], [Held { is_deserted: true, ..running(1) }]);
        assert!(matches!(enter(&mut door, &knock(2, Fit::New), &lives), Entry::Full));
        assert_eq!(evicts(enter(&mut door, &knock(2, Fit::New), &deserted)), Some(1));
        assert_eq!(evicts(enter(&mut door, &knock(1, Fit::Agrees), &lives)), None);
        let other = |is_deserted| knock(1, Fit::Contradicts { is_deserted });
        assert!(matches!(enter(&mut door, &other(false), &lives), Entry::Refused));
        assert_eq!(evicts(enter(&mut door, &other(true), &deserted)), Some(1));
        let stranger = |is_deserted| knock(1, Fit::OtherProgram { is_deserted });
        assert!(matches!(enter(&mut door, &stranger(false), &lives), Entry::OtherProgram));
        assert_eq!(evicts(enter(&mut door, &stranger(true), &deserted)), Some(1));
        assert!(matches!(enter(&mut door, &knock(1, Fit::Contested), &lives), Entry::Contested));
        let impossible = knock(2, Fit::Impossible);
        assert!(matches!(enter(&mut door, &impossible, &deserted), Entry::Refused));
    }
}
