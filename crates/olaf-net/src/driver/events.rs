//! What happened, as JSON objects with addresses that people know.

use crate::io::peers::Peers;
use olaf_engine::event::{Said, Told};
use olaf_engine::party::Ruling;
use olaf_engine::{Event, Instant, JobId, PeerId, WorkerEvent, WorkerSeen};
use serde_json::{Value, json};

/// The event with its time.
pub(super) fn stamped(mut event: Value, now: Instant) -> Value {
    event["at_ns"] = now.0.into();
    event
}

/// An event about a worker.
fn of_worker(name: &str, seen: &WorkerSeen, reason: Option<&str>, peers: &Peers) -> Value {
    let mut event = json!({
        "event": name, "job": seen.job.0, "cluster": seen.cluster.0, "worker": seen.worker.0,
        "address": peers.name(seen.peer),
    });
    if let Some(reason) = reason {
        event["reason"] = reason.into();
    }
    event
}

/// A stated answer that was given because nobody gave another.
fn ruled(name: &str, seen: &WorkerSeen, ruling: Ruling, peers: &Peers) -> Value {
    let mut event = of_worker(name, seen, None, peers);
    event["answer"] = ruling.name().into();
    event
}

fn of_neighbour(name: &str, job: JobId, peer: PeerId, peers: &Peers) -> Value {
    json!({"event": name, "job": job.0, "address": peers.name(peer)})
}

/// An event of an engine, with addresses for the numbers of peers.
pub(super) fn told(event: &Event, peers: &Peers) -> Value {
    match event {
        Event::WorkerJoined(seen) => of_worker("worker_joined", seen, None, peers),
        Event::WorkerLeft(seen) => of_worker("worker_left", seen, None, peers),
        Event::WorkerSilent(seen) => of_worker("worker_silent", seen, None, peers),
        Event::WorkerBack(seen) => of_worker("worker_back", seen, None, peers),
        Event::WorkerMoved(seen) => of_worker("worker_moved", seen, None, peers),
        Event::WorkerRefused(seen, code) => {
            of_worker("worker_refused", seen, Some(code.name()), peers)
        }
        Event::ContributionRejected(seen, rejection) => {
            of_worker("contribution_rejected", seen, Some(rejection.name()), peers)
        }
        Event::RoundWithout(seen) => of_worker("round_without", seen, None, peers),
        Event::AdmissionWanted(seen, running) => {
            let mut event = of_worker("admission_wanted", seen, None, peers);
            let running = running.iter();
            event["running"] =
                running.map(|(job, cluster)| json!({"job": job.0, "cluster": cluster.0})).collect();
            event
        }
        Event::AdmissionUnanswered(seen, ruling) => {
            ruled("admission_unanswered", seen, *ruling, peers)
        }
        Event::AdmissionNotAsked(seen, ruling) => {
            ruled("admission_not_asked", seen, *ruling, peers)
        }
        Event::SwitchSilent(job, peer) => of_neighbour("switch_silent", *job, *peer, peers),
        Event::SwitchBack(job, peer) => of_neighbour("switch_back", *job, *peer, peers),
        Event::SwitchRestarted(job, peer) => of_neighbour("switch_restarted", *job, *peer, peers),
        Event::Loop(job, peer) => of_neighbour("loop", *job, *peer, peers),
        Event::ServerSilent(job, peer) => of_neighbour("server_silent", *job, *peer, peers),
        Event::ServerBack(job, peer) => of_neighbour("server_back", *job, *peer, peers),
        Event::ServerRestarted(job, peer) => of_neighbour("server_restarted", *job, *peer, peers),
        Event::ModelStarted { job, worker, parameters, version } => json!({
            "event": "model_started", "job": job.0, "worker": worker.0,
            "parameters": parameters, "version": version,
        }),
        Event::ModelRestored { job, parameters, version } => json!({
            "event": "model_restored", "job": job.0, "parameters": parameters, "version": version,
        }),
        Event::Worker(job, switch, event) => by_worker(event, job.0, &peers.name(*switch)),
        Event::Other(told) => other(told),
    }
}

/// An event that a worker of `job` tells about itself; its switch is at `address`.
fn by_worker(event: &WorkerEvent, job: u32, address: &str) -> Value {
    let about_switch = |name: &str| json!({"event": name, "address": address});
    // A worker knows its server only through the switch.
    let about_server = |name: &str| json!({"event": name, "job": job, "through": address});
    match event {
        WorkerEvent::Joined { version } => {
            json!({"event": "joined", "job": job, "version": version})
        }
        WorkerEvent::TurnedAway(code) => {
            json!({"event": "turned_away", "job": job, "reason": code.name()})
        }
        WorkerEvent::Path { mtu_bytes, segment_lanes } => json!({
            "event": "path", "job": job, "mtu_bytes": mtu_bytes, "segment_lanes": segment_lanes,
        }),
        WorkerEvent::PathTooNarrow(narrow) => json!({
            "event": "path_too_narrow", "job": job, "through": address,
            "mtu_bytes": narrow.mtu_bytes, "needed_mtu_bytes": narrow.needed_mtu_bytes,
            "segment_lanes": narrow.segment_lanes,
            "reason": format!(
                "packets of {} bytes do not reach the server and back: this job needs them, and the \
                 path carries {} bytes; raise the path's MTU, or start the job anew with mtu_bytes = {}",
                narrow.needed_mtu_bytes, narrow.mtu_bytes, narrow.mtu_bytes
            ),
        }),
        WorkerEvent::PathBack => json!({"event": "path_back", "job": job, "through": address}),
        WorkerEvent::SwitchSilent => about_switch("switch_silent"),
        WorkerEvent::SwitchBack => about_switch("switch_back"),
        WorkerEvent::SwitchRestarted => about_switch("switch_restarted"),
        WorkerEvent::ServerSilent => about_server("server_silent"),
        WorkerEvent::ServerBack => about_server("server_back"),
        WorkerEvent::ServerRestarted => about_server("server_restarted"),
    }
}

fn other(told: &Told) -> Value {
    let mut event = json!({"event": told.name});
    for (name, said) in &told.fields {
        event[name.as_str()] = match said {
            Said::Number(number) => (*number).into(),
            Said::Text(text) => text.as_str().into(),
        };
    }
    event
}

/// The same, the other way: a flat table of numbers and texts, its event's name under `event`.
pub(crate) fn of_json(event: &Value) -> Event {
    let fields = event.as_object().into_iter().flatten();
    let fields = fields.filter(|(name, _)| *name != "event").map(|(name, value)| {
        let text = || value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (name.clone(), value.as_u64().map_or_else(|| Said::Text(text()), Said::Number))
    });
    let name = event["event"].as_str().unwrap_or("other").to_owned();
    Event::Other(Box::new(Told { name, fields: fields.collect() }))
}
