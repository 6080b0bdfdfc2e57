//! Datagrams of parties that share a key: a trailer behind each message, and the handshake that
//! agrees on the keys of a session.
//!
//! The trailer has the number of an association, a class of service, a counter and a tag. An
//! association is one handshake's outcome: two directions with a key each. Association 0 marks a
//! message of a handshake. The messages are authentic, and not secret.
//!
//! iSwitch tells data from control messages by the class of service in the IP header, which anybody on
//! the way may rewrite. So the class stands under the tag too, and a receiver believes that one alone.
//!
//! | | from | to | says |
//! |---|---|---|---|
//! | [`Kind::Hello`] | worker, lower switch | switch, server | the name of the key |
//! | [`Kind::Cookie`] | switch, server | the sender | prove that you receive at this address |
//! | [`Kind::Open`] | as `Hello` | | the cookie, under the key |
//! | [`Kind::Opened`] | as `Cookie` | | the association, under the key |
//! | [`Kind::Unknown`] | the receiver of a datagram | its sender | this association is not known here |
//! | [`Kind::NoKey`] | as `Cookie` | | no key of that name is known here, or its time is over |

pub mod offsets;

use crate::packet::Refusal;
use offsets::{handshake, trailer};

/// The first bytes of every message of a handshake.
pub const MAGIC: [u8; 4] = *b"OLAK";
/// Version of trailer and handshake.
pub const VERSION: u8 = 2;
/// Bytes that a seal adds to a message.
pub const OVERHEAD: usize = trailer::LEN;
/// Bytes of [`Handshake::version_notice`].
const NOTICE: usize = handshake::NOTICE_BODY + OVERHEAD;
/// Bytes of a tag, of random values and of a cookie.
pub const TAG_BYTES: usize = 16;
/// The largest counter of a datagram; an association ends there.
pub const MAX_COUNTER: u64 = (1 << 42) - 1;
/// Where the class of service begins in the word of association, class and counter.
const CLASS_SHIFT: u32 = 42;
/// The largest class of service (six DSCP bits).
const MAX_CLASS: u64 = 0b11_1111;

/// A tag, a random value or a cookie.
pub type Tag = [u8; TAG_BYTES];
/// Public name of a key, derived from it.
pub type KeyName = [u8; 8];

/// A sealed datagram, taken apart. Nothing in it is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed<'a> {
    /// The association's number; 0: the message is of a handshake.
    pub association: u16,
    /// The class of service (six DSCP bits) that the message was sent with.
    pub class: u8,
    /// Number of the datagram in its direction of the association.
    pub counter: u64,
    /// The message and the rest of the trailer: what the tag is of.
    pub signed: &'a [u8],
    /// The message.
    pub message: &'a [u8],
    /// The tag.
    pub tag: Tag,
}

impl<'a> Sealed<'a> {
    /// Takes a datagram apart; none if it is too short for a trailer.
    #[must_use]
    pub fn parse(datagram: &'a [u8]) -> Option<Self> {
        let end = datagram.len().checked_sub(trailer::LEN)?;
        let (signed, tag) = datagram.split_at(datagram.len() - trailer::TAG);
        let (message, counter) = signed.split_at(end);
        let counter = u64::from_be_bytes(counter.try_into().ok()?);
        Some(Self {
            association: (counter >> 48) as u16,
            class: (counter >> CLASS_SHIFT & MAX_CLASS) as u8,
            counter: counter & MAX_COUNTER,
            signed,
            message,
            tag: tag.try_into().ok()?,
        })
    }
}

/// Writes association, class of service (below 64) and counter behind a message of `len` bytes. Returns
/// the number of bytes that the tag is of; the tag follows them, see [`put_tag`].
///
/// # Panics
/// When `buf` is shorter than message and trailer.
pub fn put_counter(buf: &mut [u8], len: usize, association: u16, class: u8, counter: u64) -> usize {
    let class = u64::from(class) & MAX_CLASS;
    let all = u64::from(association) << 48 | class << CLASS_SHIFT | counter & MAX_COUNTER;
    let end = len + trailer::LEN - TAG_BYTES;
    buf[len..end].copy_from_slice(&all.to_be_bytes());
    end
}

/// Writes the tag behind `signed` bytes; the length of the datagram.
///
/// # Panics
/// When `buf` is shorter.
pub fn put_tag(buf: &mut [u8], signed: usize, tag: &Tag) -> usize {
    let end = signed + TAG_BYTES;
    buf[signed..end].copy_from_slice(tag);
    end
}

/// The messages of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// "I have the key of this name."
    Hello = 1,
    /// "Send this cookie back."
    Cookie = 2,
    /// "Here it is, and this tag proves my key."
    Open = 3,
    /// "This is our association, and this tag proves mine."
    Opened = 4,
    /// "I do not know this association." It has no tag: a hint.
    Unknown = 5,
    /// "I have no key of this name", or "its time is over". It has no tag: a hint.
    NoKey = 6,
}

impl Kind {
    /// Every kind.
    pub const EACH: [Self; 6] =
        [Self::Hello, Self::Cookie, Self::Open, Self::Opened, Self::Unknown, Self::NoKey];
}

/// A message of a handshake. Fields that a kind does not use are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// Which message.
    pub kind: Kind,
    /// The association: of `Opened`, and the one that `Unknown` is about.
    pub association: u16,
    /// The key's public name.
    pub key_name: KeyName,
    /// Random bytes of the party that begins. They come back in every answer.
    pub initiator: Tag,
    /// Random bytes of the party that answers.
    pub responder: Tag,
    /// When the cookie was made, on the answering party's clock. In `NoKey`: when the time of that key was
    /// over, 0 where no such key was known.
    pub cookie_ns: u64,
    /// Proves that its sender receives at its address.
    pub cookie: Tag,
}

impl Handshake {
    /// A message with nothing but its kind.
    #[must_use]
    pub const fn new(kind: Kind) -> Self {
        Self {
            kind,
            association: 0,
            key_name: [0; 8],
            initiator: [0; TAG_BYTES],
            responder: [0; TAG_BYTES],
            cookie_ns: 0,
            cookie: [0; TAG_BYTES],
        }
    }

    /// What a party answers to a handshake of another version: a datagram that names this version and says
    /// no more. It is shorter than a handshake, so that two parties never answer each other's.
    #[must_use]
    pub fn version_notice() -> [u8; NOTICE] {
        let mut notice = [0; NOTICE];
        notice[..MAGIC.len()].copy_from_slice(&MAGIC);
        notice[handshake::VERSION] = VERSION;
        notice
    }

    /// Reads a message, of a datagram with association 0.
    ///
    /// # Errors
    /// Says what is wrong with the bytes.
    pub fn parse(message: &[u8]) -> Result<Self, Refusal> {
        if message.get(..MAGIC.len()) != Some(&MAGIC) {
            return Err(Refusal::NotOurs);
        }
        // Another version may have another length.
        if let Some(have) = message.get(handshake::VERSION).copied().filter(|have| *have != VERSION)
        {
            return Err(Refusal::WrongVersion { have, speaks: VERSION });
        }
        let have = message.len();
        match have {
            handshake::BODY => {}
            0..handshake::BODY => return Err(Refusal::Truncated { have, need: handshake::BODY }),
            _ => return Err(Refusal::Oversized { have, need: handshake::BODY }),
        }
        let byte = message[handshake::KIND];
        let kind = Kind::EACH.into_iter().find(|kind| *kind as u8 == byte);
        Ok(Self {
            kind: kind.ok_or(Refusal::UnknownKind(byte))?,
            association: u16::from_be_bytes(array(message, handshake::ASSOCIATION)),
            key_name: array(message, handshake::KEY_NAME),
            initiator: array(message, handshake::INITIATOR),
            responder: array(message, handshake::RESPONDER),
            cookie_ns: u64::from_be_bytes(array(message, handshake::COOKIE_TIME)),
            cookie: array(message, handshake::COOKIE),
        })
    }

    /// Writes the message and the counter of its trailer. Returns the number of bytes that the tag
    /// is of; the tag follows them, see [`put_tag`].
    ///
    /// # Panics
    /// When `buf` is shorter than [`handshake::LEN`].
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let mut put = |at: usize, bytes: &[u8]| buf[at..at + bytes.len()].copy_from_slice(bytes);
        put(handshake::MAGIC, &MAGIC);
        put(handshake::VERSION, &[VERSION, self.kind as u8]);
        put(handshake::ASSOCIATION, &self.association.to_be_bytes());
        put(handshake::KEY_NAME, &self.key_name);
        put(handshake::INITIATOR, &self.initiator);
        put(handshake::RESPONDER, &self.responder);
        put(handshake::COOKIE_TIME, &self.cookie_ns.to_be_bytes());
        put(handshake::COOKIE, &self.cookie);
        put_counter(buf, handshake::BODY, 0, 0, 0)
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut found = [0; N];
    found.copy_from_slice(&bytes[at..at + N]);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn opened() -> Handshake {
        Handshake {
            association: 0x0102,
            key_name: *b"nameofit",
            initiator: [7; 16],
            responder: [8; 16],
            cookie_ns: 9,
            cookie: [10; 16],
            ..Handshake::new(Kind::Opened)
        }
    }

    #[test]
    fn a_handshake_comes_back_as_it_was_written() {
        let mut buf = [0xff; handshake::LEN];
        let signed = opened().emit(&mut buf);
        let len = put_tag(&mut buf, signed, &[3; 16]);
        assert_eq!(len, handshake::LEN);
        let sealed = Sealed::parse(&buf).expect("it has a trailer");
        assert_eq!((sealed.association, sealed.counter, sealed.tag), (0, 0, [3; 16]));
        assert_eq!(Handshake::parse(sealed.message), Ok(opened()));
        assert_eq!(sealed.signed.len(), signed);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let mut buf = [0; handshake::LEN];
        opened().emit(&mut buf);
        let body = &mut buf[..handshake::BODY];
        let refused = |bytes: &[u8]| Handshake::parse(bytes).expect_err("it is not valid");
        assert_eq!(refused(&body[..70]), Refusal::Truncated { have: 70, need: 72 });
        assert_eq!(refused(&[&*body, &[0]].concat()), Refusal::Oversized { have: 73, need: 72 });
        body[5] = 7;
        assert_eq!(refused(body), Refusal::UnknownKind(7));
        body[4] = 1;
        assert_eq!(refused(body), Refusal::WrongVersion { have: 1, speaks: 2 });
        assert_eq!(refused(&body[..5]), Refusal::WrongVersion { have: 1, speaks: 2 });
        body[0] = b'X';
        assert_eq!(refused(body), Refusal::NotOurs);
    }

    #[test]
    fn a_version_notice_is_shorter_than_a_handshake_and_names_the_version() {
        let mut notice = Handshake::version_notice();
        assert!(notice.len() < handshake::LEN);
        let read = |datagram: &[u8]| {
            let sealed = Sealed::parse(datagram).expect("it has a trailer");
            assert_eq!(sealed.association, 0);
            Handshake::parse(sealed.message)
        };
        assert!(matches!(read(&notice), Err(Refusal::Truncated { .. })), "the same version");
        notice[handshake::VERSION] = 9;
        assert_eq!(read(&notice), Err(Refusal::WrongVersion { have: 9, speaks: VERSION }));
    }

    #[test]
    fn a_trailer_keeps_association_class_and_counter_apart() {
        let mut buf = *b"message_________________________";
        let largest = (0xffff, 63, MAX_COUNTER);
        for (association, class, counter) in [largest, (1, 0, 2), (0, 35, 0), (0, 0, MAX_COUNTER)] {
            let signed = put_counter(&mut buf, 7, association, class, counter);
            let len = put_tag(&mut buf, signed, &[1; 16]);
            let sealed = Sealed::parse(&buf[..len]).expect("it has a trailer");
            let read = (sealed.association, sealed.class, sealed.counter);
            assert_eq!(read, (association, class, counter));
        }
        let sealed = Sealed::parse(&buf[..31]).expect("it has a trailer");
        assert_eq!(sealed.message, b"message");
        assert_eq!(Sealed::parse(&buf[..23]), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(sealed) = Sealed::parse(&bytes) {
                let _ = Handshake::parse(sealed.message);
            }
        }
    }
}
