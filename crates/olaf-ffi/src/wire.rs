//! Bytes to headers and back: the same bytes that Olaf's own switches and workers exchange.

use crate::memory::{self, input, output};
use crate::result::*;
use crate::types::*;
use olaf_wire::offsets::{LANE, MAX_SEGMENT_LANES, update};
use olaf_wire::update::{read_lanes, write_lanes};
use olaf_wire::{Answer, Packet, Refusal, Update};

/// Bytes of an update before its lanes, each of which is four more.
pub const OLAF_UPDATE_HEADER_BYTES: usize = 96;
const _: () = assert!(OLAF_UPDATE_HEADER_BYTES == update::PAYLOAD);

/// Reads the header of one whole datagram. Its lanes begin `OLAF_UPDATE_HEADER_BYTES` behind
/// `bytes`; how many there are is written to `lane_count`.
///
/// `OLAF_RESULT_NOT_OURS`, `OLAF_RESULT_MALFORMED`, `OLAF_RESULT_OTHER_KIND`: it is no update.
///
/// # Safety
/// `bytes` is null or `len` bytes; `update` and `lane_count` are null or point to room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_update_parse(
    bytes: *const u8,
    len: usize,
    update: *mut olaf_update,
    lane_count: *mut usize,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (bytes, update, lane_count) =
            unsafe { (memory::bytes(bytes, len)?, output(update)?, output(lane_count)?) };
        let packet = Packet::new_checked(bytes).map_err(refused)?;
        let parsed = Update::parse(&packet).map_err(refused)?;
        update.set(olaf_update::of_wire(&parsed));
        lane_count.set(packet.lanes().len() / LANE);
        Ok(())
    })
}

/// Writes an update and its lanes as one datagram of `OLAF_UPDATE_HEADER_BYTES + 4 * lane_count`
/// bytes, which is written to `len`, also where `OLAF_RESULT_TOO_SHORT` says that `capacity` is
/// below that.
///
/// `OLAF_RESULT_BAD_ARGUMENT`: the header contradicts itself, or lanes are none or more than
/// `OLAF_LANES_MAX`.
///
/// # Safety
/// `update` is null or points to one; `lanes` is null or `lane_count` floats; `bytes` is null or
/// has room for `capacity` bytes; `len` is null or points to room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_update_emit(
    update: *const olaf_update,
    lanes: *const f32,
    lane_count: usize,
    bytes: *mut u8,
    capacity: usize,
    len: *mut usize,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (update, len) = unsafe { (input(update)?, output(len)?) };
        let update = update.to_wire().ok_or(OLAF_RESULT_BAD_ARGUMENT)?;
        if lane_count == 0 || lane_count > MAX_SEGMENT_LANES {
            return Err(OLAF_RESULT_BAD_ARGUMENT);
        }
        // SAFETY: the first of `lane_count` floats by the caller's promise.
        unsafe { input(lanes) }?;
        // SAFETY: not null, aligned, and `lane_count` floats by the caller's promise.
        let lanes = unsafe { core::slice::from_raw_parts(lanes, lane_count) };
        // Written to memory of our own first: the caller's need not be initialized.
        let mut datagram = vec![0; Update::datagram_len(lane_count)];
        update.emit_header(lane_count, &mut datagram);
        write_lanes(lanes, &mut datagram[update::PAYLOAD..]);
        len.set(datagram.len());
        // SAFETY: the caller's promise.
        unsafe { memory::fill(&datagram, bytes, capacity) }
    })
}

/// Writes the header alone, `OLAF_UPDATE_HEADER_BYTES` bytes, of an update whose lanes the caller
/// puts behind it.
///
/// `OLAF_RESULT_BAD_ARGUMENT`: the header contradicts itself, or lanes are none or more than
/// `OLAF_LANES_MAX`.
///
/// # Safety
/// `update` is null or points to one; `bytes` is null or has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_update_emit_header(
    update: *const olaf_update,
    lane_count: usize,
    bytes: *mut u8,
    capacity: usize,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let update = unsafe { input(update) }?;
        let update = update.to_wire().ok_or(OLAF_RESULT_BAD_ARGUMENT)?;
        if lane_count == 0 || lane_count > MAX_SEGMENT_LANES {
            return Err(OLAF_RESULT_BAD_ARGUMENT);
        }
        let mut header = [0; OLAF_UPDATE_HEADER_BYTES];
        update.emit_header(lane_count, &mut header);
        // SAFETY: the caller's promise.
        unsafe { memory::fill(&header, bytes, capacity) }
    })
}

/// Reads `lane_count` lanes as they stand on the wire, at any alignment, into this machine's floats.
///
/// # Safety
/// `bytes` is null or `4 * lane_count` bytes; `lanes` is null or has room for as many floats.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_lanes_read(
    bytes: *const u8,
    lane_count: usize,
    lanes: *mut f32,
) -> olaf_result {
    guard(|| {
        if lane_count > MAX_SEGMENT_LANES {
            return Err(OLAF_RESULT_BAD_ARGUMENT);
        }
        // SAFETY: the caller's promise.
        let bytes = unsafe { memory::bytes(bytes, lane_count * LANE) }?;
        let mut read = vec![0.0; lane_count];
        read_lanes(bytes, &mut read);
        // SAFETY: the caller's promise.
        unsafe { memory::fill(&read, lanes, lane_count) }
    })
}

/// A switch writes its queue's state into an answer that passes (OLAF §5, reverse-path signaling):
/// of several switches on the path the most crowded one is told, the one with the most active
/// clusters for each slot, and the longest round. The answer may have lanes of a model, and stays
/// as long as it is.
///
/// `OLAF_RESULT_NOT_OURS`, `OLAF_RESULT_MALFORMED`, `OLAF_RESULT_OTHER_KIND`: the datagram is no
/// answer, and stays as it is.
///
/// # Safety
/// `bytes` is null or one whole datagram of `len` bytes; `own` is null or points to one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_answer_stamp(
    bytes: *mut u8,
    len: usize,
    own: *const olaf_queue_status,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (datagram, own) = unsafe { (memory::bytes(bytes, len)?, input(own)?) };
        let packet = Packet::new_checked(datagram).map_err(refused)?;
        let answer = Answer::parse(&packet).map_err(refused)?;
        let stamped = Answer { queue: answer.queue.passing(own.to_wire()), ..answer };
        let mut written = vec![0; packet.len()];
        stamped.emit_in_wire_order(packet.lanes(), &mut written);
        // SAFETY: the caller's promise; what was read is not used any more.
        unsafe { memory::fill(&written, bytes, len) }
    })
}

fn refused(refusal: Refusal) -> olaf_result {
    match refusal {
        Refusal::NotOurs => OLAF_RESULT_NOT_OURS,
        Refusal::BadField("kind") => OLAF_RESULT_OTHER_KIND,
        _ => OLAF_RESULT_MALFORMED,
    }
}
