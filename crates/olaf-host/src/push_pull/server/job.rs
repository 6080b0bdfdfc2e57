//! A job: its model, its workers, its clusters.

use super::ServerConfig;
use super::aggregate::Collection;
use super::answers::Snapshot;
use super::checkpoint::{Counts, Restored};
use super::describing::Description;
use super::fates::{Fates, Staleness};
use super::forgetting::OnDisk;
use super::overlap::Overlap;
use super::presence::{Counted, Presence};
use super::rule::{Applied, Delivered, Rule, RuleConfig};
use crate::age::AgeOfModel;
use crate::push_pull::segments::Present;
use crate::recent_age::RecentAge;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_engine::Refused;
use olaf_engine::party::{
    Allowance, AtPeer, Bucket, Clip, Clipping, Liveness, Members, Pace, Paces, Shape,
};
use olaf_engine::switch::native::ClippedCounts;
use olaf_engine::{Instant, PeerId};
use olaf_wire::update::read_lanes;
use olaf_wire::{Address, Answer, ClusterId, Join, Session, Update, WorkerId};

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

/// What a delivery leaves to say in its answer.
pub(super) struct Delivery {
    pub(super) newest_version: u32,
    pub(super) newest_generation_ns: u64,
}

pub(super) struct Offer {
    worker: WorkerId,
    session: Session,
    version: u32,
    /// The segments that came. A claimed size takes no memory.
    segments: BTreeMap<u32, Vec<f32>>,
    present: Present,
    last_progress: Instant,
    /// To its worker and back, as the worker says; zero while it does not know.
    round_trip: Duration,
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

    /// Whether the next worker to join says how the model is cut.
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

    /// Whether the job may be forgotten: it has neither a model nor a checkpoint's.
    pub(super) const fn is_empty(&self) -> bool {
        self.model.is_none() && self.restored.is_none()
    }

    /// Whether nothing is lost with it: no contribution came to the model that a worker offered, no
    /// checkpoint knows it, and its workers are gone.
    pub(super) fn is_abandoned(&self, now: Instant, silent_after: Duration) -> bool {
        self.fates.received == 0
            && self.before.is_none()
            && self.restored.is_none()
            && self.members.values().all(|m| m.liveness.is_overdue(now, silent_after))
    }

    /// Forgets clusters that no worker is in and that were not heard for `after`.
    pub(super) fn prune_clusters(&mut self, now: Instant, after: Duration) {
        let here: BTreeSet<ClusterId> = self.members.values().map(|m| m.cluster).collect();
        self.clusters.retain(|id, cluster| {
            let lately = cluster.heard.is_none_or(|heard| now.since(heard) < after);
            lately || here.contains(id)
        });
    }

    /// Whether a worker may be in the cluster that its join names: it is there, or has not moved too
    /// often.
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

    /// Whether a worker's own update may be taken: it comes from the worker that it names, and that
    /// worker does not send more than its limit.
    pub(super) fn takes_own(
        &mut self,
        now: Instant,
        from: PeerId,
        update: &Update,
        limit: Clip,
    ) -> Result<(), Refused> {
        let segments = self.shape.segments();
        let worker = update.address.worker;
        let pace = &mut of_sender(&mut self.members, from, &update.address)?.pace;
        let takes = self.paces.takes(now, limit, worker, pace, update.sequence, segments);
        if takes { Ok(()) } else { Err(Refused::TooOften) }
    }

    /// Whether an update holds no more contributions than the workers behind its sender may carry.
    pub(super) fn may_carry(&self, from: PeerId, contributors: u32) -> bool {
        let most = u64::from(MOST_CARRIED) * self.members.at(from).max(1) as u64;
        u64::from(contributors) <= most
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

    /// A job without a model takes one worker's; of several that offer, the one that has seen
    /// most, and another's when nothing comes of it.
    pub(super) fn consider_offer(
        &mut self,
        now: Instant,
        join: &Join,
        patience: Duration,
        restore_patience: Duration,
    ) {
        let known = self.restored.as_ref().map_or(0, Restored::version);
        let is_older = self.restored.is_some() && join.have_version <= known;
        if self.model.is_some() || is_older || join.have_version > CLAIM_LIMIT {
            return;
        }
        let better = self.offer.as_ref().is_none_or(|offer| {
            let same = offer.worker == join.address.worker && offer.session == join.address.session;
            let stuck = offer.is_stuck(now, patience, self.members.get(&offer.worker));
            let better = join.have_version > offer.version;
            !same && (better || stuck)
        });
        if let Some(offer) = self.offer.as_mut().filter(|offer| offer.is_by(&join.address)) {
            offer.round_trip = Duration::from_micros(u64::from(join.path.round_trip_us));
        }
        if better {
            if let Some(restored) = &mut self.restored {
                restored.wait_longer(now, restore_patience);
            }
            self.offer = Some(Offer {
                worker: join.address.worker,
                session: join.address.session,
                version: join.have_version,
                segments: BTreeMap::new(),
                present: Present::none_of(self.shape.segments()),
                last_progress: now,
                round_trip: Duration::from_micros(u64::from(join.path.round_trip_us)),
            });
        }
    }

    /// Segments of the offer that the server lacks: the first of them, and a mask of those among it
    /// and the 63 after it. Asked of the worker that makes the offer.
    pub(super) fn missing(&self, address: &Address) -> Option<(u32, u64)> {
        let offer = self.offer.as_ref().filter(|o| o.is_by(address))?;
        offer.present.missing_from_first()
    }

    /// One segment of an offered model; whether the job has its model now.
    pub(super) fn take_offer(
        &mut self,
        now: Instant,
        message: &Answer,
        lanes: &[u8],
        config: &ServerConfig,
    ) -> Result<bool, Refused> {
        let shape = self.shape;
        let offer = self.offer.as_mut().filter(|o| o.is_by(&message.address));
        let offer = offer.ok_or(Refused::NotAsked)?;
        if message.parameters != shape.parameters
            || message.segments != shape.segments()
            || shape.lanes(message.segment) * 4 != lanes.len()
        {
            return Err(Refused::WrongSize);
        }
        if !olaf_engine::lanes::all_finite(lanes) {
            self.offer = None;
            return Err(Refused::NonFinite);
        }
        if offer.version != message.model_version {
            // The worker has had a newer model meanwhile: the two do not mix.
            offer.version = message.model_version;
            offer.segments.clear();
            offer.present.clear();
        }
        offer.last_progress = now;
        if !offer.present.insert(message.segment) {
            return Err(Refused::Duplicate);
        }
        let mut segment = vec![0.0; shape.lanes(message.segment)];
        read_lanes(lanes, &mut segment);
        offer.segments.insert(message.segment, segment);
        if let Some(restored) = &mut self.restored {
            restored.hold(now, config.restore_patience);
        }
        if !offer.present.is_complete() {
            return Ok(false);
        }
        let offer = self.offer.take().expect("it was there a few lines above");
        self.start(offer.segments, config);
        Ok(true)
    }

    /// Begins with a model: all its segments, in their order.
    fn start(&mut self, segments: BTreeMap<u32, Vec<f32>>, config: &ServerConfig) {
        let segments = segments.into_values().map(Arc::new).collect();
        let rules = self.restored.take().map(|restored| restored.into_rules(config.rule));
        let rules = rules.unwrap_or_default();
        self.model = Some(ModelNow { segments, rules, changed: true });
        self.version = self.version.max(self.highest_claimed);
        self.publish(config.keep_versions);
    }

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

    /// Whether an update could change this job's model at all.
    pub(super) fn fits(&self, update: &Update, lanes: &[u8]) -> Result<(), Refused> {
        if !self.shape.fits(update, lanes) {
            return Err(Refused::WrongSize);
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

    /// The next version is one of its own even if nothing changed.
    pub(super) fn must_publish(&mut self) {
        if let Some(model) = &mut self.model {
            model.changed = true;
        }
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

/// Nobody's round trip is taken to be longer: a claim must not hold up a job.
const LONGEST_ROUND_TRIP: Duration = Duration::from_secs(4);

impl Offer {
    /// Whether another worker's model is to be taken instead. Between two windows of an offer lies
    /// a round trip at least. A worker that does not know its own yet has not been answered: it is
    /// waited for while it repeats itself, and not for ever: it may be one that hears nothing.
    fn is_stuck(&self, now: Instant, patience: Duration, by: Option<&Member>) -> bool {
        let Some(member) = by.filter(|member| member.session == self.session) else { return true };
        if self.round_trip.is_zero() && self.present.is_empty() {
            return member.liveness.is_overdue(now, patience * 3)
                || now.since(self.last_progress) >= LONGEST_ROUND_TRIP * 3;
        }
        let round_trip = self.round_trip.min(LONGEST_ROUND_TRIP);
        now.since(self.last_progress) >= patience.max(round_trip * 3)
    }

    fn is_by(&self, address: &Address) -> bool {
        self.worker == address.worker && self.session == address.session
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
