//! The sharing protocol over UDP (MINA §IV-B): the controller as a process, and one host of a job.
//!
//! `olaf_sched::protocol` decides everything, and the driver has socket, clock and thread. The two
//! engines here turn bytes into calls of a machine of the protocol, and its packets into bytes. A
//! [`SharingHost`] has MINA's two threads: the driver's thread answers the controller and the other
//! hosts, and a second thread launches the job's all-reduces in their recorded times. `rehearsal`
//! says what an all-reduce is here.

mod config;
mod controller;
mod host;
mod log;
mod refusals;
mod rehearsal;
mod waiting;

pub use config::{SharingConfig, SharingHostConfig};
pub use controller::SharingController;
pub use host::SharingHost;
