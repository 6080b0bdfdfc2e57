//! What waits for the links. A packet is written when the switch decides about it: its aggregator may
//! serve another fragment before the packet leaves.

use super::config::Config;
use crate::switch::links::{self, Links, Rates};
use alloc::vec::Vec;

impl links::Message for Vec<u8> {
    fn bytes(&self) -> usize {
        self.len()
    }
}

/// What has left, each receiver counted.
#[derive(Debug, Default)]
pub(super) struct Sent {
    pub(super) up: u64,
    pub(super) down: u64,
}

/// The links: to the servers, and to the workers.
pub(super) type Outbox = Links<Vec<u8>, Sent>;

impl Outbox {
    pub(super) fn of(config: &Config) -> Self {
        Self::new(&Rates {
            up: config.uplink,
            down: config.downlink,
            limit: config.link_limit,
            ecn_depth: config.ecn_depth,
        })
    }
}
