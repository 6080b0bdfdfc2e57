//! Switches: small engines over the shared tables, one for each protocol.

pub mod atp;
pub mod iswitch;
mod links;
pub mod native;
mod non_finite;
pub mod reduce;
pub mod trio;

pub use non_finite::NonFinite;
