//! What the ends of the network decide: a worker, a parameter server, and how old a model is.
//!
//! Like `olaf-engine`, this crate takes time, chance and bytes as arguments and touches nothing
//! else. [`Host`] is the contract with a driver.

#![no_std]

extern crate alloc;

pub mod age;
pub mod host;
mod liveness;
pub mod push_pull;
pub mod recent_age;
pub mod transmission;

pub use host::{Host, HostEvent, Refused};
pub use push_pull::{
    Layout, LayoutError, NamedArray, Server, ServerConfig, Shape, Worker, WorkerConfig,
};
pub use transmission::{Transmission, TransmissionConfig};
