//! An operation, and what becomes of it.

use super::Buffer;
use alloc::boxed::Box;
use alloc::vec;
use core::time::Duration;
use olaf_wire::reduce::{LaneType, Reason, WelcomeCode};
use olaf_wire::{Call, CallKind, Lacking};

/// What an operation does with the workers' lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Their sum. An integer sum wraps.
    Sum,
    /// Their sum divided by the number of contributors, block by block. Not for integers.
    Mean,
    /// Their sum, the same bits whatever the order of arrival and the tree of switches: see
    /// [`fixed`](olaf_engine::lanes::fixed). For f32 alone. It costs one round trip more.
    ExactSum,
    /// The same divided by the number of contributors, block by block.
    ExactMean,
    /// The smallest of each lane.
    Min,
    /// The largest of each lane.
    Max,
    /// The lanes of that rank.
    Broadcast {
        /// The rank whose lanes all workers get.
        root: u32,
    },
    /// The mean of H vectors, of whichever workers send them first (iSwitch §4.1). The operation's lanes are for
    /// the result alone: vectors come by [`Collective::contribute`](super::Collective::contribute).
    Pipelined {
        /// t_s of Algorithm 1: sums of this training before this one.
        iteration: u64,
    },
}

/// An operation to begin.
#[derive(Debug)]
pub struct Operation {
    /// What a lane is.
    pub lane_type: LaneType,
    /// What becomes of the lanes.
    pub reduction: Reduction,
    /// This worker's lanes; later the result.
    pub buffer: Box<dyn Buffer>,
    /// Whether a sum without some workers counts as success. Otherwise it ends with
    /// [`Failure::Partial`].
    pub accepts_partial: bool,
    /// What else has to be equal at all workers.
    pub label: Label,
}

/// What an operation's lanes and its reduction do not say, and all workers say alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// The caller's own mark, at most [`Call::LARGEST_TAG`]; 0: none. A broadcast has none.
    pub tag: u16,
    /// The caller's array is empty. The operation then has one lane, which means nothing.
    pub is_empty: bool,
    /// What the protocol lacks for it: the worker has refused it.
    pub lacks: Option<Lacking>,
}

impl Operation {
    /// What the program calls.
    #[must_use]
    pub const fn call(&self) -> Call {
        let kind = match self.reduction {
            _ if let Some(lacking) = self.label.lacks => CallKind::Refused(lacking),
            Reduction::Broadcast { root } => CallKind::Broadcast { root },
            _ if self.label.is_empty => CallKind::Empty,
            Reduction::Mean => CallKind::Mean,
            Reduction::ExactSum => CallKind::ExactSum,
            Reduction::ExactMean => CallKind::ExactMean,
            _ => CallKind::Plain,
        };
        Call::new(kind, self.label.tag)
    }

    /// What stands for it at the other workers, where this end refuses it.
    pub(super) fn stand_in(&self) -> Self {
        let lacking = match self.reduction {
            Reduction::Min => Lacking::Minimum,
            Reduction::Max => Lacking::Maximum,
            Reduction::Broadcast { .. } => Lacking::Broadcast,
            _ if self.lane_type != LaneType::F32 => Lacking::Type,
            _ => Lacking::Else,
        };
        let lane_type = LaneType::F32;
        Self {
            lane_type,
            reduction: Reduction::Sum,
            buffer: Box::new(vec![0; lane_type.bytes()]),
            accepts_partial: true,
            label: Label { lacks: Some(lacking), ..Label::default() },
        }
    }
}

/// Names an operation of one collective, from 0 in the order of [`begin`](super::Collective::begin).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub u64);

/// An operation that has ended.
#[derive(Debug)]
pub struct Done {
    /// The operation.
    pub id: OperationId,
    /// How it ended.
    pub outcome: Result<Sum, Failure>,
    /// The lanes: the result if the operation succeeded, and otherwise of no use.
    pub buffer: Box<dyn Buffer>,
    /// From its beginning to its end.
    pub took: Duration,
}

/// What is known of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum {
    /// Workers in the block with the fewest contributors.
    pub contributors: u32,
    /// Workers that belong into the sum.
    pub expected: u32,
    /// A lane of a piece was no finite number.
    pub not_finite: bool,
}

/// Why an operation, or a join, failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// This worker has not joined, or has left.
    NotJoined,
    /// The switch turned the worker away.
    Refused(WelcomeCode),
    /// The lanes are not whole, there are none, they are more than block numbers can count, or the
    /// reduction does not exist for the lane type.
    BadOperation(&'static str),
    /// The generation ended before the operation did.
    Closed {
        /// Why it ended.
        reason: Reason,
        /// The rank of the worker that is the reason, where it is one of the generation.
        culprit: Option<u32>,
    },
    /// Nothing was heard from the switch for [`Config::silence`](super::Config::silence).
    SwitchSilent,
    /// The caller gave the operation up.
    TimedOut,
    /// A block's result lacks workers, and the operation does not accept that.
    Partial {
        /// Workers in the block with the fewest contributors.
        contributors: u32,
        /// Workers that belong into it.
        expected: u32,
    },
    /// The switch refused a lane of this rank that is no finite number.
    NotFinite {
        /// The rank, where it is known.
        rank: Option<u32>,
    },
}
