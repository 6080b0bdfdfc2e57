//! A parameter server: it applies what arrives, at once, and answers with the new model.
//!
//! # Models of several segments
//! Each segment of an update is applied when it arrives, whatever became of the others; the server
//! never waits for a missing one. Why it converges: a segment is a block of the parameters, and
//! what the server does is asynchronous block-coordinate descent. Every block keeps being updated,
//! because losses are not bound to a block, and every contribution carries the version it was
//! computed on, so that its delay is bounded by the run's largest staleness, which is measured:
//! these are the two conditions under which such iterations converge as the unsplit ones do.
//! A model goes down only as a *version*: a snapshot of all segments, published when a cluster has
//! had each of its segments delivered once, or some time after the first of them.
//!
//! With one segment all this is what OLAF §2.1 says: each delivered update is applied and answered
//! with the model that resulted.

mod aggregate;
mod answers;
mod applying;
mod checkpoint;
mod cluster;
mod config;
mod describing;
mod fates;
mod forgetting;
mod hops;
mod job;
mod joining;
mod offering;
mod overlap;
mod presence;
mod rule;
mod signing;
mod statistics;
mod updates;

pub use aggregate::Aggregate;
pub use checkpoint::{ClusterState, Counts, JobState, RestoreError};
pub use config::ServerConfig;
pub use fates::Staleness;
pub use rule::{Applied, Delivered, Rule, RuleConfig, RuleKind, RuleState, ServerGate, Step};
pub use statistics::ServerStatistics;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use answers::{Answers, Outgoing};
use core::time::Duration;
use hops::Hop;
use job::Job;
use olaf_engine::event::MEMBERSHIP_LINES;
use olaf_engine::keys::ConfigError;
use olaf_engine::party::{Allowance, Arrivals, Bucket, Chance, Deadlines, GONE};
use olaf_engine::report::{self, Report};
use olaf_engine::seal::Signer;
use olaf_engine::{
    Engine, Event, FlowEnds, Instant, PeerId, PortId, Refused, Source, TrafficClass, Transmit,
    Verdict, Why, WorkerSeen,
};
use olaf_wire::{
    Address, Answer, ClusterId, Fetch, JobId, JobRule, Kind, Leave, Packet, join_of_another_version,
};

/// How often parties are looked at for silence.
const SILENCE_CHECK: Duration = Duration::from_millis(100);
const EVENT_LIMIT: usize = 4096;
/// Senders of updates whose numbers are remembered: workers, or switches for all behind them.
const SENDERS: usize = 4096;
/// Segments that one worker may ask for: four models at once, and then eight models a second. A worker
/// has most of its models as answers to its updates.
fn fetched_segments(model: u32) -> Allowance {
    let every = Duration::from_secs(1) / model.saturating_mul(8).saturating_add(256);
    Allowance { burst: model.saturating_mul(4).saturating_add(256), every }
}

/// The server.
pub struct Server {
    config: ServerConfig,
    epoch: u32,
    jobs: BTreeMap<JobId, Job>,
    /// Hops that updates came over, and when each was last heard.
    hops: BTreeMap<(PeerId, JobId), Hop>,
    /// The number of hops that starts the next search for those without workers.
    sweep_hops_at: usize,
    /// Which datagrams came over each hop: duplicates are known by their numbers there.
    arrivals: Arrivals,
    /// The ends of the updates that came over these hops, flow by flow.
    ends: BTreeMap<(PeerId, JobId), BTreeMap<(ClusterId, u32), FlowEnds>>,
    /// Peers that may be switches; none: each peer may.
    switches: Option<BTreeSet<PeerId>>,
    answers: Answers,
    /// When the collection of each job ends, or its wait for a newer model.
    deadlines: Deadlines<JobId>,
    /// When the open rounds of clusters end.
    rounds: Deadlines<(JobId, ClusterId)>,
    refused: BTreeMap<&'static str, u64>,
    events: VecDeque<Event>,
    next_silence_check: Instant,
    /// Mean age of all clusters, nanoseconds, and when it was that.
    mean_age: Option<(f64, Instant)>,
    /// The time of the last input.
    clock: Instant,
    /// Events about workers' coming and going, which strangers can cause.
    lines: Bucket,
    /// A job is forgotten only when its checkpoint is on the disk.
    awaits_checkpoints: bool,
    /// Jobs that were forgotten, for whoever writes checkpoints.
    forgotten: Vec<JobId>,
}

impl Server {
    /// The number of this incarnation: the epoch that it was made with.
    #[must_use]
    pub const fn incarnation(&self) -> u32 {
        self.epoch
    }

    /// A server without jobs. `epoch` names this life of it: draw it at random.
    ///
    /// # Errors
    /// The key of `config` that cannot be, and why.
    pub fn new(config: ServerConfig, epoch: u32) -> Result<Self, ConfigError> {
        let config = config.check()?;
        Ok(Self {
            answers: Answers::new(config.answer_limit),
            epoch: epoch.max(1),
            jobs: BTreeMap::new(),
            hops: BTreeMap::new(),
            sweep_hops_at: SENDERS,
            arrivals: Arrivals::new(SENDERS),
            ends: BTreeMap::new(),
            switches: None,
            deadlines: Deadlines::default(),
            rounds: Deadlines::default(),
            refused: BTreeMap::new(),
            events: VecDeque::new(),
            next_silence_check: Instant(0),
            mean_age: None,
            clock: Instant(0),
            lines: Bucket::default(),
            awaits_checkpoints: false,
            forgotten: Vec::new(),
            config,
        })
    }

    /// Lets that peer be a switch. From the first call on no other peer may.
    pub fn allow_switch(&mut self, peer: PeerId) {
        self.switches.get_or_insert_default().insert(peer);
    }

    /// Peers have to prove their addresses before models go to them. Without it addresses are believed.
    pub fn demand_proofs(&mut self, chance: Chance) {
        self.answers.proofs.demand(chance);
    }

    /// A job's model now: its version and its segments in order; nothing while it has none.
    #[must_use]
    pub fn model(&self, job: JobId) -> Option<(u32, impl Iterator<Item = &[f32]>)> {
        let job = self.jobs.get(&job)?;
        let restored = job.restored.as_ref().map(checkpoint::Restored::segments);
        let segments = job.model.as_ref().map(|model| &model.segments).or(restored)?;
        Some((job.version, segments.iter().map(|segment| segment.as_slice())))
    }

    /// How updates change the models, as workers are told.
    #[must_use]
    pub fn rule(&self) -> JobRule {
        self.config.told()
    }

    /// All counters, and the workers that are here.
    #[must_use]
    pub fn statistics(&self, now: Instant) -> ServerStatistics {
        statistics::of(self, now)
    }

    fn event(&mut self, event: Event) {
        if event.is_of_membership() && !self.lines.take(self.clock, MEMBERSHIP_LINES) {
            return;
        }
        if self.events.len() == EVENT_LIMIT {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    fn handle_fetch(
        &mut self,
        now: Instant,
        from: PeerId,
        packet: &Packet<'_>,
    ) -> Result<(), Refused> {
        let fetch = Fetch::parse(packet).map_err(Refused::Malformed)?;
        let job = self.jobs.get_mut(&fetch.address.job).ok_or(Refused::UnknownJob)?;
        let model = job.shape.segments();
        let member = job.member(from, &fetch.address)?;
        member.liveness.note(now);
        if !self.answers.proofs.is_proven(&(from, fetch.address.job)) {
            return Err(Refused::NotProven);
        }
        // An answer is far longer than the request.
        let asks = fetch.segments().count() as u32;
        // Of a version that is gone the whole newest model comes, unless it is on its way.
        let is_whole = !job.kept.iter().any(|(version, _)| *version == fetch.version)
            && job.version != fetch.have_version
            && !self.answers.is_sending(from, &fetch.address);
        let price = if is_whole { model } else { asks.min(model) };
        let member = job.member(from, &fetch.address)?;
        if !member.fetches.take_many(now, price, fetched_segments(model)) {
            return Err(Refused::TooOften);
        }
        let Some((version, snapshot, kept)) = job.snapshot(fetch.version) else {
            return Ok(()); // No model yet: the worker will be told when there is one.
        };
        let segments = job.shape.segments();
        let shape = job.shape;
        let answer = Answer {
            model_version: version,
            ..self.model_for(now, fetch.address.job, fetch.address)
        };
        if kept {
            let wanted = fetch.segments().filter(|s| *s < segments);
            let signature = self.sign(&answer, shape, &snapshot);
            self.answers.segments(from, answer, &snapshot, wanted, signature);
        } else if version == fetch.have_version {
            self.answers.segments(from, answer, &snapshot, 0..1, None);
        } else {
            self.answers.model(from, answer, shape, snapshot);
        }
        Ok(())
    }

    fn handle_leave(
        &mut self,
        now: Instant,
        from: PeerId,
        packet: &Packet<'_>,
    ) -> Result<(), Refused> {
        let leave = Leave::parse(packet).map_err(Refused::Malformed)?;
        let job = self.jobs.get_mut(&leave.address.job).ok_or(Refused::UnknownJob)?;
        job.member(from, &leave.address)?;
        job.members.remove(&leave.address.worker);
        self.event(Event::WorkerLeft(seen(&leave.address, from)));
        self.close_if_full(now, leave.address.job);
        Ok(())
    }

    /// Answers the clusters whose round has lasted long enough.
    fn end_rounds(&mut self, now: Instant) {
        while let Some((id, cluster)) = self.rounds.pop(now) {
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            // The cluster, or its job, may have been forgotten and begun anew meanwhile.
            let Some(state) = job.clusters.get_mut(&cluster) else { continue };
            if state.round_ends().is_none_or(|at| at > now) {
                continue;
            }
            let answers = state.end_round();
            let snapshot = job.publish(self.config.keep_versions);
            for (peer, answer) in answers {
                let answer = Answer { model_version: job.version, server_time_ns: now.0, ..answer };
                self.answers.model(peer, answer, job.shape, snapshot.clone());
            }
        }
    }

    fn check_silence(&mut self, now: Instant) {
        let after = self.config.silent_after;
        let mut fell_silent = Vec::new();
        // A job without a model is a join that nothing came of.
        self.jobs.retain(|id, job| {
            let keep =
                !job.is_empty() || !job.members.is_empty() || now.since(job.last_join) < after;
            if !keep {
                // Its fates go, too.
                self.arrivals.forget_job(*id);
                self.deadlines.set(*id, None);
            }
            keep
        });
        let mut clusters_gone = BTreeSet::new();
        let proofs = &self.answers.proofs;
        for (id, job) in &mut self.jobs {
            // Any sender can send a join: without a proof of its address it does not stay for long.
            job.members.keep(|member| {
                let liveness = &member.liveness;
                if proofs.is_proven(&(member.peer, *id)) {
                    !liveness.is_gone(now, after)
                } else {
                    !liveness.is_overdue(now, after)
                }
            });
            let gone = job.prune_clusters(now, after * GONE);
            clusters_gone.extend(gone.into_iter().map(|cluster| (*id, cluster)));
            let presence = &mut job.presence;
            job.members.for_each_mut(|worker, member| {
                if member.liveness.fell_silent(now, after) {
                    presence.is_over();
                    let (job, cluster, worker, peer) = (*id, member.cluster, *worker, member.peer);
                    fell_silent.push(WorkerSeen { job, cluster, worker, peer });
                }
            });
        }
        self.forget_jobs(now);
        self.hops.retain(|_, hop| !hop.liveness.is_gone(now, after));
        let hops = &self.hops;
        self.ends.retain(|hop, _| hops.contains_key(hop));
        if !clusters_gone.is_empty() {
            for ((_, job), flows) in &mut self.ends {
                flows.retain(|(cluster, _), _| !clusters_gone.contains(&(*job, *cluster)));
            }
        }
        self.answers.proofs.keep(|hop| hops.contains_key(hop));
        let jobs = &self.jobs;
        self.answers.proofs.count(|(peer, id)| jobs.get(id).map_or(0, |job| job.members.at(*peer)));
        for worker in fell_silent {
            self.event(Event::WorkerSilent(worker));
            self.close_if_full(now, worker.job);
        }
    }
}

fn seen(address: &Address, peer: PeerId) -> WorkerSeen {
    WorkerSeen { job: address.job, cluster: address.cluster, worker: address.worker, peer }
}

impl Server {
    fn take_packet(&mut self, now: Instant, from: PeerId, bytes: &[u8]) -> Result<(), Refused> {
        match Packet::new_checked(bytes) {
            Err(refusal) => {
                if let Some(address) = join_of_another_version(bytes) {
                    self.answer_another_version(now, from, address);
                }
                Err(Refused::Malformed(refusal))
            }
            Ok(packet) => match packet.kind() {
                Kind::Update => self.handle_update(now, from, &packet),
                Kind::Join => self.handle_join(now, from, &packet),
                Kind::Model => self.handle_offer(now, from, &packet),
                Kind::Fetch => self.handle_fetch(now, from, &packet),
                Kind::Leave => self.handle_leave(now, from, &packet),
                Kind::Layout => self.handle_layout(now, from, &packet),
                Kind::AskSignature => self.handle_ask_signature(now, from, &packet),
                Kind::Acknowledgement | Kind::Welcome | Kind::Notice | Kind::Signature => {
                    Err(Refused::WrongDirection)
                }
            },
        }
    }
}

impl Engine for Server {
    fn comes_from(&mut self, address: olaf_engine::engine::Place) {
        self.answers.proofs.comes_from(address);
    }

    fn take_signer(&mut self, _: Instant, signer: Box<dyn Signer>) {
        self.sign_models(signer);
    }

    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        self.clock = now;
        let taken = self.take_packet(now, from.peer, bytes);
        if let Some(job) = olaf_wire::packet::job_of(bytes) {
            self.plan(JobId(job));
        }
        match taken {
            Ok(()) => Verdict::Absorb,
            Err(refused) => {
                *self.refused.entry(refused.name()).or_default() += 1;
                Verdict::refused(refused)
            }
        }
    }

    fn poll_transmit(&mut self, _now: Instant, _port: PortId, buf: &mut [u8]) -> Option<Transmit> {
        let Outgoing { peer, len } = self.answers.emit(buf)?;
        let class = TrafficClass::with_ecn(self.config.ecn);
        Some(Transmit { class, ..Transmit::to(peer, len) })
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        let round = self.rounds.next().map(|at| (at, Why::RoundEnd));
        debug_assert_eq!(
            self.deadlines.next(),
            self.jobs.values().filter_map(|job| job.deadline(self.config.aggregate())).min()
        );
        let deadline = self.deadlines.next().map(|at| (at, Why::RoundEnd));
        let silence =
            (!self.jobs.is_empty()).then_some((self.next_silence_check, Why::SilenceCheck));
        [round, deadline, silence].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.clock = now;
        self.end_rounds(now);
        self.meet_deadlines(now);
        if now >= self.next_silence_check {
            self.check_silence(now);
            self.next_silence_check = now + SILENCE_CHECK;
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The peers that updates may come from.
    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        self.hops.keys().for_each(|(peer, _)| keep(*peer));
        self.switches.iter().flatten().for_each(|peer| keep(*peer));
    }

    fn report(&self, now: Instant, to: &mut dyn Report) {
        report::walk(&self.statistics(now), to);
    }

    fn job_of(&self, _: Source, message: &[u8]) -> Option<u32> {
        olaf_wire::packet::job_of(message)
    }
}
