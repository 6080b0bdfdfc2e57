//! Olaf over UDP: sockets, clocks and threads around the pure crates.
//!
//! What this crate is: the body of a switch, a server and a worker (`roles`, `client`, and `sum` for
//! a worker that sums). A [`Switch`] and a [`Server`] each run one socket in one thread of their own;
//! a [`Client`] sends from the caller's thread and receives in one of its own. Datagrams travel in
//! batches, and with segmentation offload where the kernel has it (`io`, `driver`). Beside them are
//! checkpoints on disk, key files, and what an operator sees over HTTP (`watch`).
//!
//! What it is not: it decides nothing about updates. `olaf-engine` and `olaf-host` decide which
//! updates merge, which parties get an answer and when the next update leaves. They take the bytes
//! and the time that this crate hands them.

mod checkpoint;
mod client;
mod clock;
mod defaults;
mod driver;
mod error;
mod io;
mod json;
pub mod keys;
pub mod logging;
mod random;
mod roles;
mod sum;
mod system;
mod versions;
pub mod watch;

pub use client::{Client, ClientConfig, Joining, Probing, ProbingConfig};
pub use defaults::defaults;
pub use error::{AskError, ClientError, StartError};
pub use io::{Batch, Burst, Inbox, ReceiveLoss, Socket};
pub use roles::{
    EngineKind, JobConfig, Server, ServerConfig, SharingConfig, SharingController, SharingHost,
    SharingHostConfig, Switch, SwitchConfig,
};
pub use sum::{Pending, Protocol, SumClient, SumConfig, SumError, SumFailure, SumJoining};
pub use versions::wire_versions;
