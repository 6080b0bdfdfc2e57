//! What was pushed and has not left, and what has left and was not answered.

use crate::segments::Shape;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use olaf_engine::Instant;
use olaf_wire::{Address, Update, serial};

/// Updates remembered until they are acknowledged.
const REMEMBERED: usize = 256;

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
                write!(f, "{have} values where the job's model has {need} parameters")
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
/// (OLAF §2.2).
#[derive(Debug, Default)]
pub(super) struct Outbox {
    lanes: Vec<f32>,
    waiting: Option<Waiting>,
    hop_sequence: u32,
    sent_updates: VecDeque<Sent>,
    round_trip: Option<Duration>,
    pub(super) updates: u32,
    pub(super) contributions: u64,
    pub(super) sent: u64,
    pub(super) replaced_unsent: u64,
    pub(super) acknowledged: u64,
}

#[derive(Debug)]
struct Waiting {
    shape: Shape,
    sequence: u32,
    next_segment: u32,
    generated_ns: u64,
    basis: u32,
    reward: f64,
    weight: f64,
}

#[derive(Debug)]
struct Sent {
    last_hop_sequence: u32,
    at: Instant,
}

impl Outbox {
    #[allow(clippy::too_many_arguments, reason = "an update is all of these")]
    pub(super) fn push(
        &mut self,
        shape: Shape,
        parts: &[&[f32]],
        reward: f64,
        weight: f64,
        generated_ns: u64,
        basis: u32,
    ) -> Result<u32, PushError> {
        let have = parts.iter().map(|part| part.len()).sum();
        let need = shape.parameters as usize;
        if have != need {
            return Err(PushError::WrongSize { have, need });
        }
        if !reward.is_finite() {
            return Err(PushError::Reward);
        }
        if !(weight.is_finite() && weight > 0.0) {
            return Err(PushError::Weight);
        }
        // Where nothing waits, what was copied before a bad value turned up is in nobody's way.
        let bad = match self.waiting {
            Some(_) => first_bad(parts, weight),
            None => None,
        };
        let bad = bad.or_else(|| take_in(&mut self.lanes, parts, weight));
        if let Some(index) = bad {
            return Err(PushError::NonFinite { index });
        }
        self.replaced_unsent += self.unsent();
        let sequence = self.updates;
        self.updates = self.updates.wrapping_add(1);
        self.contributions += u64::from(shape.segments());
        self.waiting =
            Some(Waiting { shape, sequence, next_segment: 0, generated_ns, basis, reward, weight });
        Ok(sequence)
    }

    /// Segments that wait.
    pub(super) fn unsent(&self) -> u64 {
        self.waiting.as_ref().map_or(0, |w| u64::from(w.shape.segments() - w.next_segment))
    }

    pub(super) const fn has_unsent(&self) -> bool {
        self.waiting.is_some()
    }

    pub(super) fn emit(&mut self, now: Instant, address: Address, buf: &mut [u8]) -> Option<usize> {
        let waiting = self.waiting.as_mut()?;
        let segment = waiting.next_segment;
        self.hop_sequence = serial::next(self.hop_sequence);
        let update = Update {
            address,
            sequence: waiting.sequence,
            hop_sequence: self.hop_sequence,
            segment,
            segments: waiting.shape.segments(),
            generated_oldest_ns: waiting.generated_ns,
            generated_newest_ns: waiting.generated_ns,
            version_oldest: waiting.basis,
            version_newest: waiting.basis,
            contributors: 1,
            weight: waiting.weight,
            reward: waiting.reward,
            hops: 0,
        };
        let len = update.emit(&self.lanes[waiting.shape.range(segment)], buf);
        self.sent += 1;
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

    /// Everything up to that hop sequence has met its fate.
    pub(super) fn acknowledge(&mut self, now: Instant, up_to: u32) {
        let answered = |sent: &&Sent| !serial::is_after(sent.last_hop_sequence, up_to);
        while let Some(sent) = self.sent_updates.front().filter(answered) {
            // Only the newest acknowledged one was answered just now.
            if sent.last_hop_sequence == up_to {
                let sample = now.since(sent.at);
                let smooth = self.round_trip.map_or(sample, |before| (before * 7 + sample) / 8);
                self.round_trip = Some(smooth);
            }
            self.sent_updates.pop_front();
            self.acknowledged += 1;
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

    #[test]
    fn acknowledgements_go_on_after_the_largest_hop_sequence() {
        let mut outbox = Outbox { hop_sequence: u32::MAX - 1, ..Outbox::default() };
        let shape = Shape { parameters: 1, segment_lanes: 1 };
        let mut buf = [0; 200];
        for _ in 0..3 {
            outbox.push(shape, &[&[1.0]], 0.0, 1.0, 0, 0).expect("a good update");
            outbox.emit(Instant(0), Address::default(), &mut buf).expect("it waits");
        }
        let mut acknowledged = |up_to| {
            outbox.acknowledge(Instant(0), up_to);
            outbox.acknowledged
        };
        // Sent as the largest number, 1 and 2.
        assert_eq!([u32::MAX, 1, 2].map(&mut acknowledged), [1, 2, 3]);
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
