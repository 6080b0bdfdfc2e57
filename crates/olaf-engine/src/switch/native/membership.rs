//! Who is here: joins, welcomes, good-byes, silence.

use super::answers::Hearer;
use super::job::{Member, Shape};
use super::screening::Taken;
use super::updates::seen;
use super::{Down, Switch};
use crate::drop::DropReason;
use crate::engine::{Source, Verdict};
use crate::event::Event;
use crate::ids::{JobId, PeerId};
use crate::rejection::Rejection;
use crate::time::Instant;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use olaf_wire::membership::patch_hops;
use olaf_wire::offsets::welcome as at;
use olaf_wire::{Address, Join, Leave, Packet, Session, Welcome, WelcomeCode, WorkerId, serial};

impl Switch {
    /// A worker announces itself.
    pub(super) fn handle_join(
        &mut self,
        now: Instant,
        from: Source,
        packet: &Packet<'_>,
        bytes: &[u8],
    ) -> Verdict {
        let join = match Join::parse(packet) {
            Ok(join) => join,
            Err(refusal) => return Verdict::Drop(DropReason::Malformed(refusal)),
        };
        if self.server_of(join.address.job).is_none() {
            return self.turn_away(now, from, &join, WelcomeCode::UnknownJob);
        }
        if join.hops >= self.config.max_hops {
            return self.refuse_loop(now, from.peer, from.peer, &join);
        }
        if let Some(towards) = self.came_round(&join) {
            return self.refuse_loop(now, from.peer, towards, &join);
        }
        if join.parameters > self.config.max_parameters {
            return self.turn_away(now, from, &join, WelcomeCode::ModelTooLarge);
        }
        if let Some(verdict) = self.hold_back(now, from, &join, bytes) {
            return verdict;
        }
        self.take_join(now, from, &join, bytes)
    }

    /// A join that nothing holds back. The switch notes where the worker is and passes it on: whether
    /// it is let in, the server says.
    pub(super) fn take_join(
        &mut self,
        now: Instant,
        from: Source,
        join: &Join,
        bytes: &[u8],
    ) -> Verdict {
        let id = join.address.job;
        let Some(server) = self.server_of(id) else {
            return self.turn_away(now, from, join, WelcomeCode::UnknownJob);
        };
        let silent_after = self.config.silent_after;
        let full = self.is_full();
        if !self.jobs.contains_key(&id) && (full || self.jobs.len() >= self.config.max_jobs) {
            return self.turn_away(now, from, join, WelcomeCode::Full);
        }
        let job = self.job(id, server);
        job.last_join = now;
        let event = match job.members.get_mut(&join.address.worker) {
            Some(member) if member.session == join.address.session => {
                let moved = member.peer != from.peer || member.cluster != join.address.cluster;
                member.peer = from.peer;
                member.cluster = join.address.cluster;
                member.behind_switch = join.hops > 0;
                member.joined = (join.sent_at_ns, join.hops);
                member.wants_notices = join.wants_notices && join.hops == 0;
                member.last_heard = now;
                if member.admitted {
                    let cluster = job.clusters.entry(join.address.cluster).or_default();
                    cluster.note_wish(join.address.worker, member.wants_notices);
                }
                let back = core::mem::take(&mut member.silent);
                if moved {
                    Some(Event::WorkerMoved(seen(&join.address, from.peer)))
                } else {
                    back.then(|| Event::WorkerBack(seen(&join.address, from.peer)))
                }
            }
            // The same id from elsewhere: its owner restarted, or somebody claims it. While the
            // owner lives, it is a claim.
            Some(member) if now.since(member.last_heard) < silent_after => {
                return self.turn_away(now, from, join, WelcomeCode::WorkerIdInUse);
            }
            None if full => return self.turn_away(now, from, join, WelcomeCode::Full),
            _ => {
                job.members.insert(join.address.worker, new_member(now, from.peer, join));
                None
            }
        };
        let job = self.job(id, server);
        job.asked_since.get_or_insert(now);
        let silence = job.server_silence(now);
        if let Some(event) = event {
            self.event(event);
        }
        if join.hops > 0 {
            self.heard_below(now, id, from.peer, Session(0));
        }
        // Before the worker gives up on both: that the switch lives it hears from nobody else.
        if silence >= silent_after / 2 {
            let mut welcome =
                self.welcome(now, join.address, join.sent_at_ns, WelcomeCode::ServerSilent);
            welcome.silent_ms = u32::try_from(silence.as_millis()).unwrap_or(u32::MAX);
            self.reply(from.peer, &welcome);
        }
        let mut passed_on: Vec<u8> = bytes.into();
        patch_hops(&mut passed_on, join.hops + 1);
        self.send_up(now, server, &passed_on)
    }

    fn server_of(&self, id: JobId) -> Option<PeerId> {
        self.jobs.get(&id).map(|job| job.server).or(self.default_server)
    }

    /// Whether no further worker fits.
    pub(super) fn is_full(&self) -> bool {
        let workers = self.jobs.values().map(|job| job.members.len());
        workers.sum::<usize>() >= self.config.max_workers
    }

    /// Where a worker is whose very join has been here before, with fewer switches behind it: what
    /// goes up from here comes back.
    fn came_round(&self, join: &Join) -> Option<PeerId> {
        let member = self.jobs.get(&join.address.job)?.members.get(&join.address.worker)?;
        let (sent_at_ns, hops) = member.joined;
        let again = member.session == join.address.session && sent_at_ns == join.sent_at_ns;
        (again && hops < join.hops).then_some(member.peer)
    }

    /// The server's word on a join: noted, signed with this switch's epoch and passed down.
    pub(super) fn handle_welcome(
        &mut self,
        now: Instant,
        from: Source,
        packet: &Packet<'_>,
        bytes: &[u8],
    ) -> Verdict {
        let welcome = match Welcome::parse(packet) {
            Ok(welcome) => welcome,
            Err(refusal) => return Verdict::Drop(DropReason::Malformed(refusal)),
        };
        let id = welcome.address.job;
        if let Err(reason) = self.heard_server(now, id, from.peer, welcome.epoch) {
            return Verdict::Drop(reason);
        }
        let job = self.jobs.get_mut(&id).expect("heard_server() found it");
        let new_life = job.above.heard(welcome.switch_epoch);
        if new_life {
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
        let peer = member.peer;
        let worker = seen(&welcome.address, peer);
        if welcome.code.is_refusal() {
            job.members.remove(&welcome.address.worker);
            self.event(Event::WorkerRefused(worker, welcome.code));
        } else {
            let admits = welcome.code == WelcomeCode::Welcome;
            let newly = admits && !core::mem::replace(&mut member.admitted, true);
            if admits {
                let cluster = job.clusters.entry(member.cluster).or_default();
                cluster.note_wish(welcome.address.worker, member.wants_notices);
            }
            if admits && member.behind_switch {
                job.below.entry(peer).or_default().hops.last_heard = now;
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
        let mut signed: Vec<u8> = bytes.into();
        signed[at::SWITCH_EPOCH..at::SWITCH_EPOCH + 4].copy_from_slice(&self.epoch.to_be_bytes());
        self.send_down(Down { peer, bytes: signed.into(), receiver: None })
    }

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
        if waited && !job.members.contains_key(&address.worker) {
            return Verdict::Absorb;
        }
        if !job.members.get(&address.worker).is_some_and(|m| m.is(from.peer, address.session)) {
            return Verdict::Drop(DropReason::UnknownReceiver);
        }
        job.members.remove(&address.worker);
        let server = job.server;
        self.event(Event::WorkerLeft(seen(&address, from.peer)));
        self.send_up(now, server, bytes)
    }

    /// Notes that a job's server lives.
    pub(super) fn heard_server(
        &mut self,
        now: Instant,
        id: JobId,
        peer: PeerId,
        epoch: u32,
    ) -> Result<(), DropReason> {
        let job = self.jobs.get_mut(&id).ok_or(DropReason::UnknownJob)?;
        if job.server != peer {
            return Err(DropReason::NotTheServer);
        }
        job.server_heard = Some(now);
        job.asked_since = None;
        let was_silent = core::mem::take(&mut job.server_silent);
        let behind_switch = job.above.is_known();
        // Welcomes of a switch above name no life of the server.
        let epoch = if epoch == 0 { job.server_epoch } else { epoch };
        let before = core::mem::replace(&mut job.server_epoch, epoch);
        let restarted = before != 0 && before != epoch;
        if restarted {
            // What the old life still owed, nobody owes any more.
            for cluster in job.clusters.values_mut() {
                cluster.unanswered.clear();
                cluster.answering = None;
                cluster.ends.give_up();
            }
            self.event(Event::ServerRestarted(id, peer));
            // It knows nobody yet; nobody should have to find that out alone.
            self.ask_again(now, id);
        } else if was_silent {
            let back = if behind_switch { Event::SwitchBack } else { Event::ServerBack };
            self.event(back(id, peer));
        }
        Ok(())
    }

    /// Looks for parties that should have been heard.
    pub(super) fn check_silence(&mut self, now: Instant) {
        let silent_after = self.config.silent_after;
        let mut events = Vec::new();
        // What never came back is forgotten, so that ids and memory are not held by the dead for
        // ever; a job that nobody is in, and of which nothing waits, goes with its last worker.
        let forget_after = silent_after * 30;
        let waiting: BTreeSet<JobId> =
            self.uplink.queue().entries().iter().map(|entry| entry.contribution.flow.job).collect();
        self.jobs.retain(|id, job| {
            let keep = job.configured
                || !job.members.is_empty()
                || waiting.contains(id)
                || now.since(job.last_join) < forget_after;
            if !keep {
                self.forgotten_hop_sequence =
                    serial::later(self.forgotten_hop_sequence, job.hop_sequence);
            }
            keep
        });
        for (id, job) in &mut self.jobs {
            if !job.server_silent && job.server_silence(now) >= silent_after {
                job.server_silent = true;
                let silent =
                    if job.above.is_known() { Event::SwitchSilent } else { Event::ServerSilent };
                events.push(silent(*id, job.server));
            }
            let switches = job.check_switches(now, silent_after, forget_after);
            events.extend(switches.into_iter().map(|peer| Event::SwitchSilent(*id, peer)));
            job.members.retain(|_, member| {
                let patience = if member.admitted { forget_after } else { silent_after };
                now.since(member.last_heard) < patience
            });
            let (members, below) = (&job.members, &job.below);
            for cluster in job.clusters.values_mut() {
                cluster.ends.keep(|hearer| match hearer {
                    Hearer::Worker(worker) => members.contains_key(&worker),
                    Hearer::Switch(peer) => below.contains_key(&peer),
                });
            }
            for (worker, member) in &mut job.members {
                if !member.silent && now.since(member.last_heard) >= silent_after {
                    member.silent = true;
                    let (job, cluster, worker, peer) = (*id, member.cluster, *worker, member.peer);
                    let seen = crate::WorkerSeen { job, cluster, worker, peer };
                    events.push(Event::WorkerSilent(seen));
                }
            }
        }
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
        self.reply(from.peer, &welcome);
        self.event(Event::WorkerRefused(seen(&join.address, from.peer), code));
        Verdict::Drop(DropReason::JoinRefused(code))
    }

    /// A welcome of this switch's own, to whom it names, with the time of the join that it answers.
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
        }
    }
}

fn new_member(now: Instant, peer: PeerId, join: &Join) -> Member {
    Member {
        cluster: join.address.cluster,
        session: join.address.session,
        peer,
        behind_switch: join.hops > 0,
        joined: (join.sent_at_ns, join.hops),
        wants_notices: join.wants_notices && join.hops == 0,
        admitted: false,
        last_heard: now,
        silent: false,
        received: 0,
        rejected: 0,
        last_sequence: None,
        taken: Taken::default(),
        told: [None; Rejection::ALL.len()],
    }
}
