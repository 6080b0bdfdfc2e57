//! Pins of `iswitch_accelerator`; the structures are those of `shim/iswitch_accelerator.cpp`.

use crate::accelerator::datagram::Beat;
use crate::counters::{Answer, Ask};
use crate::design::shim;

/// Inputs of a cycle.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct In {
    pub(super) tdata: [u32; 16],
    pub(super) tkeep: u64,
    pub(super) ask: Ask,
    pub(super) rst: bool,
    pub(super) epoch: u8,
    pub(super) proofs: bool,
    pub(super) tuser: u8,
    pub(super) tvalid: bool,
    pub(super) tlast: bool,
    pub(super) tready: bool,
}

impl In {
    /// A beat is offered.
    pub(super) fn offer(&mut self, beat: &Beat, last: bool) {
        (self.tvalid, self.tlast) = (true, last);
        (self.tdata, self.tkeep, self.tuser) = (beat.data, beat.keep, beat.user as u8);
    }
}

/// Outputs of a cycle.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Out {
    tdata: [u32; 16],
    tkeep: u64,
    pub(super) answer: Answer,
    tuser: u16,
    pub(super) s_tready: bool,
    pub(super) tvalid: bool,
    tlast: bool,
}

impl Out {
    /// The beat that is offered, and whether it is the last one of its datagram.
    pub(super) fn offered(&self) -> Option<(Beat, bool)> {
        let beat = Beat { data: self.tdata, keep: self.tkeep, user: self.tuser };
        self.tvalid.then_some((beat, self.tlast))
    }
}

shim!(
    /// 4 ports, 4 places, 256 bit.
    FOUR_PORTS: In => Out, accelerator_4_new, accelerator_4_free, accelerator_4_tick, accelerator_4_settle
);
shim!(
    /// 3 ports, 2 places, 512 bit.
    THREE_PORTS: In => Out, accelerator_3_new, accelerator_3_free, accelerator_3_tick, accelerator_3_settle
);
#[cfg(feature = "long")]
shim!(
    /// As [`FOUR_PORTS`], and a planted mistake: a sum that is on its way to the memory is not forwarded.
    BROKEN: In => Out, accelerator_broken_new, accelerator_broken_free, accelerator_broken_tick,
    accelerator_broken_settle
);
