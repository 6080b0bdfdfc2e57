//! A scenario's ends as engines for another simulator, and what the scenario came to there.

use crate::held::{Held, Kind, olaf_engine};
use crate::memory::{self, handle, input, output};
use crate::result::*;
use crate::scenario::{olaf_scenario, write};
use crate::types::{olaf_contributor, olaf_fates};
use core::ffi::c_char;
use olaf_sim::study::scenario::{Contributor, End, HopFates, Notices, ServerEnd, WorkerEnd};

/// Makes a worker of a scenario. Its updates become ready at the scenario's times and are sent
/// under the scenario's control, each with `lanes` lanes whose values are 1 for each contribution.
/// Its peer 0 is the server. Free the engine with `olaf_engine_free`; it does not need the
/// scenario.
///
/// `OLAF_RESULT_BAD_ARGUMENT`: the scenario has fewer workers, or `lanes` is above the lanes of
/// the longest update.
///
/// # Safety
/// `scenario` is null or from `olaf_scenario_new`; `engine` is null or points to room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_scenario_worker(
    scenario: *const olaf_scenario,
    worker: u32,
    lanes: usize,
    engine: *mut *mut olaf_engine,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (scenario, engine) = unsafe { (input(scenario)?, output(engine)?) };
        let end = WorkerEnd::new(&scenario.spec, worker, lanes);
        let end = end.map_err(|_| OLAF_RESULT_BAD_ARGUMENT)?;
        olaf_engine::hand_over(Kind::End(End::Worker(Box::new(end))), engine);
        Ok(())
    })
}

/// Makes the server of a scenario: it takes the ages and sends the scenario's answers. Each peer
/// has its worker's number, counted through all groups. Free the engine with `olaf_engine_free`; it
/// does not need the scenario.
///
/// # Safety
/// `scenario` is null or from `olaf_scenario_new`; `engine` is null or points to room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_scenario_server(
    scenario: *const olaf_scenario,
    engine: *mut *mut olaf_engine,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (scenario, engine) = unsafe { (input(scenario)?, output(engine)?) };
        let end = ServerEnd::new(&scenario.spec).map_err(|_| OLAF_RESULT_BAD_ARGUMENT)?;
        olaf_engine::hand_over(Kind::End(End::Server(Box::new(end))), engine);
        Ok(())
    })
}

/// Makes the notices of a scenario's switch, for a control that asks for them. Hand the engine each
/// update whose `olaf_outcome` says `notify`: it tells the update's cluster after the scenario's
/// time. Each peer has its worker's number, counted through all groups. Free the engine with
/// `olaf_engine_free`; it does not need the scenario.
///
/// # Safety
/// `scenario` is null or from `olaf_scenario_new`; `engine` is null or points to room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_scenario_notices(
    scenario: *const olaf_scenario,
    engine: *mut *mut olaf_engine,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (scenario, engine) = unsafe { (input(scenario)?, output(engine)?) };
        let end = Notices::new(&scenario.spec).map_err(|_| OLAF_RESULT_BAD_ARGUMENT)?;
        olaf_engine::hand_over(Kind::End(End::Notices(Box::new(end))), engine);
        Ok(())
    })
}

/// Names the workers whose updates met in the datagram that comes next; a scenario's server answers
/// them. Workers are counted through all groups. Without this call the server answers the update's
/// own worker. Other engines ignore the call.
///
/// # Safety
/// `engine` is null or was made here; `contributors` is null or has `count` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_scenario_met(
    engine: *mut olaf_engine,
    contributors: *const olaf_contributor,
    count: usize,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (engine, contributors) =
            unsafe { (handle(engine)?, memory::values(contributors, count)?) };
        engine.0.run(|held| {
            if let Kind::End(End::Server(server)) = &mut held.kind {
                let met = contributors.iter().map(|contributor| Contributor {
                    worker: contributor.worker,
                    generated_ns: contributor.generated_ns,
                    summed: contributor.is_summed(),
                });
                server.met(met.collect());
            }
            Ok(())
        })
    })
}

/// Writes what a scenario came to in the caller's simulator: JSON, a C string, as
/// `olaf_scenario_run` writes it. `engines` are its server and all its workers, `switches` the
/// fates at all its switches in the scenario's order. Contributions without another fate count as
/// on the way. `len` becomes the text's bytes, the last one, zero, included, also where
/// `OLAF_RESULT_TOO_SHORT` says that `capacity` is below that.
///
/// `OLAF_RESULT_BAD_ARGUMENT`: an engine or a switch is missing or too many, or more contributions
/// ended than the workers made.
///
/// # Safety
/// `scenario` is null or from `olaf_scenario_new`; `engines` is null or has `engine_count` engines
/// that were made here and not freed; `switches` is null or has `switch_count` of them; `json` is
/// null or has room for `capacity` bytes; `len` is null or points to room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_scenario_outcome(
    scenario: *const olaf_scenario,
    engines: *const *const olaf_engine,
    engine_count: usize,
    switches: *const olaf_fates,
    switch_count: usize,
    json: *mut c_char,
    capacity: usize,
    len: *mut usize,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (scenario, len) = unsafe { (input(scenario)?, output(len)?) };
        // SAFETY: the caller's promise.
        let (engines, switches) = unsafe {
            (memory::values(engines, engine_count)?, memory::values(switches, switch_count)?)
        };
        let mut ends = Vec::with_capacity(engines.len());
        for engine in engines {
            // SAFETY: the caller's promise.
            let engine = unsafe { input(*engine) }?;
            engine.0.read(end).map(|end| ends.push(end))?;
        }
        let switches = switches.iter().map(olaf_fates::of_hop).collect();
        let outcome = scenario.spec.outcome(&ends, switches);
        let outcome = outcome.map_err(|_| OLAF_RESULT_BAD_ARGUMENT)?;
        // SAFETY: the caller's promise.
        unsafe { write(&outcome, json, capacity, len) }
    })
}

fn end(held: &Held) -> Result<&End, olaf_result> {
    match &held.kind {
        Kind::End(end) => Ok(end),
        Kind::Whole(_) => Err(OLAF_RESULT_BAD_ARGUMENT),
    }
}

impl olaf_fates {
    fn of_hop(&self) -> HopFates {
        HopFates {
            received: self.received,
            sent_alone: self.sent_alone,
            merged: self.merged,
            replaced: self.replaced,
            filtered: self.filtered,
            dropped: self.dropped,
            rejected: self.rejected,
            waiting: self.waiting,
            packets_received: self.packets_received,
            packets_merged: self.packets_merged,
            packets_dropped: self.packets_dropped,
            packets_sent: self.departures,
        }
    }
}
