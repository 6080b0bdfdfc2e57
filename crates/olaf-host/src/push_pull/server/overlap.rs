//! How many contributions changed a job's model since one of its versions.
//!
//! Workers whose updates overlap in time do not know of each other. Their number, not the number of
//! versions, says how far their steps overshoot together: a merge of eight makes one version.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The overlap of the last 1,024 versions is kept. An update on an older version counts from the
/// oldest kept one.
const KEPT: usize = 1024;

/// Contributions that changed the model: in all, at each of the last versions, and since then.
#[derive(Debug, Default)]
pub(super) struct Overlap {
    newest: u32,
    /// The total when each version was published; the last entry is that of `newest`.
    at: VecDeque<f64>,
    /// By segment: contributions since `newest`. The segments of one update come one by one, and
    /// those that came before are no overlap.
    since: Vec<f64>,
    /// Contributions to the model's first segment, since the job began here.
    total: f64,
}

impl Overlap {
    /// Notes contributions that changed one of a model's `segments`. A contribution that is far smaller
    /// than what is usual counts as a part of one.
    pub(super) fn add(&mut self, segment: usize, segments: u32, contributors: f64) {
        self.since.resize(segments as usize, 0.0);
        self.since[segment] += contributors;
        if segment == 0 {
            self.total += contributors;
        }
    }

    /// Notes that the model as it is now is this version.
    pub(super) fn publish(&mut self, version: u32) {
        if version != self.newest.wrapping_add(1) {
            // The job has begun, or goes on from a checkpoint: earlier versions were not counted.
            self.at.clear();
        }
        let mean = self.since.iter().sum::<f64>() / self.since.len().max(1) as f64;
        self.since.fill(0.0);
        self.newest = version;
        self.at.push_back(self.at.back().copied().unwrap_or_default() + mean);
        if self.at.len() > KEPT {
            self.at.pop_front();
        }
    }

    /// Contributions to the model since the job began here.
    pub(super) const fn contributions(&self) -> u64 {
        self.total as u64
    }

    /// Contributions to a segment since a version. For versions of before the count began, each
    /// counts as one.
    pub(super) fn since(&self, segment: usize, version: u32) -> f64 {
        let behind = self.newest.saturating_sub(version) as usize;
        let now = self.since.get(segment).copied().unwrap_or_default();
        let Some(last) = self.at.len().checked_sub(1) else { return behind as f64 + now };
        let known = behind.min(last);
        self.at[last] - self.at[last - known] + (behind - known) as f64 + now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_contributions_not_versions() {
        let mut overlap = Overlap::default();
        overlap.publish(1);
        overlap.add(0, 1, 8.0);
        overlap.publish(2);
        overlap.add(0, 1, 1.0);
        overlap.publish(3);
        assert_eq!([1, 2, 3, 4].map(|version| overlap.since(0, version)), [9.0, 1.0, 0.0, 0.0]);
        // A change since the newest version counts for every worker that has that version.
        overlap.add(0, 1, 2.0);
        assert_eq!(overlap.since(0, 3), 2.0);
    }

    #[test]
    fn the_segments_of_one_update_do_not_overlap_each_other() {
        let mut overlap = Overlap::default();
        overlap.publish(1);
        for segment in 0..4 {
            assert_eq!(overlap.since(segment, 1), 0.0);
            overlap.add(segment, 4, 2.0);
        }
        assert_eq!(overlap.since(3, 1), 2.0);
        overlap.publish(2);
        assert_eq!([overlap.since(0, 1), overlap.since(3, 2)], [2.0, 0.0]);
    }

    #[test]
    fn what_is_not_known_any_more_counts_as_one_a_version() {
        let mut overlap = Overlap::default();
        overlap.publish(70);
        assert_eq!(overlap.since(0, 60), 10.0);
        for version in 71..71 + 2 * KEPT as u32 {
            overlap.add(0, 1, 2.0);
            overlap.publish(version);
        }
        let newest = 70 + 2 * KEPT as u32;
        assert_eq!(overlap.since(0, newest - 10), 20.0);
        assert_eq!(overlap.since(0, newest - KEPT as u32 - 5), 2.0 * (KEPT as f64 - 1.0) + 6.0);
        // After a restore the numbers jump.
        overlap.publish(9_000_000);
        assert_eq!(overlap.since(0, 8_999_999), 1.0);
    }
}
