use crate::message::{
    Message, asks, closings, joins, leaves, messages, pieces, results, wants, welcomes,
};
use olaf_wire::reduce::offsets::HEADER;
use olaf_wire::reduce::{BlockResult, Piece, RankSet, ReducePacket, datagram_len};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn comes_back(message: &Message) -> Result<(), TestCaseError> {
    let bytes = message.written();
    prop_assert_eq!(Message::read(&bytes), Ok(message.clone()));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn a_piece_comes_back_as_it_was(message in pieces()) {
        comes_back(&message)?;
    }

    #[test]
    fn a_result_comes_back_as_it_was(message in results()) {
        comes_back(&message)?;
    }

    #[test]
    fn questions_come_back_as_they_were(ask in asks(), want in wants()) {
        comes_back(&ask)?;
        comes_back(&want)?;
    }

    #[test]
    fn membership_comes_back_as_it_was(join in joins(), welcome in welcomes(), leave in leaves(), closed in closings()) {
        for message in [join, welcome, leave, closed] {
            comes_back(&message)?;
            prop_assert_eq!(message.written().len(), HEADER);
        }
    }

    #[test]
    fn the_length_of_a_block_is_known_before_it_is_written(message in prop_oneof![pieces(), results()]) {
        let bytes = message.written();
        let (block, behind) = match &message {
            Message::Piece(piece, behind) => (piece.block, behind),
            Message::Result(result, behind) => (result.block, behind),
            other => panic!("{other:?} has no block"),
        };
        let lanes = behind.lanes.len() / block.lane_type.bytes();
        prop_assert_eq!(bytes.len(), datagram_len(behind.words.len(), block.lane_type, lanes));
    }

    #[test]
    fn lanes_written_behind_a_header_are_as_lanes_written_with_it(message in prop_oneof![pieces(), results()]) {
        let written = message.written();
        let mut buf = vec![0x5a; written.len()];
        let start = match &message {
            Message::Piece(piece, behind) => {
                piece.emit_header(&behind.words, behind.lanes.len() / piece.block.lane_type.bytes(), &mut buf)
            }
            Message::Result(result, behind) => {
                result.emit_header(&behind.words, behind.lanes.len() / result.block.lane_type.bytes(), &mut buf)
            }
            other => panic!("{other:?} has no block"),
        };
        let packet = ReducePacket::new_checked(&written).unwrap();
        buf[start..].copy_from_slice(packet.lanes());
        prop_assert_eq!(buf, written);
    }

    #[test]
    fn the_contributors_of_a_partial_sum_come_back(
        mut message in results(), ranks in prop::collection::btree_set(0u32..8192, 1..100),
    ) {
        let Message::Result(result, behind) = &mut message else { panic!("a result") };
        let set: RankSet = ranks.iter().copied().collect();
        result.contributors = set.len();
        result.expected = set.len() + 1;
        behind.words = set.words().to_vec();
        let bytes = message.written();
        let packet = ReducePacket::new_checked(&bytes).unwrap();
        prop_assert!(packet.is_partial() && BlockResult::parse(&packet).unwrap().is_partial());
        let read = RankSet::from_words(packet.contributor_words()).unwrap();
        prop_assert_eq!(read.iter().collect::<BTreeSet<u32>>(), ranks);
    }

    #[test]
    fn a_message_is_read_as_its_own_kind_only(message in messages()) {
        let bytes = message.written();
        let packet = ReducePacket::new_checked(&bytes).unwrap();
        prop_assert_eq!(Piece::parse(&packet).is_ok(), matches!(message, Message::Piece(..)));
        prop_assert_eq!(BlockResult::parse(&packet).is_ok(), matches!(message, Message::Result(..)));
    }
}
