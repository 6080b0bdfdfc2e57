//! What waits to go down.

use super::signing::{Signed, Signing};
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use olaf_engine::PeerId;
use olaf_engine::party::{Proofs, Shape};
use olaf_wire::{Address, Answer, Ends, JobId, Signature, Welcome};

/// One version of a model: its segments, each shared until it changes.
pub(super) type Snapshot = Vec<Arc<Vec<f32>>>;

/// A datagram that goes out.
pub(super) struct Outgoing {
    pub(super) peer: PeerId,
    pub(super) len: usize,
}

/// The queue of answers. Control goes first; models go whole, in order, and a model that was not
/// begun gives way to a newer one for the same receivers.
pub(super) struct Answers {
    limit: usize,
    control: VecDeque<(PeerId, Control)>,
    models: VecDeque<Sending>,
    pub(super) superseded: u64,
    pub(super) dropped: u64,
    /// Which peers have proved their addresses. To others goes no model.
    pub(super) proofs: Proofs<(PeerId, JobId)>,
    /// Models that were not sent for lack of a proof.
    pub(super) unproven: u64,
    pub(super) signing: Signing,
    /// Signatures of models that were just sent whole.
    behind: VecDeque<(PeerId, Signature)>,
}

enum Control {
    Welcome(Welcome),
    Acknowledgement(Answer),
    Signature(Signature),
}

struct Sending {
    peer: PeerId,
    answer: Answer,
    /// The segments to send, by number, and where they are.
    segments: Vec<(u32, Arc<Vec<f32>>)>,
    next: usize,
    /// How a whole model is cut; none: single segments.
    whole: Option<Shape>,
    /// Leaves behind the last of these segments.
    signature: Option<Signature>,
}

impl Answers {
    pub(super) fn new(limit: usize) -> Self {
        let proofs = Proofs::default();
        Self {
            limit,
            control: VecDeque::new(),
            models: VecDeque::new(),
            superseded: 0,
            dropped: 0,
            proofs,
            unproven: 0,
            signing: Signing::default(),
            behind: VecDeque::new(),
        }
    }

    pub(super) fn control(&mut self, peer: PeerId, welcome: Welcome) {
        self.push_control(peer, Control::Welcome(welcome));
    }

    pub(super) fn acknowledge(&mut self, peer: PeerId, answer: Answer) {
        self.push_control(peer, Control::Acknowledgement(answer));
    }

    /// The answer to a question for a signature.
    pub(super) fn signature(&mut self, peer: PeerId, signature: Signature) {
        self.push_control(peer, Control::Signature(signature));
    }

    fn push_control(&mut self, peer: PeerId, control: Control) {
        if self.control.len() < self.limit {
            self.control.push_back((peer, control));
        } else {
            self.dropped += 1;
        }
    }

    /// Queues a whole model for the address in `answer`.
    pub(super) fn model(&mut self, peer: PeerId, answer: Answer, shape: Shape, snapshot: Snapshot) {
        debug_assert_eq!(snapshot.len(), shape.segments() as usize, "a snapshot is whole");
        // Each segment's delivery was acknowledged by itself: beside a model of several there is no
        // telling which of them would be meant.
        let ends = if shape.segments() == 1 { answer.ends } else { Ends::NONE };
        let answer = Answer { ends, ..answer };
        if !self.may_go(peer, &answer) {
            return;
        }
        let segments = (0..).zip(snapshot).collect();
        let sending =
            Sending { peer, answer, segments, next: 0, whole: Some(shape), signature: None };
        let same =
            |s: &&mut Sending| s.whole.is_some() && s.next == 0 && s.is_for(peer, &answer.address);
        if let Some(waiting) = self.models.iter_mut().find(same) {
            self.superseded += 1;
            *waiting = sending;
        } else if answer.acknowledges == 0 && self.is_sending(peer, &answer.address) {
            // It asked again while the answer to its first question is still being sent.
        } else {
            self.push_model(sending);
        }
    }

    /// Single segments that a worker asked for, and the signature of their version.
    pub(super) fn segments(
        &mut self,
        peer: PeerId,
        answer: Answer,
        snapshot: &Snapshot,
        segments: impl Iterator<Item = u32>,
        signature: Option<Signature>,
    ) {
        let segments = segments.map(|s| (s, snapshot[s as usize].clone())).collect::<Vec<_>>();
        if !segments.is_empty() && self.may_go(peer, &answer) {
            self.push_model(Sending { peer, answer, segments, next: 0, whole: None, signature });
        }
    }

    /// Returns true if a whole model for that worker waits, or is being sent.
    pub(super) fn is_sending(&self, peer: PeerId, address: &Address) -> bool {
        self.models.iter().any(|sending| sending.whole.is_some() && sending.is_for(peer, address))
    }

    fn may_go(&mut self, peer: PeerId, answer: &Answer) -> bool {
        let proven = self.proofs.is_proven(&(peer, answer.address.job));
        self.unproven += u64::from(!proven);
        proven
    }

    fn push_model(&mut self, sending: Sending) {
        if self.models.len() < self.limit {
            self.models.push_back(sending);
        } else {
            self.dropped += 1;
        }
    }

    /// Writes the next datagram.
    pub(super) fn emit(&mut self, buf: &mut [u8]) -> Option<Outgoing> {
        if let Some((peer, control)) = self.control.pop_front() {
            let len = match control {
                Control::Welcome(welcome) => welcome.emit(buf),
                Control::Acknowledgement(answer) => answer.emit(&[], buf),
                Control::Signature(signature) => signature.emit(buf),
            };
            return Some(Outgoing { peer, len });
        }
        if let Some((peer, signature)) = self.behind.pop_front() {
            return Some(Outgoing { peer, len: signature.emit(buf) });
        }
        let sending = self.models.front_mut()?;
        let (segment, lanes) = &sending.segments[sending.next];
        let answer = Answer { segment: *segment, ..sending.answer };
        let outgoing = Outgoing { peer: sending.peer, len: answer.emit(lanes, buf) };
        sending.next += 1;
        if sending.next == sending.segments.len()
            && let Some(sent) = self.models.pop_front()
        {
            self.sign(sent);
        }
        Some(outgoing)
    }

    /// The signature of a version leaves behind the last segment of that version.
    fn sign(&mut self, sent: Sending) {
        let Sending { peer, answer, segments, whole, signature, .. } = sent;
        self.behind.extend(signature.map(|signature| (peer, signature)));
        let Some(shape) = whole else { return };
        if !self.signing.signs(answer.address.job) {
            return;
        }
        let segments: Vec<_> = segments.into_iter().map(|(_, lanes)| lanes).collect();
        let of = Signed {
            epoch: answer.epoch,
            version: answer.model_version,
            shape,
            oldest: answer.model_version,
            question: 0,
            segments: &segments,
        };
        let signature = self.signing.sign(answer.address, &of);
        self.behind.extend(signature.map(|signature| (peer, signature)));
    }
}

impl Sending {
    fn is_for(&self, peer: PeerId, address: &Address) -> bool {
        self.peer == peer && self.answer.address == *address
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn sent(answers: &mut Answers) -> usize {
        let mut buf = [0; 512];
        core::iter::from_fn(|| answers.emit(&mut buf)).count()
    }

    #[test]
    fn more_control_than_the_limit_is_dropped_and_counted() {
        let mut answers = Answers::new(3);
        let join = olaf_samples::join(olaf_samples::address(1, 0, 7), 1, 1);
        (0..5).for_each(|peer| answers.control(PeerId(peer), olaf_samples::welcome(&join)));
        assert_eq!((sent(&mut answers), answers.dropped), (3, 2));
    }

    #[test]
    fn more_models_than_the_limit_are_dropped_and_counted_and_newer_ones_take_the_place_of_older() {
        let mut answers = Answers::new(3);
        let snapshot: Snapshot = vec![Arc::new(vec![1.0])];
        let model = |answers: &mut Answers, worker: u32, version: u32| {
            let answer = olaf_samples::answer(olaf_samples::address(1, worker, worker), version);
            let shape = Shape { parameters: 1, segment_lanes: 1 };
            answers.model(PeerId(worker), answer, shape, snapshot.clone());
        };
        (0..5).for_each(|worker| model(&mut answers, worker, 1));
        assert_eq!((answers.dropped, answers.superseded), (2, 0));
        (0..3).for_each(|worker| model(&mut answers, worker, 2));
        assert_eq!((answers.dropped, answers.superseded), (2, 3));
        assert_eq!(sent(&mut answers), 3);
        let parts = |answers: &mut Answers| {
            let answer = olaf_samples::answer(olaf_samples::address(1, 0, 0), 0);
            answers.segments(PeerId(0), answer, &snapshot, [0].into_iter(), None);
        };
        (0..5).for_each(|_| parts(&mut answers));
        assert_eq!((sent(&mut answers), answers.dropped), (3, 4));
    }
}
