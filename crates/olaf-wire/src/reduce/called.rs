//! The signature of an operation: all of it has to be equal at all workers.

use super::arithmetic::{LaneType, Operator};
use super::packet::ReducePacket;
use crate::call::{Call, CallKind, Sides};
use crate::packet::{Refusal, Writer};

/// What a worker calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Called {
    /// Kind, root and tag.
    pub call: Call,
    /// What a lane is.
    pub lane_type: LaneType,
    /// What becomes of the lanes.
    pub operator: Operator,
    /// Lanes of the operation.
    pub lanes: u64,
}

/// Workers that differ, and what each side calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clash {
    /// What the worker calls that is named.
    pub culprit: Called,
    /// What most others call.
    pub others: Called,
}

impl Clash {
    /// What the end of a generation says of both sides in one byte; none: nothing.
    #[must_use]
    pub fn of(sides: Sides) -> Option<Self> {
        let (culprit, others) = sides.calls()?;
        Some(Self { culprit: Called::of_floats(culprit, 0), others: Called::of_floats(others, 0) })
    }
}

/// Bytes of the call, the lane type and the operator.
const KIND: usize = 4;

impl Called {
    /// What a worker of a protocol calls that sums floats alone. `lanes`: 0 where the number is not known.
    #[must_use]
    pub const fn of_floats(call: Call, lanes: u64) -> Self {
        let operator = match call.kind() {
            CallKind::Broadcast { .. } => Operator::Broadcast,
            _ => Operator::Sum,
        };
        Self { call, lane_type: LaneType::F32, operator, lanes }
    }

    /// Reads the fields; none: all bytes are zero.
    pub(super) fn read(
        packet: &ReducePacket<'_>,
        (kind, lanes): (usize, usize),
    ) -> Result<Option<Self>, Refusal> {
        let [lane_type, operator] = [kind + 2, kind + 3].map(|at| packet.byte(at));
        if packet.u32(kind) == 0 && packet.u64(lanes) == 0 {
            return Ok(None);
        }
        Ok(Some(Self {
            call: Call::from_bits(packet.u16(kind)),
            lane_type: LaneType::from_byte(lane_type).ok_or(Refusal::BadField("lane_type"))?,
            operator: Operator::from_byte(operator).ok_or(Refusal::BadField("operator"))?,
            lanes: packet.u64(lanes),
        }))
    }

    pub(super) fn put(&self, writer: &mut Writer<'_>, (kind, lanes): (usize, usize)) {
        let [high, low] = self.call.to_bits().to_be_bytes();
        let bytes: [u8; KIND] = [high, low, self.lane_type as u8, self.operator as u8];
        writer.put(kind, bytes);
        writer.put(lanes, self.lanes.to_be_bytes());
    }
}
