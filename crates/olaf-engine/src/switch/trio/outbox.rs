//! What waits for the links. A result, or a sum on its way up, is kept as its block's key: its
//! gradients stay in their record until it leaves.

use super::config::Config;
use super::statistics::Sent;
use crate::blocks::records::Key;
use crate::switch::links::{self, Links, Rates};
use olaf_wire::trio::{Ask, Closed, Gone, Hello, Leave, Straggler, Want, Welcome};

/// A message on its way down or up.
#[derive(Clone, Copy, Debug)]
pub(super) enum Message {
    /// The result of a block, with the bytes of its datagram; to one worker: again.
    Result {
        key: Key,
        bytes: usize,
        again: bool,
    },
    /// A lower switch's sum of a block.
    Sum {
        key: Key,
        bytes: usize,
        again: bool,
    },
    Welcome(Welcome),
    Want(Want),
    Gone(Gone),
    Closed(Closed),
    Straggler(Straggler),
    Hello(Hello),
    Ask(Ask),
    Leave(Leave),
}

/// Bytes of the longest message without gradients.
const CONTROL: usize = 44;

impl links::Message for Message {
    fn bytes(&self) -> usize {
        match self {
            Self::Result { bytes, .. } | Self::Sum { bytes, .. } => *bytes,
            _ => CONTROL,
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
            ecn_depth: None,
        })
    }
}
