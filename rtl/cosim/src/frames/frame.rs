//! A frame in beats, and what `olaf-wire` says of it.

use crate::ends::Beats;
use olaf_engine::Contribution;
use olaf_engine::contribution::datagram_bytes;
use olaf_wire::offsets::{MAGIC, VERSION, common};
use olaf_wire::{Answer, Kind, Packet, Update};

/// Bytes of a beat.
pub(crate) const BEAT: usize = 64;

/// What moves in a cycle: 64 bytes, the first one lowest, and which of them count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beat {
    pub(crate) data: [u32; 16],
    pub(crate) keep: u64,
}

/// The bytes of kept bytes that come first in a beat.
pub(crate) const fn keep_of(bytes: usize) -> u64 {
    if bytes >= BEAT { u64::MAX } else { (1 << bytes) - 1 }
}

/// A frame that goes in.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) beats: Vec<Beat>,
    pub(crate) what: What,
}

/// What is to become of a frame before the queue.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// Bytes are missing in its middle.
    Framing,
    /// Longer than the hardware takes.
    TooLong,
    /// It begins as an update or an answer, and `olaf-wire` refuses it.
    Refused,
    /// An update, and its lanes.
    Update(Contribution, Vec<u8>),
    /// An answer, which passes with the status of the queue.
    Answer(Vec<u8>),
    /// Something else, which passes.
    Other(Vec<u8>),
}

impl Beats for Frame {
    type Beat = Beat;

    fn beats(&self) -> &[Beat] {
        &self.beats
    }
}

impl Frame {
    /// A frame of these bytes. The bytes behind the last one are `padding`.
    pub(crate) fn new(bytes: &[u8], padding: u8, longest: usize) -> Self {
        let beats = bytes.chunks(BEAT).map(|bytes| {
            let mut whole = [padding; BEAT];
            whole[..bytes.len()].copy_from_slice(bytes);
            let mut data = [0; 16];
            for (word, bytes) in data.iter_mut().zip(whole.chunks_exact(4)) {
                *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            }
            Beat { data, keep: keep_of(bytes.len()) }
        });
        Self::of_beats(beats.collect(), longest)
    }

    pub(crate) fn of_beats(beats: Vec<Beat>, longest: usize) -> Self {
        let what = match bytes_of(&beats) {
            None => What::Framing,
            Some(bytes) if bytes.len() > longest => What::TooLong,
            Some(bytes) if is_update(&bytes) => update(&bytes),
            Some(bytes) if is_answer(&bytes) => answer(bytes),
            Some(bytes) => What::Other(bytes),
        };
        Self { beats, what }
    }
}

/// The bytes of a frame, if the kept ones are its first ones.
pub(crate) fn bytes_of(beats: &[Beat]) -> Option<Vec<u8>> {
    let (last, others) = beats.split_last()?;
    let kept = last.keep.trailing_ones() as usize;
    if kept == 0 || last.keep != keep_of(kept) || others.iter().any(|beat| beat.keep != u64::MAX) {
        return None;
    }
    let mut bytes: Vec<u8> =
        beats.iter().flat_map(|beat| beat.data).flat_map(u32::to_le_bytes).collect();
    bytes.truncate(others.len() * BEAT + kept);
    Some(bytes)
}

/// It begins as an update of this version.
pub(crate) fn is_update(bytes: &[u8]) -> bool {
    is_of(&[Kind::Update], bytes)
}

/// It begins as an answer of this version.
fn is_answer(bytes: &[u8]) -> bool {
    is_of(&[Kind::Acknowledgement, Kind::Model], bytes)
}

/// It begins as one of these messages, of this version. All else is not the queue's.
fn is_of(kinds: &[Kind], bytes: &[u8]) -> bool {
    bytes.len() > common::KIND
        && bytes[..4] == MAGIC
        && bytes[common::VERSION] == VERSION
        && kinds.iter().any(|kind| bytes[common::KIND] == *kind as u8)
}

fn update(bytes: &[u8]) -> What {
    let read = Packet::new_checked(bytes)
        .and_then(|packet| Ok((Update::parse(&packet)?, packet.lanes().to_vec())));
    read.map_or(What::Refused, |(update, lanes)| {
        What::Update(Contribution::of_update(&update, datagram_bytes(&lanes)), lanes)
    })
}

fn answer(bytes: Vec<u8>) -> What {
    let is_read = Packet::new_checked(&bytes).and_then(|packet| Answer::parse(&packet)).is_ok();
    if is_read { What::Answer(bytes) } else { What::Refused }
}
