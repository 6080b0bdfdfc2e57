//! What this queue does otherwise than OLAF's, one behaviour a test; the random steps cover the rest.

use super::{Freshest, Limits, reference};
use crate::ids::{Flow, JobId};
use crate::testing::{Sent, Trace, drive, gates, steps, update};
use alloc::boxed::Box;
use proptest::prelude::*;

/// The queue and its reference model go through the same trace.
fn each(slots: usize, trace: impl Fn(&mut Trace)) {
    each_with(slots, Limits::of(slots), trace);
}

fn each_with(slots: usize, limits: Limits, trace: impl Fn(&mut Trace)) {
    trace(&mut Trace(Box::new(Freshest::with_limits(slots, None, limits))));
    trace(&mut Trace(Box::new(reference::Reference::with_limits(slots, None, limits))));
}

/// A cluster's update of that time, which is its lane as well.
fn at(ns: u16, cluster: u32) -> Sent {
    let generated_ns = (u64::from(ns), u64::from(ns));
    Sent { generated_ns, ..update(cluster, 1, &[f32::from(ns)]) }
}

fn segment(segment: u32, sent: Sent) -> Sent {
    Sent { flow: Flow { segment, ..sent.flow }, ..sent }
}

/// The servers know clusters 1, 2 and 3 as of 10, 20 and 30.
fn all_served(queue: &mut Trace) {
    for (ns, cluster) in [(10, 1), (20, 2), (30, 3)] {
        queue.appends(at(ns, cluster));
        queue.sends(&[f32::from(ns)], 1);
    }
}

#[test]
fn with_content_of_one_time_the_oldest_model_goes_first() {
    each(4, |queue| {
        all_served(queue);
        queue.appends(at(50, 3));
        queue.appends(Sent { lanes: [51.0].to_vec(), ..at(50, 2) });
        queue.appends(Sent { lanes: [52.0].to_vec(), ..at(50, 1) });
        queue.sends(&[52.0], 1);
        queue.sends(&[51.0], 1);
        queue.sends(&[50.0], 1);
    });
}

#[test]
fn what_makes_its_model_younger_by_more_goes_before_what_is_of_an_older_model() {
    each(4, |queue| {
        all_served(queue);
        queue.appends(at(15, 1)); // from 10: 5 younger
        queue.appends(at(60, 3)); // from 30: 30 younger
        queue.sends(&[60.0], 1);
        queue.sends(&[15.0], 1);
    });
}

#[test]
fn merging_newer_content_moves_an_entry_forward() {
    each(4, |queue| {
        all_served(queue);
        queue.appends(at(40, 2)); // 20 younger
        queue.appends(at(40, 3)); // 10 younger
        queue.merges(Sent { worker: 2, ..at(70, 3) }); // now 40
        queue.sends(&[110.0], 2);
        queue.sends(&[40.0], 1);
    });
}

#[test]
fn what_is_on_the_wire_counts_as_known() {
    each(4, |queue| {
        all_served(queue);
        queue.appends(at(40, 1));
        queue.locks(&[40.0]);
        queue.appends(at(45, 1)); // 5 more than what is on its way
        queue.appends(at(40, 3)); // 10
        queue.frees();
        queue.sends(&[40.0], 1);
        queue.sends(&[45.0], 1);
    });
}

#[test]
fn a_cluster_of_which_the_server_has_nothing_goes_first_in_the_order_of_coming() {
    each(6, |queue| {
        all_served(queue);
        queue.appends(at(90, 1));
        queue.appends(at(41, 8));
        queue.appends(at(42, 7));
        queue.sends(&[41.0], 1);
        queue.sends(&[42.0], 1);
        queue.sends(&[90.0], 1);
    });
}

#[test]
fn a_full_queue_gives_the_slot_that_helps_least_to_what_helps_more() {
    each(2, |queue| {
        all_served(queue);
        queue.appends(at(41, 3)); // 11
        queue.appends(at(45, 2)); // 25
        queue.drops(Sent { worker: 9, ..at(17, 1) }); // 7
        queue.drops(Sent { worker: 9, ..at(21, 1) }); // 11: of equals the one that waits stays
        queue.merges(Sent { worker: 2, ..at(40, 3) });
        queue.evicts(at(22, 1), 3, 2); // 12
        queue.sends(&[45.0], 1);
        queue.sends(&[22.0], 1);
        queue.is_empty();
    });
}

#[test]
fn the_locked_entry_is_never_evicted() {
    each(1, |queue| {
        all_served(queue);
        queue.appends(at(31, 3));
        queue.locks(&[31.0]);
        queue.drops(at(99, 1));
        queue.frees();
    });
}

#[test]
fn what_cannot_be_summed_evicts_nothing() {
    each(1, |queue| {
        all_served(queue);
        queue.appends(at(31, 3));
        let bad = Sent { lanes: [f32::NAN].to_vec(), ..at(99, 1) };
        queue.rejects(bad, crate::queue::Rejection::NonFinite);
        queue.rejects(at(99, 1).reward(f64::NAN), crate::queue::Rejection::NonFinite);
        queue.evicts(at(99, 1), 3, 1);
    });
}

#[test]
fn segments_of_the_model_under_way_follow_each_other() {
    each(8, |queue| {
        all_served(queue);
        queue.appends(segment(1, at(61, 1)));
        queue.appends(segment(0, at(60, 1)));
        queue.appends(at(62, 2));
        queue.appends(segment(2, at(63, 1)));
        // Cluster 1 is chosen for its unserved segments; all of it leaves, from the lowest up,
        queue.sends(&[60.0], 1);
        queue.locks(&[61.0]);
        // and what comes in for a segment behind waits for the next time.
        queue.appends(segment(0, at(64, 1)));
        queue.frees();
        queue.sends(&[63.0], 1);
        queue.sends(&[62.0], 1);
        queue.sends(&[64.0], 1);
    });
}

#[test]
fn a_model_that_takes_the_link_longer_must_bring_more() {
    let large = |ns, cluster| Sent { bytes: 400, ..at(ns, cluster) };
    each(4, |queue| {
        all_served(queue);
        queue.appends(large(69, 3)); // 39 younger, at four times the bytes: as good as 19.5
        queue.appends(at(40, 2)); // 20
        queue.sends(&[40.0], 1);
        queue.sends(&[69.0], 1);
        queue.appends(large(110, 3)); // 41 younger: as good as 20.5
        queue.appends(at(60, 2)); // 20
        queue.sends(&[110.0], 1);
        queue.sends(&[60.0], 1);
    });
}

#[test]
fn ages_of_two_jobs_with_different_clocks_are_compared_by_what_they_gain() {
    let other = |ns| {
        let sent = at(ns, 1);
        Sent { flow: Flow { job: JobId(2), ..sent.flow }, ..sent }
    };
    each(4, |queue| {
        all_served(queue);
        queue.appends(other(30_000));
        queue.sends(&[30_000.0], 1);
        queue.appends(other(30_005)); // 5 younger
        queue.appends(at(40, 3)); // 10 younger
        queue.sends(&[40.0], 1);
        queue.sends(&[30_005.0], 1);
    });
}

#[test]
fn no_entry_lets_more_than_so_many_pass() {
    each_with(3, Limits { patience: 4, ..Limits::of(3) }, |queue| {
        all_served(queue);
        queue.appends(at(31, 3)); // 1 younger, and silent from now on
        for ns in [100, 200, 300, 400] {
            queue.appends(at(ns, 1));
            queue.sends(&[f32::from(ns)], 1);
        }
        queue.appends(at(500, 1));
        queue.sends(&[31.0], 1);
        queue.sends(&[500.0], 1);
    });
}

#[test]
fn a_clock_that_was_ahead_costs_its_cluster_only_so_many_updates() {
    each_with(4, Limits { disbelief: 3, ..Limits::of(4) }, |queue| {
        all_served(queue);
        queue.appends(at(60_000, 1));
        queue.sends(&[60_000.0], 1);
        for ns in [50, 51] {
            queue.appends(at(ns, 1));
            queue.appends(at(ns, 2));
            queue.sends(&[f32::from(ns)], 1);
            queue.sends(&[f32::from(ns)], 1);
        }
        // Of the two that were sent one was cluster 2's, which had news.
        queue.appends(at(60, 2));
        queue.appends(Sent { lanes: [61.0].to_vec(), ..at(60, 1) });
        queue.sends(&[61.0], 1);
        queue.sends(&[60.0], 1);
    });
}

#[test]
fn a_flow_beyond_the_memory_counts_as_never_served() {
    each_with(4, Limits { remembered: 2, ..Limits::of(4) }, |queue| {
        all_served(queue); // cluster 1 is forgotten
        queue.appends(at(90, 2));
        queue.appends(at(11, 1));
        queue.sends(&[11.0], 1); // cluster 2 is forgotten
        queue.appends(at(31, 3));
        queue.sends(&[90.0], 1);
        queue.sends(&[31.0], 1);
    });
}

fn limits() -> impl Strategy<Value = Limits> {
    (1usize..6, 1u64..8, 1u32..5).prop_map(|(remembered, patience, disbelief)| Limits {
        remembered,
        patience,
        disbelief,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: olaf_samples::cases(2000), ..ProptestConfig::default() })]
    #[test]
    fn the_queue_and_its_reference_do_the_same(
        steps in steps(), slots in 1usize..6, gate in gates(), limits in limits(),
    ) {
        let mut queue = Freshest::with_limits(slots, gate, limits);
        drive(&steps, &mut queue, &mut reference::Reference::with_limits(slots, gate, limits))?;
    }
}
