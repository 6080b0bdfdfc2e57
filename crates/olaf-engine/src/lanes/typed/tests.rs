use super::super::dispatch::with_at_most;
use super::*;
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::*;

/// Lanes of a type, from numbers that every type has.
fn lanes(lane_type: LaneType, numbers: &[i16]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in numbers {
        match lane_type {
            LaneType::F32 => bytes.extend(f32::from(*number).to_le_bytes()),
            LaneType::F16 => bytes.extend(round_f16(f32::from(*number)).to_le_bytes()),
            LaneType::Bf16 => bytes.extend(round_bf16(f32::from(*number)).to_le_bytes()),
            LaneType::I32 => bytes.extend(i32::from(*number).to_le_bytes()),
            LaneType::I64 => bytes.extend(i64::from(*number).to_le_bytes()),
        }
    }
    bytes
}

fn combined(operator: Operator, have: i16, new: i16) -> i16 {
    match operator {
        Operator::Sum => have + new,
        Operator::Min => have.min(new),
        Operator::Max => have.max(new),
        Operator::Broadcast => have,
    }
}

/// The result of two pieces, and whether each was finite.
fn of_two(lane_type: LaneType, operator: Operator, one: &[u8], two: &[u8]) -> (Vec<u8>, [bool; 2]) {
    let mut sum = Aligned::default();
    let finite = [begin(&mut sum, lane_type, one), combine(&mut sum, lane_type, operator, two)];
    let mut out = vec![0; one.len()];
    write(&sum, lane_type, &mut out);
    (out, finite)
}

fn floats_of(lanes: &[f32]) -> Vec<u8> {
    lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect()
}

proptest! {
    #[test]
    fn every_type_and_operator_is_that_of_each_lane(
        // Numbers whose sums every type has.
        pairs in prop::collection::vec((-64i16..=64, -64i16..=64), 0..300),
        lane_type in prop::sample::select(LaneType::EACH.to_vec()),
        operator in prop::sample::select(Operator::EACH.to_vec()),
    ) {
        let (one, two): (Vec<i16>, Vec<i16>) = pairs.iter().copied().unzip();
        let expected: Vec<i16> =
            pairs.iter().map(|(one, two)| combined(operator, *one, *two)).collect();
        let (out, finite) =
            of_two(lane_type, operator, &lanes(lane_type, &one), &lanes(lane_type, &two));
        prop_assert_eq!(out, lanes(lane_type, &expected));
        prop_assert_eq!(finite, [true, true]);
    }
}

proptest! {
    #[test]
    fn every_width_does_the_same(
        words in prop::collection::vec(any::<(u64, u64)>(), 0..80),
        lane_type in prop::sample::select(LaneType::EACH.to_vec()),
        operator in prop::sample::select(Operator::EACH.to_vec()),
    ) {
        let bytes = |word: fn(&(u64, u64)) -> u64| -> Vec<u8> {
            words.iter().flat_map(|pair| word(pair).to_le_bytes()).collect()
        };
        let (one, two) = (bytes(|pair| pair.0), bytes(|pair| pair.1));
        let [(sum, out), wide, widest] = [16, 32, 64]
            .map(|width| with_at_most(width, || run(lane_type, operator, &one, &two)));
        for (other_sum, other_out) in [wide, widest] {
            prop_assert!(same_numbers(lane_type, &sum, &other_sum));
            prop_assert_eq!(&out, &other_out);
        }
    }
}

/// The sum of two pieces, and its lanes on the wire; none where one of them is not finite.
fn run(lane_type: LaneType, operator: Operator, one: &[u8], two: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut sum = Aligned::default();
    assert_eq!(begin(&mut sum, lane_type, one), all_finite(lane_type, one));
    let combined = combine(&mut sum, lane_type, operator, two);
    assert!(!combined || operator == Operator::Broadcast || all_finite(lane_type, two));
    let mut out = vec![0; one.len()];
    write(&sum, lane_type, &mut out);
    if !all_finite(lane_type, &out) {
        out.clear();
    }
    (sum.to_vec(), out)
}

/// Returns true if two sums have the same lanes. The bits of a NaN depend on the processor.
fn same_numbers(lane_type: LaneType, one: &[u8], other: &[u8]) -> bool {
    let is_float = !matches!(lane_type, LaneType::I32 | LaneType::I64);
    let lanes = |sum: &[u8]| -> Vec<u32> {
        let lanes = sum.as_chunks::<4>().0.iter();
        lanes
            .map(|lane| f32::from_le_bytes(*lane))
            .map(|lane| if is_float && lane.is_nan() { u32::MAX } else { lane.to_bits() })
            .collect()
    };
    lanes(one) == lanes(other)
}

#[test]
fn sums_of_integers_wrap() {
    let (most, one) = (i32::MAX.to_le_bytes(), 1i32.to_le_bytes());
    let (out, _) = of_two(LaneType::I32, Operator::Sum, &most, &one);
    assert_eq!(out, i32::MIN.to_le_bytes());
    let (most, one) = (i64::MAX.to_le_bytes(), 1i64.to_le_bytes());
    let (out, _) = of_two(LaneType::I64, Operator::Sum, &most, &one);
    assert_eq!(out, i64::MIN.to_le_bytes());
}

#[test]
fn halves_are_rounded_once_in_the_result() {
    // 2,048 and 1 are halves, and 2,049 is none: rounded after each piece, the sum would stay 2,048.
    for (lane_type, large) in [(LaneType::F16, 2048), (LaneType::Bf16, 256)] {
        let mut sum = Aligned::default();
        begin(&mut sum, lane_type, &lanes(lane_type, &[large]));
        for _ in 0..2 {
            combine(&mut sum, lane_type, Operator::Sum, &lanes(lane_type, &[1]));
        }
        let mut out = vec![0; 2];
        write(&sum, lane_type, &mut out);
        assert_eq!(out, lanes(lane_type, &[large + 2]));
    }
}

#[test]
fn of_minimum_and_maximum_a_nan_wins() {
    for operator in [Operator::Min, Operator::Max] {
        for (one, two) in [(f32::NAN, 1.0), (1.0, f32::NAN)] {
            let (out, finite) =
                of_two(LaneType::F32, operator, &floats_of(&[one]), &floats_of(&[two]));
            assert!(f32::from_le_bytes(out.try_into().expect("one lane")).is_nan());
            assert_eq!(finite, [one.is_finite(), two.is_finite()]);
        }
    }
}

#[test]
fn one_bad_lane_anywhere_is_noticed() {
    let bad: [(LaneType, Vec<Vec<u8>>); 3] = [
        (
            LaneType::F32,
            [f32::NAN, f32::INFINITY, f32::NEG_INFINITY]
                .map(|bad| bad.to_le_bytes().to_vec())
                .to_vec(),
        ),
        (LaneType::F16, [0x7e00u16, 0x7c00, 0xfc00].map(|bad| bad.to_le_bytes().to_vec()).to_vec()),
        (
            LaneType::Bf16,
            [0x7fc0u16, 0x7f80, 0xff80].map(|bad| bad.to_le_bytes().to_vec()).to_vec(),
        ),
    ];
    for (lane_type, bad) in bad {
        let fine = lanes(lane_type, &[1; 150]);
        for bad in bad {
            for at in 0..150 {
                let mut lanes = fine.clone();
                lanes[at * bad.len()..][..bad.len()].copy_from_slice(&bad);
                for operator in [Operator::Sum, Operator::Min, Operator::Max] {
                    let (_, finite) = of_two(lane_type, operator, &fine, &lanes);
                    assert_eq!(finite, [true, false], "{bad:x?} at {at}");
                }
                let (_, finite) = of_two(lane_type, Operator::Min, &lanes, &fine);
                assert_eq!(finite, [false, true], "{bad:x?} at {at}");
            }
        }
    }
}

#[test]
fn large_numbers_are_numbers_and_a_sum_that_overflows_is_noticed() {
    let sum = |one: &[f32], two: &[f32]| {
        of_two(LaneType::F32, Operator::Sum, &floats_of(one), &floats_of(two)).1
    };
    assert_eq!(sum(&[f32::MAX; 100], &[0.0; 100]), [true, true]);
    assert_eq!(sum(&[f32::MAX; 100], &[f32::MAX; 100]), [true, false]);
    assert_eq!(sum(&[f32::INFINITY; 2], &[f32::NEG_INFINITY; 2]), [false, false]);
    let max = |one: &[f32], two: &[f32]| {
        of_two(LaneType::F32, Operator::Max, &floats_of(one), &floats_of(two)).1
    };
    assert_eq!(max(&[f32::MAX; 100], &[f32::MAX; 100]), [true, true]);
}

#[test]
fn the_largest_half_is_finite_and_a_larger_sum_is_not() {
    let fits = |lane_type, halves: [u16; 2]| {
        let mut sum = Aligned::default();
        begin(&mut sum, lane_type, &halves[0].to_le_bytes());
        combine(&mut sum, lane_type, Operator::Sum, &halves[1].to_le_bytes());
        let mut out = [0; 2];
        write(&sum, lane_type, &mut out);
        let finite = all_finite(lane_type, &out);
        assert_eq!(rounds_to_finite(&sum, lane_type), finite);
        finite
    };
    let half = round_f16;
    assert!(fits(LaneType::F16, [half(65504.0), half(15.99)]));
    assert!(!fits(LaneType::F16, [half(65504.0), half(16.0)]));
    assert!(!fits(LaneType::Bf16, [0x7f7f, 0x7f7f]));
    // Half of the last bit of the largest bf16 rounds to an infinity, and less of it does not.
    assert!(!fits(LaneType::Bf16, [0x7f7f, 0x7b00]));
    assert!(fits(LaneType::Bf16, [0x7f7f, 0x7aff]));
}
