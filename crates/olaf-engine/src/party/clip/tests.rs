use super::*;
use crate::ids::{PeerId, WorkerId};
use proptest::prelude::*;

fn bytes(lanes: &[f32]) -> Vec<u8> {
    lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect()
}

const NOW: Instant = Instant(1_000_000_000);

pub(super) const fn at(worker: u32) -> Voter {
    Voter::At(PeerId(worker))
}

pub(super) fn of(worker: u32, weight: f64, reward: f64) -> Measured {
    Measured {
        voter: at(worker),
        segment: (0, 1),
        is_direct: true,
        contributors: 1,
        weight,
        reward,
    }
}

fn only(clip_norm: Clip) -> Limits {
    Limits { clip_norm, ..Limits::OFF }
}

/// Clips, and returns lanes as numbers.
fn clip(
    clipping: &mut Clipping,
    limits: &Limits,
    mut of: Measured,
    lanes: &[f32],
) -> (Vec<f32>, Measured, Clipped) {
    let lanes = bytes(lanes);
    let Kept { lanes, clipped, .. } = clipping.clip(NOW, limits, &mut of, &lanes, |_| None);
    let lanes = lanes.as_chunks::<4>().0.iter().map(|lane| f32::from_le_bytes(*lane)).collect();
    (lanes, of, clipped)
}

#[test]
fn a_norm_is_scaled_to_the_limit_and_keeps_its_direction() {
    let mut clipping = Clipping::default();
    let (lanes, _, clipped) =
        clip(&mut clipping, &only(Clip::At(5.0)), of(1, 2.0, 0.0), &[30.0, 40.0]);
    assert_eq!((lanes, clipped.norm), (alloc::vec![6.0, 8.0], true), "5 for each unit of weight");
    let (lanes, _, clipped) =
        clip(&mut clipping, &only(Clip::At(5.0)), of(1, 2.0, 0.0), &[6.0, 8.0]);
    assert_eq!((lanes, clipped.any()), (alloc::vec![6.0, 8.0], false));
}

#[test]
fn the_median_is_of_the_others_with_a_vote_each() {
    let limits = only(Clip::Median(10.0));
    let mut clipping = Clipping::default();
    // The first to come has nobody to be compared with.
    assert!(!clip(&mut clipping, &limits, of(1, 1.0, 0.0), &[1e30]).2.any());
    for worker in 2..5 {
        assert!(!clip(&mut clipping, &limits, of(worker, 1.0, 0.0), &[2.0]).2.any());
    }
    for _ in 0..100 {
        let (lanes, _, clipped) = clip(&mut clipping, &limits, of(1, 1.0, 0.0), &[1e30]);
        assert!(clipped.norm && (lanes[0] - 20.0).abs() < 1e-3, "{lanes:?}");
    }
    // Its many votes are one: the limit of the others is what it was.
    let (lanes, ..) = clip(&mut clipping, &limits, of(2, 1.0, 0.0), &[1e30]);
    assert!((lanes[0] - 20.0).abs() < 1e-3, "{lanes:?}");
}

#[test]
fn what_is_far_smaller_than_usual_counts_less() {
    let limits = only(Clip::Median(10.0));
    let mut clipping = Clipping::default();
    let mut effect = |worker, lane: f32| {
        let lanes = bytes(&[lane]);
        clipping.clip(NOW, &limits, &mut of(worker, 1.0, 0.0), &lanes, |_| None).effect
    };
    assert_eq!(effect(1, 2.0), 1.0);
    let effects = [2.0, 0.5, 0.25, 0.02, 0.0].map(|lane| effect(2, lane));
    assert!((effects[3] - 0.04).abs() < 1e-6, "{effects:?}");
    assert_eq!([effects[0], effects[1], effects[2], effects[4]], [1.0, 1.0, 0.5, 0.0]);
}

#[test]
fn one_tiny_value_does_not_make_the_values_of_others_too_large() {
    let limits = Limits { clip_weight: Clip::Median(10.0), ..Limits::OFF };
    for honest in [1, 2] {
        let mut clipping = Clipping::default();
        for worker in 0..honest {
            assert!(!clip(&mut clipping, &limits, of(worker, 1.0, 0.0), &[1.0]).2.any());
        }
        clip(&mut clipping, &limits, of(9, 1e-300, 0.0), &[1.0]);
        for worker in 0..honest {
            assert!(!clip(&mut clipping, &limits, of(worker, 1.0, 0.0), &[1.0]).2.any());
        }
    }
}

#[test]
fn a_mean_that_is_infinite_is_clipped() {
    let mut clipping = Clipping::default();
    let (lanes, _, clipped) =
        clip(&mut clipping, &only(Clip::At(5.0)), of(1, 1e-300, 0.0), &[1e30]);
    assert_eq!((lanes, clipped.norm), (alloc::vec![0.0], true));
}

#[test]
fn a_flood_of_zeros_makes_nothing_too_large() {
    let limits = only(Clip::Median(10.0));
    let mut clipping = Clipping::default();
    for worker in 1..9 {
        clip(&mut clipping, &limits, of(worker, 1.0, 0.0), &[0.0]);
    }
    assert!(!clip(&mut clipping, &limits, of(9, 1.0, 0.0), &[3.0]).2.any());
}

#[test]
fn a_weight_takes_its_sum_along_and_a_reward_stays_near_the_others() {
    let limits = Limits { clip_norm: Clip::Off, ..Limits::default() };
    let mut clipping = Clipping::default();
    for worker in 1..4 {
        clip(&mut clipping, &limits, of(worker, 2.0, -5.0), &[2.0]);
    }
    let (lanes, measured, clipped) = clip(&mut clipping, &limits, of(4, 1e300, 1e30), &[1e3]);
    assert_eq!((measured.weight, measured.reward), (200.0, 495.0));
    assert_eq!(
        (lanes[0], clipped),
        (0.0, Clipped { weight: true, reward: true, ..Clipped::default() })
    );
}

#[test]
fn what_was_clipped_is_no_excuse_for_the_next_time() {
    // Beside one other worker, a worker's own last value counts: as it was taken, not as it was sent.
    let limits =
        Limits { clip_reward: Clip::Off, clip_norm: Clip::Median(100.0), ..Limits::default() };
    let mut clipping = Clipping::default();
    clip(&mut clipping, &limits, of(1, 2.0, 0.0), &[4.0]);
    for _ in 0..3 {
        let (_, measured, clipped) = clip(&mut clipping, &limits, of(2, 1e300, 0.0), &[1.0]);
        assert!(clipped.weight && measured.weight == 200.0, "{measured:?}");
    }
    for _ in 0..3 {
        let (lanes, _, clipped) = clip(&mut clipping, &limits, of(2, 1.0, 0.0), &[1e30]);
        assert!(clipped.norm && (lanes[0] - 200.0).abs() < 1e-3, "{lanes:?}");
    }
}

#[test]
fn the_weight_of_a_merge_may_be_the_limit_for_each_contribution() {
    let limits = Limits { clip_weight: Clip::Median(10.0), ..Limits::OFF };
    let mut clipping = Clipping::default();
    for worker in 1..4 {
        clip(&mut clipping, &limits, of(worker, 2.0, 0.0), &[2.0]);
    }
    let merge = |weight| Measured { contributors: 4, ..of(4, weight, 0.0) };
    let (lanes, measured, clipped) = clip(&mut clipping, &limits, merge(80.0), &[8.0]);
    assert_eq!((lanes[0], measured.weight, clipped.any()), (8.0, 80.0, false));
    let (lanes, measured, clipped) = clip(&mut clipping, &limits, merge(160.0), &[8.0]);
    assert_eq!((lanes[0], measured.weight, clipped.weight), (4.0, 80.0, true));
}

#[test]
fn the_vote_of_a_merge_is_the_weight_of_one_contribution() {
    let limits = Limits { clip_weight: Clip::Median(10.0), ..Limits::OFF };
    let mut clipping = Clipping::default();
    clip(&mut clipping, &limits, of(1, 2.0, 0.0), &[1.0]);
    clip(&mut clipping, &limits, Measured { contributors: 4, ..of(2, 12.0, 0.0) }, &[1.0]);
    // The larger of 2 and 3 counts.
    let (_, measured, _) = clip(&mut clipping, &limits, of(3, 1e9, 0.0), &[1.0]);
    assert_eq!(measured.weight, 30.0);
}

#[test]
fn where_all_rewards_are_zero_another_one_is_not_clipped_at_once() {
    let limits = Limits { clip_reward: Clip::Median(10.0), ..Limits::OFF };
    let mut clipping = Clipping::default();
    for worker in 1..4 {
        clip(&mut clipping, &limits, of(worker, 1.0, 0.0), &[1.0]);
    }
    for (reward, kept) in [(9.0, 9.0), (-10.0, -10.0), (11.0, 10.0)] {
        let (_, measured, clipped) = clip(&mut clipping, &limits, of(9, 1.0, reward), &[1.0]);
        assert_eq!((measured.reward, clipped.reward), (kept, reward != kept));
    }
}

/// Where a worker's vote is.
fn own(recent: &Recent, worker: u32) -> Option<usize> {
    recent.own(at(worker), &mut Default::default())
}

fn note(recent: &mut Recent, now: Instant, voter: Voter, value: f64) {
    let own = recent.own(voter, &mut Default::default());
    recent.note(now, voter, own, value);
}

proptest! {
    /// The bounds say nothing else than the medians, whatever was noted and tightened before.
    #[test]
    fn the_short_way_says_nothing_else_than_the_medians(
        values in prop::collection::vec((0u32..20, -300.0f64..300.0), 0..60),
        multiple in 0.1f64..20.0,
    ) {
        let (mut sizes, mut rewards) = (Recent::default(), Recent::default());
        for (worker, value) in values {
            let (clip, size) = (Clip::Median(multiple), value.abs());
            let own = own(&sizes, worker);
            let (mut others, count) = sizes.others(own);
            others[..count].sort_by(f64::total_cmp);
            let slow = sizes.limit(clip, own).filter(|limit| size > *limit);
            prop_assert_eq!(sizes.limit_below(clip, own, size, |limit| size > limit), slow);
            let median = (count > 0).then(|| others[count / 2]);
            prop_assert_eq!(sizes.median_above(own, size), median.filter(|median| size < *median));
            sizes.note(NOW, at(worker), own, size);
            let clamped = rewards.clamped(clip, own, value);
            let (others, count) = rewards.others(own);
            let middle_of = |of: &dyn Fn(f64) -> f64| {
                let mut values: Vec<f64> = others[..count].iter().map(|one| of(*one)).collect();
                values.sort_by(f64::total_cmp);
                values[count / 2]
            };
            if count > 0 {
                let middle = middle_of(&|value| value);
                let spread = middle_of(&|value| (value - middle).abs());
                let spread = spread.max(middle.abs()).max(1.0) * multiple;
                let slow = value.clamp(middle - spread, middle + spread);
                prop_assert_eq!(clamped.unwrap_or(value), slow);
            } else {
                prop_assert_eq!(clamped, None);
            }
            rewards.note_any(NOW, at(worker), own, value);
        }
    }
}

#[test]
fn a_limit_is_written_as_it_is_read() {
    let read = |text: &str| serde_json::from_str::<Clip>(text).ok();
    let cases = [
        ("null", Some(Clip::Off)),
        ("\"off\"", Some(Clip::Off)),
        ("3", Some(Clip::At(3.0))),
        ("0.5", Some(Clip::At(0.5))),
        ("\"100x\"", Some(Clip::Median(100.0))),
        ("\"2.5\"", Some(Clip::At(2.5))),
        ("0", None),
        ("-1", None),
        ("\"-2x\"", None),
        ("\"NaNx\"", None),
        ("\"x\"", None),
    ];
    for (text, clip) in cases {
        assert_eq!(read(text), clip, "{text}");
        if let Some(clip) = clip {
            assert_eq!(read(&serde_json::to_string(&clip).expect("plain")), Some(clip));
        }
    }
    let bad = Limits { clip_weight: Clip::At(f64::NAN), ..Limits::OFF };
    assert_eq!(bad.check().expect_err("not a number").key, "clip_weight");
}

#[test]
fn the_ids_of_one_address_have_one_vote_and_the_workers_behind_a_switch_have_one_each() {
    let behind = |worker| Voter::Behind(WorkerId(worker));
    for (voter, limit) in [(at(9), 20.0), (behind(9), 1e31)] {
        let mut norms = Recent::default();
        (0..3).for_each(|worker| note(&mut norms, NOW, at(worker), 2.0));
        for worker in 100..115 {
            // A party with one socket sends under many ids; a switch sends for many workers.
            note(&mut norms, NOW, if voter == at(9) { voter } else { behind(worker) }, 1e30);
        }
        assert_eq!(norms.limit(Clip::Median(10.0), own(&norms, 50)), Some(limit));
    }
}

#[test]
fn newcomers_do_not_take_the_votes_of_those_at_work() {
    let mut norms = Recent::default();
    let ms = |ms: u64| Instant(1_000_000_000 + ms * 1_000_000);
    for turn in 0..100 {
        // Eight honest workers with a turn of a second, and a hundred strangers that send all the time.
        (0..8).for_each(|worker| note(&mut norms, ms(turn * 1_000), at(worker), 2.0));
        for stranger in 100..200 {
            note(&mut norms, ms(turn * 1_000 + 500), at(stranger), 1e30);
            assert_eq!(norms.limit(Clip::Median(10.0), own(&norms, stranger)), Some(20.0));
        }
    }
}

#[test]
fn who_says_nothing_for_a_minute_gives_way_to_a_newcomer() {
    let s = |s: u64| Instant(s * 1_000_000_000);
    let mut norms = Recent::default();
    (0..15).for_each(|worker| note(&mut norms, s(1), at(worker), 2.0));
    (1..15).for_each(|worker| note(&mut norms, s(30), at(worker), 2.0));
    note(&mut norms, s(60), at(50), 4.0);
    assert_eq!(own(&norms, 50), None, "the newcomer waits");
    note(&mut norms, s(61), at(50), 4.0);
    assert_eq!((own(&norms, 0), own(&norms, 50)), (None, Some(14)), "it has the vote of worker 0");
    assert_eq!(norms.limit(Clip::Median(1.0), own(&norms, 0)), Some(2.0));
    (1..15).for_each(|worker| note(&mut norms, s(61), at(worker), 4.0));
    assert_eq!(
        norms.limit(Clip::Median(1.0), own(&norms, 60)),
        Some(4.0),
        "worker 0 votes no more"
    );
}

#[test]
fn a_reward_that_was_clipped_votes_as_it_was_clipped() {
    let limits = Limits { clip_reward: Clip::Median(10.0), ..Limits::OFF };
    let mut clipping = Clipping::default();
    for worker in [1, 2] {
        clip(&mut clipping, &limits, of(worker, 1.0, 0.0), &[1.0]);
    }
    // Four of six workers lie. If their claims had votes, they would have the median.
    for (liar, most) in [(6, 10.0), (7, 10.0), (8, 110.0), (9, 110.0)] {
        let (_, measured, clipped) = clip(&mut clipping, &limits, of(liar, 1.0, 1e30), &[1.0]);
        assert_eq!((measured.reward, clipped.reward), (most, true), "liar {liar}");
    }
}
