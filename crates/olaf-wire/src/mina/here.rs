//! "I have launched it": the message of the rehearsal that stands in for an all-reduce.
//!
//! ```text
//! 0 magic "HERE"   4 job   12 index   20 rank   22 in network   23 answer   24 end
//! ```

use super::JobId;
use crate::packet::Refusal;

/// A host has launched an all-reduce. It tells the other hosts of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Here {
    /// The job.
    pub job: JobId,
    /// The sender's rank in the job.
    pub rank: u16,
    /// The index of the last operation that the sender has launched.
    pub index: u64,
    /// That operation uses the switches. Hosts that differ in it notice.
    pub in_network: bool,
    /// It answers a host that is behind, and wants no answer itself.
    pub answer: bool,
}

impl Here {
    /// Bytes of every such message.
    pub const LEN: usize = 24;
    /// First bytes of every such message.
    pub const MAGIC: [u8; 4] = *b"HERE";

    /// Writes the message.
    #[must_use]
    pub fn emit(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..4].copy_from_slice(&Self::MAGIC);
        bytes[4..12].copy_from_slice(&self.job.0.to_be_bytes());
        bytes[12..20].copy_from_slice(&self.index.to_be_bytes());
        bytes[20..22].copy_from_slice(&self.rank.to_be_bytes());
        bytes[22] = u8::from(self.in_network);
        bytes[23] = u8::from(self.answer);
        bytes
    }

    /// Reads a message.
    ///
    /// # Errors
    /// The [`Refusal`] that says what is wrong with the bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let bytes: &[u8; Self::LEN] = super::codec::exactly(bytes, Self::MAGIC)?;
        let flag = |at: usize, field| match bytes[at] {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Refusal::BadField(field)),
        };
        Ok(Self {
            job: JobId(super::codec::u64_at(bytes, 4)),
            rank: u16::from_be_bytes([bytes[20], bytes[21]]),
            index: super::codec::u64_at(bytes, 12),
            in_network: flag(22, "in_network")?,
            answer: flag(23, "answer")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_was_written_is_read() {
        let here = Here { job: JobId(3), rank: 1, index: 7, in_network: true, answer: false };
        let bytes = here.emit();
        assert_eq!(Here::parse(&bytes), Ok(here));
        let other = |at: usize| {
            let mut bytes = bytes;
            bytes[at] = 2;
            Here::parse(&bytes)
        };
        assert_eq!(Here::parse(b"MINA"), Err(Refusal::NotOurs));
        assert_eq!(Here::parse(&bytes[..23]), Err(Refusal::Truncated { have: 23, need: 24 }));
        assert_eq!(other(22), Err(Refusal::BadField("in_network")));
        assert_eq!(other(23), Err(Refusal::BadField("answer")));
    }
}
