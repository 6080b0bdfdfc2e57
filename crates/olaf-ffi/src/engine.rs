//! Whole engines for C: a switch, a server or a worker that the caller drives.
//!
//! After every input the caller takes the events, then the datagrams of each port, then the time of
//! the next timeout, in this order.

use crate::held::{Kind, olaf_engine};
use crate::memory::{self, fill, fill_text, handle, input, output};
use crate::result::*;
use ::olaf_engine::{Event, Instant, PeerId, PortId, Source, TrafficClass, Verdict};
use core::ffi::c_char;
use olaf_host::json;
use olaf_host::whole::{Whole, WholeError};
use olaf_wire::offsets::MAX_DATAGRAM;

/// Bytes of the longest datagram: the least that a buffer for one must have.
pub const OLAF_DATAGRAM_MAX: usize = 65507;
const _: () = assert!(OLAF_DATAGRAM_MAX == MAX_DATAGRAM);

/// Bytes of a reason's name, its last zero included.
pub const OLAF_REASON_MAX: usize = 32;

/// What an engine did with a datagram.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum olaf_verdict_kind {
    /// The engine took it in.
    #[default]
    OLAF_VERDICT_ABSORBED = 0,
    /// The engine refused it for `reason`, and counted it.
    OLAF_VERDICT_DROPPED = 1,
}

/// What became of a datagram.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct olaf_verdict {
    /// What the engine did.
    pub kind: olaf_verdict_kind,
    /// With `OLAF_VERDICT_DROPPED`: the reason's name in counters and logs; otherwise empty.
    pub reason: [c_char; OLAF_REASON_MAX],
}

/// Where a datagram came in.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct olaf_source {
    /// The peer that sent it, by the caller's number.
    pub peer: u32,
    /// The port. A worker and a server have port 0 alone; at a switch port 0 is towards servers
    /// and port 1 towards workers.
    pub port: u16,
    /// Traffic-class byte of its IP header: six bits of class, then two of ECN.
    pub traffic_class: u8,
}

/// A datagram to send.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct olaf_transmit {
    /// Its bytes.
    pub len: usize,
    /// Its receivers: `olaf_engine_receivers` has their numbers.
    pub receivers: usize,
    /// Traffic-class byte to send it with.
    pub traffic_class: u8,
}

/// Makes an engine. `role` is `switch`, `server` or `worker`; `config` is a JSON object with the
/// keys of that role's configuration, or null for the defaults. A switch has the key `server`
/// besides (number of the peer that is its server), a worker has `job`, `cluster`, `worker`,
/// `switch` (number of the peer), `segment_lanes` and `seed`. `life` names this life of the engine:
/// draw it at random, above 0. Free the engine with `olaf_engine_free`.
///
/// `OLAF_RESULT_BAD_ARGUMENT`: there is no such role, or the configuration cannot be; `why` then
/// says which key, and what to do. `why` may be null; it takes at most `why_capacity` bytes.
///
/// # Safety
/// `role` and `config` are null or C strings; `why` is null or has room for `why_capacity` bytes;
/// `engine` is null or points to room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_engine_new(
    role: *const c_char,
    config: *const c_char,
    life: u32,
    why: *mut c_char,
    why_capacity: usize,
    engine: *mut *mut olaf_engine,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (role, engine) = unsafe { (memory::text(role)?, output(engine)?) };
        let config = if config.is_null() {
            c"{}"
        } else {
            // SAFETY: the caller's promise.
            unsafe { memory::text(config) }?
        };
        let made = match (role.to_str(), config.to_str()) {
            (Ok(role), Ok(config)) => Whole::new(role, config, life),
            _ => Err(WholeError::Config("configuration: not UTF-8".into())),
        };
        match made {
            Ok(whole) => {
                olaf_engine::hand_over(Kind::Whole(whole), engine);
                Ok(())
            }
            Err(error) => {
                if !why.is_null() {
                    // SAFETY: the caller's promise.
                    unsafe { fill_text(&error.to_string(), why, why_capacity) }?;
                }
                Err(OLAF_RESULT_BAD_ARGUMENT)
            }
        }
    })
}

/// Frees an engine; null is nothing to free.
///
/// # Safety
/// `engine` is null, or came from `olaf_engine_new` and was not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_engine_free(engine: *mut olaf_engine) {
    if !engine.is_null() {
        guard(|| {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(engine) });
            Ok(())
        });
    }
}

/// The number of the engine's ports; their numbers begin at 0.
///
/// # Safety
/// `engine` is null or from `olaf_engine_new`; `ports` is null or points to room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_engine_ports(
    engine: *const olaf_engine,
    ports: *mut u16,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (engine, ports) = unsafe { (input(engine)?, output(ports)?) };
        ports.set(engine.0.read(|held| Ok(held.kind.engine().ports()))?);
        Ok(())
    })
}

/// A datagram arrived at `now_ns`. Time never runs backwards from call to call.
///
/// # Safety
/// `engine` is null or from `olaf_engine_new`; `from` is null or points to one; `bytes` is null or
/// has `len` bytes; `verdict` is null or points to room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_engine_handle_packet(
    engine: *mut olaf_engine,
    now_ns: u64,
    from: *const olaf_source,
    bytes: *const u8,
    len: usize,
    verdict: *mut olaf_verdict,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (engine, from, verdict) = unsafe { (handle(engine)?, input(from)?, output(verdict)?) };
        // SAFETY: the caller's promise.
        let bytes = unsafe { memory::bytes(bytes, len) }?;
        let class = TrafficClass(from.traffic_class);
        let from = Source { port: PortId(from.port), peer: PeerId(from.peer), class };
        let what = engine
            .0
            .run(|held| Ok(held.kind.engine_mut().handle_packet(Instant(now_ns), from, bytes)))?;
        verdict.set(olaf_verdict::of(what));
        Ok(())
    })
}

/// Takes the next datagram that has left a port's link by `now_ns`, written into `buf`, which must
/// have room for `OLAF_DATAGRAM_MAX` bytes.
///
/// `OLAF_RESULT_NOTHING`: none is due. `OLAF_RESULT_TOO_SHORT`: the buffer is too short, and
/// nothing was taken.
///
/// # Safety
/// `engine` is null or from `olaf_engine_new`; `buf` is null or has room for `capacity` bytes;
/// `transmit` is null or points to room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_engine_poll_transmit(
    engine: *mut olaf_engine,
    now_ns: u64,
    port: u16,
    buf: *mut u8,
    capacity: usize,
    transmit: *mut olaf_transmit,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (engine, transmit) = unsafe { (handle(engine)?, output(transmit)?) };
        if capacity < MAX_DATAGRAM {
            return Err(OLAF_RESULT_TOO_SHORT);
        }
        if buf.is_null() {
            return Err(OLAF_RESULT_BAD_POINTER);
        }
        let sent = engine.0.run(|held| {
            let sent =
                held.kind.engine_mut().poll_transmit(Instant(now_ns), PortId(port), &mut held.buf);
            held.to = sent.as_ref().map(|sent| sent.to.clone());
            let sent = sent.ok_or(OLAF_RESULT_NOTHING)?;
            // SAFETY: the caller's promise.
            unsafe { fill(&held.buf[..sent.len], buf, capacity) }?;
            Ok(sent)
        })?;
        transmit.set(olaf_transmit {
            len: sent.len,
            receivers: sent.to.as_slice().len(),
            traffic_class: sent.class.0,
        });
        Ok(())
    })
}

/// The receivers of the datagram that `olaf_engine_poll_transmit` took last, by the caller's
/// numbers. `OLAF_RESULT_TOO_SHORT`: there are more than `capacity`.
///
/// # Safety
/// `engine` is null or from `olaf_engine_new`; `peers` is null or has room for `capacity` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_engine_receivers(
    engine: *const olaf_engine,
    peers: *mut u32,
    capacity: usize,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let engine = unsafe { input(engine) }?;
        let to = engine.0.read(|held| {
            let to = held.to.iter().flat_map(|to| to.as_slice().iter().map(|peer| peer.0));
            Ok(to.collect::<Vec<_>>())
        })?;
        // SAFETY: the caller's promise.
        unsafe { fill(&to, peers, capacity) }
    })
}

/// When to call `olaf_engine_handle_timeout` next. `OLAF_RESULT_NOTHING`: no time is set.
///
/// # Safety
/// `engine` is null or from `olaf_engine_new`; `at_ns` is null or points to room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_engine_poll_timeout(
    engine: *const olaf_engine,
    at_ns: *mut u64,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (engine, at_ns) = unsafe { (input(engine)?, output(at_ns)?) };
        let at =
            engine.0.read(|held| held.kind.engine().poll_timeout().ok_or(OLAF_RESULT_NOTHING))?;
        at_ns.set(at.0.0);
        Ok(())
    })
}

/// The time of a timeout has come.
///
/// # Safety
/// `engine` is null or from `olaf_engine_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_engine_handle_timeout(
    engine: *mut olaf_engine,
    now_ns: u64,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let engine = unsafe { handle(engine) }?;
        engine.0.run(|held| {
            held.kind.engine_mut().handle_timeout(Instant(now_ns));
            Ok(())
        })
    })
}

/// Takes the next event, a JSON object that has the event's name under `event`. Peers are the
/// caller's numbers. `len` receives the bytes of the text, its last zero not included.
///
/// `OLAF_RESULT_NOTHING`: there is none. `OLAF_RESULT_TOO_SHORT`: the text needs `*len + 1` bytes,
/// and the event stays.
///
/// # Safety
/// `engine` is null or from `olaf_engine_new`; `text` is null or has room for `capacity` bytes;
/// `len` is null or points to room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_engine_poll_event(
    engine: *mut olaf_engine,
    text: *mut c_char,
    capacity: usize,
    len: *mut usize,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (engine, len) = unsafe { (handle(engine)?, output(len)?) };
        let event = engine.0.run(|held| {
            if held.told.is_none() {
                held.told = held.kind.engine_mut().poll_event().as_ref().map(told);
            }
            held.told.clone().ok_or(OLAF_RESULT_NOTHING)
        })?;
        len.set(event.len());
        if event.len() >= capacity {
            return Err(OLAF_RESULT_TOO_SHORT);
        }
        // SAFETY: the caller's promise.
        unsafe { fill_text(&event, text, capacity) }?;
        engine.0.run(|held| {
            held.told = None;
            Ok(())
        })
    })
}

/// Everything that the engine counted so far, a JSON object with the names of
/// `docs/reference/statistics.md`. Peers are the caller's numbers. `len` receives the bytes of the
/// text, its last zero not included.
///
/// `OLAF_RESULT_TOO_SHORT`: the text needs `*len + 1` bytes.
///
/// # Safety
/// `engine` is null or from `olaf_engine_new`; `text` is null or has room for `capacity` bytes;
/// `len` is null or points to room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_engine_report(
    engine: *const olaf_engine,
    now_ns: u64,
    text: *mut c_char,
    capacity: usize,
    len: *mut usize,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (engine, len) = unsafe { (input(engine)?, output(len)?) };
        let report = engine.0.read(|held| {
            Ok(json::of(&|peer| peer.0.into(), |to| held.kind.engine().report(Instant(now_ns), to)))
        })?;
        let report = report.to_string();
        len.set(report.len());
        if report.len() >= capacity {
            return Err(OLAF_RESULT_TOO_SHORT);
        }
        // SAFETY: the caller's promise.
        unsafe { fill_text(&report, text, capacity) }
    })
}

/// A worker joins its job, offering `parameters` as the first model.
///
/// `OLAF_RESULT_BAD_ARGUMENT`: the engine is no worker, or the model cannot be.
///
/// # Safety
/// `engine` is null or from `olaf_engine_new`; `parameters` is null or has `count` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_engine_join(
    engine: *mut olaf_engine,
    now_ns: u64,
    parameters: *const f32,
    count: usize,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (engine, parameters) = unsafe { (handle(engine)?, memory::values(parameters, count)?) };
        engine.0.run(|held| held.kind.whole()?.join(Instant(now_ns), parameters).map_err(refused))
    })
}

/// A worker sends one update of its model's size; `sequence` receives its number.
///
/// `OLAF_RESULT_BAD_ARGUMENT`: the engine is no worker, has not joined, or the update cannot be.
///
/// # Safety
/// `engine` is null or from `olaf_engine_new`; `update` is null or has `count` values; `sequence`
/// is null or points to room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_engine_push(
    engine: *mut olaf_engine,
    now_ns: u64,
    update: *const f32,
    count: usize,
    reward: f64,
    weight: f64,
    sequence: *mut u32,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (engine, update, sequence) =
            unsafe { (handle(engine)?, memory::values(update, count)?, output(sequence)?) };
        let number = engine.0.run(|held| {
            held.kind.whole()?.push(Instant(now_ns), update, reward, weight).map_err(refused)
        })?;
        sequence.set(number);
        Ok(())
    })
}

/// Copies the newest whole model that came to a worker into `parameters`, where its version is
/// above `newer_than`; `version` receives that version.
///
/// `OLAF_RESULT_NOTHING`: there is none. `OLAF_RESULT_BAD_ARGUMENT`: the engine is no worker, or
/// the model has another number of parameters than `count`.
///
/// # Safety
/// `engine` is null or from `olaf_engine_new`; `parameters` is null or has room for `count` values;
/// `version` is null or points to room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_engine_pull(
    engine: *mut olaf_engine,
    newer_than: u32,
    parameters: *mut f32,
    count: usize,
    version: *mut u32,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (engine, version) = unsafe { (handle(engine)?, output(version)?) };
        let mut model = vec![0.0; count];
        let pulled = engine
            .0
            .run(|held| held.kind.whole()?.pull(&mut model, newer_than).map_err(refused))?;
        let pulled = pulled.ok_or(OLAF_RESULT_NOTHING)?;
        // SAFETY: the caller's promise.
        unsafe { fill(&model, parameters, count) }?;
        version.set(pulled);
        Ok(())
    })
}

/// A worker leaves. `OLAF_RESULT_BAD_ARGUMENT`: the engine is no worker.
///
/// # Safety
/// `engine` is null or from `olaf_engine_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_engine_leave(engine: *mut olaf_engine) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let engine = unsafe { handle(engine) }?;
        engine.0.run(|held| held.kind.whole()?.leave().map_err(refused))
    })
}

impl olaf_verdict {
    fn of(verdict: Verdict) -> Self {
        let mut told = Self::default();
        match verdict {
            Verdict::Absorb => {}
            Verdict::Drop(reason) => {
                told.kind = olaf_verdict_kind::OLAF_VERDICT_DROPPED;
                // The last byte stays zero.
                let letters = reason.name().bytes().take(OLAF_REASON_MAX - 1);
                told.reason.iter_mut().zip(letters).for_each(|(to, from)| *to = from as c_char);
            }
        }
        told
    }
}

fn told(event: &Event) -> String {
    json::of(&|peer| peer.0.into(), |to| event.report(to)).to_string()
}

fn refused(_: WholeError) -> olaf_result {
    OLAF_RESULT_BAD_ARGUMENT
}
