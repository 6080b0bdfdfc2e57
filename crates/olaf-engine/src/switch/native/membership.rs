//! The workers of each job: joins, welcomes, leaves, silence.
//!
//! The server alone admits workers to a job. A switch learns them from the messages that pass:
//!
//! 1. A *join* goes up. The switch notes the worker, its address and its cluster. The worker is
//!    known now, but not admitted: its updates are refused.
//! 2. The server's *welcome* comes down. The worker is admitted, and the switch learns the model's
//!    shape. A refusal instead makes the switch forget the worker.
//! 3. The worker repeats its join while it lives. A join after a silence, from another address or
//!    with another cluster says that the worker is back or has moved.
//! 4. A *leave*, or a long silence, ends it.
//!
//! Two numbers tell lives apart. A worker draws a new *session* when it starts, so that a restarted
//! worker is not taken for its old life. A switch and a server draw an *epoch* for the same reason:
//! a new one means that they have forgotten all workers, and these must join again.

use super::Switch;
use super::answers::Receiver;
use super::counters::Account;
use super::job::{Asked, Cluster, Job, Member};
use super::neighbours::Below;
use super::ports::{Message, Place};
use super::screening::Taken;
use super::updates::seen;
use crate::drop::DropReason;
use crate::engine::{Source, Verdict};
use crate::event::Event;
use crate::ids::{ClusterId, JobId, PeerId};
use crate::link::pacer::Acknowledged;
use crate::party::liveness::GONE;
use crate::party::{Allowance, Bucket, Liveness, Pace, Shape, Sign, Tenant};
use crate::rejection::Rejection;
use crate::time::Instant;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_wire::{Address, Join, Leave, Packet, Session, Welcome, WelcomeCode, WorkerId, serial};

/// A worker may go over to another cluster so often. Each cluster that was heard is remembered for a
/// while.
const MOVES: Allowance = Allowance { burst: 8, every: Duration::from_secs(1) };
/// A job that no server has confirmed is forgotten after this multiple of `silent_after`: a worker that
/// repeats its join meanwhile is to be told for how long the server has been silent.
const UNCONFIRMED: u32 = 5;

impl Switch {
    /// A worker announces itself, or repeats that it is here.
    ///
    /// The checks go from those that concern the network to those that concern this worker. Nothing
    /// is remembered of a join that fails one: a flood of bad joins takes no memory.
    pub(super) fn handle_join(
        &mut self,
        now: Instant,
        from: Source,
        packet: &Packet<'_>,
    ) -> Verdict {
        let join = match Join::parse(packet) {
            Ok(join) => join,
            Err(refusal) => return Verdict::Drop(DropReason::Malformed(refusal)),
        };
        let tenant = self.config.tenants.of(join.address.job);
        let Some(tenant) = tenant.filter(|_| self.server_of(join.address.job).is_some()) else {
            return self.turn_away(now, from, &join, WelcomeCode::UnknownJob);
        };
        if join.hops >= self.config.max_hops {
            return self.refuse_loop(now, from.peer, from.into(), &join);
        }
        let may_be_switch = |listed: &BTreeSet<PeerId>| listed.contains(&from.peer);
        if join.hops > 0 && !self.switches.as_ref().is_none_or(may_be_switch) {
            self.turn_away(now, from, &join, WelcomeCode::NotAdmitted);
            return Verdict::Drop(DropReason::NotASwitch);
        }
        if let Some(towards) = self.came_round(&join) {
            return self.refuse_loop(now, from.peer, towards, &join);
        }
        let shape = Shape { parameters: join.parameters, segment_lanes: join.segment_lanes };
        let is_too_large = join.parameters > self.config.max_parameters
            || !tenant.takes_parameters(join.parameters);
        if is_too_large || shape.is_cut_too_finely() {
            return self.turn_away(now, from, &join, WelcomeCode::ModelTooLarge);
        }
        if let Some(code) = self.over_limit(&tenant, &join) {
            return self.turn_away(now, from, &join, code);
        }
        if let Some(verdict) = self.hold_back(now, from, &join) {
            return verdict;
        }
        self.take_join(now, from, &join)
    }

    /// A join that nothing holds back. The switch notes where the worker is and passes the join on;
    /// the server says whether the worker is let in.
    pub(super) fn take_join(&mut self, now: Instant, from: Source, join: &Join) -> Verdict {
        let id = join.address.job;
        let Some(server) = self.server_of(id) else {
            return self.turn_away(now, from, join, WelcomeCode::UnknownJob);
        };
        // A join that was held back may find that others came first.
        let tenant = self.config.tenants.of(id).unwrap_or_default();
        if let Some(code) = self.over_limit(&tenant, join) {
            return self.turn_away(now, from, join, code);
        }
        let silent_after = self.config.silent_after;
        let full = self.is_full();
        let known = self.jobs.get(&id);
        let is_new = known.is_none_or(|job| !job.members.contains_key(&join.address.worker));
        let opens = known.is_none();
        if opens && (full || self.has_opened_enough(from.peer)) {
            return self.turn_away(now, from, join, WelcomeCode::Full);
        }
        let max_workers = self.config.max_workers;
        let is_crowded = |job: &Job| job.members.is_crowded(from.peer, join.hops, max_workers);
        let crowded = is_new && known.is_some_and(is_crowded);
        if is_new && !full && !crowded && self.must_prove_first(now, from.peer, join, opens) {
            return self.ask_for_a_proof(now, from, join);
        }
        if opens && !self.makes_room_for_a_job() {
            return self.turn_away(now, from, join, WelcomeCode::Full);
        }
        let job = self.job(id, server);
        job.last_join = now;
        job.opened_by.get_or_insert(from.peer);
        let event = match job.members.get_mut(&join.address.worker) {
            // The same session from another address: the worker's address changed, or its join is
            // replayed. While the worker is heard where it was, it is a replay.
            Some(member)
                if member.session == join.address.session
                    && member.peer != from.peer
                    && !member.liveness.is_overdue(now, silent_after) =>
            {
                return self.turn_away(now, from, join, WelcomeCode::WorkerIdInUse);
            }
            Some(member) if member.session == join.address.session => {
                // One that is older than its last join was late, or is replayed.
                let is_late = join.sent_at_ns < member.joined.0 && member.peer == from.peer;
                if is_late && member.cluster != join.address.cluster {
                    return Verdict::Drop(DropReason::Contribution(Rejection::Superseded));
                }
                if member.cluster != join.address.cluster && !member.moves.take(now, MOVES) {
                    member.liveness.note(now);
                    return Verdict::Drop(DropReason::TooOften);
                }
                let (was_at, was_in) = (member.peer, member.cluster);
                let moved = was_at != from.peer || member.cluster != join.address.cluster;
                (member.peer, member.port) = (from.peer, from.port);
                member.cluster = join.address.cluster;
                member.behind_switch = join.hops > 0;
                member.joined = (join.sent_at_ns, join.hops);
                member.asked.note(join.sent_at_ns);
                member.wants_notices = join.wants_notices && join.hops == 0;
                member.liveness.note(now);
                if member.admitted {
                    let cluster =
                        job.clusters.get_or_insert(join.address.cluster, Cluster::default);
                    cluster.note_wish(join.address.worker, member.wants_notices);
                }
                let back = member.liveness.comes_back();
                job.members.moved(was_at, from.peer);
                job.members.renamed(was_in, join.address.cluster);
                if moved {
                    Some(Event::WorkerMoved(seen(&join.address, from.peer)))
                } else {
                    back.then(|| Event::WorkerBack(seen(&join.address, from.peer)))
                }
            }
            // Another session with the same id: the worker restarted, or another party claims its
            // id. While the owner is heard, it is a claim. Example: with `silent_after = 2s` a
            // worker that crashes and restarts at once is turned away for two seconds, and its
            // next join takes the id over.
            Some(member) if !member.liveness.is_overdue(now, silent_after) => {
                return self.turn_away(now, from, join, WelcomeCode::WorkerIdInUse);
            }
            None if full || crowded => return self.turn_away(now, from, join, WelcomeCode::Full),
            _ => {
                job.members.insert(join.address.worker, new_member(now, from, join));
                self.proofs.joined(&(id, from.peer));
                None
            }
        };
        let job = self.job(id, server);
        job.liveness.expect(now);
        let silence = job.liveness.silence(now);
        if let Some(event) = event {
            self.event(event);
        }
        if join.hops > 0 {
            self.heard_below(now, id, from, Session(0));
        }
        // The worker would otherwise give up on both the switch and the server. Only the switch can
        // tell it that the switch lives. Half of `silent_after` leaves time for the word to arrive.
        if silence >= silent_after / 2 {
            let mut welcome =
                self.welcome(now, join.address, join.sent_at_ns, WelcomeCode::ServerSilent);
            welcome.silent_ms = u32::try_from(silence.as_millis()).unwrap_or(u32::MAX);
            self.reply(now, from, welcome);
        }
        self.proofs.heard((id, from.peer), join.nonce);
        let is_proven = self.proofs.is_proven(&(id, from.peer));
        let job = self.job(id, server);
        job.has_proof |= is_proven;
        let nonce = job.nonce_above;
        let passed_on = Join { hops: join.hops + 1, nonce, ..*join };
        self.send_up(now, from, server, Message::Join(passed_on))
    }

    /// Which limit of its job a join would exceed.
    fn over_limit(&self, tenant: &Tenant, join: &Join) -> Option<WelcomeCode> {
        let job = self.jobs.get(&join.address.job)?;
        let cluster = join.address.cluster;
        let is_new = !job.members.contains_key(&join.address.worker);
        if is_new && !tenant.takes_worker(job.members.len()) {
            return Some(WelcomeCode::JobFull);
        }
        tenant.max_clusters?;
        if job.clusters.contains_key(&cluster) || job.members.has_cluster(cluster) {
            return None;
        }
        // Those that no server has confirmed count, too: joins alone must not name more. The members are
        // not looked at, and at most `max_clusters` clusters are.
        let mut known = job.members.clusters();
        let mut others = job.clusters.keys().filter(|other| !job.members.has_cluster(**other));
        while tenant.takes_cluster(known) {
            others.next()?;
            known += 1;
        }
        Some(WelcomeCode::TooManyClusters)
    }

    fn server_of(&self, id: JobId) -> Option<PeerId> {
        self.jobs.get(&id).map(|job| job.server).or(self.default_server)
    }

    /// Returns true if no further worker fits.
    pub(super) fn is_full(&self) -> bool {
        let workers = self.jobs.values().map(|job| job.members.len());
        workers.sum::<usize>() >= self.config.max_workers
    }

    /// If this very join passed here before with a lower hop count, returns the place that it
    /// came from then: switches send in a circle.
    ///
    /// A repeated join is a new one, with a new sending time. A duplicate of the network has the
    /// same hop count. Only a join that went round has the same time and more hops.
    fn came_round(&self, join: &Join) -> Option<Place> {
        let member = self.jobs.get(&join.address.job)?.members.get(&join.address.worker)?;
        let (sent_at_ns, hops) = member.joined;
        let again = member.session == join.address.session && sent_at_ns == join.sent_at_ns;
        (again && hops < join.hops).then_some(member.place())
    }

    /// The server's word on a join. The switch notes it, signs it with its own epoch and passes it
    /// down.
    ///
    /// A new epoch of the switch above makes every worker join again, and so does a request to all
    /// workers. The switch does not pass that request down: it asks each worker, and each switch
    /// below once.
    pub(super) fn handle_welcome(
        &mut self,
        now: Instant,
        from: Source,
        packet: &Packet<'_>,
    ) -> Verdict {
        let welcome = match Welcome::parse(packet) {
            Ok(welcome) => welcome,
            Err(refusal) => return Verdict::Drop(DropReason::Malformed(refusal)),
        };
        let id = welcome.address.job;
        let answers_a_join = self.answers_a_join(&welcome);
        if let Err(reason) = self.heard_server(now, id, from.peer, welcome.epoch, answers_a_join) {
            return Verdict::Drop(reason);
        }
        if welcome.code.is_refusal() && !answers_a_join {
            return Verdict::Drop(DropReason::NotAsked);
        }
        let job = self.jobs.get_mut(&id).expect("heard_server() found it");
        // A new life of the switch above is believed, as that of a server, of an answer to a join. Until one
        // comes, the workers are asked to join again.
        let new_life = job.above.is_known() && job.above.is_news(welcome.switch_epoch);
        if answers_a_join && job.above.heard(welcome.switch_epoch) {
            self.event(Event::SwitchRestarted(id, from.peer));
        }
        let for_all =
            welcome.code == WelcomeCode::JoinAgain && welcome.address.worker == WorkerId::ALL;
        if new_life || for_all {
            self.ask_again(now, id);
        }
        if for_all {
            return Verdict::Absorb;
        }
        let job = self.jobs.get_mut(&id).expect("heard_server() found it");
        let Some(member) = job.members.get_mut(&welcome.address.worker) else {
            return Verdict::Drop(DropReason::UnknownReceiver);
        };
        if member.session != welcome.address.session {
            return Verdict::Drop(DropReason::UnknownReceiver);
        }
        if welcome.epoch != 0 {
            member.asked.answered(welcome.echoed_sent_at_ns);
        }
        let place = member.place();
        let peer = place.peer;
        if welcome.nonce != 0 {
            job.nonce_above = welcome.nonce;
        }
        let worker = seen(&welcome.address, peer);
        if welcome.code.is_refusal() {
            job.members.remove(&welcome.address.worker);
            self.event(Event::WorkerRefused(worker, welcome.code));
        } else {
            let admits = welcome.code == WelcomeCode::Welcome;
            let newly = admits && !core::mem::replace(&mut member.admitted, true);
            if admits {
                let cluster = job.clusters.get_or_insert(member.cluster, Cluster::default);
                cluster.note_wish(welcome.address.worker, member.wants_notices);
            }
            if admits && member.behind_switch {
                job.below.entry(peer).or_insert_with(|| Below::at(place.port)).liveness.note(now);
            }
            if welcome.parameters > 0 && welcome.segment_lanes > 0 {
                job.shape = Some(Shape {
                    parameters: welcome.parameters,
                    segment_lanes: welcome.segment_lanes,
                });
            }
            if newly {
                self.event(Event::WorkerJoined(worker));
            }
        }
        let nonce = self.proofs.asked_with(&(id, peer), welcome.nonce);
        let signed = Welcome { switch_epoch: self.epoch, nonce, ..welcome };
        self.send(now, place, from.class, Message::Welcome(signed))
    }

    /// A worker leaves. The leave goes up unless the server never heard of the worker.
    ///
    /// Only the worker itself can leave: the datagram must come from its peer and name its session.
    /// Otherwise a late leave of an earlier life would end the present one.
    pub(super) fn handle_leave(
        &mut self,
        now: Instant,
        from: Source,
        packet: &Packet<'_>,
        bytes: &[u8],
    ) -> Verdict {
        let leave = match Leave::parse(packet) {
            Ok(leave) => leave,
            Err(refusal) => return Verdict::Drop(DropReason::Malformed(refusal)),
        };
        let address = leave.address;
        let waited = self.asking.forget(from.peer, &address);
        let Some(job) = self.jobs.get_mut(&address.job) else {
            return if waited { Verdict::Absorb } else { Verdict::Drop(DropReason::UnknownJob) };
        };
        // Its join waited here for admission and never went up, so neither does its leave.
        if waited && !job.members.contains_key(&address.worker) {
            return Verdict::Absorb;
        }
        if !job.members.get(&address.worker).is_some_and(|m| m.is(from.peer, address.session)) {
            return Verdict::Drop(DropReason::UnknownReceiver);
        }
        job.members.remove(&address.worker);
        let server = job.server;
        self.event(Event::WorkerLeft(seen(&address, from.peer)));
        self.send_up(now, from, server, Message::Untouched(bytes.into()))
    }

    /// Returns true if a welcome answers one of the last joins of the worker that it names. A
    /// stranger who does not see the joins cannot name one.
    fn answers_a_join(&self, welcome: &Welcome) -> bool {
        let Address { job, worker, session, .. } = welcome.address;
        let member = self.jobs.get(&job).and_then(|job| job.members.get(&worker));
        member.is_some_and(|member| {
            member.session == session && member.asked.has(welcome.echoed_sent_at_ns)
        })
    }

    /// Notes that a job's server lives. Where a switch stands above, this is that switch's sign of
    /// life: it alone is heard.
    ///
    /// A new life of the server is believed where the datagram answers a join. Other datagrams that
    /// name one make this switch ask its workers to join again, and change nothing.
    pub(super) fn heard_server(
        &mut self,
        now: Instant,
        id: JobId,
        peer: PeerId,
        epoch: u32,
        answers_a_join: bool,
    ) -> Result<(), DropReason> {
        let job = self.jobs.get_mut(&id).ok_or(DropReason::UnknownJob)?;
        if job.server != peer {
            return Err(DropReason::NotTheServer);
        }
        let known = job.liveness.epoch();
        if epoch != 0 && epoch != known && !answers_a_join {
            self.ask_again(now, id);
            return Err(DropReason::UnknownEpoch);
        }
        // A welcome of a switch above names no life of the server: its epoch is 0.
        match job.liveness.heard(now, epoch) {
            Sign::Usual => {}
            Sign::Back => {
                let behind_switch = job.above.is_known();
                let back = if behind_switch { Event::SwitchBack } else { Event::ServerBack };
                self.event(back(id, peer));
            }
            Sign::Restarted => {
                // The new life will not answer the departures that the old life had not answered.
                job.clusters.for_each_mut(|_, cluster| {
                    cluster.unanswered.clear();
                    cluster.answering = None;
                    cluster.ends.give_up();
                });
                // What the new life answered before its epoch was believed gave no credit back.
                let departed = job.hop_sequence;
                self.ports.up.acknowledge(Acknowledged::Job(id), departed);
                self.event(Event::ServerRestarted(id, peer));
                // The new life knows no worker. The switch asks all of them at once, so that no
                // worker has to find that out by a silence of its own.
                self.ask_again(now, id);
            }
        }
        Ok(())
    }

    /// Looks for parties that should have been heard.
    ///
    /// | party | silent | forgotten |
    /// |---|---|---|
    /// | server, or switch above | `silent_after` after something was sent to it | with its job |
    /// | switch below | `silent_after` | 30 times that, and no worker is behind it |
    /// | admitted worker | `silent_after` | 30 times that |
    /// | worker without a welcome, or whose address is not proved | - | `silent_after`: any sender can send a join |
    /// | cluster | - | no worker is in it, no update of it waits, and 30 times `silent_after` after its last update |
    /// | job | - | no worker is in it, no update of it waits, and 30 times `silent_after` after its last join |
    /// | job that no server confirmed | - | no worker is in it, and 5 times `silent_after` after its last join |
    pub(super) fn check_silence(&mut self, now: Instant) {
        let silent_after = self.config.silent_after;
        let mut events = Vec::new();
        let forget_after = silent_after * GONE;
        let waiting: BTreeSet<JobId> =
            self.ports.up.entries().map(|entry| entry.contribution.flow.job).collect();
        let waiting_clusters: BTreeSet<(JobId, ClusterId)> = self
            .ports
            .up
            .entries()
            .map(|entry| (entry.contribution.flow.job, entry.contribution.flow.cluster))
            .collect();
        self.jobs.retain(|id, job| {
            let keep = job.configured
                || !job.members.is_empty()
                || waiting.contains(id)
                || now.since(job.last_join)
                    < if job.is_confirmed() { forget_after } else { silent_after * UNCONFIRMED };
            if !keep {
                // Should the job come again, its count goes on from here: its server may still
                // remember the numbers of this life of the switch, and would take new updates for
                // repetitions.
                self.forgotten_hop_sequence =
                    serial::later(self.forgotten_hop_sequence, job.hop_sequence);
            }
            keep
        });
        let jobs = &self.jobs;
        if self.departed.len() > 2 * self.config.max_jobs {
            self.departed.retain(|id, _| jobs.contains_key(id));
        }
        self.ports.forget_jobs(|id| jobs.contains_key(&id));
        self.arrivals.keep(jobs.values().map(|job| job.members.len() + job.below.len()).sum());
        self.proofs.keep(|(id, peer)| jobs.get(id).is_some_and(|job| job.members.at(*peer) > 0));
        let proofs = &self.proofs;
        self.jobs.for_each_mut(|id, job| {
            if job.liveness.fell_silent(now, silent_after) {
                let silent =
                    if job.above.is_known() { Event::SwitchSilent } else { Event::ServerSilent };
                events.push(silent(*id, job.server));
            }
            let switches = job.check_switches(now, silent_after);
            events.extend(switches.into_iter().map(|peer| Event::SwitchSilent(*id, peer)));
            job.members.keep(|member| {
                let liveness = &member.liveness;
                if member.admitted && proofs.is_proven(&(*id, member.peer)) {
                    !liveness.is_gone(now, silent_after)
                } else {
                    !liveness.is_overdue(now, silent_after)
                }
            });
            let here: BTreeSet<ClusterId> = job.members.values().map(|m| m.cluster).collect();
            job.clusters.retain(|cluster, state| {
                let heard = state.last_heard.is_some_and(|at| now.since(at) < forget_after);
                heard || here.contains(cluster) || waiting_clusters.contains(&(*id, *cluster))
            });
            let (members, below) = (&job.members, &job.below);
            job.clusters.for_each_mut(|id, cluster| {
                let is_here = |receiver: Receiver| match receiver {
                    Receiver::Worker(worker) => members.contains_key(&worker),
                    Receiver::Switch(peer) => below.contains_key(&peer),
                };
                cluster.ends.keep(is_here);
                cluster.owed.retain(|receiver, _| is_here(*receiver));
                let is_in =
                    |worker: &WorkerId| members.get(worker).is_some_and(|m| m.cluster == *id);
                cluster.wants_notices.retain(is_in);
            });
            job.members.for_each_mut(|worker, member| {
                if member.liveness.fell_silent(now, silent_after) {
                    let (job, cluster, worker, peer) = (*id, member.cluster, *worker, member.peer);
                    let seen = crate::WorkerSeen { job, cluster, worker, peer };
                    events.push(Event::WorkerSilent(seen));
                }
            });
        });
        let jobs = &self.jobs;
        self.proofs.count(|(id, peer)| jobs.get(id).map_or(0, |job| job.members.at(*peer)));
        self.hearings.keep(|(job, cluster)| {
            jobs.get(job).is_some_and(|job| job.clusters.contains_key(cluster))
        });
        for event in events {
            self.event(event);
        }
    }

    pub(super) fn turn_away(
        &mut self,
        now: Instant,
        from: Source,
        join: &Join,
        code: WelcomeCode,
    ) -> Verdict {
        let welcome = self.welcome(now, join.address, join.sent_at_ns, code);
        self.reply(now, from, welcome);
        self.event(Event::WorkerRefused(seen(&join.address, from.peer), code));
        Verdict::Drop(DropReason::JoinRefused(code))
    }

    /// A welcome of this switch's own to the worker at `address`. It returns the sending time of
    /// the join that it answers, from which the worker computes the round trip.
    pub(super) fn welcome(
        &self,
        now: Instant,
        address: Address,
        echoed_sent_at_ns: u64,
        code: WelcomeCode,
    ) -> Welcome {
        Welcome {
            address,
            code,
            ready: false,
            version: 0,
            parameters: 0,
            segment_lanes: 0,
            epoch: 0,
            first_missing: u32::MAX,
            echoed_sent_at_ns,
            received_at_ns: now.0,
            sent_at_ns: now.0,
            switch_epoch: self.epoch,
            silent_ms: 0,
            rule: None,
            layout_missing: u32::MAX,
            missing: 0,
            padded_to: 0,
            nonce: 0,
        }
    }
}

fn new_member(now: Instant, from: Source, join: &Join) -> Member {
    Member {
        cluster: join.address.cluster,
        session: join.address.session,
        peer: from.peer,
        port: from.port,
        behind_switch: join.hops > 0,
        joined: (join.sent_at_ns, join.hops),
        moves: Bucket::default(),
        asked: Asked::once(join.sent_at_ns),
        wants_notices: join.wants_notices && join.hops == 0,
        admitted: false,
        liveness: Liveness::since(now),
        account: Account::default(),
        last_sequence: None,
        taken: Taken::default(),
        pace: Pace::default(),
        told: [None; Rejection::ALL.len()],
    }
}
