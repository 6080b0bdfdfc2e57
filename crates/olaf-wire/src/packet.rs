//! The common header: a view that has checked what every message shares.

use core::fmt;

use crate::ids::{ClusterId, JobId, Session, WorkerId};
use crate::offsets::{self, LANE, MAGIC, common};

/// What a datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// A model update, up: [`crate::Update`].
    Update = 1,
    /// An acknowledgement without model, down: [`crate::Answer`] of no lanes.
    Acknowledgement = 2,
    /// A segment of the model: down as an answer, up as a worker's offer: [`crate::Answer`].
    Model = 3,
    /// "I am here, and this is what I have", up: [`crate::Join`].
    Join = 4,
    /// The answer to a join, down: [`crate::Welcome`].
    Welcome = 5,
    /// A worker's leave, up: [`crate::Leave`].
    Leave = 6,
    /// A request for segments of a model, up: [`crate::Fetch`].
    Fetch = 7,
    /// What a switch has taken in of a cluster, down: [`crate::Notice`].
    Notice = 8,
    /// A part of a worker's description of its model, up: [`crate::LayoutPart`].
    Layout = 9,
    /// The server's signature under a version of its model, down: [`crate::Signature`].
    Signature = 10,
    /// A worker's question for such a signature, up: [`crate::AskSignature`].
    AskSignature = 11,
}

impl Kind {
    #[inline]
    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Update,
            2 => Self::Acknowledgement,
            3 => Self::Model,
            4 => Self::Join,
            5 => Self::Welcome,
            6 => Self::Leave,
            7 => Self::Fetch,
            8 => Self::Notice,
            9 => Self::Layout,
            10 => Self::Signature,
            11 => Self::AskSignature,
            _ => return None,
        })
    }

    /// Bytes of the message without its lanes, or its text.
    #[must_use]
    #[inline]
    pub const fn header_len(self) -> usize {
        match self {
            Self::Update => offsets::update::PAYLOAD,
            Self::Acknowledgement | Self::Model => offsets::answer::PAYLOAD,
            Self::Join => offsets::join::LEN,
            Self::Welcome => offsets::welcome::LEN,
            Self::Leave => common::LEN,
            Self::Fetch => offsets::fetch::LEN,
            Self::Notice => offsets::notice::LEN,
            Self::Layout => offsets::layout::TEXT,
            Self::Signature => offsets::signature::LEN,
            Self::AskSignature => offsets::ask_signature::LEN,
        }
    }
}

/// Why bytes are not a message. Every reason has a [name](Refusal::name) that counters use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// Not a datagram of ours at all: does not begin with the magic.
    NotOurs,
    /// Shorter than its kind's header, or than the lanes it announces.
    Truncated {
        /// Bytes that came.
        have: usize,
        /// Bytes that the header calls for.
        need: usize,
    },
    /// Longer than its header calls for.
    Oversized {
        /// Bytes that came.
        have: usize,
        /// Bytes that the header calls for.
        need: usize,
    },
    /// Another version of the format.
    WrongVersion {
        /// The version of the bytes.
        have: u8,
        /// The version of this side.
        speaks: u8,
    },
    /// A kind this version does not know.
    UnknownKind(u8),
    /// Flags this version does not know: they may change the meaning, so it is not guessed.
    UnknownFlags(u16),
    /// A field whose value no sender that follows the format writes; names the field.
    BadField(&'static str),
}

impl Refusal {
    /// A short stable name, for counters and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotOurs => "not_ours",
            Self::Truncated { .. } => "truncated",
            Self::Oversized { .. } => "oversized",
            Self::WrongVersion { .. } => "wrong_version",
            Self::UnknownKind(_) => "unknown_kind",
            Self::UnknownFlags(_) => "unknown_flags",
            Self::BadField(_) => "bad_field",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOurs => write!(f, "not an Olaf datagram"),
            Self::Truncated { have, need } => write!(f, "truncated: {have} bytes of {need}"),
            Self::Oversized { have, need } => {
                write!(f, "oversized: {have} bytes where {need} belong")
            }
            Self::WrongVersion { have, speaks } => {
                write!(f, "format version {have}, this side speaks {speaks}")
            }
            Self::UnknownKind(kind) => write!(f, "unknown kind {kind}"),
            Self::UnknownFlags(flags) => write!(f, "unknown flags {flags:#06x}"),
            Self::BadField(field) => write!(f, "impossible value in field {field}"),
        }
    }
}

/// The sender or the receiver of a message: the common header without magic, version and kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Address {
    /// The job.
    pub job: JobId,
    /// The cluster in the job.
    pub cluster: ClusterId,
    /// The worker in the job; [`WorkerId::ALL`] where a message is for all concerned.
    pub worker: WorkerId,
    /// The worker's life; zero where no worker is meant.
    pub session: Session,
}

/// The job in the common header of a message; none of bytes that are no message.
#[must_use]
pub fn job_of(bytes: &[u8]) -> Option<u32> {
    let job = bytes.get(common::JOB..common::JOB + 4).filter(|_| bytes.starts_with(&MAGIC))?;
    Some(u32::from_be_bytes(job.try_into().ok()?))
}

/// A datagram whose magic, version, kind, flags and length agree with each other.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    bytes: &'a [u8],
    kind: Kind,
}

impl<'a> Packet<'a> {
    /// Checks `bytes`, one whole datagram.
    ///
    /// # Errors
    /// The [`Refusal`] that says what is wrong with it.
    #[inline]
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Refusal> {
        if bytes.get(..MAGIC.len()) != Some(&MAGIC) {
            return Err(Refusal::NotOurs);
        }
        if bytes.len() < common::LEN {
            return Err(Refusal::Truncated { have: bytes.len(), need: common::LEN });
        }
        if bytes[common::VERSION] != offsets::VERSION {
            let have = bytes[common::VERSION];
            return Err(Refusal::WrongVersion { have, speaks: offsets::VERSION });
        }
        let kind = Kind::from_byte(bytes[common::KIND])
            .ok_or(Refusal::UnknownKind(bytes[common::KIND]))?;
        let flags = u16::from_be_bytes([bytes[common::FLAGS], bytes[common::FLAGS + 1]]);
        let known =
            if kind == Kind::Join { offsets::WANTS_NOTICES | offsets::ASKS_PATH } else { 0 };
        if flags & !known != 0 {
            return Err(Refusal::UnknownFlags(flags));
        }
        let header = kind.header_len();
        if bytes.len() < header {
            return Err(Refusal::Truncated { have: bytes.len(), need: header });
        }
        let packet = Self { bytes, kind };
        let need = match kind {
            Kind::Update => header + packet.bytes_of_lanes(offsets::update::LANES)?,
            Kind::Acknowledgement | Kind::Model => {
                header + packet.bytes_of_lanes(offsets::answer::LANES)?
            }
            Kind::Layout => header + packet.bytes_of_text()?,
            // What a join or a welcome is filled up to is itself a field: a length is never guessed.
            Kind::Join => header.max(packet.u32(offsets::join::PADDED_TO) as usize),
            Kind::Welcome => header.max(packet.u32(offsets::welcome::PADDED_TO) as usize),
            Kind::Leave | Kind::Fetch | Kind::Notice | Kind::Signature | Kind::AskSignature => {
                header
            }
        };
        match bytes.len() {
            have if have < need => Err(Refusal::Truncated { have, need }),
            have if have > need => Err(Refusal::Oversized { have, need }),
            _ => Ok(packet),
        }
    }

    /// Bytes of the lanes that the field at that offset announces.
    #[inline]
    fn bytes_of_lanes(&self, at: usize) -> Result<usize, Refusal> {
        match self.u32(at) as usize {
            lanes if lanes > offsets::MAX_SEGMENT_LANES => Err(Refusal::BadField("lanes")),
            lanes => Ok(lanes * LANE),
        }
    }

    /// Bytes of the text that a layout's header announces. Inlined, so that no packet has to lie in memory
    /// while it is checked.
    #[inline]
    fn bytes_of_text(&self) -> Result<usize, Refusal> {
        match self.u32(offsets::layout::LEN_OF_TEXT) as usize {
            text if text > crate::layout::LAYOUT_PART => Err(Refusal::BadField("len")),
            text => Ok(text),
        }
    }

    /// The same datagram without its lanes. The length of the header is known to the compiler, which
    /// then compares it with no field's offset.
    #[inline]
    pub(crate) fn header_of<const LEN: usize>(&self) -> Self {
        Self { bytes: &self.bytes[..LEN], kind: self.kind }
    }

    /// What the datagram is.
    #[must_use]
    #[inline]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Its sender, or its receiver.
    #[must_use]
    #[inline]
    pub fn address(&self) -> Address {
        Address {
            job: JobId(self.u32(common::JOB)),
            cluster: ClusterId(self.u32(common::CLUSTER)),
            worker: WorkerId(self.u32(common::WORKER)),
            session: Session(self.u32(common::SESSION)),
        }
    }

    /// The payload lanes as they came: little-endian `f32`, four bytes each; of a
    /// [`Kind::Layout`] its text.
    #[must_use]
    #[inline]
    pub fn lanes(&self) -> &'a [u8] {
        match self.kind {
            Kind::Update | Kind::Acknowledgement | Kind::Model | Kind::Layout => {
                &self.bytes[self.kind.header_len()..]
            }
            _ => &[],
        }
    }

    /// Bytes of the whole datagram.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Never: a datagram has a header.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    #[inline]
    pub(crate) fn byte(&self, at: usize) -> u8 {
        self.bytes[at]
    }

    #[inline]
    pub(crate) fn u16(&self, at: usize) -> u16 {
        u16::from_be_bytes(self.array(at))
    }

    #[inline]
    pub(crate) fn u32(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.array(at))
    }

    #[inline]
    pub(crate) fn u64(&self, at: usize) -> u64 {
        u64::from_be_bytes(self.array(at))
    }

    pub(crate) fn i64(&self, at: usize) -> i64 {
        i64::from_be_bytes(self.array(at))
    }

    #[inline]
    pub(crate) fn f64(&self, at: usize) -> f64 {
        f64::from_be_bytes(self.array(at))
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        array_at(self.bytes, at)
    }
}

/// The `N` bytes of the field at `at`.
#[inline]
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    field
}

/// Bytes of the shortest join of any version.
const SHORTEST_JOIN: usize = 64;

/// The sender of a join in another version of the format. Magic, version, kind and address have the
/// same place in every version. A welcome can therefore tell the sender the version of this side.
#[must_use]
pub fn join_of_another_version(bytes: &[u8]) -> Option<Address> {
    let bytes = bytes.get(..SHORTEST_JOIN)?;
    let ours = bytes[..MAGIC.len()] == MAGIC && bytes[common::KIND] == Kind::Join as u8;
    let other = bytes[common::VERSION] != offsets::VERSION;
    (ours && other).then(|| Packet { bytes, kind: Kind::Join }.address())
}

/// Returns true if a datagram of ours was filled up to see what a path carries: that one does not
/// fit is an answer, and no trouble.
#[must_use]
pub fn is_probe(bytes: &[u8]) -> bool {
    let kind = bytes.get(common::KIND).copied().and_then(Kind::from_byte);
    bytes.starts_with(&MAGIC)
        && kind.is_some_and(|kind| {
            matches!(kind, Kind::Join | Kind::Welcome) && bytes.len() > kind.header_len()
        })
}

/// Writes fields into a datagram under construction.
pub(crate) struct Writer<'a>(pub(crate) &'a mut [u8]);

impl Writer<'_> {
    pub(crate) fn put<const N: usize>(&mut self, at: usize, field: [u8; N]) {
        self.0[at..at + N].copy_from_slice(&field);
    }
}

/// Writes magic, version, kind and address; zeroes the rest of the header.
///
/// # Panics
/// When `buf` is shorter than the kind's header: buffers are the caller's, not the network's.
pub(crate) fn emit_common<'a>(buf: &'a mut [u8], kind: Kind, address: &Address) -> Writer<'a> {
    buf[..kind.header_len()].fill(0);
    let mut writer = Writer(buf);
    writer.put(0, MAGIC);
    writer.put(common::VERSION, [offsets::VERSION]);
    writer.put(common::KIND, [kind as u8]);
    writer.put(common::JOB, address.job.0.to_be_bytes());
    writer.put(common::CLUSTER, address.cluster.0.to_be_bytes());
    writer.put(common::WORKER, address.worker.0.to_be_bytes());
    writer.put(common::SESSION, address.session.0.to_be_bytes());
    writer
}
