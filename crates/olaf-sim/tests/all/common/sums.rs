//! What the jobs of sums have in common.

use olaf_engine::PeerId;
use olaf_engine::party::Chance;
use olaf_host::collective::{
    Collective, Done, Failure, Label, Operation, OperationId, Reduction, Sum,
};
use olaf_sim::network::Node;
use olaf_sim::{Network, Wire};
use olaf_wire::reduce::LaneType;
use std::collections::BTreeMap;
use std::time::Duration;

/// How an operation ended at an end.
pub(crate) struct Ended {
    pub(crate) outcome: Result<Sum, Failure>,
    pub(crate) lanes: Vec<f32>,
    pub(crate) took: Duration,
}

/// By end, in the order of `OperationId`.
pub(crate) type AllEnded = BTreeMap<PeerId, BTreeMap<OperationId, Ended>>;

/// The id of an end, which counts from 0.
pub(crate) fn peer(end: u32) -> PeerId {
    PeerId(end + 1)
}

/// An operation on these lanes.
pub(crate) fn operation(
    reduction: Reduction,
    lanes: impl Iterator<Item = f32>,
    accepts_partial: bool,
) -> Operation {
    Operation {
        lane_type: LaneType::F32,
        reduction,
        buffer: Box::new(lanes.flat_map(f32::to_le_bytes).collect::<Vec<u8>>()),
        accepts_partial,
        label: Label::default(),
    }
}

/// Takes the operations that have ended at the ends that live.
pub(crate) fn collect<E: Collective + Node>(net: &mut Network, workers: u32, ended: &mut AllEnded) {
    for end in (0..workers).map(peer) {
        let done = net.with(end, |worker: &mut E, _| {
            core::iter::from_fn(|| worker.poll_done()).collect::<Vec<Done>>()
        });
        for Done { id, outcome, buffer, took } in done.into_iter().flatten() {
            let (lanes, _) = buffer.bytes().as_chunks();
            let lanes = lanes.iter().map(|lane| f32::from_le_bytes(*lane)).collect();
            ended.entry(end).or_default().insert(id, Ended { outcome, lanes, took });
        }
    }
}

/// What a switch demands proofs of addresses with. The jobs of even seeds demand them.
pub(crate) fn proofs(seed: u64, life: u32) -> Option<Chance> {
    let mut draws = Draws(seed ^ u64::from(life));
    let chance: Chance = Box::new(move || draws.below(1 << 32) as u32);
    Some(chance).filter(|_| seed.is_multiple_of(2))
}

/// A wire that loses and repeats some datagrams.
pub(crate) fn some_wire(draws: &mut Draws) -> Wire {
    Wire {
        loss: draws.below(6) as f64 / 100.0,
        duplication: draws.below(3) as f64 / 100.0,
        delay: Duration::from_micros(50 + draws.below(2000)),
        jitter: Duration::from_micros(draws.below(100)),
        ..Wire::default()
    }
}

/// Draws of a seed.
pub(crate) struct Draws(pub(crate) u64);

impl Draws {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}
