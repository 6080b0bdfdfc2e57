//! What happened, as JSON objects with addresses that people know.

use crate::io::peers::Peers;
use olaf_engine::event::WorkerSeen;
use olaf_engine::switch::native::Ruling;
use olaf_engine::{Event, Instant, JobId, PeerId};
use olaf_host::HostEvent;
use serde_json::{Value, json};

/// The event with its time.
pub(crate) fn stamped(mut event: Value, now: Instant) -> Value {
    event["at_ns"] = now.0.into();
    event
}

/// An event of a worker.
pub(crate) fn of_worker(
    name: &str,
    seen: &WorkerSeen,
    reason: Option<&str>,
    peers: &Peers,
) -> Value {
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

/// An event of a switch.
pub(crate) fn of_switch(event: &Event, peers: &Peers) -> Value {
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
        Event::AdmissionWanted(seen) => of_worker("admission_wanted", seen, None, peers),
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
    }
}

/// An event of a parameter server.
pub(crate) fn of_server_host(event: &HostEvent, peers: &Peers) -> Value {
    match event {
        HostEvent::WorkerJoined(seen) => of_worker("worker_joined", seen, None, peers),
        HostEvent::WorkerLeft(seen) => of_worker("worker_left", seen, None, peers),
        HostEvent::WorkerSilent(seen) => of_worker("worker_silent", seen, None, peers),
        HostEvent::WorkerBack(seen) => of_worker("worker_back", seen, None, peers),
        HostEvent::WorkerRefused(seen, code) => {
            of_worker("worker_refused", seen, Some(code.name()), peers)
        }
        HostEvent::RoundWithout(seen) => of_worker("round_without", seen, None, peers),
        HostEvent::ModelStarted { job, worker, parameters, version } => json!({
            "event": "model_started", "job": job.0, "worker": worker.0,
            "parameters": parameters, "version": version,
        }),
        HostEvent::ModelRestored { job, parameters, version } => json!({
            "event": "model_restored", "job": job.0, "parameters": parameters, "version": version,
        }),
        other => of_client(other, 0, ""),
    }
}

/// An event of a worker of that job whose switch is at `address`.
pub(crate) fn of_client(event: &HostEvent, job: u32, address: &str) -> Value {
    let about_switch = |name: &str| json!({"event": name, "address": address});
    // A worker knows its server only through the switch.
    let about_server = |name: &str| json!({"event": name, "job": job, "through": address});
    match event {
        HostEvent::Joined { version } => json!({"event": "joined", "job": job, "version": version}),
        HostEvent::TurnedAway(code) => {
            json!({"event": "turned_away", "job": job, "reason": code.name()})
        }
        HostEvent::Path { mtu_bytes, segment_lanes } => json!({
            "event": "path", "job": job, "mtu_bytes": mtu_bytes, "segment_lanes": segment_lanes,
        }),
        HostEvent::PathTooNarrow(narrow) => json!({
            "event": "path_too_narrow", "job": job, "through": address,
            "mtu_bytes": narrow.mtu_bytes, "needed_mtu_bytes": narrow.needed_mtu_bytes,
            "segment_lanes": narrow.segment_lanes,
            "reason": format!(
                "packets of {} bytes do not reach the server and back: this job needs them, and the \
                 path carries {} bytes; raise the path's MTU, or start the job anew with mtu_bytes = {}",
                narrow.needed_mtu_bytes, narrow.mtu_bytes, narrow.mtu_bytes
            ),
        }),
        HostEvent::PathBack => json!({"event": "path_back", "job": job, "through": address}),
        HostEvent::SwitchSilent => about_switch("switch_silent"),
        HostEvent::SwitchBack => about_switch("switch_back"),
        HostEvent::SwitchRestarted => about_switch("switch_restarted"),
        HostEvent::ServerSilent => about_server("server_silent"),
        HostEvent::ServerBack => about_server("server_back"),
        HostEvent::ServerRestarted => about_server("server_restarted"),
        // What only a server says.
        _ => json!({"event": "other", "what": format!("{event:?}")}),
    }
}
