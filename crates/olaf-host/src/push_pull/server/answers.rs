//! What waits to go down.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use olaf_engine::PeerId;
use olaf_engine::party::{Proofs, Shape};
use olaf_wire::{Address, Answer, Ends, JobId, Welcome};

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
}

enum Control {
    Welcome(Welcome),
    Acknowledgement(Answer),
}

struct Sending {
    peer: PeerId,
    answer: Answer,
    /// The segments to send, by number, and where they are.
    segments: Vec<(u32, Arc<Vec<f32>>)>,
    next: usize,
    whole: bool,
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
        }
    }

    pub(super) fn control(&mut self, peer: PeerId, welcome: Welcome) {
        self.push_control(peer, Control::Welcome(welcome));
    }

    pub(super) fn acknowledge(&mut self, peer: PeerId, answer: Answer) {
        self.push_control(peer, Control::Acknowledgement(answer));
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
        let sending = Sending { peer, answer, segments, next: 0, whole: true };
        let same = |s: &&mut Sending| s.whole && s.next == 0 && s.is_for(peer, &answer.address);
        if let Some(waiting) = self.models.iter_mut().find(same) {
            self.superseded += 1;
            *waiting = sending;
        } else if answer.acknowledges == 0
            && self.models.iter().any(|s| s.whole && s.is_for(peer, &answer.address))
        {
            // It asked again while the answer to its first question is still being sent.
        } else {
            self.push_model(sending);
        }
    }

    /// Single segments that a worker asked for.
    pub(super) fn segments(
        &mut self,
        peer: PeerId,
        answer: Answer,
        snapshot: &Snapshot,
        segments: impl Iterator<Item = u32>,
    ) {
        let segments = segments.map(|s| (s, snapshot[s as usize].clone())).collect::<Vec<_>>();
        if !segments.is_empty() && self.may_go(peer, &answer) {
            self.push_model(Sending { peer, answer, segments, next: 0, whole: false });
        }
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
            };
            return Some(Outgoing { peer, len });
        }
        let sending = self.models.front_mut()?;
        let (segment, lanes) = &sending.segments[sending.next];
        let answer = Answer { segment: *segment, ..sending.answer };
        let outgoing = Outgoing { peer: sending.peer, len: answer.emit(lanes, buf) };
        sending.next += 1;
        if sending.next == sending.segments.len() {
            self.models.pop_front();
        }
        Some(outgoing)
    }
}

impl Sending {
    fn is_for(&self, peer: PeerId, address: &Address) -> bool {
        self.peer == peer && self.answer.address == *address
    }
}
