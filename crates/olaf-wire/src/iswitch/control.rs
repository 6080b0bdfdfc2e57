//! Control messages: an Action and its Value (iSwitch Figure 5a, Table 2).

use super::offsets::{
    LONGEST_CONTROL, MAX_INDEX, MAX_WORKERS, VERSION, ack, control, halt, join, leave, packets,
    set_h,
};
use crate::ids::{JobId, Session};
use crate::packet::{Refusal, Writer, array_at};
use crate::reduce::{Reason, WelcomeCode};

/// The eight verbs of Table 2.
///
/// differs: the paper prints no codes. Ours are the rows of the table, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Action {
    /// Join the training job.
    Join = 1,
    /// Leave the training job.
    Leave = 2,
    /// Clear buffers and counters on the switch.
    Reset = 3,
    /// Set the aggregation threshold H on the switch.
    SetH = 4,
    /// Force the broadcast of a partially aggregated segment.
    FBcast = 5,
    /// Request a lost data packet.
    Help = 6,
    /// Suspend the training job on all workers.
    Halt = 7,
    /// Confirm the success or the failure of an action.
    Ack = 8,
}

impl Action {
    /// Every action.
    pub const EACH: [Self; 8] = [
        Self::Join,
        Self::Leave,
        Self::Reset,
        Self::SetH,
        Self::FBcast,
        Self::Help,
        Self::Halt,
        Self::Ack,
    ];

    fn from_byte(byte: u8) -> Option<Self> {
        Self::EACH.into_iter().find(|action| *action as u8 == byte)
    }

    /// A short stable name, for counters and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Join => "join",
            Self::Leave => "leave",
            Self::Reset => "reset",
            Self::SetH => "set_h",
            Self::FBcast => "fbcast",
            Self::Help => "help",
            Self::Halt => "halt",
            Self::Ack => "ack",
        }
    }
}

/// What an [`Ack`] confirms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Outcome {
    /// It is done. Of a join: the generation has begun, and the sender is in it.
    Success = 1,
    /// The switch is there, and other workers are awaited.
    Waiting = 2,
    /// There is no room for the job or the worker.
    Full = 3,
    /// It cannot be done.
    Refused = 4,
    /// The message has another version.
    OtherVersion = 5,
}

impl Outcome {
    /// Every outcome.
    pub const EACH: [Self; 5] =
        [Self::Success, Self::Waiting, Self::Full, Self::Refused, Self::OtherVersion];

    fn from_byte(byte: u8) -> Option<Self> {
        Self::EACH.into_iter().find(|outcome| *outcome as u8 == byte)
    }

    /// A short stable name, for counters and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Waiting => "waiting",
            Self::Full => "full",
            Self::Refused => "refused",
            Self::OtherVersion => "other_version",
        }
    }

    /// The same about a join, in the words that all summing protocols share.
    #[must_use]
    pub const fn of_join(self) -> WelcomeCode {
        match self {
            Self::Success => WelcomeCode::Welcome,
            Self::Waiting => WelcomeCode::Waiting,
            Self::Full => WelcomeCode::Full,
            Self::Refused => WelcomeCode::Refused,
            Self::OtherVersion => WelcomeCode::OtherVersion,
        }
    }
}

/// The type of a membership entry (iSwitch Figure 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Sender {
    /// A worker.
    Worker = 0,
    /// A switch, with the workers behind it.
    Switch = 1,
}

/// "Join the training job". Its Value is the meta-data of the training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// The generation in which the sender was last. It says to which times `operations` belongs.
    pub generation: u8,
    /// A worker or a switch.
    pub sender: Sender,
    /// The job.
    pub job: JobId,
    /// The sender's life.
    pub session: Session,
    /// The wanted rank; [`ANY`](super::ANY): any that is free.
    pub rank: u32,
    /// Workers of the whole job, from 1 to [`MAX_WORKERS`].
    pub workers: u32,
    /// Workers that the sender stands for, at least 1: a switch has more.
    pub contributors: u32,
    /// Most floats that a data packet to or from the sender may have, at least 1.
    pub packet_floats: u32,
    /// Operations that the sender's program began in that generation; [`ANY`](super::ANY): it was in none.
    pub operations: u32,
    /// When the sender sent it, microseconds of its own clock, which wraps.
    pub sent_at_us: u32,
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
    /// Down: the first packet without a result. Up: of no meaning.
    pub index: u64,
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
    /// The most operations that a worker's program began in the generation before.
    pub operations: u32,
    /// The life that asked to join.
    pub session: Session,
}

/// "Confirm the success/failure of actions". Up it confirms results, and is the sign of life of a worker
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

    /// Reads `bytes`, one whole datagram of [`CONTROL_CLASS`](super::CONTROL_CLASS).
    ///
    /// # Errors
    /// The [`Refusal`] that says what is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let have = bytes.len();
        let Some(action) = bytes.first() else {
            return Err(Refusal::Truncated { have, need: control::LEN });
        };
        let action = Action::from_byte(*action).ok_or(Refusal::UnknownKind(*action))?;
        let need = match action {
            Action::Join => join::LEN,
            Action::Leave => leave::LEN,
            Action::Reset => control::LEN,
            Action::SetH => set_h::LEN,
            Action::FBcast | Action::Help => packets::LEN,
            Action::Halt => halt::LEN,
            Action::Ack if bytes.get(control::WHAT) == Some(&(Action::Join as u8)) => {
                ack::LEN_OF_JOIN
            }
            Action::Ack => ack::LEN,
        };
        if have < need {
            return Err(Refusal::Truncated { have, need });
        }
        if have > need {
            return Err(Refusal::Oversized { have, need });
        }
        let message = Value(bytes).read(action)?;
        // Written again, a message has the same bytes: none hides in a place without a field.
        let mut again = [0; LONGEST_CONTROL];
        if message.emit(&mut again) == have && &again[..have] == bytes {
            Ok(message)
        } else {
            Err(Refusal::BadField("unused"))
        }
    }

    /// Writes the message; returns the datagram's length.
    ///
    /// # Panics
    /// When `buf` is shorter than [`LONGEST_CONTROL`]: buffers are the caller's, not the network's.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        buf[..LONGEST_CONTROL].fill(0);
        let mut writer = Writer(buf);
        writer.put(control::ACTION, [self.action() as u8]);
        match self {
            Self::Join(message) => message.emit(&mut writer),
            Self::Leave(Leave { generation, job, session }) => {
                writer.put(control::GENERATION, [*generation]);
                writer.put(leave::JOB, job.0.to_be_bytes());
                writer.put(leave::SESSION, session.0.to_be_bytes());
                leave::LEN
            }
            Self::Reset { generation } => {
                writer.put(control::GENERATION, [*generation]);
                control::LEN
            }
            Self::SetH { generation, h } => {
                writer.put(control::GENERATION, [*generation]);
                writer.put(set_h::H, h.to_be_bytes());
                set_h::LEN
            }
            Self::FBcast(message) | Self::Help(message) => {
                writer.put(control::GENERATION, [message.generation]);
                writer.put(packets::SENT_AT_US, message.sent_at_us.to_be_bytes());
                writer.put(packets::INDEX, message.index.to_be_bytes());
                writer.put(packets::MASK, message.mask.to_be_bytes());
                packets::LEN
            }
            Self::Halt(Halt { generation, reason, culprit, index }) => {
                writer.put(control::GENERATION, [*generation]);
                writer.put(control::CODE, [*reason as u8]);
                writer.put(halt::CULPRIT, culprit.to_be_bytes());
                writer.put(halt::INDEX, index.to_be_bytes());
                halt::LEN
            }
            Self::Ack(message) => message.emit(&mut writer),
        }
    }
}

impl Join {
    fn emit(&self, writer: &mut Writer<'_>) -> usize {
        writer.put(control::GENERATION, [self.generation]);
        writer.put(control::CODE, [VERSION]);
        writer.put(control::WHAT, [self.sender as u8]);
        writer.put(join::JOB, self.job.0.to_be_bytes());
        writer.put(join::SESSION, self.session.0.to_be_bytes());
        writer.put(join::RANK, self.rank.to_be_bytes());
        writer.put(join::WORKERS, self.workers.to_be_bytes());
        writer.put(join::CONTRIBUTORS, self.contributors.to_be_bytes());
        writer.put(join::PACKET_FLOATS, self.packet_floats.to_be_bytes());
        writer.put(join::OPERATIONS, self.operations.to_be_bytes());
        writer.put(join::SENT_AT_US, self.sent_at_us.to_be_bytes());
        join::LEN
    }
}

impl Ack {
    fn emit(&self, writer: &mut Writer<'_>) -> usize {
        writer.put(control::GENERATION, [self.generation]);
        writer.put(control::CODE, [self.outcome as u8]);
        writer.put(control::WHAT, [self.action as u8]);
        writer.put(ack::SENT_AT_US, self.sent_at_us.to_be_bytes());
        writer.put(ack::INDEX, self.index.to_be_bytes());
        if self.action != Action::Join {
            return ack::LEN;
        }
        let admission = self.admission.unwrap_or_default();
        writer.put(ack::MEMBER, admission.member.to_be_bytes());
        writer.put(ack::RANK, admission.rank.to_be_bytes());
        writer.put(ack::WORKERS, admission.workers.to_be_bytes());
        writer.put(ack::HERE, admission.here.to_be_bytes());
        writer.put(ack::SLOTS, admission.slots.to_be_bytes());
        writer.put(ack::PACKET_FLOATS, admission.packet_floats.to_be_bytes());
        writer.put(ack::OPERATIONS, admission.operations.to_be_bytes());
        writer.put(ack::SESSION, admission.session.0.to_be_bytes());
        ack::LEN_OF_JOIN
    }
}

/// The sender's life in a join of another version: the answer can then name it.
#[must_use]
pub fn join_of_another_version(bytes: &[u8]) -> Option<Session> {
    let is_join = bytes.first() == Some(&(Action::Join as u8)) && bytes.len() >= leave::LEN;
    let other = is_join && bytes[control::CODE] != VERSION;
    other.then(|| Session(u32::from_be_bytes(array_at(bytes, join::SESSION))))
}

/// A datagram that is as long as its action asks for.
struct Value<'a>(&'a [u8]);

impl Value<'_> {
    fn u32(&self, at: usize) -> u32 {
        u32::from_be_bytes(array_at(self.0, at))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_be_bytes(array_at(self.0, at))
    }

    fn read(&self, action: Action) -> Result<Control, Refusal> {
        let generation = self.0[control::GENERATION];
        Ok(match action {
            Action::Join => Control::Join(self.join(generation)?),
            Action::Leave => Control::Leave(Leave {
                generation,
                job: JobId(self.u32(leave::JOB)),
                session: Session(self.u32(leave::SESSION)),
            }),
            Action::Reset => Control::Reset { generation },
            Action::SetH => {
                let h = self.u32(set_h::H);
                if h == 0 || h > MAX_WORKERS {
                    return Err(Refusal::BadField("h"));
                }
                Control::SetH { generation, h }
            }
            Action::FBcast => Control::FBcast(self.packets(generation)?),
            Action::Help => Control::Help(self.packets(generation)?),
            Action::Halt => {
                let code = self.0[control::CODE];
                let reason = Reason::EACH.into_iter().find(|reason| *reason as u8 == code);
                Control::Halt(Halt {
                    generation,
                    reason: reason.ok_or(Refusal::BadField("reason"))?,
                    culprit: self.u32(halt::CULPRIT),
                    index: self.u64(halt::INDEX),
                })
            }
            Action::Ack => Control::Ack(self.ack(generation)?),
        })
    }

    fn join(&self, generation: u8) -> Result<Join, Refusal> {
        let version = self.0[control::CODE];
        if version != VERSION {
            return Err(Refusal::WrongVersion { have: version, speaks: VERSION });
        }
        let message = Join {
            generation,
            sender: match self.0[control::WHAT] {
                0 => Sender::Worker,
                1 => Sender::Switch,
                _ => return Err(Refusal::BadField("sender")),
            },
            job: JobId(self.u32(join::JOB)),
            session: Session(self.u32(join::SESSION)),
            rank: self.u32(join::RANK),
            workers: self.u32(join::WORKERS),
            contributors: self.u32(join::CONTRIBUTORS),
            packet_floats: self.u32(join::PACKET_FLOATS),
            operations: self.u32(join::OPERATIONS),
            sent_at_us: self.u32(join::SENT_AT_US),
        };
        if !(1..=MAX_WORKERS).contains(&message.workers) {
            return Err(Refusal::BadField("workers"));
        }
        if !(1..=message.workers).contains(&message.contributors) {
            return Err(Refusal::BadField("contributors"));
        }
        if message.packet_floats == 0 {
            return Err(Refusal::BadField("packet_floats"));
        }
        Ok(message)
    }

    fn packets(&self, generation: u8) -> Result<Packets, Refusal> {
        let message = Packets {
            generation,
            sent_at_us: self.u32(packets::SENT_AT_US),
            index: self.u64(packets::INDEX),
            mask: self.u64(packets::MASK),
        };
        if message.index > MAX_INDEX - u64::from(u64::BITS) {
            return Err(Refusal::BadField("index"));
        }
        Ok(message)
    }

    fn ack(&self, generation: u8) -> Result<Ack, Refusal> {
        let action = Action::from_byte(self.0[control::WHAT]).ok_or(Refusal::BadField("action"))?;
        let outcome =
            Outcome::from_byte(self.0[control::CODE]).ok_or(Refusal::BadField("outcome"))?;
        let admission = (action == Action::Join).then(|| Admission {
            member: self.u32(ack::MEMBER),
            rank: self.u32(ack::RANK),
            workers: self.u32(ack::WORKERS),
            here: self.u32(ack::HERE),
            slots: self.u32(ack::SLOTS),
            packet_floats: self.u32(ack::PACKET_FLOATS),
            operations: self.u32(ack::OPERATIONS),
            session: Session(self.u32(ack::SESSION)),
        });
        let index = self.u64(ack::INDEX);
        if index > MAX_INDEX {
            return Err(Refusal::BadField("index"));
        }
        let sent_at_us = self.u32(ack::SENT_AT_US);
        Ok(Ack { generation, action, outcome, sent_at_us, index, admission })
    }
}
