//! What was pushed and has not left, and what has left and was not answered.

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
            self.wait(Waiting { shape, next_segment: 0, contribution });
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
            self.wait(Waiting { shape, next_segment: 0, contribution });
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

    pub(super) fn emit(&mut self, now: Instant, address: Address, buf: &mut [u8]) -> Option<usize> {
        let waiting = self.waiting.as_mut()?;
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
        let len = update.emit(&self.lanes[waiting.shape.range(segment)], buf);
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

    /// Whether the newest update is on its way. The end of an older one that was lost may never be
    /// told; it does not count.
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
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { parameters: 3, segment_lanes: 2 };

    fn of_one(generated_ns: u64, basis: u32, weight: f64, reward: f64) -> Contribution {
        let worker = olaf_wire::WorkerId(0);
        let one = Contribution::of_one(olaf_engine::Flow::default(), worker, generated_ns, 0);
        Contribution { versions: (basis, basis), weight, reward, ..one }
    }

    fn sent(outbox: &mut Outbox) -> Vec<(Update, Vec<f32>)> {
        let (mut buf, mut out) = (alloc::vec![0; 200], Vec::new());
        while let Some(len) = outbox.emit(Instant(9), Address::default(), &mut buf) {
            let packet = olaf_wire::Packet::new_checked(&buf[..len]).expect("just written");
            let mut lanes = alloc::vec![0.0; packet.lanes().len() / 4];
            olaf_wire::update::read_lanes(packet.lanes(), &mut lanes);
            out.push((Update::parse(&packet).expect("just written"), lanes));
        }
        let c = outbox.counts;
        let gone = c.sent + c.replaced_unsent + c.discarded;
        assert_eq!(c.contributions, gone + outbox.unsent() + outbox.held());
        out
    }

    #[test]
    fn what_is_carried_joins_the_next_one() {
        let mut outbox = Outbox::default();
        let mut push = |at, lanes: &[f32], weight, reward, send| {
            let meta = of_one(at, at as u32, weight, reward);
            outbox.push(SHAPE, &[lanes], meta, send, Unsent::Carry).expect("fine lanes");
        };
        push(10, &[1.0, 2.0, 3.0], 1.0, 8.0, false);
        push(20, &[1.0, 1.0, 1.0], 1.0, 8.0, false);
        push(30, &[0.5, 0.0, 1.0], 2.0, 4.0, true);
        let out = sent(&mut outbox);
        let (update, lanes) = &out[0];
        assert_eq!(lanes, &[3.0, 3.0]);
        assert_eq!((update.contributors, update.weight, update.reward), (3, 4.0, 6.0));
        assert_eq!((update.generated_oldest_ns, update.generated_newest_ns), (10, 30));
        assert_eq!((update.version_oldest, update.version_newest), (10, 30));
        assert_eq!((update.sequence, out[1].1.as_slice()), (2, &[6.0][..]));
        assert_eq!((outbox.counts.sent, outbox.counts.datagrams, outbox.counts.carried), (6, 2, 6));
    }

    #[test]
    fn what_is_carried_does_not_grow_beyond_what_a_switch_takes() {
        let mut outbox = Outbox::default();
        for at in 0..u64::from(CARRIED) + 7 {
            let meta = of_one(at, 0, 1.0, 0.0);
            outbox.push(SHAPE, &[&[1.0; 3]], meta, false, Unsent::Carry).expect("fine lanes");
        }
        assert_eq!(sent(&mut outbox)[0].0.contributors, CARRIED);
        assert_eq!(outbox.held(), 2 * 7);
    }

    #[test]
    fn what_has_no_sum_with_what_is_held_stands_alone() {
        let mut outbox = Outbox::default();
        let big = [f32::MAX; 3];
        for send in [false, true] {
            let meta = of_one(1, 1, 1.0, 0.0);
            outbox.push(SHAPE, &[&big], meta, send, Unsent::Carry).expect("fine lanes");
        }
        assert_eq!(sent(&mut outbox)[0].0.contributors, 1);
        assert_eq!(outbox.counts.discarded, 2);
    }

    #[test]
    fn what_is_carried_has_a_mean_reward_however_large_the_numbers_are() {
        let mut outbox = Outbox::default();
        // Lanes are 32 bits wide, so that no weight can be larger.
        let weight = f64::from(f32::MAX) / 4.0;
        for (reward, send) in [(f64::MAX, false), (f64::MAX / 2.0, true)] {
            let one = of_one(1, 1, weight, reward);
            outbox.push(SHAPE, &[&[1.0; 3]], one, send, Unsent::Carry).expect("fine lanes");
        }
        assert_eq!(outbox.counts.discarded, 0);
        let (update, _) = &sent(&mut outbox)[0];
        assert_eq!((update.contributors, update.weight), (2, 2.0 * weight));
        assert_eq!(update.reward, f64::MAX * 0.75);
    }

    #[test]
    fn what_is_held_for_another_try_gives_way_to_a_newer_one_and_bad_values_change_nothing() {
        let mut outbox = Outbox::default();
        let retry = Unsent::Retry(Duration::from_millis(1));
        let meta = |at| of_one(at, 0, 1.0, 0.0);
        outbox.push(SHAPE, &[&[1.0; 3]], meta(1), false, retry).expect("fine lanes");
        let bad = outbox.push(SHAPE, &[&[1.0, f32::NAN, 1.0]], meta(2), false, retry);
        assert_eq!(bad, Err(PushError::NonFinite { index: 1 }));
        assert_eq!(outbox.held_newest_ns(), Some(1));
        outbox.push(SHAPE, &[&[2.0; 3]], meta(3), false, retry).expect("fine lanes");
        assert_eq!((outbox.counts.discarded, sent(&mut outbox).len()), (2, 0));
        outbox.release();
        assert_eq!(sent(&mut outbox)[0].1, [2.0, 2.0]);
        outbox.push(SHAPE, &[&[2.0; 3]], meta(4), false, Unsent::Discard).expect("fine lanes");
        assert_eq!((outbox.counts.discarded, sent(&mut outbox).len()), (4, 0));
    }

    #[test]
    fn only_what_is_named_has_an_end_and_numbers_go_on_after_the_largest() {
        let mut outbox = Outbox::default();
        let shape = Shape { parameters: 1, segment_lanes: 1 };
        let mut buf = [0; 200];
        let mut numbers = Vec::new();
        for _ in 0..5 {
            let meta = of_one(0, 0, 1.0, 0.0);
            outbox.push(shape, &[&[1.0]], meta, true, Unsent::Carry).expect("a good update");
            let len = outbox.emit(Instant(0), Address::default(), &mut buf).expect("it waits");
            let packet = olaf_wire::Packet::new_checked(&buf[..len]).expect("just written");
            numbers.push(Update::parse(&packet).expect("just written").flow_sequence);
            if numbers.len() == 1 {
                outbox.flows[0].newest = u32::MAX - 2;
            }
        }
        assert_eq!(numbers[1..], [u32::MAX - 1, u32::MAX, 1, 2]);
        // Of the five the second and the last arrived, the third was replaced: of the first and the
        // fourth nothing is known, although a later one arrived. 0 is no number: 2 - 1 - MAX.
        assert!(outbox.awaits_newest());
        outbox.note_ends(0, &Ends { newest: 2, delivered: 1 | 1 << 4, ended: 1 << 3 });
        // The first and the fourth may be lost: the worker does not wait for them.
        assert!(!outbox.awaits_newest());
        let counts = outbox.counts;
        assert_eq!((counts.acknowledged, counts.not_delivered, counts.awaited), (2, 1, 2));
        outbox.note_ends(0, &Ends { newest: 2, delivered: 1 | 1 << 4, ended: 1 << 3 });
        outbox.note_ends(7, &Ends { newest: 2, delivered: u64::MAX, ended: 0 });
        assert_eq!(outbox.counts.acknowledged, 2, "nothing counts twice, and no other segment");
        outbox.give_up();
        let counts = outbox.counts;
        assert_eq!((counts.unconfirmed, counts.awaited, counts.sent), (2, 0, 5));
    }

    #[test]
    fn what_is_not_finite_is_found_wherever_it_is() {
        let fine = alloc::vec![f32::MAX; 3000];
        for at in [0, 15, 16, 2047, 2048, 2999] {
            let mut bad = alloc::vec![1.0; 3000];
            bad[at] = f32::NAN;
            let (parts, mut lanes) = ([fine.as_slice(), &bad], Vec::new());
            assert_eq!(first_bad(&parts, 1.0), Some(3000 + at));
            assert_eq!(take_in(&mut lanes, &parts, 1.0), Some(3000 + at));
            assert_eq!(take_in(&mut lanes, &parts, 2.0), Some(0), "twice the largest is too much");
        }
        let mut lanes = Vec::new();
        assert_eq!(
            (first_bad(&[&fine], 1.0), take_in(&mut lanes, &[&fine, &fine], 0.5)),
            (None, None)
        );
        assert_eq!(lanes, alloc::vec![f32::MAX / 2.0; 6000]);
    }
}
