use super::reference::{Number, Outcome, Reference};
use super::*;
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::*;

const NOW: Instant = Instant(1000);

fn bytes(lanes: &[f32]) -> Vec<u8> {
    lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect()
}

fn piece(member: u32, block: u32, lanes: &[u8]) -> Piece<'_> {
    Piece {
        block,
        member,
        holds: 0,
        contributors: 1,
        congested: false,
        not_finite: false,
        deadline: None,
        lane_type: LaneType::F32,
        operator: Operator::Sum,
        lanes,
    }
}

const ABOUT: About = About {
    lane_type: LaneType::F32,
    operator: Operator::Sum,
    not_finite: false,
    congested: false,
};

fn result(cell: &Cell) -> Vec<u8> {
    let mut lanes = vec![0; cell.result_bytes()];
    cell.write_result(&mut lanes);
    lanes
}

fn refused(met: Met) -> Reason {
    match met {
        Met::Refused(reason) => reason,
        other => panic!("{other:?}"),
    }
}

/// All members send their piece of a block, which becomes its result.
fn whole(pool: &mut Pool, members: u32, block: u32) {
    let one = bytes(&[1.0, 2.0]);
    for member in 0..members {
        pool.meet(NOW, &piece(member, block, &one));
    }
    pool.finish(block);
    assert_eq!(pool.cell(block).map(Cell::state), Some(State::Final));
}

#[test]
fn a_block_is_the_sum_of_its_pieces() {
    let mut pool = Pool::new(4, 3);
    let lanes = [bytes(&[1.0, 2.0]), bytes(&[10.0, 20.0]), bytes(&[100.0, 200.0])];
    assert_eq!(pool.meet(NOW, &piece(2, 0, &lanes[0])), Met::Opened);
    assert_eq!(pool.meet(NOW, &Piece { congested: true, ..piece(0, 0, &lanes[1]) }), Met::Added);
    assert_eq!(pool.meet(NOW, &piece(0, 0, &lanes[1])), Met::Repeated, "one piece a member");
    assert_eq!(pool.asked(1, 0), Asked::Wanted);
    assert_eq!(pool.asked(0, 0), Asked::Waiting);
    assert_eq!(pool.meet(NOW, &piece(1, 0, &lanes[2])), Met::Complete);
    let cell = pool.cell(0).expect("it is there");
    assert_eq!(
        (result(cell), cell.lane_count(), cell.contributors, cell.congested),
        (bytes(&[111.0, 222.0]), 2, 3, true)
    );
    pool.finish(0);
    assert_eq!(pool.asked(0, 0), Asked::Result);
    assert_eq!(pool.counts().summed, 3);
}

#[test]
fn a_result_stays_until_its_cell_is_needed_two_rounds_later() {
    let mut pool = Pool::new(4, 2);
    let one = bytes(&[1.0, 2.0]);
    whole(&mut pool, 2, 1);
    assert_eq!(pool.meet(NOW, &piece(0, 5, &one)), Met::Opened);
    assert_eq!(pool.meet(NOW, &piece(1, 1, &one)), Met::Repeated, "its result was lost");
    assert_eq!(pool.asked(1, 1), Asked::Result);
    assert_eq!(pool.meet(NOW, &piece(0, 9, &one)), Met::Refused(Reason::TooEarly));
    assert_eq!(pool.meet(NOW, &piece(1, 5, &one)), Met::Complete);
    assert_eq!(pool.meet(NOW, &piece(0, 9, &one)), Met::Refused(Reason::TooEarly), "no result yet");
    pool.finish(5);
    assert_eq!(pool.meet(NOW, &piece(0, 9, &one)), Met::Opened);
    assert_eq!(pool.meet(NOW, &piece(1, 1, &one)), Met::Held, "who sent 5 holds 1");
}

#[test]
fn after_a_partial_sum_its_cell_waits_for_the_straggler() {
    let mut pool = Pool::new(1, 2);
    let one = bytes(&[1.0, 2.0]);
    let soon = |block| Piece { deadline: Some(Duration::from_nanos(10)), ..piece(0, block, &one) };
    for block in 0..2 {
        assert_eq!(pool.meet(NOW, &soon(block)), Met::Opened);
        assert_eq!(pool.poll_overdue(NOW), None);
        assert_eq!(pool.poll_overdue(NOW + Duration::from_nanos(10)), Some(block));
        pool.finish(block);
    }
    // Member 1 may lack the result of block 0, whose cell block 2 would take.
    assert_eq!(pool.meet(NOW, &soon(2)), Met::Occupied);
    assert_eq!(pool.meet(NOW, &piece(1, 0, &one)), Met::Late);
    assert_eq!(pool.meet(NOW, &soon(2)), Met::Occupied);
    pool.note_holds(1, 1);
    assert_eq!(pool.meet(NOW, &soon(2)), Met::Opened);
    assert_eq!(pool.next_deadline(), Some(NOW + Duration::from_nanos(10)));
}

#[test]
fn a_lower_switch_takes_the_result_from_above_whether_its_own_sum_is_complete_or_not() {
    let mut pool = Pool::new(2, 2);
    let one = bytes(&[1.0, 2.0]);
    pool.meet(NOW, &piece(0, 0, &one));
    pool.meet(NOW, &piece(1, 0, &one));
    assert!(pool.fulfil(0, 8, &bytes(&[8.0, 16.0]), &ABOUT), "complete here");
    pool.meet(NOW, &piece(0, 1, &one));
    assert!(pool.fulfil(1, 7, &bytes(&[7.0, 14.0]), &ABOUT), "member 1 is missing here");
    assert!(pool.fulfil(2, 6, &bytes(&[6.0, 12.0]), &ABOUT), "nobody has sent it here");
    assert_eq!(pool.meet(NOW, &piece(1, 2, &one)), Met::Late);
    assert!(!pool.fulfil(2, 6, &bytes(&[6.0, 12.0]), &ABOUT), "it is there");
    assert!(!pool.fulfil(5, 6, &bytes(&[6.0, 12.0]), &ABOUT), "too far ahead");
    assert_eq!((pool.counts().summed, pool.counts().late), (3, 1));
}

#[test]
fn what_cannot_be_summed_is_refused_and_leaves_no_trace() {
    let mut pool = Pool::new(2, 2);
    pool.refuse_non_finite(true);
    let (one, nan, large) = (bytes(&[1.0]), bytes(&[f32::NAN]), bytes(&[f32::MAX]));
    assert_eq!(refused(pool.meet(NOW, &piece(0, 0, &nan))), Reason::NonFinite);
    assert_eq!(refused(pool.meet(NOW, &piece(2, 0, &one))), Reason::NotAMember);
    assert_eq!(
        refused(pool.meet(NOW, &Piece { contributors: 0, ..piece(0, 0, &one) })),
        Reason::Impossible
    );
    assert_eq!(
        refused(pool.meet(NOW, &Piece { holds: 1, ..piece(0, 0, &one) })),
        Reason::Impossible
    );
    assert_eq!(refused(pool.meet(NOW, &piece(0, u32::MAX - 1, &one))), Reason::TooEarly);
    assert_eq!(pool.meet(NOW, &piece(0, 0, &large)), Met::Opened);
    assert_eq!(
        refused(pool.meet(NOW, &piece(1, 0, &large))),
        Reason::NonFinite,
        "the sum overflows"
    );
    assert_eq!(refused(pool.meet(NOW, &piece(1, 0, &bytes(&[1.0, 1.0])))), Reason::WrongSize);
    assert_eq!(refused(pool.meet(NOW, &piece(1, 0, &bytes(&[1.0])[..3]))), Reason::WrongSize);
    let whole = Piece { lane_type: LaneType::I32, ..piece(1, 0, &one) };
    assert_eq!(refused(pool.meet(NOW, &whole)), Reason::Mismatch);
    let max = Piece { operator: Operator::Max, ..piece(1, 0, &one) };
    assert_eq!(refused(pool.meet(NOW, &max)), Reason::Mismatch);
    let marked = Piece { not_finite: true, ..piece(1, 0, &one) };
    assert_eq!(refused(pool.meet(NOW, &marked)), Reason::NonFinite, "a lower switch says so");
    assert!(pool.last_piece_was_finite(), "it has no effect");
    assert_eq!(pool.meet(NOW, &piece(1, 0, &one)), Met::Complete);
    assert_eq!(pool.cell(0).map(result), Some(large));
    assert_eq!(pool.counts().refused.values().sum::<u64>(), 11);
}

#[test]
fn a_piece_that_is_not_finite_is_summed_and_its_member_named() {
    let mut pool = Pool::new(2, 4);
    let (one, nan) = (bytes(&[1.0, 2.0]), bytes(&[f32::NAN, 2.0]));
    pool.meet(NOW, &piece(3, 0, &one));
    assert!(pool.last_piece_was_finite());
    assert_eq!(pool.meet(NOW, &piece(1, 0, &nan)), Met::Added);
    assert!(!pool.last_piece_was_finite());
    pool.meet(NOW, &piece(0, 0, &one));
    assert!(pool.last_piece_was_finite(), "that piece is, although the sum is not");
    assert_eq!(pool.meet(NOW, &piece(2, 0, &nan)), Met::Complete);
    assert!(!pool.last_piece_was_finite());
    let cell = pool.cell(0).expect("it is there");
    assert_eq!((cell.not_finite(), cell.first_not_finite()), (true, Some(1)));
    // What follows in the same cell is as fine as its pieces.
    pool.finish(0);
    for member in 0..4 {
        pool.meet(NOW, &piece(member, 2, &one));
    }
    pool.finish(2);
    pool.meet(NOW, &piece(0, 4, &one));
    assert!(!pool.cell(4).expect("it opened").not_finite());
}

#[test]
fn a_sum_of_halves_that_overflows_when_it_is_rounded_is_not_finite() {
    let mut pool = Pool::new(1, 2);
    let large = half::f16::MAX.to_le_bytes();
    let piece = |member| Piece { lane_type: LaneType::F16, ..piece(member, 0, &large) };
    pool.meet(NOW, &piece(1));
    assert_eq!(pool.meet(NOW, &piece(0)), Met::Complete);
    assert!(!pool.last_piece_was_finite());
    let cell = pool.cell(0).expect("it is there");
    assert_eq!((cell.not_finite(), cell.first_not_finite()), (true, Some(0)));
    assert_eq!(result(cell), half::f16::INFINITY.to_le_bytes());
}

#[test]
fn one_piece_completes_a_broadcast() {
    let mut pool = Pool::new(2, 3);
    let lanes = bytes(&[1.0, 2.0]);
    let piece = |member| Piece { operator: Operator::Broadcast, ..piece(member, 0, &lanes) };
    assert_eq!(pool.meet(NOW, &piece(1)), Met::Complete);
    assert_eq!(pool.meet(NOW, &piece(2)), Met::Refused(Reason::Mismatch), "there is one root");
    assert_eq!(pool.meet(NOW, &piece(1)), Met::Repeated);
    assert_eq!(pool.asked(0, 0), Asked::Waiting);
    pool.finish(0);
    assert_eq!(pool.asked(0, 0), Asked::Result);
    assert_eq!((pool.cell(0).map(result), pool.next_deadline()), (Some(lanes.clone()), None));
    assert_eq!(pool.min_holds(), 0);
    for member in 0..3 {
        pool.note_holds(member, 1);
    }
    assert_eq!(pool.min_holds(), 1);
}

#[test]
fn a_generation_that_ends_gives_up_what_waits_and_keeps_its_results() {
    let mut pool = Pool::new(4, 2);
    let one = bytes(&[1.0, 2.0]);
    whole(&mut pool, 2, 0);
    pool.meet(NOW, &Piece { deadline: Some(Duration::from_secs(1)), ..piece(0, 1, &one) });
    pool.meet(NOW, &piece(0, 2, &one));
    assert_eq!(pool.first_incomplete(), 1);
    pool.close(1);
    assert_eq!(pool.meet(NOW, &piece(1, 1, &one)), Met::Refused(Reason::Closed));
    assert_eq!((pool.asked(1, 0), pool.asked(1, 1)), (Asked::Result, Asked::Nothing));
    assert_eq!((pool.counts().given_up, pool.next_deadline()), (2, None));
}

#[test]
fn a_block_that_was_given_up_does_not_bring_back_the_one_before_it() {
    let mut pool = Pool::new(1, 2);
    let one = bytes(&[1.0, 2.0]);
    whole(&mut pool, 2, 0);
    whole(&mut pool, 2, 1);
    pool.meet(NOW, &Piece { holds: 2, ..piece(0, 2, &one) });
    pool.note_holds(1, 1);
    assert_eq!(pool.meet(NOW, &piece(1, 0, &one)), Met::Held);
    pool.close(2);
    assert_eq!(pool.meet(NOW, &piece(1, 0, &one)), Met::Held, "its sum left long ago");
    assert!(!pool.fulfil(0, 2, &one, &ABOUT));
}

#[test]
fn a_result_that_every_member_holds_gives_its_memory_to_the_next_block() {
    let mut pool = Pool::new(8, 2);
    whole(&mut pool, 2, 0);
    pool.note_holds(0, 1);
    assert!(pool.cell(0).is_some(), "member 1 may ask for it");
    pool.note_holds(1, 1);
    assert!(pool.cell(0).is_none());
    assert_eq!((pool.asked(1, 0), pool.free.len()), (Asked::Held, 1));
    let one = bytes(&[1.0, 2.0]);
    assert_eq!(pool.meet(NOW, &piece(1, 0, &one)), Met::Held);
    assert!(!pool.fulfil(0, 2, &one, &ABOUT), "it was there");
    whole(&mut pool, 2, 1);
    assert!(pool.free.is_empty());
    assert_eq!(pool.cell(1).map(result), Some(bytes(&[2.0, 4.0])));
}

/// A step of a random run. Blocks are counted from the newest that opened, so that runs get far.
#[derive(Clone, Debug)]
enum Step {
    Piece {
        member: u32,
        behind: i64,
        holds: u32,
        lanes: Vec<u8>,
        deadline: Option<u64>,
        says: Says,
    },
    Finish {
        behind: i64,
    },
    Fulfil {
        behind: i64,
        contributors: u32,
        lanes: Vec<u8>,
        says: Says,
    },
    Holds {
        member: u32,
        behind: i64,
    },
    Wait {
        ns: u64,
    },
    GoWithout {
        behind: i64,
    },
    Close {
        behind: i64,
    },
}

/// What a piece or a result says of its lanes.
#[derive(Clone, Copy, Debug)]
struct Says {
    /// Steps from the run's own lane type and operator to those of the piece: mostly none.
    others: usize,
    not_finite: bool,
    congested: bool,
}

/// What all pieces of a run have in common, but for a few.
#[derive(Clone, Copy, Debug)]
struct Run {
    slots: u32,
    members: u32,
    refuses_non_finite: bool,
    shape: usize,
}

impl Run {
    /// The lane type and the operator of a piece. Blocks differ in the operator, so that some are
    /// broadcasts.
    fn shape(&self, block: u32, says: Says) -> (LaneType, Operator) {
        let shape = self.shape + says.others + 5 * (block as usize % 4);
        (LaneType::EACH[shape % 5], Operator::EACH[shape / 5 % 4])
    }
}

fn runs() -> impl Strategy<Value = Run> {
    (1u32..4, 1u32..4, any::<bool>(), 0usize..20).prop_map(
        |(slots, members, refuses_non_finite, shape)| Run {
            slots,
            members,
            refuses_non_finite,
            shape,
        },
    )
}

/// Sixteen bytes: whole lanes of any type, and of the floating-point types often large or not finite.
fn lanes() -> impl Strategy<Value = Vec<u8>> {
    let words = prop_oneof![
        // Small numbers: of an f16, a bf16, an f32, and of the integers.
        12 => prop::sample::select(vec![0x3c00_3c00u32, 0x3f80_3f80, 0x4000_0000, 7, u32::MAX]),
        3 => prop::sample::select(vec![0x7bff_7bffu32, 0x7f7f_7f7f, 0x7f7f_ffff, 0x7fff_ffff]),
        1 => prop::sample::select(vec![0x7c00_0000u32, 0x7f80_0000, 0x7fc0_7e00, 0xff80_0001]),
        2 => any::<u32>(),
    ];
    let lanes = prop::collection::vec(words, 4)
        .prop_map(|words| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
    let others = prop::sample::select(vec![0usize, 3, 6, 8, 12]);
    (lanes, prop_oneof![12 => Just(16), 1 => others]).prop_map(|(mut lanes, len)| {
        lanes.truncate(len);
        lanes
    })
}

fn says() -> impl Strategy<Value = Says> {
    let others = prop_oneof![20 => Just(0usize), 1 => 1usize..20];
    let rarely = prop::bool::weighted(0.05);
    (others, rarely, rarely).prop_map(|(others, not_finite, congested)| Says {
        others,
        not_finite,
        congested,
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let behind = || prop_oneof![8 => -1i64..3, 2 => -6i64..9];
    let step = prop_oneof![
        40 => (0u32..4, behind(), prop_oneof![9 => Just(0u32), 1 => 0u32..4], lanes(), prop::option::weighted(0.3, 0u64..9), says())
            .prop_map(|(member, behind, holds, lanes, deadline, says)| Step::Piece { member, behind, holds, lanes, deadline, says }),
        16 => behind().prop_map(|behind| Step::Finish { behind }),
        3 => (behind(), 0u32..5, lanes(), says())
            .prop_map(|(behind, contributors, lanes, says)| Step::Fulfil { behind, contributors, lanes, says }),
        3 => (0u32..4, behind()).prop_map(|(member, behind)| Step::Holds { member, behind }),
        8 => (0u64..6).prop_map(|ns| Step::Wait { ns }),
        2 => behind().prop_map(|behind| Step::GoWithout { behind }),
        1 => prop_oneof![6 => Just(-20i64), 1 => behind()].prop_map(|behind| Step::Close { behind }),
    ];
    prop::collection::vec(step, 1..160)
}

/// Runs the steps in the pool and in its reference model, and compares them after each. Returns the newest
/// block.
fn drive(steps: &[Step], run: Run) -> Result<u32, TestCaseError> {
    let Run { slots, members, refuses_non_finite, .. } = run;
    let mut pool = Pool::new(slots, members);
    pool.refuse_non_finite(refuses_non_finite);
    let mut reference = Reference::new(slots, members, refuses_non_finite);
    let (mut now, mut newest) = (NOW, 0u32);
    for step in steps {
        let at = |behind: &i64| u32::try_from(i64::from(newest) - behind).unwrap_or(0);
        match step {
            Step::Piece { member, behind, holds, lanes, deadline, says } => {
                let block = at(behind);
                let (lane_type, operator) = run.shape(block, *says);
                let Says { not_finite, congested, .. } = *says;
                let piece = Piece {
                    block,
                    member: *member,
                    holds: if *holds == 0 { 0 } else { (block + 2).saturating_sub(*holds) },
                    contributors: 1,
                    congested,
                    not_finite,
                    deadline: deadline.map(Duration::from_nanos),
                    lane_type,
                    operator,
                    lanes,
                };
                let met = pool.meet(now, &piece);
                prop_assert_eq!(met, reference.meet(now, &piece));
                prop_assert_eq!(pool.last_piece_was_finite(), reference.last_was_finite);
                if matches!(met, Met::Opened | Met::Complete) {
                    newest = newest.max(block);
                }
            }
            Step::Finish { behind } => {
                pool.finish(at(behind));
                reference.finish(at(behind));
            }
            Step::Fulfil { behind, contributors, lanes, says } => {
                let block = at(behind);
                let (lane_type, operator) = run.shape(block, *says);
                let Says { not_finite, congested, .. } = *says;
                let about = About { lane_type, operator, not_finite, congested };
                let taken = pool.fulfil(block, *contributors, lanes, &about);
                prop_assert_eq!(taken, reference.fulfil(block, *contributors, lanes, &about));
                if taken {
                    newest = newest.max(block);
                }
            }
            Step::Holds { member, behind } => {
                pool.note_holds(*member, at(behind));
                reference.note_holds(*member, at(behind));
            }
            Step::Wait { ns } => {
                now = now + Duration::from_nanos(*ns);
                loop {
                    let overdue = pool.poll_overdue(now);
                    prop_assert_eq!(overdue, reference.poll_overdue(now));
                    if overdue.is_none() {
                        break;
                    }
                }
            }
            Step::GoWithout { behind } => {
                let block = at(behind);
                prop_assert_eq!(pool.go_without(block), reference.go_without(block));
            }
            Step::Close { behind } => {
                pool.close(at(behind));
                reference.close(at(behind));
            }
        }
        agree(&pool, &reference, slots, members, newest)?;
    }
    Ok(newest)
}

fn agree(
    pool: &Pool,
    reference: &Reference,
    slots: u32,
    members: u32,
    newest: u32,
) -> Result<(), TestCaseError> {
    prop_assert_eq!(pool.next_deadline(), reference.next_deadline());
    prop_assert_eq!(pool.first_incomplete(), reference.first_incomplete());
    let counts = pool.counts();
    prop_assert_eq!(counts.received, counts.settled() + counts.waiting, "{:?}", counts);
    for block in newest.saturating_sub(3 * slots)..newest + 2 * slots {
        for member in 0..=members {
            prop_assert_eq!(pool.asked(member, block), reference.asked(member, block), "{}", block);
        }
        let known = reference.blocks.get(&block).filter(|_| !reference.is_past(block));
        // Its lanes are gone once every member holds them.
        let known = known.filter(|_| pool.cell(block).is_some() || reference.min_holds() <= block);
        prop_assert_eq!(pool.cell(block).is_some(), known.is_some(), "{}", block);
        if let (Some(cell), Some(known)) = (pool.cell(block), known) {
            has_outcome(cell, &known.outcome(), known.lane_type)?;
        }
    }
    prop_assert_eq!(pool.min_holds(), reference.min_holds());
    Ok(())
}

fn has_outcome(cell: &Cell, outcome: &Outcome, lane_type: LaneType) -> Result<(), TestCaseError> {
    let Outcome { contributors, congested, not_finite, first_not_finite, lanes } = outcome;
    prop_assert_eq!((cell.contributors, cell.congested), (*contributors, *congested));
    prop_assert_eq!((cell.not_finite(), cell.first_not_finite()), (*not_finite, *first_not_finite));
    // The bits of a NaN are not compared: they depend on the processor.
    let seen = |bytes: &[u8]| -> Vec<(bool, Vec<u8>)> {
        let lanes = Number::read(lane_type, bytes).into_iter();
        lanes
            .map(|lane| match lane {
                Number::Float(lane) if lane.is_nan() => (true, vec![]),
                lane => (false, lane.write(lane_type)),
            })
            .collect()
    };
    let expected: Vec<u8> = lanes.iter().flat_map(|lane| lane.write(lane_type)).collect();
    prop_assert_eq!(seen(&result(cell)), seen(&expected));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: olaf_samples::cases(1000), ..ProptestConfig::default() })]
    #[test]
    fn the_pool_and_its_reference_do_the_same(steps in steps(), run in runs()) {
        drive(&steps, run)?;
    }
}

#[test]
fn random_runs_use_cells_again() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let runs = 200;
    let run = Run { slots: 2, members: 2, refuses_non_finite: false, shape: 0 };
    let reached = (0..runs).filter(|_| {
        let steps = steps().new_tree(&mut runner).expect("a strategy without filters").current();
        drive(&steps, run).expect("they agree") >= 4
    });
    let reached = reached.count();
    assert!(reached > runs / 5, "{reached} of {runs} runs reached a third round");
}
