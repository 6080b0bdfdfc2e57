//! What an operator sees of the controller: its rounds, its jobs and its resources.

use super::engine::ControllerEngine;
use crate::roles::sharing::waiting::Late;
use olaf_engine::Instant;
use olaf_sched::protocol::{Standing, Usage};
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Shown {
    granted: u64,
    aborted: u64,
    datagrams: u64,
    timers: u64,
    late: Late,
    superseded: bool,
    jobs: Vec<Job>,
    resources: Vec<Resource>,
}

#[derive(Serialize)]
struct Job {
    job: u64,
    phase: &'static str,
    hosts: usize,
    heard: usize,
    left: usize,
    /// The first host that was not heard yet.
    unheard: Option<u16>,
    /// How long the host that was heard longest ago has been silent.
    silent_ns: Option<u64>,
    failed: bool,
    failure: Option<String>,
}

#[derive(Serialize)]
struct Resource {
    resource: u32,
    units: u32,
    used: u64,
}

impl Shown {
    pub(super) fn of(engine: &ControllerEngine, now: Instant) -> Self {
        let controller = &engine.controller;
        Self {
            granted: engine.granted,
            aborted: engine.aborted,
            datagrams: engine.datagrams,
            timers: engine.lateness.total(),
            late: engine.lateness.shown(),
            superseded: controller.superseded(),
            jobs: controller.standings().map(|one| Job::of(one, engine, now)).collect(),
            resources: controller.usages().into_iter().map(Resource::of).collect(),
        }
    }
}

impl Job {
    fn of(standing: Standing, engine: &ControllerEngine, now: Instant) -> Self {
        let Standing { job, phase, hosts, heard, left, unheard, failure } = standing;
        let hosts_heard = engine.heard.range((job, 0)..=(job, u16::MAX));
        let silent_ns = hosts_heard.map(|(_, at)| now.0.saturating_sub(at.0)).max();
        let failed = failure.is_some();
        let failure = failure.map(|why| why.to_string());
        Self { job: job.0, phase, hosts, heard, left, unheard, silent_ns, failed, failure }
    }
}

impl Resource {
    const fn of(Usage { resource, units, used }: Usage) -> Self {
        Self { resource, units, used }
    }
}
