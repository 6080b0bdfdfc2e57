//! What `olaf-switch` and `olaf-server` share: options, configuration, the loop that reports.
//!
//! The same tables `[switch]` and `[server]`, defaults, event lines and exit codes as `olaf switch`
//! and `olaf server`; a test compares them. What these programs are not: they ask no verifier and
//! start no workers, which need Python.

mod configuration;
mod serving;

pub use configuration::{Common, Failure, Table, key_files, table};
pub use serving::{Role, finish, serve};
