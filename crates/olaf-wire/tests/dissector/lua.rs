//! Protocols as Lua tables, in front of the part that reads them (`runtime.lua`).

use crate::protocol::{As, Field, Message, Protocol};
use olaf_wire::sealed::offsets::trailer;
use std::fmt::Write;

const HEADER: &str = "\
-- A Wireshark dissector for the datagrams of Olaf, and for iSwitch, ATP, Trio-ML and MINA's sharing
-- as Olaf speaks them. docs/wireshark.md says how to use it.
--
-- Made from crates/olaf-wire by `make dissector`: do not edit.

";

/// The whole dissector.
pub(crate) fn written(all: &[Protocol]) -> String {
    let mut text = HEADER.to_owned();
    let seal = [("len", trailer::LEN), ("counter", trailer::COUNTER), ("tag", trailer::TAG)];
    let seal = seal.map(|(name, bytes)| format!("{name} = {bytes}")).join(", ");
    writeln!(text, "-- Bytes of the seal of a keyed datagram; counter and tag are from its end.")
        .and_then(|()| writeln!(text, "local seal = {{ {seal} }}\n\nlocal protocols = {{"))
        .and_then(|()| all.iter().try_for_each(|one| protocol(&mut text, one)))
        .and_then(|()| writeln!(text, "}}\n"))
        .expect("a string takes all that is written");
    text + include_str!("runtime.lua")
}

fn protocol(text: &mut String, one: &Protocol) -> std::fmt::Result {
    writeln!(text, "  {{")?;
    writeln!(text, "    name = \"{}\", title = \"{}\",", one.name, one.title)?;
    if let Some(magic) = one.magic {
        writeln!(text, "    magic = \"{}\",", String::from_utf8_lossy(&magic))?;
    }
    if !one.classes.is_empty() {
        let classes: Vec<_> = one.classes.iter().map(|class| format!("[{class}] = true")).collect();
        writeln!(text, "    classes = {{ {} }},", classes.join(", "))?;
    }
    if let Some(port) = one.port {
        writeln!(text, "    port = {port},")?;
    }
    writeln!(text, "    code = function(u, dscp) return {} end,", one.code)?;
    writeln!(text, "    common = {{")?;
    one.common.iter().try_for_each(|each| field(text, "      ", each))?;
    writeln!(text, "    }},\n    messages = {{")?;
    one.messages.iter().try_for_each(|each| message(text, each))?;
    writeln!(text, "    }},\n  }},")
}

fn message(text: &mut String, one: &Message) -> std::fmt::Result {
    writeln!(text, "      [{}] = {{\n        name = \"{}\",", one.code, one.name)?;
    if !one.len.is_empty() {
        writeln!(text, "        len = function(u, n) return {} end,", one.len)?;
    }
    if let Some((name, begin, behind)) = &one.rest {
        writeln!(
            text,
            "        rest = {{ \"{name}\", function(u) return {begin} end, {behind} }},"
        )?;
    }
    writeln!(text, "        fields = {{")?;
    one.fields.iter().try_for_each(|each| field(text, "          ", each))?;
    writeln!(text, "        }},\n      }},")
}

fn field(text: &mut String, indent: &str, one: &Field) -> std::fmt::Result {
    let read = match one.read {
        As::Uint => "uint",
        As::Int => "int",
        As::Double => "double",
        As::Bytes => "bytes",
        As::Bits(..) => "bits",
    };
    write!(text, "{indent}{{ \"{}\", {}, {}, \"{read}\"", one.name, one.at, one.bytes)?;
    if let As::Bits(first, len) = one.read {
        write!(text, ", first = {first}, len = {len}")?;
    }
    if !one.names.is_empty() {
        let names: Vec<_> =
            one.names.iter().map(|(value, name)| format!("[{value}] = \"{name}\"")).collect();
        write!(text, ", names = {{ {} }}", names.join(", "))?;
    }
    writeln!(text, " }},")
}
