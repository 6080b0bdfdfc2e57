//! Why a datagram between parties that share a key is dropped, and what is counted.

use alloc::collections::BTreeMap;
use serde::Serialize;

/// Why a sealed datagram, or a message of a handshake, is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It is too short for a seal.
    NoSeal,
    /// A message of a handshake that is none, or that this party never gets.
    BadHandshake,
    /// A message of a handshake in another version of the format.
    OtherVersion {
        /// The version of the message.
        have: u8,
    },
    /// No key of that name is known here.
    NoSuchKey,
    /// The key was replaced, and the time of the old one is over.
    KeyOver,
    /// Its cookie was not made for this sender, or not by this life of the party.
    BadCookie,
    /// Its cookie was made too long ago.
    OldCookie,
    /// It answers nothing that this party asked.
    NotAsked,
    /// The association is not known here, or belongs to another sender.
    UnknownAssociation,
    /// Its tag is not that of its bytes under the key.
    BadTag,
    /// It came before, or is older than the window tells apart.
    Replayed,
    /// Its message is of a job that the key is not for.
    OtherJob,
    /// No association is free for another party with this key.
    Full,
}

impl Reason {
    /// What an operator should know of the sender; none where honest parties cause it, too, as a network
    /// that repeats datagrams and a party that begins a new life.
    #[must_use]
    pub const fn advice(self) -> Option<&'static str> {
        match self {
            Self::NoSeal => Some("its sender has no key: give it the key of its job"),
            Self::NoSuchKey => {
                Some("its sender has another key: give both the key of the same job")
            }
            Self::KeyOver => Some(
                "its sender still has the key before the last rotation, whose time is over: give it the \
                 job's present key file",
            ),
            Self::OtherJob => Some(
                "it is of a job that its sender's key is not good for here: correct the sender's job, \
                 or give this side a key for that job",
            ),
            Self::BadTag => Some("somebody changed it on the way, or signed it with another key"),
            Self::Full => Some("this key has as many parties as there is room for"),
            _ => None,
        }
    }

    /// A short stable name, for counters and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoSeal => "no_seal",
            Self::BadHandshake => "bad_handshake",
            Self::OtherVersion { .. } => "other_version",
            Self::NoSuchKey => "no_such_key",
            Self::KeyOver => "key_over",
            Self::BadCookie => "bad_cookie",
            Self::OldCookie => "old_cookie",
            Self::NotAsked => "not_asked",
            Self::UnknownAssociation => "unknown_association",
            Self::BadTag => "bad_tag",
            Self::Replayed => "replayed",
            Self::OtherJob => "other_job",
            Self::Full => "full",
        }
    }
}

/// Datagrams that met the seal, by their fate.
///
/// In: `received = opened + handshakes + refused`. Out: what an engine sent is `sealed`, waits for a
/// handshake, or is in one of the three counts after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Datagrams that came.
    pub received: u64,
    /// Messages given to the engine.
    pub opened: u64,
    /// Messages in it whose datagram came with another class of service than they were sealed with: a
    /// network cleared the class, or somebody rewrote it.
    pub reclassified: u64,
    /// Messages of handshakes that were valid.
    pub handshakes: u64,
    /// All others, by reason.
    pub refused: BTreeMap<&'static str, u64>,
    /// Datagrams sent under a session's key.
    pub sealed: u64,
    /// Messages that waited for a handshake longer than there was room.
    pub held_too_long: u64,
    /// Messages to a party that has shown no key for their job.
    pub no_association: u64,
    /// Messages that are too long for a seal.
    pub too_long: u64,
    /// Answers to handshakes that were dropped, because too many waited for the link.
    pub unanswered: u64,
    /// Associations that began with a valid handshake.
    pub associations_begun: u64,
    /// Associations that gave way to a newer one of the same party, were idle, or whose key ended.
    pub associations_ended: u64,
}

impl Counters {
    pub(super) fn refuse(&mut self, reason: Reason) {
        *self.refused.entry(reason.name()).or_default() += 1;
    }
}
