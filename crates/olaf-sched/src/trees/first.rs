//! A tree that conflicts with no other, and is kept: the first such tree, or any.

use super::ground::{Ground, Slot};

pub(super) fn seat_first(ground: &mut Ground, slot: Slot) {
    let candidates = ground.member(slot).candidates.len();
    if let Some(at) = (0..candidates).find(|&at| ground.is_free(slot, at)) {
        ground.seat(slot, at);
    }
}

pub(super) fn seat_random(ground: &mut Ground, slot: Slot, seed: u64) {
    let candidates = ground.member(slot).candidates.len();
    let free: Vec<_> = (0..candidates).filter(|&at| ground.is_free(slot, at)).collect();
    if let Some(at) = fastrand::Rng::with_seed(seed).choice(&free) {
        ground.seat(slot, *at);
    }
}
