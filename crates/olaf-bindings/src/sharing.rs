//! `olaf._olaf.share_group`: jobs that share one tree in time (MINA §V-C, Figure 12).

use olaf_sched::sharing::Policy;
use olaf_sched::sharing::bound::score_bound;
use olaf_sched::sharing::group::{Until, score, simulate, simulate_each};
use olaf_sched::{AllReduceSpeed, Pattern, Steps};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::json;

/// What is asked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    policy: Policy,
    network: AllReduceSpeed,
    #[serde(default = "as_recorded")]
    compute_speed_millis: u32,
    jobs: Vec<Member>,
    until: Span,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Member {
    pattern: Pattern,
    hosts: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Span {
    Steps(u64),
    /// Of each job.
    StepsEach(Vec<u64>),
    Ns(u64),
}

const fn as_recorded() -> u32 {
    1000
}

/// The most jobs of a group.
const MOST_JOBS: usize = 1000;
/// The most events, of all jobs: a quarter of an hour, which Ctrl-C does not cut short.
const MOST_EVENTS: u128 = 10_000_000_000;

/// Take a group forward; JSON in and out.
#[pyfunction]
pub(crate) fn share_group(py: Python<'_>, group: &str) -> PyResult<String> {
    let group: Group = serde_json::from_str(group).map_err(|error| wrong(&error.to_string()))?;
    let AllReduceSpeed { bytes_per_second, speedup_millis, .. } = group.network;
    if bytes_per_second == 0 || speedup_millis < 1000 || group.compute_speed_millis == 0 {
        return Err(wrong(
            "network: rate and compute speed must be above 0, speedup at least 1000",
        ));
    }
    if group.jobs.is_empty() || group.jobs.len() > MOST_JOBS {
        return Err(wrong(&format!("{} jobs: must be from 1 to {MOST_JOBS}", group.jobs.len())));
    }
    let (until, each) = match group.until {
        Span::Steps(steps) => (Until::Steps(steps), None),
        Span::Ns(ns) => (Until::Ns(ns), None),
        Span::StepsEach(steps) if steps.len() == group.jobs.len() => {
            // No job runs longer than one that runs the most steps.
            (Until::Steps(steps.iter().copied().max().unwrap_or(0)), Some(steps))
        }
        Span::StepsEach(_) => return Err(wrong("until.steps_each: give a number for each job")),
    };
    let mut members = Vec::with_capacity(group.jobs.len());
    for (at, Member { pattern, hosts }) in group.jobs.into_iter().enumerate() {
        let faster = pattern.faster(group.compute_speed_millis).check();
        let pattern = faster.map_err(|error| wrong(&format!("jobs[{at}].pattern: {error}")))?;
        if hosts == 0 {
            return Err(wrong(&format!("jobs[{at}].hosts: must be at least 1")));
        }
        members.push((Steps::new(&pattern, &group.network, hosts), hosts));
    }
    let events = members.iter().map(|(member, _)| {
        let steps = match until {
            Until::Steps(steps) => steps,
            Until::Ns(ns) => ns / member.all_ns,
        };
        u128::from(steps) * (member.len() as u128 + 1)
    });
    if events.sum::<u128>() > MOST_EVENTS {
        return Err(wrong(&format!("until: more than {MOST_EVENTS} operations and steps by then")));
    }
    let jobs: Vec<_> = members.iter().map(|(steps, hosts)| (steps, *hosts)).collect();
    if until.is_too_long(&jobs) {
        return Err(wrong("until: the jobs may run for longer than 146 years"));
    }
    Ok(py.detach(|| {
        let ran = match each {
            Some(steps) => simulate_each(group.policy, &jobs, &steps),
            None => simulate(group.policy, &jobs, until),
        };
        let each = jobs.iter().zip(&ran).map(|((steps, _), ran)| {
            json!({
                "steps": ran.steps,
                "ns": ran.ns,
                "shortest_ns": ran.shortest_ns,
                "longest_ns": ran.longest_ns,
                "in_network_ns": ran.in_network_ns,
                "in_network": ran.in_network,
                "operations": ran.operations,
                "none_ns": steps.none_ns,
                "all_ns": steps.all_ns,
            })
        });
        json!({
            "jobs": each.collect::<Vec<_>>(),
            "score": score(&jobs, &ran, false),
            "score_weighted": score(&jobs, &ran, true),
            "bound": score_bound(&jobs, false),
            "bound_weighted": score_bound(&jobs, true),
        })
        .to_string()
    }))
}

fn wrong(text: &str) -> PyErr {
    PyValueError::new_err(format!("group: {text}"))
}
