//! The roles that a process may play: a switch, a parameter server, a party of MINA's sharing.

mod atp;
mod exposure;
mod reduce;
mod server;
mod server_config;
mod sharing;
mod summing;
mod switch;
mod switch_config;
mod tenants;

pub(crate) use reduce::port_of;
pub use server::Server;
pub use server_config::ServerConfig;
pub use sharing::{SharingConfig, SharingController, SharingHost, SharingHostConfig};
pub use switch::Switch;
pub(crate) use switch::in_key;
pub use switch_config::{EngineKind, SwitchConfig};
pub use tenants::JobConfig;

/// Keys that a configuration may have, and that nobody is told of: `receive_loss` is for tests, and
/// `keys` for the program that starts a role.
pub(crate) const ONLY_WHERE_SET: &[&str] = &["receive_loss", "keys"];
