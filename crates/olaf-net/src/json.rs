//! Configurations as JSON, with times, sizes and rates as people write them.

use crate::error::StartError;
use olaf_engine::{BitsPerSecond, units};
use serde::Serialize;
use serde::de::value::Error as NoValue;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde_json::{Map, Value};

/// The JSON of a role's configuration.
///
/// # Errors
/// [`StartError::Config`] that names the role.
pub(crate) fn parsed(role: &str, text: &str) -> Result<Value, StartError> {
    serde_json::from_str(text).map_err(|error| wrong(role, &error.to_string()))
}

/// Reads a configuration whose tables refuse unknown keys themselves.
///
/// # Errors
/// [`StartError::Config`] that names the role, the key and what was expected there.
pub(crate) fn read<T: DeserializeOwned>(role: &str, text: &str) -> Result<T, StartError> {
    let value = match parsed(role, text)? {
        Value::Object(table) => {
            let plain = in_plain_numbers(table, fields::<T>().iter().copied());
            Value::Object(plain.map_err(|what| wrong(role, &what))?)
        }
        other => other,
    };
    located(value).map_err(|what| wrong(role, &what))
}

/// Reads a role's configuration: one table, from which the engine reads its own keys. All keys have
/// a default, and all are written except the keys `only_where_set`.
///
/// # Errors
/// [`StartError::Config`] that names the role, the key and what was expected there.
pub(crate) fn read_flat<T>(
    role: &str,
    value: Value,
    only_where_set: &[&str],
) -> Result<T, StartError>
where
    T: DeserializeOwned + Serialize + Default,
{
    let wrong = |what: String| wrong(role, &what);
    let Value::Object(table) = value else {
        return located(value).map_err(wrong);
    };
    let mut known = plain(&T::default());
    known.extend(only_where_set.iter().map(|key| ((*key).to_owned(), Value::Null)));
    let table = known_keys(table, &known, "").map_err(wrong)?;
    located(Value::Object(table.clone()))
        .map_err(|what| wrong(wrong_key::<T>(&table, &known).unwrap_or(what)))
}

/// The table in plain numbers, if it has known keys alone. A table that has a table in `known` too,
/// like `reduce` of a switch, is read in the same way; `within` are the keys around it.
fn known_keys(
    table: Map<String, Value>,
    known: &Map<String, Value>,
    within: &str,
) -> Result<Map<String, Value>, String> {
    let plain = in_plain_numbers(table, known.keys().map(String::as_str));
    let mut table = plain.map_err(|what| format!("{within}{what}"))?;
    // serde cannot refuse unknown keys of a table that two structs read.
    if let Some(stranger) = table.keys().find(|key| !known.contains_key(*key)) {
        let known: Vec<_> = known.keys().map(|key| format!("`{key}`")).collect();
        return Err(format!(
            "unknown field `{within}{stranger}`, expected one of {}",
            known.join(", ")
        ));
    }
    for (key, known) in known {
        let (Some(known), Some(Value::Object(inner))) = (inner_table(known), table.get_mut(key))
        else {
            continue;
        };
        *inner = known_keys(std::mem::take(inner), known, &format!("{within}{key}."))?;
    }
    Ok(table)
}

/// The first key whose value cannot be. serde does not say which key of a table that two structs
/// read is wrong: each is read alone to find out.
fn wrong_key<T: DeserializeOwned>(
    table: &Map<String, Value>,
    known: &Map<String, Value>,
) -> Option<String> {
    table.iter().find_map(|(key, value)| {
        let alone = |value: &Value| {
            let table = Map::from_iter([(key.clone(), value.clone())]);
            located::<T>(Value::Object(table)).err()
        };
        if let (Some(_), Value::Object(inner)) = (known.get(key).and_then(inner_table), value) {
            return inner.iter().find_map(|(inner_key, value)| {
                let inner = Map::from_iter([(inner_key.clone(), value.clone())]);
                let what = alone(&Value::Object(inner))?;
                let full = format!("{key}.{inner_key}");
                let places = [format!("{full}: "), format!("{key}: ")];
                let place = places.iter().find(|place| what.starts_with(*place));
                Some(told(&full, value, &what[place.map_or(0, String::len)..]))
            });
        }
        let what = alone(value)?;
        Some(if what.starts_with(key) { what } else { told(key, value, &what) })
    })
}

/// What is wrong with a key, and its value where that says more.
fn told(key: &str, value: &Value, what: &str) -> String {
    match value {
        Value::Object(_) | Value::Array(_) => format!("{key}: {what}"),
        value if what.starts_with("must be") => format!("{key} = {value}: {what}"),
        _ => format!("{key}: {what}"),
    }
}

/// A table of known keys within a configuration; a table of free keys, like `routes`, is empty by
/// default.
fn inner_table(value: &Value) -> Option<&Map<String, Value>> {
    value.as_object().filter(|table| !table.is_empty())
}

fn wrong(role: &str, what: &str) -> StartError {
    StartError::Config(format!("{role} configuration: {what}"))
}

/// Reads a value; an error says where in it, as far as serde knows.
fn located<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let (path, what) = (error.path().to_string(), error.inner().to_string());
        match path.as_str() {
            "." => what,
            key => format!("{key}: {what}"),
        }
    })
}

/// The configuration by its fields' names, in plain numbers.
pub(crate) fn plain(config: &impl Serialize) -> Map<String, Value> {
    let value = serde_json::to_value(config).expect("a configuration is plain data");
    let Value::Object(table) = value else { unreachable!("a configuration is a table") };
    table
}

/// The configuration as a table that reads back: keys without units, amounts with theirs, and
/// `off` for what is not set.
pub(crate) fn written(config: &impl Serialize) -> Map<String, Value> {
    in_words(plain(config))
}

fn in_words(table: Map<String, Value>) -> Map<String, Value> {
    table
        .into_iter()
        .map(|(field, value)| {
            let text = Unit::of(&field).zip(value.as_u64()).map(|(unit, n)| unit.written(n));
            let value = match text {
                Some(text) => text.into(),
                None => match value {
                    Value::Null => "off".into(),
                    Value::Object(inner) => Value::Object(in_words(inner)),
                    other => other,
                },
            };
            (String::from(key_of(&field)), value)
        })
        .collect()
}

/// The table with nothing under the keys that are off.
pub(crate) fn with_nothing_for_off(mut table: Map<String, Value>) -> Value {
    for value in table.values_mut() {
        match value {
            Value::Object(inner) => *value = with_nothing_for_off(std::mem::take(inner)),
            Value::String(word) if word == "off" => *value = Value::Null,
            _ => {}
        }
    }
    Value::Object(table)
}

/// What a field's name ends in. The same rule as `olaf.values.units` of Python.
#[derive(Clone, Copy, Debug)]
enum Unit {
    /// With the nanoseconds of 1.
    Time(u64),
    Rate,
    Size,
}

impl Unit {
    const SUFFIXES: [(&str, Self); 6] = [
        ("_ns", Self::Time(1)),
        ("_us", Self::Time(1_000)),
        ("_ms", Self::Time(1_000_000)),
        ("_s", Self::Time(1_000_000_000)),
        ("_bps", Self::Rate),
        ("_bytes", Self::Size),
    ];

    fn of(field: &str) -> Option<Self> {
        Self::SUFFIXES.iter().find(|(suffix, _)| field.ends_with(suffix)).map(|(_, unit)| *unit)
    }

    /// The number that a field holds, of a text with a unit.
    fn read(self, text: &str) -> Result<u64, String> {
        match self {
            Self::Time(factor) => {
                let ns = units::parse_time(text).map_err(|error| error.to_string())?;
                if !ns.is_multiple_of(factor) {
                    return Err(format!(
                        "must be a whole number of {}",
                        units::format_time(factor)
                    ));
                }
                Ok(ns / factor)
            }
            Self::Size => units::parse_size(text).map_err(|error| error.to_string()),
            Self::Rate => match text.trim().parse::<f64>() {
                Ok(_) => Err("a rate needs its unit: bit, kbit, mbit, gbit or tbit".into()),
                Err(_) => BitsPerSecond::parse(text)
                    .map(BitsPerSecond::get)
                    .map_err(|error| error.to_string()),
            },
        }
    }

    fn written(self, number: u64) -> String {
        match self {
            Self::Time(factor) => units::format_time(number.saturating_mul(factor)),
            Self::Size => units::format_size(number),
            Self::Rate => BitsPerSecond::new(number).map_or("0".into(), units::format_rate),
        }
    }
}

/// The key that a file has for a field: `silent_after` for `silent_after_ms`.
fn key_of(field: &str) -> &str {
    // `aggregate` alone is another key.
    if field == "aggregate_ms" {
        return "aggregate_within";
    }
    let suffix = Unit::SUFFIXES.iter().find(|(suffix, _)| field.ends_with(suffix));
    suffix.map_or(field, |(suffix, _)| &field[..field.len() - suffix.len()])
}

/// The table with each amount under its field's name and as a plain number.
fn in_plain_numbers<'a>(
    mut table: Map<String, Value>,
    fields: impl Iterator<Item = &'a str>,
) -> Result<Map<String, Value>, String> {
    for field in fields {
        let Some(unit) = Unit::of(field) else { continue };
        let key = key_of(field);
        let bare = table.remove(key);
        if bare.is_some() && table.contains_key(field) {
            return Err(format!("{key} and {field} are both given: give one of them"));
        }
        let under = if bare.is_some() { key } else { field };
        let number = match bare.or_else(|| table.get(field).cloned()) {
            Some(Value::String(text)) => {
                unit.read(&text).map_err(|why| format!("{under} = {text:?}: {why}"))?
            }
            // Only the key with the unit in its name says what a number means.
            Some(Value::Number(number)) if under == key => {
                let text = number.to_string();
                unit.read(&text).map_err(|why| format!("{key} = {text}: {why}"))?
            }
            Some(other) => {
                table.insert(field.into(), other);
                continue;
            }
            None => continue,
        };
        table.insert(field.into(), number.into());
    }
    Ok(table)
}

/// The names of a configuration's fields, as its reader asks for them.
fn fields<T: DeserializeOwned>() -> &'static [&'static str] {
    struct Asked(&'static [&'static str]);
    impl<'de> Deserializer<'de> for &mut Asked {
        type Error = NoValue;
        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, NoValue> {
            Err(NoValue::custom("only asked for its fields"))
        }
        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            visitor: V,
        ) -> Result<V::Value, NoValue> {
            self.0 = fields;
            self.deserialize_any(visitor)
        }
        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
            unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }
    let mut asked = Asked(&[]);
    let _ = T::deserialize(&mut asked);
    asked.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClientConfig, ServerConfig, SwitchConfig};
    use std::time::Duration;

    fn switch(json: &str) -> Result<SwitchConfig, String> {
        SwitchConfig::from_json(json).map_err(|error| error.to_string())
    }

    #[test]
    fn both_ways_to_write_an_amount_are_the_same() {
        let new = r#"{"upstream": "a:1", "silent_after": "3s", "uplink": "400kbit"}"#;
        let old = r#"{"upstream": "a:1", "silent_after_ms": 3000, "uplink_bps": 400000}"#;
        let (new, old) = (switch(new).expect("new"), switch(old).expect("old"));
        assert_eq!(
            (plain(&new)["silent_after_ms"].as_u64(), plain(&new)["uplink_bps"].as_u64()),
            (Some(3000), Some(400_000))
        );
        assert_eq!(written(&new), written(&old));
        let server = ServerConfig::from_json(r#"{"aggregate_within": "1s", "aggregate": "round"}"#);
        assert_eq!(plain(&server.expect("a server"))["aggregate_ms"], 1000);
        let client = ClientConfig::from_json(r#"{"mtu": "9kB", "keepalive": "20ms"}"#);
        let client = client.expect("a client");
        assert_eq!(
            (client.mtu_bytes, client.options.keepalive),
            (Some(9000), Duration::from_millis(20))
        );
    }

    #[test]
    fn a_wrong_amount_names_its_key_and_what_may_be_written() {
        for (json, told) in [
            (r#"{"silent_after": 3}"#, "silent_after = 3: a time needs its unit: ns, us, ms"),
            (r#"{"silent_after_ms": "soon"}"#, "silent_after_ms = \"soon\": a time is a number"),
            (r#"{"silent_after": "1us"}"#, "must be a whole number of 1ms"),
            (r#"{"uplink": 400}"#, "uplink = 400: a rate needs its unit"),
            (r#"{"active": "1s", "active_ms": 1}"#, "active and active_ms are both given"),
            (r#"{"active": true}"#, "active_ms: invalid type: boolean"),
            (r#"{"receive_loss": {"probability": "x"}}"#, "receive_loss.probability: invalid type"),
            (r#"{"slot": 4}"#, "unknown field `slot`, expected one of `active_ms`"),
            (r#"{"queue": "lifo"}"#, "queue = \"lifo\": must be olaf, fifo or freshest"),
            (r#"{"uplink_bps": 0}"#, "uplink_bps = 0: must be from 1 to 10000000000000"),
            (r#"{"max_hops": 300}"#, "max_hops: invalid value: integer `300`"),
            (r#"{"routes": {"x": "a:1"}}"#, "routes"),
        ] {
            let json = json.replacen('{', r#"{"upstream": "a:1", "#, 1);
            let error = switch(&json).expect_err(told);
            assert!(error.contains(told) && error.contains("switch configuration"), "{error}");
        }
    }

    #[test]
    fn of_two_wrong_keys_one_is_named() {
        let error = switch(r#"{"upstream": "a:1", "slots": true, "active_ms": true}"#);
        assert!(error.expect_err("two are wrong").contains("active_ms: invalid type"));
        let error = switch("{}").expect_err("no upstream");
        assert_eq!(error, "switch configuration: missing key `upstream`");
    }

    #[test]
    fn what_is_written_reads_back() {
        let table = written(&ServerConfig::default());
        assert_eq!(table["silent_after"], "2s");
        assert_eq!(table["core"], "off");
        let again = ServerConfig::from_table(table.clone()).expect("its own words");
        assert_eq!(written(&again), table);
    }

    #[test]
    fn no_two_fields_have_one_key() {
        let tables = [
            plain(&SwitchConfig::default()),
            plain(&ServerConfig::default()),
            plain(&ClientConfig::default()),
        ];
        for fields in tables {
            let mut keys: Vec<_> = fields.keys().map(|field| key_of(field)).collect();
            assert!(keys.len() > 5, "{keys:?}");
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), fields.len());
        }
    }
}
