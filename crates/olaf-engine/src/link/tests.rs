//! The link: service time, heads, backlog and marks.

use super::*;
use crate::contribution::Contribution;
use crate::ids::JobId;
use crate::link::pacer::{CreditPacer, RatePacer};
use crate::queue::fifo::Fifo;
use crate::queue::merging::Merging;
use crate::time::BitsPerSecond;
use alloc::vec::Vec;

fn flow(job: u32, cluster: u32) -> Flow {
    Flow { job: JobId(job), cluster: crate::ids::ClusterId(cluster), segment: 0 }
}

fn update_of(worker: u32) -> Arrival<'static> {
    let (flow, worker) = (crate::ids::Flow::default(), crate::ids::WorkerId(worker));
    Arrival { contribution: Contribution::of_one(flow, worker, 0, 125), lanes: &[] }
}

/// An update of 125 bytes takes a millisecond.
fn a_megabit() -> Pacer {
    Pacer::Rate(RatePacer::new(BitsPerSecond::new(1_000_000).expect("a rate")))
}

fn updates(pacer: Pacer, slots: usize) -> Link {
    Link::new(pacer).with_queue(Box::new(Fifo::new(slots)))
}

/// A datagram, by its length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bytes(u32);

impl Datagram for Bytes {
    fn bytes(&self) -> u32 {
        self.0
    }
}

#[test]
fn the_service_time_is_measured_only_while_updates_wait() {
    let mut link = updates(a_megabit(), 4);
    link.arrive(Instant(0), &update_of(1));
    assert_eq!(link.service(), Duration::ZERO);
    link.due(Instant(1_000_000)).expect("a millisecond has passed");
    link.release(Instant(1_000_000), None);
    assert_eq!(link.service(), Duration::from_millis(1));

    let pacer = Pacer::Credit(CreditPacer::new(8, Duration::from_secs(1)));
    let mut link = updates(pacer, 4);
    let leave = |link: &mut Link, at| {
        link.due(Instant(at)).expect("credits are left");
        link.release(Instant(at), Some((flow(1, 0), 1)));
    };
    for worker in 0..3 {
        link.arrive(Instant(0), &update_of(worker));
    }
    leave(&mut link, 10);
    leave(&mut link, 30);
    assert_eq!(link.service(), Duration::from_nanos(20));
    leave(&mut link, 130);
    assert_eq!(link.service(), Duration::from_nanos(30));
    link.arrive(Instant(5_000), &update_of(7));
    leave(&mut link, 5_000);
    let idle = Duration::from_nanos(30) * 7 / 8;
    assert_eq!(link.service(), idle, "nothing waited: not 4,870, but less than before");
}

#[test]
fn an_outage_of_the_server_is_not_taken_for_a_slow_link() {
    let pacer = Pacer::Credit(CreditPacer::new(1, Duration::from_secs(1)));
    let mut link = updates(pacer, 4);
    for worker in 0..4 {
        link.arrive(Instant(0), &update_of(worker));
    }
    let leave = |link: &mut Link, at, sequence| {
        link.due(Instant(at)).expect("a credit is left");
        link.release(Instant(at), Some((flow(1, 0), sequence)));
    };
    leave(&mut link, 0, 1);
    link.acknowledge(Acknowledged::Job(JobId(1)), 1);
    leave(&mut link, 1_000, 2);
    assert_eq!(link.service(), Duration::from_nanos(1_000));
    // Nobody answers: the credit comes back by itself, and others wait all the while.
    link.expire(Instant(1_000_001_000));
    leave(&mut link, 1_000_001_000, 3);
    assert_eq!(link.service(), Duration::from_nanos(1_000));
    link.acknowledge(Acknowledged::Job(JobId(1)), 3);
    leave(&mut link, 1_000_002_000, 4);
    assert_eq!(link.service(), Duration::from_nanos(1_000));
}

/// Three workers of one cluster, one every 300 us, through each head: how many
/// contributions left in each departure, and when.
fn through(head: Head) -> Vec<(u64, u32)> {
    let queue = Box::new(Merging::new(2, None));
    let mut link: Link = Link::new(a_megabit()).with_queue(queue).with_head(head);
    for worker in 0..3 {
        let outcome = link.arrive(Instant(u64::from(worker) * 300_000), &update_of(worker));
        assert!(!matches!(outcome, Outcome::Dropped), "{head:?}");
    }
    let mut left = Vec::new();
    while let Some(end) = link.next_departure() {
        assert_eq!(link.due(Instant(end.0 - 1)), None);
        link.due(end).expect("it ends now");
        let entry = link.leaving_update().expect("an update leaves");
        left.push((end.0, entry.contribution.contributors));
        link.release(end, None);
    }
    assert_eq!(link.backlog(), 0);
    left
}

#[test]
fn an_update_on_the_wire_takes_others_in_only_where_its_head_is_open() {
    assert_eq!(through(Head::Locked), [(1_000_000, 1), (2_000_000, 2)]);
    assert_eq!(through(Head::Gone), [(1_000_000, 1), (2_000_000, 2)]);
    assert_eq!(through(Head::Open), [(1_000_000, 3)]);
}

#[test]
fn the_update_that_leaves_is_the_one_that_was_on_the_wire_whatever_came_meanwhile() {
    use crate::queue::freshest::Freshest;
    for head in [Head::Locked, Head::Open, Head::Gone] {
        let queue = Box::new(Freshest::new(2, None));
        let mut link: Link = Link::new(a_megabit()).with_queue(queue).with_head(head);
        let update = |cluster, generated| Arrival {
            contribution: Contribution {
                generated_ns: (generated, generated),
                ..Contribution::of_one(flow(1, cluster), crate::ids::WorkerId(1), 0, 125)
            },
            lanes: &[],
        };
        // Cluster 1 has been served: the next of it is worth little.
        link.arrive(Instant(0), &update(1, 10));
        link.due(Instant(1_000_000)).expect("it ends now");
        link.release(Instant(1_000_000), None);
        link.arrive(Instant(1_000_000), &update(1, 20));
        // Two of others, worth more, come while it is on the wire; the second finds no slot.
        link.arrive(Instant(1_100_000), &update(2, 30));
        link.arrive(Instant(1_200_000), &update(3, 30));
        link.due(Instant(2_000_000)).expect("it ends now");
        let left = link.leaving_update().expect("an update leaves").contribution.flow.cluster.0;
        assert_eq!(left, 1, "{head:?}");
    }
}

#[test]
fn an_update_on_the_wire_keeps_its_slot_unless_it_is_gone() {
    for (head, taken) in [(Head::Locked, 2), (Head::Open, 2), (Head::Gone, 3)] {
        let mut link = updates(a_megabit(), 2).with_head(head);
        let outcomes = (0..4).map(|worker| link.arrive(Instant(0), &update_of(worker)));
        let dropped = outcomes.filter(|outcome| *outcome == Outcome::Dropped).count();
        assert_eq!((4 - dropped, link.backlog()), (taken, taken), "{head:?}");
        assert_eq!(link.updates().count(), taken, "{head:?}");
    }
}

#[test]
fn a_link_without_a_queue_sends_datagrams_in_order_and_takes_no_more_than_its_limit() {
    let mut link = Link::new(a_megabit()).with_datagrams(3);
    let fits = [125, 250, 125, 125].map(|bytes| link.send(Instant(0), Bytes(bytes)));
    assert_eq!(fits, [true, true, true, false]);
    assert_eq!(link.due(Instant(999_999)), None, "the first is on the wire");
    let mut left = Vec::new();
    while let Some(end) = link.next_departure() {
        assert_eq!(link.due(end).map(|departure| departure.what), Some(Leaving::Datagram));
        left.push((end.0, link.take().expect("it is due").0));
    }
    assert_eq!(left, [(1_000_000, 125), (3_000_000, 250), (4_000_000, 125)]);
    assert_eq!(link.arrive(Instant(0), &update_of(1)), Outcome::Dropped);
}

#[test]
fn datagrams_go_ahead_of_waiting_updates_and_not_of_the_one_on_the_wire() {
    let queue = Box::new(Fifo::new(4));
    let mut link = Link::new(a_megabit()).with_queue(queue).with_datagrams(4);
    link.arrive(Instant(0), &update_of(1));
    link.arrive(Instant(0), &update_of(2));
    link.send(Instant(0), Bytes(125));
    let mut left = Vec::new();
    while let Some(end) = link.next_departure() {
        left.push(link.due(end).expect("it ends now").what);
        if link.take().is_none() {
            link.release(end, None);
        }
    }
    assert_eq!(left, [Leaving::Update, Leaving::Datagram, Leaving::Update]);
}

#[test]
fn a_link_reports_congestion_from_its_depth_on_and_not_below() {
    for (depth, expected) in [
        (None, [false; 4]),
        (Some(1), [true; 4]),
        (Some(2), [false, true, true, false]),
        (Some(3), [false, true, false, false]),
        (Some(4), [false; 4]),
    ] {
        let mut link = Link::new(a_megabit()).with_datagrams(9).with_ecn_depth(depth);
        // The first finds an idle link; when it has left, three wait; then two; then one.
        (0..4).for_each(|_| assert!(link.send(Instant(0), Bytes(125))));
        let mut congested = Vec::new();
        while let Some(end) = link.next_departure() {
            congested.push(link.due(end).expect("it ends now").congested);
            link.take();
        }
        assert_eq!(congested, expected, "{depth:?}");
    }
}
