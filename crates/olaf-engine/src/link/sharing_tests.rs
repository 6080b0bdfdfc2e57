//! A link that jobs share: a job alone notices nothing, and a job that floods takes no other's share.

use super::*;
use crate::contribution::Contribution;
use crate::ids::{ClusterId, WorkerId};
use crate::link::pacer::{Acknowledged, CreditPacer, RatePacer};
use crate::time::BitsPerSecond;
use alloc::vec::Vec;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn update(job: u32, cluster: u32, worker: u32) -> Arrival<'static> {
    let flow = Flow { job: JobId(job), cluster: ClusterId(cluster), segment: 0 };
    Arrival { contribution: Contribution::of_one(flow, WorkerId(worker), 0, 125), lanes: &[] }
}

/// A datagram of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Of(u32, u32);

impl Datagram for Of {
    fn bytes(&self) -> u32 {
        self.1
    }

    fn job(&self) -> Option<JobId> {
        (self.0 > 0).then_some(JobId(self.0))
    }
}

/// 125 bytes take a millisecond.
fn a_megabit() -> Pacer {
    Pacer::Rate(RatePacer::new(BitsPerSecond::new(1_000_000).expect("a rate")))
}

fn shared(kind: QueueKind, slots: usize, shares: Shares) -> Link<Of> {
    Link::new(a_megabit()).with_datagrams(64).shared_by_jobs(shares).with_queues(kind, None, slots)
}

/// What left up to then: of updates their job.
fn leave_until(link: &mut Link<Of>, now: u64, left: &mut Vec<(Leaving, u32)>) {
    while let Some(departure) = link.due(Instant(now)) {
        left.push(match departure.what {
            Leaving::Datagram => (Leaving::Datagram, link.take().expect("it is due").0),
            Leaving::Update => {
                let job = link.leaving_update().expect("it is due").contribution.flow.job.0;
                link.release(departure.end, None);
                (Leaving::Update, job)
            }
        });
    }
}

fn of_job(left: &[(Leaving, u32)], job: u32) -> usize {
    left.iter().filter(|(_, of)| *of == job).count()
}

#[test]
fn a_flood_of_another_job_takes_neither_time_nor_slots_beyond_its_share() {
    for (kind, slots) in [(QueueKind::Merging, 8), (QueueKind::Fifo, 8), (QueueKind::Freshest, 8)] {
        let mut link = shared(kind, slots, Shares::default());
        let (mut left, mut refused) = (Vec::new(), 0);
        for ms in 0..1000 {
            leave_until(&mut link, ms * MS, &mut left);
            // Ten new clusters a millisecond, and a datagram: 11 times what the link can send.
            for cluster in 0..10 {
                link.arrive(Instant(ms * MS), &update(7, (ms * 10 + cluster) as u32, 1));
            }
            link.send(Instant(ms * MS), Of(7, 125));
            // The other job sends as much as its share: every other millisecond.
            if ms % 2 == 0 {
                let outcome = link.arrive(Instant(ms * MS), &update(1, ms as u32, 1));
                refused += u32::from(outcome == Outcome::Dropped);
            }
        }
        assert_eq!(refused, 0, "{kind:?}");
        let own = of_job(&left, 1);
        assert!(own >= 450, "{kind:?}: {own} of 500 departures");
        assert!(left.len() >= 990, "the link is never idle: {}", left.len());
    }
}

#[test]
fn shares_are_in_proportion() {
    let shares = Shares::default().with(JobId(1), 3);
    let mut link = shared(QueueKind::Fifo, 8, shares);
    let mut left = Vec::new();
    for ms in 0..4000 {
        leave_until(&mut link, ms * MS, &mut left);
        for job in [1, 2] {
            link.arrive(Instant(ms * MS), &update(job, ms as u32, 1));
        }
    }
    let (three, one) = (of_job(&left, 1), of_job(&left, 2));
    assert!((2800..=3100).contains(&three) && (900..=1200).contains(&one), "{three} to {one}");
    let held = |job| link.entries().filter(|e| e.contribution.flow.job.0 == job).count();
    assert_eq!((held(1), held(2)), (6, 2), "slots, too");
}

#[test]
fn a_job_alone_uses_all_slots_and_gives_them_back_when_another_comes() {
    let mut link = shared(QueueKind::Fifo, 4, Shares::default());
    for cluster in 0..4 {
        assert!(matches!(link.arrive(Instant(0), &update(1, cluster, 1)), Outcome::Appended(_)));
    }
    assert_eq!(link.arrive(Instant(0), &update(1, 9, 1)), Outcome::Dropped);
    let mut names = Vec::new();
    for cluster in 0..3 {
        match link.arrive(Instant(0), &update(2, cluster, 1)) {
            Outcome::Evicted { entry, evicted, flow, dropped } => {
                assert_eq!((flow.job, dropped), (JobId(1), 1));
                assert_eq!(flow.cluster.0, 3 - cluster, "the one whose turn is last");
                names.extend([entry, evicted]);
            }
            Outcome::Dropped => assert_eq!(cluster, 2, "two and two is fair"),
            other => panic!("{other:?}"),
        }
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!((names.len(), link.used()), (4, 4), "no name comes twice");
}

#[test]
fn slots_of_a_job_are_its_own_and_it_takes_no_more() {
    for kind in [QueueKind::Fifo, QueueKind::Merging, QueueKind::Freshest] {
        let shares = Shares::default().with_slots(JobId(1), 2).with(JobId(2), 1000);
        let mut link = shared(kind, 6, shares);
        let held = |link: &Link<Of>, job| {
            link.entries().filter(|e| e.contribution.flow.job.0 == job).count()
        };
        // Alone it has no more than its own, although others are free.
        for cluster in 0..4 {
            link.arrive(Instant(0), &update(1, cluster, 1));
        }
        assert_eq!((held(&link, 1), link.used()), (2, 2), "{kind:?}");
        // Others have the rest, and none of its own, whatever their shares.
        for cluster in 0..9 {
            link.arrive(Instant(0), &update(2, cluster, 1));
        }
        assert_eq!((held(&link, 1), held(&link, 2)), (2, 4), "{kind:?}");
    }
}

#[test]
fn a_job_gets_its_own_slots_back_from_those_who_used_them() {
    let shares = Shares::default().with_slots(JobId(1), 2).with(JobId(2), 1000);
    let mut link = shared(QueueKind::Fifo, 4, shares);
    for cluster in 0..4 {
        link.arrive(Instant(0), &update(2, cluster, 1));
    }
    let outcomes = [0, 1, 2].map(|cluster| link.arrive(Instant(0), &update(1, cluster, 1)));
    let evicts = |o: &Outcome| matches!(o, Outcome::Evicted { flow, .. } if flow.job == JobId(2));
    assert!(outcomes[..2].iter().all(evicts) && outcomes[2] == Outcome::Dropped, "{outcomes:?}");
    assert_eq!(link.used(), 4);
}

/// Updates that leave, job by job, with their numbers, while nobody answers.
fn unanswered(link: &mut Link<Of>, counts: &mut [u32; 4]) -> Vec<u32> {
    let mut jobs = Vec::new();
    while let Some(departure) = link.due(Instant(0)) {
        let flow = link.leaving_update().expect("only updates wait").contribution.flow;
        counts[flow.job.0 as usize] += 1;
        link.release(departure.end, Some((flow, counts[flow.job.0 as usize])));
        jobs.push(flow.job.0);
    }
    jobs
}

#[test]
fn a_job_whose_server_does_not_answer_holds_no_credits_of_others() {
    let credits = CreditPacer::new(4, core::time::Duration::from_secs(3600));
    let mut link = Link::<Of>::new(Pacer::Credit(credits))
        .with_datagrams(64)
        .shared_by_jobs(Shares::default().with(JobId(3), 2))
        .with_queues(QueueKind::Fifo, None, 64);
    let mut counts = [0; 4];
    let arrive = |link: &mut Link<Of>, job| {
        for cluster in 0..8 {
            link.arrive(Instant(0), &update(job, cluster, 1));
        }
    };
    // Alone it has all credits.
    arrive(&mut link, 1);
    assert_eq!(unanswered(&mut link, &mut counts), [1; 4]);
    // Others have their shares at once, and go on as they are answered; the first waits.
    arrive(&mut link, 2);
    arrive(&mut link, 3);
    let mut next = unanswered(&mut link, &mut counts);
    next.sort_unstable();
    assert_eq!(next, [2, 3, 3], "of four credits shares of one, one and two");
    for _ in 0..3 {
        link.acknowledge(Acknowledged::Job(JobId(3)), counts[3]);
        assert_eq!(unanswered(&mut link, &mut counts), [3, 3]);
    }
    // The first job goes on when its server answers; the others have at most what they had.
    link.acknowledge(Acknowledged::Job(JobId(1)), counts[1]);
    assert_eq!(unanswered(&mut link, &mut counts), [1]);
}

#[test]
fn each_job_may_have_one_update_on_its_way_also_where_credits_are_fewer_than_jobs() {
    let credits = CreditPacer::new(2, core::time::Duration::from_secs(3600));
    let mut link = Link::<Of>::new(Pacer::Credit(credits))
        .with_datagrams(64)
        .shared_by_jobs(Shares::default())
        .with_queues(QueueKind::Fifo, None, 64);
    let mut counts = [0; 4];
    for (job, cluster) in [(1, 1), (2, 1), (3, 1), (1, 2), (2, 2), (3, 2)] {
        link.arrive(Instant(0), &update(job, cluster, 1));
    }
    let mut left = unanswered(&mut link, &mut counts);
    left.sort_unstable();
    assert_eq!(left, [1, 2, 3]);
    link.acknowledge(Acknowledged::Job(JobId(2)), counts[2]);
    assert_eq!(unanswered(&mut link, &mut counts), [2]);
}

#[test]
fn a_slot_does_not_change_hands_between_equals() {
    let mut link = shared(QueueKind::Fifo, 2, Shares::default());
    // One is on the wire, and another waits.
    for job in [1, 2] {
        assert!(matches!(link.arrive(Instant(0), &update(job, 1, 1)), Outcome::Appended(_)));
    }
    for job in [3, 4] {
        assert_eq!(link.arrive(Instant(0), &update(job, 1, 1)), Outcome::Dropped);
    }
}

#[test]
fn more_jobs_than_slots_take_turns() {
    let mut link = shared(QueueKind::Merging, 2, Shares::default());
    let mut left = Vec::new();
    for ms in 0..1000 {
        leave_until(&mut link, ms * MS, &mut left);
        for job in 1..=5 {
            link.arrive(Instant(ms * MS), &update(job, 1, 1));
        }
    }
    for job in 1..=5 {
        let own = of_job(&left, job);
        assert!(own >= 180, "job {job}: {own} of a share of 200");
    }
}

#[test]
fn datagrams_of_one_job_do_not_keep_those_of_another_out() {
    let mut link = shared(QueueKind::Fifo, 4, Shares::default());
    let fits = |link: &mut Link<Of>, job| link.send(Instant(0), Of(job, 125));
    let mut flood = 0;
    while fits(&mut link, 7) {
        flood += 1;
    }
    assert_eq!(flood, 64);
    assert!(fits(&mut link, 1), "its share is free");
    let more = (0..100).filter(|_| fits(&mut link, 1)).count();
    assert_eq!(more, 31, "half of 64, with the first");
    // Strangers share what has no job.
    assert!(fits(&mut link, 0));
    let mut left = Vec::new();
    leave_until(&mut link, 160 * MS, &mut left);
    assert_eq!((of_job(&left, 7), of_job(&left, 1), of_job(&left, 0)), (64, 32, 1));
    link.keep_jobs(|_| false);
    assert_eq!((link.backlog(), link.datagrams().count()), (0, 0));
}

/// One step of a link.
#[derive(Clone, Copy, Debug)]
enum Step {
    Arrive(u32, u32, u32),
    Send(u32, u32),
    Until(u64),
}

fn steps(jobs: u32) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (1..=jobs, 0u32..6, 0u32..3).prop_map(|(job, cluster, worker)| Step::Arrive(job, cluster, worker)),
        2 => (0..=jobs, 1u32..400).prop_map(|(job, bytes)| Step::Send(job, bytes)),
        4 => (0u64..3_000_000).prop_map(Step::Until),
    ];
    prop::collection::vec(step, 0..200)
}

fn kinds() -> impl Strategy<Value = QueueKind> {
    prop_oneof![Just(QueueKind::Merging), Just(QueueKind::Fifo), Just(QueueKind::Freshest)]
}

proptest! {
    /// The reference model of a shared link that only one job uses is the link that is not shared.
    #[test]
    fn a_job_alone_notices_no_sharing(steps in steps(1), kind in kinds(), slots in 1usize..5) {
        let mut link = shared(kind, slots, Shares::default());
        let mut reference =
            Link::new(a_megabit()).with_datagrams(64).with_queue(kind.queue(slots, None));
        let (mut now, mut left, mut references) = (0, Vec::new(), Vec::new());
        for step in steps {
            match step {
                Step::Arrive(job, cluster, worker) => {
                    let arrival = update(job, cluster, worker);
                    let outcome = link.arrive(Instant(now), &arrival);
                    prop_assert_eq!(outcome, reference.arrive(Instant(now), &arrival));
                }
                Step::Send(_, bytes) => {
                    let datagram = Of(1, bytes);
                    prop_assert_eq!(link.send(Instant(now), datagram), reference.send(Instant(now), datagram));
                }
                Step::Until(later) => {
                    now += later;
                    leave_until(&mut link, now, &mut left);
                    leave_until(&mut reference, now, &mut references);
                }
            }
            prop_assert_eq!(&left, &references);
            prop_assert_eq!((link.used(), link.backlog()), (reference.used(), reference.backlog()));
            prop_assert_eq!(link.next_departure(), reference.next_departure());
        }
    }

    /// Of several jobs every contribution has one fate, and no slot is used that is not there.
    #[test]
    fn every_contribution_of_every_job_has_one_fate(
        steps in steps(4), kind in kinds(), slots in 1usize..5, share in 1u32..4,
    ) {
        let mut link = shared(kind, slots, Shares::default().with(JobId(1), share));
        let (mut now, mut came, mut ended, mut datagrams) = (0, 0u64, 0u64, 0usize);
        for step in steps {
            match step {
                Step::Arrive(job, cluster, worker) => {
                    came += 1;
                    ended += match link.arrive(Instant(now), &update(job, cluster, worker)) {
                        Outcome::Appended(_) | Outcome::Merged(_) => 0,
                        Outcome::Replaced { displaced, .. } => u64::from(displaced),
                        Outcome::Evicted { dropped, .. } => u64::from(dropped),
                        Outcome::Filtered(_) | Outcome::Dropped | Outcome::Rejected(_) => 1,
                    };
                }
                Step::Send(job, bytes) => {
                    datagrams += usize::from(link.send(Instant(now), Of(job, bytes)));
                }
                Step::Until(later) => {
                    now += later;
                    while let Some(departure) = link.due(Instant(now)) {
                        if let Some(entry) = link.leaving_update() {
                            ended += u64::from(entry.contribution.contributors);
                            link.release(departure.end, None);
                        } else {
                            link.take();
                            datagrams -= 1;
                        }
                    }
                }
            }
            let waiting: u64 =
                link.entries().map(|entry| u64::from(entry.contribution.contributors)).sum();
            prop_assert_eq!(came, ended + waiting);
            prop_assert_eq!(link.used(), link.entries().count());
            prop_assert!(link.used() <= slots);
            prop_assert_eq!(link.datagrams().count(), datagrams);
            prop_assert_eq!(link.backlog(), datagrams + link.used());
            // What waits leaves at some time: the link is never idle.
            prop_assert_eq!(link.next_departure().is_some(), link.backlog() > 0);
        }
    }
}
