//! Who takes part, and when a generation begins and ends.

use super::called::{Called, Clash};
use super::offsets::{ALL, HEADER, MAX_CORES, MAX_RANKS, closed, common, join, welcome};
use super::packet::{Address, Kind, ReducePacket, emit_common};
use crate::packet::Refusal;

/// "I want to take part": repeated until a [`Welcome`] says that the generation has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// The sender. Its rank is the wanted one, or [`ALL`] for any that is free.
    pub address: Address,
    /// Ranks that the generation waits for before it begins; 0: it begins with those that are here.
    pub workers: u32,
    /// Workers that the sender stands for, at least 1: a lower switch has more.
    pub contributors: u32,
    /// A block that is incomplete for this time, in microseconds, ends without the missing workers.
    /// 0: the switch's own deadline.
    pub deadline_us: u32,
    /// Bytes of a block's lanes that the sender wants; 0: as many as fit a datagram.
    pub block_bytes: u32,
    /// Most bytes that a datagram to or from the sender may have.
    pub datagram_bytes: u32,
    /// When the sender sent it, microseconds of its own clock, which wraps; 0: not said.
    pub sent_at_us: u32,
    /// The number of the newest welcome, which proves the sender's address; 0: none yet.
    pub nonce: u32,
    /// The count of operations that the sender's program has begun in the job and that begin in no later generation
    /// again ([`operations_after`](crate::operations_after)). 0 where the address names no generation.
    pub operation: u32,
    /// The program that the sender is a worker of, the same at all its workers and at no other program's; 0: not said.
    pub program: u64,
}

impl Join {
    /// Reads a join.
    ///
    /// # Errors
    /// [`Refusal::BadField`] for another kind, for numbers that cannot be, and where a field is set
    /// that the message does not have.
    pub fn parse(packet: &ReducePacket<'_>) -> Result<Self, Refusal> {
        packet.expect(Kind::Join)?;
        let message = Self {
            address: packet.address(),
            workers: packet.u32(join::WORKERS),
            contributors: packet.u32(join::CONTRIBUTORS),
            deadline_us: packet.u32(join::DEADLINE_US),
            block_bytes: packet.u32(join::BLOCK_BYTES),
            datagram_bytes: packet.u32(join::DATAGRAM_BYTES),
            sent_at_us: packet.u32(common::SENT_AT_US),
            nonce: packet.u32(join::NONCE),
            operation: packet.u32(common::OPERATION),
            program: packet.u64(join::PROGRAM),
        };
        if message.workers > MAX_RANKS {
            return Err(Refusal::BadField("workers"));
        }
        if message.contributors == 0 {
            return Err(Refusal::BadField("contributors"));
        }
        packet.expect_written(|buf| message.emit(buf))?;
        Ok(message)
    }

    /// Writes the join; returns the datagram's length.
    ///
    /// # Panics
    /// When `buf` is shorter than that.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let mut writer = emit_common(buf, Kind::Join, &self.address);
        writer.put(join::WORKERS, self.workers.to_be_bytes());
        writer.put(join::CONTRIBUTORS, self.contributors.to_be_bytes());
        writer.put(join::DEADLINE_US, self.deadline_us.to_be_bytes());
        writer.put(join::BLOCK_BYTES, self.block_bytes.to_be_bytes());
        writer.put(join::DATAGRAM_BYTES, self.datagram_bytes.to_be_bytes());
        writer.put(common::SENT_AT_US, self.sent_at_us.to_be_bytes());
        writer.put(join::NONCE, self.nonce.to_be_bytes());
        writer.put(common::OPERATION, self.operation.to_be_bytes());
        writer.put(join::PROGRAM, self.program.to_be_bytes());
        HEADER
    }
}

/// What became of a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum WelcomeCode {
    /// The generation has begun, and the worker is in it.
    Welcome = 1,
    /// The worker is known; the generation waits for others.
    Waiting = 2,
    /// No rank is free, or the switch has no room for the job.
    Full = 3,
    /// The switch does not take the job, or the worker contradicts the job's other workers.
    Refused = 4,
    /// The join has another version of the format. The version of this welcome is the switch's.
    OtherVersion = 5,
    /// The job belongs to workers of another program, and one of them lives.
    OtherProgram = 6,
    /// A worker that lives has the rank that the sender asks for.
    RankTaken = 7,
    /// Two live workers that name no program ask for one rank of a job that has just begun, or begins: nobody can say
    /// which of them belong together, so all are turned away.
    Contested = 8,
}

impl WelcomeCode {
    /// Every code.
    pub const EACH: [Self; 8] = [
        Self::Welcome,
        Self::Waiting,
        Self::Full,
        Self::Refused,
        Self::OtherVersion,
        Self::OtherProgram,
        Self::RankTaken,
        Self::Contested,
    ];

    fn from_byte(byte: u8) -> Option<Self> {
        Self::EACH.into_iter().find(|code| *code as u8 == byte)
    }

    /// A short stable name, for counters and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Welcome => "welcome",
            Self::Waiting => "waiting",
            Self::Full => "full",
            Self::Refused => "refused",
            Self::OtherVersion => "other_version",
            Self::OtherProgram => "other_program",
            Self::RankTaken => "rank_taken",
            Self::Contested => "contested",
        }
    }

    /// Returns true if the worker is turned away, rather than let in or told to wait.
    #[must_use]
    pub const fn is_refusal(self) -> bool {
        !matches!(self, Self::Welcome | Self::Waiting)
    }
}

/// The answer to a [`Join`]. One with [`WelcomeCode::Welcome`] begins a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The receiver: its rank in the generation, or [`ALL`] while it has none.
    pub address: Address,
    /// What became of the join.
    pub code: WelcomeCode,
    /// The count of operations of the program that is the furthest ([`operations_after`](crate::operations_after)). The
    /// operation behind them has number 0 in the generation.
    pub operation: u32,
    /// Ranks of the generation; 0 while that is open.
    pub workers: u32,
    /// Ranks that are here.
    pub here: u32,
    /// Slots of the job, two cells each; 0 while that is open.
    pub slots: u32,
    /// Bytes of a block's lanes, in every block of an operation but the last.
    pub block_bytes: u32,
    /// Cores of the switch, at most [`MAX_CORES`]. The engine of core `i` listens on the switch's port
    /// plus `i`, and a worker of a fixed job divides its operations among them. 0: not said.
    pub cores: u32,
    /// `sent_at_us` of the join; 0: not said.
    pub sent_at_us: u32,
    /// The receiver has to join again with this number before the switch lets it in; 0: nothing is
    /// left to prove.
    pub nonce: u32,
}

impl Welcome {
    /// Reads a welcome.
    ///
    /// # Errors
    /// [`Refusal::BadField`] for another kind, for a code or numbers that cannot be, and where a
    /// field is set that the message does not have.
    pub fn parse(packet: &ReducePacket<'_>) -> Result<Self, Refusal> {
        packet.expect(Kind::Welcome)?;
        let message = Self {
            address: packet.address(),
            code: WelcomeCode::from_byte(packet.byte(welcome::CODE))
                .ok_or(Refusal::BadField("code"))?,
            operation: packet.u32(common::OPERATION),
            workers: packet.u32(welcome::WORKERS),
            here: packet.u32(welcome::HERE),
            slots: packet.u32(welcome::SLOTS),
            block_bytes: packet.u32(welcome::BLOCK_BYTES),
            cores: packet.u32(welcome::CORES),
            sent_at_us: packet.u32(common::SENT_AT_US),
            nonce: packet.u32(welcome::NONCE),
        };
        if message.workers > MAX_RANKS {
            return Err(Refusal::BadField("workers"));
        }
        if message.here > MAX_RANKS {
            return Err(Refusal::BadField("here"));
        }
        if message.cores > MAX_CORES {
            return Err(Refusal::BadField("cores"));
        }
        if message.code == WelcomeCode::Welcome {
            message.check()?;
        }
        packet.expect_written(|buf| message.emit(buf))?;
        Ok(message)
    }

    /// Checks that a generation can be as the welcome describes it.
    fn check(&self) -> Result<(), Refusal> {
        if self.workers == 0 {
            return Err(Refusal::BadField("workers"));
        }
        if self.address.rank >= self.workers {
            return Err(Refusal::BadField("rank"));
        }
        if self.slots == 0 {
            return Err(Refusal::BadField("slots"));
        }
        if self.block_bytes == 0 {
            return Err(Refusal::BadField("block_bytes"));
        }
        if self.cores == 0 {
            return Err(Refusal::BadField("cores"));
        }
        Ok(())
    }

    /// Writes the welcome; returns the datagram's length.
    ///
    /// # Panics
    /// When `buf` is shorter than that.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let mut writer = emit_common(buf, Kind::Welcome, &self.address);
        writer.put(common::OPERATION, self.operation.to_be_bytes());
        writer.put(welcome::WORKERS, self.workers.to_be_bytes());
        writer.put(welcome::HERE, self.here.to_be_bytes());
        writer.put(welcome::SLOTS, self.slots.to_be_bytes());
        writer.put(welcome::BLOCK_BYTES, self.block_bytes.to_be_bytes());
        writer.put(welcome::CORES, self.cores.to_be_bytes());
        writer.put(common::SENT_AT_US, self.sent_at_us.to_be_bytes());
        writer.put(welcome::NONCE, self.nonce.to_be_bytes());
        writer.put(welcome::CODE, [self.code as u8]);
        HEADER
    }
}

/// A worker's leave. Nobody waits for it: a worker that vanishes is noticed by its silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leave {
    /// The sender.
    pub address: Address,
    /// The first operation in which the sender takes no part.
    pub operation: u32,
}

impl Leave {
    /// Reads a leave.
    ///
    /// # Errors
    /// [`Refusal::BadField`] for another kind, and where a field is set that the message does not
    /// have.
    pub fn parse(packet: &ReducePacket<'_>) -> Result<Self, Refusal> {
        packet.expect(Kind::Leave)?;
        let message = Self { address: packet.address(), operation: packet.u32(common::OPERATION) };
        packet.expect_written(|buf| message.emit(buf))?;
        Ok(message)
    }

    /// Writes the leave; returns the datagram's length.
    ///
    /// # Panics
    /// When `buf` is shorter than that.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let mut writer = emit_common(buf, Kind::Leave, &self.address);
        writer.put(common::OPERATION, self.operation.to_be_bytes());
        HEADER
    }
}

/// Why a generation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Reason {
    /// A worker was silent while a block waited for it.
    Dead = 1,
    /// A worker left.
    Left = 2,
    /// A worker joined.
    Joined = 3,
    /// A worker's operation differs from the others' operation of the same number.
    Mismatch = 4,
    /// The switch no longer takes the job.
    Refused = 5,
    /// The numbers of the generation's blocks or operations run out.
    Renewed = 6,
    /// The switch does not know the generation: it was restarted, or forgot the job.
    Unknown = 7,
    /// The switch above is silent.
    SwitchSilent = 8,
}

impl Reason {
    /// Every reason.
    pub const EACH: [Self; 8] = [
        Self::Dead,
        Self::Left,
        Self::Joined,
        Self::Mismatch,
        Self::Refused,
        Self::Renewed,
        Self::Unknown,
        Self::SwitchSilent,
    ];

    fn from_byte(byte: u8) -> Option<Self> {
        Self::EACH.into_iter().find(|reason| *reason as u8 == byte)
    }

    /// A short stable name, for counters and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dead => "dead",
            Self::Left => "left",
            Self::Joined => "joined",
            Self::Mismatch => "mismatch",
            Self::Refused => "refused",
            Self::Renewed => "renewed",
            Self::Unknown => "unknown",
            Self::SwitchSilent => "switch_silent",
        }
    }
}

/// The generation ends. Operations before `operation` end with their sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The receiver, and the generation that ends.
    pub address: Address,
    /// The first operation that fails.
    pub operation: u32,
    /// The rank of the worker that is the reason; [`ALL`] where it is none of the generation.
    pub culprit: u32,
    /// Why the generation ends.
    pub reason: Reason,
    /// With [`Reason::Mismatch`]: what the culprit and the others call, where that is known.
    pub clash: Option<Clash>,
}

impl Closed {
    /// Reads the end of a generation.
    ///
    /// # Errors
    /// [`Refusal::BadField`] for another kind, for a rank or a reason that cannot be, and where a
    /// field is set that the message does not have.
    pub fn parse(packet: &ReducePacket<'_>) -> Result<Self, Refusal> {
        packet.expect(Kind::Closed)?;
        let message = Self {
            address: packet.address(),
            operation: packet.u32(common::OPERATION),
            culprit: packet.u32(closed::CULPRIT),
            reason: Reason::from_byte(packet.byte(closed::REASON))
                .ok_or(Refusal::BadField("reason"))?,
            clash: Called::read(packet, closed::CULPRITS)?
                .zip(Called::read(packet, closed::OTHERS)?)
                .map(|(culprit, others)| Clash { culprit, others }),
        };
        if message.culprit >= MAX_RANKS && message.culprit != ALL {
            return Err(Refusal::BadField("culprit"));
        }
        packet.expect_written(|buf| message.emit(buf))?;
        Ok(message)
    }

    /// Writes the end of a generation; returns the datagram's length.
    ///
    /// # Panics
    /// When `buf` is shorter than that.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let mut writer = emit_common(buf, Kind::Closed, &self.address);
        writer.put(common::OPERATION, self.operation.to_be_bytes());
        writer.put(closed::CULPRIT, self.culprit.to_be_bytes());
        writer.put(closed::REASON, [self.reason as u8]);
        if let Some(Clash { culprit, others }) = &self.clash {
            culprit.put(&mut writer, closed::CULPRITS);
            others.put(&mut writer, closed::OTHERS);
        }
        HEADER
    }
}
