//! A cluster at the server: its age, its counts, and the round of segments since its last answer.

use super::fates::Staleness;
use super::job::Job;
use crate::age::AgeOfModel;
use crate::push_pull::segments::Present;
use crate::recent_age::RecentAge;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;
use olaf_engine::{Instant, PeerId};
use olaf_wire::{Answer, ClusterId};

/// A job remembers this number of clusters that no worker is in: one worker can deliver for a new cluster
/// and leave, again and again.
const REMEMBERED: usize = 1024;

/// A cluster.
#[derive(Default)]
pub(super) struct Cluster {
    pub(super) age: AgeOfModel,
    pub(super) recent_age: RecentAge,
    pub(super) deliveries: u64,
    pub(super) contributions: u64,
    pub(super) staleness: Staleness,
    pub(super) last_reward: Option<f64>,
    pub(super) newest_version: u32,
    pub(super) round: Option<Round>,
    /// When a join or an update named it last; nothing where only a checkpoint tells of it.
    pub(super) heard: Option<Instant>,
}

/// Segments delivered since the cluster was last answered.
pub(super) struct Round {
    present: Present,
    ends: Instant,
    /// The peers that delivered in it, and the answer to the newest delivery of each.
    answers: BTreeMap<PeerId, Answer>,
}

impl Job {
    /// Forgets clusters that no worker is in, unless they delivered something in the last `after`. Of those
    /// it remembers the ones that were heard last. Returns the forgotten ones.
    pub(super) fn prune_clusters(&mut self, now: Instant, after: Duration) -> Vec<ClusterId> {
        let here: BTreeSet<ClusterId> = self.members.values().map(|m| m.cluster).collect();
        let empty = self.clusters.iter().filter(|(id, _)| !here.contains(id));
        // Nobody has said anything of a checkpoint's cluster: it stays.
        let heard = empty.filter_map(|(id, cluster)| Some((cluster.heard?, cluster, *id)));
        let (mut lately, mut gone): (Vec<_>, Vec<_>) = heard
            .map(|(heard, cluster, id)| (heard, cluster.deliveries > 0, id))
            .partition(|(heard, delivered, _)| *delivered && now.since(*heard) < after);
        lately.sort_unstable_by_key(|(heard, _, id)| (core::cmp::Reverse(*heard), *id));
        gone.extend(lately.into_iter().skip(REMEMBERED));
        let gone: Vec<ClusterId> = gone.into_iter().map(|(_, _, id)| id).collect();
        for id in &gone {
            self.clusters.remove(id);
        }
        gone
    }

    /// Whether, with this segment, the cluster has had each of its segments delivered.
    pub(super) fn round_is_over(
        &mut self,
        cluster: ClusterId,
        segment: u32,
        segments: u32,
    ) -> bool {
        if segments == 1 {
            return true;
        }
        let cluster = self.clusters.entry(cluster).or_default();
        let round = cluster.round.get_or_insert_with(|| Round {
            present: Present::none_of(segments),
            ends: Instant(u64::MAX),
            answers: BTreeMap::new(),
        });
        round.present.insert(segment);
        round.present.is_complete()
    }
}

impl Cluster {
    /// Notes a receiver of the answer at the end of the round, which is at `ends` or earlier.
    pub(super) fn note_round(&mut self, ends: Instant, peer: PeerId, answer: Answer) {
        if let Some(round) = &mut self.round {
            round.ends = round.ends.min(ends);
            round.answers.insert(peer, answer);
        }
    }

    pub(super) fn round_ends(&self) -> Option<Instant> {
        self.round.as_ref().filter(|round| !round.answers.is_empty()).map(|round| round.ends)
    }

    /// Ends the round. Returns the answers to all its contributors, which must get the new model.
    pub(super) fn end_round(&mut self) -> BTreeMap<PeerId, Answer> {
        self.round.take().map(|round| round.answers).unwrap_or_default()
    }
}
