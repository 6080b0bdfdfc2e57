//! A visitor that builds JSON gets what serde's own JSON has.

use super::*;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};

/// Builds JSON; a peer is its address.
#[derive(Default)]
struct Builder {
    open: Vec<(String, Json)>,
}

impl Builder {
    fn put(&mut self, name: &str, value: Json) {
        match &mut self.open.last_mut().expect("the root is open").1 {
            Json::Object(map) => drop(map.insert(name.into(), value)),
            Json::Array(list) => list.push(value),
            _ => unreachable!("only groups are open"),
        }
    }
}

impl Report for Builder {
    fn value(&mut self, name: &str, value: Value<'_>) {
        self.put(
            name,
            match value {
                Value::Nothing => Json::Null,
                Value::Flag(flag) => flag.into(),
                Value::Count(count) => count.into(),
                Value::Integer(number) => number.into(),
                Value::Number(number) => number.into(),
                Value::Text(text) => text.into(),
                Value::Peer(peer) => alloc::format!("10.0.0.{}", peer.0).into(),
            },
        );
    }

    fn open(&mut self, name: &str, group: Group) {
        let empty = if group == Group::Map { json!({}) } else { json!([]) };
        self.open.push((name.to_string(), empty));
    }

    fn close(&mut self) {
        let (name, value) = self.open.pop().expect("it was opened");
        self.put(&name, value);
    }
}

fn shown(statistics: &impl Serialize) -> Json {
    let mut builder = Builder { open: alloc::vec![(String::new(), Json::Object(Map::new()))] };
    walk(statistics, &mut builder);
    assert_eq!(builder.open.len(), 1, "each group is closed");
    builder.open.remove(0).1
}

#[derive(Clone, Debug, Serialize)]
struct Sample {
    counts: BTreeMap<String, u64>,
    by_number: BTreeMap<u32, i32>,
    gate: Option<f64>,
    pair: (u8, bool),
    parts: Vec<Part>,
}

#[derive(Clone, Debug, Serialize)]
struct Part {
    name: &'static str,
    age: f32,
    nothing: Option<u64>,
}

fn sample() -> impl Strategy<Value = Sample> {
    let part =
        any::<(f32, Option<u64>)>().prop_map(|(age, nothing)| Part { name: "part", age, nothing });
    let maps = (any::<BTreeMap<String, u64>>(), any::<BTreeMap<u32, i32>>());
    let rest = (any::<Option<f64>>(), any::<(u8, bool)>(), prop::collection::vec(part, 0..4));
    (maps, rest).prop_map(|((counts, by_number), (gate, pair, parts))| Sample {
        counts,
        by_number,
        gate,
        pair,
        parts,
    })
}

proptest! {
    #[test]
    fn a_walk_shows_what_serde_shows(sample in sample()) {
        prop_assert_eq!(shown(&sample), serde_json::to_value(&sample).expect("plain data"));
    }
}

#[test]
fn a_peer_is_told_apart_from_a_number() {
    #[derive(Serialize)]
    struct Server {
        address: PeerId,
        epoch: u32,
    }
    let told = shown(&Server { address: PeerId(7), epoch: 7 });
    assert_eq!(told, json!({"address": "10.0.0.7", "epoch": 7}));
}
