//! Random traffic: loads and numbers of flows change, so that the queue is empty, full, and between.

use fastrand::Rng;
use olaf_engine::{ClusterId, Contribution, Flow, JobId, WorkerId};

/// Cycles between two changes of the load.
const SPELL: u64 = 200;

/// The pins of one cycle, as far as they come from outside.
pub(super) struct Cycle {
    pub(super) reset: bool,
    pub(super) ends: bool,
    pub(super) begins: bool,
    pub(super) arrival: Option<(Contribution, f32)>,
}

/// Draws cycles.
pub(super) struct Traffic {
    chance: Rng,
    slots: u32,
    flows: u32,
    load: f64,
    ends: f64,
}

impl Traffic {
    pub(super) fn new(seed: u64, slots: u32) -> Self {
        Self { chance: Rng::with_seed(seed), slots, flows: 1, load: 0.5, ends: 0.3 }
    }

    pub(super) fn draw(&mut self, cycle: u64) -> Cycle {
        let chance = &mut self.chance;
        if cycle.is_multiple_of(SPELL) {
            self.load = *pick(chance, &[0.05, 0.5, 1.0]);
            self.ends = *pick(chance, &[0.02, 0.3, 1.0]);
            self.flows = *pick(chance, &[1, 2, self.slots, 3 * self.slots]);
        }
        let reset = chance.f64() < 0.0005;
        let comes = chance.f64() < self.load && !reset;
        Cycle {
            reset,
            ends: chance.f64() < self.ends,
            begins: chance.f64() < 0.5,
            arrival: comes.then(|| update(chance, self.flows)),
        }
    }
}

/// An update and its only lane. Rarely one that has no sum, or none with others.
fn update(chance: &mut Rng, flows: u32) -> (Contribution, f32) {
    let number = chance.u32(..flows);
    // Flows differ in the job, the cluster or the segment alone.
    let flow =
        Flow { job: JobId(number % 2), cluster: ClusterId(number / 2 % 3), segment: number / 6 };
    let at = chance.u64(..1000);
    let mut contribution = Contribution::of_one(flow, WorkerId(chance.u32(..4)), at, 100);
    contribution.weight = f64::from(chance.u32(1..8));
    contribution.reward = f64::from(chance.i32(-9..9));
    contribution.sequence = chance.u32(..);
    contribution.hops = chance.u8(..3);
    if chance.u8(..5) == 0 {
        contribution.contributors = *pick(chance, &[2, 3, 7]);
    }
    let mut lane = chance.i32(-99..99) as f32;
    match chance.u8(..100) {
        0 => contribution.reward = *pick(chance, &[f64::NAN, f64::INFINITY, f64::MAX]),
        1 => contribution.weight = f64::MAX,
        2 => contribution.contributors = u32::MAX,
        3 => lane = *pick(chance, &[f32::NAN, f32::NEG_INFINITY]),
        4 | 5 => lane = *pick(chance, &[f32::MAX, -f32::MAX]),
        _ => {}
    }
    (contribution, lane)
}

fn pick<'a, T>(chance: &mut Rng, of: &'a [T]) -> &'a T {
    &of[chance.usize(..of.len())]
}
