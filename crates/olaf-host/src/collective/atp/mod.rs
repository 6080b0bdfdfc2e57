//! The ends of ATP (`docs/design/031-atp.md`): workers, and the parameter servers that complete what
//! switches could not.

mod allocation;
mod factors;
mod fixed;
mod indices;
mod options;
mod seats;
mod server;
pub mod topology;
mod window;
mod worker;

pub use fixed::{SCALE, bound};
pub use options::{Allocation, Congestion, Factor, Options, Overflow};
pub use seats::{Path, Seat, Seating};
pub use server::{AtpServer, ServerConfig, ServerStatistics};
pub use topology::{Topology, TopologyError};
pub use window::AtpWindow;
pub use worker::{Worker, WorkerStatistics};
