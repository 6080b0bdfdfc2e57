//! What is counted of contributions: their fates, and how far behind they were.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use olaf_engine::Refused;
use serde::{Deserialize, Serialize};

/// What became of contributions at the server.
#[derive(Clone, Debug, Default)]
pub(super) struct Fates {
    pub(super) received: u64,
    pub(super) deliveries: u64,
    pub(super) delivered_alone: u64,
    pub(super) delivered_merged: u64,
    pub(super) gated: u64,
    pub(super) rejected: BTreeMap<Cow<'static, str>, u64>,
}

impl Fates {
    /// Counts contributions that are refused. A duplicate brings no contribution: it came before.
    pub(super) fn reject(&mut self, reason: Refused, contributors: u32) {
        self.received += u64::from(contributors);
        *self.rejected.entry(Cow::Borrowed(reason.name())).or_default() += u64::from(contributors);
    }

    /// Counts contributions that were received before and turn out to be of no use.
    pub(super) fn reject_received(&mut self, reason: Refused, contributors: u64) {
        *self.rejected.entry(Cow::Borrowed(reason.name())).or_default() += contributors;
    }
}

/// Versions that contributions were behind when they arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "as in docs/reference/checkpoint.md")]
pub struct Staleness {
    pub sum: f64,
    pub count: u64,
    pub max: u32,
}

impl Staleness {
    pub(super) fn is_possible(&self) -> bool {
        self.sum.is_finite() && self.sum >= 0.0 && self.count <= 1 << 56
    }

    /// Of a merge only the oldest and newest version are known: its contributors count as midway.
    pub(super) fn count(&mut self, now: u32, versions: (u32, u32), contributors: u32) {
        let oldest = now.saturating_sub(versions.0);
        let newest = now.saturating_sub(versions.1);
        self.sum += (f64::from(oldest) + f64::from(newest)) / 2.0 * f64::from(contributors);
        self.count += u64::from(contributors);
        self.max = self.max.max(oldest);
    }

    pub(super) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}
