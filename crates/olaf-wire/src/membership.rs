//! Joining, staying and leaving.

use crate::offsets::{ASKS_PATH, MAX_DATAGRAM, WANTS_NOTICES, common, join, welcome};
use crate::packet::{Address, Kind, Packet, Refusal, emit_common};
use crate::rule::JobRule;

/// "I am here": how a worker joins its job, and, repeated, stays known to switch and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// The worker.
    pub address: Address,
    /// Version of the newest complete model it has; 0: its own first weights.
    pub have_version: u32,
    /// Parameters of its model.
    pub parameters: u32,
    /// Lanes of a segment, but for the last.
    pub segment_lanes: u32,
    /// How far off its estimate of the server's clock may be, microseconds; `u32::MAX`: no
    /// estimate yet.
    pub clock_error_us: u32,
    /// The worker's clock now, nanoseconds of Unix time; comes back in the welcome.
    pub sent_at_ns: u64,
    /// Its estimate of the server's clock minus its own, nanoseconds.
    pub clock_offset_ns: i64,
    /// Switches passed: what comes with more than none shows its sender to be a switch.
    pub hops: u8,
    /// It wants to hear what its switch takes in of its cluster: [`crate::Notice`].
    pub wants_notices: bool,
    /// Of the path between the worker and its server.
    pub path: JoinPath,
    /// The nonce of the last welcome that had one: it proves that welcomes reach the sender's address. 0:
    /// none came. A sender of earlier versions of this format has 0 here.
    pub nonce: u32,
}

/// What a join says of its path, and asks of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct JoinPath {
    /// It admits no worker: the worker only asks whether datagrams of this size pass, and how the
    /// job is cut. Answered with [`WelcomeCode::Path`].
    pub asks: bool,
    /// The round trip that the worker measured, microseconds; 0: none yet.
    pub round_trip_us: u32,
    /// Bytes of this datagram, filled up with zeros; 0: it is no longer than its fields. The server
    /// fills its answer up to as many, so that an answer proves the path both ways.
    pub padded_to: u32,
}

impl Join {
    /// Segments of a model with `parameters` parameters.
    #[must_use]
    pub const fn segments(&self) -> u32 {
        self.parameters.div_ceil(self.segment_lanes)
    }

    /// Reads a join.
    ///
    /// # Errors
    /// [`Refusal::BadField`] where a model of that shape cannot be.
    pub fn parse(packet: &Packet<'_>) -> Result<Self, Refusal> {
        if packet.kind() != Kind::Join {
            return Err(Refusal::BadField("kind"));
        }
        let message = Self {
            address: packet.address(),
            have_version: packet.u32(join::HAVE_VERSION),
            parameters: packet.u32(join::PARAMETERS),
            segment_lanes: packet.u32(join::SEGMENT_LANES),
            clock_error_us: packet.u32(join::CLOCK_ERROR_US),
            sent_at_ns: packet.u64(join::SENT_AT),
            clock_offset_ns: packet.i64(join::CLOCK_OFFSET),
            hops: packet.byte(join::HOPS),
            wants_notices: packet.u16(common::FLAGS) & WANTS_NOTICES != 0,
            path: JoinPath {
                asks: packet.u16(common::FLAGS) & ASKS_PATH != 0,
                round_trip_us: packet.u32(join::ROUND_TRIP_US),
                padded_to: packet.u32(join::PADDED_TO),
            },
            nonce: packet.u32(join::NONCE),
        };
        if message.parameters == 0 {
            return Err(Refusal::BadField("parameters"));
        }
        if message.segment_lanes == 0
            || message.segment_lanes as usize > crate::offsets::MAX_SEGMENT_LANES
        {
            return Err(Refusal::BadField("segment_lanes"));
        }
        if message.address.worker == crate::WorkerId::ALL {
            return Err(Refusal::BadField("worker"));
        }
        Ok(message)
    }

    /// The same join as a datagram that is not filled up, for a switch that holds it back.
    #[must_use]
    pub const fn without_padding(mut self) -> Self {
        self.path.padded_to = 0;
        self
    }

    /// Bytes of the datagram, what it is filled up with included.
    #[must_use]
    pub const fn datagram_len(&self) -> usize {
        filled(join::LEN, padding(self.path.padded_to, join::LEN))
    }

    /// Writes the join; returns the datagram's length. It is filled up to `path.padded_to`, where
    /// that is more than its fields take.
    ///
    /// # Panics
    /// When `buf` is shorter than that.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let padded_to = padding(self.path.padded_to, join::LEN);
        let mut writer = emit_common(buf, Kind::Join, &self.address);
        writer.put(join::HAVE_VERSION, self.have_version.to_be_bytes());
        writer.put(join::PARAMETERS, self.parameters.to_be_bytes());
        writer.put(join::SEGMENT_LANES, self.segment_lanes.to_be_bytes());
        writer.put(join::CLOCK_ERROR_US, self.clock_error_us.to_be_bytes());
        writer.put(join::SENT_AT, self.sent_at_ns.to_be_bytes());
        writer.put(join::CLOCK_OFFSET, self.clock_offset_ns.to_be_bytes());
        writer.put(join::HOPS, [self.hops]);
        writer.put(join::ROUND_TRIP_US, self.path.round_trip_us.to_be_bytes());
        writer.put(join::PADDED_TO, padded_to.to_be_bytes());
        writer.put(join::NONCE, self.nonce.to_be_bytes());
        let notices = if self.wants_notices { WANTS_NOTICES } else { 0 };
        let asks = if self.path.asks { ASKS_PATH } else { 0 };
        writer.put(common::FLAGS, (notices | asks).to_be_bytes());
        fill_up(buf, join::LEN, padded_to)
    }
}

/// Bytes to fill a message of `len` up to; 0 where there is nothing to fill.
const fn padding(wanted: u32, len: usize) -> u32 {
    if wanted as usize <= len {
        0
    } else if wanted as usize > MAX_DATAGRAM {
        MAX_DATAGRAM as u32
    } else {
        wanted
    }
}

/// The length of a message of `len`, filled up to `padded_to`.
const fn filled(len: usize, padded_to: u32) -> usize {
    if padded_to as usize > len { padded_to as usize } else { len }
}

/// Fills a message of `len` up with zeros; its length then.
fn fill_up(buf: &mut [u8], len: usize, padded_to: u32) -> usize {
    let end = filled(len, padded_to);
    buf[len..end].fill(0);
    end
}

/// What became of a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum WelcomeCode {
    /// The job has the worker.
    Welcome = 0,
    /// Another living worker of the job has this id.
    WorkerIdInUse = 1,
    /// The job's model has another number of parameters.
    WrongModelSize = 2,
    /// The job's segments have another number of lanes.
    WrongSegmentLanes = 3,
    /// The switch has no server for this job.
    UnknownJob = 4,
    /// The model is larger than this switch or server takes.
    ModelTooLarge = 5,
    /// No more workers fit here.
    Full = 6,
    /// Not a refusal: the switch is alive, but has not heard the job's server for `silent_ms`.
    ServerSilent = 7,
    /// Not a refusal: the switch does not know the worker (any more), which should join again.
    JoinAgain = 8,
    /// What the switches on the way send up comes back to them: there is no server at its end.
    Loop = 9,
    /// The switch's admission control refused the worker's cluster.
    NotAdmitted = 10,
    /// Not a refusal: the switch waits for its admission control's word on the worker's cluster.
    AdmissionPending = 11,
    /// Not a refusal: the answer to a join that only asked for the path ([`JoinPath::asks`]).
    Path = 12,
    /// The job has as many workers as the switch or the server lets it have.
    JobFull = 13,
    /// The job has as many clusters as the switch or the server lets it have.
    TooManyClusters = 14,
}

impl WelcomeCode {
    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::Welcome,
            1 => Self::WorkerIdInUse,
            2 => Self::WrongModelSize,
            3 => Self::WrongSegmentLanes,
            4 => Self::UnknownJob,
            5 => Self::ModelTooLarge,
            6 => Self::Full,
            7 => Self::ServerSilent,
            8 => Self::JoinAgain,
            9 => Self::Loop,
            10 => Self::NotAdmitted,
            11 => Self::AdmissionPending,
            12 => Self::Path,
            13 => Self::JobFull,
            14 => Self::TooManyClusters,
            _ => return None,
        })
    }

    /// A short stable name, for counters and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Welcome => "welcome",
            Self::WorkerIdInUse => "worker_id_in_use",
            Self::WrongModelSize => "wrong_model_size",
            Self::WrongSegmentLanes => "wrong_segment_lanes",
            Self::UnknownJob => "unknown_job",
            Self::ModelTooLarge => "model_too_large",
            Self::Full => "full",
            Self::ServerSilent => "server_silent",
            Self::JoinAgain => "join_again",
            Self::Loop => "loop",
            Self::NotAdmitted => "not_admitted",
            Self::AdmissionPending => "admission_pending",
            Self::Path => "path",
            Self::JobFull => "job_full",
            Self::TooManyClusters => "too_many_clusters",
        }
    }

    /// Returns true if a refusal may pass by itself: somebody leaves, or is forgotten.
    #[must_use]
    pub const fn may_pass(self) -> bool {
        matches!(self, Self::WorkerIdInUse | Self::Full | Self::JobFull | Self::TooManyClusters)
    }

    /// Returns true if the worker is turned away, rather than let in or told to wait.
    #[must_use]
    pub const fn is_refusal(self) -> bool {
        !matches!(
            self,
            Self::Welcome
                | Self::ServerSilent
                | Self::JoinAgain
                | Self::AdmissionPending
                | Self::Path
        )
    }
}

/// The answer to a [`Join`]: from the server through the switch, or from a switch that refuses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Welcome {
    /// The worker answered.
    pub address: Address,
    /// What became of its join.
    pub code: WelcomeCode,
    /// Whether the job has a model. Without one, the worker offers its own, from segment
    /// `first_missing` on.
    pub ready: bool,
    /// Version of the job's model; 0 while there is none.
    pub version: u32,
    /// Parameters of the job's model.
    pub parameters: u32,
    /// Lanes of a segment of it.
    pub segment_lanes: u32,
    /// The server's life.
    pub epoch: u32,
    /// First segment of an offered model that the server still lacks; `u32::MAX`: it takes
    /// another worker's offer.
    pub first_missing: u32,
    /// `sent_at_ns` of the join.
    pub echoed_sent_at_ns: u64,
    /// The server's clock when the join came.
    pub received_at_ns: u64,
    /// The server's clock when this was sent.
    pub sent_at_ns: u64,
    /// The last switch's life; 0 without one.
    pub switch_epoch: u32,
    /// For [`WelcomeCode::ServerSilent`]: how long, milliseconds.
    pub silent_ms: u32,
    /// How the server changes the model; `None` in a switch's own welcomes, which know no rule.
    pub rule: Option<JobRule>,
    /// First part of the worker's layout that the server lacks; `u32::MAX`: it needs none.
    pub layout_missing: u32,
    /// Which segments of the offered model the server lacks: bit `i` stands for segment
    /// `first_missing + i`. Of those beyond nothing is said.
    pub missing: u64,
    /// Bytes of this datagram, filled up with zeros; 0: it is no longer than its fields.
    pub padded_to: u32,
    /// To be echoed in a join at once, before models come; 0: nothing is left to prove.
    pub nonce: u32,
}

impl Welcome {
    /// Reads a welcome.
    ///
    /// # Errors
    /// [`Refusal::BadField`] for a code that is none, or a rule that cannot be.
    pub fn parse(packet: &Packet<'_>) -> Result<Self, Refusal> {
        if packet.kind() != Kind::Welcome {
            return Err(Refusal::BadField("kind"));
        }
        let ready = match packet.byte(welcome::READY) {
            0 => false,
            1 => true,
            _ => return Err(Refusal::BadField("ready")),
        };
        Ok(Self {
            address: packet.address(),
            code: WelcomeCode::from_byte(packet.byte(welcome::CODE))
                .ok_or(Refusal::BadField("code"))?,
            ready,
            version: packet.u32(welcome::VERSION),
            parameters: packet.u32(welcome::PARAMETERS),
            segment_lanes: packet.u32(welcome::SEGMENT_LANES),
            epoch: packet.u32(welcome::EPOCH),
            first_missing: packet.u32(welcome::FIRST_MISSING),
            echoed_sent_at_ns: packet.u64(welcome::ECHOED_SENT_AT),
            received_at_ns: packet.u64(welcome::RECEIVED_AT),
            sent_at_ns: packet.u64(welcome::SENT_AT),
            switch_epoch: packet.u32(welcome::SWITCH_EPOCH),
            silent_ms: packet.u32(welcome::SILENT_MS),
            rule: JobRule::parse(packet)?,
            layout_missing: packet.u32(welcome::LAYOUT_MISSING),
            missing: packet.u64(welcome::MISSING),
            padded_to: packet.u32(welcome::PADDED_TO),
            nonce: packet.u32(welcome::NONCE),
        })
    }

    /// Bytes of the datagram, what it is filled up with included.
    #[must_use]
    pub const fn datagram_len(&self) -> usize {
        filled(welcome::LEN, padding(self.padded_to, welcome::LEN))
    }

    /// Writes the welcome; returns the datagram's length. It is filled up to `padded_to`, where
    /// that is more than its fields take.
    ///
    /// # Panics
    /// When `buf` is shorter than that.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let padded_to = padding(self.padded_to, welcome::LEN);
        let mut writer = emit_common(buf, Kind::Welcome, &self.address);
        writer.put(welcome::CODE, [self.code as u8]);
        writer.put(welcome::READY, [u8::from(self.ready)]);
        writer.put(welcome::VERSION, self.version.to_be_bytes());
        writer.put(welcome::PARAMETERS, self.parameters.to_be_bytes());
        writer.put(welcome::SEGMENT_LANES, self.segment_lanes.to_be_bytes());
        writer.put(welcome::EPOCH, self.epoch.to_be_bytes());
        writer.put(welcome::FIRST_MISSING, self.first_missing.to_be_bytes());
        writer.put(welcome::ECHOED_SENT_AT, self.echoed_sent_at_ns.to_be_bytes());
        writer.put(welcome::RECEIVED_AT, self.received_at_ns.to_be_bytes());
        writer.put(welcome::SENT_AT, self.sent_at_ns.to_be_bytes());
        writer.put(welcome::SWITCH_EPOCH, self.switch_epoch.to_be_bytes());
        writer.put(welcome::SILENT_MS, self.silent_ms.to_be_bytes());
        writer.put(welcome::LAYOUT_MISSING, self.layout_missing.to_be_bytes());
        if let Some(rule) = &self.rule {
            rule.put(&mut writer);
        }
        writer.put(welcome::MISSING, self.missing.to_be_bytes());
        writer.put(welcome::PADDED_TO, padded_to.to_be_bytes());
        writer.put(welcome::NONCE, self.nonce.to_be_bytes());
        fill_up(buf, welcome::LEN, padded_to)
    }
}

/// A worker's leave. No party waits for it: a worker that vanishes is noticed by its silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leave {
    /// The worker.
    pub address: Address,
}

impl Leave {
    /// Reads a leave.
    ///
    /// # Errors
    /// [`Refusal::BadField`] for another kind.
    pub fn parse(packet: &Packet<'_>) -> Result<Self, Refusal> {
        if packet.kind() != Kind::Leave {
            return Err(Refusal::BadField("kind"));
        }
        Ok(Self { address: packet.address() })
    }

    /// Writes the leave; returns the datagram's length.
    ///
    /// # Panics
    /// When `buf` is shorter than that.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        emit_common(buf, Kind::Leave, &self.address);
        Kind::Leave.header_len()
    }
}
