//! Control messages: a join goes up and says where its worker is; what comes back finds the worker.

use super::Switch;
use super::job::Job;
use crate::drop::DropReason;
use crate::engine::{Receivers, Source, Verdict};
use crate::event::SumEvent;
use crate::ids::{JobId, PeerId, Session};
use crate::party::{Allowance, gives_way};
use crate::time::Instant;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;
use olaf_wire::atp::offsets::{join, leave, welcome};
use olaf_wire::atp::{AtpPacket, Closed, Join, Leave, Left, Welcome, answer_to_another_version};
use olaf_wire::reduce::{Reason, WelcomeCode};

/// Refused joins that are told of.
const TELLS: Allowance = Allowance { burst: 4, every: Duration::from_secs(1) };

impl Switch {
    pub(super) fn handle_join(
        &mut self,
        now: Instant,
        from: Source,
        packet: &AtpPacket<'_>,
    ) -> Verdict {
        let mut join = match Join::parse(packet) {
            Ok(join) => join,
            Err(refusal) => return Verdict::Drop(DropReason::Malformed(refusal)),
        };
        let Some(server) = self.server(join.server) else {
            return Verdict::Drop(DropReason::UnknownReceiver);
        };
        if !self.cookies.proves(now, from.peer, join.nonce) {
            // Parameters go to whoever joined: nobody joins in another's name.
            let nonce = self.cookies.asked(now, from.peer);
            let asked = Welcome { nonce, ..Welcome::without_place(&join, WelcomeCode::Waiting) };
            self.welcome(now, from.peer, &asked);
            return match join.nonce {
                0 => Verdict::Absorb,
                _ => Verdict::Drop(DropReason::NotProven),
            };
        }
        join.nonce = self.nonces.get(&server).copied().unwrap_or(0);
        let of = (join.job, join.server);
        let full = Verdict::Drop(DropReason::SumJoinRefused(WelcomeCode::Full));
        if self.config.tenants.of(JobId(join.job.into())).is_none() {
            // The switch answers no joins: only the server does. So the log has to name the worker.
            self.tell_refused(now, JobId(join.job.into()), from.peer);
            return Verdict::Drop(DropReason::SumJoinRefused(WelcomeCode::Refused));
        }
        // A peer may be a switch with any number of the job's workers behind it.
        if !self.senders.takes(now, of, from.peer, join.workers) {
            return Verdict::Drop(DropReason::TooOften);
        }
        if join.switches[0] == 0 && !self.is_first_at_its_address(now, of, &join, from.peer) {
            let waits = Welcome::without_place(&join, WelcomeCode::Waiting);
            self.welcome(now, from.peer, &Welcome { workers: join.workers, ..waits });
            return Verdict::Absorb;
        }
        if !self.jobs.contains_key(&of) && !self.has_room_for_a_job(now, from.peer) {
            return full;
        }
        if !self.jobs.entry(of).or_default().hear(now, &join, from.peer) {
            return full;
        }
        self.counters.joins += 1;
        // The first switches on the way have a level each. One beyond adds nothing: it knows no bitmap.
        if let Some(place) = join.switches.iter_mut().find(|id| **id == 0) {
            *place = self.id;
        }
        let own = u32::try_from(self.table.capacity()).unwrap_or(u32::MAX);
        join.aggregators = if join.aggregators == 0 { own } else { join.aggregators.min(own) };
        let mut stamped = alloc::vec![0; join::LONG];
        let len = join.emit(&mut stamped);
        stamped.truncate(len);
        self.out.send_up(now, server, stamped);
        Verdict::Absorb
    }

    /// A worker of another version learns so at once. It would wait for an answer otherwise.
    pub(super) fn answer_another_version(&mut self, now: Instant, to: PeerId, bytes: &[u8]) {
        if let Some(answer) = answer_to_another_version(bytes) {
            self.welcome(now, to, &answer);
        }
    }

    /// Sends a welcome of this switch's own.
    fn welcome(&mut self, now: Instant, to: PeerId, welcome: &Welcome) {
        let mut bytes = alloc::vec![0; welcome::LEN];
        welcome.emit(&mut bytes);
        self.out.send(now, Receivers::One(to), bytes);
    }

    /// Looks at the address of a worker that joins here itself, which no server sees. False: its session is at another
    /// address and heard there. A session is no secret, so this sender waits until the worker there is silent.
    fn is_first_at_its_address(
        &mut self,
        now: Instant,
        of: (u16, u8),
        join: &Join,
        peer: PeerId,
    ) -> bool {
        let patience = self.patience();
        let Some(job) = self.jobs.get_mut(&of) else { return true };
        if job.is_elsewhere(now, join.session, peer, patience) {
            return false;
        }
        self.departures.returns(of, join.session);
        for session in job.predecessors(join.session, peer) {
            job.forget(session, peer);
            self.departures.add(now, of, session, peer, Some(Reason::Dead));
        }
        // Again with each join, until the server has heard it.
        for (session, reason) in self.departures.at(of, peer) {
            self.tell_departed(now, of, session, reason);
        }
        true
    }

    /// Tells the server that a worker of this switch is no more.
    fn tell_departed(&mut self, now: Instant, of: (u16, u8), session: Session, reason: Reason) {
        let Some(server) = self.server(of.1) else { return };
        let leave = Leave { job: of.0, server: of.1, session, life: 0, reason };
        let mut bytes = alloc::vec![0; leave::LEN];
        leave.emit(&mut bytes);
        self.out.send_up(now, server, bytes);
    }

    /// Returns true if one more job may come to be. A job of which the server has let nobody in gives way to
    /// it, with all its servers.
    fn has_room_for_a_job(&mut self, now: Instant, peer: PeerId) -> bool {
        if self.jobs.len() < self.config.jobs as usize {
            return true;
        }
        let mut peers: BTreeMap<u16, BTreeSet<PeerId>> = BTreeMap::new();
        for ((number, _), job) in self.jobs.iter().filter(|(_, job)| !job.is_confirmed()) {
            peers.entry(*number).or_default().extend(job.asking());
        }
        let unbegun: Vec<(u16, Vec<PeerId>)> = peers
            .into_iter()
            .map(|(number, peers)| (number, peers.into_iter().collect()))
            .collect();
        let Some(number) = gives_way(peer, &unbegun) else { return false };
        let full = DropReason::SumJoinRefused(WelcomeCode::Full);
        let gone = self.jobs.iter().filter(|((of, _), job)| *of == number && !job.is_confirmed());
        let gone: Vec<(_, Vec<_>)> =
            gone.map(|(of, job)| (*of, job.candidates().collect())).collect();
        for (of, waiting) in gone {
            *self.refused.entry(full.name()).or_default() += waiting.len() as u64;
            self.forget(of);
            // The server cannot weigh the addresses behind this switch. It evicts a job that nobody waits in.
            for (session, peer) in waiting {
                self.departures.add(now, of, session, peer, Some(Reason::Left));
                self.tell_departed(now, of, session, Reason::Left);
            }
        }
        true
    }

    /// Tells of a join of a job that is not in the list, a few times and then once a second.
    fn tell_refused(&mut self, now: Instant, job: JobId, peer: PeerId) {
        if self.tells.take(now, TELLS) {
            let refused = SumEvent::WorkerRefused { peer, code: WelcomeCode::Refused };
            self.events.at(now);
            self.events.push(job, refused);
        }
    }

    /// A leave. The server sees this switch's address alone, so this switch has to look where it comes from.
    pub(super) fn handle_leave(
        &mut self,
        now: Instant,
        from: Source,
        packet: &AtpPacket<'_>,
        bytes: &[u8],
    ) -> Verdict {
        let leave = match Leave::parse(packet) {
            Ok(leave) => leave,
            Err(refusal) => return Verdict::Drop(DropReason::Malformed(refusal)),
        };
        let Some(server) = self.server(leave.server) else {
            return Verdict::Drop(DropReason::UnknownReceiver);
        };
        let of = (leave.job, leave.server);
        if self.departures.has(of, leave.session, from.peer) {
            // The server has not confirmed it yet.
            self.out.send_up(now, server, bytes.to_vec());
            return Verdict::Absorb;
        }
        let Some(job) = self.jobs.get_mut(&of) else {
            return Verdict::Drop(DropReason::UnknownJob);
        };
        if !job.forget(leave.session, from.peer) {
            let is_known = job.peer_of(leave.session).is_some();
            let reason = if is_known { DropReason::WrongSender } else { DropReason::NotAMember };
            return Verdict::Drop(reason);
        }
        if job.is_empty() {
            self.forget(of);
        }
        self.departures.add(now, of, leave.session, from.peer, None);
        self.out.send_up(now, server, bytes.to_vec());
        Verdict::Absorb
    }

    /// The server has heard a leave.
    pub(super) fn handle_left(
        &mut self,
        now: Instant,
        packet: &AtpPacket<'_>,
        bytes: &[u8],
    ) -> Verdict {
        let left = match Left::parse(packet) {
            Ok(left) => left,
            Err(refusal) => return Verdict::Drop(DropReason::Malformed(refusal)),
        };
        match self.departures.confirm((left.job, left.server), left.session) {
            Some(Some(peer)) => self.out.send(now, Receivers::One(peer), bytes.to_vec()),
            // It was this switch's own word.
            Some(None) => {}
            None => return Verdict::Drop(DropReason::UnknownReceiver),
        }
        Verdict::Absorb
    }

    pub(super) fn handle_welcome(
        &mut self,
        now: Instant,
        from: Source,
        packet: &AtpPacket<'_>,
        bytes: &[u8],
    ) -> Verdict {
        let welcome = match Welcome::parse(packet) {
            Ok(welcome) => welcome,
            Err(refusal) => return Verdict::Drop(DropReason::Malformed(refusal)),
        };
        if welcome.nonce != 0 {
            // It is this switch's to prove. The worker's next join carries the number.
            self.nonces.insert(from.peer, welcome.nonce);
            return Verdict::Absorb;
        }
        let Some(job) = self.jobs.get_mut(&(welcome.job, welcome.server)) else {
            return Verdict::Drop(DropReason::UnknownJob);
        };
        let Some(peer) = job.answered(&welcome) else {
            return Verdict::Drop(DropReason::UnknownReceiver);
        };
        if welcome.code == WelcomeCode::Welcome && job.generation != welcome.generation {
            // Beyond the paper: sums of an older arrangement would wait for their age.
            job.generation = welcome.generation;
            job.places.clear();
            self.table.give_up(welcome.job, welcome.server, Some(welcome.generation));
        }
        self.out.send(now, Receivers::One(peer), bytes.to_vec());
        Verdict::Absorb
    }

    pub(super) fn handle_closed(
        &mut self,
        now: Instant,
        packet: &AtpPacket<'_>,
        bytes: &[u8],
    ) -> Verdict {
        let closed = match Closed::parse(packet) {
            Ok(closed) => closed,
            Err(refusal) => return Verdict::Drop(DropReason::Malformed(refusal)),
        };
        let Some(job) = self.jobs.get_mut(&(closed.job, closed.server)) else {
            return Verdict::Drop(DropReason::UnknownJob);
        };
        let to = job.concerned();
        self.table.give_up(closed.job, closed.server, None);
        self.out.send(now, to, bytes.to_vec());
        Verdict::Absorb
    }

    /// Forgets workers that are silent, and jobs without workers with their aggregators.
    pub(super) fn check_silence(&mut self, now: Instant) {
        let patience = self.patience();
        self.departures.expire(now, self.config.silence);
        let is_over = |job: &mut Job| job.expire(now, patience);
        let over: alloc::vec::Vec<(u16, u8)> =
            self.jobs.iter_mut().filter_map(|(of, job)| is_over(job).then_some(*of)).collect();
        over.into_iter().for_each(|of| self.forget(of));
    }

    fn forget(&mut self, (job, server): (u16, u8)) {
        self.jobs.remove(&(job, server));
        self.table.give_up(job, server, None);
    }
}
