//! A notice: the first switch took in an update of the cluster.

use crate::offsets::notice as at;
use crate::packet::{Address, Kind, Packet, Refusal, emit_common};

/// The switch has an update of the cluster in its queue: the cluster's workers need not send what
/// is hardly newer. Goes to the workers that asked for it in their [`crate::Join`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The worker told, and its cluster.
    pub address: Address,
    /// Generation time of the newest contribution taken in, nanoseconds, server's clock.
    pub taken_newest_ns: u64,
}

impl Notice {
    /// Reads a notice.
    ///
    /// # Errors
    /// [`Refusal::BadField`] where it is of another kind.
    pub fn parse(packet: &Packet<'_>) -> Result<Self, Refusal> {
        if packet.kind() != Kind::Notice {
            return Err(Refusal::BadField("kind"));
        }
        Ok(Self { address: packet.address(), taken_newest_ns: packet.u64(at::TAKEN_NEWEST) })
    }

    /// Writes the notice; returns the datagram's length.
    ///
    /// # Panics
    /// When `buf` is shorter than that.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let mut writer = emit_common(buf, Kind::Notice, &self.address);
        writer.put(at::TAKEN_NEWEST, self.taken_newest_ns.to_be_bytes());
        at::LEN
    }
}
