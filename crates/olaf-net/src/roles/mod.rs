//! The roles that a process may play: a switch, a parameter server, a party of MINA's sharing.

mod server;
mod sharing;
mod switch;

pub use server::{Server, ServerConfig};
pub use sharing::{SharingConfig, SharingController, SharingHost, SharingHostConfig};
pub use switch::{Switch, SwitchConfig};
