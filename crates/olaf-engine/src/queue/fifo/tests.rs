//! What the queue does, one behaviour a test.

use super::{Fifo, reference};
use crate::queue::discipline::Rejection;
use crate::testing::{Trace, drive, steps, update};
use alloc::boxed::Box;
use proptest::prelude::*;

/// The queue and its reference model go through the same trace.
fn each(slots: usize, trace: impl Fn(&mut Trace)) {
    trace(&mut Trace(Box::new(Fifo::new(slots))));
    trace(&mut Trace(Box::new(reference::Reference::new(slots))));
}

#[test]
fn updates_leave_in_the_order_they_came_and_never_merge() {
    each(4, |queue| {
        queue.appends(update(1, 1, &[1.0]));
        queue.appends(update(1, 2, &[2.0]));
        queue.appends(update(1, 1, &[3.0]));
        queue.sends(&[1.0], 1);
        queue.sends(&[2.0], 1);
        queue.sends(&[3.0], 1);
        queue.is_empty();
    });
}

#[test]
fn what_finds_no_slot_is_dropped_and_the_one_on_the_wire_holds_a_slot() {
    each(2, |queue| {
        queue.appends(update(1, 1, &[1.0]));
        queue.appends(update(1, 1, &[2.0]));
        queue.drops(update(1, 1, &[3.0]));
        queue.locks(&[1.0]);
        queue.drops(update(1, 1, &[4.0]));
        queue.frees();
        queue.appends(update(1, 1, &[5.0]));
    });
}

#[test]
fn what_is_not_finite_is_refused_room_or_not() {
    each(1, |queue| {
        queue.rejects(update(1, 1, &[f32::NAN]), Rejection::NonFinite);
        queue.rejects(update(1, 1, &[1.0]).reward(f64::NAN), Rejection::NonFinite);
        queue.appends(update(1, 1, &[1.0]));
        queue.rejects(update(1, 1, &[f32::INFINITY]), Rejection::NonFinite);
        queue.rejects(update(1, 1, &[1.0]).reward(f64::INFINITY), Rejection::NonFinite);
    });
}

#[test]
fn only_one_departs_at_a_time() {
    each(2, |queue| {
        queue.appends(update(1, 1, &[1.0]));
        queue.appends(update(2, 1, &[2.0]));
        queue.locks(&[1.0]);
        assert!(queue.0.begin_departure().is_none());
        queue.frees();
        assert!(queue.0.end_departure().is_none());
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: olaf_samples::cases(500), ..ProptestConfig::default() })]
    #[test]
    fn the_queue_and_its_reference_do_the_same(steps in steps(), slots in 1usize..6) {
        drive(&steps, &mut Fifo::new(slots), &mut reference::Reference::new(slots))?;
    }
}
