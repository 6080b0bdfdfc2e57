//! The switch of `reduce` (`docs/design/028-reduce.md`).

mod config;

pub use config::{Config, NonFinite};
