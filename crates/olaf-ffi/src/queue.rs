//! The queue of a switch: what its driver calls when an update comes and when the link is free.

use crate::memory::{self, handle, input, output};
use crate::result::*;
use crate::sharers::SharedQueue;
use crate::types::*;
use core::ffi::c_char;
use core::time::Duration;
use olaf_engine::switch::native::{Config, QueueKind};
use olaf_engine::{Arrival, Contribution, Instant, Rejection};
use olaf_wire::offsets::{LANE, MAX_SEGMENT_LANES};
use std::ffi::CString;
use std::sync::LazyLock;

/// A queue of updates, behind a pointer.
pub struct olaf_queue(Handle<SharedQueue>);

const MAX_SLOTS: usize = 1 << 20;

/// Most lanes an update may have.
pub const OLAF_LANES_MAX: usize = 16348;
const _: () = assert!(OLAF_LANES_MAX == MAX_SEGMENT_LANES);

/// Fills in what a switch uses by default: `olaf`, 8 slots, no gate, clusters active for a second,
/// 16 switches.
///
/// # Safety
/// `options` is null or points to room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_queue_options_default(
    options: *mut olaf_queue_options,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let options = unsafe { output(options) }?;
        let config = Config::default();
        options.set(olaf_queue_options {
            kind: c"olaf".as_ptr(),
            slots: config.slots,
            gate: f64::NAN,
            active_ns: u64::try_from(config.active.as_nanos()).unwrap_or(u64::MAX),
            max_hops: u32::from(config.max_hops),
        });
        Ok(())
    })
}

/// Makes an empty queue. Free it with `olaf_queue_free`.
///
/// `OLAF_RESULT_UNKNOWN_KIND`, `OLAF_RESULT_BAD_ARGUMENT`: the options cannot be.
///
/// # Safety
/// `options` is null or points to options whose `kind` is null or a C string; `queue` is null or
/// points to room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_queue_new(
    options: *const olaf_queue_options,
    queue: *mut *mut olaf_queue,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (options, queue) = unsafe { (input(options)?, output(queue)?) };
        // SAFETY: the caller's promise.
        let kind = unsafe { memory::text(options.kind) }?;
        let kind = kind.to_str().ok().and_then(QueueKind::parse).ok_or(OLAF_RESULT_UNKNOWN_KIND)?;
        let gate = if options.gate.is_nan() { None } else { Some(options.gate) };
        let gate_fits = gate.is_none_or(|gate| gate >= 0.0 && gate.is_finite());
        let max_hops = u8::try_from(options.max_hops).unwrap_or(0);
        if !(1..=MAX_SLOTS).contains(&options.slots)
            || !gate_fits
            || options.active_ns == 0
            || max_hops == 0
        {
            return Err(OLAF_RESULT_BAD_ARGUMENT);
        }
        let discipline = kind.queue(options.slots, gate);
        let active = Duration::from_nanos(options.active_ns);
        let shared = SharedQueue::new(discipline, active, max_hops);
        queue.set(Box::into_raw(Box::new(olaf_queue(Handle::new(shared)))));
        Ok(())
    })
}

/// Frees a queue; null is nothing to free.
///
/// # Safety
/// `queue` is null, or came from `olaf_queue_new` and was not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_queue_free(queue: *mut olaf_queue) {
    if !queue.is_null() {
        guard(|| {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(queue) });
            Ok(())
        });
    }
}

/// An update arrives at `now_ns`: what becomes of it is written to `outcome`.
///
/// `OLAF_RESULT_BAD_ARGUMENT`: the header contradicts itself, the lanes are too many, or a part is
/// none of `olaf_part`. What a queue refuses for its contents (a reward that is not finite, a loop) is no error but a fate.
///
/// # Safety
/// `queue` is null or from `olaf_queue_new`; `arrival` is null or points to one whose `lanes` are
/// null or `4 * lane_count` bytes and whose `contributors` are null or `contributor_count` of them;
/// `outcome` is null or points to room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_queue_arrive(
    queue: *mut olaf_queue,
    now_ns: u64,
    arrival: *const olaf_arrival,
    outcome: *mut olaf_outcome,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (queue, given, outcome) =
            unsafe { (handle(queue)?, input(arrival)?, output(outcome)?) };
        let update = given.update.to_wire().ok_or(OLAF_RESULT_BAD_ARGUMENT)?;
        if given.lane_count > MAX_SEGMENT_LANES {
            return Err(OLAF_RESULT_BAD_ARGUMENT);
        }
        // SAFETY: the caller's promise.
        let lanes = unsafe { memory::bytes(given.lanes, given.lane_count * LANE) }?;
        // SAFETY: the caller's promise.
        let met = unsafe { memory::values(given.contributors, given.contributor_count) }?;
        if !met.iter().all(olaf_contributor::is_known) {
            return Err(OLAF_RESULT_BAD_ARGUMENT);
        }
        let met =
            if met.is_empty() { vec![olaf_contributor::of(&given.update)] } else { met.to_vec() };
        let contribution = Contribution::of_update(&update, given.bytes);
        let arrival = Arrival { contribution, lanes };
        let fate = queue.0.run(|q| Ok(q.arrive(Instant(now_ns), &arrival, met)))?;
        outcome.set(olaf_outcome::of(fate, update.hops == 0 && update.segment == 0));
        Ok(())
    })
}

/// Locks the entry whose turn it is and describes it: from here on it takes nothing in, and it
/// keeps its slot until `olaf_queue_end`.
///
/// `OLAF_RESULT_NOTHING`: none waits. `OLAF_RESULT_DEPARTING`: one departs already.
///
/// # Safety
/// `queue` is null or from `olaf_queue_new`; `entry` is null or points to room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_queue_begin(
    queue: *mut olaf_queue,
    now_ns: u64,
    entry: *mut olaf_entry,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (queue, entry) = unsafe { (handle(queue)?, output(entry)?) };
        let locked = queue.0.run(|q| {
            if q.departing().is_some() {
                return Err(OLAF_RESULT_DEPARTING);
            }
            q.begin(Instant(now_ns)).then_some(()).ok_or(OLAF_RESULT_NOTHING)?;
            departing(q)
        })?;
        entry.set(locked);
        Ok(())
    })
}

/// Describes the entry that departs. `OLAF_RESULT_NOTHING`: none does.
///
/// # Safety
/// `queue` is null or from `olaf_queue_new`; `entry` is null or points to room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_queue_departing(
    queue: *const olaf_queue,
    entry: *mut olaf_entry,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (queue, entry) = unsafe { (input(queue)?, output(entry)?) };
        entry.set(queue.0.read(departing)?);
        Ok(())
    })
}

/// Describes the entry whose turn comes next, as it stands now. `OLAF_RESULT_NOTHING`: none waits.
///
/// # Safety
/// `queue` is null or from `olaf_queue_new`; `entry` is null or points to room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_queue_peek(
    queue: *const olaf_queue,
    entry: *mut olaf_entry,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (queue, entry) = unsafe { (input(queue)?, output(entry)?) };
        entry.set(
            queue.0.read(|q| q.next().map(|next| describe(q, next)).ok_or(OLAF_RESULT_NOTHING))?,
        );
        Ok(())
    })
}

/// Writes the updates that met in the departing entry, in the order of their coming: those in the
/// sum, those whose place another took and those filtered against it. Whoever forwards its answer
/// needs them. `count` becomes how many there are, also where `OLAF_RESULT_TOO_SHORT` says that
/// `capacity` is below that.
///
/// `OLAF_RESULT_NOTHING`: no entry departs.
///
/// # Safety
/// `queue` is null or from `olaf_queue_new`; `contributors` is null or has room for `capacity` of
/// them; `count` is null or points to room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_queue_contributors(
    queue: *const olaf_queue,
    contributors: *mut olaf_contributor,
    capacity: usize,
    count: *mut usize,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (queue, count) = unsafe { (input(queue)?, output(count)?) };
        queue.0.read(|q| {
            let entry = q.departing().ok_or(OLAF_RESULT_NOTHING)?;
            let met = q.contributors(entry.id);
            count.set(met.len());
            // SAFETY: the caller's promise.
            unsafe { memory::fill(met, contributors, capacity) }
        })
    })
}

/// The departing entry has left: its slot is free. `OLAF_RESULT_NOTHING`: none departs.
///
/// # Safety
/// `queue` is null or from `olaf_queue_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_queue_end(queue: *mut olaf_queue) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let queue = unsafe { handle(queue) }?;
        queue.0.run(|q| q.end().map(|_| ()).ok_or(OLAF_RESULT_NOTHING))
    })
}

/// The departing entry is thrown away instead of sent: its contributions count as dropped.
/// `OLAF_RESULT_NOTHING`: none departs.
///
/// # Safety
/// `queue` is null or from `olaf_queue_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_queue_discard(queue: *mut olaf_queue) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let queue = unsafe { handle(queue) }?;
        queue.0.run(|q| q.discard().map(|_| ()).ok_or(OLAF_RESULT_NOTHING))
    })
}

/// The queue's state at `now_ns`, as answers that pass back carry it. `service_ns` is how long the
/// link takes for an update, of which the round follows; 0: not known.
///
/// # Safety
/// `queue` is null or from `olaf_queue_new`; `status` is null or points to room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_queue_get_status(
    queue: *const olaf_queue,
    now_ns: u64,
    service_ns: u64,
    status: *mut olaf_queue_status,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (queue, status) = unsafe { (input(queue)?, output(status)?) };
        let now = Instant(now_ns);
        status.set(queue.0.read(|q| Ok(olaf_queue_status::of_wire(q.status(now, service_ns))))?);
        Ok(())
    })
}

/// What became of every contribution and datagram so far.
///
/// # Safety
/// `queue` is null or from `olaf_queue_new`; `fates` is null or points to room for them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_queue_get_fates(
    queue: *const olaf_queue,
    fates: *mut olaf_fates,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (queue, fates) = unsafe { (input(queue)?, output(fates)?) };
        let counted = queue.0.read(|q| {
            let (counted, packets) = (q.fates(), q.packets());
            Ok(olaf_fates {
                received: counted.received,
                sent_alone: counted.sent_alone,
                merged: counted.merged,
                replaced: counted.replaced,
                filtered: counted.filtered,
                dropped: counted.dropped + counted.evicted,
                rejected: counted.rejected_sum(),
                waiting: counted.received - counted.settled(),
                departures: counted.departures,
                packets_received: packets.received,
                packets_merged: packets.merged,
                packets_replaced: packets.replaced,
                packets_filtered: packets.filtered,
                packets_dropped: packets.dropped,
                packets_rejected: packets.rejected,
            })
        })?;
        fates.set(counted);
        Ok(())
    })
}

/// The name of a rejection, a constant string; null where there is none of that number.
#[unsafe(no_mangle)]
pub extern "C" fn olaf_rejection_name(rejection: u32) -> *const c_char {
    static NAMES: LazyLock<Vec<CString>> = LazyLock::new(|| {
        let names = Rejection::ALL.iter().map(|rejection| CString::new(rejection.name()));
        names.map(|name| name.expect("names have no zero bytes")).collect()
    });
    NAMES.get(rejection as usize).map_or(core::ptr::null(), |name| name.as_ptr())
}

fn departing(queue: &SharedQueue) -> Result<olaf_entry, olaf_result> {
    queue.departing().map(|entry| describe(queue, entry)).ok_or(OLAF_RESULT_NOTHING)
}

fn describe(queue: &SharedQueue, entry: &olaf_engine::Entry) -> olaf_entry {
    olaf_entry::of(
        entry,
        queue.hop_sequence(entry.contribution.flow.job),
        queue.contributors(entry.id).len(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ffi::CStr;

    #[test]
    fn rejections_have_the_engines_names() {
        for rejection in Rejection::ALL {
            let name = olaf_rejection_name(u32::try_from(rejection.index()).expect("few"));
            // SAFETY: a constant string.
            assert_eq!(unsafe { CStr::from_ptr(name) }.to_str(), Ok(rejection.name()));
        }
        assert!(olaf_rejection_name(99).is_null());
    }
}
