//! Bytes to headers and back: the same bytes that Olaf's own switches and workers exchange.

use crate::memory::{self, handle, input, output};
use crate::result::*;
use crate::types::*;
use olaf_wire::offsets::{LANE, MAX_SEGMENT_LANES, answer, notice, update};
use olaf_wire::update::{read_lanes, write_lanes};
use olaf_wire::{
    Address, Ages, Answer, ClusterId, Ends, JobId, Notice, Packet, Refusal, Session, Update,
    WorkerId,
};

/// Bytes of an update before its lanes, each of which is four more.
pub const OLAF_UPDATE_HEADER_BYTES: usize = 96;
const _: () = assert!(OLAF_UPDATE_HEADER_BYTES == update::PAYLOAD);

/// Bytes of an answer without lanes.
pub const OLAF_ANSWER_BYTES: usize = 112;
const _: () = assert!(OLAF_ANSWER_BYTES == answer::PAYLOAD);

/// An acknowledgement: what a server answers, and what switches write their state into.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct olaf_answer {
    /// The job.
    pub job: u32,
    /// The cluster answered.
    pub cluster: u32,
    /// The worker answered; 4294967295: all concerned.
    pub worker: u32,
    /// The receiver's life; 0 where none is meant.
    pub session: u32,
    /// The newest hop sequence of the receiver that this answers, and with it all before.
    pub acknowledges: u32,
    /// The segment delivered; below `segments`.
    pub segment: u32,
    /// Segments the model has, at least 1.
    pub segments: u32,
    /// Version of the model at the server.
    pub model_version: u32,
    /// Parameters of the whole model.
    pub parameters: u32,
    /// The server's life.
    pub epoch: u32,
    /// Newest model version among the delivered contributions of the cluster.
    pub delivered_version: u32,
    /// Newest generation time among the delivered contributions of the cluster, nanoseconds.
    pub delivered_newest_ns: u64,
    /// The server's clock when it answered, nanoseconds.
    pub server_time_ns: u64,
    /// The most crowded queue on the path.
    pub queue: olaf_queue_status,
    /// The cluster's Age-of-Model at the server of late, microseconds; 0: not known.
    pub own_age_us: u32,
    /// The same, averaged over all clusters that the server serves; 0: not known.
    pub mean_age_us: u32,
    /// The receiver's own `flow_sequence` that bit 0 of both masks stands for; bit `i` stands for the
    /// number `i` before it. 0: nothing is said.
    pub flow_newest: u32,
    /// 0.
    pub reserved: u32,
    /// Those that reached the server.
    pub delivered: u64,
    /// Those that never will: replaced, filtered, dropped or refused on the way.
    pub ended: u64,
}

/// Bytes of a notice.
pub const OLAF_NOTICE_BYTES: usize = 32;
const _: () = assert!(OLAF_NOTICE_BYTES == notice::LEN);

/// Word from the first switch of what it has taken in of a cluster.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct olaf_notice {
    /// The job.
    pub job: u32,
    /// The cluster.
    pub cluster: u32,
    /// The worker told.
    pub worker: u32,
    /// The worker's life; 0 where none is meant.
    pub session: u32,
    /// Generation time of the newest contribution taken in, nanoseconds.
    pub taken_newest_ns: u64,
}

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
        // SAFETY: not null, aligned, and so many floats by the caller's promise.
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

/// Reads one whole datagram that is an answer, with lanes of a model or without.
///
/// `OLAF_RESULT_NOT_OURS`, `OLAF_RESULT_MALFORMED`, `OLAF_RESULT_OTHER_KIND`: it is none.
///
/// # Safety
/// `bytes` is null or `len` bytes; `answer` is null or points to room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_answer_parse(
    bytes: *const u8,
    len: usize,
    answer: *mut olaf_answer,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (bytes, answer) = unsafe { (memory::bytes(bytes, len)?, output(answer)?) };
        answer.set(of_wire(&parse(bytes)?));
        Ok(())
    })
}

/// Writes an acknowledgement of `OLAF_ANSWER_BYTES` bytes.
///
/// `OLAF_RESULT_BAD_ARGUMENT`: the segment is not one of `segments`.
///
/// # Safety
/// `answer` is null or points to one; `bytes` is null or has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_answer_emit(
    answer: *const olaf_answer,
    bytes: *mut u8,
    capacity: usize,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let answer = unsafe { input(answer) }?;
        if answer.segment >= answer.segments {
            return Err(OLAF_RESULT_BAD_ARGUMENT);
        }
        let mut datagram = [0; OLAF_ANSWER_BYTES];
        to_wire(answer).emit(&[], &mut datagram);
        // SAFETY: the caller's promise.
        unsafe { memory::fill(&datagram, bytes, capacity) }
    })
}

/// Reads one whole datagram that is a notice.
///
/// `OLAF_RESULT_NOT_OURS`, `OLAF_RESULT_MALFORMED`, `OLAF_RESULT_OTHER_KIND`: it is none.
///
/// # Safety
/// `bytes` is null or `len` bytes; `notice` is null or points to room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_notice_parse(
    bytes: *const u8,
    len: usize,
    notice: *mut olaf_notice,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (bytes, notice) = unsafe { (memory::bytes(bytes, len)?, output(notice)?) };
        let packet = Packet::new_checked(bytes).map_err(refused)?;
        let Notice { address, taken_newest_ns } = Notice::parse(&packet).map_err(refused)?;
        notice.set(olaf_notice {
            job: address.job.0,
            cluster: address.cluster.0,
            worker: address.worker.0,
            session: address.session.0,
            taken_newest_ns,
        });
        Ok(())
    })
}

/// Writes a notice of `OLAF_NOTICE_BYTES` bytes.
///
/// # Safety
/// `notice` is null or points to one; `bytes` is null or has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_notice_emit(
    notice: *const olaf_notice,
    bytes: *mut u8,
    capacity: usize,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let notice = unsafe { input(notice) }?;
        let mut datagram = [0; OLAF_NOTICE_BYTES];
        let address = Address {
            job: JobId(notice.job),
            cluster: ClusterId(notice.cluster),
            worker: WorkerId(notice.worker),
            session: Session(notice.session),
        };
        Notice { address, taken_newest_ns: notice.taken_newest_ns }.emit(&mut datagram);
        // SAFETY: the caller's promise.
        unsafe { memory::fill(&datagram, bytes, capacity) }
    })
}

/// A switch writes its queue's state into an answer that passes (OLAF §5, reverse-path signaling):
/// of several switches on the path the most crowded one is told, the one with the most active
/// clusters for each slot, and the longest round.
///
/// # Safety
/// `answer` is null or points to one; `own` is null or points to one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_answer_stamp(
    answer: *mut olaf_answer,
    own: *const olaf_queue_status,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (answer, own) = unsafe { (handle(answer)?, input(own)?) };
        answer.queue = olaf_queue_status::of_wire(answer.queue.to_wire().passing(own.to_wire()));
        Ok(())
    })
}

fn parse(bytes: &[u8]) -> Result<Answer, olaf_result> {
    Packet::new_checked(bytes).and_then(|packet| Answer::parse(&packet)).map_err(refused)
}

fn refused(refusal: Refusal) -> olaf_result {
    match refusal {
        Refusal::NotOurs => OLAF_RESULT_NOT_OURS,
        Refusal::BadField("kind") => OLAF_RESULT_OTHER_KIND,
        _ => OLAF_RESULT_MALFORMED,
    }
}

fn of_wire(answer: &Answer) -> olaf_answer {
    olaf_answer {
        job: answer.address.job.0,
        cluster: answer.address.cluster.0,
        worker: answer.address.worker.0,
        session: answer.address.session.0,
        acknowledges: answer.acknowledges,
        segment: answer.segment,
        segments: answer.segments,
        model_version: answer.model_version,
        parameters: answer.parameters,
        epoch: answer.epoch,
        delivered_version: answer.delivered_version,
        delivered_newest_ns: answer.delivered_newest_ns,
        server_time_ns: answer.server_time_ns,
        queue: olaf_queue_status::of_wire(answer.queue),
        own_age_us: answer.ages.own_us,
        mean_age_us: answer.ages.mean_us,
        flow_newest: answer.ends.newest,
        reserved: 0,
        delivered: answer.ends.delivered,
        ended: answer.ends.ended,
    }
}

fn to_wire(answer: &olaf_answer) -> Answer {
    Answer {
        address: Address {
            job: JobId(answer.job),
            cluster: ClusterId(answer.cluster),
            worker: WorkerId(answer.worker),
            session: Session(answer.session),
        },
        acknowledges: answer.acknowledges,
        segment: answer.segment,
        segments: answer.segments,
        model_version: answer.model_version,
        parameters: answer.parameters,
        epoch: answer.epoch,
        delivered_version: answer.delivered_version,
        delivered_newest_ns: answer.delivered_newest_ns,
        server_time_ns: answer.server_time_ns,
        queue: answer.queue.to_wire(),
        ages: Ages { own_us: answer.own_age_us, mean_us: answer.mean_age_us },
        ends: Ends {
            newest: answer.flow_newest,
            delivered: answer.delivered,
            // What is in both masks would be refused where it is read.
            ended: answer.ended & !answer.delivered,
        },
    }
}
