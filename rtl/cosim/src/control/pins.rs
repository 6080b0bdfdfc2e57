//! Pins of `olaf_queue_control`; the structures are those of `shim/olaf_queue_control.cpp`.

use crate::design::shim;
use olaf_engine::{Contribution, Flow};

/// Inputs of a cycle.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct In {
    pub(crate) flow: [u32; 3],
    pub(crate) worker: u32,
    pub(crate) contributors: u32,
    pub(crate) rst: bool,
    pub(crate) arrive: bool,
    pub(crate) not_finite: bool,
    pub(crate) better: bool,
    pub(crate) worse: bool,
    pub(crate) no_sum: bool,
    pub(crate) begin_departure: bool,
    pub(crate) end_departure: bool,
}

impl In {
    /// An update is on the pins.
    pub(crate) fn offer(&mut self, contribution: &Contribution) {
        self.arrive = true;
        self.flow = words(contribution.flow);
        self.worker = contribution.worker.0;
        self.contributors = contribution.contributors;
    }
}

/// A flow as the 96 bits of the pins.
pub(crate) fn words(flow: Flow) -> [u32; 3] {
    [flow.segment, flow.cluster.0, flow.job.0]
}

/// Outputs of a cycle.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Out {
    pub(crate) departing_flow: [u32; 3],
    pub(crate) departing_contributors: u32,
    pub(crate) displaced: u32,
    pub(crate) meets: bool,
    pub(crate) slot: u8,
    pub(crate) appended: bool,
    pub(crate) merged: bool,
    pub(crate) replaced: bool,
    pub(crate) filtered: bool,
    pub(crate) dropped: bool,
    pub(crate) rejected: bool,
    pub(crate) departing: bool,
    pub(crate) departing_slot: u8,
    pub(crate) used: u8,
    pub(crate) unused: u8,
}

shim!(
    /// 8 slots.
    EIGHT_SLOTS: In => Out, control_8_new, control_8_free, control_8_tick, control_8_settle
);
shim!(
    /// 3 slots.
    THREE_SLOTS: In => Out, control_3_new, control_3_free, control_3_tick, control_3_settle
);
#[cfg(feature = "long")]
shim!(
    /// 8 slots and a planted mistake: a merge can be replaced like a single update.
    BROKEN: In => Out, control_broken_new, control_broken_free, control_broken_tick,
    control_broken_settle
);
