//! Control messages: who takes part, and where in the tree of switches.
//!
//! differs: the paper computes a job's arrangement from the topology, beside its protocol, and builds
//! the multicast tree with IGMP (ATP §3.2). Here a worker's join travels to its server. Each switch on
//! the way writes itself into the join, and remembers where the join came from: parameter packets go
//! back the same way.

use super::offsets::{self, LEVELS, closed, control, flags, join, leave, left, more, welcome};
use super::packet::{AtpPacket, Kind};
use super::upper::Upper;
use crate::call::Sides;
use crate::ids::Session;
use crate::operations_after;
use crate::packet::{Refusal, Writer, array_at};
use crate::reduce::{Reason, WelcomeCode};

/// "I want to take part", or "I am still there".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Join {
    /// The job.
    pub job: u16,
    /// The server.
    pub server: u8,
    /// The sender's life.
    pub session: Session,
    /// The wanted rank; [`offsets::ANY`]: any that is free.
    pub rank: u32,
    /// Workers of the job, 1 to [`offsets::MAX_WORKERS`].
    pub workers: u32,
    /// The generation that the sender is in; 0: in none.
    pub generation: u16,
    /// The life of the job ([`Welcome::life`]) that the sender has finished with; 0: none.
    pub closed: u16,
    /// Values that the sender wants in a packet.
    pub values: u16,
    /// Fewest aggregators of a switch on the way; 0: no switch so far. Written by switches.
    pub aggregators: u32,
    /// The first switches on the way, from the sender on; 0: none. Each writes itself.
    pub switches: [u32; LEVELS],
    /// When the sender sent it, microseconds of its own clock, which wraps.
    pub sent_at_us: u32,
    /// The factor of fixed point. A negative one is dynamic (ATP §B.3): its absolute value is the
    /// factor of the first window.
    pub scale: f64,
    /// Servers of the job, 1 to 4: each has a part of every tensor.
    pub servers: u8,
    /// Fragments that the sender wants to be ahead of its first unanswered one, at most.
    pub window: u16,
    /// The number of the newest welcome, which proves the address of the sender, or of the switch that passed
    /// the join on; 0: none yet.
    pub nonce: u32,
    /// The count of operations that the sender's program has begun in the job
    /// ([`operations_after`](crate::operations_after)); [`offsets::ANY`]: it was in no generation.
    pub operations: u32,
    /// The program that the sender is a worker of, the same at all its workers and at no other program's; 0: not said.
    pub program: u64,
}

/// The answer to a [`Join`]: where the worker stands, and its place in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The job.
    pub job: u16,
    /// The server.
    pub server: u8,
    /// The receiver's life.
    pub session: Session,
    /// The receiver's rank; [`offsets::ANY`] while it has none.
    pub rank: u32,
    /// Workers of the job.
    pub workers: u32,
    /// Workers that are here.
    pub here: u32,
    /// What became of the join.
    pub code: WelcomeCode,
    /// The worker sends to the second edge switch at once.
    pub edge: bool,
    /// The first edge switch is the second one, too.
    pub same_switch: bool,
    /// The generation: a new one whenever workers or places change.
    pub generation: u16,
    /// The generation in which the sequence numbers began. As long as it stays, operations go on.
    pub life: u16,
    /// Values in a packet.
    pub values: u16,
    /// Fragments that a worker may be ahead of its first unanswered one.
    pub window: u16,
    /// The worker's bit at the first edge switch.
    pub bitmap0: u32,
    /// Its group's bit at the second edge switch.
    pub bitmap1: u32,
    /// Workers of its group.
    pub fan_in0: u8,
    /// Groups at its second edge switch.
    pub fan_in1: u8,
    /// Aggregators to hash to; 0: there is no switch on the way.
    pub aggregators: u32,
    /// The time of the join that this answers; 0: of none.
    pub sent_at_us: u32,
    /// The earliest sequence number that is open (ATP §A.3).
    pub sequence: u64,
    /// The third and the fourth level of a job with more than two.
    pub upper: Option<Upper>,
    /// The receiver has to join again with this number before it is let in; 0: nothing is left to prove.
    pub nonce: u32,
    /// The count of operations of the program that was the furthest when the life began
    /// ([`operations_after`](crate::operations_after)). The operation behind them is tensor 0 of the life.
    pub operations: u32,
}

/// A worker's leave, or the word of the switch in front of a worker that the worker is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leave {
    /// The job.
    pub job: u16,
    /// The server.
    pub server: u8,
    /// The sender's life.
    pub session: Session,
    /// The life of the job that the sender was in; 0: none.
    pub life: u16,
    /// [`Reason::Left`], or [`Reason::Dead`]: another session joins from the worker's address.
    pub reason: Reason,
}

/// The server has heard a [`Leave`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// The job.
    pub job: u16,
    /// The server.
    pub server: u8,
    /// The life that has left.
    pub session: Session,
}

/// The generation has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The job.
    pub job: u16,
    /// The server.
    pub server: u8,
    /// The life of the job that has ended, as in [`Welcome::life`]; the receiver's generation where
    /// the server does not know it.
    pub life: u16,
    /// Why.
    pub reason: Reason,
    /// The lowest 24 bits of the first tensor without a result.
    pub tensor: u32,
    /// The rank of the worker that is the reason; [`offsets::ANY`]: none.
    pub culprit: u32,
    /// What that worker and the others call, where they differ.
    pub sides: Sides,
}

/// Returns true if the number is a count of operations: it has 31 bits.
const fn is_count(operations: u32) -> bool {
    operations_after(operations, 0) == operations
}

/// Writes what all control messages share; zeroes the rest of the message's length.
fn emit_common(buf: &mut [u8], kind: Kind, len: usize, job: u16, server: u8) -> Writer<'_> {
    buf[..len].fill(0);
    let mut writer = Writer(buf);
    writer.put(control::KIND, [kind.byte()]);
    writer.put(control::VERSION, [offsets::VERSION]);
    writer.put(control::FLAGS, [server << flags::SERVER_SHIFT & flags::SERVER]);
    writer.put(control::MORE, [more::CONTROL]);
    writer.put(control::JOB, job.to_be_bytes());
    writer
}

impl Join {
    /// Reads a join.
    ///
    /// # Errors
    /// [`Refusal::BadField`] for another kind, and for numbers that cannot be.
    pub fn parse(packet: &AtpPacket<'_>) -> Result<Self, Refusal> {
        packet.expect(Kind::Join)?;
        let is_long = packet.bytes().len() == join::LONG;
        let message = Self {
            job: packet.job(),
            server: packet.server(),
            session: Session(packet.u32(join::SESSION)),
            rank: packet.u32(join::RANK),
            workers: packet.u32(join::WORKERS),
            generation: packet.u16(join::GENERATION),
            closed: packet.u16(join::CLOSED),
            values: packet.u16(join::VALUES),
            aggregators: packet.u32(join::AGGREGATORS),
            switches: [
                packet.u32(join::FIRST_SWITCH),
                packet.u32(join::SECOND_SWITCH),
                if is_long { packet.u32(join::THIRD_SWITCH) } else { 0 },
                if is_long { packet.u32(join::FOURTH_SWITCH) } else { 0 },
            ],
            sent_at_us: packet.u32(join::SENT_AT_US),
            scale: f64::from_be_bytes(array_at(packet.bytes(), join::SCALE)),
            servers: packet.bytes()[join::SERVERS],
            window: packet.u16(join::WINDOW),
            nonce: packet.u32(join::NONCE),
            operations: packet.u32(join::OPERATIONS),
            program: u64::from_be_bytes(array_at(packet.bytes(), join::PROGRAM)),
        };
        if message.workers == 0 || message.workers > offsets::MAX_WORKERS {
            return Err(Refusal::BadField("workers"));
        }
        if message.rank != offsets::ANY && message.rank >= message.workers {
            return Err(Refusal::BadField("rank"));
        }
        if message.values == 0 || message.window == 0 {
            return Err(Refusal::BadField("values"));
        }
        if message.aggregators > offsets::MAX_AGGREGATORS {
            return Err(Refusal::BadField("aggregators"));
        }
        if !message.scale.is_finite() || message.scale == 0.0 {
            return Err(Refusal::BadField("scale"));
        }
        if message.servers > offsets::MAX_SERVERS || message.server >= message.servers {
            return Err(Refusal::BadField("servers"));
        }
        if message.operations != offsets::ANY && !is_count(message.operations) {
            return Err(Refusal::BadField("operations"));
        }
        packet.expect_written(|buf| message.emit(buf))?;
        Ok(message)
    }

    /// Writes the join; returns the datagram's length.
    ///
    /// # Panics
    /// When `buf` is shorter than that.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let [first, second, third, fourth] = self.switches;
        let len = if third | fourth == 0 { join::LEN } else { join::LONG };
        let mut writer = emit_common(buf, Kind::Join, len, self.job, self.server);
        writer.put(join::SESSION, self.session.0.to_be_bytes());
        writer.put(join::RANK, self.rank.to_be_bytes());
        writer.put(join::WORKERS, self.workers.to_be_bytes());
        writer.put(join::GENERATION, self.generation.to_be_bytes());
        writer.put(join::CLOSED, self.closed.to_be_bytes());
        writer.put(join::VALUES, self.values.to_be_bytes());
        writer.put(join::AGGREGATORS, self.aggregators.to_be_bytes());
        writer.put(join::FIRST_SWITCH, first.to_be_bytes());
        writer.put(join::SECOND_SWITCH, second.to_be_bytes());
        writer.put(join::SENT_AT_US, self.sent_at_us.to_be_bytes());
        writer.put(join::SCALE, self.scale.to_be_bytes());
        writer.put(join::SERVERS, [self.servers]);
        writer.put(join::WINDOW, self.window.to_be_bytes());
        writer.put(join::NONCE, self.nonce.to_be_bytes());
        writer.put(join::OPERATIONS, self.operations.to_be_bytes());
        writer.put(join::PROGRAM, self.program.to_be_bytes());
        if len == join::LONG {
            writer.put(join::THIRD_SWITCH, third.to_be_bytes());
            writer.put(join::FOURTH_SWITCH, fourth.to_be_bytes());
        }
        len
    }
}

impl Welcome {
    /// The answer to the join of a sender that has no place.
    #[must_use]
    pub const fn without_place(join: &Join, code: WelcomeCode) -> Self {
        let Join { job, server, session, sent_at_us, .. } = *join;
        Self::refusal((job, server), session, code, sent_at_us)
    }

    /// The answer to a worker of that job and server that is turned away, whose last join was sent then.
    #[must_use]
    pub const fn refusal(
        (job, server): (u16, u8),
        session: Session,
        code: WelcomeCode,
        sent_at_us: u32,
    ) -> Self {
        Self { sent_at_us, ..Self::of_nobody(job, server, session, code) }
    }

    const fn of_nobody(job: u16, server: u8, session: Session, code: WelcomeCode) -> Self {
        Self {
            job,
            server,
            session,
            rank: offsets::ANY,
            workers: 0,
            here: 0,
            code,
            edge: false,
            same_switch: false,
            generation: 0,
            life: 0,
            values: 0,
            window: 0,
            bitmap0: 0,
            bitmap1: 0,
            fan_in0: 0,
            fan_in1: 0,
            aggregators: 0,
            sent_at_us: 0,
            sequence: 0,
            upper: None,
            nonce: 0,
            operations: 0,
        }
    }

    /// Reads a welcome.
    ///
    /// # Errors
    /// [`Refusal::BadField`] for another kind, and for numbers that cannot be.
    pub fn parse(packet: &AtpPacket<'_>) -> Result<Self, Refusal> {
        packet.expect(Kind::Welcome)?;
        let bytes = packet.bytes();
        let code = WelcomeCode::EACH.into_iter().find(|code| *code as u8 == bytes[welcome::CODE]);
        let levels = bytes[welcome::LEVELS];
        let upper = bytes.get(welcome::UPPER..).and_then(<[u8]>::first_chunk);
        let message = Self {
            job: packet.job(),
            server: packet.server(),
            session: Session(packet.u32(welcome::SESSION)),
            rank: packet.u32(welcome::RANK),
            workers: packet.u32(welcome::WORKERS),
            here: packet.u32(welcome::HERE),
            code: code.ok_or(Refusal::BadField("code"))?,
            edge: levels & more::EDGE != 0,
            same_switch: levels & more::SAME_SWITCH != 0,
            generation: packet.u16(welcome::GENERATION),
            life: packet.u16(welcome::LIFE),
            values: packet.u16(welcome::VALUES),
            window: packet.u16(welcome::WINDOW),
            bitmap0: packet.u32(welcome::BITMAP0),
            bitmap1: packet.u32(welcome::BITMAP1),
            fan_in0: bytes[welcome::FAN_IN0],
            fan_in1: bytes[welcome::FAN_IN1],
            aggregators: packet.u32(welcome::AGGREGATORS),
            sent_at_us: packet.u32(welcome::SENT_AT_US),
            sequence: packet.u64(welcome::SEQUENCE),
            upper: upper.map(Upper::parse),
            nonce: packet.u32(welcome::NONCE),
            operations: packet.u32(welcome::OPERATIONS),
        };
        if message.code == WelcomeCode::Welcome {
            message.check_place()?;
        }
        if !is_count(message.operations) {
            return Err(Refusal::BadField("operations"));
        }
        packet.expect_written(|buf| message.emit(buf))?;
        Ok(message)
    }

    /// Checks the place of a worker that is in.
    fn check_place(&self) -> Result<(), Refusal> {
        let is_one = |bitmap: u32, fan_in: u8| {
            bitmap.count_ones() == 1 && fan_in > 0 && u32::from(fan_in) <= offsets::BITS
        };
        if self.workers > offsets::MAX_WORKERS || self.rank >= self.workers {
            return Err(Refusal::BadField("rank"));
        }
        if !is_one(self.bitmap0, self.fan_in0) {
            return Err(Refusal::BadField("bitmap0"));
        }
        if !is_one(self.bitmap1, self.fan_in1) {
            return Err(Refusal::BadField("bitmap1"));
        }
        let upper = self.upper.unwrap_or_default();
        if !upper.bitmaps.iter().zip(upper.fan_ins).all(|(bitmap, fan_in)| is_one(*bitmap, fan_in))
            || (!self.edge && upper.passed > 0)
        {
            return Err(Refusal::BadField("upper"));
        }
        if self.generation == 0 || self.life == 0 {
            return Err(Refusal::BadField("generation"));
        }
        if self.values == 0 || self.window == 0 || self.aggregators > offsets::MAX_AGGREGATORS {
            return Err(Refusal::BadField("values"));
        }
        Ok(())
    }

    /// Writes the welcome; returns the datagram's length.
    ///
    /// # Panics
    /// When `buf` is shorter than that.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let len = if self.upper.is_some() { welcome::LONG } else { welcome::LEN };
        let mut writer = emit_common(buf, Kind::Welcome, len, self.job, self.server);
        writer.put(welcome::SESSION, self.session.0.to_be_bytes());
        writer.put(welcome::RANK, self.rank.to_be_bytes());
        writer.put(welcome::WORKERS, self.workers.to_be_bytes());
        writer.put(welcome::HERE, self.here.to_be_bytes());
        writer.put(welcome::CODE, [self.code as u8]);
        let edge = if self.edge { more::EDGE } else { 0 };
        let same = if self.same_switch { more::SAME_SWITCH } else { 0 };
        let upper = if self.upper.is_some() { more::UPPER } else { 0 };
        writer.put(welcome::LEVELS, [edge | same | upper]);
        writer.put(welcome::GENERATION, self.generation.to_be_bytes());
        writer.put(welcome::LIFE, self.life.to_be_bytes());
        writer.put(welcome::VALUES, self.values.to_be_bytes());
        writer.put(welcome::WINDOW, self.window.to_be_bytes());
        writer.put(welcome::BITMAP0, self.bitmap0.to_be_bytes());
        writer.put(welcome::BITMAP1, self.bitmap1.to_be_bytes());
        writer.put(welcome::FAN_IN0, [self.fan_in0]);
        writer.put(welcome::FAN_IN1, [self.fan_in1]);
        writer.put(welcome::AGGREGATORS, self.aggregators.to_be_bytes());
        writer.put(welcome::SENT_AT_US, self.sent_at_us.to_be_bytes());
        writer.put(welcome::SEQUENCE, self.sequence.to_be_bytes());
        writer.put(welcome::NONCE, self.nonce.to_be_bytes());
        writer.put(welcome::OPERATIONS, self.operations.to_be_bytes());
        if let Some(upper) = &self.upper {
            upper.emit(welcome::UPPER, &mut writer);
        }
        len
    }
}

/// The answer to a join in another version of the format, which names the version of this side; none where the bytes
/// are no such join. Kind, version, job, server and session have the same place in every version.
#[must_use]
pub fn answer_to_another_version(bytes: &[u8]) -> Option<Welcome> {
    let session = bytes.get(join::SESSION..)?.first_chunk()?;
    let is_join =
        bytes[control::MORE] == more::CONTROL && bytes[control::KIND] == Kind::Join.byte();
    // No answer is more than three times as long as what it answers.
    let is_long = bytes.len() * 3 >= welcome::LEN;
    let is_other = bytes[control::VERSION] != offsets::VERSION;
    let job = u16::from_be_bytes(array_at(bytes, control::JOB));
    let server = (bytes[control::FLAGS] & flags::SERVER) >> flags::SERVER_SHIFT;
    let session = Session(u32::from_be_bytes(*session));
    let code = WelcomeCode::OtherVersion;
    (is_join && is_long && is_other).then(|| Welcome::of_nobody(job, server, session, code))
}

/// The version of an answer to that session's join, where it is another one than this side's.
#[must_use]
pub fn other_version_of(bytes: &[u8], job: u16, session: Session) -> Option<u8> {
    let is_mine = bytes.get(welcome::SESSION..)?.starts_with(&session.0.to_be_bytes())
        && bytes[control::JOB..].starts_with(&job.to_be_bytes());
    let is_welcome =
        bytes[control::MORE] == more::CONTROL && bytes[control::KIND] == Kind::Welcome.byte();
    let version = bytes[control::VERSION];
    (is_mine && is_welcome && version != offsets::VERSION).then_some(version)
}

impl Leave {
    /// Reads a leave.
    ///
    /// # Errors
    /// [`Refusal::BadField`] for another kind, and where a field is set that it does not have.
    pub fn parse(packet: &AtpPacket<'_>) -> Result<Self, Refusal> {
        packet.expect(Kind::Leave)?;
        let message = Self {
            job: packet.job(),
            server: packet.server(),
            session: Session(packet.u32(leave::SESSION)),
            life: packet.u16(leave::LIFE),
            reason: [Reason::Left, Reason::Dead]
                .into_iter()
                .find(|reason| *reason as u8 == packet.bytes()[leave::REASON])
                .ok_or(Refusal::BadField("reason"))?,
        };
        packet.expect_written(|buf| message.emit(buf))?;
        Ok(message)
    }

    /// Writes the leave; returns the datagram's length.
    ///
    /// # Panics
    /// When `buf` is shorter than that.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let mut writer = emit_common(buf, Kind::Leave, leave::LEN, self.job, self.server);
        writer.put(leave::SESSION, self.session.0.to_be_bytes());
        writer.put(leave::LIFE, self.life.to_be_bytes());
        writer.put(leave::REASON, [self.reason as u8]);
        leave::LEN
    }
}

impl Left {
    /// Reads the answer to a leave.
    ///
    /// # Errors
    /// [`Refusal::BadField`] for another kind, and where a field is set that it does not have.
    pub fn parse(packet: &AtpPacket<'_>) -> Result<Self, Refusal> {
        packet.expect(Kind::Left)?;
        let session = Session(packet.u32(left::SESSION));
        let message = Self { job: packet.job(), server: packet.server(), session };
        packet.expect_written(|buf| message.emit(buf))?;
        Ok(message)
    }

    /// Writes the answer; returns the datagram's length.
    ///
    /// # Panics
    /// When `buf` is shorter than that.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let mut writer = emit_common(buf, Kind::Left, left::LEN, self.job, self.server);
        writer.put(left::SESSION, self.session.0.to_be_bytes());
        left::LEN
    }
}

impl Closed {
    /// Reads the end of a generation.
    ///
    /// # Errors
    /// [`Refusal::BadField`] for another kind, and for numbers that cannot be.
    pub fn parse(packet: &AtpPacket<'_>) -> Result<Self, Refusal> {
        packet.expect(Kind::Closed)?;
        let byte = packet.bytes()[closed::REASON];
        let reason = Reason::EACH.into_iter().find(|reason| *reason as u8 == byte);
        let message = Self {
            job: packet.job(),
            server: packet.server(),
            life: packet.u16(closed::LIFE),
            reason: reason.ok_or(Refusal::BadField("reason"))?,
            tensor: packet.u32(closed::TENSOR),
            culprit: packet.u32(closed::CULPRIT),
            sides: Sides::from_byte(packet.bytes()[closed::SIDES]),
        };
        if message.tensor >> offsets::TENSOR_BITS != 0 {
            return Err(Refusal::BadField("tensor"));
        }
        packet.expect_written(|buf| message.emit(buf))?;
        Ok(message)
    }

    /// Writes the end of a generation; returns the datagram's length.
    ///
    /// # Panics
    /// When `buf` is shorter than that.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let mut writer = emit_common(buf, Kind::Closed, closed::LEN, self.job, self.server);
        writer.put(closed::LIFE, self.life.to_be_bytes());
        writer.put(closed::REASON, [self.reason as u8]);
        writer.put(closed::SIDES, [self.sides.byte()]);
        writer.put(closed::TENSOR, self.tensor.to_be_bytes());
        writer.put(closed::CULPRIT, self.culprit.to_be_bytes());
        closed::LEN
    }
}
