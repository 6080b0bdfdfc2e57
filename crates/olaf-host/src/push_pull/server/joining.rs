//! Joins, and the answers to them.

use super::job::{self, Job};
use super::{SENDERS, Server, seen};
use olaf_engine::party::Shape;
use olaf_engine::{Event, Refused};
use olaf_engine::{Instant, PeerId};
use olaf_wire::{Address, JobId, Join, Packet, Welcome, WelcomeCode};

/// Jobs without a model that one peer began; a switch brings those of many workers.
const JOBS_OF_A_PEER: usize = 256;

impl Server {
    pub(super) fn handle_join(
        &mut self,
        now: Instant,
        from: PeerId,
        packet: &Packet<'_>,
    ) -> Result<(), Refused> {
        let join = Join::parse(packet).map_err(Refused::Malformed)?;
        let seen = seen(&join.address, from);
        // As long as what came, so that the answer proves the path both ways, and never longer.
        let padded_to = if join.path.padded_to > 0 { packet.len() } else { 0 };
        let padded_to = u32::try_from(padded_to).unwrap_or(0);
        if join.hops > 0 && !self.switches.as_ref().is_none_or(|listed| listed.contains(&from)) {
            let code = WelcomeCode::NotAdmitted;
            let welcome = self.welcome(now, &join, code);
            self.answers.control(from, welcome);
            self.event(Event::WorkerRefused(seen, code));
            return Err(Refused::NotASwitch);
        }
        // A question about the path takes no place.
        let is_newcomer = !join.path.asks && self.is_newcomer(&join);
        let peer = (from, join.address.job);
        let must_prove = is_newcomer
            && self.answers.proofs.are_crowded()
            && !self.answers.proofs.is_proven(&peer)
            && !self.answers.proofs.takes_cookie(now, (from, peer), join.nonce);
        if must_prove {
            // Nothing is remembered of it. Its sender joins again at once with the cookie.
            let nonce = self.answers.proofs.cookie(now, from);
            let welcome = self.welcome(now, &join, WelcomeCode::JoinAgain);
            self.answers.control(from, Welcome { nonce, ..welcome });
            return Err(Refused::NotProven);
        }
        let code = self.admission(now, from, &join);
        if join.path.asks && !code.is_refusal() {
            let code = WelcomeCode::Path;
            let welcome = Welcome { padded_to, ..self.welcome(now, &join, code) };
            self.answers.control(from, welcome);
            return Ok(());
        }
        if code.is_refusal() {
            let welcome = self.welcome(now, &join, code);
            self.answers.control(from, welcome);
            self.event(Event::WorkerRefused(seen, code));
            return Err(Refused::TurnedAway(code));
        }
        let config = &self.config;
        let job = self.jobs.entry(join.address.job).or_insert_with(|| {
            Job::new(Shape { parameters: join.parameters, segment_lanes: join.segment_lanes })
        });
        job.opened_by.get_or_insert(from);
        if !job.may_move(now, &join.address) {
            return Err(Refused::TooOften);
        }
        let newcomer = job.enter(now, from, &join);
        job.keep_ahead_of(join.have_version, config.keep_versions);
        let patience = (config.offer_patience, config.restore_patience);
        job.consider_offer(now, &join, patience.0, patience.1);
        self.note_hop(now, (from, join.address.job), join.hops);
        self.note_restored(now, &join);
        let welcome = self.welcome(now, &join, WelcomeCode::Welcome);
        if is_newcomer {
            self.answers.proofs.joined(&peer);
        }
        self.answers.proofs.heard(peer, join.nonce);
        let nonce = self.answers.proofs.asked(&peer);
        self.answers.control(from, Welcome { padded_to, nonce, ..welcome });
        match newcomer {
            job::Entered::New => self.event(Event::WorkerJoined(seen)),
            job::Entered::Back => self.event(Event::WorkerBack(seen)),
            job::Entered::Known => {}
        }
        Ok(())
    }

    /// Updates may come over that hop. A hop outlives its workers for a while: what they pushed last may
    /// still wait in a switch. A flood of workers that come and go leaves few.
    fn note_hop(&mut self, now: Instant, hop: (PeerId, JobId), hops: u8) {
        self.hops.entry(hop).or_default().note_join(now, hops);
        if self.hops.len() >= self.sweep_hops_at {
            let jobs = &self.jobs;
            self.hops.retain(|(peer, job), _| {
                jobs.get(job).is_some_and(|job| job.members.at(*peer) > 0)
            });
            self.sweep_hops_at = 2 * self.hops.len().max(SENDERS / 2);
        }
    }

    /// Returns true if the worker of a join is not known here.
    fn is_newcomer(&self, join: &Join) -> bool {
        let job = self.jobs.get(&join.address.job);
        job.is_none_or(|job| !job.members.contains_key(&join.address.worker))
    }

    /// Returns true if a join may be.
    fn admission(&mut self, now: Instant, from: PeerId, join: &Join) -> WelcomeCode {
        let Some(tenant) = self.config.tenants.of(join.address.job) else {
            return WelcomeCode::UnknownJob;
        };
        if !self.jobs.contains_key(&join.address.job) && !self.has_room_for_a_job(now, from) {
            return WelcomeCode::Full;
        }
        let config = &self.config;
        let shape = Shape { parameters: join.parameters, segment_lanes: join.segment_lanes };
        let is_too_large =
            join.parameters > config.max_parameters || !tenant.takes_parameters(join.parameters);
        if is_too_large || shape.is_cut_too_finely() {
            return WelcomeCode::ModelTooLarge;
        }
        // A worker that only asks learns the job's segment size.
        let asks = join.path.asks;
        if !asks && config.segment_lanes.is_some_and(|lanes| lanes != join.segment_lanes) {
            return WelcomeCode::WrongSegmentLanes;
        }
        let Some(job) = self.jobs.get_mut(&join.address.job) else {
            return WelcomeCode::Welcome;
        };
        if !asks && job.shape != shape && job.recut(now, shape, config.silent_after) {
            return WelcomeCode::Welcome;
        }
        let fits = job.shape == shape || asks && job.shape.parameters == shape.parameters;
        if !fits && !job.may_change_shape(now, config.silent_after) {
            return if job.shape.parameters == join.parameters {
                WelcomeCode::WrongSegmentLanes
            } else {
                WelcomeCode::WrongModelSize
            };
        }
        if job.shape != shape && !asks {
            // No worker is left that wanted the old shape, and no model of that shape ever came.
            *job = Job::new(shape);
        }
        match job.members.get(&join.address.worker) {
            Some(member)
                // The same session from another address is replayed, while the worker is heard where
                // it was.
                if (member.session != join.address.session || member.peer != from)
                    && !member.liveness.is_overdue(now, config.silent_after) =>
            {
                WelcomeCode::WorkerIdInUse
            }
            None if job.members.len() >= config.max_workers
                || job.members.is_crowded(from, join.hops, config.max_workers) =>
            {
                WelcomeCode::Full
            }
            None if !tenant.takes_worker(job.members.len()) => WelcomeCode::JobFull,
            _ if !job.clusters.contains_key(&join.address.cluster)
                && !tenant.takes_cluster(job.clusters.len()) =>
            {
                WelcomeCode::TooManyClusters
            }
            _ => WelcomeCode::Welcome,
        }
    }

    /// Returns true if one more job fits that this peer begins. Jobs without a model that one peer began make
    /// room for one another. When there is no other room a job without a
    /// model gives way, the one with the oldest join first: joins alone must not keep new jobs out. Next
    /// are jobs whose workers offered a model and went: a stranger can do that for each job in two
    /// datagrams.
    fn has_room_for_a_job(&mut self, now: Instant, peer: PeerId) -> bool {
        let silent_after = self.config.silent_after;
        let is_own = |job: &Job| job.is_empty() && job.opened_by == Some(peer);
        let own = self.jobs.iter().filter(|(_, job)| is_own(job));
        let oldest = if own.clone().count() >= JOBS_OF_A_PEER {
            own.min_by_key(|(_, job)| job.last_join)
        } else if self.jobs.len() < self.config.max_jobs {
            return true;
        } else {
            let gives_way = |job: &Job| job.is_empty() || job.is_abandoned(now, silent_after);
            let idle = self.jobs.iter().filter(|(_, job)| gives_way(job));
            idle.min_by_key(|(_, job)| (!job.is_empty(), job.last_join))
        };
        let oldest = oldest.map(|(id, _)| *id);
        oldest.is_some_and(|id| {
            self.deadlines.set(id, None);
            self.jobs.remove(&id).is_some()
        })
    }

    /// A worker that speaks another version of the format reads of this only which one is spoken
    /// here.
    pub(super) fn answer_another_version(&mut self, now: Instant, from: PeerId, address: Address) {
        let join = Join {
            address,
            have_version: 0,
            parameters: 0,
            segment_lanes: 0,
            clock_error_us: 0,
            sent_at_ns: 0,
            clock_offset_ns: 0,
            hops: 0,
            wants_notices: false,
            path: olaf_wire::JoinPath::default(),
            nonce: 0,
        };
        let welcome = self.welcome(now, &join, WelcomeCode::UnknownJob);
        self.answers.control(from, welcome);
    }

    fn layout_wanted(&self, now: Instant, job: &Job, address: &Address) -> Option<u32> {
        let member = job.members.get(&address.worker).filter(|m| m.session == address.session)?;
        if member.bad_layout {
            return None;
        }
        job.description.wanted(now, address, self.config.silent_after)
    }

    pub(super) fn welcome(&self, now: Instant, join: &Join, code: WelcomeCode) -> Welcome {
        let job = self.jobs.get(&join.address.job);
        // A job that may begin again with another size says nothing of how it is cut.
        let asks = code == WelcomeCode::Path;
        let silent_after = self.config.silent_after;
        let cut = job.filter(|job| !asks || !job.may_be_cut_anew(now, silent_after));
        let (parameters, segment_lanes) =
            cut.map_or((0, 0), |job| (job.shape.parameters, job.shape.segment_lanes));
        let segment_lanes =
            if segment_lanes == 0 && (asks || code == WelcomeCode::WrongSegmentLanes) {
                self.config.segment_lanes.unwrap_or(0)
            } else {
                segment_lanes
            };
        let missing = job.and_then(|job| job.missing(&join.address));
        let (first_missing, missing) = missing.unwrap_or((u32::MAX, 0));
        Welcome {
            address: join.address,
            code,
            ready: job.is_some_and(|job| job.model.is_some()),
            version: job.map_or(0, |job| job.version),
            parameters,
            segment_lanes,
            epoch: self.epoch,
            first_missing,
            echoed_sent_at_ns: join.sent_at_ns,
            received_at_ns: now.0,
            sent_at_ns: now.0,
            switch_epoch: 0,
            silent_ms: 0,
            rule: Some(self.config.told()),
            layout_missing: job
                .and_then(|job| self.layout_wanted(now, job, &join.address))
                .unwrap_or(u32::MAX),
            missing,
            padded_to: 0,
            nonce: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::push_pull::ServerConfig;
    use alloc::collections::BTreeMap;
    use core::time::Duration;
    use olaf_engine::{Engine, Source};
    use olaf_wire::Leave;

    fn says(
        server: &mut Server,
        now: Instant,
        from: u32,
        emit: impl FnOnce(&mut [u8]) -> usize,
    ) -> bool {
        let mut buf = [0; 512];
        let len = emit(&mut buf);
        let verdict = server.handle_packet(now, Source::end(PeerId(from)), &buf[..len]);
        verdict == olaf_engine::Verdict::Absorb
    }

    fn joins(server: &mut Server, now: Instant, from: u32, address: Address) -> bool {
        let join = olaf_samples::join(address, 1, 1);
        says(server, now, from, |buf| join.emit(buf))
    }

    #[test]
    fn a_flood_of_workers_that_come_and_go_leaves_few_hops() {
        let mut server = Server::new(ServerConfig::default(), 9).expect("a good set-up");
        let now = Instant(1);
        assert!(joins(&mut server, now, 7, olaf_samples::address(1, 0, 7)));
        for peer in 100..20_000 {
            let address = olaf_samples::address(1, 0, 1);
            assert!(joins(&mut server, now, peer, address));
            assert!(says(&mut server, now, peer, |buf| Leave { address }.emit(buf)));
        }
        assert!(server.hops.len() <= SENDERS, "{} hops", server.hops.len());
        assert!(server.hops.contains_key(&(PeerId(7), JobId(1))), "its worker is here");
    }

    #[test]
    fn what_is_known_of_the_updates_of_a_cluster_goes_with_the_cluster() {
        let mut server = Server::new(ServerConfig::default(), 9).expect("a good set-up");
        let mut now = Instant(1_000_000_000);
        let address = |cluster| olaf_samples::address(1, cluster, 7);
        assert!(joins(&mut server, now, 7, address(0)));
        let offer = olaf_samples::offer(address(0), 1);
        assert!(says(&mut server, now, 7, |buf| offer.emit(&[1.0], buf)));
        for number in 1..200 {
            now = now + Duration::from_secs(1);
            assert!(joins(&mut server, now, 7, address(number)));
            let mut update = olaf_samples::update(address(number), number);
            update.flow_sequence = number;
            assert!(says(&mut server, now, 7, |buf| update.emit(&[1.0], buf)));
            server.handle_timeout(now);
        }
        let flows: usize = server.ends.values().map(BTreeMap::len).sum();
        assert!((1..=62).contains(&flows), "{flows} flows");
    }
}
