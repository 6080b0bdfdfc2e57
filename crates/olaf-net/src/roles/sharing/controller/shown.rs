//! What an operator sees of the controller: its rounds, its jobs and its resources.

use super::engine::ControllerEngine;
use crate::roles::sharing::waiting::Late;
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
    pub(super) fn of(engine: &ControllerEngine) -> Self {
        let controller = &engine.controller;
        Self {
            granted: engine.granted,
            aborted: engine.aborted,
            datagrams: engine.datagrams,
            timers: engine.lateness.total(),
            late: engine.lateness.shown(),
            superseded: controller.superseded(),
            jobs: controller.standings().map(Job::of).collect(),
            resources: controller.usages().into_iter().map(Resource::of).collect(),
        }
    }
}

impl Job {
    fn of(standing: Standing) -> Self {
        let Standing { job, phase, hosts, heard, left, unheard, failure } = standing;
        let failed = failure.is_some();
        let failure = failure.map(|why| why.to_string());
        Self { job: job.0, phase, hosts, heard, left, unheard, failed, failure }
    }
}

impl Resource {
    const fn of(Usage { resource, units, used }: Usage) -> Self {
        Self { resource, units, used }
    }
}
