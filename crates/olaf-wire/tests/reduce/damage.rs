use crate::message::{Message, messages};
use olaf_wire::Refusal;
use olaf_wire::reduce::ReducePacket;
use olaf_wire::reduce::offsets::{MAGIC, VERSION};
use proptest::prelude::*;

/// Reads the bytes. What is read means the same when it is written again: no field is lost.
fn survives(bytes: &[u8]) -> Result<(), TestCaseError> {
    match Message::read(bytes) {
        Ok(message) => prop_assert_eq!(message.written(), bytes),
        Err(refusal) => prop_assert!(!refusal.to_string().is_empty()),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        survives(&bytes)?;
    }

    #[test]
    fn no_bytes_behind_a_good_start_make_a_reader_panic(
        kind in 0u8..10, bytes in prop::collection::vec(prop_oneof![Just(0), any::<u8>()], 0..300),
    ) {
        let mut datagram = [MAGIC.as_slice(), &[VERSION, kind, 0, 0]].concat();
        datagram.extend(bytes);
        survives(&datagram)?;
    }

    #[test]
    fn a_datagram_cut_anywhere_is_refused(message in messages()) {
        let bytes = message.written();
        for cut in 0..bytes.len() {
            let refusal = ReducePacket::new_checked(&bytes[..cut]).err().unwrap();
            let named = match refusal {
                Refusal::Truncated { have, need } => have == cut && need > cut,
                Refusal::NotOurs => cut < MAGIC.len(),
                _ => false,
            };
            prop_assert!(named, "{cut} of {}: {refusal}", bytes.len());
        }
    }

    #[test]
    fn a_datagram_that_is_too_long_is_refused(message in messages(), more in 1usize..100) {
        let mut bytes = message.written();
        let need = bytes.len();
        bytes.resize(need + more, 0);
        let refusal = ReducePacket::new_checked(&bytes).err();
        prop_assert_eq!(refusal, Some(Refusal::Oversized { have: need + more, need }));
    }

    #[test]
    fn a_damaged_byte_is_read_or_refused_at_every_place(message in messages(), with in 1u8..) {
        let good = message.written();
        let mut bytes = good.clone();
        for at in 0..bytes.len() {
            bytes[at] ^= with;
            survives(&bytes)?;
            bytes[at] = good[at];
        }
    }
}
