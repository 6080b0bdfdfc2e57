//! Traces of pieces, and random steps beside the reference model.

use super::reference::Reference;
use super::*;
use alloc::vec;
use proptest::prelude::*;

fn bytes(floats: &[f32]) -> Vec<u8> {
    floats.iter().flat_map(|float| float.to_le_bytes()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|float| f32::from_le_bytes(*float)).collect()
}

/// The same bits for every NaN.
fn bits(floats: &[f32]) -> Vec<u32> {
    let one = |float: &f32| if float.is_nan() { f32::NAN.to_bits() } else { float.to_bits() };
    floats.iter().map(one).collect()
}

/// Numbers of a random piece: few of them are extreme.
fn number(small: i8) -> f32 {
    match small {
        i8::MAX => f32::NAN,
        i8::MIN => f32::INFINITY,
        100.. => f32::MAX,
        _ => small.into(),
    }
}

/// Sends the first vector of a member.
fn send(table: &mut ByIndex, member: u32, index: u64, float: f32) -> Met {
    send_vector(table, (member, 0), index, float)
}

fn send_vector(table: &mut ByIndex, (member, vector): (u32, u32), index: u64, float: f32) -> Met {
    let floats = &bytes(&[float, 1.0]);
    let piece = Piece { index, member, missing: 0, vector, last: false, congested: false, floats };
    let met = table.meet(&piece);
    if met == Met::Complete {
        table.finish_own(index);
    }
    met
}

fn table(slots: u32, members: usize) -> ByIndex {
    ByIndex::new(slots, vec![1; members])
}

fn result(table: &ByIndex, index: u64) -> Vec<f32> {
    let cell = table.cell(index).expect("the packet has a result");
    assert_eq!(cell.state(), State::Final);
    floats(cell.floats())
}

#[test]
fn h_vectors_complete_a_sum() {
    let mut table = table(4, 3);
    assert_eq!(table.threshold(), 3, "H is the number of members by default");
    assert_eq!(send(&mut table, 0, 0, 1.0), Met::Opened);
    assert_eq!(send(&mut table, 1, 0, 2.0), Met::Added);
    assert_eq!(send(&mut table, 2, 0, 4.0), Met::Complete);
    assert_eq!(result(&table, 0), [7.0, 3.0]);
}

#[test]
fn a_repeated_packet_counts_once() {
    let mut table = table(4, 2);
    send(&mut table, 0, 0, 1.0);
    assert_eq!(send(&mut table, 0, 0, 1.0), Met::Repeated);
    assert_eq!(send(&mut table, 1, 0, 2.0), Met::Complete);
    assert_eq!(send(&mut table, 1, 0, 2.0), Met::Repeated);
    assert_eq!(result(&table, 0), [3.0, 2.0]);
}

#[test]
fn two_vectors_of_a_worker_count_twice_and_each_counts_once() {
    let mut table = table(4, 3);
    assert_eq!(send_vector(&mut table, (0, 1), 0, 1.0), Met::Opened, "it overtook vector 0");
    assert_eq!(send_vector(&mut table, (0, 1), 0, 1.0), Met::Repeated);
    assert_eq!(send_vector(&mut table, (0, 0), 0, 2.0), Met::Added);
    assert_eq!(send_vector(&mut table, (0, 0), 0, 2.0), Met::Repeated);
    assert_eq!(table.ask(0, 0), Asked::Waiting);
    assert_eq!(table.ask(1, 0), Asked::Wanted);
    assert_eq!(send_vector(&mut table, (1, 0), 0, 4.0), Met::Complete);
    assert_eq!(send_vector(&mut table, (2, 0), 0, 8.0), Met::Late);
    assert_eq!(result(&table, 0), [7.0, 3.0]);
    let counts = table.counts();
    assert_eq!((counts.summed, counts.repeated, counts.late), (3, 2, 1));
    // The numbers of one sum say nothing of a later one in the same cell.
    (0..3).for_each(|member| table.note_holds(member, 8));
    for index in 1..8 {
        (0..3).for_each(|member| {
            send(&mut table, member, index, 1.0);
        });
    }
    assert_eq!(send_vector(&mut table, (0, 1), 8, 1.0), Met::Opened);
}

#[test]
fn a_lower_h_completes_sums_that_begin_later() {
    let mut table = table(4, 3);
    send(&mut table, 0, 0, 1.0);
    assert!(table.set_threshold(2));
    assert!(!table.set_threshold(0) && !table.set_threshold(4));
    assert_eq!(send(&mut table, 1, 0, 1.0), Met::Added, "this sum began with H = 3");
    assert_eq!(send(&mut table, 1, 1, 1.0), Met::Opened);
    assert_eq!(send(&mut table, 2, 1, 1.0), Met::Complete);
    assert_eq!(send(&mut table, 0, 1, 9.0), Met::Late);
    assert_eq!(result(&table, 1), [2.0, 2.0]);
    assert_eq!(table.cell(1).map(|cell| cell.contributors), Some(2));
}

#[test]
fn a_forced_sum_goes_without_the_missing() {
    let mut table = table(4, 3);
    assert!(!table.force(0), "it has not begun");
    send(&mut table, 0, 0, 1.0);
    assert!(table.force(0));
    assert!(!table.force(0), "it is over");
    table.finish_own(0);
    assert_eq!(send(&mut table, 1, 0, 2.0), Met::Late);
    assert_eq!(result(&table, 0), [1.0, 1.0]);
    assert_eq!(table.counts().summed, 1);
}

#[test]
fn a_result_stays_until_every_member_holds_it() {
    let mut table = table(1, 2);
    table.set_threshold(1);
    // Member 1 never says that it holds anything.
    assert_eq!(send(&mut table, 0, 0, 1.0), Met::Complete);
    assert_eq!(send(&mut table, 0, 1, 2.0), Met::Complete);
    assert_eq!(send(&mut table, 0, 2, 3.0), Met::Occupied);
    assert_eq!(table.ask(1, 0), Asked::Result);
    table.note_holds(1, 1);
    assert_eq!(send(&mut table, 0, 2, 3.0), Met::Complete);
    assert_eq!(table.ask(1, 0), Asked::Held);
    table.note_holds(1, u64::MAX);
    assert_eq!(table.min_holds(), 2, "member 0 said so with packet 2");
}

#[test]
fn nobody_sends_what_it_cannot_know() {
    let mut table = table(2, 2);
    assert_eq!(send(&mut table, 0, 2, 1.0), Met::Refused(Reason::TooEarly));
    assert_eq!(send(&mut table, 5, 0, 1.0), Met::Refused(Reason::NotAMember));
    send(&mut table, 0, 0, 1.0);
    let floats = &bytes(&[1.0]);
    let piece =
        Piece { index: 0, member: 1, missing: 0, vector: 0, last: false, congested: false, floats };
    assert_eq!(table.meet(&piece), Met::Refused(Reason::WrongSize));
    let floats = &bytes(&[1.0, 1.0]);
    let last = Piece { last: true, floats, ..piece };
    assert_eq!(table.meet(&last), Met::Refused(Reason::Mismatch));
    let empty = Piece { missing: 1, floats, ..piece };
    assert_eq!(table.meet(&empty), Met::Refused(Reason::Impossible));
}

#[test]
fn the_end_of_a_generation_keeps_the_results_before_it() {
    let mut table = table(4, 2);
    for member in 0..2 {
        send(&mut table, member, 0, 1.0);
        send(&mut table, member, 2, 1.0);
    }
    send(&mut table, 0, 1, 1.0);
    assert_eq!(table.first_incomplete(), 1);
    table.close(table.first_incomplete());
    assert_eq!(table.ask(1, 0), Asked::Result);
    assert_eq!(table.ask(1, 2), Asked::Nothing, "nobody may have it");
    assert_eq!(send(&mut table, 1, 1, 1.0), Met::Refused(Reason::Closed));
    assert_eq!(table.counts().given_up, 1);
}

#[test]
fn a_piece_that_is_no_finite_number_is_known_or_refused_without_a_trace() {
    let mut passing = table(4, 3);
    for (member, float, is_finite) in [(0, f32::MAX, true), (1, f32::MAX, false), (2, 1.0, true)] {
        send(&mut passing, member, 0, float);
        assert_eq!(passing.last_piece_was_finite(), is_finite, "member {member}");
    }
    assert_eq!(result(&passing, 0)[0], f32::INFINITY);
    send(&mut passing, 0, 1, f32::NAN);
    assert!(!passing.last_piece_was_finite());
    assert_eq!(send(&mut passing, 0, 1, f32::NAN), Met::Repeated);
    assert!(passing.last_piece_was_finite(), "it is in no sum");

    let mut refusing = table(4, 2);
    refusing.refuse_non_finite(true);
    assert_eq!(send(&mut refusing, 0, 0, f32::NAN), Met::Refused(Reason::NonFinite));
    assert!(refusing.cell(0).is_none());
    assert_eq!(send(&mut refusing, 0, 0, f32::MAX), Met::Opened);
    assert_eq!(send(&mut refusing, 1, 0, f32::MAX), Met::Refused(Reason::NonFinite));
    assert_eq!(refusing.ask(1, 0), Asked::Wanted);
    assert_eq!(send(&mut refusing, 1, 0, -1e38), Met::Complete);
    assert_eq!(result(&refusing, 0), [f32::MAX - 1e38, 2.0]);
    assert_eq!(refusing.cell(0).map(|cell| cell.contributors), Some(2));
}

#[derive(Clone, Debug)]
enum Step {
    Piece { member: u32, index: u64, missing: u32, vector: u32, last: bool, float: i8, short: bool },
    Above { index: u64, contributors: u32, float: i8 },
    Holds { member: u32, holds: u64 },
    Force(u64),
    Threshold(u32),
    Ask { member: u32, index: u64 },
    Close(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let index = || prop_oneof![4 => 0u64..6, 2 => 4u64..14, 1 => 0u64..40];
    prop_oneof![
        30 => (0u32..4, index(), 0u32..40, 0u32..20, any::<i8>(), 0u32..30, 0u32..12).prop_map(
            |(member, index, missing, last, float, short, vector)| Step::Piece {
                member,
                index,
                missing: u32::from(missing == 0) + u32::from(missing < 3),
                vector: vector.saturating_sub(9),
                last: last == 0,
                float,
                short: short == 0,
            }
        ),
        3 => (index(), 1u32..5, any::<i8>())
            .prop_map(|(index, contributors, float)| Step::Above { index, contributors, float }),
        4 => (0u32..4, index()).prop_map(|(member, holds)| Step::Holds { member, holds }),
        2 => index().prop_map(Step::Force),
        1 => (0u32..5).prop_map(Step::Threshold),
        4 => (0u32..4, index()).prop_map(|(member, index)| Step::Ask { member, index }),
        1 => (5u64..40).prop_map(Step::Close),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_steps_end_as_the_slow_reference_says(
        slots in 1u32..4,
        weights in prop::collection::vec(1u32..3, 1..4),
        has_above in any::<bool>(),
        refuses in any::<bool>(),
        steps in prop::collection::vec(step(), 0..150),
    ) {
        let mut table = ByIndex::new(slots, weights.clone());
        let mut reference = Reference::new(slots, weights);
        table.refuse_non_finite(refuses);
        reference.refuse_non_finite(refuses);
        let mut met = alloc::collections::BTreeMap::<_, u64>::new();
        for step in steps {
            let mut summed = None;
            match step {
                Step::Piece { member, index, missing, vector, last, float, short } => {
                    let floats = bytes(&[number(float), 0.5]);
                    let floats = if short { &floats[..4] } else { &floats };
                    let piece = Piece { index, member, missing, vector, last, congested: false, floats };
                    let outcome = table.meet(&piece);
                    prop_assert_eq!(outcome, reference.meet(&piece), "{:?}", piece);
                    prop_assert_eq!(table.last_piece_was_finite(), reference.last_piece_was_finite);
                    *met.entry(alloc::format!("{outcome:?}")).or_default() += 1;
                    summed = (outcome == Met::Complete).then_some(index);
                }
                Step::Above { index, contributors, float } if has_above => {
                    let floats = bytes(&[f32::from(float), 0.25]);
                    let taken = table.finish(index, false, contributors, &floats);
                    prop_assert_eq!(taken, reference.finish(index, false, contributors, &floats));
                }
                Step::Above { .. } => {}
                Step::Holds { member, holds } => {
                    table.note_holds(member, holds);
                    reference.note_holds(member, holds);
                }
                Step::Force(index) => {
                    let forced = table.force(index);
                    prop_assert_eq!(forced, reference.force(index));
                    summed = forced.then_some(index);
                }
                Step::Threshold(h) => {
                    prop_assert_eq!(table.set_threshold(h), reference.set_threshold(h));
                }
                Step::Ask { member, index } => {
                    prop_assert_eq!(table.ask(member, index), reference.ask(member, index));
                }
                Step::Close(end) => {
                    table.close(end);
                    reference.close(end);
                }
            }
            if let Some(index) = summed {
                let cell = table.cell(index).expect("it has just been summed");
                let (contributors, sum) = reference.packets[&index].sum();
                prop_assert_eq!(cell.contributors, contributors);
                prop_assert_eq!(bits(&floats(cell.floats())), bits(&sum));
                if !has_above {
                    table.finish_own(index);
                    reference.finish_own(index);
                }
            }
            prop_assert_eq!(table.first_incomplete(), reference.first_incomplete());
            let counts = table.counts();
            prop_assert_eq!((counts.summed, counts.waiting, counts.given_up), reference.pieces());
            prop_assert_eq!(counts.received, met.values().sum::<u64>());
        }
        for (index, packet) in &reference.packets {
            if let (Some(cell), Some((contributors, floats_of_reference))) = (table.cell(*index), packet.result()) {
                prop_assert_eq!(cell.contributors, *contributors);
                prop_assert_eq!(bits(&floats(cell.floats())), bits(floats_of_reference));
            }
        }
    }
}
