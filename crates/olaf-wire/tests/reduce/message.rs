//! Any message, written and read, and how to make one up.

use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::reduce::offsets::MAX_WORDS;
use olaf_wire::reduce::{
    ALL, Address, Ask, Block, BlockResult, Blocks, Called, Clash, Closed, Join, Kind, LaneType,
    Leave, MAX_CORES, MAX_RANKS, Marks, Operator, Piece, Reason, ReducePacket, Want, Welcome,
    WelcomeCode,
};
use olaf_wire::{Call, JobId, Refusal, Session};
use proptest::prelude::*;
use proptest::sample::select;

/// What follows the header of a piece or a result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Behind {
    pub(crate) words: Vec<u64>,
    pub(crate) lanes: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    Piece(Piece, Behind),
    Result(BlockResult, Behind),
    Ask(Ask),
    Want(Want),
    Join(Join),
    Welcome(Welcome),
    Leave(Leave),
    Closed(Closed),
}

impl Message {
    pub(crate) fn written(&self) -> Vec<u8> {
        // Whatever the buffer held before must not show.
        let mut buf = vec![0xa5; MAX_DATAGRAM];
        let len = match self {
            Self::Piece(piece, behind) => piece.emit(&behind.words, &behind.lanes, &mut buf),
            Self::Result(result, behind) => result.emit(&behind.words, &behind.lanes, &mut buf),
            Self::Ask(ask) => ask.emit(&mut buf),
            Self::Want(want) => want.emit(&mut buf),
            Self::Join(join) => join.emit(&mut buf),
            Self::Welcome(welcome) => welcome.emit(&mut buf),
            Self::Leave(leave) => leave.emit(&mut buf),
            Self::Closed(closed) => closed.emit(&mut buf),
        };
        buf.truncate(len);
        buf
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        let packet = ReducePacket::new_checked(bytes)?;
        let behind = || Behind {
            words: packet.contributor_words().collect(),
            lanes: packet.lanes().to_vec(),
        };
        Ok(match packet.kind() {
            Kind::Piece => Self::Piece(Piece::parse(&packet)?, behind()),
            Kind::Result => Self::Result(BlockResult::parse(&packet)?, behind()),
            Kind::Ask => Self::Ask(Ask::parse(&packet)?),
            Kind::Want => Self::Want(Want::parse(&packet)?),
            Kind::Join => Self::Join(Join::parse(&packet)?),
            Kind::Welcome => Self::Welcome(Welcome::parse(&packet)?),
            Kind::Leave => Self::Leave(Leave::parse(&packet)?),
            Kind::Closed => Self::Closed(Closed::parse(&packet)?),
        })
    }
}

fn address(rank: impl Strategy<Value = u32>) -> impl Strategy<Value = Address> {
    (any::<[u32; 3]>(), rank).prop_map(|([job, generation, session], rank)| Address {
        job: JobId(job),
        generation,
        rank,
        session: Session(session),
    })
}

fn ranks() -> impl Strategy<Value = u32> {
    0..MAX_RANKS
}

fn ranks_and_all() -> impl Strategy<Value = u32> {
    prop_oneof![4 => ranks(), 1 => Just(ALL)]
}

/// The signature of an operation.
fn signatures() -> impl Strategy<Value = Called> {
    let kinds = (select(&LaneType::EACH[..]), select(&Operator::EACH[..]));
    (any::<u16>(), kinds, any::<u64>()).prop_map(|(call, (lane_type, operator), lanes)| Called {
        call: Call::from_bits(call),
        lane_type,
        operator,
        lanes,
    })
}

/// A block, its marks and what follows the header.
fn blocks() -> impl Strategy<Value = (Block, Marks, Behind)> {
    let numbers = (any::<(u32, u32, u32)>(), any::<u64>());
    let kinds = (select(&LaneType::EACH[..]), select(&Operator::EACH[..]), any::<u16>());
    let words = prop::collection::vec(any::<u64>(), 1..=MAX_WORDS);
    let behind = (prop_oneof![Just(Vec::new()), words], prop::collection::vec(any::<u8>(), 0..400));
    (numbers, kinds, any::<[bool; 3]>(), behind).prop_map(
        |(((a, b, operation), more), (lane_type, operator, call), marks, behind)| {
            let [resent, not_finite, congested] = marks;
            let (words, mut lanes) = behind;
            lanes.truncate(lanes.len() / lane_type.bytes() * lane_type.bytes());
            let block = Block {
                number: a.max(b),
                operation,
                first: a.min(b),
                lanes_of_operation: more.max((lanes.len() / lane_type.bytes()) as u64),
                lane_type,
                operator,
                call: Call::from_bits(call),
            };
            let marks = Marks { resent, not_finite, congested };
            // Somebody contributed.
            let words = if words.iter().all(|word| *word == 0) { vec![] } else { words };
            (block, marks, Behind { words, lanes })
        },
    )
}

/// At least as many contributors as the words name.
fn contributors(words: &[u64], more: u32) -> u32 {
    words.iter().map(|word| word.count_ones()).sum::<u32>().max(1).saturating_add(more / 2)
}

pub(crate) fn pieces() -> impl Strategy<Value = Message> {
    (address(ranks()), blocks(), any::<[u32; 3]>()).prop_map(
        |(address, (block, marks, behind), [holds, sent_at_us, more])| {
            let contributors = contributors(&behind.words, more);
            let piece = Piece { address, block, contributors, holds, sent_at_us, marks };
            Message::Piece(piece, behind)
        },
    )
}

pub(crate) fn results() -> impl Strategy<Value = Message> {
    (address(ranks_and_all()), blocks(), any::<[u32; 3]>()).prop_map(
        |(address, (block, marks, behind), [missing, sent_at_us, more])| {
            let contributors = contributors(&behind.words, more);
            let missing = if behind.words.is_empty() { 0 } else { missing / 2 + 1 };
            let expected = contributors.saturating_add(missing);
            let result = BlockResult { address, block, contributors, expected, sent_at_us, marks };
            Message::Result(result, behind)
        },
    )
}

fn masks() -> impl Strategy<Value = Blocks> {
    (0..u32::MAX - 63, any::<u64>()).prop_map(|(first, mask)| Blocks { first, mask })
}

pub(crate) fn asks() -> impl Strategy<Value = Message> {
    let awaits = prop::option::of((0..u32::MAX, signatures()));
    (address(ranks()), masks(), any::<[u32; 3]>(), awaits).prop_map(
        |(address, blocks, [operation, holds, sent_at_us], awaits)| {
            Message::Ask(Ask { address, operation, blocks, holds, sent_at_us, awaits })
        },
    )
}

pub(crate) fn wants() -> impl Strategy<Value = Message> {
    (address(ranks_and_all()), masks(), any::<[u32; 3]>()).prop_map(
        |(address, blocks, [operation, holds, sent_at_us])| {
            Message::Want(Want { address, operation, blocks, holds, sent_at_us })
        },
    )
}

pub(crate) fn joins() -> impl Strategy<Value = Message> {
    (address(ranks_and_all()), 0..=MAX_RANKS, 1u32.., any::<[u32; 5]>(), any::<u64>()).prop_map(
        |(
            address,
            workers,
            contributors,
            [deadline_us, block_bytes, datagram_bytes, sent_at_us, nonce],
            program,
        )| {
            Message::Join(Join {
                address,
                workers,
                contributors,
                deadline_us,
                block_bytes,
                datagram_bytes,
                sent_at_us,
                nonce,
                operation: 0,
                program,
            })
        },
    )
}

pub(crate) fn welcomes() -> impl Strategy<Value = Message> {
    let workers = (1..=MAX_RANKS, 0..=MAX_RANKS);
    let sizes = (1u32.., 1u32..);
    let cores = 1..=MAX_CORES;
    let codes = (select(&WelcomeCode::EACH[..]), cores);
    (address(ranks_and_all()), codes, workers, sizes, any::<[u32; 3]>()).prop_map(
        |(mut address, (code, cores), (workers, here), (slots, block_bytes), numbers)| {
            if code == WelcomeCode::Welcome {
                address.rank %= workers;
            }
            let [operation, sent_at_us, nonce] = numbers;
            Message::Welcome(Welcome {
                address,
                code,
                operation,
                workers,
                here,
                slots,
                block_bytes,
                cores,
                sent_at_us,
                nonce,
            })
        },
    )
}

pub(crate) fn leaves() -> impl Strategy<Value = Message> {
    (address(ranks()), any::<u32>())
        .prop_map(|(address, operation)| Message::Leave(Leave { address, operation }))
}

pub(crate) fn closings() -> impl Strategy<Value = Message> {
    let reasons = select(&Reason::EACH[..]);
    let clash = (signatures(), signatures());
    let clash = prop::option::of(clash.prop_map(|(culprit, others)| Clash { culprit, others }));
    (address(ranks_and_all()), any::<u32>(), ranks_and_all(), reasons, clash).prop_map(
        |(address, operation, culprit, reason, clash)| {
            Message::Closed(Closed { address, operation, culprit, reason, clash })
        },
    )
}

/// Any message.
pub(crate) fn messages() -> impl Strategy<Value = Message> {
    prop_oneof![pieces(), results(), asks(), wants(), joins(), welcomes(), leaves(), closings()]
}
