//! What a sweep is asked: data, checked once.

use crate::study::scenario::SpecError;
use serde::Deserialize;

/// Most ticks that a run may take, and most of an interval: up to here values are compared in
/// exact whole numbers of 128 bits.
pub const MOST_TICKS: u64 = 1 << 20;

/// Most ticks of a service: the bytes that stand for it fit the engine's 32 bits.
const MOST_SERVICE: u64 = 1 << 19;

/// Most senders: a set of them is one machine word.
pub const MOST_SENDERS: usize = 64;

/// Clusters that share a queue, and what of their runs is to be largest.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Ticks that the link takes for an update: the paper's p/C (OLAF §6).
    pub service: u64,
    /// Updates the queue holds, the one on the wire included: the paper's Qmax.
    pub slots: usize,
    /// Last tick observed; the first is 0, with an empty queue.
    pub horizon: u64,
    /// The senders.
    pub senders: Vec<Sender>,
    /// Of each cluster a number: clusters of one number, with the same intervals, that the
    /// objective treats alike may change places.
    pub alike: Vec<u32>,
    /// What is to be largest.
    pub kind: Kind,
    /// Clusters that it is about.
    pub about: Vec<usize>,
    /// Within how many hyperperiods (the least common multiple of the intervals) a run must repeat
    /// itself for values that hold for ever; 0: nothing is asked beyond the horizon.
    pub hyperperiods: u64,
}

/// A worker: it sends at `phase + n * interval`, its phase free.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sender {
    /// Its cluster.
    pub cluster: usize,
    /// Ticks.
    pub interval: u64,
}

/// What is to be largest; times are ticks. `olaf.verify.schedule.value` says the same of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Difference between two clusters' mean peak ages (OLAF §6).
    FairPeak,
    /// Difference between two clusters' average ages.
    FairAge,
    /// Age of a cluster from its first delivery on.
    WorstPeak,
    /// Time without a delivery of a cluster.
    Starvation,
    /// Updates dropped over updates sent.
    Loss,
    /// Clusters with fewer than two deliveries.
    NoAverage,
}

impl Question {
    /// Everything that the sweep relies on.
    ///
    /// # Errors
    /// The first thing that cannot be, and what to do about it.
    pub fn check(&self) -> Result<(), SpecError> {
        let fail = |text: String| Err(SpecError(text));
        let clusters = self.alike.len();
        if self.service == 0 || self.service > MOST_SERVICE {
            return fail(format!("service must be from 1 to {MOST_SERVICE} ticks"));
        }
        if self.slots == 0 || self.slots > crate::study::replay::MAX_SLOTS {
            return fail(format!("slots must be from 1 to {}", crate::study::replay::MAX_SLOTS));
        }
        if self.horizon > MOST_TICKS {
            return fail(format!(
                "horizon = {} ticks: must be at most {MOST_TICKS}; lengthen the tick (choose times \
                 with a larger common divisor) or shorten the horizon",
                self.horizon
            ));
        }
        if self.senders.is_empty() || self.senders.len() > MOST_SENDERS {
            let found = self.senders.len();
            return fail(format!("{found} senders: must be from 1 to {MOST_SENDERS}"));
        }
        for (index, sender) in self.senders.iter().enumerate() {
            if sender.cluster >= clusters {
                let named = sender.cluster;
                return fail(format!(
                    "senders[{index}]: cluster {named} is not one of the {clusters} in alike"
                ));
            }
            if sender.interval == 0 || sender.interval > MOST_TICKS {
                return fail(format!(
                    "senders[{index}]: interval must be from 1 to {MOST_TICKS} ticks"
                ));
            }
        }
        if self.about.is_empty() || self.about.iter().any(|cluster| *cluster >= clusters) {
            return fail(format!("about must name some of the {clusters} clusters"));
        }
        Ok(())
    }

    /// Ticks after which the arrivals repeat themselves; none: more than a run may take.
    #[must_use]
    pub fn hyperperiod(&self) -> Option<u64> {
        let mut all = 1;
        for sender in &self.senders {
            let (mut a, mut b) = (all, sender.interval);
            while b > 0 {
                (a, b) = (b, a % b);
            }
            all = all / a * sender.interval;
            if all > MOST_TICKS {
                return None;
            }
        }
        Some(all)
    }
}
