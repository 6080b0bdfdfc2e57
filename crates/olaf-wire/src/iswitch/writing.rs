//! How a control message is written.

use super::offsets::{LONGEST_CONTROL, VERSION, ack, control, halt, join, leave, packets, set_h};
use super::values::{Ack, Control, Halt, Join, Leave};
use super::verbs::Action;
use crate::packet::Writer;

impl Control {
    /// Writes the message; returns the datagram's length.
    ///
    /// # Panics
    /// When `buf` is shorter than [`LONGEST_CONTROL`]: buffers are the caller's, not the network's.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        buf[..LONGEST_CONTROL].fill(0);
        let mut writer = Writer(buf);
        writer.put(control::ACTION, [self.action() as u8]);
        match self {
            Self::Join(message) => message.emit(&mut writer),
            Self::Leave(Leave { generation, job, session }) => {
                writer.put(control::GENERATION, [*generation]);
                writer.put(leave::JOB, job.0.to_be_bytes());
                writer.put(leave::SESSION, session.0.to_be_bytes());
                leave::LEN
            }
            Self::Reset { generation } => {
                writer.put(control::GENERATION, [*generation]);
                control::LEN
            }
            Self::SetH { generation, h } => {
                writer.put(control::GENERATION, [*generation]);
                writer.put(set_h::H, h.to_be_bytes());
                set_h::LEN
            }
            Self::FBcast(message) | Self::Help(message) => {
                writer.put(control::GENERATION, [message.generation]);
                writer.put(packets::SENT_AT_US, message.sent_at_us.to_be_bytes());
                writer.put(packets::INDEX, message.index.to_be_bytes());
                writer.put(packets::MASK, message.mask.to_be_bytes());
                packets::LEN
            }
            Self::Halt(Halt { generation, reason, culprit, index, calls }) => {
                writer.put(control::GENERATION, [*generation]);
                writer.put(control::CODE, [*reason as u8]);
                writer.put(halt::CULPRIT, culprit.to_be_bytes());
                writer.put(halt::INDEX, index.to_be_bytes());
                writer.put(halt::CALLS, [*calls]);
                halt::LEN
            }
            Self::Ack(message) => message.emit(&mut writer),
        }
    }
}

impl Join {
    fn emit(&self, writer: &mut Writer<'_>) -> usize {
        writer.put(control::GENERATION, [self.generation]);
        writer.put(control::CODE, [VERSION]);
        writer.put(control::WHAT, [self.sender as u8]);
        writer.put(join::JOB, self.job.0.to_be_bytes());
        writer.put(join::SESSION, self.session.0.to_be_bytes());
        writer.put(join::RANK, self.rank.to_be_bytes());
        writer.put(join::WORKERS, self.workers.to_be_bytes());
        writer.put(join::CONTRIBUTORS, self.contributors.to_be_bytes());
        writer.put(join::PACKET_FLOATS, self.packet_floats.to_be_bytes());
        writer.put(join::OPERATIONS, self.operations.to_be_bytes());
        writer.put(join::PROGRAM, self.program.to_be_bytes());
        if self.nonce == 0 {
            return join::LEN;
        }
        writer.put(join::NONCE, self.nonce.to_be_bytes());
        join::LEN_WITH_NONCE
    }
}

impl Ack {
    fn emit(&self, writer: &mut Writer<'_>) -> usize {
        writer.put(control::GENERATION, [self.generation]);
        writer.put(control::CODE, [self.outcome as u8]);
        writer.put(control::WHAT, [self.action as u8]);
        writer.put(ack::SENT_AT_US, self.sent_at_us.to_be_bytes());
        writer.put(ack::INDEX, self.index.to_be_bytes());
        if self.action != Action::Join {
            return ack::LEN;
        }
        let admission = self.admission.unwrap_or_default();
        writer.put(ack::MEMBER, admission.member.to_be_bytes());
        writer.put(ack::RANK, admission.rank.to_be_bytes());
        writer.put(ack::WORKERS, admission.workers.to_be_bytes());
        writer.put(ack::HERE, admission.here.to_be_bytes());
        writer.put(ack::SLOTS, admission.slots.to_be_bytes());
        writer.put(ack::PACKET_FLOATS, admission.packet_floats.to_be_bytes());
        writer.put(ack::OPERATIONS, admission.operations.to_be_bytes());
        writer.put(ack::SESSION, admission.session.0.to_be_bytes());
        if admission.nonce == 0 {
            return ack::LEN_OF_JOIN;
        }
        writer.put(ack::NONCE, admission.nonce.to_be_bytes());
        ack::LEN_WITH_NONCE
    }
}
