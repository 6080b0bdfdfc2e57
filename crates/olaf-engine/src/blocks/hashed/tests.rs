//! The table beside its reference model, and the flow charts of the paper step by step.

use super::reference::{self, Reference};
use super::*;
use proptest::prelude::*;

const NOW: Instant = Instant(1_000_000_000);
const AGE: Duration = Duration::from_millis(100);

fn id(sequence: u16) -> Id {
    let key = Key::new(1, 0, 0);
    Id { job: 1, server: 0, place: 0, sequence, key, tensor_length: 2, values: 2 }
}

fn values(lane: i32) -> [u8; 8] {
    let mut bytes = [0; 8];
    saturating::write(&[lane, -lane], &mut bytes);
    bytes
}

fn piece<'a>(sequence: u16, worker: u32, values: &'a [u8; 8]) -> Piece<'a> {
    Piece {
        id: id(sequence),
        index: u32::from(sequence),
        bitmap: 1 << worker,
        fan_in: 2,
        ecn: false,
        resend: false,
        is_first_level: true,
        values,
    }
}

fn table() -> Hashed {
    Hashed::new(4, 1 << 20, AGE)
}

#[test]
fn the_last_piece_completes_the_sum_and_the_parameter_packet_frees_the_cell() {
    let mut table = table();
    assert_eq!(table.meet(NOW, &piece(1, 0, &values(3))), Met::Kept);
    assert_eq!(table.meet(NOW, &piece(1, 0, &values(3))), Met::Repeated);
    assert_eq!(table.meet(NOW, &piece(1, 1, &values(4))), Met::Complete);
    let sum = table.aggregator(1).expect("it is there until its parameter packet");
    assert_eq!((sum.bitmap, sum.value.as_slice()), (3, [7, -7].as_slice()));
    table.release(NOW, 1, &id(1));
    assert_eq!((table.used(), table.bytes()), (0, 0));
    assert_eq!(table.meet(NOW, &piece(1, 0, &values(3))), Met::Late, "it takes no cell again");
    let counts = table.counts();
    assert_eq!((counts.summed, counts.repeated, counts.late), (2, 1, 1));
}

#[test]
fn a_cell_in_use_sends_other_fragments_on() {
    let mut table = table();
    assert_eq!(table.meet(NOW, &piece(1, 0, &values(3))), Met::Kept);
    assert_eq!(table.meet(NOW, &piece(5, 0, &values(9))), Met::Occupied);
    let other_length = Id { tensor_length: 3, ..id(1) };
    let four = values(4);
    let misfit = Piece { id: other_length, ..piece(1, 1, &four) };
    assert_eq!(table.meet(NOW, &misfit), Met::Occupied, "another tensor is another fragment");
    table.release(NOW, 5, &id(5));
    assert_eq!(table.used(), 1, "the owner is not too old");
    table.release(NOW + AGE, 5, &id(5));
    assert_eq!((table.used(), table.counts().aged), (0, 1));
    assert_eq!(table.meet(NOW, &piece(1, 1, &values(4))), Met::Pass, "the server needs the rest");
}

#[test]
fn a_resent_piece_takes_the_sum_along_at_the_first_level() {
    let mut table = table();
    let (three, four) = (values(3), values(4));
    table.meet(NOW, &piece(1, 0, &three));
    let resent = Piece { resend: true, ..piece(1, 1, &four) };
    let Met::Flushed(sum) = table.meet(NOW, &resent) else { panic!("it leaves with the sum") };
    assert_eq!((sum.bitmap, sum.value.as_slice()), (3, [7, -7].as_slice()));
    assert_eq!(table.meet(NOW, &resent), Met::Pass, "the next one goes on alone");
    assert_eq!(table.meet(NOW, &piece(1, 0, &three)), Met::Pass, "and so does a late first one");
    assert_eq!(table.used(), 0);
}

#[test]
fn a_resent_piece_throws_the_sum_away_at_the_second_level() {
    let mut table = table();
    let (three, four) = (values(3), values(4));
    table.meet(NOW, &Piece { is_first_level: false, ..piece(1, 0, &three) });
    let resent = Piece { resend: true, is_first_level: false, ..piece(1, 1, &four) };
    assert_eq!(table.meet(NOW, &resent), Met::Pass);
    assert_eq!((table.used(), table.counts().discarded, table.counts().passed), (0, 1, 1));
}

#[test]
fn congestion_stays_in_the_sum() {
    let mut table = table();
    let marked = Piece { ecn: true, ..piece(1, 0, &[0; 8]) };
    table.meet(NOW, &piece(1, 0, &values(1)));
    table.meet(NOW, &marked);
    assert!(table.aggregator(1).expect("it waits").ecn, "also of a piece that was dropped");
}

#[test]
fn sums_take_no_more_memory_than_allowed() {
    let mut table = Hashed::new(64, 24, AGE);
    let mets: Vec<Met> =
        (0..4).map(|sequence| table.meet(NOW, &piece(sequence, 0, &values(1)))).collect();
    assert_eq!(mets, [Met::Kept, Met::Kept, Met::Kept, Met::Occupied]);
    assert_eq!((table.bytes(), table.counts().without_memory), (24, 1));
    table.give_up(1, 0, Some(1));
    assert_eq!(table.used(), 3, "they are of the generation that stays");
    table.give_up(1, 0, Some(2));
    assert_eq!((table.used(), table.bytes(), table.counts().given_up), (0, 0, 3));
}

#[derive(Clone, Debug)]
enum Step {
    Piece {
        id: Id,
        index: u32,
        bitmap: u32,
        fan_in: u8,
        ecn: bool,
        resend: bool,
        first: bool,
        lanes: [i32; 2],
    },
    Release {
        id: Id,
        index: u32,
    },
    GiveUp {
        job: u16,
        but: Option<u16>,
    },
    Wait(u64),
}

fn ids() -> impl Strategy<Value = Id> {
    (0u16..2, 0u16..4, 1u16..3, 2u32..4).prop_map(|(job, sequence, generation, tensor_length)| Id {
        job,
        key: Key::new(generation, 0, 0),
        tensor_length,
        ..id(sequence)
    })
}

fn lanes() -> impl Strategy<Value = i32> {
    prop_oneof![-5i32..5, Just(i32::MAX), Just(i32::MIN), Just(2_000_000_000), Just(-2_000_000_000)]
}

fn steps() -> impl Strategy<Value = Step> {
    let bitmap = prop_oneof![8 => (0u32..3).prop_map(|bit| 1 << bit), 1 => 1u32..8];
    prop_oneof![
        8 => (ids(), 0u32..6, bitmap, 1u8..4, any::<bool>(), 0u8..4, any::<bool>(), [lanes(), lanes()])
            .prop_map(|(id, index, bitmap, fan_in, ecn, resend, first, lanes)| Step::Piece {
                id, index, bitmap, fan_in, ecn, resend: resend == 0, first, lanes
            }),
        2 => (ids(), 0u32..6).prop_map(|(id, index)| Step::Release { id, index }),
        1 => (0u16..2, prop::option::of(1u16..3)).prop_map(|(job, but)| Step::GiveUp { job, but }),
        1 => (0u64..60).prop_map(Step::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn the_table_does_as_its_reference_model(size in 1u32..4, steps in prop::collection::vec(steps(), 0..120)) {
        let (mut table, mut reference) = (Hashed::new(size, 1 << 20, AGE), Reference::new(size, AGE));
        let mut now = NOW;
        for step in steps {
            match step {
                Step::Piece { id, index, bitmap, fan_in, ecn, resend, first, lanes } => {
                    let mut values = [0; 8];
                    saturating::write(&lanes, &mut values);
                    let piece = Piece {
                        id, index, bitmap, fan_in, ecn, resend, is_first_level: first, values: &values,
                    };
                    let met = match table.meet(now, &piece) {
                        Met::Kept => reference::Met::Kept,
                        Met::Complete => reference::Met::Complete,
                        Met::Repeated => reference::Met::Repeated,
                        Met::Late => reference::Met::Late,
                        Met::Occupied => reference::Met::Occupied,
                        Met::Pass => reference::Met::Pass,
                        Met::Flushed(sum) => reference::Met::Flushed(sum.bitmap, sum.ecn, sum.value),
                    };
                    prop_assert_eq!(met, reference.meet(now, &piece));
                }
                Step::Release { id, index } => {
                    table.release(now, index, &id);
                    reference.release(now, index, &id);
                }
                Step::GiveUp { job, but } => {
                    table.give_up(job, 0, but);
                    reference.give_up(job, 0, but);
                }
                Step::Wait(ms) => now = now + Duration::from_millis(ms),
            }
            for index in 0..size {
                let sum = table.aggregator(index).map(|open| (open.bitmap, open.ecn, open.value.clone()));
                prop_assert_eq!(sum, reference.sum(index));
            }
            prop_assert_eq!(table.used(), reference.used());
            prop_assert_eq!(table.counts().received, table.counts().settled(), "every piece has one fate");
        }
    }
}
