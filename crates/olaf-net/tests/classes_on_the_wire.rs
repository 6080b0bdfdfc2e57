//! The traffic class that a socket is given is the one in the IP header, and the one that the
//! receiver reports.
//!
//! Two processes in network namespaces of their own, joined by a veth pair: one sends, the other
//! receives and captures each packet with a packet socket. Where namespaces cannot be made, the
//! test says so and is skipped; with `OLAF_REQUIRE_NAMESPACES=1` it fails.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test without a harness")]

#[cfg(not(all(target_os = "linux", not(feature = "portable"))))]
fn main() {
    println!("classes_on_the_wire: SKIPPED: only Linux carries the whole traffic class");
}

#[cfg(all(target_os = "linux", not(feature = "portable")))]
fn main() -> std::process::ExitCode {
    match std::env::var(wire::ROLE).as_deref() {
        Ok("sender") => wire::send(),
        Ok("receiver") => wire::receive(),
        _ => return wire::start(),
    }
    std::process::ExitCode::SUCCESS
}

#[cfg(all(target_os = "linux", not(feature = "portable")))]
#[path = "classes_on_the_wire/wire.rs"]
mod wire;
