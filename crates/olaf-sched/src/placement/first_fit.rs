//! The first hosts that are free.

use super::{Placement, Reason};
use crate::HostId;

/// The first `hosts` of those that are `free`; there are so many.
pub(super) fn choose(free: &[bool], hosts: u32) -> Placement {
    let free = (0u32..).zip(free).filter(|(_, free)| **free);
    let hosts = free.take(hosts as usize).map(|(number, _)| HostId(number)).collect();
    Placement { hosts, reason: Reason::First }
}
