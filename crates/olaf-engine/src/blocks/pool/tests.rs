use super::reference::Reference;
use super::*;
use alloc::vec::Vec;
use proptest::prelude::*;

const NOW: Instant = Instant(1000);

fn bytes(lanes: &[f32]) -> Vec<u8> {
    lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect()
}

fn piece(member: u32, block: u32, lanes: &[u8]) -> Piece<'_> {
    Piece { block, member, holds: 0, contributors: 1, congested: false, deadline: None, lanes }
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
        (&cell.lanes[..], cell.contributors, cell.congested),
        (&[111.0, 222.0][..], 3, true)
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
    assert!(pool.fulfil(0, 8, &bytes(&[8.0, 16.0])), "complete here");
    pool.meet(NOW, &piece(0, 1, &one));
    assert!(pool.fulfil(1, 7, &bytes(&[7.0, 14.0])), "member 1 is missing here");
    assert!(pool.fulfil(2, 6, &bytes(&[6.0, 12.0])), "nobody has sent it here");
    assert_eq!(pool.meet(NOW, &piece(1, 2, &one)), Met::Late);
    assert!(!pool.fulfil(2, 6, &bytes(&[6.0, 12.0])), "it is there");
    assert!(!pool.fulfil(5, 6, &bytes(&[6.0, 12.0])), "too far ahead");
    assert_eq!((pool.counts().summed, pool.counts().late), (3, 1));
}

#[test]
fn what_cannot_be_summed_is_refused_and_leaves_no_trace() {
    let mut pool = Pool::new(2, 2);
    let (one, nan, large) = (bytes(&[1.0]), bytes(&[f32::NAN]), bytes(&[f32::MAX]));
    let refused = |met| match met {
        Met::Refused(reason) => reason,
        other => panic!("{other:?}"),
    };
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
    assert_eq!(pool.meet(NOW, &piece(1, 0, &one)), Met::Complete);
    assert_eq!(pool.counts().refused.values().sum::<u64>(), 7);
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

/// A step of a random run. Blocks are counted from the newest that opened, so that runs get far.
#[derive(Clone, Debug)]
enum Step {
    Piece { member: u32, behind: i64, holds: u32, lanes: Vec<f32>, deadline: Option<u64> },
    Finish { behind: i64 },
    Fulfil { behind: i64, contributors: u32, lanes: Vec<f32> },
    Holds { member: u32, behind: i64 },
    Wait { ns: u64 },
    Close { behind: i64 },
}

fn lanes() -> impl Strategy<Value = Vec<f32>> {
    let lane =
        prop_oneof![12 => (-9i8..9).prop_map(f32::from), 1 => Just(f32::MAX), 1 => Just(f32::NAN)];
    prop_oneof![9 => prop::collection::vec(lane.clone(), 2), 1 => prop::collection::vec(lane, 0..3)]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let behind = || prop_oneof![8 => -1i64..3, 2 => -6i64..9];
    let step = prop_oneof![
        40 => (0u32..4, behind(), prop_oneof![9 => Just(0u32), 1 => 0u32..4], lanes(), prop::option::weighted(0.3, 0u64..9))
            .prop_map(|(member, behind, holds, lanes, deadline)| Step::Piece { member, behind, holds, lanes, deadline }),
        16 => behind().prop_map(|behind| Step::Finish { behind }),
        3 => (behind(), 0u32..5, lanes())
            .prop_map(|(behind, contributors, lanes)| Step::Fulfil { behind, contributors, lanes }),
        3 => (0u32..4, behind()).prop_map(|(member, behind)| Step::Holds { member, behind }),
        8 => (0u64..6).prop_map(|ns| Step::Wait { ns }),
        1 => behind().prop_map(|behind| Step::Close { behind }),
    ];
    prop::collection::vec(step, 1..160)
}

/// Runs the steps in the pool and in its twin, and compares them after each. Returns the newest
/// block.
fn drive(steps: &[Step], slots: u32, members: u32) -> Result<u32, TestCaseError> {
    let mut pool = Pool::new(slots, members);
    let mut twin = Reference::new(slots, members);
    let (mut now, mut newest) = (NOW, 0u32);
    for step in steps {
        let at = |behind: &i64| u32::try_from(i64::from(newest) - behind).unwrap_or(0);
        match step {
            Step::Piece { member, behind, holds, lanes, deadline } => {
                let block = at(behind);
                let lanes = bytes(lanes);
                let deadline = deadline.map(Duration::from_nanos);
                let holds = if *holds == 0 { 0 } else { (block + 2).saturating_sub(*holds) };
                let piece = Piece { holds, deadline, ..piece(*member, block, &lanes) };
                let met = pool.meet(now, &piece);
                prop_assert_eq!(met, twin.meet(now, &piece));
                if matches!(met, Met::Opened | Met::Complete) {
                    newest = newest.max(block);
                }
            }
            Step::Finish { behind } => {
                pool.finish(at(behind));
                twin.finish(at(behind));
            }
            Step::Fulfil { behind, contributors, lanes } => {
                let block = at(behind);
                let taken = pool.fulfil(block, *contributors, &bytes(lanes));
                prop_assert_eq!(taken, twin.fulfil(block, *contributors, lanes));
                if taken {
                    newest = newest.max(block);
                }
            }
            Step::Holds { member, behind } => {
                pool.note_holds(*member, at(behind));
                twin.note_holds(*member, at(behind));
            }
            Step::Wait { ns } => {
                now = now + Duration::from_nanos(*ns);
                loop {
                    let overdue = pool.poll_overdue(now);
                    prop_assert_eq!(overdue, twin.poll_overdue(now));
                    if overdue.is_none() {
                        break;
                    }
                }
            }
            Step::Close { behind } => {
                pool.close(at(behind) + 20);
                twin.close(at(behind) + 20);
            }
        }
        agree(&pool, &twin, slots, members, newest)?;
    }
    Ok(newest)
}

fn agree(
    pool: &Pool,
    twin: &Reference,
    slots: u32,
    members: u32,
    newest: u32,
) -> Result<(), TestCaseError> {
    prop_assert_eq!(pool.next_deadline(), twin.next_deadline());
    prop_assert_eq!(pool.first_incomplete(), twin.first_incomplete());
    let counts = pool.counts();
    prop_assert_eq!(counts.received, counts.settled() + counts.waiting, "{:?}", counts);
    for block in newest.saturating_sub(3 * slots)..newest + 2 * slots {
        for member in 0..=members {
            prop_assert_eq!(pool.asked(member, block), twin.asked(member, block), "{}", block);
        }
        let past = twin.blocks.contains_key(&(block + 2 * slots));
        let known = twin.blocks.get(&block).filter(|_| !past).map(reference::Block::sum);
        let cell = pool.cell(block).map(|cell| (cell.contributors, cell.lanes.to_vec()));
        prop_assert_eq!(cell, known);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: olaf_samples::cases(1000), ..ProptestConfig::default() })]
    #[test]
    fn the_pool_and_its_twin_do_the_same(steps in steps(), slots in 1u32..4, members in 1u32..4) {
        drive(&steps, slots, members)?;
    }
}

#[test]
fn random_runs_use_cells_again() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let runs = 200;
    let reached = (0..runs).filter(|_| {
        let steps = steps().new_tree(&mut runner).expect("a strategy without filters").current();
        drive(&steps, 2, 2).expect("they agree") >= 4
    });
    let reached = reached.count();
    assert!(reached > runs / 5, "{reached} of {runs} runs reached a third round");
}
