//! The first hosts that are free.

use super::free::Free;
use crate::HostId;

/// The first `count` of the free hosts; at least `count` are free.
pub(super) fn choose(free: &Free, count: u32) -> Vec<HostId> {
    free.hosts().take(count as usize).collect()
}
