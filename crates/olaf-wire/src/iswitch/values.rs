//! The Values of control messages as plain structs. The paper prints none of them.

use super::verbs::{Action, Outcome, Sender};
use crate::ids::{JobId, Session};
use crate::reduce::Reason;

/// "Join the training job". Its Value is the meta-data of the training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// The generation in which the sender was last.
    pub generation: u8,
    /// A worker or a switch.
    pub sender: Sender,
    /// The job.
    pub job: JobId,
    /// The sender's life.
    pub session: Session,
    /// The wanted rank; [`ANY`](super::ANY): any that is free.
    pub rank: u32,
    /// Workers of the whole job, from 1 to [`MAX_WORKERS`](super::MAX_WORKERS).
    pub workers: u32,
    /// Workers that the sender stands for, at least 1: a switch has more.
    pub contributors: u32,
    /// Most floats that a data packet to or from the sender may have, at least 1.
    pub packet_floats: u32,
    /// The count of operations that the sender's program has begun in the job, up to the end of that generation
    /// ([`operations_after`](crate::operations_after)); [`ANY`](super::ANY): it was in none.
    pub operations: u32,
    /// The program that the sender is a worker of ([`program_of`]); 0: not said. It is in a place that the hardware does
    /// not read: the hardware sums whoever joins, and takes no part in the question whose job it is.
    pub program: u32,
    /// The number of the newest answer, which proves the sender's address; 0: none yet.
    pub nonce: u32,
}

/// The 32 bits that a join of iSwitch has for a program of 64; 0 where none is said.
#[must_use]
pub const fn program_of(program: u64) -> u32 {
    let folded = (program >> 32) as u32 ^ program as u32;
    // Halves that are the same still name a program.
    if folded == 0 && program != 0 { 1 } else { folded }
}

/// "Leave the training job".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leave {
    /// The generation in which the sender was last.
    pub generation: u8,
    /// The job.
    pub job: JobId,
    /// The sender's life.
    pub session: Session,
}

/// The packets that an FBcast or a Help is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packets {
    /// The generation.
    pub generation: u8,
    /// When the sender of the question sent it, microseconds of its own clock, which wraps.
    pub sent_at_us: u32,
    /// The packet that bit 0 of `mask` stands for.
    pub index: u64,
    /// Bit i set: packet `index + i` is meant.
    ///
    /// differs: the paper names one packet. Losses come in bursts, and a question for each would be a burst, too.
    pub mask: u64,
}

impl Packets {
    /// The indices, in order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + use<> {
        let Self { index, mask, .. } = *self;
        (0..u64::from(u64::BITS))
            .filter(move |bit| mask >> bit & 1 == 1)
            .map(move |bit| index + bit)
    }
}

/// "Suspend the training job on all workers": down it ends a generation, up it asks for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Halt {
    /// The generation.
    pub generation: u8,
    /// Why it ends.
    pub reason: Reason,
    /// The rank of the worker that is the reason; [`ANY`](super::ANY): none.
    pub culprit: u32,
    /// Down: the first packet without a result. Up: of no meaning. 56 bits.
    pub index: u64,
    /// What the worker calls that is the reason ([`Call::narrow`](crate::Call::narrow)); 0: not said.
    pub calls: u8,
}

/// What the answer to a join says beside its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Admission {
    /// The receiver's number in the switch's membership table.
    pub member: u32,
    /// The receiver's rank in the job; [`ANY`](super::ANY) while it has none.
    pub rank: u32,
    /// Workers of the whole job.
    pub workers: u32,
    /// Workers that are here.
    pub here: u32,
    /// Packets that a worker may be ahead of its first missing result; 0 until the generation begins.
    pub slots: u32,
    /// Floats of each packet but the last of a vector; 0 until the generation begins.
    pub packet_floats: u32,
    /// The count of operations of the program that is the furthest ([`operations_after`](crate::operations_after)).
    pub operations: u32,
    /// The life that asked to join.
    pub session: Session,
    /// The receiver has to join again with this number before the switch lets it in; 0: nothing is left
    /// to prove.
    pub nonce: u32,
}

/// "Confirm the success/failure of actions". Up it confirms results, and is the heartbeat of a worker
/// that has nothing to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The generation.
    pub generation: u8,
    /// The action that is confirmed. Up: [`Action::Ack`].
    pub action: Action,
    /// What became of it.
    pub outcome: Outcome,
    /// `sent_at_us` of the question.
    pub sent_at_us: u32,
    /// Up: the sender holds the results of all packets below this one. Down: 0.
    pub index: u64,
    /// Of a join alone.
    pub admission: Option<Admission>,
}

/// A control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// See [`Join`].
    Join(Join),
    /// See [`Leave`].
    Leave(Leave),
    /// "Clear accelerator buffers/counters on the switch", for the sender's job.
    Reset {
        /// The generation.
        generation: u8,
    },
    /// "Set the aggregation threshold H on the switch", for the sender's job.
    SetH {
        /// The generation.
        generation: u8,
        /// Vectors that complete a sum at this switch, at least 1.
        h: u32,
    },
    /// "Force broadcasting a partially aggregated segment on the switch".
    FBcast(Packets),
    /// "Request a lost data packet for a worker": up the sender lacks results, down the switch lacks packets.
    Help(Packets),
    /// See [`Halt`].
    Halt(Halt),
    /// See [`Ack`].
    Ack(Ack),
}

impl Control {
    /// Which verb it is.
    #[must_use]
    pub const fn action(&self) -> Action {
        match self {
            Self::Join(_) => Action::Join,
            Self::Leave(_) => Action::Leave,
            Self::Reset { .. } => Action::Reset,
            Self::SetH { .. } => Action::SetH,
            Self::FBcast(_) => Action::FBcast,
            Self::Help(_) => Action::Help,
            Self::Halt(_) => Action::Halt,
            Self::Ack(_) => Action::Ack,
        }
    }
}
