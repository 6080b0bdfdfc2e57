//! The messages of iSwitch as the paper prints them (Figure 5, Table 2; `docs/design/030-iswitch.md`).
//!
//! A data packet is a [`Seg`] of 8 bytes and raw floats: [`DataPacket`]. A control message is an
//! [`Action`] of 1 byte and a Value: [`Control`]. No byte of a datagram says which of the two it is:
//! the class of service in the IP header does ([`CONTROL_CLASS`], [`DATA_CLASS`]).

mod data;
pub mod offsets;
mod reading;
mod values;
mod verbs;
mod writing;

pub use data::{DataPacket, Seg, emit_seg};
pub use offsets::{
    ANY, CONTROL_CLASS, DATA_CLASS, MAX_INDEX, MAX_WORKERS, MAX_WORKERS_OF_NUMBERED, PACKET_FLOATS,
    SEG,
};
pub use reading::{generation_of, job_of, join_of_another_version};
pub use values::{Ack, Admission, Control, Halt, Join, Leave, Packets, program_of};
pub use verbs::{Action, Outcome, Sender};
