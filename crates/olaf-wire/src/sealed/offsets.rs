//! Where the fields of sealed datagrams and of handshakes lie.

/// The end of every datagram between two parties that share a key. It stands behind the message,
/// so that a message lies in its datagram as it does without a seal.
pub mod trailer {
    /// From the datagram's end: association (16 bits), class of service (6 bits), then the counter (42 bits).
    pub const COUNTER: usize = 24;
    /// From the datagram's end: the tag.
    pub const TAG: usize = 16;
    /// Bytes.
    pub const LEN: usize = 24;
}

/// A message of a handshake, before its trailer.
pub mod handshake {
    /// The magic of these messages.
    pub const MAGIC: usize = 0;
    /// Version of the format.
    pub const VERSION: usize = 4;
    /// Which message; 0 in a notice of the version.
    pub const KIND: usize = 5;
    /// The association, 16 bits; 0 where there is none yet.
    pub const ASSOCIATION: usize = 6;
    /// Public name of the key, 8 bytes.
    pub const KEY_NAME: usize = 8;
    /// Random bytes of the party that begins, 16.
    pub const INITIATOR: usize = 16;
    /// Random bytes of the party that answers, 16; 0 before it has drawn them.
    pub const RESPONDER: usize = 32;
    /// When the cookie was made: nanoseconds of the answering party's clock, 64 bits. In `NoKey`: when the
    /// time of that key was over.
    pub const COOKIE_TIME: usize = 48;
    /// The cookie, 16 bytes.
    pub const COOKIE: usize = 56;
    /// Bytes, without the trailer.
    pub const BODY: usize = 72;
    /// Bytes with the trailer. All messages have this length: no answer is longer than its question.
    pub const LEN: usize = BODY + super::trailer::LEN;
    /// Bytes of a notice of the version, without the trailer: magic, version, and a kind of 0.
    pub const NOTICE_BODY: usize = ASSOCIATION;
}
