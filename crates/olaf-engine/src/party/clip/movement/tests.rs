use super::super::tests::at;
use super::super::{Clipping, Limits, Measured};
use super::*;
use alloc::vec::Vec;
use proptest::prelude::*;

const LIMITS: Limits =
    Limits { clip_norm: Clip::Median(10.0), max_movement: Clip::Median(3.0), ..Limits::OFF };
const MS: u64 = 1_000_000;

/// A worker: the time between two of its bursts, what a burst has, and the norm of each update.
#[derive(Clone, Copy, Debug)]
struct Worker {
    every_ms: u64,
    burst: u64,
    /// Time between two updates of a burst.
    apart_us: u64,
    begins_ms: u64,
    norm: f32,
}

const HONEST: Worker = Worker { every_ms: 100, burst: 1, apart_us: 0, begins_ms: 0, norm: 3.0 };

/// What became of a worker's updates after the first part.
#[derive(Clone, Copy, Debug, Default)]
struct Moved {
    /// The sum of the norms that were kept.
    norms: f64,
    /// Updates, and those of them that were scaled down.
    updates: u64,
    scaled: u64,
}

/// Lets the workers push for that time; the result counts from `counts_from_ms` on.
fn moved(
    workers: &[Worker],
    limits: &Limits,
    segments: u32,
    (counts_from_ms, ends_ms): (u64, u64),
) -> Vec<Moved> {
    let mut pushes = Vec::new();
    for (id, worker) in workers.iter().enumerate() {
        let bursts = (worker.begins_ms..ends_ms).step_by(worker.every_ms as usize);
        let at = |began_ms: u64, nth: u64| began_ms * MS + nth * worker.apart_us * 1_000;
        pushes.extend(
            bursts.flat_map(|began| (0..worker.burst).map(move |nth| (at(began, nth), id))),
        );
    }
    pushes.sort_unstable();
    let (mut clipping, mut found) =
        (Clipping::default(), alloc::vec![Moved::default(); workers.len()]);
    for (at_ns, id) in pushes {
        let lanes = workers[id].norm.to_le_bytes();
        for segment in 0..segments {
            let mut of = Measured {
                voter: at(id as u32),
                segment: (segment, segments),
                is_direct: true,
                contributors: 1,
                weight: 1.0,
                reward: 0.0,
            };
            let now = Instant(1_000_000_000 + at_ns);
            let kept = clipping.clip(now, limits, &mut of, &lanes, |_| None);
            if at_ns >= counts_from_ms * MS {
                let moved = &mut found[id];
                moved.norms += crate::lanes::length(kept.lanes) / f64::from(segments);
                moved.updates += u64::from(segment == 0);
                moved.scaled += u64::from(kept.clipped.movement);
            }
        }
    }
    found
}

#[test]
fn an_address_that_pushes_long_or_many_updates_moves_the_model_by_a_multiple_of_the_others_alone() {
    // Turns of a tenth of a second, and of six seconds.
    for every_ms in [100, 6_000] {
        let honest = |begins_ms| Worker { every_ms, begins_ms, ..HONEST };
        let others = [honest(0), honest(every_ms / 3), honest(every_ms / 2)];
        let times = (40 * every_ms, 240 * every_ms);
        for segments in [1, 3] {
            for (each_turn, norm) in [(1, 27.0), (10, 27.0), (10, 3.0), (20, 27.0)] {
                let one = Worker { every_ms: every_ms / each_turn, norm, ..HONEST };
                let workers = [others[0], others[1], others[2], one];
                let found = moved(&workers, &LIMITS, segments, times);
                assert!(found[..3].iter().all(|one| one.scaled == 0), "{found:?}");
                let times_as_far = found[3].norms / found[0].norms;
                // It is slowed, not shut out.
                assert!((2.7..3.6).contains(&times_as_far), "{one:?}: {times_as_far} {found:?}");
                let without = Limits { max_movement: Clip::Off, ..LIMITS };
                let found = moved(&workers, &without, segments, times);
                assert!(found[3].norms / found[0].norms > 8.9, "{one:?}: {found:?}");
            }
        }
    }
}

#[test]
fn what_comes_at_once_is_a_few_turns_of_the_others() {
    let attacker =
        Worker { every_ms: 30_000, burst: 1_000, apart_us: 10, norm: 27.0, begins_ms: 0 };
    let workers = [HONEST, HONEST, HONEST, attacker];
    // One burst is counted.
    let found = moved(&workers, &LIMITS, 1, (20_000, 40_000));
    let steps = found[3].norms / f64::from(HONEST.norm);
    assert!((22.0..32.0).contains(&steps), "{found:?}");
}

#[test]
fn an_address_that_nobody_is_beside_is_not_scaled_down() {
    let one = Worker { every_ms: 5, norm: 100.0, ..HONEST };
    assert_eq!(moved(&[one], &LIMITS, 1, (0, 20_000))[0].scaled, 0);
}

#[test]
fn a_number_is_of_usual_steps_a_second() {
    let limits = Limits { max_movement: Clip::At(5.0), ..LIMITS };
    let one = Worker { norm: 6.0, ..HONEST };
    let [.., found] = moved(&[HONEST, HONEST, one], &limits, 1, (5_000, 25_000))[..] else {
        panic!("three workers")
    };
    // 5 a second for 20 s: what is kept decays a little faster between two updates than the sum says.
    assert!((92.0..103.0).contains(&(found.norms / f64::from(HONEST.norm))), "{found:?}");
}

#[test]
fn a_newcomer_is_neither_limited_nor_a_limit_by_its_first_steps() {
    // Three workers join one that has trained alone for long, and begin with a pause.
    let late = |begins_ms| Worker { begins_ms, ..HONEST };
    let workers = [HONEST, late(20_000), late(20_010), late(20_033)];
    let found = moved(&workers, &LIMITS, 1, (0, 40_000));
    assert!(found.iter().all(|one| one.scaled == 0), "{found:?}");
}

#[test]
fn votes_of_a_shorter_window_are_no_measure() {
    // The first window is short, because nobody knows yet what a turn takes. The second worker's vote is of that time.
    let worker =
        |begins_ms, norm| Worker { every_ms: 661, burst: 27, apart_us: 0, begins_ms, norm };
    let found = moved(&[worker(270, 2.5), worker(0, 2.909)], &LIMITS, 1, (0, 12_000));
    assert!(found.iter().all(|one| one.scaled == 0), "{found:?}");
}

#[test]
fn what_a_switch_merged_is_no_movement_of_its_address() {
    let mut clipping = Clipping::default();
    let mut scaled = 0;
    for turn in 0..200u64 {
        for (id, is_direct, pushes) in [(1, true, 1), (2, true, 1), (3, true, 1), (4, false, 20)] {
            for push in 0..pushes {
                let mut of = Measured { is_direct, ..super::super::tests::of(id, 1.0, 0.0) };
                let now = Instant(turn * 100 * MS + push * MS);
                let lanes = 20f32.to_le_bytes();
                let kept = clipping.clip(now, &LIMITS, &mut of, &lanes, |_| None);
                scaled += u64::from(kept.clipped.movement);
            }
        }
    }
    assert_eq!(scaled, 0);
}

#[test]
fn addresses_that_left_are_forgotten() {
    let mut movement = Movement::default();
    for number in 0..200_000u32 {
        let of = Move { by: at(number), steps: 1.0, turns: 1 };
        let now = Instant(u64::from(number) * 100 * MS);
        movement.kept(now, Clip::Median(4.0), of, &mut Hints::default());
        assert!(movement.addresses.len() < 3 * ADDRESSES);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: olaf_samples::cases(2000), ..ProptestConfig::default() })]

    /// Workers whose norms differ by a fifth, and whose updates come in bursts, at any time beside one another's: fast senders on a busy host.
    #[test]
    fn equal_workers_are_never_scaled_down(
        every_ms in 1u64..3_000,
        burst in 1u64..=64,
        apart_us in 0u64..200,
        others in prop::collection::vec((0u64..3_000, 2.5f32..3.0), 2..8),
    ) {
        let workers: Vec<Worker> = others
            .iter()
            .map(|(begins_ms, norm)| Worker { every_ms, burst, apart_us, begins_ms: *begins_ms, norm: *norm })
            .collect();
        let found = moved(&workers, &LIMITS, 1, (0, 12 * every_ms.max(1_000)));
        prop_assert!(found.iter().all(|one| one.scaled == 0), "{:?}", found);
    }

    /// Machines of different speed, within the multiple.
    #[test]
    fn machines_twice_as_fast_as_the_median_are_never_scaled_down(
        turn_ms in 20u64..2_000,
        workers in prop::collection::vec((1.0f64..2.0, 2.0f32..3.0, 0u64..500), 3..8),
    ) {
        let workers: Vec<Worker> = workers
            .iter()
            .map(|(speed, norm, begins_ms)| Worker {
                every_ms: (turn_ms as f64 / speed) as u64,
                norm: *norm,
                begins_ms: *begins_ms,
                ..HONEST
            })
            .collect();
        let found = moved(&workers, &LIMITS, 1, (0, 40 * turn_ms));
        prop_assert!(found.iter().all(|one| one.scaled == 0), "{:?}", found);
    }
}
