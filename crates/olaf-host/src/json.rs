//! Reports and events as JSON: the visitor behind `run.json`, `--json`, C and Python.

use alloc::string::String;
use alloc::vec::Vec;
use olaf_engine::PeerId;
use olaf_engine::report::{Group, Report, Value};
use serde_json::{Map, Value as Json};

/// What `report` shows, as a JSON object. `name` says how a peer is written: the engine knows
/// numbers alone, a driver knows addresses.
pub fn of(name: &dyn Fn(PeerId) -> Json, report: impl FnOnce(&mut dyn Report)) -> Json {
    let root = (String::new(), Json::Object(Map::new()));
    let mut builder = Builder { name, open: alloc::vec![root] };
    report(&mut builder);
    builder.open.swap_remove(0).1
}

struct Builder<'a> {
    name: &'a dyn Fn(PeerId) -> Json,
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
            Value::Peer(peer) => (self.name)(peer),
        };
        self.put(name, value);
    }

    fn open(&mut self, name: &str, group: Group) {
        let empty = match group {
            Group::Map => Json::Object(Map::new()),
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
