//! What an update does to its job: the model, the counts and the ages.

use super::job::Job;
use super::presence::Counted;
use super::rule::{Applied, Delivered, Rule, RuleConfig};
use alloc::sync::Arc;
use olaf_engine::{Instant, Refused};
use olaf_wire::Update;

/// What a delivery leaves to say in its answer.
pub(super) struct Delivery {
    pub(super) newest_version: u32,
    pub(super) newest_generation_ns: u64,
}

impl Job {
    /// Applies one segment of an update.
    pub(super) fn deliver(
        &mut self,
        now: Instant,
        update: &Update,
        lanes: &[u8],
        config: RuleConfig,
    ) -> Result<Delivery, Refused> {
        let result = self.apply(update, lanes, config);
        let applied = match result {
            Ok(applied) => applied,
            Err(refused) => {
                self.fates.reject(refused, update.contributors);
                return Err(refused);
            }
        };
        let contributors = u64::from(update.contributors);
        match (applied, update.contributors) {
            (Applied::Gated, _) => self.fates.gated += contributors,
            (_, 1) => self.fates.delivered_alone += 1,
            _ => self.fates.delivered_merged += contributors,
        }
        Ok(self.note_delivery(now, update))
    }

    /// Counts a delivery, and takes the age of its cluster.
    pub(super) fn note_delivery(&mut self, now: Instant, update: &Update) -> Delivery {
        let contributors = u64::from(update.contributors);
        // One whose updates move nothing does not overlap with others.
        if let Some(member) = self.members.get_mut(&update.address.worker)
            && self.effect > 0.0
        {
            member.contributed = Some(self.overlap.contributions());
        }
        self.fates.received += contributors;
        self.fates.deliveries += 1;
        // A version that is still to come is a false claim: nothing is told of it.
        let versions = (update.version_oldest, update.version_newest.min(self.version));
        self.staleness.count(self.version, versions, update.contributors);
        self.begin_ages(now);
        let cluster = self.clusters.entry(update.address.cluster).or_default();
        cluster.heard = Some(now);
        cluster.staleness.count(self.version, versions, update.contributors);
        cluster.deliveries += 1;
        cluster.contributions += contributors;
        cluster.last_reward = Some(update.reward);
        // A clock that is ahead makes a model new, not newer than new for ever after.
        cluster.age.deliver(now, update.generated_newest_ns.min(now.0));
        cluster.recent_age.deliver(now, update.generated_newest_ns.min(now.0));
        cluster.newest_version = cluster.newest_version.max(versions.1);
        Delivery {
            newest_version: cluster.newest_version,
            newest_generation_ns: cluster.age.newest_generation_ns().unwrap_or(0),
        }
    }

    /// From the job's first delivery on, a cluster that has joined and starves has an age, too.
    /// What a checkpoint tells of clusters that did not join again stays without.
    fn begin_ages(&mut self, now: Instant) {
        if core::mem::replace(&mut self.ages_begun, true) {
            return;
        }
        for member in self.members.values() {
            self.clusters.entry(member.cluster).or_default().age.observe_from(now);
        }
    }

    fn apply(
        &mut self,
        update: &Update,
        lanes: &[u8],
        config: RuleConfig,
    ) -> Result<Applied, Refused> {
        self.fits(update, lanes)?;
        let counted = self.counted();
        let delivered = Delivered {
            sum: lanes,
            weight: update.weight,
            reward: update.reward,
            reward_is_clipped: self.reward_is_clipped,
            versions_behind: self.behind(update),
            contributors: update.contributors.min(counted.here),
            overlapped: self.overlapped(update, counted),
        };
        match self.apply_segment(update.segment as usize, update.segments, &delivered, config) {
            None => Err(Refused::NotReady),
            Some(Applied::NonFinite) => Err(Refused::NonFinite),
            Some(applied) => Ok(applied),
        }
    }

    /// Returns true if an update could change this job's model at all.
    pub(super) fn fits(&self, update: &Update, lanes: &[u8]) -> Result<(), Refused> {
        if !self.shape.fits(update, lanes) {
            return Err(Refused::WrongSize);
        }
        // Joins alone name clusters, and are counted.
        if !self.clusters.contains_key(&update.address.cluster) {
            return Err(Refused::WrongCluster);
        }
        if !update.reward.is_finite() {
            return Err(Refused::NonFinite);
        }
        self.model.as_ref().map(|_| ()).ok_or(Refused::NotReady)
    }

    /// Versions since the model that an update was computed on; of a merge, midway.
    pub(super) fn behind(&self, update: &Update) -> u32 {
        let oldest = self.version.saturating_sub(update.version_oldest);
        let newest = self.version.saturating_sub(update.version_newest);
        newest + (oldest - newest) / 2
    }

    /// Contributions that overlap those of an update: one of each other worker that contributed
    /// lately, or those that changed the model since the one that it was computed on, whichever is
    /// more.
    fn overlapped(&self, update: &Update, counted: Counted) -> f64 {
        let own = self.members.get(&update.address.worker);
        let own = own.is_some_and(|member| self.is_active(member));
        let active = counted.active.saturating_sub(u32::from(own)) + 1;
        let others = active.saturating_sub(update.contributors);
        f64::from(others).max(self.changed_since(update))
    }

    /// Contributions that changed the model since the one that an update was computed on; of a
    /// merge, midway between its oldest and its newest.
    pub(super) fn changed_since(&self, update: &Update) -> f64 {
        let [oldest, newest] = [update.version_oldest, update.version_newest];
        let since = |version| self.overlap.since(update.segment as usize, version);
        (since(oldest) + since(newest)) / 2.0
    }

    /// Changes one segment of the model by the job's rule; `None` while there is no model.
    pub(super) fn apply_segment(
        &mut self,
        at: usize,
        segments: u32,
        delivered: &Delivered<'_>,
        config: RuleConfig,
    ) -> Option<Applied> {
        let model = self.model.as_mut()?;
        if model.rules.is_empty() {
            model.rules = (0..segments).map(|_| Rule::new(config)).collect();
        }
        // Copies the segment if, and only if, a published version still holds it.
        let weights = Arc::make_mut(&mut model.segments[at]);
        let applied = model.rules[at].apply(weights, delivered);
        model.changed |= applied == Applied::Yes;
        if applied == Applied::Yes {
            self.overlap.add(at, segments, f64::from(delivered.contributors) * self.effect);
        }
        Some(applied)
    }
}
