//! How the lanes of an operation are summed.

/// What a lane is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum LaneType {
    /// IEEE 754 of 32 bits.
    F32 = 1,
    /// IEEE 754 of 16 bits. The switch sums in [`LaneType::F32`] and rounds the result once.
    F16 = 2,
    /// The upper half of an [`LaneType::F32`], which is summed like [`LaneType::F16`].
    Bf16 = 3,
    /// Signed, 32 bits; a sum wraps.
    I32 = 4,
    /// Signed, 64 bits; a sum wraps.
    I64 = 5,
}

impl LaneType {
    /// Every lane type.
    pub const EACH: [Self; 5] = [Self::F32, Self::F16, Self::Bf16, Self::I32, Self::I64];

    /// Bytes of a lane.
    #[must_use]
    #[inline]
    pub const fn bytes(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 | Self::I32 => 4,
            Self::I64 => 8,
        }
    }

    /// A short stable name, for configurations and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::I32 => "i32",
            Self::I64 => "i64",
        }
    }

    #[inline]
    pub(super) const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::F32,
            2 => Self::F16,
            3 => Self::Bf16,
            4 => Self::I32,
            5 => Self::I64,
            _ => return None,
        })
    }
}

/// What becomes of the contributors' lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Operator {
    /// Their sum. A worker that wants the mean divides by the number of contributors.
    Sum = 1,
    /// The smallest of each lane.
    Min = 2,
    /// The largest of each lane.
    Max = 3,
    /// The lanes of the one contributor, the root.
    Broadcast = 4,
}

impl Operator {
    /// Every operator.
    pub const EACH: [Self; 4] = [Self::Sum, Self::Min, Self::Max, Self::Broadcast];

    /// A short stable name, for configurations and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
            Self::Broadcast => "broadcast",
        }
    }

    #[inline]
    pub(super) const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Sum,
            2 => Self::Min,
            3 => Self::Max,
            4 => Self::Broadcast,
            _ => return None,
        })
    }
}
