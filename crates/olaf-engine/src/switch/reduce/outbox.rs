//! What waits for the links. A result, or a sum on its way up, is kept as its block's number: its lanes
//! stay in their cell until it leaves.

use super::config::Config;
use super::counters::Sent;
use crate::ids::JobId;
use crate::switch::links::{self, Links, Rates};
use olaf_wire::reduce::{Ask, Block, Closed, Join, Want, Welcome, offsets::HEADER};

/// The result of a block, or a lower switch's sum of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    pub(super) job: JobId,
    pub(super) generation: u32,
    pub(super) block: Block,
    /// Of a result: the rank and the session of the one receiver; none: all members.
    pub(super) to: Option<(u32, u32)>,
    /// It was sent before.
    pub(super) again: bool,
    pub(super) sent_at_us: u32,
    /// Bytes of its datagram.
    pub(super) bytes: usize,
}

/// A message on its way down or up.
#[derive(Clone, Copy, Debug)]
pub(super) enum Message {
    Result(Outgoing),
    Want(Want),
    Welcome(Welcome),
    Closed(Closed),
    Piece(Outgoing),
    Ask(Ask),
    Join(Join),
}

impl links::Message for Message {
    fn bytes(&self) -> usize {
        match self {
            Self::Result(block) | Self::Piece(block) => block.bytes,
            Self::Want(_) | Self::Welcome(_) | Self::Closed(_) | Self::Ask(_) | Self::Join(_) => {
                HEADER
            }
        }
    }
}

/// The links of a switch.
pub(super) type Outbox = Links<Message, Sent>;

impl Outbox {
    pub(super) fn of(config: &Config) -> Self {
        Self::new(&Rates {
            up: config.uplink,
            down: config.downlink,
            limit: config.downlink_limit,
            ecn_depth: config.downlink_ecn_depth,
        })
    }
}
