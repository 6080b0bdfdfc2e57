//! An engine's report and events as JSON, with the addresses of its peers.

use crate::io::peers::Peers;
use olaf_engine::{Engine, Event, Instant};
use olaf_host::json;
use serde_json::Value;

/// What `engine` reports.
pub(crate) fn of_engine(engine: &impl Engine, now: Instant, peers: &Peers) -> Value {
    json::of(&|peer| peers.name(peer).into(), |to| engine.report(now, to))
}

/// An event and its time.
pub(crate) fn of_event(event: &Event, now: Instant, peers: &Peers) -> Value {
    let mut told = json::of(&|peer| peers.name(peer).into(), |to| event.report(to));
    told["at_ns"] = now.0.into();
    told
}
