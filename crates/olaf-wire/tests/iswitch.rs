//! The messages of iSwitch: what is refused, by name, and that no bytes hurt.
#![allow(clippy::unwrap_used, missing_docs)]

use olaf_wire::iswitch::{
    CONTROL_CLASS, Control, DATA_CLASS, DataPacket, MAX_INDEX, PACKET_FLOATS, SEG, Seg, emit_seg,
    join_of_another_version,
};
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::{Refusal, Session, iswitch};
use proptest::prelude::*;

#[test]
fn a_data_packet_fills_an_ethernet_frame() {
    // 1,522 bytes less Ethernet with a VLAN tag (22), IP (20) and UDP (8).
    let payload = 1522 - 22 - 20 - 8;
    assert_eq!(SEG + 4 * PACKET_FLOATS as usize, payload);
}

#[test]
fn the_two_classes_of_service_differ_and_are_for_local_use() {
    assert_ne!(CONTROL_CLASS, DATA_CLASS);
    for class in [CONTROL_CLASS, DATA_CLASS] {
        assert!(class < 64 && class & 0b11 == 0b11, "{class:#08b}");
    }
}

#[test]
fn a_data_packet_has_whole_floats() {
    let bytes = vec![0; MAX_DATAGRAM + 5];
    let refusal = |len: usize| DataPacket::new_checked(&bytes[..len]).err();
    assert_eq!(refusal(0), Some(Refusal::Truncated { have: 0, need: 12 }));
    assert_eq!(refusal(11), Some(Refusal::Truncated { have: 11, need: 12 }));
    assert_eq!(refusal(12), None);
    assert_eq!(refusal(13), Some(Refusal::BadField("floats")));
    assert_eq!(refusal(1472), None);
    let have = MAX_DATAGRAM + 5;
    assert_eq!(refusal(have), Some(Refusal::Oversized { have, need: MAX_DATAGRAM }));
}

/// A control message of that length: the action, a code, what, and zeros.
fn control(action: u8, code: u8, what: u8, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    for (at, byte) in [(0, action), (2, code), (3, what)] {
        if let Some(to) = bytes.get_mut(at) {
            *to = byte;
        }
    }
    bytes
}

#[test]
fn a_control_message_is_refused_by_name() {
    let refusal = |bytes: &[u8]| Control::parse(bytes).unwrap_err();
    assert_eq!(refusal(&[]), Refusal::Truncated { have: 0, need: 4 });
    assert_eq!(refusal(&[0]), Refusal::UnknownKind(0));
    assert_eq!(refusal(&[9; 40]), Refusal::UnknownKind(9));
    assert_eq!(refusal(&control(1, 3, 0, 35)), Refusal::Truncated { have: 35, need: 36 });
    assert_eq!(refusal(&control(1, 1, 0, 36)), Refusal::WrongVersion { have: 1, speaks: 3 });
    assert_eq!(refusal(&control(1, 3, 2, 36)), Refusal::BadField("sender"));
    assert_eq!(refusal(&control(1, 3, 0, 36)), Refusal::BadField("workers"));
    assert_eq!(refusal(&control(3, 0, 0, 5)), Refusal::Oversized { have: 5, need: 4 });
    assert_eq!(refusal(&control(3, 1, 0, 4)), Refusal::BadField("unused"));
    assert_eq!(refusal(&control(4, 0, 0, 8)), Refusal::BadField("h"));
    assert_eq!(refusal(&control(7, 0, 0, 16)), Refusal::BadField("reason"));
    assert_eq!(refusal(&control(7, 9, 0, 16)), Refusal::BadField("reason"));
    assert_eq!(refusal(&control(8, 0, 4, 16)), Refusal::BadField("outcome"));
    assert_eq!(refusal(&control(8, 1, 0, 16)), Refusal::BadField("action"));
    assert_eq!(refusal(&control(8, 1, 1, 16)), Refusal::Truncated { have: 16, need: 48 });
    let mut other = control(1, 1, 0, 40);
    other[11] = 5;
    assert_eq!(join_of_another_version(&other), Some(Session(5)));
    assert_eq!(join_of_another_version(&control(1, 3, 0, 36)), None);
    let mut far = control(6, 0, 0, 24);
    far[8..16].copy_from_slice(&(MAX_INDEX - 63).to_be_bytes());
    assert_eq!(refusal(&far), Refusal::BadField("index"), "a packet that no Seg can name");
    far[8..16].copy_from_slice(&(MAX_INDEX - 64).to_be_bytes());
    assert!(Control::parse(&far).is_ok());
}

proptest! {
    #[test]
    fn every_eight_bytes_are_a_seg(bits in any::<u64>()) {
        let seg = Seg::from_bits(bits);
        prop_assert_eq!(seg.to_bits(), bits);
        let mut buf = [0; 12];
        prop_assert_eq!(emit_seg(seg, &mut buf), SEG);
        prop_assert_eq!(DataPacket::new_checked(&buf).unwrap().seg, seg);
    }

    #[test]
    fn no_bytes_hurt_and_what_is_read_is_written_alike(
        action in 0u8..10,
        code in 0u8..6,
        rest in prop::collection::vec(prop_oneof![Just(0u8), Just(1), any::<u8>()], 0..60),
    ) {
        let mut bytes = vec![action, 7, code];
        bytes.extend(rest);
        let _ = DataPacket::new_checked(&bytes);
        if let Ok(message) = Control::parse(&bytes) {
            let mut buf = [0xff; iswitch::offsets::LONGEST_CONTROL];
            let len = message.emit(&mut buf);
            prop_assert_eq!(&buf[..len], &*bytes);
        }
    }
}

#[test]
fn a_program_of_64_bits_has_32_in_a_join_and_none_is_0() {
    use olaf_wire::iswitch::program_of;
    assert_eq!((program_of(0), program_of(5), program_of(5 << 32)), (0, 5, 5));
    assert_ne!(program_of(7 << 32 | 5), program_of(5));
    assert_eq!(program_of(5 << 32 | 5), 1, "it is said, so it is not 0");
}
