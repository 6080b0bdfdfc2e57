//! Until the server has a number of updates of each worker: which workers wait, and that the
//! accounts lose nothing.

use olaf_sim::study::delivery::{Delivery, Outcome, run};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

/// A link that takes a millisecond for an update.
fn delivery() -> Delivery {
    Delivery {
        seed: 1,
        queue: "olaf".into(),
        slots: 4,
        rate_bps: 8_000_000,
        packet_bytes: 1000,
        clusters: 10,
        workers: 3,
        wanted: 20,
        intervals_ns: vec![vec![10 * MS, 14 * MS], vec![8 * MS, 12 * MS, 9 * MS]],
        answer_delay_ns: MS / 2,
        resend_after_ns: Some(10 * MS),
        resend_spread_ns: 5 * MS,
        limit_ns: 60_000 * MS,
    }
}

#[track_caller]
fn accounts_are_in_order(spec: &Delivery, outcome: &Outcome) {
    let o = outcome;
    assert_eq!(o.sent, o.delivered + o.repeated + o.dropped + o.replaced + o.waiting, "{o:?}");
    assert!(o.departures <= o.delivered + o.repeated);
    assert!(o.worker_done_ns.is_sorted());
    if let Some(done) = o.done_ns {
        assert_eq!(o.worker_done_ns.len() as u32, spec.clusters * spec.workers);
        assert!(o.delivered >= u64::from(spec.clusters * spec.workers * spec.wanted));
        // The link cannot carry more than this.
        let wire = u128::from(spec.packet_bytes) * 8_000_000_000 / u128::from(spec.rate_bps);
        assert!(u128::from(done) >= u128::from(o.departures) * wire);
    }
}

#[test]
fn a_worker_alone_is_done_when_its_last_update_has_left_the_link() {
    for queue in ["fifo", "olaf"] {
        let spec = Delivery {
            queue: queue.into(),
            clusters: 1,
            workers: 1,
            intervals_ns: vec![vec![10 * MS]],
            wanted: 5,
            ..delivery()
        };
        let outcome = run(&spec).unwrap();
        let first = outcome.done_ns.unwrap() - 40 * MS - MS;
        assert!(first <= 10 * MS, "it begins somewhere in its first interval: {first}");
        assert_eq!((outcome.sent, outcome.sent_again, outcome.dropped), (5, 0, 0));
        accounts_are_in_order(&spec, &outcome);
    }
}

#[test]
fn on_a_narrow_link_merging_is_quicker_and_what_was_dropped_is_sent_again() {
    let olaf = delivery();
    let fifo = Delivery { queue: "fifo".into(), ..delivery() };
    let (olaf, fifo) = (run(&olaf).unwrap(), run(&fifo).unwrap());
    // 600 updates of a millisecond each is the least that FIFO can take.
    assert!(fifo.done_ns.unwrap() >= 600 * MS);
    assert!(olaf.done_ns.unwrap() < fifo.done_ns.unwrap(), "{olaf:?} {fifo:?}");
    assert!(olaf.departures < olaf.delivered && fifo.departures == fifo.delivered);
    assert!(fifo.sent_again > 0 && fifo.repeated == 0);
}

#[test]
fn without_sending_again_workers_go_on_until_enough_has_come_through() {
    // Regular workers would starve each other for ever: one always finds the slot taken.
    let intervals_ns = vec![(0..97).map(|k| (5 + k * 37 % 13) * MS + k * 7919).collect()];
    let fifo = Delivery { queue: "fifo".into(), intervals_ns, ..delivery() };
    let spec = Delivery { resend_after_ns: None, ..fifo };
    let outcome = run(&spec).unwrap();
    accounts_are_in_order(&spec, &outcome);
    assert_eq!((outcome.sent, outcome.sent_again), (outcome.generated, 0));
    assert!(outcome.dropped > 0 && outcome.done_ns.is_some());
}

#[test]
fn what_is_sent_again_too_soon_counts_once() {
    let spec = Delivery {
        resend_after_ns: Some(MS),
        resend_spread_ns: 0,
        queue: "fifo".into(),
        ..delivery()
    };
    let outcome = run(&spec).unwrap();
    accounts_are_in_order(&spec, &outcome);
    assert!(outcome.repeated > 0);
}

#[test]
fn a_limit_that_comes_first_says_so() {
    let spec = Delivery { limit_ns: 100 * MS, ..delivery() };
    let outcome = run(&spec).unwrap();
    accounts_are_in_order(&spec, &outcome);
    assert_eq!(outcome.done_ns, None);
}

#[test]
fn what_cannot_be_is_named() {
    let wrong = |change: fn(&mut Delivery), expected: &str| {
        let mut spec = delivery();
        change(&mut spec);
        let text = run(&spec).unwrap_err().to_string();
        assert!(text.contains(expected), "{text}");
    };
    wrong(|d| d.queue = "lifo".into(), "queue \"lifo\" must be olaf");
    wrong(|d| d.slots = 0, "slots");
    wrong(|d| d.rate_bps = 0, "rate_bps");
    wrong(|d| d.wanted = 0, "wanted");
    wrong(|d| d.intervals_ns = vec![vec![]], "intervals_ns needs");
    wrong(|d| d.intervals_ns = vec![vec![0]], "above 0");
    wrong(|d| d.resend_after_ns = Some(0), "resend_after_ns");
    wrong(|d| d.limit_ns = u64::MAX, "before limit_ns");
}

proptest! {
    #[test]
    fn every_datagram_has_a_fate_and_a_seed_says_it_all(
        seed in any::<u64>(),
        queue in prop_oneof![Just("olaf"), Just("fifo"), Just("freshest")],
        slots in 1usize..12,
        clusters in 1u32..12,
        workers in 1u32..4,
        wanted in 1u32..15,
        rate_bps in 1_000_000u64..40_000_000,
        resend_ms in prop::option::of(1u64..40),
        intervals in prop::collection::vec(prop::collection::vec(1u64..30_000_000, 1..5), 1..4),
    ) {
        let spec = Delivery {
            seed, queue: queue.into(), slots, clusters, workers, wanted, rate_bps,
            resend_after_ns: resend_ms.map(|ms| ms * MS), intervals_ns: intervals,
            // Short enough for intervals of nanoseconds.
            limit_ns: 50 * MS, ..delivery()
        };
        prop_assume!(spec.check().is_ok());
        let outcome = run(&spec).unwrap();
        accounts_are_in_order(&spec, &outcome);
        prop_assert_eq!(run(&spec).unwrap(), outcome);
    }
}
