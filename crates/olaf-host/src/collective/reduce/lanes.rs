//! The division that makes a mean of a sum.

use olaf_engine::lanes::half::{round_bf16, round_f16, widen_bf16, widen_f16};
use olaf_wire::reduce::LaneType;

/// Writes the lanes, divided by the number of contributors. Integers stay as they are: a mean of
/// integers is refused when the operation begins.
pub(super) fn divide(lane_type: LaneType, from: &[u8], contributors: u32, to: &mut [u8]) {
    let by = contributors.max(1) as f32;
    match lane_type {
        LaneType::F32 => each(from, to, |lane| (f32::from_le_bytes(lane) / by).to_le_bytes()),
        LaneType::F16 => {
            each(from, to, |lane| round_f16(widen_f16(u16::from_le_bytes(lane)) / by).to_le_bytes())
        }
        LaneType::Bf16 => each(from, to, |lane| {
            round_bf16(widen_bf16(u16::from_le_bytes(lane)) / by).to_le_bytes()
        }),
        LaneType::I32 | LaneType::I64 => to.copy_from_slice(from),
    }
}

fn each<const N: usize>(from: &[u8], to: &mut [u8], change: impl Fn([u8; N]) -> [u8; N]) {
    for (from, to) in from.as_chunks::<N>().0.iter().zip(to.as_chunks_mut::<N>().0) {
        *to = change(*from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use half::{bf16, f16};

    #[test]
    fn a_mean_is_the_sum_divided_by_the_contributors() {
        let sum: Vec<u8> = [8.0f32, -2.0].iter().flat_map(|lane| lane.to_le_bytes()).collect();
        let mut mean = [0; 8];
        divide(LaneType::F32, &sum, 4, &mut mean);
        assert_eq!(mean, [2.0f32.to_le_bytes(), (-0.5f32).to_le_bytes()].concat()[..]);

        let mut mean = [0; 2];
        divide(LaneType::F16, &f16::from_f32(9.0).to_le_bytes(), 2, &mut mean);
        assert_eq!(f16::from_le_bytes(mean).to_f32(), 4.5);
        divide(LaneType::Bf16, &bf16::from_f32(9.0).to_le_bytes(), 2, &mut mean);
        assert_eq!(bf16::from_le_bytes(mean).to_f32(), 4.5);
    }
}
