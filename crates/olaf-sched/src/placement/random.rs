//! Any hosts that are free.

use super::free::Free;
use crate::HostId;

/// `count` of the free hosts, ascending. Every set is equally likely; at least `count` are free.
pub(super) fn choose(free: &Free, count: u32, rng: &mut fastrand::Rng) -> Vec<HostId> {
    let mut hosts: Vec<HostId> = free.hosts().collect();
    // The first places of a shuffle. u32, not usize: the same draws on every platform.
    for (at, left) in (0..count).zip((1..=free.left()).rev()) {
        hosts.swap(at as usize, (at + rng.u32(..left)) as usize);
    }
    hosts.truncate(count as usize);
    hosts.sort_unstable();
    hosts
}
