//! How a worker gets into a term, and out of it. A term is the time in which a job has the same
//! workers.

use super::offsets::{ANY, MAX_GRADIENTS, header};
use super::packet::{Fields, Kind, TrioPacket, emit, emit_more, emit_nonce, halves};
use crate::ids::Session;
use crate::packet::Refusal;
use crate::reduce::{Reason, WelcomeCode};

/// A worker wants to take part, up. A lower switch says the same for the workers behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The job.
    pub job: u8,
    /// The term in which the sender was last; 0: none.
    pub term: u32,
    /// The wanted `src_id`; [`ANY`]: any that is free.
    pub source: u8,
    /// Workers behind the sender: 1 for a worker.
    pub sources: u8,
    /// The newest generation that the sender has begun an operation for. The next term begins behind
    /// it.
    pub newest: u16,
    /// The sender's life.
    pub session: Session,
    /// Workers of the whole job.
    pub workers: u8,
    /// The most gradients of a block that the sender's path takes.
    pub gradients: u16,
    /// The wanted time-out of a block, in milliseconds; 0: the switch's own.
    pub timeout_ms: u16,
    /// The most blocks that the sender has under way.
    pub window: u16,
    /// The sender's time, in microseconds: the welcome repeats it.
    pub sent_at_us: u32,
    /// The number of the newest welcome, which proves the sender's address; 0: none yet.
    pub nonce: u32,
    /// The program that the sender is a worker of, the same at all its workers and at no other program's; 0: not said.
    pub program: u64,
}

impl Hello {
    /// Reads the fields.
    ///
    /// # Errors
    /// Names the field that cannot be.
    pub fn parse(packet: &TrioPacket<'_>) -> Result<Self, Refusal> {
        packet.expect(Kind::Hello)?;
        let hello = Self {
            job: packet.job(),
            term: packet.u32(header::BLOCK_ID),
            source: packet.source(),
            sources: packet.byte(header::SRC_CNT),
            newest: packet.u16(header::GEN_ID),
            session: Session(packet.word(0)),
            workers: packet.narrow(1, "workers")?,
            gradients: packet.narrow(2, "gradients")?,
            timeout_ms: packet.narrow(3, "timeout_ms")?,
            window: packet.narrow(4, "window")?,
            sent_at_us: packet.word(5),
            nonce: packet.nonce()?,
            program: packet.program()?,
        };
        if hello.workers == 0 || hello.sources > hello.workers {
            return Err(Refusal::BadField("workers"));
        }
        for (cannot_be, name) in [
            (hello.sources == 0, "src_cnt"),
            (hello.gradients == 0 || hello.gradients > MAX_GRADIENTS, "gradients"),
            (hello.window == 0, "window"),
        ] {
            if cannot_be {
                return Err(Refusal::BadField(name));
            }
        }
        Ok(hello)
    }

    /// Writes the message; the bytes written.
    ///
    /// # Panics
    /// When `buf` is too short.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let fields = Fields {
            job: self.job,
            block: self.term,
            source: self.source,
            sources: self.sources,
            generation: self.newest,
        };
        let words = [
            self.session.0,
            self.workers.into(),
            self.gradients.into(),
            self.timeout_ms.into(),
            self.window.into(),
            self.sent_at_us,
        ];
        let len = emit(buf, Kind::Hello, &fields, words);
        if self.program == 0 {
            return emit_nonce(buf, len, self.nonce);
        }
        let [first, second] = halves(self.program);
        emit_more(buf, len, [self.nonce, first, second])
    }
}

/// The answer to a hello, down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The job.
    pub job: u8,
    /// The term; 0 where none has begun.
    pub term: u32,
    /// The receiver's `src_id` in the term; [`ANY`] where none has begun.
    pub source: u8,
    /// Workers of the job.
    pub workers: u8,
    /// The first generation of the term.
    pub first: u16,
    /// The receiver's life.
    pub session: Session,
    /// Whether the term has begun, and if not, why.
    pub code: WelcomeCode,
    /// Gradients of every block but a generation's last.
    pub gradients: u16,
    /// Workers that are here.
    pub here: u8,
    /// The most blocks that a worker may have under way.
    pub window: u16,
    /// The newest generation that a worker of the receiver's last term has begun.
    pub newest: u16,
    /// From the hello.
    pub sent_at_us: u32,
    /// The receiver has to say hello again with this number before the switch lets it in; 0: nothing is
    /// left to prove.
    pub nonce: u32,
}

impl Welcome {
    /// Reads the fields.
    ///
    /// # Errors
    /// Names the field that cannot be.
    pub fn parse(packet: &TrioPacket<'_>) -> Result<Self, Refusal> {
        packet.expect(Kind::Welcome)?;
        let code = packet.word(1);
        let code = WelcomeCode::EACH.into_iter().find(|known| *known as u32 == code);
        let welcome = Self {
            job: packet.job(),
            term: packet.u32(header::BLOCK_ID),
            source: packet.source(),
            workers: packet.byte(header::SRC_CNT),
            first: packet.u16(header::GEN_ID),
            session: Session(packet.word(0)),
            code: code.ok_or(Refusal::BadField("code"))?,
            gradients: packet.narrow(2, "gradients")?,
            here: packet.narrow(3, "here")?,
            window: packet.narrow(4, "window")?,
            newest: packet.narrow(5, "newest")?,
            sent_at_us: packet.word(6),
            nonce: packet.nonce()?,
        };
        if welcome.code == WelcomeCode::Welcome {
            for (cannot_be, name) in [
                (welcome.term == 0, "term"),
                (welcome.source == ANY, "src_id"),
                (welcome.workers == 0, "src_cnt"),
                (welcome.gradients == 0 || welcome.gradients > MAX_GRADIENTS, "gradients"),
                (welcome.window == 0, "window"),
            ] {
                if cannot_be {
                    return Err(Refusal::BadField(name));
                }
            }
        }
        Ok(welcome)
    }

    /// Writes the message; the bytes written.
    ///
    /// # Panics
    /// When `buf` is too short.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let fields = Fields {
            job: self.job,
            block: self.term,
            source: self.source,
            sources: self.workers,
            generation: self.first,
        };
        let words = [
            self.session.0,
            self.code as u32,
            self.gradients.into(),
            self.here.into(),
            self.window.into(),
            self.newest.into(),
            self.sent_at_us,
        ];
        let len = emit(buf, Kind::Welcome, &fields, words);
        emit_nonce(buf, len, self.nonce)
    }
}

/// A leave, up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leave {
    /// The job.
    pub job: u8,
    /// The term; 0: the sender was in none yet.
    pub term: u32,
    /// The sender; [`ANY`] where it was in no term yet.
    pub source: u8,
    /// The sender's life.
    pub session: Session,
    /// Why it leaves; a lower switch may do so because of a worker.
    pub reason: Reason,
}

impl Leave {
    /// Reads the fields.
    ///
    /// # Errors
    /// Names the field that cannot be.
    pub fn parse(packet: &TrioPacket<'_>) -> Result<Self, Refusal> {
        packet.expect(Kind::Leave)?;
        packet.expect_unused(packet.u16(header::GEN_ID) == 0)?;
        let reason = packet.byte(header::SRC_CNT);
        let reason = Reason::EACH.into_iter().find(|known| *known as u8 == reason);
        Ok(Self {
            job: packet.job(),
            term: packet.u32(header::BLOCK_ID),
            source: packet.source(),
            session: Session(packet.word(0)),
            reason: reason.ok_or(Refusal::BadField("reason"))?,
        })
    }

    /// Writes the message; the bytes written.
    ///
    /// # Panics
    /// When `buf` is too short.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let Self { job, term, source, session, reason } = *self;
        let sources = reason as u8;
        let fields = Fields { job, block: term, source, sources, generation: 0 };
        emit(buf, Kind::Leave, &fields, [session.0])
    }
}
