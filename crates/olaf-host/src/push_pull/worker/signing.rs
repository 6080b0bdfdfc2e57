//! Whether a model is the server's: a worker keeps a whole version back until it has the server's
//! signature under it, which no switch can make.
//!
//! The signature follows the model. Where it does not come the worker asks for it, and where no answer
//! comes within `silent_after` the version is refused. A signature is believed of one life of the
//! server only: the one that has answered a question of this worker's own, for a switch may hold
//! recordings of any other. Of that life nothing is taken that the server had given up by then.

use super::{Standing, Worker};
use crate::push_pull::signing::hash_of_model;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::time::Duration;
use olaf_engine::party::{Allowance, Bucket, Shape};
use olaf_engine::seal::Signer;
use olaf_engine::{Instant, Refused, WorkerEvent};
use olaf_wire::{AskSignature, Packet, Signature};

/// Signatures whose models are not whole yet.
const REMEMBERED: usize = 8;
/// Questions whose answers are still believed.
const QUESTIONS: usize = 4;
/// Questions that a worker asks, fewer than a server answers.
const ASKING: Allowance = Allowance { burst: 8, every: Duration::from_millis(25) };
/// How often it asks for a model again that was forged.
const AGAIN: Allowance = Allowance { burst: 4, every: Duration::from_millis(250) };
/// When keys were replaced, the server may sign with the ones before for this time.
const BEFORE: Duration = Duration::from_secs(30);
/// How often the worker tells of models that it refused. All of them are counted.
const LINES: Allowance = Allowance { burst: 4, every: Duration::from_secs(1) };

/// What a worker knows of signatures.
#[derive(Default)]
pub(super) struct Signatures {
    signer: Option<Box<dyn Signer>>,
    /// The signer before, and until when it is good: worker and server take up new keys at different times.
    before: Option<(Box<dyn Signer>, Instant)>,
    /// The life of the server that answered a question of this worker's.
    proven: Option<Proven>,
    /// The newest signatures with right tags, in the order in which they came. Those of another life of
    /// the server are of no use, and give way to newer ones.
    good: VecDeque<Signature>,
    /// Numbers of the last questions.
    questions: VecDeque<u64>,
    /// When the worker asks next.
    next: Option<Instant>,
    /// Questions in a row without a use.
    in_vain: u32,
    asking: Bucket,
    again: Bucket,
    lines: Bucket,
    pub(super) counts: Counts,
}

#[derive(Clone, Copy, Debug)]
struct Proven {
    epoch: u32,
    /// The oldest version that the server had then.
    oldest: u32,
}

/// What became of models and signatures.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Models that were taken with a right signature.
    pub(super) checked: u64,
    /// Models that are not what the server signed.
    pub(super) forged: u64,
    /// Models without a signature in time.
    pub(super) unsigned: u64,
    /// Signatures that are not the server's.
    pub(super) wrong: u64,
    /// Questions that were sent.
    pub(super) asked: u64,
}

impl Signatures {
    /// Returns true if a life that somebody names is another one than the one that was proved.
    pub(super) fn doubts(&self, epoch: u32) -> bool {
        self.proven.is_some_and(|proven| proven.epoch != epoch)
    }

    pub(super) const fn is_proven(&self) -> bool {
        self.proven.is_some()
    }

    pub(super) const fn next(&self) -> Option<Instant> {
        self.next
    }

    fn verify(&self, now: Instant, said: &Signature) -> bool {
        let before = self.before.iter().filter(|(_, until)| now < *until).map(|(before, _)| before);
        let mut signers = self.signer.iter().chain(before);
        signers.any(|signer| signer.verify(said.address.job.0, &said.signed(), &said.tag))
    }

    fn signature_of(&self, version: u32) -> Option<&Signature> {
        let epoch = self.proven?.epoch;
        let mut known = self.good.iter().filter(|good| !self.is_too_old(good));
        known.find(|good| (good.epoch, good.version) == (epoch, version))
    }

    /// Returns true if the server had given that version up before it answered this worker.
    fn is_too_old(&self, signature: &Signature) -> bool {
        self.proven.is_some_and(|proven| signature.version < proven.oldest)
    }

    fn remember(&mut self, signature: Signature) {
        let is_same =
            |of: &Signature| (of.epoch, of.version) == (signature.epoch, signature.version);
        self.good.retain(|known| !is_same(known));
        if self.good.len() == REMEMBERED {
            self.good.pop_front();
        }
        self.good.push_back(signature);
    }
}

impl Worker {
    /// Takes models from here on only with the server's signature. With the key of a switch alone it
    /// cannot check signatures, says so once, and takes models as they come.
    pub fn check_models(&mut self, signer: Box<dyn Signer>) {
        if signer.signs(self.config.address.job.0) {
            self.models.checked = true;
            self.signatures.signer = Some(signer);
        } else {
            self.events.push_back(WorkerEvent::ModelsUnchecked);
        }
    }

    /// As [`Worker::check_models`], where keys were replaced.
    pub(super) fn check_models_anew(&mut self, now: Instant, signer: Box<dyn Signer>) {
        let before = self.signatures.signer.take();
        self.signatures.before = before.map(|before| (before, now + BEFORE));
        self.check_models(signer);
    }

    pub(super) fn handle_signature(
        &mut self,
        now: Instant,
        packet: &Packet<'_>,
    ) -> Result<(), Refused> {
        let said = Signature::parse(packet).map_err(Refused::Malformed)?;
        self.for_me(&said.address)?;
        if self.signatures.signer.is_none() {
            return Ok(());
        }
        if !self.signatures.verify(now, &said) {
            self.signatures.counts.wrong += 1;
            self.tell(now, WorkerEvent::SignatureForged { version: said.version });
            return Err(Refused::WrongSignature);
        }
        self.heard_switch(now, 0);
        if said.question != 0 {
            self.prove_server(now, &said)?;
        } else if self.signatures.doubts(said.epoch) {
            // Of another life of the server, or a recording: the answer to a question says which.
            self.ask_for_proof(now);
            return Err(Refused::UnknownEpoch);
        }
        if said.parameters == 0 {
            return Ok(());
        }
        let shape = self.shape.ok_or(Refused::UnknownWorker)?;
        let cut = Shape { parameters: said.parameters, segment_lanes: said.segment_lanes };
        if cut != shape {
            return Err(Refused::WrongSize);
        }
        if self.signatures.is_too_old(&said) {
            return Err(Refused::OldVersion);
        }
        match self.models.newest().map(|model| model.version) {
            Some(newest) if newest == said.version => return Ok(()),
            Some(newest) if newest > said.version && self.models.is_of_this_life() => {
                return Err(Refused::OldVersion);
            }
            _ => {}
        }
        self.signatures.remember(said);
        self.check_held(now);
        Ok(())
    }

    /// The server has answered a question of this worker's: this is its present life.
    fn prove_server(&mut self, now: Instant, said: &Signature) -> Result<(), Refused> {
        let signatures = &mut self.signatures;
        let Some(at) = signatures.questions.iter().position(|asked| *asked == said.question) else {
            return Err(Refused::NotAsked);
        };
        // Older questions are answered, too: what is heard of them was signed before.
        signatures.questions.drain(..=at);
        signatures.in_vain = 0;
        let before = signatures.proven.replace(Proven { epoch: said.epoch, oldest: said.oldest });
        let is_new = before.is_none_or(|before| before.epoch != said.epoch);
        if is_new && self.models.is_old_epoch(said.epoch) {
            self.models.is_back();
        }
        self.heard_server(now, said.epoch);
        // The server cannot sign what it has given up.
        self.models.refuse_below(said.oldest);
        if said.parameters != 0 {
            self.want(now, said.version);
        }
        self.plan_question(now);
        Ok(())
    }

    /// Returns true if the whole models that wait are the ones that the server signed, the newest
    /// first.
    pub(super) fn check_held(&mut self, now: Instant) {
        let Some(shape) = self.shape else { return };
        loop {
            let Some(signer) = &self.signatures.signer else { return };
            let signed = self.models.held().iter().filter_map(|held| {
                let model = &held.model;
                Some((model, self.signatures.signature_of(model.version)?))
            });
            let Some((model, signature)) = signed.max_by_key(|(model, _)| model.version) else {
                break;
            };
            let version = model.version;
            if hash_of_model(&**signer, shape, &model.lanes) == signature.hash {
                self.take_checked(version);
            } else {
                self.models.refuse(version);
                self.signatures.counts.forged += 1;
                self.tell(now, WorkerEvent::ModelForged { version });
                // The welcome says which version to ask for. After many forged ones the next keepalive
                // does.
                if self.signatures.again.take(now, AGAIN) {
                    self.ask_soon(now);
                }
            }
        }
        self.plan_question(now);
    }

    /// A question is due as long as a model waits, or the server's life is not proved.
    fn plan_question(&mut self, now: Instant) {
        if self.models.held().is_empty() && self.signatures.is_proven() {
            (self.signatures.next, self.signatures.in_vain) = (None, 0);
        } else if self.models.checked && self.signatures.next.is_none() {
            let wait = self.signatures.proven.map_or(Duration::ZERO, |_| self.fetch_interval());
            self.signatures.next = Some(now + wait);
        }
    }

    fn take_checked(&mut self, version: u32) {
        self.models.accept(version);
        self.signatures.counts.checked += 1;
        self.signatures.in_vain = 0;
        self.signatures.good.retain(|good| good.version > version);
        if self.refreshed_by.take_if(|awaited| *awaited <= version).is_some() {
            self.refreshing = false;
        }
        self.next_fetch = self.next_fetch.filter(|_| self.models.is_assembling());
        if self.standing == Standing::Joining {
            self.joined(version);
        }
    }

    /// The worker has left.
    pub(super) fn stop_asking(&mut self) {
        self.signatures.next = None;
    }

    /// The server's life is named and not proved: a question is due where none is.
    pub(super) fn ask_for_proof(&mut self, now: Instant) {
        if self.models.checked && self.signatures.next.is_none() {
            self.signatures.next = Some(now);
        }
    }

    /// What has waited too long is refused.
    pub(super) fn refuse_unsigned(&mut self, now: Instant) {
        let patience = self.silent_after();
        while let Some(held) = self.models.held().first()
            && now.since(held.since) >= patience
        {
            let version = held.model.version;
            self.models.refuse(version);
            self.signatures.counts.unsigned += 1;
            self.tell(now, WorkerEvent::ModelUnsigned { version });
            self.plan_question(now);
        }
    }

    /// The question that is due, if any.
    pub(super) fn emit_ask_signature(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        self.signatures.next.filter(|at| *at <= now)?;
        self.refuse_unsigned(now);
        self.signatures.next?;
        let awaited = self.models.held().first().map(|held| held.model.version);
        let wait = self.ask_again_after();
        let signatures = &mut self.signatures;
        signatures.next = Some(now + wait);
        signatures.in_vain = signatures.in_vain.saturating_add(1);
        if !signatures.asking.take(now, ASKING) {
            return None;
        }
        let question = signatures.signer.as_mut()?.draw();
        if signatures.questions.len() == QUESTIONS {
            signatures.questions.pop_front();
        }
        signatures.questions.push_back(question);
        signatures.counts.asked += 1;
        let version = awaited.unwrap_or(0);
        Some(AskSignature { address: self.config.address, version, question }.emit(buf))
    }

    /// Twice as long after each question without an answer, up to the keepalive.
    fn ask_again_after(&self) -> Duration {
        let first = self.fetch_interval();
        let longer = first.saturating_mul(1 << self.signatures.in_vain.min(16));
        longer.min(self.config.keepalive.max(first))
    }

    fn tell(&mut self, now: Instant, event: WorkerEvent) {
        if self.signatures.lines.take(now, LINES) {
            self.events.push_back(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn of_signatures_without_models_the_newest_few_are_remembered() {
        let mut signatures = Signatures::default();
        let of = |version| Signature {
            address: olaf_samples::address(1, 0, 7),
            epoch: 9,
            version,
            parameters: 1,
            segment_lanes: 1,
            oldest: 0,
            question: 0,
            hash: [0; 32],
            tag: [0; 16],
        };
        (1..1_000).for_each(|version| signatures.remember(of(version)));
        (990..1_000).for_each(|version| signatures.remember(of(version)));
        let known: Vec<u32> = signatures.good.iter().map(|good| good.version).collect();
        assert_eq!(known, Vec::from_iter(992..1_000));
    }
}
