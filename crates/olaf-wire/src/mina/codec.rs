//! A packet as bytes: a fixed length, network byte order, every field at one place.
//!
//! ```text
//! 0 magic "MINA"   4 version   5 kind   6 from   7 held   8 job   16 epoch   24 round
//! 32 a   40 b   48 c   56 from rank   58 to rank   60 to   61 zero x3   64 end
//! from, to   0 the controller   1 a host
//! a, b, c    commit: from, to, -   ready: next, -, -   settled: next, -, epoch
//!            progress: next, age of the step, -   others: zero
//! ```
//!
//! Unused fields must be zero: two packets are the same if and only if their bytes are.

use super::{Ballot, Body, Grant, JobId, Packet, Party, Progress};
use crate::packet::{Refusal, array_at};
use offsets as at;

/// Bytes of every packet.
pub const LEN: usize = 64;
/// First bytes of every packet.
pub const MAGIC: [u8; 4] = *b"MINA";
/// The version of the format.
pub const VERSION: u8 = 1;

/// Byte offsets of the fields.
pub mod offsets {
    #![allow(missing_docs, reason = "named and drawn in the module's table")]
    pub const VERSION: usize = 4;
    pub const KIND: usize = 5;
    pub const FROM: usize = 6;
    pub const HELD: usize = 7;
    pub const JOB: usize = 8;
    pub const EPOCH: usize = 16;
    pub const ROUND: usize = 24;
    pub const A: usize = 32;
    pub const B: usize = 40;
    pub const C: usize = 48;
    pub const FROM_RANK: usize = 56;
    pub const TO_RANK: usize = 58;
    pub const TO: usize = 60;
}

impl Packet {
    /// Writes the packet.
    #[must_use]
    pub fn emit(&self) -> [u8; LEN] {
        let (kind, held, [a, b, c]) = match self.body {
            Body::Prepare => (1, false, [0; 3]),
            Body::Ready { next, held } => (2, held, [next, 0, 0]),
            Body::Commit(grant) => (3, false, [grant.from, grant.to, 0]),
            Body::Abort => (4, false, [0; 3]),
            Body::Settled { next, held, epoch } => (5, held, [next, 0, epoch]),
            Body::Ask => (6, false, [0; 3]),
            Body::InDoubt => (7, false, [0; 3]),
            Body::Bye => (8, false, [0; 3]),
            Body::Progress(Progress { next, in_network, step_age_ns }) => {
                (9, in_network, [next, step_age_ns, 0])
            }
        };
        let (from, from_rank) = party(self.from);
        let (to, to_rank) = party(self.to);
        let mut bytes = [0; LEN];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[at::VERSION] = VERSION;
        bytes[at::KIND] = kind;
        bytes[at::FROM] = from;
        bytes[at::HELD] = u8::from(held);
        let fields = [
            (at::JOB, self.job.0),
            (at::EPOCH, self.ballot.epoch),
            (at::ROUND, self.ballot.round),
            (at::A, a),
            (at::B, b),
            (at::C, c),
        ];
        for (at, field) in fields {
            bytes[at..at + 8].copy_from_slice(&field.to_be_bytes());
        }
        bytes[at::FROM_RANK..at::FROM_RANK + 2].copy_from_slice(&from_rank.to_be_bytes());
        bytes[at::TO_RANK..at::TO_RANK + 2].copy_from_slice(&to_rank.to_be_bytes());
        bytes[at::TO] = to;
        bytes
    }

    /// Reads a packet.
    ///
    /// # Errors
    /// The [`Refusal`] that says what is wrong with the bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let bytes: &[u8; LEN] = exactly(bytes, MAGIC)?;
        if bytes[at::VERSION] != VERSION {
            return Err(Refusal::WrongVersion { have: bytes[at::VERSION], speaks: VERSION });
        }
        let u64_at = |at: usize| u64_at(bytes, at);
        let u16_at = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let held = match bytes[at::HELD] {
            0 => false,
            1 => true,
            _ => return Err(Refusal::BadField("held")),
        };
        let (a, b, c) = (u64_at(at::A), u64_at(at::B), u64_at(at::C));
        let body = match bytes[at::KIND] {
            1 => Body::Prepare,
            2 => Body::Ready { next: a, held },
            3 => Body::Commit(Grant { from: a, to: b }),
            4 => Body::Abort,
            5 => Body::Settled { next: a, held, epoch: c },
            6 => Body::Ask,
            7 => Body::InDoubt,
            8 => Body::Bye,
            9 => Body::Progress(Progress { next: a, in_network: held, step_age_ns: b }),
            kind => return Err(Refusal::UnknownKind(kind)),
        };
        let read = |kind: u8, rank: u16, field| match (kind, rank) {
            (0, 0) => Ok(Party::Controller),
            (1, rank) => Ok(Party::Host(rank)),
            _ => Err(Refusal::BadField(field)),
        };
        let packet = Self {
            job: JobId(u64_at(at::JOB)),
            ballot: Ballot { epoch: u64_at(at::EPOCH), round: u64_at(at::ROUND) },
            from: read(bytes[at::FROM], u16_at(at::FROM_RANK), "from")?,
            to: read(bytes[at::TO], u16_at(at::TO_RANK), "to")?,
            body,
        };
        // A field without a meaning in this kind must be zero.
        if packet.emit() == *bytes { Ok(packet) } else { Err(Refusal::BadField("unused")) }
    }
}

/// The bytes, if they begin with `magic` and are `N`.
pub(super) fn exactly<const N: usize>(bytes: &[u8], magic: [u8; 4]) -> Result<&[u8; N], Refusal> {
    if !bytes.starts_with(&magic) {
        return Err(Refusal::NotOurs);
    }
    let have = bytes.len();
    bytes.try_into().map_err(|_| match have {
        have if have < N => Refusal::Truncated { have, need: N },
        have => Refusal::Oversized { have, need: N },
    })
}

pub(super) fn u64_at<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    u64::from_be_bytes(array_at(bytes, at))
}

const fn party(party: Party) -> (u8, u16) {
    match party {
        Party::Controller => (0, 0),
        Party::Host(rank) => (1, rank),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::String;
    use proptest::prelude::*;

    fn sample(from: Party, to: Party, body: Body) -> Packet {
        let ballot = Ballot { epoch: 0x0102, round: 0x0304 };
        Packet { job: JobId(0x0506), ballot, from, to, body }
    }

    fn bodies() -> impl Strategy<Value = Body> {
        prop_oneof![
            Just(Body::Prepare),
            (any::<u64>(), any::<bool>()).prop_map(|(next, held)| Body::Ready { next, held }),
            (any::<u64>(), any::<u64>()).prop_map(|(from, to)| Body::Commit(Grant { from, to })),
            Just(Body::Abort),
            (any::<u64>(), any::<bool>(), any::<u64>())
                .prop_map(|(next, held, epoch)| Body::Settled { next, held, epoch }),
            Just(Body::Ask),
            Just(Body::InDoubt),
            Just(Body::Bye),
            (any::<u64>(), any::<bool>(), any::<u64>()).prop_map(
                |(next, in_network, step_age_ns)| Body::Progress(Progress {
                    next,
                    in_network,
                    step_age_ns
                })
            ),
        ]
    }

    #[test]
    fn the_bytes_of_a_commit() {
        let grant = Grant { from: 0x0a, to: 0x0b };
        let packet = sample(Party::Controller, Party::Host(0x0708), Body::Commit(grant));
        let hex: String = packet.emit().iter().map(|byte| format!("{byte:02x}")).collect();
        let fields = [
            "4d494e41",
            "01",
            "03",
            "00",
            "00",
            "0000000000000506",
            "0000000000000102",
            "0000000000000304",
            "000000000000000a",
            "000000000000000b",
            "0000000000000000",
            "0000",
            "0708",
            "01",
            "000000",
        ];
        assert_eq!(hex, fields.concat());
    }

    #[test]
    fn the_bytes_of_settled() {
        let body = Body::Settled { next: 9, held: true, epoch: 5 };
        let bytes = sample(Party::Host(2), Party::Controller, body).emit();
        assert_eq!(bytes[4..8], [1, 5, 1, 1]);
        assert_eq!((bytes[39], bytes[55], bytes[57], bytes[60]), (9, 5, 2, 0));
    }

    #[test]
    fn what_is_no_packet_is_named() {
        let good = sample(Party::Host(2), Party::Controller, Body::Bye).emit();
        let with = |at: usize, byte: u8| {
            let mut bytes = good;
            bytes[at] = byte;
            Packet::parse(&bytes).expect_err("one byte is wrong")
        };
        assert_eq!(Packet::parse(b"OLAF"), Err(Refusal::NotOurs));
        assert_eq!(Packet::parse(&good[..63]), Err(Refusal::Truncated { have: 63, need: 64 }));
        assert_eq!(with(4, 2), Refusal::WrongVersion { have: 2, speaks: VERSION });
        assert_eq!(with(5, 10), Refusal::UnknownKind(10));
        assert_eq!(with(6, 2), Refusal::BadField("from"));
        assert_eq!(with(7, 2), Refusal::BadField("held"));
        assert_eq!(with(60, 3), Refusal::BadField("to"));
        assert_eq!(with(40, 1), Refusal::BadField("unused"));
        assert_eq!(with(61, 1), Refusal::BadField("unused"));
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(body in bodies(), rank in any::<u16>(), up in any::<bool>()) {
            let (host, controller) = (Party::Host(rank), Party::Controller);
            let packet = if up { sample(host, controller, body) } else { sample(controller, host, body) };
            prop_assert_eq!(Packet::parse(&packet.emit()), Ok(packet));
        }
    }
}
