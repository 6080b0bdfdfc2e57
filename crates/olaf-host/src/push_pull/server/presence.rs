//! How many workers of a job are here, and how many contributed lately.
//!
//! Each update needs both numbers, and a count looks at each worker. So a job with many workers counts
//! again only after a number of updates in proportion to its workers: an update costs the same, however many
//! joined. A job with few workers counts at each update.

use super::job::{Job, Member};

/// A worker is active while its last contribution is among the job's last `ACTIVE * workers` ones.
/// A slow worker is active; a worker that stopped pushing is not.
const ACTIVE: u64 = 4;
/// Workers that a count may look at for each update since the count before. A job of fewer workers counts
/// at each update. A larger one counts again after a 64th part of the contributions that make a worker
/// active.
const LOOKS: usize = 16;

/// The two numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// Workers that are not silent, at least 1. A merge counts as no more updates than that: the many
    /// updates of a worker that waits for nothing are steps from one model. Workers that contributed
    /// lately are too few for it: of each merge only one name is known.
    pub(super) here: u32,
    /// Workers that contributed lately and are not silent.
    pub(super) active: u32,
}

/// The last count.
#[derive(Debug, Default)]
pub(super) struct Presence {
    counted: Counted,
    /// Updates that it is still good for.
    good_for: usize,
    /// Workers that were looked at.
    #[cfg(test)]
    looks: usize,
}

impl Presence {
    /// Workers fell silent: the next update counts again.
    pub(super) const fn is_over(&mut self) {
        self.good_for = 0;
    }
}

impl Job {
    /// The workers that are here and active, for one update.
    pub(super) fn counted(&mut self) -> Counted {
        if self.presence.good_for > 0 {
            self.presence.good_for -= 1;
            return self.presence.counted;
        }
        let (mut here, mut active) = (0, 0);
        for member in self.members.values() {
            here += u32::from(!member.liveness.is_silent());
            active += u32::from(self.is_active(member));
        }
        self.presence.counted = Counted { here: here.max(1), active };
        self.presence.good_for = self.members.len() / LOOKS;
        #[cfg(test)]
        {
            self.presence.looks += self.members.len();
        }
        self.presence.counted
    }

    /// Returns true if a worker contributed lately and is not silent.
    pub(super) fn is_active(&self, member: &Member) -> bool {
        let lately = ACTIVE * self.members.len() as u64;
        let total = self.overlap.contributions();
        !member.liveness.is_silent()
            && member.contributed.is_some_and(|at| total.saturating_sub(at) < lately)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::push_pull::{Server, ServerConfig};
    use olaf_engine::party::Shape;
    use olaf_engine::{Engine, Instant, PeerId, Source};
    use olaf_wire::{JobId, WorkerId};

    fn job(workers: u32) -> Job {
        let mut job = Job::new(Shape { parameters: 1, segment_lanes: 1 });
        for worker in 0..workers {
            let join = olaf_samples::join(olaf_samples::address(1, 0, worker), 1, 1);
            job.enter(Instant(1), PeerId(worker), &join);
        }
        job
    }

    #[test]
    fn a_job_of_few_workers_counts_at_each_update() {
        let mut job = job(15);
        assert_eq!(job.counted(), Counted { here: 15, active: 0 });
        let one = WorkerId(3);
        job.members.get_mut(&one).expect("it joined").contributed = Some(0);
        assert_eq!(job.counted().active, 1);
        job.members.remove(&one);
        assert_eq!(job.counted(), Counted { here: 14, active: 0 });
    }

    #[test]
    fn an_update_looks_at_few_workers_however_many_joined() {
        for workers in [100, 10_000] {
            let mut job = job(workers);
            for _ in 0..20_000 {
                assert_eq!(job.counted().here, workers);
            }
            let (most, looks) = (LOOKS * 20_000 + workers as usize, job.presence.looks);
            assert!(looks <= most, "{looks} looks, {most} may be");
        }
    }

    #[test]
    fn who_fell_silent_is_counted_no_more() {
        let mut job = job(1_000);
        assert_eq!(job.counted().here, 1_000);
        let mut silent = 0;
        job.members.for_each_mut(|_, member| {
            let after = core::time::Duration::from_secs(1);
            if silent < 400 {
                silent += u32::from(member.liveness.fell_silent(Instant(u64::MAX), after));
            }
        });
        assert_eq!(silent, 400);
        job.presence.is_over();
        assert_eq!(job.counted().here, 600);
    }
    #[test]
    fn a_count_is_good_for_as_many_updates_as_a_sixteenth_of_the_workers() {
        let mut job = job(64);
        assert_eq!(job.counted(), Counted { here: 64, active: 0 });
        job.members.get_mut(&WorkerId(3)).expect("it joined").contributed = Some(0);
        let active = [(); 6].map(|()| job.counted().active);
        assert_eq!(active, [0, 0, 0, 0, 1, 1]);
    }

    #[test]
    fn a_worker_is_active_while_its_contribution_is_among_the_last_four_of_each_worker() {
        let mut job = job(2);
        job.members.get_mut(&WorkerId(1)).expect("it joined").contributed = Some(0);
        for (contributions, active) in [(1.0, 1), (6.0, 1), (1.0, 0)] {
            job.overlap.add(0, 1, contributions);
            assert_eq!(job.counted().active, active, "{}", job.overlap.contributions());
        }
    }

    #[test]
    fn a_job_whose_workers_are_all_silent_counts_as_one_worker() {
        let mut job = job(3);
        job.members.for_each_mut(|_, member| {
            let after = core::time::Duration::from_secs(1);
            assert!(member.liveness.fell_silent(Instant(u64::MAX), after));
        });
        // Their last updates may still be on the way, and a merge counts as no more updates than this.
        assert_eq!(job.counted(), Counted { here: 1, active: 0 });
    }

    #[test]
    fn the_server_counts_again_when_workers_fell_silent() {
        let mut server = Server::new(ServerConfig::default(), 9).expect("a good set-up");
        let joins = |at: Instant, server: &mut Server, workers: core::ops::Range<u32>| {
            for worker in workers {
                let join = olaf_samples::join(olaf_samples::address(1, 0, worker), 1, 1);
                let mut buf = [0; 256];
                let len = join.emit(&mut buf);
                server.handle_packet(at, Source::end(PeerId(worker)), &buf[..len]);
            }
        };
        let counted = |server: &mut Server| {
            server.jobs.get_mut(&JobId(1)).expect("workers joined").counted().here
        };
        let (early, late) = (Instant(1), Instant(3_000_000_000));
        joins(early, &mut server, 0..64);
        assert_eq!(counted(&mut server), 64);
        joins(late, &mut server, 0..40);
        server.handle_timeout(late);
        assert_eq!(counted(&mut server), 40);
    }
}
