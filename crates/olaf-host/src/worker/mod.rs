//! A worker's end of a job: it joins, pushes updates, collects models, and notices who is gone.

mod clock;
mod models;
mod outbox;
mod statistics;

pub use models::Model;
pub use outbox::PushError;
pub use statistics::WorkerStatistics;

use crate::host::{Host, HostEvent, Refused};
use crate::liveness::{Liveness, Sign};
use crate::segments::Shape;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use clock::Clock;
use core::time::Duration;
use models::Models;
use olaf_engine::engine::{Transmit, Why};
use olaf_engine::{Instant, PeerId};
use olaf_wire::offsets::{DEFAULT_SEGMENT_LANES, MAX_SEGMENT_LANES};
use olaf_wire::{
    Address, Answer, ClusterId, Fetch, Join, Kind, Leave, Packet, QueueStatus, Welcome,
    WelcomeCode, WorkerId,
};
use outbox::Outbox;

/// A join that nobody answered is repeated after this long while the worker is not in, then after
/// twice as long, and so on up to the keepalive: a slow uplink is not to be filled with joins.
const JOIN_RETRY: Duration = Duration::from_millis(20);
/// Segments of an offered model that travel before the server is asked what it lacks.
const OFFER_WINDOW: u32 = 64;
/// Fetches that may be on their way at once, of 64 segments each.
const FETCHES_AT_ONCE: usize = 4;

/// The set-up.
#[derive(Clone, Debug)]
pub struct WorkerConfig {
    /// Who this is. The session names this life of the worker: draw it at random.
    pub address: Address,
    /// The switch, or a server without one.
    pub switch: PeerId,
    /// Lanes of a segment; all workers of a job agree on it.
    pub segment_lanes: u32,
    /// The worker says so often that it is there.
    pub keepalive: Duration,
    /// A party that owes an answer for so long is reported silent.
    pub silent_after: Duration,
    /// A model of which nothing more came for so long is asked for.
    pub fetch_after: Duration,
}

impl WorkerConfig {
    /// The usual set-up.
    #[must_use]
    pub const fn new(address: Address, switch: PeerId) -> Self {
        Self {
            address,
            switch,
            segment_lanes: DEFAULT_SEGMENT_LANES as u32,
            keepalive: Duration::from_millis(500),
            silent_after: Duration::from_secs(2),
            fetch_after: Duration::from_millis(20),
        }
    }
}

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
    clock: Clock,
    switch: Liveness,
    server: Liveness,
    queue: QueueStatus,
    /// Next segment of an offer to send, and where the window ends.
    offer: Option<(u32, u32)>,
    fetches: VecDeque<Fetch>,
    leave_to_send: bool,
    next_join: Option<Instant>,
    join_retry: Duration,
    last_join: Instant,
    next_fetch: Option<Instant>,
    /// How often in a row segments were asked for and none came.
    fetches_in_vain: u32,
    /// The newest version whose model was handed to the learner.
    basis: u32,
    counters: Counters,
    events: VecDeque<HostEvent>,
}

#[derive(Debug, Default)]
struct Counters {
    acknowledgements: u64,
    fetches: u64,
    staleness_last: u32,
    refused: BTreeMap<&'static str, u64>,
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
            config,
            standing: Standing::Outside,
            shape: None,
            first_weights: Vec::new(),
            models: Models::default(),
            outbox: Outbox::default(),
            clock: Clock::default(),
            switch: Liveness::default(),
            server: Liveness::default(),
            queue: QueueStatus::default(),
            offer: None,
            fetches: VecDeque::new(),
            leave_to_send: false,
            next_join: None,
            join_retry: JOIN_RETRY,
            last_join: Instant(0),
            next_fetch: None,
            fetches_in_vain: 0,
            basis: 0,
            counters: Counters::default(),
            events: VecDeque::new(),
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
        self.next_join = Some(now);
        Ok(())
    }

    /// Queues one update: the lanes of `parts`, in order, times `weight`. Never waits. An update
    /// whose segments have not all left yet gives way to this one, segment by segment.
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
        let shape = self.shape.ok_or(PushError::NotJoined)?;
        if !matches!(self.standing, Standing::Joining | Standing::Joined) {
            return Err(PushError::NotJoined);
        }
        let generated_ns = self.clock.server_time(now);
        let behind = self.models.newest_version_seen().saturating_sub(self.basis);
        self.counters.staleness_last = behind;
        self.outbox.push(shape, parts, reward, weight, generated_ns, self.basis)
    }

    /// The newest complete model.
    #[must_use]
    pub fn model(&self) -> Option<&Model> {
        self.models.newest()
    }

    /// The learner has taken the model of that version: what it pushes from here on is computed
    /// on it.
    pub fn taken(&mut self, version: u32) {
        self.basis = version;
    }

    /// Where this worker stands.
    #[must_use]
    pub const fn standing(&self) -> Standing {
        self.standing
    }

    /// Whether anything pushed still waits to be sent.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        self.outbox.has_unsent()
    }

    /// For how long switch and server have owed a sign of life.
    #[must_use]
    pub fn silences(&self, now: Instant) -> (Duration, Duration) {
        (self.switch.silence(now), self.server.silence(now))
    }

    /// Goes on in another cluster of the job: the switch is told at once, and what is pushed from
    /// here on is that cluster's.
    pub fn move_to(&mut self, now: Instant, cluster: ClusterId) {
        self.config.address.cluster = cluster;
        if matches!(self.standing, Standing::Joining | Standing::Joined) {
            self.next_join = Some(now);
        }
    }

    /// Says good-bye.
    pub fn leave(&mut self) {
        if !matches!(self.standing, Standing::Outside | Standing::Left) {
            self.leave_to_send = true;
        }
        self.standing = Standing::Left;
        (self.next_join, self.next_fetch, self.offer) = (None, None, None);
        self.fetches.clear();
    }

    /// Everything counted so far.
    #[must_use]
    pub fn statistics(&self, now: Instant) -> WorkerStatistics {
        statistics::of(self, now)
    }

    fn handle_welcome(&mut self, now: Instant, packet: &Packet<'_>) -> Result<(), Refused> {
        let welcome = Welcome::parse(packet).map_err(Refused::Malformed)?;
        self.for_me(&welcome.address)?;
        if welcome.address.worker == WorkerId::ALL {
            return Err(Refused::NotForMe);
        }
        if welcome.epoch != self.server.epoch() && self.models.is_old_epoch(welcome.epoch) {
            return Err(Refused::OldEpoch);
        }
        self.heard_switch(now, welcome.switch_epoch);
        match welcome.code {
            WelcomeCode::JoinAgain => {
                self.next_join = Some(now);
                return Ok(());
            }
            WelcomeCode::ServerSilent => {
                self.server.expect(now);
                return Ok(());
            }
            code if code.is_refusal() => {
                self.turned_away(now, code);
                return Err(Refused::TurnedAway(code));
            }
            _ => {}
        }
        self.heard_server(now, welcome.epoch);
        self.join_retry = JOIN_RETRY;
        self.clock.exchange(
            welcome.echoed_sent_at_ns,
            welcome.received_at_ns,
            welcome.sent_at_ns,
            now.0,
        );
        if self.standing == Standing::Left {
            return Ok(());
        }
        if welcome.ready {
            self.offer = None;
            self.want(now, welcome.version);
        } else if welcome.first_missing != u32::MAX && welcome.echoed_sent_at_ns == self.last_join.0
        {
            // Only the answer to the newest join: each window is sent once, however slow the link.
            let segments = self.shape.map_or(0, Shape::segments);
            let end = welcome.first_missing.saturating_add(OFFER_WINDOW).min(segments);
            self.offer = Some((welcome.first_missing, end));
            // Straight after the window the server is asked what it lacks.
            self.next_join = Some(now);
        }
        if self.standing != Standing::Joined && welcome.ready && self.models.newest().is_some() {
            self.joined(welcome.version);
        }
        Ok(())
    }

    fn handle_answer(&mut self, now: Instant, packet: &Packet<'_>) -> Result<(), Refused> {
        let answer = Answer::parse(packet).map_err(Refused::Malformed)?;
        self.for_me(&answer.address)?;
        if answer.epoch != self.server.epoch() && self.models.is_old_epoch(answer.epoch) {
            return Err(Refused::OldEpoch);
        }
        self.heard_switch(now, 0);
        self.heard_server(now, answer.epoch);
        if answer.queue.switches > 0 {
            self.queue = answer.queue;
        }
        if answer.acknowledges > 0 {
            self.counters.acknowledgements += 1;
            self.outbox.acknowledge(now, answer.acknowledges);
        }
        if packet.kind() == Kind::Model {
            let shape = self.shape.ok_or(Refused::UnknownWorker)?;
            if answer.acknowledges == 0 {
                // Not the answer to an update but to a wish: older versions are no longer kept.
                self.models.give_up_below(answer.model_version);
            }
            self.models.take(shape, &answer, packet.lanes())?;
            self.fetches_in_vain = 0;
            self.next_fetch = self.models.is_assembling().then(|| now + self.fetch_interval());
            if self.standing == Standing::Joining && self.models.newest().is_some() {
                self.joined(answer.model_version);
            }
        }
        Ok(())
    }

    fn for_me(&self, address: &Address) -> Result<(), Refused> {
        let own = &self.config.address;
        if address.job != own.job {
            return Err(Refused::UnknownJob);
        }
        // Straight from a server, without a switch that fans out, an answer is for all.
        let all = address.worker == WorkerId::ALL && address.cluster == own.cluster;
        if all || (address.worker == own.worker && address.session == own.session) {
            Ok(())
        } else {
            Err(Refused::NotForMe)
        }
    }

    fn joined(&mut self, version: u32) {
        self.standing = Standing::Joined;
        self.events.push_back(HostEvent::Joined { version });
    }

    fn turned_away(&mut self, now: Instant, code: WelcomeCode) {
        if self.standing != Standing::TurnedAway(code) {
            self.events.push_back(HostEvent::TurnedAway(code));
        }
        self.standing = Standing::TurnedAway(code);
        // An id in use may be this worker's own earlier life, which is forgotten soon; a model of
        // another size stays one.
        let may_pass = matches!(code, WelcomeCode::WorkerIdInUse | WelcomeCode::Full);
        self.next_join = may_pass.then(|| now + self.config.keepalive);
    }

    fn heard_switch(&mut self, now: Instant, epoch: u32) {
        match self.switch.heard(now, epoch) {
            Sign::Usual => {}
            Sign::Back => self.events.push_back(HostEvent::SwitchBack),
            Sign::Restarted => self.events.push_back(HostEvent::SwitchRestarted),
        }
    }

    fn heard_server(&mut self, now: Instant, epoch: u32) {
        let before = self.server.epoch();
        match self.server.heard(now, epoch) {
            Sign::Usual => {}
            Sign::Back => self.events.push_back(HostEvent::ServerBack),
            Sign::Restarted => {
                self.models.new_epoch(before);
                self.next_join = Some(now);
                self.events.push_back(HostEvent::ServerRestarted);
            }
        }
    }

    /// The job has a model of that version: where nothing of it is on its way, it is asked for.
    fn want(&mut self, now: Instant, version: u32) {
        let Some(shape) = self.shape else { return };
        if self.models.want(shape, version) {
            self.next_fetch = Some(now);
        }
    }

    /// Before the first round trip is known it is found by waiting twice as long each time: on a
    /// slow path the wishes would otherwise crowd out what they wish for.
    fn fetch_interval(&self) -> Duration {
        let first = self.config.fetch_after.max(self.outbox.round_trip().unwrap_or_default() * 2);
        let longer = first.saturating_mul(1 << self.fetches_in_vain.min(16));
        longer.min(self.config.keepalive.max(first))
    }

    fn emit_join(&mut self, now: Instant, buf: &mut [u8]) -> usize {
        let shape = self.shape.expect("join() sets the shape before it asks for a join");
        self.switch.expect(now);
        self.server.expect(now);
        self.last_join = now;
        let waiting = self.standing == Standing::Joining;
        self.next_join = Some(now + if waiting { self.join_retry } else { self.config.keepalive });
        self.join_retry = (self.join_retry * 2).min(self.config.keepalive);
        Join {
            address: self.config.address,
            have_version: self.models.newest().map_or(0, |model| model.version),
            parameters: shape.parameters,
            segment_lanes: shape.segment_lanes,
            clock_error_us: self.clock.error_us(),
            sent_at_ns: now.0,
            clock_offset_ns: self.clock.offset_ns(),
            hops: 0,
        }
        .emit(buf)
    }

    fn emit_offer(&mut self, buf: &mut [u8]) -> Option<usize> {
        let (segment, end) = self.offer?;
        if segment >= end {
            self.offer = None;
            return None;
        }
        let shape = self.shape?;
        self.offer = Some((segment + 1, end));
        let (weights, version) = match self.models.newest() {
            Some(model) => (&model.lanes, model.version),
            None => (&self.first_weights, 0),
        };
        let lanes = weights.get(shape.range(segment))?;
        let offer = Answer {
            address: self.config.address,
            acknowledges: 0,
            segment,
            segments: shape.segments(),
            model_version: version,
            parameters: shape.parameters,
            epoch: self.server.epoch(),
            delivered_version: 0,
            delivered_newest_ns: 0,
            server_time_ns: 0,
            queue: QueueStatus::default(),
        };
        Some(offer.emit(lanes, buf))
    }
}

impl Host for Worker {
    fn handle_packet(&mut self, now: Instant, from: PeerId, bytes: &[u8]) -> Result<(), Refused> {
        let result = if matches!(self.standing, Standing::Outside | Standing::Left) {
            // Nothing was asked, so nothing is answered; least of all does it bring a worker in.
            Err(Refused::NotForMe)
        } else if from == self.config.switch {
            match Packet::new_checked(bytes) {
                Err(refusal) => Err(Refused::Malformed(refusal)),
                Ok(packet) => match packet.kind() {
                    Kind::Welcome => self.handle_welcome(now, &packet),
                    Kind::Acknowledgement | Kind::Model => self.handle_answer(now, &packet),
                    _ => Err(Refused::WrongDirection),
                },
            }
        } else {
            Err(Refused::UnknownPeer)
        };
        if let Err(refused) = result {
            *self.counters.refused.entry(refused.name()).or_default() += 1;
        }
        result
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        let peer = self.config.switch;
        let sent = |len| Some(Transmit { peer, len });
        if let Some(len) = self.emit_offer(buf) {
            return sent(len);
        }
        if self.next_join.is_some_and(|at| at <= now) {
            return sent(self.emit_join(now, buf));
        }
        if let Some(fetch) = self.fetches.pop_front() {
            self.counters.fetches += 1;
            return sent(fetch.emit(buf));
        }
        // Before it is in, nobody would take an update.
        if self.standing == Standing::Joined || self.standing == Standing::Left {
            let segments = self.outbox.emit(now, self.config.address, buf);
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

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        let join = self.next_join.map(|at| (at, Why::Retransmission));
        let fetch = self.next_fetch.map(|at| (at, Why::Retransmission));
        // A join that is due may leave without handle_timeout(): silence has its own time.
        let silent_after = self.config.silent_after;
        let silence = [&self.switch, &self.server]
            .map(|party| party.falls_silent_at(silent_after).map(|at| (at, Why::SilenceCheck)));
        [join, fetch].into_iter().chain(silence).flatten().min_by_key(|(at, _)| *at)
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.next_fetch.is_some_and(|at| at <= now) {
            let address = self.config.address;
            self.fetches = self.models.missing(address).take(FETCHES_AT_ONCE).collect();
            let again = now + self.fetch_interval();
            self.fetches_in_vain += 1;
            self.next_fetch = self.models.is_assembling().then_some(again);
        }
        if self.switch.fell_silent(now, self.config.silent_after) {
            self.events.push_back(HostEvent::SwitchSilent);
        }
        if self.server.fell_silent(now, self.config.silent_after) {
            self.events.push_back(HostEvent::ServerSilent);
        }
    }

    fn poll_event(&mut self) -> Option<HostEvent> {
        self.events.pop_front()
    }
}
