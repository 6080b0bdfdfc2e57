//! What `olaf-switch` and `olaf-server` share: options, configuration, the loop that reports.
//!
//! The same tables `[switch]` and `[server]`, defaults, event lines and exit codes as `olaf switch`
//! and `olaf server`; a test compares them. What these programs are not: they ask no verifier and
//! start no workers, which need Python.

mod configuration;
mod serving;

pub use configuration::{Common, Failure, LogFormat, Table, key_files, table};
pub use serving::{Role, finish, serve};

/// The version of the program, and those of the messages that it speaks.
#[must_use]
pub fn version() -> String {
    let wire = olaf_net::wire_versions().map(|(name, version)| format!("{name} {version}"));
    format!("{} (wire versions: {})", env!("CARGO_PKG_VERSION"), wire.join(", "))
}
