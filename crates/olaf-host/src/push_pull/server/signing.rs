//! The server's signatures under the versions of its models.
//!
//! A version is hashed once, when its first signature is made; a segment that did not change since
//! the version before is not hashed again. A signature follows each whole model. Nobody acknowledges
//! it: a worker that misses it asks.

use super::Server;
use super::answers::Snapshot;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_engine::party::{Allowance, Shape};
use olaf_engine::seal::Signer;
use olaf_engine::{Instant, PeerId, Refused};
use olaf_wire::{Address, Answer, AskSignature, Hash, JobId, Packet, Signature};

/// Questions that one worker may ask: each costs a hash of a hundred bytes, and at most one of a model.
pub(super) const QUESTIONS: Allowance = Allowance { burst: 16, every: Duration::from_millis(20) };
/// Versions of a job whose hashes are remembered: those that may still be on their way out.
const REMEMBERED: usize = 8;

/// What signs, and what was signed lately.
#[derive(Default)]
pub(super) struct Signing {
    signer: Option<Box<dyn Signer>>,
    hashed: BTreeMap<JobId, Hashed>,
    pub(super) made: u64,
}

/// The hashes of a job's models.
#[derive(Default)]
struct Hashed {
    /// The segments that were hashed last, with their hashes.
    segments: Vec<(Arc<Vec<f32>>, Hash)>,
    versions: VecDeque<(u32, Hash)>,
}

/// What a signature is of.
pub(super) struct Signed<'a> {
    pub(super) epoch: u32,
    pub(super) version: u32,
    pub(super) shape: Shape,
    pub(super) oldest: u32,
    pub(super) question: u64,
    pub(super) segments: &'a [Arc<Vec<f32>>],
}

impl Signing {
    pub(super) fn signs(&self, job: JobId) -> bool {
        self.signer.as_ref().is_some_and(|signer| signer.signs(job.0))
    }

    /// The signature for the receiver at `address`; none where the job has no key here.
    pub(super) fn sign(&mut self, address: Address, of: &Signed<'_>) -> Option<Signature> {
        let signer = self.signer.as_deref().filter(|signer| signer.signs(address.job.0))?;
        let hashed = self.hashed.entry(address.job).or_default();
        let has_model = !of.segments.is_empty();
        let hash =
            if has_model { hashed.of(signer, of.version, of.segments) } else { Hash::default() };
        let shape = if has_model { of.shape } else { Shape { parameters: 0, segment_lanes: 0 } };
        let unsigned = Signature {
            address,
            version: of.version,
            parameters: shape.parameters,
            segment_lanes: shape.segment_lanes,
            epoch: of.epoch,
            oldest: of.oldest,
            question: of.question,
            hash,
            tag: [0; 16],
        };
        self.made += 1;
        Some(Signature { tag: signer.tag(address.job.0, &unsigned.signed()), ..unsigned })
    }
}

impl Hashed {
    fn of(&mut self, signer: &dyn Signer, version: u32, segments: &[Arc<Vec<f32>>]) -> Hash {
        if let Some((_, known)) = self.versions.iter().find(|(known, _)| *known == version) {
            return *known;
        }
        let before = core::mem::take(&mut self.segments);
        self.segments = (0..)
            .zip(segments)
            .map(|(at, segment)| {
                let same = before.get(at).filter(|(known, _)| Arc::ptr_eq(known, segment));
                let hash = same.map_or_else(|| signer.hash_lanes(segment), |(_, hash)| *hash);
                (segment.clone(), hash)
            })
            .collect();
        let hashes: Vec<Hash> = self.segments.iter().map(|(_, hash)| *hash).collect();
        let whole = signer.hash_hashes(&hashes);
        if self.versions.len() == REMEMBERED {
            self.versions.pop_front();
        }
        self.versions.push_back((version, whole));
        whole
    }
}

impl Server {
    /// Signs the versions of the models of all jobs that `signer` has secrets of.
    pub fn sign_models(&mut self, signer: Box<dyn Signer>) {
        self.answers.signing.signer = Some(signer);
    }

    /// The signature of the version that an answer has segments of.
    pub(super) fn sign(
        &mut self,
        answer: &Answer,
        shape: Shape,
        segments: &Snapshot,
    ) -> Option<Signature> {
        let (epoch, version) = (answer.epoch, answer.model_version);
        let of = Signed { epoch, version, shape, oldest: version, question: 0, segments };
        self.answers.signing.sign(answer.address, &of)
    }

    /// Answers a worker that has no signature for a version, or does not know whether this life of the
    /// server is the present one.
    pub(super) fn handle_ask_signature(
        &mut self,
        now: Instant,
        from: PeerId,
        packet: &Packet<'_>,
    ) -> Result<(), Refused> {
        let ask = AskSignature::parse(packet).map_err(Refused::Malformed)?;
        let id = ask.address.job;
        let job = self.jobs.get_mut(&id).ok_or(Refused::UnknownJob)?;
        let member = job.member(from, &ask.address)?;
        member.liveness.note(now);
        if !self.answers.proofs.is_proven(&(from, id)) {
            return Err(Refused::NotProven);
        }
        if !self.answers.signing.signs(id) {
            return Err(Refused::CannotSign);
        }
        if !member.questions.take(now, QUESTIONS) {
            return Err(Refused::TooOften);
        }
        let (version, snapshot) =
            job.snapshot(ask.version).map_or_else(Default::default, |(v, s, _)| (v, s));
        let segments: &Snapshot = &snapshot;
        let signed = Signed {
            epoch: self.epoch,
            version,
            shape: job.shape,
            oldest: job.oldest_kept().unwrap_or(version).min(version),
            question: ask.question,
            segments,
        };
        if let Some(signature) = self.answers.signing.sign(ask.address, &signed) {
            self.answers.signature(from, signature);
        }
        Ok(())
    }
}
