//! Links: when the next datagram may leave, and which.

pub mod egress;
pub mod pacer;
