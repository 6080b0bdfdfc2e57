//! Studies of one queue or one path: recorded arrivals, scenarios, sweeps over all orders, and the
//! delivery of one model.

pub mod delivery;
pub mod replay;
pub mod scenario;
pub mod sweep;
