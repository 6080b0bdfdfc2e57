//! The settled rules of the OLAF queue, one behaviour a test.

use super::{Gate, Merging, reference};
use crate::ids::Flow;
use crate::queue::discipline::Rejection;
use crate::testing::{Sent, Trace, drive, gates, steps, update};
use alloc::boxed::Box;
use proptest::prelude::*;

/// The queue and its reference model go through the same trace.
fn each(slots: usize, gate: Gate, trace: impl Fn(&mut Trace)) {
    trace(&mut Trace(Box::new(Merging::new(slots, gate))));
    trace(&mut Trace(Box::new(reference::Reference::new(slots, gate))));
}

fn segment(segment: u32, sent: Sent) -> Sent {
    Sent { flow: Flow { segment, ..sent.flow }, ..sent }
}

#[test]
fn updates_of_one_cluster_merge_while_they_wait() {
    each(4, None, |queue| {
        queue.appends(update(1, 1, &[1.0, 2.0]));
        queue.merges(update(1, 2, &[3.0, 4.0]));
        queue.merges(update(1, 3, &[10.0, -6.0]));
        queue.sends(&[14.0, 0.0], 3);
        queue.is_empty();
    });
}

#[test]
fn updates_of_different_clusters_do_not() {
    each(4, None, |queue| {
        queue.appends(update(1, 1, &[1.0]));
        queue.appends(update(2, 1, &[2.0]));
        queue.sends(&[1.0], 1);
        queue.sends(&[2.0], 1);
    });
}

#[test]
fn segments_of_one_cluster_wait_and_merge_each_for_itself() {
    each(4, None, |queue| {
        queue.appends(segment(0, update(1, 1, &[1.0])));
        queue.appends(segment(1, update(1, 1, &[2.0])));
        queue.merges(segment(1, update(1, 2, &[3.0])));
        queue.sends(&[1.0], 1);
        queue.sends(&[5.0], 2);
    });
}

#[test]
fn clusters_of_different_jobs_do_not_merge() {
    each(4, None, |queue| {
        queue.appends(update(1, 1, &[1.0]));
        let other = update(1, 2, &[2.0]);
        let flow = Flow { job: crate::JobId(2), ..other.flow };
        queue.appends(Sent { flow, ..other });
    });
}

#[test]
fn a_workers_newer_update_replaces_its_waiting_one_whatever_its_reward() {
    each(4, Some(1.0), |queue| {
        queue.appends(update(1, 1, &[1.0]).reward(100.0));
        queue.replaces(update(1, 1, &[2.0]).reward(-100.0));
        let sent = queue.sends(&[2.0], 1);
        assert_eq!(sent.contribution.reward, -100.0);
    });
}

#[test]
fn a_replaced_update_keeps_its_place_in_the_queue() {
    each(4, None, |queue| {
        queue.appends(update(1, 1, &[1.0]));
        queue.appends(update(2, 1, &[2.0]));
        queue.replaces(update(1, 1, &[3.0]));
        queue.sends(&[3.0], 1);
        queue.sends(&[2.0], 1);
    });
}

#[test]
fn a_merge_keeps_its_place_in_the_queue() {
    each(4, None, |queue| {
        queue.appends(update(1, 1, &[1.0]));
        queue.appends(update(2, 1, &[2.0]));
        queue.merges(update(1, 2, &[3.0]));
        queue.sends(&[4.0], 2);
        queue.sends(&[2.0], 1);
    });
}

#[test]
fn merging_ends_replaceability() {
    each(4, None, |queue| {
        queue.appends(update(1, 1, &[1.0]));
        queue.merges(update(1, 2, &[2.0]));
        queue.merges(update(1, 1, &[4.0]));
        queue.merges(update(1, 2, &[8.0]));
        queue.sends(&[15.0], 4);
    });
}

#[test]
fn a_slot_that_was_replaced_holds_one_workers_update_again() {
    each(4, Some(1.0), |queue| {
        queue.appends(update(1, 1, &[1.0]).reward(0.0));
        queue.merges(update(1, 2, &[2.0]).reward(0.0));
        // Far better: takes the place of the merge, and is worker 3's alone.
        queue.replaces(update(1, 3, &[4.0]).reward(50.0));
        queue.replaces(update(1, 3, &[8.0]).reward(0.0));
        queue.merges(update(1, 1, &[16.0]).reward(0.0));
        queue.merges(update(1, 3, &[32.0]).reward(0.0));
        queue.sends(&[56.0], 3);
    });
}

#[test]
fn a_replacement_forgets_all_of_what_it_replaces() {
    each(4, Some(1.0), |queue| {
        let old = Sent {
            generated_ns: (1, 9),
            versions: (2, 8),
            hops: 7,
            bytes: 900,
            ..update(1, 1, &[1.0])
        };
        queue.appends(old);
        queue.merges(update(1, 2, &[2.0]).weight(5.0));
        let new = Sent {
            generated_ns: (4, 4),
            versions: (5, 5),
            hops: 1,
            bytes: 90,
            ..update(1, 3, &[4.0])
        };
        queue.replaces(new.reward(9.0));
        let sent = queue.sends(&[4.0], 1);
        assert_eq!(
            (sent.contribution.worker.0, sent.contribution.weight, sent.contribution.reward),
            (3, 1.0, 9.0)
        );
        assert_eq!(
            (
                sent.contribution.generated_ns,
                sent.contribution.versions,
                sent.contribution.hops,
                sent.contribution.bytes
            ),
            ((4, 4), (5, 5), 1, 90)
        );
    });
}

#[test]
fn a_reward_within_the_threshold_merges_and_exactly_at_it_too() {
    each(4, Some(5.0), |queue| {
        queue.appends(update(1, 1, &[1.0]).reward(10.0));
        queue.merges(update(1, 2, &[2.0]).reward(15.0));
        queue.sends(&[3.0], 2);
        queue.appends(update(1, 1, &[1.0]).reward(10.0));
        queue.merges(update(1, 2, &[2.0]).reward(5.0));
        queue.sends(&[3.0], 2);
        queue.appends(update(1, 1, &[1.0]).reward(10.0));
        queue.merges(update(1, 2, &[2.0]).reward(12.0));
        queue.sends(&[3.0], 2);
    });
}

#[test]
fn a_reward_above_the_threshold_replaces_and_below_it_is_filtered() {
    each(4, Some(5.0), |queue| {
        queue.appends(update(1, 1, &[1.0]).reward(10.0));
        queue.replaces(update(1, 2, &[2.0]).reward(15.001));
        queue.filters(update(1, 3, &[4.0]).reward(10.0));
        queue.sends(&[2.0], 1);
        queue.is_empty();
    });
}

#[test]
fn a_threshold_of_nothing_merges_only_equals() {
    each(4, Some(0.0), |queue| {
        queue.appends(update(1, 1, &[1.0]).reward(1.0));
        queue.merges(update(1, 2, &[2.0]).reward(1.0));
        queue.filters(update(1, 3, &[4.0]).reward(0.999));
        queue.replaces(update(1, 3, &[8.0]).reward(1.001));
    });
}

#[test]
fn the_gate_compares_with_the_mean_reward_of_a_merge() {
    each(4, Some(5.0), |queue| {
        queue.appends(update(1, 1, &[1.0]).reward(0.0));
        queue.merges(update(1, 2, &[2.0]).reward(4.0).weight(3.0));
        // The mean by weight is 3: 8 is at the gate, 8.5 beyond it.
        queue.replaces(update(1, 3, &[4.0]).reward(8.5));
        queue.sends(&[4.0], 1);
    });
}

#[test]
fn the_reward_of_a_merge_is_the_mean_by_weight_in_any_order() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        each(4, None, |queue| {
            let updates = [(1.0, 10.0), (2.0, 40.0), (5.0, 2.0)];
            for (n, at) in order.into_iter().enumerate() {
                let (weight, reward) = updates[at];
                let sent = update(1, at as u32, &[weight as f32]).weight(weight).reward(reward);
                if n == 0 { queue.appends(sent) } else { queue.merges(sent) }
            }
            let sent = queue.sends(&[8.0], 3);
            assert_eq!(sent.contribution.weight, 8.0);
            assert!((sent.contribution.reward - 100.0 / 8.0).abs() < 1e-12);
        });
    }
}

#[test]
fn a_merge_knows_its_oldest_and_newest_contribution() {
    each(4, None, |queue| {
        let at = |worker, ns, version, hops, bytes| Sent {
            generated_ns: (ns, ns + 1),
            versions: (version, version + 1),
            hops,
            bytes,
            sequence: worker,
            ..update(1, worker, &[1.0])
        };
        queue.appends(at(1, 50, 6, 1, 80));
        queue.merges(at(2, 20, 9, 3, 120));
        queue.merges(at(3, 70, 2, 2, 60));
        let sent = queue.sends(&[3.0], 3);
        assert_eq!(
            (sent.contribution.generated_ns, sent.contribution.versions),
            ((20, 71), (2, 10))
        );
        assert_eq!((sent.contribution.hops, sent.contribution.bytes), (3, 120));
        // It goes by the name of its first contributor.
        assert_eq!((sent.contribution.worker.0, sent.contribution.sequence), (1, 1));
    });
}

#[test]
fn the_locked_head_takes_nothing_in_and_its_cluster_may_hold_one_more() {
    each(4, None, |queue| {
        queue.appends(update(1, 1, &[1.0]));
        queue.locks(&[1.0]);
        queue.appends(update(1, 1, &[2.0]));
        queue.merges(update(1, 2, &[4.0]));
        assert_eq!(queue.0.used(), 2);
        assert_eq!(queue.0.departing().map(|head| head.lanes.to_vec()), Some(alloc::vec![1.0]));
        queue.frees();
        queue.sends(&[6.0], 2);
    });
}

#[test]
fn the_locked_head_holds_its_slot_until_it_has_left() {
    each(2, None, |queue| {
        queue.appends(update(1, 1, &[1.0]));
        queue.locks(&[1.0]);
        queue.appends(update(1, 1, &[2.0]));
        queue.drops(update(2, 1, &[3.0]));
        queue.frees();
        queue.appends(update(2, 1, &[4.0]));
    });
}

#[test]
fn a_full_queue_drops_what_would_open_an_entry_and_still_merges_the_rest() {
    each(1, None, |queue| {
        queue.appends(update(1, 1, &[1.0]));
        queue.drops(update(2, 1, &[2.0]));
        queue.merges(update(1, 2, &[4.0]));
        queue.sends(&[5.0], 2);
        queue.appends(update(2, 1, &[8.0]));
    });
}

#[test]
fn a_full_queue_with_only_its_locked_head_drops_even_that_clusters_next() {
    each(1, None, |queue| {
        queue.appends(update(1, 1, &[1.0]));
        queue.locks(&[1.0]);
        queue.drops(update(1, 1, &[2.0]));
    });
}

#[test]
fn what_an_earlier_switch_merged_is_never_replaced_by_its_worker() {
    each(4, None, |queue| {
        queue.appends(update(1, 1, &[5.0]).contributors(3).weight(3.0));
        queue.merges(update(1, 1, &[1.0]));
        queue.sends(&[6.0], 4);
    });
}

#[test]
fn what_an_earlier_switch_merged_never_replaces_its_workers_update() {
    each(4, None, |queue| {
        queue.appends(update(1, 1, &[1.0]));
        queue.merges(update(1, 1, &[5.0]).contributors(3).weight(3.0));
        let sent = queue.sends(&[6.0], 4);
        assert_eq!(sent.contribution.weight, 4.0);
    });
}

#[test]
fn a_merge_from_an_earlier_switch_that_replaces_is_not_replaceable() {
    each(4, Some(1.0), |queue| {
        queue.appends(update(1, 2, &[1.0]));
        queue.replaces(update(1, 1, &[5.0]).contributors(3).reward(10.0));
        queue.merges(update(1, 1, &[2.0]).reward(10.0));
    });
}

#[test]
fn what_is_not_finite_never_merges_replaces_or_waits() {
    each(4, Some(1.0), |queue| {
        queue.rejects(update(1, 1, &[f32::NAN]), Rejection::NonFinite);
        queue.appends(update(1, 1, &[1.0]));
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            queue.rejects(update(1, 2, &[bad]), Rejection::NonFinite);
            queue.rejects(update(1, 1, &[bad]), Rejection::NonFinite);
            queue.rejects(update(1, 2, &[bad]).reward(9.0), Rejection::NonFinite);
            queue.rejects(update(1, 2, &[bad]).reward(-9.0), Rejection::NonFinite);
            let reward = f64::from(bad);
            queue.rejects(update(1, 2, &[1.0]).reward(reward), Rejection::NonFinite);
            queue.rejects(update(1, 1, &[1.0]).reward(reward), Rejection::NonFinite);
        }
        queue.sends(&[1.0], 1);
    });
}

#[test]
fn a_sum_that_overflows_is_refused_and_the_slot_untouched() {
    each(4, None, |queue| {
        queue.appends(update(1, 1, &[1.0, f32::MAX]));
        queue.rejects(update(1, 2, &[1.0, f32::MAX]), Rejection::NonFinite);
        queue.merges(update(1, 2, &[1.0, -1.0]));
        queue.sends(&[2.0, f32::MAX], 2);
    });
}

#[test]
fn what_is_not_finite_is_refused_even_where_there_is_no_room() {
    each(1, None, |queue| {
        queue.appends(update(1, 1, &[1.0]));
        queue.rejects(update(2, 1, &[f32::NAN]), Rejection::NonFinite);
    });
}

#[test]
fn counts_and_weights_that_would_overflow_are_refused() {
    each(4, None, |queue| {
        queue.appends(update(1, 1, &[1.0]).contributors(u32::MAX).weight(f64::MAX));
        queue.rejects(update(1, 2, &[1.0]), Rejection::Overflow);
        queue.appends(update(2, 1, &[1.0]).weight(f64::MAX));
        queue.rejects(update(2, 2, &[1.0]).weight(f64::MAX), Rejection::Overflow);
    });
}

#[test]
fn a_reward_whose_product_with_its_weight_is_not_finite_is_refused_and_hurts_nobody() {
    each(4, None, |queue| {
        let huge = || update(1, 1, &[1.0]).weight(1e300).reward(1e300);
        queue.rejects(huge(), Rejection::NonFinite);
        queue.appends(update(1, 1, &[1.0]).weight(1e300).reward(8.0));
        queue.rejects(huge(), Rejection::NonFinite);
        queue.merges(update(1, 2, &[2.0]).weight(1e300).reward(4.0));
        assert_eq!(queue.sends(&[3.0], 2).contribution.reward, 6.0);
    });
}

#[test]
fn a_sum_of_rewards_that_overflows_is_refused_and_the_entry_untouched() {
    each(4, None, |queue| {
        queue.appends(update(1, 1, &[1.0]).reward(f64::MAX));
        queue.rejects(update(1, 2, &[1.0]).reward(f64::MAX), Rejection::Overflow);
        queue.merges(update(1, 2, &[1.0]).reward(-f64::MAX));
        assert_eq!(queue.sends(&[2.0], 2).contribution.reward, 0.0);
    });
}

#[test]
fn the_mean_reward_of_a_merge_is_one_division_of_sums_in_the_order_of_arrival() {
    let sent = [(1, 0.1, 0.7), (2, 0.2, 0.9), (3, 0.3, 1.1)];
    let mut queue = Trace(Box::new(Merging::new(4, None)));
    let (mut products, mut weights) = (0.0, 0.0);
    for (worker, reward, weight) in sent {
        let update = update(1, worker, &[1.0]).reward(reward).weight(weight);
        update.arrive(&mut *queue.0);
        (products, weights) = (products + reward * weight, weights + weight);
    }
    assert_eq!(queue.sends(&[3.0], 3).contribution.reward, products / weights);
    // In another order the last bit differs: the order is part of the rule.
    let other_way = 0.3 * 1.1 + 0.2 * 0.9 + 0.1 * 0.7;
    assert_ne!(other_way / weights, products / weights);
}

#[test]
fn an_update_of_another_size_is_refused() {
    each(4, None, |queue| {
        queue.appends(update(1, 1, &[1.0, 2.0]));
        queue.rejects(update(1, 2, &[1.0]), Rejection::WrongSize);
        queue.rejects(update(1, 2, &[1.0, 2.0, 3.0]), Rejection::WrongSize);
    });
}

#[test]
fn a_queue_that_is_only_studied_needs_no_lanes() {
    each(4, None, |queue| {
        queue.appends(update(1, 1, &[]));
        queue.merges(update(1, 2, &[]));
        queue.sends(&[], 2);
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: olaf_samples::cases(1500), ..ProptestConfig::default() })]
    #[test]
    fn the_queue_and_its_reference_do_the_same(steps in steps(), slots in 1usize..6, gate in gates()) {
        drive(&steps, &mut Merging::new(slots, gate), &mut reference::Reference::new(slots, gate))?;
    }

    #[test]
    fn at_most_one_open_entry_of_a_flow_waits(steps in steps(), slots in 1usize..6) {
        let mut queue = Merging::new(slots, None);
        for step in &steps {
            use crate::testing::Step;
            use crate::Discipline;
            match step {
                Step::Arrive(sent) => { sent.arrive(&mut queue); }
                Step::Begin => { queue.begin_departure(); }
                Step::End => { queue.end_departure(); }
                Step::GiveUp => { queue.give_up(); }
                Step::Share(_) | Step::Choose => {}
            }
            let open = queue.entries().len() - usize::from(queue.departing().is_some());
            let flows: alloc::collections::BTreeSet<_> =
                queue.entries().iter().rev().take(open).map(|entry| entry.contribution.flow).collect();
            prop_assert_eq!(flows.len(), open);
        }
    }
}
