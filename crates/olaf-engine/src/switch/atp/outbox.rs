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

/// Buffers that are kept: as many as a driver takes datagrams before it sends.
const SPARE: usize = 64;

/// Buffers of datagrams that have left, for those to come.
#[derive(Debug, Default)]
pub(super) struct Buffers(Vec<Vec<u8>>);

impl Buffers {
    /// A buffer of that many bytes, whatever they are: the caller writes all of them.
    pub(super) fn take(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = self.0.pop().unwrap_or_default();
        bytes.resize(len, 0);
        bytes
    }

    /// Keeps the buffer of a datagram that has left.
    pub(super) fn keep(&mut self, bytes: Vec<u8>) {
        if self.0.len() < SPARE {
            self.0.push(bytes);
        }
    }
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
