//! Scenarios, so that another simulator can be given the same one as `olaf-sim`: what is in it, and
//! what `olaf-sim` makes of it.

use crate::memory::{self, input, output};
use crate::result::*;
use core::ffi::{CStr, c_char};
use olaf_sim::study::scenario::{self, Outcome, Scenario};
use std::ffi::CString;

/// A tree of queues and the workers that send into it, behind a pointer.
pub struct olaf_scenario {
    pub(crate) spec: Scenario,
    /// Of each switch: its name and its queue's kind.
    switches: Vec<(CString, CString)>,
    groups: Vec<CString>,
}

/// Of a switch: its uplink leads to the server.
pub const OLAF_SERVER: u32 = u32::MAX;

/// A scenario as a whole.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct olaf_scenario_shape {
    /// Random seed.
    pub seed: u64,
    /// Duration of the run: workers send and ages are observed, in nanoseconds.
    pub duration_ns: u64,
    /// Not 0: an update on the wire keeps its slot.
    pub head_keeps_slot: u8,
    /// Not 0: switches tell a cluster's workers what they have taken in of it.
    pub notices: u8,
    /// Number of switches.
    pub switches: u32,
    /// Number of groups of clusters.
    pub groups: u32,
    /// Number of workers in all groups.
    pub workers: u32,
    /// A cluster is active if it was heard within this time, in nanoseconds.
    pub active_ns: u64,
}

/// A switch of a scenario. Texts stay valid until the scenario is freed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct olaf_switch_spec {
    /// Its name.
    pub name: *const c_char,
    /// Its queue's kind.
    pub queue: *const c_char,
    /// Updates it holds.
    pub slots: usize,
    /// The reward gate's threshold; not a number: off.
    pub gate: f64,
    /// Rate of its uplink, bits per second.
    pub rate_bps: u64,
    /// The switch its uplink leads to, or `OLAF_SERVER`.
    pub upstream: u32,
    /// From the uplink's last bit out to its last bit in, nanoseconds.
    pub delay_ns: u64,
}

/// Clusters of a scenario that are alike. Texts stay valid until the scenario is freed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct olaf_group_spec {
    /// Its name.
    pub name: *const c_char,
    /// The switch its workers send to.
    pub switch_index: u32,
    /// Clusters in it.
    pub clusters: u32,
    /// Workers in each cluster.
    pub workers: u32,
    /// An update's bytes on the link.
    pub packet_bytes: u32,
}

/// Reads a scenario: JSON, a C string; `docs/reference/scenarios.md` has the keys.
///
/// `OLAF_RESULT_BAD_ARGUMENT`: it cannot be; why is written to `why`, a C string of at most
/// `capacity` bytes, cut short where it is longer.
///
/// # Safety
/// `json` is null or a C string; `why` is null or has room for `capacity` bytes; `scenario` is null
/// or points to room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_scenario_new(
    json: *const c_char,
    why: *mut c_char,
    capacity: usize,
    scenario: *mut *mut olaf_scenario,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let scenario = unsafe { output(scenario) }?;
        // SAFETY: the caller's promise.
        let json = unsafe { memory::text(json) }?;
        match read(json) {
            Ok(read) => {
                scenario.set(Box::into_raw(Box::new(read)));
                Ok(())
            }
            Err(text) => {
                // SAFETY: the caller's promise.
                unsafe { memory::fill_text(&text, why, capacity) }?;
                Err(OLAF_RESULT_BAD_ARGUMENT)
            }
        }
    })
}

fn read(json: &CStr) -> Result<olaf_scenario, String> {
    let json = json.to_str().map_err(|error| error.to_string())?;
    let spec: Scenario = serde_json::from_str(json).map_err(|error| error.to_string())?;
    spec.check().map_err(|error| error.to_string())?;
    let text = |text: &str| CString::new(text).map_err(|error| format!("a name: {error}"));
    let switches = spec.switches.iter().map(|s| Ok((text(&s.name)?, text(&s.queue)?)));
    let switches = switches.collect::<Result<_, String>>()?;
    let groups = spec.groups.iter().map(|g| text(&g.name)).collect::<Result<_, _>>()?;
    Ok(olaf_scenario { spec, switches, groups })
}

/// Frees a scenario; null is nothing to free.
///
/// # Safety
/// `scenario` is null, or came from `olaf_scenario_new` and was not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_scenario_free(scenario: *mut olaf_scenario) {
    if !scenario.is_null() {
        guard(|| {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(scenario) });
            Ok(())
        });
    }
}

/// Describes a scenario as a whole.
///
/// # Safety
/// `scenario` is null or from `olaf_scenario_new`; `shape` is null or points to room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_scenario_get_shape(
    scenario: *const olaf_scenario,
    shape: *mut olaf_scenario_shape,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (scenario, shape) = unsafe { (input(scenario)?, output(shape)?) };
        let spec = &scenario.spec;
        let notices = spec.wants_notices().map_err(|_| OLAF_RESULT_BAD_ARGUMENT)?;
        shape.set(olaf_scenario_shape {
            seed: spec.seed,
            duration_ns: spec.duration_ns,
            head_keeps_slot: u8::from(spec.head_keeps_slot),
            notices: u8::from(notices),
            switches: small(spec.switches.len())?,
            groups: small(spec.groups.len())?,
            workers: small(spec.groups.iter().map(|group| group.clusters * group.workers).sum())?,
            active_ns: spec.answers.active_ns,
        });
        Ok(())
    })
}

/// Describes a switch, numbered in the scenario's order. `OLAF_RESULT_NOTHING`: there are fewer.
///
/// # Safety
/// `scenario` is null or from `olaf_scenario_new`; `spec` is null or points to room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_scenario_get_switch(
    scenario: *const olaf_scenario,
    number: u32,
    spec: *mut olaf_switch_spec,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (scenario, spec) = unsafe { (input(scenario)?, output(spec)?) };
        let switch = scenario.spec.switches.get(number as usize).ok_or(OLAF_RESULT_NOTHING)?;
        let (name, queue) = &scenario.switches[number as usize];
        let upstream = match &switch.upstream {
            Some(name) => scenario.switch(name)?,
            None => OLAF_SERVER,
        };
        spec.set(olaf_switch_spec {
            name: name.as_ptr(),
            queue: queue.as_ptr(),
            slots: switch.slots,
            gate: switch.gate.unwrap_or(f64::NAN),
            rate_bps: switch.rate_bps,
            upstream,
            delay_ns: switch.delay_ns,
        });
        Ok(())
    })
}

/// Describes a group, numbered in the scenario's order. `OLAF_RESULT_NOTHING`: there are fewer.
///
/// # Safety
/// `scenario` is null or from `olaf_scenario_new`; `spec` is null or points to room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_scenario_get_group(
    scenario: *const olaf_scenario,
    number: u32,
    spec: *mut olaf_group_spec,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (scenario, spec) = unsafe { (input(scenario)?, output(spec)?) };
        let group = scenario.spec.groups.get(number as usize).ok_or(OLAF_RESULT_NOTHING)?;
        spec.set(olaf_group_spec {
            name: scenario.groups[number as usize].as_ptr(),
            switch_index: scenario.switch(&group.switch)?,
            clusters: small(group.clusters)?,
            workers: small(group.workers)?,
            packet_bytes: group.packet_bytes,
        });
        Ok(())
    })
}

/// Runs a scenario in `olaf-sim` and writes what it came to: JSON, a C string. `len` becomes its
/// bytes, the last one, zero, included, also where `OLAF_RESULT_TOO_SHORT` says that `capacity` is
/// below that.
///
/// # Safety
/// `scenario` is null or from `olaf_scenario_new`; `json` is null or has room for `capacity` bytes;
/// `len` is null or points to room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_scenario_run(
    scenario: *const olaf_scenario,
    json: *mut c_char,
    capacity: usize,
    len: *mut usize,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (scenario, len) = unsafe { (input(scenario)?, output(len)?) };
        let outcome = scenario::run(&scenario.spec).map_err(|_| OLAF_RESULT_BAD_ARGUMENT)?;
        // SAFETY: the caller's promise.
        unsafe { write(&outcome, json, capacity, len) }
    })
}

/// Writes an outcome as JSON, and its length with the last zero.
///
/// # Safety
/// `json` is valid for writes of `capacity` bytes, or null.
pub(crate) unsafe fn write(
    outcome: &Outcome,
    json: *mut c_char,
    capacity: usize,
    len: memory::Output<usize>,
) -> Result<(), olaf_result> {
    let text = serde_json::to_string(outcome).map_err(|_| OLAF_RESULT_BAD_ARGUMENT)?;
    len.set(text.len() + 1);
    if capacity <= text.len() {
        return Err(OLAF_RESULT_TOO_SHORT);
    }
    // SAFETY: the caller's promise.
    unsafe { memory::fill_text(&text, json, capacity) }
}

impl olaf_scenario {
    fn switch(&self, name: &str) -> Result<u32, olaf_result> {
        let at = self.spec.switches.iter().position(|switch| switch.name == name);
        small(at.ok_or(OLAF_RESULT_BAD_ARGUMENT)?)
    }
}

fn small(n: usize) -> Result<u32, olaf_result> {
    u32::try_from(n).map_err(|_| OLAF_RESULT_BAD_ARGUMENT)
}
