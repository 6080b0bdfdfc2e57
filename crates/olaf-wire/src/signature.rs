//! The server's signature under a version of its model, and a worker's question for one.

use crate::offsets::{ask_signature as asked, signature as at};
use crate::packet::{Address, Kind, Packet, Refusal, emit_common};

/// Bytes of a hash of a model.
pub const HASH_BYTES: usize = 32;
/// Bytes of a signature's tag.
pub const SIGNATURE_TAG_BYTES: usize = 16;
/// Bytes that a tag is of: the job, and all fields but the tag.
pub const SIGNED_BYTES: usize = 4 + at::TAG - at::VERSION;

/// A hash: of a segment's lanes, or of a model, which is the hash of its segments' hashes one after the
/// other. Lanes are hashed as they travel.
pub type Hash = [u8; HASH_BYTES];
/// The server's tag, which a switch cannot make.
pub type SignatureTag = [u8; SIGNATURE_TAG_BYTES];

/// What the server says of one version of its model. It follows the version's segments, and answers
/// [`AskSignature`]. The tag is good for every receiver: a switch passes the message on untouched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The cluster that is answered, or the worker that asked.
    pub address: Address,
    /// The version; 0 where the server has no model.
    pub version: u32,
    /// Parameters of the model; 0 where the server has none.
    pub parameters: u32,
    /// Lanes of a segment, and so how the model is cut; 0 where the server has none.
    pub segment_lanes: u32,
    /// The server's life.
    pub epoch: u32,
    /// The oldest version that the server still had when it signed.
    pub oldest: u32,
    /// The number of the question that is answered: it shows that the signature is no recording. 0:
    /// nobody asked.
    pub question: u64,
    /// The model.
    pub hash: Hash,
    /// The tag of [`Signature::signed`].
    pub tag: SignatureTag,
}

impl Signature {
    /// Reads a signature. Whether its tag is good is the receiver's question.
    ///
    /// # Errors
    /// [`Refusal::BadField`] where fields contradict each other.
    pub fn parse(packet: &Packet<'_>) -> Result<Self, Refusal> {
        if packet.kind() != Kind::Signature {
            return Err(Refusal::BadField("kind"));
        }
        if packet.u32(at::ZERO) != 0 {
            return Err(Refusal::BadField("zero"));
        }
        let said = Self {
            address: packet.address(),
            version: packet.u32(at::VERSION),
            parameters: packet.u32(at::PARAMETERS),
            segment_lanes: packet.u32(at::SEGMENT_LANES),
            epoch: packet.u32(at::EPOCH),
            oldest: packet.u32(at::OLDEST),
            question: packet.u64(at::QUESTION),
            hash: packet.array(at::HASH),
            tag: packet.array(at::TAG),
        };
        let has_model = said.parameters != 0;
        if said.epoch == 0 {
            return Err(Refusal::BadField("epoch"));
        }
        if said.segment_lanes as usize > crate::offsets::MAX_SEGMENT_LANES
            || (said.segment_lanes != 0) != has_model
        {
            return Err(Refusal::BadField("segment_lanes"));
        }
        if said.oldest > said.version {
            return Err(Refusal::BadField("oldest"));
        }
        // That there is no model is said to those alone that ask.
        if !has_model && (said.version != 0 || said.hash != Hash::default() || said.question == 0) {
            return Err(Refusal::BadField("parameters"));
        }
        Ok(said)
    }

    /// The bytes that the tag is of. Cluster, worker and session are not among them.
    #[must_use]
    pub fn signed(&self) -> [u8; SIGNED_BYTES] {
        let mut message = [0; at::LEN];
        self.emit(&mut message);
        let mut signed = [0; SIGNED_BYTES];
        signed[..4].copy_from_slice(&self.address.job.0.to_be_bytes());
        signed[4..].copy_from_slice(&message[at::VERSION..at::TAG]);
        signed
    }

    /// Writes the signature; returns the datagram's length.
    ///
    /// # Panics
    /// When `buf` is shorter than that.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let mut writer = emit_common(buf, Kind::Signature, &self.address);
        writer.put(at::VERSION, self.version.to_be_bytes());
        writer.put(at::PARAMETERS, self.parameters.to_be_bytes());
        writer.put(at::SEGMENT_LANES, self.segment_lanes.to_be_bytes());
        writer.put(at::EPOCH, self.epoch.to_be_bytes());
        writer.put(at::OLDEST, self.oldest.to_be_bytes());
        writer.put(at::QUESTION, self.question.to_be_bytes());
        writer.put(at::HASH, self.hash);
        writer.put(at::TAG, self.tag);
        at::LEN
    }
}

/// A worker's question for the signature under a version. A server that no longer has the version
/// answers with the signature under its newest. The answer is at most 64 bytes longer than the
/// question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskSignature {
    /// The worker.
    pub address: Address,
    /// The version; 0 is "your newest".
    pub version: u32,
    /// A number that nobody can guess, which the answer repeats; not 0.
    pub question: u64,
}

impl AskSignature {
    /// Reads a question.
    ///
    /// # Errors
    /// [`Refusal::BadField`] for another kind, or a question without a number.
    pub fn parse(packet: &Packet<'_>) -> Result<Self, Refusal> {
        if packet.kind() != Kind::AskSignature {
            return Err(Refusal::BadField("kind"));
        }
        if packet.u32(asked::ZERO) != 0 {
            return Err(Refusal::BadField("zero"));
        }
        match packet.u64(asked::QUESTION) {
            0 => Err(Refusal::BadField("question")),
            question => {
                let version = packet.u32(asked::VERSION);
                Ok(Self { address: packet.address(), version, question })
            }
        }
    }

    /// Writes the question; returns the datagram's length.
    ///
    /// # Panics
    /// When `buf` is shorter than that.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let mut writer = emit_common(buf, Kind::AskSignature, &self.address);
        writer.put(asked::VERSION, self.version.to_be_bytes());
        writer.put(asked::QUESTION, self.question.to_be_bytes());
        asked::LEN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ClusterId, JobId, Session, WorkerId};

    #[test]
    fn all_that_a_signature_says_is_under_its_tag_but_not_for_whom_it_is() {
        let address = Address {
            job: JobId(1),
            cluster: ClusterId(2),
            worker: WorkerId(3),
            session: Session(4),
        };
        let one = Signature {
            address,
            version: 7,
            parameters: 100,
            segment_lanes: 50,
            epoch: 9,
            oldest: 5,
            question: 11,
            hash: [12; HASH_BYTES],
            tag: [13; SIGNATURE_TAG_BYTES],
        };
        let others = [
            Signature { address: Address { job: JobId(2), ..address }, ..one },
            Signature { version: 8, ..one },
            Signature { parameters: 101, ..one },
            Signature { segment_lanes: 51, ..one },
            Signature { epoch: 10, ..one },
            Signature { oldest: 6, ..one },
            Signature { question: 12, ..one },
        ];
        for other in others {
            assert_ne!(other.signed(), one.signed(), "{other:?}");
        }
        for at in 0..HASH_BYTES {
            let mut other = one;
            other.hash[at] ^= 1;
            assert_ne!(other.signed(), one.signed(), "byte {at} of the hash");
        }
        let to =
            Address { cluster: ClusterId(8), worker: WorkerId(8), session: Session(8), ..address };
        assert_eq!(Signature { address: to, tag: [0; 16], ..one }.signed(), one.signed());
    }
}
