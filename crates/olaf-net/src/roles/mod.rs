//! The roles that a process may play: a switch, a parameter server, a party of MINA's sharing.

mod atp;
mod reduce;
mod server;
mod server_config;
mod sharing;
mod summing;
mod switch;
mod switch_config;

pub(crate) use reduce::port_of;
pub use server::Server;
pub use server_config::ServerConfig;
pub use sharing::{SharingConfig, SharingController, SharingHost, SharingHostConfig};
pub use switch::Switch;
pub use switch_config::{EngineKind, SwitchConfig};

/// Keys that a written configuration has only where they are set: they are for tests.
pub(crate) const ONLY_WHERE_SET: &[&str] = &["receive_loss"];
