use super::*;

const MS: u64 = 1_000_000;

fn crowded(active_clusters: u16, slots: u16) -> Feedback {
    let queue = QueueStatus { active_clusters, slots, used: 0, switches: 1, round_us: 0 };
    Feedback { queue, ..Feedback::default() }
}

fn at(ms: u64) -> Instant {
    Instant(ms * MS)
}

fn paper(slope: Slope) -> Transmission {
    let paper = Paper { threshold: Duration::from_millis(400), slope };
    Transmission::new(TransmissionConfig { control: Control::Paper(paper), unsent: Unsent::Carry })
}

fn fair() -> Transmission {
    let control = Control::Fair(Fair::default());
    Transmission::new(TransmissionConfig { control, unsent: Unsent::Carry })
}

#[test]
fn the_paper_sends_the_queues_share_and_more_after_the_threshold() {
    let mut t = paper(Slope::Urgency);
    assert_eq!(t.probability(at(0), 0), 1.0, "nothing is known of a congestion");
    t.hear(at(0), &crowded(10, 8));
    assert_eq!(t.probability(at(400), 0), 0.8);
    // 20 ms beyond it, of 400: 0.05 more. Twice the threshold and everything is sent.
    assert!((t.probability(at(420), 0) - 0.85).abs() < 1e-12);
    assert_eq!(t.probability(at(800), 0), 1.0);
    assert_eq!(t.probability(at(80_000), 0), 1.0);
}

#[test]
fn the_papers_second_slope_is_the_threshold_in_seconds_per_second() {
    let mut t = paper(Slope::Fairness);
    t.hear(at(0), &crowded(10, 5));
    assert!((t.probability(at(900), 0) - (0.5 + 0.4 * 0.5)).abs() < 1e-12);
    let mut t = paper(Slope::PerSecond(2.0));
    t.hear(at(0), &crowded(10, 5));
    assert!((t.probability(at(500), 0) - 0.7).abs() < 1e-12);
}

#[test]
fn without_congestion_everything_is_sent() {
    let mut t = paper(Slope::Urgency);
    t.hear(at(0), &crowded(8, 8));
    assert_eq!(t.probability(at(1), 0), 1.0);
    // An answer that passed no switch says nothing of any queue.
    t.hear(at(2), &crowded(100, 8));
    t.hear(at(3), &Feedback { queue: QueueStatus::default(), ..Feedback::default() });
    assert_eq!(t.probability(at(4), 0), 0.08);
}

#[test]
fn a_fair_cluster_sends_once_a_round_whoever_of_it_is_first() {
    let mut t = fair();
    assert!(t.decide(at(1), MS, 0.999));
    t.hear(at(10), &Feedback { round_ns: 80 * MS, ..crowded(10, 8) });
    t.taken(at(20), 20 * MS);
    assert!(!t.decide(at(99), 99 * MS, 0.0));
    assert!(t.decide(at(100), 100 * MS, 0.999));
    t.taken(at(100), 15 * MS); // Older news.
    assert!(t.decide(at(100), 100 * MS, 0.999));
    t.taken(at(100), 100 * MS);
    assert!(!t.decide(at(179), 179 * MS, 0.0));
}

#[test]
fn a_fair_cluster_with_a_slot_of_its_own_sends_at_will() {
    let mut t = fair();
    t.hear(at(0), &Feedback { round_ns: 80 * MS, ..crowded(8, 8) });
    t.taken(at(0), 0);
    assert!(t.decide(at(1), MS, 0.999));
}

#[test]
fn who_is_fresher_waits_longer_but_not_for_somebody_elses_slow_link() {
    let due = |own, mean| {
        let mut t = fair();
        let ages = Feedback { own_age_ns: own, mean_age_ns: mean, ..crowded(10, 8) };
        t.hear(at(0), &Feedback { round_ns: 100 * MS, ..ages });
        (1..300u64).find(|ms| t.decide(at(*ms), ms * MS, 0.5)).expect("due within three rounds")
    };
    assert_eq!(due(100, 100), 100);
    assert_eq!(due(100, 80), 100, "older than the mean");
    assert_eq!(due(160, 180), 113, "an eighth fresher: 112.5 ms");
    assert_eq!(due(160, 190), 119, "three sixteenths: 118.75 ms");
    assert_eq!(due(160, 210), 109, "five sixteenths, of two fifths: 108.75 ms");
    assert_eq!(due(100, 250), 100);
    assert_eq!(due(0, 250), 100, "not known");
}

#[test]
fn a_fair_cluster_that_hears_nothing_any_more_sends() {
    let mut t = fair();
    t.hear(at(0), &Feedback { round_ns: 1_000 * MS, ..crowded(10, 8) });
    t.taken(at(10), 4_500 * MS); // From a worker whose clock is ahead.
    assert!(!t.decide(at(4_010), 4_010 * MS, 0.0));
    assert!(t.decide(at(4_011), 4_011 * MS, 0.999));
}

#[test]
fn a_clock_that_was_set_back_and_another_cluster_do_not_silence_a_worker() {
    let mut t = fair();
    t.hear(at(0), &Feedback { round_ns: 80 * MS, ..crowded(10, 8) });
    t.taken(at(10), 3_600_000 * MS);
    assert!(t.decide(at(20), 20 * MS, 0.999), "an hour ahead");
    t.taken(at(10), 3_600_000 * MS + 20 * MS);
    t.forget();
    assert!(t.decide(at(20), 3_600_000 * MS + 21 * MS, 0.999));
}

#[test]
fn off_is_off() {
    let mut t = Transmission::new(TransmissionConfig::default());
    t.hear(at(0), &Feedback { round_ns: u64::MAX, ..crowded(u16::MAX, 1) });
    assert!(t.decide(at(0), 0, 0.999) && !t.wants_notices());
}
