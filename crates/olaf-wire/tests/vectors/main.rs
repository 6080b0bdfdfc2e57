//! The bytes of `vectors/wire/<protocol>/*.json`: one message of each kind, its fields and its bytes.
//!
//! After an intended change of a format, `OLAF_FILL_VECTORS=1` writes the bytes anew.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, missing_docs)]

mod atp;
mod iswitch;
mod keys;
mod mina;
mod native;
mod reduce;
mod trio;

use serde_json::{Value, json};
use std::fmt::Write;

/// The messages of a file. With `OLAF_FILL_VECTORS` in the environment, each gets the bytes that
/// `written` makes of its fields, and the file is written anew; there is nothing to check then.
fn messages(file: &str, written: impl Fn(&Value) -> Vec<u8>) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    let mut messages: Vec<Value> = serde_json::from_str(&text).unwrap();
    if std::env::var_os("OLAF_FILL_VECTORS").is_some() {
        for message in &mut messages {
            message["hex"] = json!(hex(&written(message)));
        }
        let lines: Vec<String> = messages.iter().map(Value::to_string).collect();
        std::fs::write(file, format!("[\n{}\n]\n", lines.join(",\n"))).unwrap();
    }
    messages
}

fn bytes_of(message: &Value) -> Vec<u8> {
    unhex(message["hex"].as_str().unwrap())
}

fn u64_of(message: &Value, field: &str) -> u64 {
    message[field].as_u64().unwrap_or_else(|| panic!("{field} of {message}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

fn unhex(hex: &str) -> Vec<u8> {
    let digit = |digit: u8| u8::try_from((digit as char).to_digit(16).unwrap()).unwrap();
    hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}
