//! Pins of `olaf_queue_control`; the structures are those of `shim/olaf_queue_control.cpp`.

use crate::design::shim;
use olaf_engine::{Contribution, Flow};

/// Inputs of a cycle.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct In {
    pub(super) flow: [u32; 3],
    pub(super) worker: u32,
    pub(super) contributors: u32,
    pub(super) rst: bool,
    pub(super) arrive: bool,
    pub(super) not_finite: bool,
    pub(super) better: bool,
    pub(super) worse: bool,
    pub(super) no_sum: bool,
    pub(super) begin_departure: bool,
    pub(super) end_departure: bool,
}

impl In {
    /// An update is on the pins.
    pub(super) fn offer(&mut self, contribution: &Contribution) {
        self.arrive = true;
        self.flow = words(contribution.flow);
        self.worker = contribution.worker.0;
        self.contributors = contribution.contributors;
    }
}

/// A flow as the 96 bits of the pins.
pub(super) fn words(flow: Flow) -> [u32; 3] {
    [flow.segment, flow.cluster.0, flow.job.0]
}

/// Outputs of a cycle.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Out {
    pub(super) departing_flow: [u32; 3],
    pub(super) departing_contributors: u32,
    pub(super) displaced: u32,
    pub(super) meets: bool,
    pub(super) slot: u8,
    pub(super) appended: bool,
    pub(super) merged: bool,
    pub(super) replaced: bool,
    pub(super) filtered: bool,
    pub(super) dropped: bool,
    pub(super) rejected: bool,
    pub(super) departing: bool,
    pub(super) departing_slot: u8,
    pub(super) used: u8,
    pub(super) unused: u8,
}

shim!(
    /// 8 slots.
    EIGHT_SLOTS: In => Out, control_8_new, control_8_free, control_8_tick, control_8_settle
);
shim!(
    /// 3 slots.
    THREE_SLOTS: In => Out, control_3_new, control_3_free, control_3_tick, control_3_settle
);
shim!(
    /// 8 slots and a planted mistake: a merge can be replaced like a single update.
    BROKEN: In => Out, control_broken_new, control_broken_free, control_broken_tick,
    control_broken_settle
);
