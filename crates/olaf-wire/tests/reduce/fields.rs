//! Fields that cannot be, refused by name.

use crate::message::{Behind, Message};
use olaf_wire::reduce::offsets::{self, HEADER, block, closed, common, join, missing, welcome};
use olaf_wire::reduce::{
    ALL, Address, Ask, Block, BlockResult, Blocks, Closed, Join, LaneType, Leave, MAX_RANKS, Marks,
    Operator, Piece, Reason, ReducePacket, Want, Welcome, WelcomeCode, join_of_another_version,
};
use olaf_wire::{Call, JobId, Refusal, Session};

const ADDRESS: Address =
    Address { job: JobId(1), generation: 2, rank: 3, session: Session(0x0405_0607) };
const BLOCK: Block = Block {
    number: 9,
    operation: 4,
    first: 8,
    lanes_of_operation: 1000,
    lane_type: LaneType::F16,
    operator: Operator::Sum,
    call: Call::from_bits(0),
};

fn piece() -> Piece {
    Piece {
        address: ADDRESS,
        block: BLOCK,
        contributors: 1,
        holds: 5,
        sent_at_us: 6,
        marks: Marks::default(),
    }
}

fn result() -> BlockResult {
    BlockResult {
        address: Address { rank: ALL, ..ADDRESS },
        block: BLOCK,
        contributors: 3,
        expected: 4,
        sent_at_us: 6,
        marks: Marks::default(),
    }
}

fn a_welcome() -> Welcome {
    Welcome {
        address: ADDRESS,
        code: WelcomeCode::Welcome,
        operation: 0,
        workers: 4,
        here: 4,
        slots: 64,
        block_bytes: 1024,
        cores: 1,
        sent_at_us: 1,
        nonce: 0,
    }
}

/// The message as read once these bytes stand at that place.
fn with(message: &Message, at: usize, field: &[u8]) -> Result<Message, Refusal> {
    let mut bytes = message.written();
    bytes[at..at + field.len()].copy_from_slice(field);
    Message::read(&bytes)
}

fn refused(message: &Message, at: usize, field: &[u8], name: &'static str) {
    assert_eq!(with(message, at, field), Err(Refusal::BadField(name)), "{field:?} at {at}");
}

fn behind(words: &[u64]) -> Behind {
    Behind { words: words.to_vec(), lanes: vec![1, 2, 3, 4] }
}

#[test]
fn a_piece_that_cannot_be_is_refused_by_the_name_of_its_field() {
    let good = Message::Piece(piece(), behind(&[]));
    assert_eq!(Message::read(&good.written()).as_ref(), Ok(&good));
    for (at, field, name) in [
        (common::RANK, &MAX_RANKS.to_be_bytes()[..], "rank"),
        (common::RANK, &ALL.to_be_bytes(), "rank"),
        (common::BLOCK, &7u32.to_be_bytes(), "first_block"),
        (block::CONTRIBUTORS, &0u32.to_be_bytes(), "contributors"),
        (block::LANES_OF_OPERATION, &1u64.to_be_bytes(), "lanes"),
        (block::LANE_TYPE, &[0], "lane_type"),
        (block::LANE_TYPE, &[6], "lane_type"),
        (block::OPERATOR, &[0], "operator"),
        (block::OPERATOR, &[5], "operator"),
        (block::WORDS, &1u16.to_be_bytes(), "words"),
        (common::FLAGS, &offsets::PARTIAL.to_be_bytes(), "words"),
    ] {
        refused(&good, at, field, name);
    }
    let call = Call::from_bits(0x8001);
    let other = Piece { block: Block { call, ..BLOCK }, ..piece() };
    assert_eq!(with(&good, block::CALL, &[0x80, 1]), Ok(Message::Piece(other, behind(&[]))));
    let too_many = u16::MAX.to_be_bytes();
    let whole = Piece { block: Block { lanes_of_operation: 1 << 40, ..BLOCK }, ..piece() };
    refused(&Message::Piece(whole, behind(&[])), block::LANES, &too_many, "lanes");
}

#[test]
fn a_partial_sum_names_its_contributors_and_a_complete_one_does_not() {
    let good = Message::Result(result(), behind(&[0b1011]));
    assert_eq!(Message::read(&good.written()).as_ref(), Ok(&good));
    for (at, field, name) in [
        (block::EXPECTED, &2u32.to_be_bytes()[..], "expected"),
        (block::EXPECTED, &3u32.to_be_bytes(), "expected"),
        (common::FLAGS, &0u16.to_be_bytes(), "words"),
        (block::WORDS, &0u16.to_be_bytes(), "words"),
        (block::WORDS, &129u16.to_be_bytes(), "words"),
        (HEADER, &0u64.to_le_bytes(), "contributors"),
        (HEADER, &0b1111u64.to_le_bytes(), "contributors"),
    ] {
        refused(&good, at, field, name);
    }
    // A lower switch is one rank and has several contributors.
    assert!(with(&good, HEADER, &0b10u64.to_le_bytes()).is_ok());
    let complete = Message::Result(BlockResult { expected: 3, ..result() }, behind(&[]));
    refused(&complete, block::EXPECTED, &4u32.to_be_bytes(), "expected");
}

#[test]
fn bit_r_of_the_words_stands_for_rank_r_as_the_bytes_lie() {
    let bytes = Message::Result(result(), behind(&[1 << 9, 1 << 63, 1])).written();
    let set: Vec<usize> =
        (0..192).filter(|rank| bytes[HEADER + rank / 8] >> (rank % 8) & 1 == 1).collect();
    assert_eq!(set, [9, 127, 128]);
}

#[test]
fn questions_name_blocks_that_a_number_can_name() {
    let blocks = Blocks { first: u32::MAX - 1, mask: 0b11 };
    let address = ADDRESS;
    let ask = Ask { address, operation: 1, blocks, holds: 2, sent_at_us: 3, awaits: None };
    let ask = Message::Ask(ask);
    assert_eq!(Message::read(&ask.written()).as_ref(), Ok(&ask));
    assert_eq!(blocks.iter().collect::<Vec<_>>(), [u32::MAX - 1, u32::MAX]);
    refused(&ask, missing::MASK, &0b100u64.to_be_bytes(), "mask");
    refused(&ask, common::RANK, &ALL.to_be_bytes(), "rank");
    // Nothing is asked for: an acknowledgement.
    assert!(with(&ask, missing::MASK, &[0; 8]).is_ok());
    let to_all = Address { rank: ALL, ..ADDRESS };
    let want =
        Message::Want(Want { address: to_all, operation: 1, blocks, holds: 2, sent_at_us: 3 });
    assert_eq!(Message::read(&want.written()).as_ref(), Ok(&want));
    refused(&want, missing::MASK, &0b100u64.to_be_bytes(), "mask");
}

#[test]
fn a_membership_that_cannot_be_is_refused_by_the_name_of_its_field() {
    let too_many = (MAX_RANKS + 1).to_be_bytes();
    let a_join = Message::Join(Join {
        address: Address { rank: ALL, ..ADDRESS },
        workers: 0,
        contributors: 1,
        deadline_us: 0,
        block_bytes: 0,
        datagram_bytes: 1472,
        sent_at_us: 0,
        nonce: 0,
        operation: 0,
        program: 0,
    });
    refused(&a_join, join::WORKERS, &too_many, "workers");
    refused(&a_join, join::CONTRIBUTORS, &[0; 4], "contributors");
    let code = |code| Message::Welcome(Welcome { code, ..a_welcome() });
    let good = code(WelcomeCode::Welcome);
    refused(&good, welcome::WORKERS, &too_many, "workers");
    refused(&good, welcome::HERE, &too_many, "here");
    refused(&good, welcome::CODE, &[0], "code");
    refused(&good, welcome::CODE, &[9], "code");
    // A generation needs these numbers; an answer that begins none need not know them.
    for (at, name) in [
        (welcome::WORKERS, "workers"),
        (welcome::SLOTS, "slots"),
        (welcome::BLOCK_BYTES, "block_bytes"),
    ] {
        refused(&good, at, &[0; 4], name);
        assert!(with(&code(WelcomeCode::Waiting), at, &[0; 4]).is_ok(), "{name}");
    }
    refused(&good, common::RANK, &4u32.to_be_bytes(), "rank");
    refused(&good, common::RANK, &ALL.to_be_bytes(), "rank");
    let address = ADDRESS;
    let end = Closed { address, operation: 7, culprit: ALL, reason: Reason::Renewed, clash: None };
    let end = Message::Closed(end);
    refused(&end, closed::CULPRIT, &MAX_RANKS.to_be_bytes(), "culprit");
    refused(&end, closed::REASON, &[0], "reason");
    refused(&end, closed::REASON, &[9], "reason");
}

#[test]
fn a_field_that_a_message_does_not_have_is_zero() {
    let leave = Message::Leave(Leave { address: ADDRESS, operation: 7 });
    for at in common::BLOCK..HEADER {
        refused(&leave, at, &[1], "unused");
    }
    let (address, blocks) = (ADDRESS, Blocks::default());
    let ask = Ask { address, operation: 1, blocks, holds: 2, sent_at_us: 3, awaits: None };
    for at in (block::FIRST_BLOCK..missing::HOLDS).chain(block::LANES..HEADER) {
        refused(&Message::Ask(ask), at, &[1], "unused");
    }
}

#[test]
fn other_versions_kinds_and_flags_are_refused_by_name() {
    let piece = Message::Piece(piece(), behind(&[]));
    let leave = Message::Leave(Leave { address: ADDRESS, operation: 7 });
    for (message, at, value, refusal) in [
        (&piece, 0, b'X', Refusal::NotOurs),
        (&piece, 3, b'F', Refusal::NotOurs),
        (&piece, common::VERSION, 1, Refusal::WrongVersion { have: 1, speaks: 4 }),
        (&piece, common::KIND, 0, Refusal::UnknownKind(0)),
        (&piece, common::KIND, 9, Refusal::UnknownKind(9)),
        (&piece, common::FLAGS, 1, Refusal::UnknownFlags(0x100)),
        (&piece, common::FLAGS + 1, 16, Refusal::UnknownFlags(16)),
        (&leave, common::FLAGS + 1, 1, Refusal::UnknownFlags(1)),
    ] {
        assert_eq!(with(message, at, &[value]), Err(refusal));
    }
}

#[test]
fn a_join_of_another_version_tells_its_sender() {
    let join = Join {
        address: ADDRESS,
        workers: 4,
        contributors: 1,
        deadline_us: 0,
        block_bytes: 0,
        datagram_bytes: 1472,
        sent_at_us: 0,
        nonce: 0,
        operation: 0,
        program: 0,
    };
    let mut bytes = Message::Join(join).written();
    assert_eq!(join_of_another_version(&bytes), None);
    bytes[common::VERSION] = 1;
    assert_eq!(join_of_another_version(&bytes), Some(ADDRESS));
    assert_eq!(join_of_another_version(&bytes[..HEADER - 1]), None);
    bytes[common::KIND] = 1;
    assert_eq!(join_of_another_version(&bytes), None);
}

#[test]
fn the_lanes_of_the_largest_datagram_are_read() {
    let lanes = vec![7; (olaf_wire::offsets::MAX_DATAGRAM - HEADER) / 2 * 2];
    let block = Block { lanes_of_operation: 1 << 40, ..BLOCK };
    let message = Message::Piece(Piece { block, ..piece() }, Behind { words: vec![], lanes });
    let bytes = message.written();
    let packet = ReducePacket::new_checked(&bytes).unwrap();
    assert_eq!(packet.lanes().len(), 65_442);
}
