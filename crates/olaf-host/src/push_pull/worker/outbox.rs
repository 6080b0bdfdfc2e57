//! What was pushed and has not left, and what has left and was not answered.

use super::lending::Lent;
use crate::transmission::Unsent;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use olaf_engine::party::Shape;
use olaf_engine::{Contribution, Instant};
use olaf_wire::{Address, Ends, Update, serial};

/// So many contributions are carried and no more: a switch refuses what holds more than it lets
/// one worker claim, which is twice this by default.
const CARRIED: u32 = 512;
/// Updates remembered until they are answered.
const REMEMBERED: usize = 256;
/// Of each segment, updates remembered until their end is known: a worker in a tight loop sends
/// thousands a second, and a queue speaks of them when their turn comes.
const AWAITED: usize = 4096;

/// Why an update was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushError {
    /// The worker has not joined, was turned away, or has left.
    NotJoined,
    /// The lanes are not as many as the model's parameters.
    WrongSize {
        /// Lanes given.
        have: usize,
        /// Parameters of the model.
        need: usize,
    },
    /// The lane at this index, or its product with the weight, is not a finite number.
    NonFinite {
        /// Index over all parts.
        index: usize,
    },
    /// The reward is not a finite number.
    Reward,
    /// The weight is not a finite number above 0.
    Weight,
}

impl fmt::Display for PushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJoined => f.write_str("the worker is not in the job: join first"),
            Self::WrongSize { have, need } => {
                write!(f, "the update has {have} values; the job's model has {need}")
            }
            Self::NonFinite { index } => write!(
                f,
                "value {index} is NaN or infinite: clip or skip this update; it was not sent"
            ),
            Self::Reward => f.write_str("the reward is NaN or infinite; the update was not sent"),
            Self::Weight => f.write_str("the weight must be a finite number above 0"),
        }
    }
}

impl core::error::Error for PushError {}

/// The outbox: at most one update waits, for a newer one of the same worker subsumes it
/// (OLAF §2.2); and what transmission control holds back, until it joins a later one.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    lanes: Vec<f32>,
    waiting: Option<Waiting>,
    held_lanes: Vec<f32>,
    held: Option<Held>,
    hop_sequence: u32,
    sent_updates: VecDeque<Sent>,
    /// Of each segment, what was sent and what is not known the end of.
    flows: Vec<Flow>,
    /// Since when updates leave and nothing of them is answered.
    unanswered_since: Option<Instant>,
    round_trip: Option<Duration>,
    pub(super) counts: Counts,
}

/// Segments of contributions: `contributions = sent + replaced_unsent + discarded`, and what
/// waits and is held; `sent = acknowledged + not_delivered + unconfirmed + awaited`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) updates: u32,
    pub(super) contributions: u64,
    pub(super) sent: u64,
    pub(super) datagrams: u64,
    pub(super) replaced_unsent: u64,
    pub(super) discarded: u64,
    pub(super) carried: u64,
    /// Those that reached the server.
    pub(super) acknowledged: u64,
    /// Those that ended on the way: replaced, filtered, dropped, refused, or known to be lost.
    pub(super) not_delivered: u64,
    /// Contributions whose end will never be known.
    pub(super) unconfirmed: u64,
    /// Those whose end is not known yet.
    pub(super) awaited: u64,
}

/// Updates of one segment that were sent, by this worker's count of them.
#[derive(Debug, Default)]
struct Flow {
    newest: u32,
    /// Number and contributions of those whose end is not known.
    awaited: VecDeque<(u32, u32)>,
}

#[derive(Debug)]
struct Waiting {
    shape: Shape,
    next_segment: u32,
    contribution: Contribution,
    /// Its lanes are still where the caller has them.
    is_lent: bool,
}

/// An update that is not sent yet.
#[derive(Debug)]
struct Held {
    shape: Shape,
    contribution: Contribution,
}

#[derive(Debug)]
struct Sent {
    last_hop_sequence: u32,
    at: Instant,
}

impl Outbox {
    /// Takes in one update, to send it, or to do with it what is done with unsent ones.
    pub(super) fn push(
        &mut self,
        shape: Shape,
        parts: &[&[f32]],
        mut contribution: Contribution,
        send: bool,
        unsent: Unsent,
    ) -> Result<u32, PushError> {
        check(shape, parts, &contribution)?;
        let send = send || self.held_contributors() + 1 >= CARRIED;
        if send && self.held.is_none() {
            // If nothing waits, values that were copied before a bad one turned up do no harm.
            let bad =
                self.waiting.is_some().then(|| first_bad(parts, contribution.weight)).flatten();
            let bad = bad.or_else(|| take_in(&mut self.lanes, parts, contribution.weight));
            if let Some(index) = bad {
                return Err(PushError::NonFinite { index });
            }
            contribution.sequence = self.count(shape);
            self.wait(Waiting { shape, next_segment: 0, contribution, is_lent: false });
            return Ok(contribution.sequence);
        }
        if let Some(index) = first_bad(parts, contribution.weight) {
            return Err(PushError::NonFinite { index });
        }
        contribution.sequence = self.count(shape);
        if !send && unsent == Unsent::Discard {
            self.counts.discarded += u64::from(shape.segments());
            return Ok(contribution.sequence);
        }
        self.hold(Held { shape, contribution }, parts, unsent);
        if send {
            self.release();
        }
        Ok(contribution.sequence)
    }

    /// Takes in one update as [`Outbox::push`] does, but leaves its lanes where they are, if it can
    /// be sent as it is. See [`Lent`].
    pub(super) fn lend(
        &mut self,
        shape: Shape,
        parts: &[&[f32]],
        mut contribution: Contribution,
        send: bool,
        unsent: Unsent,
    ) -> Result<u32, PushError> {
        // Lanes that are weighted or that join held ones are other lanes than the caller's.
        if !send || self.held.is_some() || contribution.weight != 1.0 {
            return self.push(shape, parts, contribution, send, unsent);
        }
        check(shape, parts, &contribution)?;
        if let Some(index) = first_bad(parts, 1.0) {
            return Err(PushError::NonFinite { index });
        }
        contribution.sequence = self.count(shape);
        self.wait(Waiting { shape, next_segment: 0, contribution, is_lent: true });
        Ok(contribution.sequence)
    }

    /// The loan ends: copies the lanes, if the update has not left yet.
    pub(super) fn keep(&mut self, lent: &Lent<'_>) {
        if let Some(waiting) = &mut self.waiting
            && waiting.is_lent
            && waiting.contribution.sequence == lent.sequence()
        {
            waiting.is_lent = false;
            self.lanes.clear();
            lent.parts().iter().for_each(|part| self.lanes.extend_from_slice(part));
        }
    }

    fn count(&mut self, shape: Shape) -> u32 {
        let sequence = self.counts.updates;
        self.counts.updates = self.counts.updates.wrapping_add(1);
        self.counts.contributions += u64::from(shape.segments());
        sequence
    }

    /// Holds an update of checked lanes; with what is held already, unless that gives way.
    fn hold(&mut self, new: Held, parts: &[&[f32]], unsent: Unsent) {
        let joined = match &self.held {
            Some(held) if unsent == Unsent::Carry && held.shape == new.shape => {
                // The sum goes by the newest one's sequence.
                new.contribution.with(&held.contribution).ok()
            }
            _ => None,
        };
        if let Some(contribution) = joined {
            let held = self.held();
            add_in(&mut self.held_lanes, parts, new.contribution.weight);
            // Two large values may have no sum: then the newer stands alone.
            if first_bad(&[&self.held_lanes], 1.0).is_none() {
                self.counts.carried += held;
                self.held = Some(Held { contribution, ..new });
                return;
            }
        }
        self.counts.discarded += self.held();
        let bad = take_in(&mut self.held_lanes, parts, new.contribution.weight);
        debug_assert!(bad.is_none(), "the caller has checked the lanes");
        self.held = Some(new);
    }

    /// What is held is to be sent.
    pub(super) fn release(&mut self) {
        if let Some(Held { shape, contribution }) = self.held.take() {
            core::mem::swap(&mut self.lanes, &mut self.held_lanes);
            self.wait(Waiting { shape, next_segment: 0, contribution, is_lent: false });
        }
    }

    fn wait(&mut self, waiting: Waiting) {
        self.counts.replaced_unsent += self.unsent();
        self.waiting = Some(waiting);
    }

    /// Number of the last datagram.
    pub(super) const fn hop_sequence(&self) -> u32 {
        self.hop_sequence
    }

    /// Segments of contributions that wait.
    pub(super) fn unsent(&self) -> u64 {
        self.waiting.as_ref().map_or(0, |w| {
            u64::from(w.shape.segments() - w.next_segment) * u64::from(w.contribution.contributors)
        })
    }

    /// Segments of contributions that are held.
    pub(super) fn held(&self) -> u64 {
        let of = |h: &Held| u64::from(h.shape.segments()) * u64::from(h.contribution.contributors);
        self.held.as_ref().map_or(0, of)
    }

    fn held_contributors(&self) -> u32 {
        self.held.as_ref().map_or(0, |held| held.contribution.contributors)
    }

    /// Generation time of the newest contribution held.
    pub(super) fn held_newest_ns(&self) -> Option<u64> {
        self.held.as_ref().map(|held| held.contribution.generated_ns.1)
    }

    pub(super) const fn has_unsent(&self) -> bool {
        self.waiting.is_some()
    }

    /// Writes the next datagram. `lent`: the loan of the thread that sends now. An update that
    /// another thread lends waits for that thread.
    pub(super) fn emit(
        &mut self,
        now: Instant,
        address: Address,
        lent: Option<&Lent<'_>>,
        buf: &mut [u8],
    ) -> Option<usize> {
        let waiting = self.waiting.as_mut()?;
        let sequence = waiting.contribution.sequence;
        let lent = lent.filter(|lent| waiting.is_lent && lent.sequence() == sequence);
        if waiting.is_lent && lent.is_none() {
            return None;
        }
        let segment = waiting.next_segment;
        let contributors = waiting.contribution.contributors;
        self.hop_sequence = serial::next(self.hop_sequence);
        if self.flows.len() <= segment as usize {
            self.flows.resize_with(segment as usize + 1, Flow::default);
        }
        let flow = &mut self.flows[segment as usize];
        let before =
            if flow.newest == 0 { serial::of_life(address.session.0) } else { flow.newest };
        flow.newest = serial::next(before);
        if flow.awaited.len() == AWAITED
            && let Some((_, contributors)) = flow.awaited.pop_front()
        {
            self.counts.awaited -= u64::from(contributors);
            self.counts.unconfirmed += u64::from(contributors);
        }
        flow.awaited.push_back((flow.newest, contributors));
        self.counts.awaited += u64::from(contributors);
        self.unanswered_since.get_or_insert(now);
        let update = Update {
            address,
            segment,
            segments: waiting.shape.segments(),
            ..waiting.contribution.to_update(address.session, self.hop_sequence, flow.newest)
        };
        let range = waiting.shape.range(segment);
        let len = match lent {
            Some(lent) => update.emit_parts(lent.lanes(range), buf),
            None => update.emit(&self.lanes[range], buf),
        };
        self.counts.sent += u64::from(contributors);
        self.counts.datagrams += 1;
        waiting.next_segment += 1;
        if waiting.next_segment == waiting.shape.segments() {
            self.waiting = None;
            if self.sent_updates.len() == REMEMBERED {
                self.sent_updates.pop_front();
            }
            self.sent_updates.push_back(Sent { last_hop_sequence: self.hop_sequence, at: now });
        }
        Some(len)
    }

    /// Takes in what became of updates of one segment.
    pub(super) fn note_ends(&mut self, segment: u32, ends: &Ends) {
        let Some(flow) = self.flows.get_mut(segment as usize) else { return };
        let counts = &mut self.counts;
        flow.awaited.retain(|(number, contributors)| {
            let contributors = u64::from(*contributors);
            let end = if ends.is_delivered(*number) {
                &mut counts.acknowledged
            } else if ends.has_ended(*number) {
                &mut counts.not_delivered
            } else {
                return true;
            };
            *end += contributors;
            counts.awaited -= contributors;
            false
        });
    }

    /// Returns true if the newest update is on its way. The end of an older one that was lost may
    /// never be told; it does not count.
    pub(super) fn awaits_newest(&self) -> bool {
        let is_newest = |flow: &Flow| flow.awaited.back().is_some_and(|(n, _)| *n == flow.newest);
        self.flows.iter().any(is_newest)
    }

    /// The ends of the updates on their way will never be known: the party that knew them
    /// restarted.
    pub(super) fn give_up(&mut self) {
        self.flows.iter_mut().for_each(|flow| flow.awaited.clear());
        self.counts.unconfirmed += core::mem::take(&mut self.counts.awaited);
        self.unanswered_since = None;
    }

    /// Since when updates leave and nothing of them is answered.
    pub(super) const fn unanswered_since(&self) -> Option<Instant> {
        self.unanswered_since
    }

    /// Everything up to that hop sequence was answered: it measures the round trip.
    pub(super) fn acknowledge(&mut self, now: Instant, up_to: u32) {
        self.unanswered_since = None;
        let answered = |sent: &&Sent| !serial::is_after(sent.last_hop_sequence, up_to);
        while let Some(sent) = self.sent_updates.front().filter(answered) {
            // Only the newest acknowledged one was answered just now.
            if sent.last_hop_sequence == up_to {
                let sample = now.since(sent.at);
                let smooth = self.round_trip.map_or(sample, |before| (before * 7 + sample) / 8);
                self.round_trip = Some(smooth);
            }
            self.sent_updates.pop_front();
        }
    }

    pub(super) const fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }
}

/// Returns true if the update is one of that model.
fn check(shape: Shape, parts: &[&[f32]], contribution: &Contribution) -> Result<(), PushError> {
    let have = parts.iter().map(|part| part.len()).sum();
    let need = shape.parameters as usize;
    if have != need {
        return Err(PushError::WrongSize { have, need });
    }
    if !contribution.reward.is_finite() {
        return Err(PushError::Reward);
    }
    if !(contribution.weight.is_finite() && contribution.weight > 0.0) {
        return Err(PushError::Weight);
    }
    Ok(())
}

/// Values looked at and then copied: few enough that they are still in the nearest cache.
const BLOCK: usize = 2048;

/// Copies the parts, times the weight, into `lanes`; stops at the first value that is not finite
/// and returns its index.
fn take_in(lanes: &mut Vec<f32>, parts: &[&[f32]], weight: f64) -> Option<usize> {
    let factor = weight as f32;
    lanes.clear();
    for block in parts.iter().flat_map(|part| part.chunks(BLOCK)) {
        if let Some(at) = first_bad_of(block, factor) {
            return Some(lanes.len() + at);
        }
        if weight == 1.0 {
            lanes.extend_from_slice(block);
        } else {
            lanes.extend(block.iter().map(|lane| lane * factor));
        }
    }
    None
}

/// Adds the parts, times the weight, to `lanes`. Parts and lanes have the same number of values.
fn add_in(lanes: &mut [f32], parts: &[&[f32]], weight: f64) {
    let factor = weight as f32;
    let values = parts.iter().flat_map(|part| part.iter());
    for (lane, value) in lanes.iter_mut().zip(values) {
        *lane += value * factor;
    }
}

/// The index of the first value that is not finite.
fn first_bad(parts: &[&[f32]], weight: f64) -> Option<usize> {
    let mut before = 0;
    for part in parts {
        if let Some(at) = first_bad_of(part, weight as f32) {
            return Some(before + at);
        }
        before += part.len();
    }
    None
}

fn first_bad_of(values: &[f32], factor: f32) -> Option<usize> {
    // One pass without branches: what is not finite stays in a sum. Where one is suspect, a second
    // pass finds the place, or that the values were only large.
    let mut sums = [0f32; 16];
    let (strides, rest) = values.as_chunks::<16>();
    for stride in strides {
        for (sum, value) in sums.iter_mut().zip(stride) {
            *sum += value * factor;
        }
    }
    for (sum, value) in sums.iter_mut().zip(rest) {
        *sum += value * factor;
    }
    if sums.iter().all(|sum| sum.is_finite()) {
        return None;
    }
    values.iter().position(|value| !(value * factor).is_finite())
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
