//! The arithmetic of the reference model: one number after the other.

use alloc::vec::Vec;
use half::{bf16, f16};
use olaf_wire::reduce::{LaneType, Operator};

/// A lane, as it is summed.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// A lane of a floating-point type.
    Float(f32),
    /// A lane of an integer type.
    Integer(i64),
}

impl Number {
    /// The lanes of a piece.
    #[must_use]
    pub fn read(lane_type: LaneType, bytes: &[u8]) -> Vec<Self> {
        let lanes = bytes.chunks_exact(lane_type.bytes());
        let lane = |lane: &[u8]| match lane_type {
            LaneType::F32 => Self::Float(f32::from_le_bytes(array(lane))),
            LaneType::F16 => Self::Float(f16::from_le_bytes(array(lane)).to_f32()),
            LaneType::Bf16 => Self::Float(bf16::from_le_bytes(array(lane)).to_f32()),
            LaneType::I32 => Self::Integer(i32::from_le_bytes(array(lane)).into()),
            LaneType::I64 => Self::Integer(i64::from_le_bytes(array(lane))),
        };
        lanes.map(lane).collect()
    }

    /// The lane on the wire.
    #[must_use]
    pub fn write(self, lane_type: LaneType) -> Vec<u8> {
        match (self, lane_type) {
            (Self::Float(lane), LaneType::F16) => f16::from_f32(lane).to_le_bytes().to_vec(),
            (Self::Float(lane), LaneType::Bf16) => bf16::from_f32(lane).to_le_bytes().to_vec(),
            (Self::Float(lane), _) => lane.to_le_bytes().to_vec(),
            (Self::Integer(lane), LaneType::I32) => (lane as i32).to_le_bytes().to_vec(),
            (Self::Integer(lane), _) => lane.to_le_bytes().to_vec(),
        }
    }

    /// Two members' lanes become one.
    #[must_use]
    pub fn combine(self, other: Self, lane_type: LaneType, operator: Operator) -> Self {
        match (self, other) {
            (Self::Float(a), Self::Float(b)) => Self::Float(match operator {
                Operator::Sum => a + b,
                Operator::Min | Operator::Max if a.is_nan() || b.is_nan() => f32::NAN,
                // Of +0 and -0 the later.
                Operator::Min => {
                    if a < b {
                        a
                    } else {
                        b
                    }
                }
                Operator::Max => {
                    if a > b {
                        a
                    } else {
                        b
                    }
                }
                Operator::Broadcast => a,
            }),
            (Self::Integer(a), Self::Integer(b)) => Self::Integer(match operator {
                Operator::Sum if lane_type == LaneType::I32 => {
                    (a as i32).wrapping_add(b as i32).into()
                }
                Operator::Sum => a.wrapping_add(b),
                Operator::Min => a.min(b),
                Operator::Max => a.max(b),
                Operator::Broadcast => a,
            }),
            _ => unreachable!("the lanes of a block have one type"),
        }
    }

    /// Returns true if it is a finite number.
    #[must_use]
    pub fn is_finite(self) -> bool {
        match self {
            Self::Float(lane) => lane.is_finite(),
            Self::Integer(_) => true,
        }
    }

    /// Returns true if it is one on the wire, too.
    #[must_use]
    pub fn rounds_to_finite(self, lane_type: LaneType) -> bool {
        Self::read(lane_type, &self.write(lane_type)).into_iter().all(Self::is_finite)
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("chunks are as long as a lane")
}
