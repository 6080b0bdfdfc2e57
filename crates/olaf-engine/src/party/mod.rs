//! Parties: which are alive and which are active, the shape of their model, which numbers of a
//! sender came, and how datagrams pass from hop to hop.

pub mod active;
pub mod arrivals;
pub mod bucket;
pub mod clip;
pub mod cookie;
pub mod deadlines;
pub mod draws;
pub mod ends;
pub mod liveness;
pub mod members;
pub mod pace;
pub mod places;
pub mod proof;
pub mod ruling;
pub mod shape;
pub mod tenants;

pub use arrivals::Arrivals;
pub use bucket::{Allowance, Bucket};
pub use clip::{Clip, Clipped, Clipping, Limits, Voter};
pub use cookie::Cookies;
pub use deadlines::Deadlines;
pub use draws::{Draws, Joins, Moved};
pub use ends::FlowEnds;
pub use liveness::{GONE, LOOKS, Liveness, Sign};
pub use members::{AtPeer, Members};
pub use pace::{Pace, Paces};
pub use places::gives_way;
pub use proof::{Chance, Proofs};
pub use ruling::Ruling;
pub use shape::Shape;
pub use tenants::{Tenant, Tenants};
