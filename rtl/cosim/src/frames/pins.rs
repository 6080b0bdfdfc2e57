//! Pins of `olaf_queue`; the structures are those of `shim/olaf_queue.cpp`.

use crate::counters::{Answer, Ask};
use crate::design::shim;
use crate::frames::frame::Beat;

/// Inputs of a cycle.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct In {
    pub(crate) tdata: [u32; 16],
    pub(crate) tkeep: u64,
    pub(crate) gate_threshold: u64,
    pub(crate) session: u32,
    pub(crate) round_us: u32,
    pub(crate) active_clusters: u16,
    pub(crate) ask: Ask,
    pub(crate) rst: bool,
    pub(crate) gate: bool,
    pub(crate) tvalid: bool,
    pub(crate) tlast: bool,
    pub(crate) tready: bool,
}

impl In {
    /// A beat is offered.
    pub(crate) fn offer(&mut self, beat: &Beat, last: bool) {
        (self.tvalid, self.tlast) = (true, last);
        (self.tdata, self.tkeep) = (beat.data, beat.keep);
    }
}

/// Outputs of a cycle.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Out {
    pub(crate) tdata: [u32; 16],
    pub(crate) tkeep: u64,
    pub(crate) answer: Answer,
    pub(crate) s_tready: bool,
    pub(crate) tvalid: bool,
    pub(crate) tlast: bool,
    pub(crate) fate: u8,
    pub(crate) begun: bool,
    pub(crate) ended: bool,
}

impl Out {
    /// The beat that is offered, and whether it is the last one of its frame.
    pub(crate) fn offered(&self) -> Option<(Beat, bool)> {
        self.tvalid.then(|| (self.beat(), self.tlast))
    }

    /// The beat on the pins.
    pub(crate) fn beat(&self) -> Beat {
        Beat { data: self.tdata, keep: self.tkeep }
    }
}

shim!(
    /// 8 slots of 256 bytes, with a gate.
    EIGHT_SLOTS: In => Out, queue_8_new, queue_8_free, queue_8_tick, queue_8_settle
);
#[cfg(feature = "long")]
shim!(
    /// 8 slots of 256 bytes, and a planted mistake: a sum of one cycle before is not forwarded.
    BROKEN: In => Out, queue_broken_new, queue_broken_free, queue_broken_tick, queue_broken_settle
);
#[cfg(feature = "figures")]
shim!(
    /// 8 slots of 9,036 bytes in block RAM, without a gate.
    JUMBO: In => Out, queue_jumbo_new, queue_jumbo_free, queue_jumbo_tick, queue_jumbo_settle
);
#[cfg(feature = "compare")]
shim!(
    /// 3 slots of 413 bytes in block RAM, without a gate.
    THREE_SLOTS: In => Out, queue_3_new, queue_3_free, queue_3_tick, queue_3_settle
);
