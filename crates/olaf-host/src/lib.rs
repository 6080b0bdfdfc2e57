//! What the ends of the network decide: a worker, a parameter server, and how old a model is.
//!
//! Like `olaf-engine`, this crate takes time, chance and bytes as arguments and touches nothing
//! else. [`Host`] is the contract with a driver.

#![no_std]

extern crate alloc;

pub mod age;
pub mod host;
pub mod layout;
mod liveness;
pub mod recent_age;
mod round_trip;
mod segments;
pub mod server;
pub mod transmission;
pub mod worker;

pub use host::{Host, HostEvent, Refused};
pub use layout::{Layout, LayoutError, NamedArray};
pub use segments::Shape;
pub use server::{Server, ServerConfig};
pub use transmission::{Transmission, TransmissionConfig};
pub use worker::{Worker, WorkerConfig};
