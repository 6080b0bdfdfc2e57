//! The updates of the figures: one worker's contribution, of equal values.

use crate::frames::Frame;
use olaf_wire::{Address, ClusterId, JobId, Session, Update, WorkerId};

/// What tells updates apart.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    pub(super) cluster: u32,
    /// Updates of a cluster merge if they have this in common too.
    pub(super) segment: u32,
    pub(super) worker: u32,
    pub(super) at_ns: u64,
}

/// The frame of an update of `bytes` bytes, for a build whose longest frame has `longest`.
pub(super) fn frame(sent: Sent, bytes: usize, longest: usize) -> Frame {
    let header = Update {
        address: Address {
            job: JobId(1),
            cluster: ClusterId(sent.cluster),
            worker: WorkerId(sent.worker),
            session: Session(1),
        },
        sequence: 0,
        hop_sequence: 0,
        flow_sequence: 0,
        segment: sent.segment,
        segments: u32::MAX,
        generated_oldest_ns: sent.at_ns,
        generated_newest_ns: sent.at_ns,
        version_oldest: 0,
        version_newest: 0,
        contributors: 1,
        weight: 1.0,
        reward: 1.0,
        hops: 0,
    };
    let lanes = vec![0.25; (bytes - Update::datagram_len(0)) / 4];
    let mut datagram = vec![0; bytes];
    header.emit(&lanes, &mut datagram);
    Frame::new(&datagram, 0, longest)
}
