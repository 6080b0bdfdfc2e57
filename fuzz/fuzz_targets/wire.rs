//! Any bytes: read, written and read again, they mean the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::update::read_lanes;
use olaf_wire::{Answer, Fetch, Join, Kind, Leave, Packet, Refusal, Update, Welcome, reduce};

/// What the bytes mean, written.
fn written(bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
    let packet = Packet::new_checked(bytes)?;
    let mut lanes = vec![0.0; packet.lanes().len() / 4];
    if packet.kind() != Kind::Layout {
        read_lanes(packet.lanes(), &mut lanes);
    }
    let mut buf = vec![0xa5; MAX_DATAGRAM];
    let len = match packet.kind() {
        Kind::Update => Update::parse(&packet)?.emit(&lanes, &mut buf),
        Kind::Acknowledgement | Kind::Model => Answer::parse(&packet)?.emit(&lanes, &mut buf),
        Kind::Join => {
            let join = Join::parse(&packet)?;
            assert!(join.segments() >= 1);
            join.emit(&mut buf)
        }
        Kind::Welcome => Welcome::parse(&packet)?.emit(&mut buf),
        Kind::Leave => Leave::parse(&packet)?.emit(&mut buf),
        Kind::Layout => olaf_wire::LayoutPart::parse(&packet)?.emit(&mut buf),
        Kind::Signature => olaf_wire::Signature::parse(&packet)?.emit(&mut buf),
        Kind::AskSignature => olaf_wire::AskSignature::parse(&packet)?.emit(&mut buf),
        Kind::Notice => olaf_wire::Notice::parse(&packet)?.emit(&mut buf),
        Kind::Fetch => {
            let fetch = Fetch::parse(&packet)?;
            assert!(fetch.segments().count() <= 64);
            fetch.emit(&mut buf)
        }
    };
    buf.truncate(len);
    assert_eq!(len, bytes.len());
    Ok(buf)
}

/// The same for a message of `reduce`, which is refused where a byte has no meaning: what is written
/// are the bytes that were read.
fn written_of_reduce(bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
    let packet = reduce::ReducePacket::new_checked(bytes)?;
    let words: Vec<u64> = packet.contributor_words().collect();
    let ranks = reduce::RankSet::from_words(packet.contributor_words())?;
    assert_eq!(ranks.iter().count(), ranks.len() as usize);
    let mut buf = vec![0xa5; MAX_DATAGRAM];
    let len = match packet.kind() {
        reduce::Kind::Piece => {
            reduce::Piece::parse(&packet)?.emit(&words, packet.lanes(), &mut buf)
        }
        reduce::Kind::Result => {
            reduce::BlockResult::parse(&packet)?.emit(&words, packet.lanes(), &mut buf)
        }
        reduce::Kind::Ask => {
            let ask = reduce::Ask::parse(&packet)?;
            assert_eq!(ask.blocks.iter().count(), ask.blocks.mask.count_ones() as usize);
            ask.emit(&mut buf)
        }
        reduce::Kind::Want => reduce::Want::parse(&packet)?.emit(&mut buf),
        reduce::Kind::Join => reduce::Join::parse(&packet)?.emit(&mut buf),
        reduce::Kind::Welcome => reduce::Welcome::parse(&packet)?.emit(&mut buf),
        reduce::Kind::Leave => reduce::Leave::parse(&packet)?.emit(&mut buf),
        reduce::Kind::Closed => reduce::Closed::parse(&packet)?.emit(&mut buf),
    };
    buf.truncate(len);
    assert_eq!(buf, bytes);
    Ok(buf)
}

fuzz_target!(|bytes: &[u8]| {
    let written =
        if bytes.starts_with(&reduce::offsets::MAGIC) { written_of_reduce } else { written };
    match written(bytes) {
        // Bytes that this version leaves unused are written as zero, so twice is enough.
        Ok(once) => assert_eq!(written(&once).expect("what was written is read"), once),
        Err(refusal) => assert!(!refusal.to_string().is_empty() && !refusal.name().is_empty()),
    }
});
