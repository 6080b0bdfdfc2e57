//! A worker's end of a job: it joins, pushes updates, collects models, and notices a silent switch
//! or server.

pub(super) mod clock;
mod config;
mod describing;
mod incoming;
mod joining;
mod lending;
mod models;
mod outbox;
mod path;
mod signing;
mod statistics;

pub use config::{WorkerConfig, WorkerOptions};
pub use lending::Lent;
pub use models::Model;
pub use olaf_engine::TooNarrow;
pub use outbox::PushError;
pub(super) use path::PACKETS as PATH_PACKETS;
pub use path::PathConfig;
pub use statistics::{Rule, SignatureCounts, WorkerStatistics};

use crate::transmission::{Transmission, Unsent};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use clock::Clock;
use core::time::Duration;
use describing::Description;
use joining::{Joins, Offer};
use models::Models;
use olaf_engine::party::Liveness;
use olaf_engine::party::Shape;
use olaf_engine::report::{self, Report};
use olaf_engine::seal::Signer;
use olaf_engine::{
    Contribution, Engine, Event, Flow, Instant, PeerId, PortId, Refused, Source, TrafficClass,
    Transmit, Verdict, Why, WorkerEvent,
};
use olaf_wire::offsets::MAX_SEGMENT_LANES;
use olaf_wire::{
    Address, ClusterId, Fetch, JobRule, Kind, Leave, Packet, QueueStatus, Refusal, WelcomeCode,
};
use outbox::Outbox;
use path::Path;
use signing::Signatures;

/// Most bytes, about, of segments asked for at once; each fetch asks for 64 segments.
const FETCH_BYTES: usize = 2 << 20;
/// Fetches that may be on their way at once, however short segments are.
const FETCHES_AT_ONCE: usize = 32;

/// Where a worker stands with its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has not tried.
    Outside,
    /// It asks to be let in, or waits for the job's model.
    Joining,
    /// It is in, and has had a model.
    Joined,
    /// It was turned away.
    TurnedAway(WelcomeCode),
    /// It has left.
    Left,
}

/// The worker.
pub struct Worker {
    config: WorkerConfig,
    standing: Standing,
    shape: Option<Shape>,
    /// What it offers to a server that has no model, until it has had one from the job.
    first_weights: Vec<f32>,
    models: Models,
    outbox: Outbox,
    transmission: Transmission,
    chance: Chance,
    next_retry: Option<Instant>,
    clock: Clock,
    switch: Liveness,
    server: Liveness,
    queue: QueueStatus,
    /// How the server changes the model, as it said last.
    rule: Option<JobRule>,
    description: Description,
    offer: Option<Offer>,
    fetches: VecDeque<Fetch>,
    /// Whether the server's newest model is asked for and has not come.
    refreshing: bool,
    /// The newest model that was here when it was asked for.
    asked_with: u32,
    /// The version that came for that, where it is held back until its signature is checked.
    refreshed_by: Option<u32>,
    signatures: Signatures,
    /// Those that were asked for last: when all of it is here, more is asked for at once.
    asked: Vec<Fetch>,
    leave_to_send: bool,
    /// A switch holds its join back until its admission control has said whether the cluster may
    /// join.
    awaits_admission: bool,
    next_join: Option<Instant>,
    last_join: Instant,
    /// The number that joins echo; 0: no welcome had one.
    nonce: u32,
    joins: Joins,
    path: Path,
    /// How the job is cut, where it is said and this worker has not taken it over.
    segment_lanes_of_job: u32,
    next_fetch: Option<Instant>,
    /// How often in a row segments were asked for and none came.
    fetches_in_vain: u32,
    /// The newest version whose model was handed to the learner.
    basis: u32,
    /// The same as the learner knows it, which is above `basis` where that version was forgotten.
    pulled: u32,
    counters: Counters,
    events: VecDeque<WorkerEvent>,
}

#[derive(Debug, Default)]
struct Counters {
    acknowledgements: u64,
    fetches: u64,
    offers: u64,
    notices: u64,
    staleness_last: u32,
    refused: BTreeMap<&'static str, u64>,
    /// The version of the format that its switch speaks, where that is another one.
    other_version: Option<u8>,
}

impl Worker {
    /// A worker that has not joined.
    ///
    /// # Panics
    /// When `segment_lanes` is 0 or above [`MAX_SEGMENT_LANES`].
    #[must_use]
    pub fn new(config: WorkerConfig) -> Self {
        let lanes = config.segment_lanes as usize;
        assert!((1..=MAX_SEGMENT_LANES).contains(&lanes), "segment_lanes is what a datagram holds");
        Self {
            transmission: Transmission::new(config.transmission),
            chance: Chance(config.chance_seed),
            standing: Standing::Outside,
            shape: None,
            first_weights: Vec::new(),
            models: Models::default(),
            outbox: Outbox::default(),
            next_retry: None,
            clock: Clock::default(),
            switch: Liveness::default(),
            server: Liveness::default(),
            queue: QueueStatus::default(),
            rule: None,
            description: Description::default(),
            offer: None,
            fetches: VecDeque::new(),
            refreshing: false,
            asked_with: 0,
            refreshed_by: None,
            signatures: Signatures::default(),
            asked: Vec::new(),
            leave_to_send: false,
            awaits_admission: false,
            next_join: None,
            last_join: Instant(0),
            nonce: 0,
            joins: Joins::new(),
            path: Path::new(config.path),
            segment_lanes_of_job: 0,
            next_fetch: None,
            fetches_in_vain: 0,
            basis: 0,
            pulled: 0,
            counters: Counters::default(),
            events: VecDeque::new(),
            config,
        }
    }

    /// Starts to join with `parts` as the model to begin with, should the job have none
    /// (OLAF §2.1: the fastest worker's weights start the job).
    ///
    /// # Errors
    /// [`PushError::WrongSize`] for no parameters, or more than a model may have,
    /// [`PushError::NonFinite`] for weights that no job can begin with.
    pub fn join(&mut self, now: Instant, parts: &[&[f32]]) -> Result<(), PushError> {
        let count: usize = parts.iter().map(|part| part.len()).sum();
        let parameters = u32::try_from(count).ok().filter(|n| *n > 0);
        let parameters = parameters.ok_or(PushError::WrongSize { have: count, need: 1 })?;
        if let Some(index) = parts.iter().flat_map(|p| p.iter()).position(|w| !w.is_finite()) {
            return Err(PushError::NonFinite { index });
        }
        self.shape = Some(Shape { parameters, segment_lanes: self.config.segment_lanes });
        self.first_weights.clear();
        parts.iter().for_each(|part| self.first_weights.extend_from_slice(part));
        self.standing = Standing::Joining;
        self.path.refused = None;
        let shape = Shape { parameters, segment_lanes: self.config.segment_lanes };
        self.next_join = (!self.begins_with_a_search(now, shape)).then_some(now);
        Ok(())
    }

    /// Asks the server for its newest model: one round trip, not repeated should it be lost. Other
    /// models come as answers to updates.
    pub fn refresh(&mut self) {
        if self.standing == Standing::Joined {
            let have_version = self.model().map_or(0, |model| model.version);
            let address = self.config.address;
            let newest = Fetch { address, version: 0, first: 0, mask: u64::MAX, have_version };
            self.fetches.push_front(newest);
            self.refreshing = true;
            self.asked_with = have_version;
            self.refreshed_by = None;
        }
    }

    /// Returns true if the answer to [`Worker::refresh`] is still to come.
    #[must_use]
    pub const fn is_refreshing(&self) -> bool {
        self.refreshing
    }

    /// Queues one update: the lanes of `parts`, in order, times `weight`. Never waits. An update
    /// whose segments have not all left yet gives way to this one, segment by segment. Transmission
    /// control may hold the update back: see [`Unsent`].
    ///
    /// Returns its sequence number.
    ///
    /// # Errors
    /// See [`PushError`]; nothing is queued then.
    pub fn push(
        &mut self,
        now: Instant,
        parts: &[&[f32]],
        reward: f64,
        weight: f64,
    ) -> Result<u32, PushError> {
        self.queue(now, parts, (reward, weight), false)
    }

    /// Queues an update. `lends`: its lanes may stay where they are, see [`Lent`].
    fn queue(
        &mut self,
        now: Instant,
        parts: &[&[f32]],
        (reward, weight): (f64, f64),
        lends: bool,
    ) -> Result<u32, PushError> {
        let shape = self.shape.ok_or(PushError::NotJoined)?;
        if !matches!(self.standing, Standing::Joining | Standing::Joined) {
            return Err(PushError::NotJoined);
        }
        let generated_ns = self.clock.server_time(now);
        let behind = self.models.newest_version_seen().saturating_sub(self.basis);
        self.counters.staleness_last = behind;
        let Address { job, cluster, worker, .. } = self.config.address;
        let flow = Flow { job, cluster, segment: 0 };
        let contribution = Contribution {
            segments: shape.segments(),
            versions: (self.basis, self.basis),
            weight,
            reward,
            ..Contribution::of_one(flow, worker, generated_ns, 0)
        };
        let send = self.transmission.decide(now, generated_ns, self.chance.draw());
        let unsent = self.config.transmission.unsent;
        let sequence = if lends {
            self.outbox.lend(shape, parts, contribution, send, unsent)?
        } else {
            self.outbox.push(shape, parts, contribution, send, unsent)?
        };
        self.suspect_path(now);
        self.plan_retry(now);
        Ok(sequence)
    }

    /// Sends what transmission control holds back: nothing newer is to come that it could join.
    pub fn send_held(&mut self) {
        self.outbox.release();
        self.next_retry = None;
    }

    fn plan_retry(&mut self, now: Instant) {
        self.next_retry = match self.config.transmission.unsent {
            Unsent::Retry(after) if self.outbox.held_newest_ns().is_some() => {
                Some(self.next_retry.filter(|at| *at > now).unwrap_or(now + after))
            }
            _ => None,
        };
    }

    /// Decides anew on an update that waits for its next try.
    fn retry(&mut self, now: Instant) {
        let Some(generated_ns) = self.outbox.held_newest_ns() else { return };
        if self.transmission.decide(now, generated_ns, self.chance.draw()) {
            self.outbox.release();
        }
        self.plan_retry(now);
    }

    /// The newest complete model.
    #[must_use]
    pub fn model(&self) -> Option<&Model> {
        self.models.newest()
    }

    /// Returns true if the newest model is news to a learner that has a version already. A version
    /// that the server turned out not to have is older than every other: see
    /// [`Models::forget_above`].
    #[must_use]
    pub fn is_newer(&self, version: u32, than: u32) -> bool {
        let forgotten = than == self.pulled && than > self.models.newest_version_seen();
        version > than || forgotten
    }

    /// The learner has taken the model of that version: what it pushes from here on is computed
    /// on it.
    pub fn taken(&mut self, version: u32) {
        (self.basis, self.pulled) = (version, version);
    }

    /// Where this worker stands.
    #[must_use]
    pub const fn standing(&self) -> Standing {
        self.standing
    }

    /// What the server does with an update, as its newest welcome says; nothing before the first.
    #[must_use]
    pub const fn rule(&self) -> Option<JobRule> {
        self.rule
    }

    /// Why the path keeps this worker out of the job, where it does.
    #[must_use]
    pub const fn too_narrow(&self) -> Option<TooNarrow> {
        self.path.refused
    }

    /// Contributions sent of which nobody has said yet what became of them, and those of which
    /// nobody ever will: a party began a new life, or too many newer ones were sent since.
    #[must_use]
    pub const fn without_end(&self) -> (u64, u64) {
        (self.outbox.counts.awaited, self.outbox.counts.unconfirmed)
    }

    /// Returns true if the newest update is under way: it waits here, or nobody has said yet what
    /// became of it. An older one that was lost does not count.
    #[must_use]
    pub fn awaits_end(&self) -> bool {
        self.outbox.has_unsent() || self.outbox.awaits_newest()
    }

    /// Returns true if anything pushed still waits to be sent.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        self.outbox.has_unsent()
    }

    /// For how long switch and server have owed a heartbeat.
    #[must_use]
    pub fn silences(&self, now: Instant) -> (Duration, Duration) {
        (self.switch.silence(now), self.server.silence(now))
    }

    /// Goes on in another cluster of the job, and tells the switch at once. Updates pushed from
    /// here on belong to the new cluster; so do updates that have not left yet.
    pub fn move_to(&mut self, now: Instant, cluster: ClusterId) {
        self.config.address.cluster = cluster;
        self.transmission.forget();
        if matches!(self.standing, Standing::Joining | Standing::Joined) {
            self.join_at(now);
        }
    }

    /// Leaves.
    pub fn leave(&mut self) {
        self.send_held();
        if !matches!(self.standing, Standing::Outside | Standing::Left) {
            self.leave_to_send = true;
        }
        self.standing = Standing::Left;
        self.path.stop();
        (self.next_join, self.next_fetch, self.offer) = (None, None, None);
        self.fetches.clear();
        self.refreshing = false;
        self.stop_asking();
        self.asked.clear();
    }

    /// Everything counted so far.
    #[must_use]
    pub fn statistics(&self, now: Instant) -> WorkerStatistics {
        statistics::of(self, now)
    }
}

/// Draws of a seed (SplitMix64): the same seed, the same draws.
#[derive(Debug)]
struct Chance(u64);

impl Chance {
    /// From 0 to below 1.
    fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

impl Worker {
    fn take_packet(&mut self, now: Instant, from: PeerId, bytes: &[u8]) -> Result<(), Refused> {
        if matches!(self.standing, Standing::Outside | Standing::Left) {
            // Nothing was asked, so nothing is answered; least of all does it bring a worker in.
            Err(Refused::NotForMe)
        } else if from == self.config.switch {
            match Packet::new_checked(bytes) {
                Err(refusal) => {
                    if let Refusal::WrongVersion { have: version, .. } = refusal {
                        self.counters.other_version = Some(version);
                    }
                    Err(Refused::Malformed(refusal))
                }
                Ok(packet) => match packet.kind() {
                    Kind::Welcome => self.handle_welcome(now, &packet),
                    Kind::Acknowledgement | Kind::Model => self.handle_answer(now, &packet),
                    Kind::Notice => self.handle_notice(now, &packet),
                    Kind::Signature => self.handle_signature(now, &packet),
                    _ => Err(Refused::WrongDirection),
                },
            }
        } else {
            Err(Refused::UnknownPeer)
        }
    }

    /// Writes the next datagram. `lent`: the loan of the thread that sends now.
    fn emit(&mut self, now: Instant, lent: Option<&Lent<'_>>, buf: &mut [u8]) -> Option<Transmit> {
        let peer = self.config.switch;
        let class = TrafficClass::with_ecn(self.config.ecn);
        let sent = |len| Some(Transmit { class, ..Transmit::to(peer, len) });
        if let Some(len) = self.emit_offer(buf) {
            return sent(len);
        }
        if let Some(size) = self.poll_probe() {
            return sent(self.emit_probe(now, size, buf));
        }
        if self.next_join.is_some_and(|at| at <= now) {
            return sent(self.emit_join(now, buf));
        }
        if let Some(len) = self.emit_layout(buf) {
            return sent(len);
        }
        if let Some(len) = self.emit_ask_signature(now, buf) {
            return sent(len);
        }
        if !self.path.is_narrow()
            && let Some(fetch) = self.fetches.pop_front()
        {
            self.counters.fetches += 1;
            return sent(fetch.emit(buf));
        }
        // Before it is in, no party would take an update.
        let passes = !self.path.is_narrow();
        if passes && matches!(self.standing, Standing::Joined | Standing::Left) {
            let segments = self.outbox.emit(now, self.config.address, lent, buf);
            if let Some(len) = segments {
                self.switch.expect(now);
                return sent(len);
            }
        }
        if core::mem::take(&mut self.leave_to_send) {
            return sent(Leave { address: self.config.address }.emit(buf));
        }
        None
    }
}

impl Engine for Worker {
    fn take_signer(&mut self, now: Instant, signer: Box<dyn Signer>) {
        self.check_models_anew(now, signer);
    }

    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        match self.take_packet(now, from.peer, bytes) {
            Ok(()) => Verdict::Absorb,
            Err(refused) => {
                *self.counters.refused.entry(refused.name()).or_default() += 1;
                Verdict::refused(refused)
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant, _port: PortId, buf: &mut [u8]) -> Option<Transmit> {
        self.emit(now, None, buf)
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        let join = self.next_join.map(|at| (at, Why::Retransmission));
        // Segments would not pass the path: it does not ask for them.
        let fetch = self.next_fetch.filter(|_| !self.path.is_narrow());
        let fetch = fetch.map(|at| (at, Why::Retransmission));
        let retry = self.next_retry.map(|at| (at, Why::Retransmission));
        let probe = self.path.next().map(|at| (at, Why::Retransmission));
        let signature = self.signatures.next().map(|at| (at, Why::Retransmission));
        // A join that is due may leave without handle_timeout(): silence has its own time.
        let silent_after = self.silent_after();
        let silence = [&self.switch, &self.server]
            .map(|party| party.falls_silent_at(silent_after).map(|at| (at, Why::SilenceCheck)));
        [join, fetch, retry, probe, signature]
            .into_iter()
            .chain(silence)
            .flatten()
            .min_by_key(|(at, _)| *at)
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.next_retry.is_some_and(|at| at <= now) {
            self.retry(now);
        }
        if self.path.next().is_some_and(|at| at <= now) {
            self.probe(now);
        }
        if !self.path.is_narrow() && self.next_fetch.is_some_and(|at| at <= now) {
            self.plan_fetches(now);
        }
        self.refuse_unsigned(now);
        if self.switch.fell_silent(now, self.silent_after()) {
            self.events.push_back(WorkerEvent::SwitchSilent);
        }
        if self.server.fell_silent(now, self.silent_after()) {
            self.events.push_back(WorkerEvent::ServerSilent);
        }
    }

    fn handle_too_long(&mut self, now: Instant, bytes: usize, largest: Option<u32>) {
        self.did_not_fit(now, bytes, largest);
    }

    fn poll_event(&mut self) -> Option<Event> {
        let what = self.events.pop_front()?;
        Some(Event::Worker(self.config.address.job, self.config.switch, what))
    }

    /// A worker talks to its switch alone.
    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        keep(self.config.switch);
    }

    fn report(&self, now: Instant, to: &mut dyn Report) {
        report::walk(&self.statistics(now), to);
    }
}
