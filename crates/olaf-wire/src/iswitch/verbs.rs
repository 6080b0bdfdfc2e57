//! The verbs of control messages, and what an answer says of one (iSwitch Table 2).

use crate::reduce::WelcomeCode;

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

    pub(super) fn from_byte(byte: u8) -> Option<Self> {
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
    /// As [`WelcomeCode::OtherProgram`].
    OtherProgram = 6,
    /// As [`WelcomeCode::RankTaken`].
    RankTaken = 7,
    /// As [`WelcomeCode::Contested`].
    Contested = 8,
}

impl Outcome {
    /// Every outcome.
    pub const EACH: [Self; 8] = [
        Self::Success,
        Self::Waiting,
        Self::Full,
        Self::Refused,
        Self::OtherVersion,
        Self::OtherProgram,
        Self::RankTaken,
        Self::Contested,
    ];

    pub(super) fn from_byte(byte: u8) -> Option<Self> {
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
            Self::OtherProgram => "other_program",
            Self::RankTaken => "rank_taken",
            Self::Contested => "contested",
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
            Self::OtherProgram => WelcomeCode::OtherProgram,
            Self::RankTaken => WelcomeCode::RankTaken,
            Self::Contested => WelcomeCode::Contested,
        }
    }

    /// What the answer to a join says, of the same in the words that all summing protocols share.
    #[must_use]
    pub const fn from_code(code: WelcomeCode) -> Self {
        match code {
            WelcomeCode::Welcome => Self::Success,
            WelcomeCode::Waiting => Self::Waiting,
            WelcomeCode::Full => Self::Full,
            WelcomeCode::Refused => Self::Refused,
            WelcomeCode::OtherVersion => Self::OtherVersion,
            WelcomeCode::OtherProgram => Self::OtherProgram,
            WelcomeCode::RankTaken => Self::RankTaken,
            WelcomeCode::Contested => Self::Contested,
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
