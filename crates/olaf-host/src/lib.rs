//! What the ends of the network decide: a worker, a parameter server, and how old a model is.
//!
//! [`push_pull`] has the ends of asynchronous learning: a worker and a parameter server.
//! [`collective`] has those of sums: the workers of `reduce`, iSwitch, ATP and Trio-ML, and ATP's
//! server. [`transmission`] decides when a worker sends, [`age`] how old a model is.
//!
//! Like `olaf-engine`, this crate takes time, chance and bytes as arguments and touches nothing
//! else. Both ends are [`Engine`](olaf_engine::Engine)s, as switches are.

#![no_std]

extern crate alloc;

pub mod age;
pub mod collective;
pub mod json;
pub mod push_pull;
pub mod recent_age;
pub mod transmission;
pub mod whole;

pub use olaf_engine::Refused;
pub use push_pull::{
    Layout, LayoutError, NamedArray, Server, ServerConfig, Shape, Worker, WorkerConfig,
};
pub use transmission::{Transmission, TransmissionConfig};
