//! The ends of asynchronous learning (OLAF): workers push updates and pull models; a parameter
//! server applies the updates and answers.

pub mod layout;
pub mod probe;
pub(crate) mod round_trip;
mod segments;
pub mod server;
mod signing;
pub mod worker;

pub use layout::{Layout, LayoutError, NamedArray};
pub use olaf_engine::party::Shape;
pub use probe::{Probe, ProbeConfig};
pub use server::{Server, ServerConfig};
pub use worker::{Worker, WorkerConfig};
