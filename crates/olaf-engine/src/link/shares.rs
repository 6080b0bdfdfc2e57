//! The share of each job of a link and of its slots.

use crate::ids::JobId;
use crate::keys::ConfigError;
use alloc::collections::BTreeMap;
use core::fmt;
use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};

/// Shares by job. A job that is not named has one share.
///
/// A share is a proportion, not a rate: what a job does not use, the others may.
///
/// A job may have an absolute number of slots instead of a share of them: it takes no more, and as many
/// are its own whatever other jobs hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Shares {
    shares: BTreeMap<Number, u32>,
    /// Absolute numbers of slots. The policy of a job says them, not a table of shares.
    #[serde(skip)]
    slots: BTreeMap<JobId, usize>,
}

/// The largest share. A round of the link grows with it.
const LARGEST: u32 = 1000;

impl Shares {
    /// The same with that job's share.
    #[must_use]
    pub fn with(mut self, job: JobId, share: u32) -> Self {
        self.shares.insert(Number(job.0), share);
        self
    }

    /// The share of a job; messages of no known job have one share together.
    #[must_use]
    pub fn of(&self, job: Option<JobId>) -> u32 {
        let named =
            job.filter(|_| !self.shares.is_empty()).and_then(|job| self.shares.get(&Number(job.0)));
        named.copied().unwrap_or(1)
    }

    /// The same with an absolute number of slots for that job.
    #[must_use]
    pub fn with_slots(mut self, job: JobId, slots: usize) -> Self {
        self.slots.insert(job, slots);
        self
    }

    /// The absolute number of slots of a job, if it has one.
    #[must_use]
    pub fn slots_of(&self, job: Option<JobId>) -> Option<usize> {
        job.filter(|_| !self.slots.is_empty()).and_then(|job| self.slots.get(&job)).copied()
    }

    /// All slots that jobs have to themselves.
    #[must_use]
    pub fn own_slots(&self) -> usize {
        self.slots.values().fold(0, |all, slots| all.saturating_add(*slots))
    }

    /// Returns true if that job's share is named.
    #[must_use]
    pub fn names(&self, job: JobId) -> bool {
        self.shares.contains_key(&Number(job.0))
    }

    /// # Errors
    /// A share that cannot be.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.slots.values().any(|slots| *slots == 0) {
            return Err(ConfigError { key: "slots of a job", allowed: "must be at least 1" });
        }
        if self.shares.values().all(|share| (1..=LARGEST).contains(share)) {
            return Ok(());
        }
        Err(ConfigError { key: "shares", allowed: "each share must be from 1 to 1000" })
    }
}

/// A job's number as a key. Tables of text have text for keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
struct Number(u32);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;

        impl Visitor<'_> for Either {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the number of a job")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Number, E> {
                text.parse().map(Number).map_err(|_| E::custom("must name jobs by their numbers"))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Number, E> {
                u32::try_from(number).map(Number).map_err(E::custom)
            }
        }

        from.deserialize_any(Either)
    }
}
