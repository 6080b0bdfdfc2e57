//! An engine's report and events as JSON: the visitor behind `run.json` and `--json`.

use crate::io::peers::Peers;
use olaf_engine::report::{Group, Report, Value};
use olaf_engine::{Engine, Event, Instant};
use serde_json::Value as Json;

/// What `engine` reports, with the addresses of its peers.
pub(crate) fn of_engine(engine: &impl Engine, now: Instant, peers: &Peers) -> Json {
    built(peers, |builder| engine.report(now, builder))
}

/// An event and its time, with the addresses of its peers.
pub(crate) fn of_event(event: &Event, now: Instant, peers: &Peers) -> Json {
    let mut told = built(peers, |builder| event.report(builder));
    told["at_ns"] = now.0.into();
    told
}

fn built(peers: &Peers, report: impl FnOnce(&mut dyn Report)) -> Json {
    let root = (String::new(), Json::Object(serde_json::Map::new()));
    let mut builder = Builder { peers, open: vec![root] };
    report(&mut builder);
    builder.open.swap_remove(0).1
}

struct Builder<'a> {
    peers: &'a Peers,
    /// The groups that are open, the outermost first, with their names.
    open: Vec<(String, Json)>,
}

impl Builder<'_> {
    fn put(&mut self, name: &str, value: Json) {
        match self.open.last_mut() {
            Some((_, Json::Object(map))) => {
                map.insert(name.into(), value);
            }
            Some((_, Json::Array(list))) => list.push(value),
            _ => unreachable!("only groups are open, and the root stays open"),
        }
    }
}

impl Report for Builder<'_> {
    fn value(&mut self, name: &str, value: Value<'_>) {
        let value = match value {
            Value::Nothing => Json::Null,
            Value::Flag(flag) => flag.into(),
            Value::Count(count) => count.into(),
            Value::Integer(number) => number.into(),
            Value::Number(number) => number.into(),
            Value::Text(text) => text.into(),
            Value::Peer(peer) => self.peers.name(peer).into(),
        };
        self.put(name, value);
    }

    fn open(&mut self, name: &str, group: Group) {
        let empty = match group {
            Group::Map => Json::Object(serde_json::Map::new()),
            Group::List => Json::Array(Vec::new()),
        };
        self.open.push((name.into(), empty));
    }

    fn close(&mut self) {
        if let Some((name, group)) = self.open.pop() {
            self.put(&name, group);
        }
    }
}
