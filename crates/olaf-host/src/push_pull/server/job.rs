//! A job: its model, its workers, its clusters.

use super::aggregate::Collection;
use super::answers::Snapshot;
use super::checkpoint::{Counts, Restored};
use super::cluster::Cluster;
use super::describing::Description;
use super::fates::{Fates, Staleness};
use super::forgetting::OnDisk;
use super::offering::Offer;
use super::overlap::Overlap;
use super::presence::Presence;
use super::rule::Rule;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;
use olaf_engine::party::{
    Allowance, AtPeer, Bucket, Clip, Clipping, Liveness, Members, Pace, Paces, Shape, Voter,
};
use olaf_engine::switch::native::ClippedCounts;
use olaf_engine::{Instant, PeerId, Refused};
use olaf_wire::{Address, ClusterId, Join, Session, Update};

/// No honest worker claims a version above this, and it would leave no room to count on.
pub(super) const CLAIM_LIMIT: u32 = 1 << 30;
/// A living model's version follows a claim at most so far: workers of one job are close together.
const CLAIM_STEP: u32 = 1 << 16;
/// A living model's version follows at most this number of claims. A worker whose claim is not
/// followed finds out by the answer to its join, and takes the server's version.
const CLAIMS_FOLLOWED: u32 = 16;

/// A worker may go over to another cluster so often. Each cluster that was heard is remembered for a
/// while.
const MOVES: Allowance = Allowance { burst: 8, every: Duration::from_secs(1) };
/// Contributions that one worker's update may hold, as a switch has it.
const MOST_CARRIED: u32 = 1024;

/// A job.
pub(super) struct Job {
    pub(super) shape: Shape,
    pub(super) last_join: Instant,
    /// Since when it has no workers.
    pub(super) empty_since: Option<Instant>,
    pub(super) on_disk: OnDisk,
    /// The peer whose join began the job here.
    pub(super) opened_by: Option<PeerId>,
    /// The count of models published; with one segment, of updates applied.
    pub(super) version: u32,
    pub(super) model: Option<ModelNow>,
    pub(super) members: Members<Member>,
    pub(super) presence: Presence,
    pub(super) clusters: BTreeMap<ClusterId, Cluster>,
    /// Something was delivered: from then on every cluster that is known has an age.
    pub(super) ages_begun: bool,
    pub(super) fates: Fates,
    /// What its workers sent lately, and what was clipped.
    pub(super) clipping: Clipping,
    pub(super) clipped: ClippedCounts,
    /// How often its workers send.
    pub(super) paces: Paces,
    /// How much the update that is applied counts as a step that others overlap with.
    pub(super) effect: f64,
    /// The reward of the update that is applied was clipped.
    pub(super) reward_is_clipped: bool,
    pub(super) staleness: Staleness,
    pub(super) description: Description,
    /// Delivered, and not in the model yet.
    pub(super) collection: Collection,
    pub(super) kept: VecDeque<(u32, Snapshot)>,
    pub(super) overlap: Overlap,
    pub(super) offer: Option<Offer>,
    /// Highest version that a worker claims to have: a server that restarts goes on above it.
    pub(super) highest_claimed: u32,
    pub(super) claims_followed: u32,
    /// The model of a checkpoint, until a worker's newer one or this one is the job's.
    pub(super) restored: Option<Restored>,
    /// The version and the counts that the checkpoint had.
    pub(super) before: Option<(u32, Counts)>,
}

/// The model as it is now, between versions.
pub(super) struct ModelNow {
    pub(super) segments: Snapshot,
    pub(super) rules: Vec<Rule>,
    pub(super) changed: bool,
}

/// A worker that joined, as the server knows it.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) session: Session,
    pub(super) cluster: ClusterId,
    pub(super) peer: PeerId,
    pub(super) liveness: Liveness,
    pub(super) clock_error_us: u32,
    pub(super) last_join_sent_at_ns: u64,
    /// How often it may go over to another cluster.
    pub(super) moves: Bucket,
    /// How often it may ask for segments.
    pub(super) fetches: Bucket,
    /// How often it may ask for signatures.
    pub(super) questions: Bucket,
    pub(super) last_join_received_at_ns: u64,
    /// Its description of the model was none.
    pub(super) bad_layout: bool,
    /// How many contributions the model had when this worker's last one was added; of a merge only
    /// the first contributor's name is known.
    pub(super) contributed: Option<u64>,
    /// Rounds in a row that ended without it.
    pub(super) missed: u32,
    /// Updates that named it and were clipped, and when that was last told.
    pub(super) clipped: (u64, Option<Instant>),
    /// How often it sends, where no switch sends for it.
    pub(super) pace: Pace,
    pub(super) told_too_often: Option<Instant>,
}

impl AtPeer for Member {
    fn peer(&self) -> PeerId {
        self.peer
    }
}

/// Whether a join brought a new worker.
pub(super) enum Entered {
    New,
    Back,
    Known,
}

impl Job {
    pub(super) fn new(shape: Shape) -> Self {
        Self {
            shape,
            last_join: Instant(0),
            empty_since: None,
            on_disk: OnDisk::default(),
            opened_by: None,
            version: 0,
            model: None,
            members: Members::default(),
            presence: Presence::default(),
            clusters: BTreeMap::new(),
            ages_begun: false,
            fates: Fates::default(),
            clipping: Clipping::default(),
            paces: Paces::default(),
            clipped: ClippedCounts::default(),
            effect: 1.0,
            reward_is_clipped: false,
            staleness: Staleness::default(),
            description: Description::default(),
            collection: Collection::default(),
            kept: VecDeque::new(),
            overlap: Overlap::default(),
            offer: None,
            highest_claimed: 0,
            claims_followed: 0,
            restored: None,
            before: None,
        }
    }

    /// A job without a model, all of whose workers are gone, may begin again with another size.
    pub(super) fn may_change_shape(&self, now: Instant, silent_after: Duration) -> bool {
        self.model.is_none()
            && self.restored.is_none()
            && self.members.values().all(|m| m.liveness.is_overdue(now, silent_after))
    }

    /// Returns true if the next worker to join says how the model is cut.
    pub(super) fn may_be_cut_anew(&self, now: Instant, silent_after: Duration) -> bool {
        let nobody = self.members.values().all(|m| m.liveness.is_overdue(now, silent_after));
        nobody && (self.model.is_none() || self.restored.is_some())
    }

    pub(super) fn enter(&mut self, now: Instant, peer: PeerId, join: &Join) -> Entered {
        let address = &join.address;
        let same = self.members.get(&address.worker).filter(|m| m.session == address.session);
        let bad_layout = same.is_some_and(|member| member.bad_layout);
        let contributed = same.and_then(|member| member.contributed);
        let clipped = same.map(|member| member.clipped).unwrap_or_default();
        let fetches = same.map(|member| member.fetches).unwrap_or_default();
        let questions = same.map(|member| member.questions).unwrap_or_default();
        let moves = same.map(|member| member.moves).unwrap_or_default();
        let pace = same.map(|member| member.pace).unwrap_or_default();
        let missed = same.map(|member| member.missed).unwrap_or_default();
        let told_too_often = same.and_then(|member| member.told_too_often);
        self.last_join = now;
        self.empty_since = None;
        let before = self.members.insert(
            address.worker,
            Member {
                session: address.session,
                cluster: address.cluster,
                peer,
                liveness: Liveness::since(now),
                clock_error_us: join.clock_error_us,
                last_join_sent_at_ns: join.sent_at_ns,
                moves,
                fetches,
                questions,
                last_join_received_at_ns: now.0,
                bad_layout,
                contributed,
                missed,
                clipped,
                pace,
                told_too_often,
            },
        );
        let begun = self.ages_begun;
        let cluster = self.clusters.entry(address.cluster).or_default();
        cluster.heard = Some(now);
        if begun {
            cluster.age.observe_from(now);
        }
        match before {
            Some(before) if before.session != address.session => Entered::New,
            Some(before) if before.liveness.is_silent() => Entered::Back,
            Some(_) => Entered::Known,
            None => Entered::New,
        }
    }

    /// Returns true if the job may be forgotten: it has neither a model nor a checkpoint's.
    pub(super) const fn is_empty(&self) -> bool {
        self.model.is_none() && self.restored.is_none()
    }

    /// Returns true if nothing is lost with it: no contribution came to the model that a worker
    /// offered, no checkpoint knows it, and its workers are gone.
    pub(super) fn is_abandoned(&self, now: Instant, silent_after: Duration) -> bool {
        self.fates.received == 0
            && self.before.is_none()
            && self.restored.is_none()
            && self.members.values().all(|m| m.liveness.is_overdue(now, silent_after))
    }

    /// Returns true if a worker may be in the cluster that its join names: it is there, or has not
    /// moved too often.
    pub(super) fn may_move(&mut self, now: Instant, address: &Address) -> bool {
        let member = self.members.get_mut(&address.worker);
        let Some(member) = member.filter(|m| m.session == address.session) else { return true };
        member.cluster == address.cluster || member.moves.take(now, MOVES)
    }

    /// The largest norm of a mean gradient while nothing says what is usual: a step of `multiple` times
    /// the length of the segment's weights. Each weight counts as 1 at least.
    pub(super) fn longest_step(&self, segment: u32, multiple: f64, rate: f64) -> Option<f64> {
        let weights = self.model.as_ref()?.segments.get(segment as usize)?;
        let sum: f64 = weights.iter().map(|w| f64::from(*w)).map(|w| w * w).sum();
        Some(multiple * libm::sqrt(sum.max(weights.len() as f64)) / rate)
    }

    /// Returns true if a worker's own update may be taken: it comes from the worker that it names,
    /// and that worker does not send more than its limit.
    pub(super) fn takes_own(
        &mut self,
        now: Instant,
        from: PeerId,
        update: &Update,
        limit: Clip,
    ) -> Result<(), Refused> {
        let segments = self.shape.segments();
        let member = of_sender(&mut self.members, from, &update.address)?;
        if member.cluster != update.address.cluster {
            return Err(Refused::WrongCluster);
        }
        let pace = &mut member.pace;
        let takes = self.paces.takes(now, limit, Voter::At(from), pace, update.sequence, segments);
        if takes { Ok(()) } else { Err(Refused::TooOften) }
    }

    /// Returns true if a switch may send an update that names that worker first: the worker is not at
    /// another peer. One that is gone may have left the update in the switch.
    pub(super) fn takes_passed_on(&self, from: PeerId, update: &Update) -> Result<(), Refused> {
        let elsewhere = |member: &&Member| member.peer != from && !member.liveness.is_silent();
        match self.members.get(&update.address.worker).filter(elsewhere) {
            Some(_) => Err(Refused::UnknownPeer),
            None => Ok(()),
        }
    }

    /// Returns true if an update holds no more contributions than the workers that it may stand for
    /// can carry: itself, or all behind the switch that sent it.
    pub(super) fn may_carry(&self, from: PeerId, update: &Update) -> Result<(), Refused> {
        let workers = if update.hops == 0 { 1 } else { self.members.at(from).max(1) };
        let most = u64::from(MOST_CARRIED) * workers as u64;
        let fits = u64::from(update.contributors) <= most;
        if fits { Ok(()) } else { Err(Refused::TooManyContributors) }
    }

    /// The member that a datagram is from.
    pub(super) fn member(
        &mut self,
        peer: PeerId,
        address: &Address,
    ) -> Result<&mut Member, Refused> {
        of_sender(&mut self.members, peer, address)
    }

    /// A worker that has seen a later version than this server knows of comes from an earlier
    /// life of it: versions go on above.
    pub(super) fn keep_ahead_of(&mut self, have_version: u32, keep: usize) {
        if have_version > CLAIM_LIMIT {
            return;
        }
        self.highest_claimed = self.highest_claimed.max(have_version);
        if let Some(model) = &mut self.model
            && have_version > self.version
            && have_version - self.version <= CLAIM_STEP
            && self.claims_followed < CLAIMS_FOLLOWED
        {
            self.claims_followed += 1;
            model.changed = true;
            self.version = have_version;
            self.publish(keep);
        }
    }

    /// The next version is one of its own even if nothing changed.
    pub(super) fn must_publish(&mut self) {
        if let Some(model) = &mut self.model {
            model.changed = true;
        }
    }

    /// Makes the model as it is now a version of its own, if anything changed since the last.
    pub(super) fn publish(&mut self, keep: usize) -> Snapshot {
        let Some(model) = &mut self.model else { return Snapshot::new() };
        if core::mem::take(&mut model.changed) {
            self.version = self.version.wrapping_add(1);
            self.overlap.publish(self.version);
            self.kept.push_back((self.version, model.segments.clone()));
            while self.kept.len() > keep.max(1) {
                self.kept.pop_front();
            }
        }
        self.kept.back().map(|(_, snapshot)| snapshot.clone()).unwrap_or_default()
    }

    /// The oldest version that is kept.
    pub(super) fn oldest_kept(&self) -> Option<u32> {
        self.kept.front().map(|(version, _)| *version)
    }

    /// A kept version, or else the newest; and which of the two it is.
    pub(super) fn snapshot(&self, version: u32) -> Option<(u32, Snapshot, bool)> {
        let kept = self.kept.iter().find(|(kept, _)| *kept == version);
        let is_kept = kept.is_some();
        let (version, snapshot) = kept.or(self.kept.back())?;
        Some((*version, snapshot.clone(), is_kept))
    }
}

/// The worker that an address names, if it is at that peer.
fn of_sender<'a>(
    members: &'a mut Members<Member>,
    peer: PeerId,
    address: &Address,
) -> Result<&'a mut Member, Refused> {
    let member = members.get_mut(&address.worker).ok_or(Refused::UnknownWorker)?;
    let is_its_own = member.peer == peer && member.session == address.session;
    if is_its_own { Ok(member) } else { Err(Refused::UnknownPeer) }
}
