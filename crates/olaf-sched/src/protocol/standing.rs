//! How each job stands at the controller, for those who watch it.

use super::Policy;
use super::controller::{Controller, Failure};
use super::job::{Job, Phase};
use crate::JobId;

/// A job at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its number.
    pub job: JobId,
    /// What the controller does with it now.
    pub phase: &'static str,
    /// Number of its hosts.
    pub hosts: usize,
    /// Hosts that were heard in this life of the controller.
    pub heard: usize,
    /// Hosts that have left.
    pub left: usize,
    /// The first host that was not heard yet.
    pub unheard: Option<u16>,
    /// Why its tree is torn down, if it is.
    pub failure: Option<Failure>,
}

/// The units of a resource, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Its number.
    pub resource: u32,
    /// Units that it has.
    pub units: u32,
    /// Units of jobs that may hold some.
    pub used: u64,
}

impl<P: Policy> Controller<P> {
    /// All jobs, by number.
    pub fn standings(&self) -> impl Iterator<Item = Standing> {
        self.jobs.iter().map(|(id, job)| Standing::of(*id, job))
    }

    /// A later controller is at work: this one does nothing more.
    #[must_use]
    pub const fn superseded(&self) -> bool {
        self.superseded
    }

    /// All resources, by number.
    #[must_use]
    pub fn usages(&self) -> Vec<Usage> {
        let used = self.used();
        let of = |(resource, units): (&u32, &u32)| Usage {
            resource: *resource,
            units: *units,
            used: used.get(resource).copied().unwrap_or(0),
        };
        self.capacity.iter().map(of).collect()
    }
}

impl Standing {
    fn of(id: JobId, job: &Job) -> Self {
        let unheard = job.hosts.iter().position(|host| !host.heard);
        Self {
            job: id,
            phase: name(job.phase),
            hosts: job.hosts.len(),
            heard: job.hosts.iter().filter(|host| host.heard).count(),
            left: job.hosts.iter().filter(|host| host.left).count(),
            unheard: unheard
                .map(|rank| u16::try_from(rank).expect("a job has at most 65,535 hosts")),
            failure: match job.phase {
                Phase::Fencing(why) => Some(why),
                _ => None,
            },
        }
    }
}

/// What the controller does, as a word.
const fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Idle(_) => "idle",
        Phase::Preparing { .. } => "preparing",
        Phase::Settling { grant: Some(_), .. } => "granted",
        Phase::Settling { grant: None, .. } => "settling",
        Phase::Fencing(_) => "fencing",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{
        Ballot, Body, Event, Grant, Needs, Packet, Party, Policy, Progress, Timing,
    };
    use std::collections::BTreeMap;

    const A: JobId = JobId(1);
    const B: JobId = JobId(2);

    /// The first job that is free may run its next three operations.
    #[derive(Debug)]
    struct First;

    impl Policy for First {
        fn turn(&mut self, _: u64, free: &[JobId]) -> Option<JobId> {
            free.first().copied()
        }

        fn grant(&mut self, _: u64, _: JobId, next: u64) -> Option<Grant> {
            Some(Grant { from: next, to: next + 3 })
        }
    }

    fn controller() -> Controller<First> {
        let capacity = BTreeMap::from([(0, 1), (7, 4)]);
        let mut controller = Controller::new(1, 0, Timing::default(), capacity, First);
        for (job, hosts) in [(A, 2), (B, 1)] {
            let needs = Needs { hosts, resources: vec![0], units: 1 };
            controller.submit(0, job, needs).expect("there are units for it");
        }
        controller
    }

    fn stands(controller: &Controller<First>, job: JobId) -> Standing {
        controller.standings().find(|standing| standing.job == job).expect("it is known")
    }

    fn says(controller: &mut Controller<First>, job: JobId, rank: u16, body: Body) {
        let (from, to) = (Party::Host(rank), Party::Controller);
        let ballot = controller.jobs.get(&job).map_or(Ballot::default(), |job| job.ballot);
        controller.handle_packet(0, &Packet { job, ballot, from, to, body });
    }

    const READY: Body = Body::Ready { next: 0, held: false };
    const SETTLED: Body = Body::Settled { next: 0, held: false, epoch: 1 };

    #[test]
    fn a_new_job_awaits_its_hosts_one_by_one() {
        let mut controller = controller();
        let new = stands(&controller, A);
        assert_eq!((new.phase, new.hosts, new.heard, new.unheard), ("preparing", 2, 0, Some(0)));
        says(&mut controller, A, 0, READY);
        let one = stands(&controller, A);
        assert_eq!((one.heard, one.unheard, one.failure), (1, Some(1), None));
        says(&mut controller, A, 1, READY);
        let both = stands(&controller, A);
        assert_eq!((both.phase, both.heard, both.unheard), ("settling", 2, None));
    }

    #[test]
    fn a_grant_is_counted_against_its_resource_until_it_is_used_up() {
        let mut controller = controller();
        for (job, rank) in [(A, 0), (A, 1), (B, 0)] {
            says(&mut controller, job, rank, READY);
        }
        // Both may hold something until they have settled what they were asked.
        let used = |controller: &Controller<First>| controller.usages()[0].used;
        assert_eq!(used(&controller), 2);
        says(&mut controller, B, 0, SETTLED);
        assert_eq!((stands(&controller, B).phase, used(&controller)), ("idle", 1));
        for rank in [0, 1] {
            says(&mut controller, A, rank, SETTLED);
        }
        assert_eq!(used(&controller), 0);
        // The pause after a round without a grant is over. There is one unit: one job gets it.
        controller.handle_timeout(1_000_000_000);
        for rank in [0, 1] {
            says(&mut controller, A, rank, READY);
        }
        assert_eq!((stands(&controller, A).phase, used(&controller)), ("granted", 1));
        assert_eq!(stands(&controller, B).phase, "idle");
        let idle = Usage { resource: 7, units: 4, used: 0 };
        assert_eq!(controller.usages()[1], idle);
    }

    #[test]
    fn a_job_that_fails_says_why_until_its_tree_is_down() {
        let mut controller = controller();
        controller.fail(A);
        let failed = stands(&controller, A);
        assert_eq!((failed.phase, failed.failure), ("fencing", Some(Failure::Told)));
        assert_eq!(controller.poll_event(), Some(Event::Fence(A, Failure::Told)));
        controller.fenced(0, A);
        let left: Vec<_> = controller.standings().map(|standing| standing.job).collect();
        assert_eq!(left, [B]);
    }

    #[test]
    fn a_host_that_left_is_counted_and_the_job_goes_with_the_last() {
        let mut controller = controller();
        says(&mut controller, A, 1, Body::Bye);
        let one = stands(&controller, A);
        assert_eq!((one.left, one.heard, one.unheard), (1, 1, Some(0)));
        says(&mut controller, A, 0, Body::Bye);
        assert!(controller.standings().all(|standing| standing.job != A));
    }

    #[test]
    fn each_leave_is_answered_also_when_the_job_is_forgotten_but_not_by_a_superseded_controller() {
        let answered = |controller: &mut Controller<First>, rank| {
            while controller.poll_transmit().is_some() {}
            says(controller, A, rank, Body::Bye);
            let sent = std::iter::from_fn(|| controller.poll_transmit());
            let byes = sent.filter(|packet| packet.body == Body::Bye);
            byes.map(|packet| (packet.job, packet.to)).collect::<Vec<_>>()
        };
        let mut controller = controller();
        for rank in [0, 1, 0, 1] {
            assert_eq!(answered(&mut controller, rank), [(A, Party::Host(rank))]);
        }
        says(&mut controller, B, 0, Body::Settled { next: 0, held: false, epoch: 2 });
        assert_eq!(answered(&mut controller, 0), []);
    }

    /// Its first word is no answer: it began a step, and the question is still on its way.
    #[test]
    fn a_host_that_begins_late_is_not_dead_at_its_first_word() {
        let mut controller = controller();
        let mut now = 0;
        let mut fenced_within = |controller: &mut Controller<First>, sendings: u32| {
            (0..sendings).any(|_| {
                now = controller.poll_timeout().map_or(now, |at| at.max(now));
                controller.handle_timeout(now);
                let events = std::iter::from_fn(|| controller.poll_event());
                events.into_iter().any(|event| matches!(event, Event::Fence(A, _)))
            })
        };
        let Timing { sendings, first_sendings, .. } = Timing::default();
        assert!(first_sendings > 3 * sendings);
        assert!(!fenced_within(&mut controller, 2 * sendings), "it may still be starting");
        let began = Progress { next: 1, in_network: false, step_age_ns: 1 };
        for rank in 0..2 {
            says(&mut controller, A, rank, Body::Progress(began));
        }
        assert!(!fenced_within(&mut controller, sendings / 4));
        assert!(fenced_within(&mut controller, 3 * sendings), "it was heard, and answers nothing");
    }

    #[test]
    fn a_superseded_controller_says_so() {
        let mut controller = controller();
        assert!(!controller.superseded());
        says(&mut controller, A, 0, Body::Settled { next: 0, held: false, epoch: 2 });
        assert!(controller.superseded());
        assert_eq!(controller.standings().count(), 0);
    }
}
