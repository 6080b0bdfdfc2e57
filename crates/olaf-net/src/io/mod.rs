//! UDP: sockets with batches and offloads, the addresses of peers, and how a thread waits.

pub(crate) mod address;
pub(crate) mod inbox;
pub(crate) mod loss;
pub(crate) mod outgoing;
pub(crate) mod peers;
pub(crate) mod socket;
pub(crate) mod statistics;
pub(crate) mod waker;

pub use inbox::{Burst, Inbox};
pub use loss::ReceiveLoss;
pub use socket::{Batch, Socket};
