//! A job's state, out of the server and back in: what was learnt outlives the server.
//!
//! A server that comes back from a checkpoint may find workers that hold a newer model than the
//! checkpoint does. So the restored model waits: a worker with a newer version offers its own, as
//! to a server without a model. When no worker has offered one for
//! [`restore_patience`](super::ServerConfig::restore_patience) after the first join, the
//! checkpoint's model is the job's. The rule's state and the counts are the checkpoint's in both
//! cases.

use super::answers::Snapshot;
use super::cluster::Cluster;
use super::fates::{Fates, Staleness};
use super::job::{CLAIM_LIMIT, Job, ModelNow};
use super::rule::{Rule, RuleConfig, RuleState};
use super::{Server, ServerConfig};
use crate::push_pull::layout::Layout;
use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use olaf_engine::Event;
use olaf_engine::Instant;
use olaf_engine::party::Shape;
use olaf_wire::offsets::{LANE, MAX_SEGMENT_LANES, SEGMENT_HEADER};
use olaf_wire::{ClusterId, JobId, Join};
use serde::{Deserialize, Serialize};

/// A restored job waits at most this number of patiences after its first join for a newer model
/// that a worker offers.
const PATIENCES: u32 = 5;
/// A path that carries packets of 576 bytes carries segments of more lanes than these.
const FEWEST_LANES: u32 = 96;
const _: () = assert!(SEGMENT_HEADER + FEWEST_LANES as usize * LANE <= 576 - 40 - 8);
/// Contributions that were collected, and were in no model when the checkpoint was made.
const LOST: &str = "server_restarted";
/// No count comes near; there is room to count on.
const MAX_COUNT: u64 = 1 << 56;
const MAX_REASONS: usize = 64;
const MAX_REASON: usize = 64;

/// All that a server needs to go on with a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobState {
    /// The job.
    pub job: JobId,
    /// Its model's division into segments.
    pub shape: Shape,
    /// The newest version published.
    pub version: u32,
    /// The model has changed since that version.
    pub unpublished: bool,
    /// The model, segment by segment; shared with the server until the next update changes it.
    pub segments: Vec<Arc<Vec<f32>>>,
    /// What the rule remembers, a segment each; none before the first update.
    pub rules: Vec<RuleState>,
    /// Names and shapes of the model's arrays, where a worker has told them.
    pub layout: Option<Layout>,
    /// What became of all contributions so far.
    pub counts: Counts,
    /// How far behind contributions were.
    pub staleness: Staleness,
    /// The job's clusters.
    pub clusters: BTreeMap<ClusterId, ClusterState>,
}

/// What became of a job's contributions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "as in docs/reference/statistics.md")]
pub struct Counts {
    pub received: u64,
    pub deliveries: u64,
    pub delivered_alone: u64,
    pub delivered_merged: u64,
    pub gated: u64,
    pub rejected: BTreeMap<String, u64>,
    pub collections: u64,
    pub rounds_short: u64,
}

impl Counts {
    fn are_possible(&self) -> bool {
        let Self { received, deliveries, delivered_alone, delivered_merged, gated, .. } = self;
        let fates = [received, deliveries, delivered_alone, delivered_merged, gated];
        let rest = [&self.collections, &self.rounds_short];
        fates.into_iter().chain(rest).chain(self.rejected.values()).all(|n| *n <= MAX_COUNT)
    }
}

/// What is counted of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "as in docs/reference/statistics.md")]
pub struct ClusterState {
    pub deliveries: u64,
    pub contributions: u64,
    pub staleness: Staleness,
    pub last_reward: Option<f64>,
    pub newest_version: u32,
}

/// Why a state cannot be taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreError {
    /// The server has that job already.
    JobRuns,
    /// The server takes no more jobs.
    Full,
    /// The model is larger than the server takes.
    ModelTooLarge,
    /// A part of the state contradicts itself or another part; names it.
    Bad(&'static str),
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::JobRuns => f.write_str("the server has this job already"),
            Self::Full => f.write_str("the server takes no more jobs"),
            Self::ModelTooLarge => f.write_str("the model is larger than the server takes"),
            Self::Bad(part) => write!(f, "impossible value in {part}"),
        }
    }
}

impl core::error::Error for RestoreError {}

impl JobState {
    /// The same, when it can be.
    ///
    /// # Errors
    /// The part that cannot.
    pub fn check(&self) -> Result<(), RestoreError> {
        let bad = |part| Err(RestoreError::Bad(part));
        let Shape { parameters, segment_lanes } = self.shape;
        if parameters == 0 {
            return bad("parameters");
        }
        if segment_lanes == 0 || segment_lanes as usize > MAX_SEGMENT_LANES {
            return bad("segment_lanes");
        }
        let count = self.shape.segments() as usize;
        let lanes = |at: usize| self.shape.lanes(u32::try_from(at).unwrap_or(u32::MAX));
        let whole = |lens: &mut dyn Iterator<Item = usize>| {
            lens.enumerate().all(|(at, have)| have == lanes(at))
        };
        let mut lens = self.segments.iter().map(|segment| segment.len());
        if self.segments.len() != count || !whole(&mut lens) {
            return bad("the model's size");
        }
        if !self.segments.iter().flat_map(|s| s.iter()).all(|w| w.is_finite()) {
            return bad("the model: a weight is not finite");
        }
        if !self.rules.is_empty() && self.rules.len() != count {
            return bad("the rule's size");
        }
        let fits = |(at, rule): (usize, &RuleState)| {
            (rule.average.is_empty() || rule.average.len() == lanes(at))
                && rule.average.iter().all(|g| g.is_finite())
                && rule.best < f64::INFINITY
                && rule.recent.is_none_or(f64::is_finite)
        };
        if !self.rules.iter().enumerate().all(fits) {
            return bad("the rule's state");
        }
        let named = self.layout.as_ref().map(|l| Layout::new(l.arrays().into(), parameters));
        if named.is_some_and(|layout| layout.is_err()) {
            return bad("layout");
        }
        let reasons = &self.counts.rejected;
        if reasons.len() > MAX_REASONS || reasons.keys().any(|name| name.len() > MAX_REASON) {
            return bad("counts.rejected");
        }
        if !self.counts.are_possible() {
            return bad("counts");
        }
        let counts = |cluster: &ClusterState| {
            cluster.deliveries.max(cluster.contributions) <= MAX_COUNT
                && cluster.staleness.is_possible()
                && cluster.last_reward.is_none_or(f64::is_finite)
        };
        if !self.staleness.is_possible() || !self.clusters.values().all(counts) {
            return bad("staleness");
        }
        Ok(())
    }

    /// The same model in segments of another size. Of the rule each new segment remembers what the
    /// old one did in which it begins.
    fn recut(&mut self, segment_lanes: u32) {
        let old = self.shape;
        self.shape = Shape { segment_lanes, ..old };
        let flat: Vec<f32> = self.segments.iter().flat_map(|s| s.iter().copied()).collect();
        let ranges = || (0..self.shape.segments()).map(|segment| self.shape.range(segment));
        self.segments = ranges().map(|range| Arc::new(flat[range].to_vec())).collect();
        if self.rules.is_empty() {
            return;
        }
        // `g_a` of a segment that has none yet is nothing to average with.
        let all = self.rules.iter().all(|rule| !rule.average.is_empty());
        let averages: Vec<f32> =
            self.rules.iter().flat_map(|r| r.average.iter().copied()).collect();
        let rules = ranges().map(|range| {
            let before = &self.rules[range.start / old.segment_lanes as usize];
            let average = if all { averages[range].to_vec() } else { Vec::new() };
            RuleState { average, ..*before }
        });
        self.rules = rules.collect();
    }
}

/// A model that waits for a newer one.
pub(super) struct Restored {
    version: u32,
    unpublished: bool,
    segments: Snapshot,
    rules: Vec<RuleState>,
    /// Nobody can have a newer one: the server wrote it as its last. True only until it is taken
    /// up: a server killed before its next checkpoint leaves this one behind.
    is_last: bool,
    first_join: Option<Instant>,
    until: Option<Instant>,
}

impl Restored {
    pub(super) const fn version(&self) -> u32 {
        self.version
    }

    pub(super) fn segments(&self) -> &Snapshot {
        &self.segments
    }

    /// Waits, because a worker could have a newer model. If the worker says that it has one, the
    /// file did not hold the newest.
    fn wait(&mut self, now: Instant, have_version: u32, patience: Duration) {
        self.is_last &= have_version <= self.version || have_version > CLAIM_LIMIT;
        let patience = if self.is_last { Duration::ZERO } else { patience };
        self.first_join.get_or_insert(now);
        self.until.get_or_insert(now + patience);
    }

    /// Somebody offers one: a way that is slow takes longer.
    pub(super) fn wait_longer(&mut self, now: Instant, patience: Duration) {
        let last = self.first_join.unwrap_or(now) + patience * PATIENCES;
        self.until = self.until.map(|until| until.max((now + patience).min(last)));
    }

    /// A part of it came.
    pub(super) fn hold(&mut self, now: Instant, patience: Duration) {
        self.until = self.until.map(|until| until.max(now + patience));
    }

    pub(super) fn into_rules(self, config: RuleConfig) -> Vec<Rule> {
        self.rules.into_iter().map(|state| Rule::remembering(config, state)).collect()
    }
}

impl Job {
    fn restored(state: JobState, is_last: bool) -> Self {
        let counts = state.counts.clone();
        let fates = Fates {
            received: counts.received,
            deliveries: counts.deliveries,
            delivered_alone: counts.delivered_alone,
            delivered_merged: counts.delivered_merged,
            gated: counts.gated,
            rejected: counts.rejected.into_iter().map(|(name, n)| (Cow::Owned(name), n)).collect(),
        };
        let clusters = state.clusters.iter().map(|(id, of)| {
            let cluster = Cluster {
                deliveries: of.deliveries,
                contributions: of.contributions,
                staleness: of.staleness,
                last_reward: of.last_reward,
                newest_version: of.newest_version,
                ..Cluster::default()
            };
            (*id, cluster)
        });
        let mut job = Self {
            version: state.version,
            fates,
            staleness: state.staleness,
            clusters: clusters.collect(),
            before: Some((state.version, state.counts)),
            ..Self::new(state.shape)
        };
        (job.collection.closed, job.collection.short) = (counts.collections, counts.rounds_short);
        job.description.layout = state.layout;
        job.restored = Some(Restored {
            version: state.version,
            unpublished: state.unpublished,
            segments: state.segments,
            rules: state.rules,
            is_last,
            first_join: None,
            until: None,
        });
        job
    }

    fn state(&self, job: JobId) -> Option<JobState> {
        let (segments, rules, unpublished) = match (&self.model, &self.restored) {
            (Some(model), _) => {
                let rules = model.rules.iter().map(Rule::state).collect();
                (model.segments.clone(), rules, model.changed)
            }
            (None, Some(restored)) => {
                (restored.segments.clone(), restored.rules.clone(), restored.unpublished)
            }
            (None, None) => return None,
        };
        let clusters = self.clusters.iter().map(|(id, cluster)| {
            let state = ClusterState {
                deliveries: cluster.deliveries,
                contributions: cluster.contributions,
                staleness: cluster.staleness,
                last_reward: cluster.last_reward,
                newest_version: cluster.newest_version,
            };
            (*id, state)
        });
        Some(JobState {
            job,
            shape: self.shape,
            version: self.version,
            unpublished,
            segments,
            rules,
            layout: self.description.layout.clone(),
            counts: self.counts(),
            staleness: self.staleness,
            clusters: clusters.collect(),
        })
    }

    /// What waits in a collection is lost with this life of the server.
    fn counts(&self) -> Counts {
        let mut rejected: BTreeMap<String, u64> =
            self.fates.rejected.iter().map(|(name, n)| (name.as_ref().into(), *n)).collect();
        if self.collection.waiting > 0 {
            *rejected.entry(LOST.into()).or_default() += self.collection.waiting;
        }
        Counts {
            received: self.fates.received,
            deliveries: self.fates.deliveries,
            delivered_alone: self.fates.delivered_alone,
            delivered_merged: self.fates.delivered_merged,
            gated: self.fates.gated,
            rejected,
            collections: self.collection.closed,
            rounds_short: self.collection.short,
        }
    }

    /// A restored job that no worker has joined yet takes the segments of its first worker, because
    /// their size depends on the path and not on the job. Segments smaller than any path needs are
    /// not taken: each segment costs memory.
    pub(super) fn recut(&mut self, now: Instant, shape: Shape, silent_after: Duration) -> bool {
        let free = self.restored.is_some()
            && shape.segment_lanes >= self.shape.segment_lanes.min(FEWEST_LANES)
            && self.shape.parameters == shape.parameters
            && self.members.values().all(|m| m.liveness.is_overdue(now, silent_after));
        let state = if free { self.state(JobId(0)) } else { None };
        let (Some(mut state), Some(restored)) = (state, &mut self.restored) else { return false };
        state.recut(shape.segment_lanes);
        (restored.segments, restored.rules) = (state.segments, state.rules);
        self.shape = shape;
        self.offer = None;
        true
    }

    /// A worker joined; it may have a newer model than the restored one.
    pub(super) fn may_have_newer(&mut self, now: Instant, have: u32, patience: Duration) {
        if let Some(restored) = &mut self.restored {
            restored.wait(now, have, patience);
        }
    }

    pub(super) fn resumes_at(&self) -> Option<Instant> {
        self.restored.as_ref()?.until
    }

    /// Nobody had a newer model: the job goes on with the restored one.
    fn resume(&mut self, config: &ServerConfig) {
        let Some(restored) = self.restored.take() else { return };
        self.offer = None;
        let claimed = self.highest_claimed > restored.version;
        self.version = restored.version.max(self.highest_claimed);
        let (segments, changed) = (restored.segments.clone(), restored.unpublished || claimed);
        let rules = restored.into_rules(config.rule);
        self.kept.push_back((self.version, segments.clone()));
        self.model = Some(ModelNow { segments, rules, changed });
        self.publish(config.keep_versions);
    }
}

impl Server {
    /// All that is needed to go on with a job; nothing while it has no model. Cheap: the model is
    /// shared, and copied when an update changes it.
    #[must_use]
    pub fn checkpoint(&self, job: JobId) -> Option<JobState> {
        self.jobs.get(&job)?.state(job)
    }

    /// Returns true if a job has a checkpoint's model only, and a worker may have a newer one
    /// still.
    #[must_use]
    pub fn awaits_newer(&self, job: JobId) -> bool {
        self.jobs.get(&job).is_some_and(|job| job.restored.is_some())
    }

    /// Jobs with a model, and a number that changes when their state does.
    pub fn revisions(&self) -> impl Iterator<Item = (JobId, u64)> + '_ {
        let jobs =
            self.jobs.iter().filter(|(_, job)| job.model.is_some() || job.restored.is_some());
        jobs.map(|(id, job)| (*id, job.revision()))
    }

    /// Takes up a job where a checkpoint left it. `is_last`: the server wrote it when it stopped in
    /// order, so that no worker can have a newer model.
    ///
    /// # Errors
    /// Why not; nothing has changed then.
    pub fn restore(&mut self, state: JobState, is_last: bool) -> Result<(), RestoreError> {
        state.check()?;
        if self.jobs.contains_key(&state.job) {
            return Err(RestoreError::JobRuns);
        }
        if self.jobs.len() >= self.config.max_jobs {
            return Err(RestoreError::Full);
        }
        if state.shape.parameters > self.config.max_parameters {
            return Err(RestoreError::ModelTooLarge);
        }
        let id = state.job;
        self.jobs.insert(id, Job::restored(state, is_last));
        self.plan(id);
        Ok(())
    }

    /// Returns true if a join to a restored job comes with a newer model than the checkpoint's.
    pub(super) fn note_restored(&mut self, now: Instant, join: &Join) {
        let patience = self.config.restore_patience;
        if let Some(job) = self.jobs.get_mut(&join.address.job) {
            job.may_have_newer(now, join.have_version, patience);
            if job.resumes_at().is_some_and(|at| at <= now) {
                self.resume(now, join.address.job);
            }
        }
    }

    /// Starts a restored job for which no worker has a newer model.
    pub(super) fn resume(&mut self, now: Instant, id: JobId) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.resume(&self.config);
        let (parameters, version) = (job.shape.parameters, job.version);
        self.tell_everyone(now, id);
        self.event(Event::ModelRestored { job: id, parameters, version });
    }
}
