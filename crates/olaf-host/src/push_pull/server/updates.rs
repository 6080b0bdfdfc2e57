//! Updates, and the answers to them.

use super::{Aggregate, Server, seen};
use crate::recent_age::mean_of;
use core::time::Duration;
use olaf_engine::party::clip::{Kept, Measured};
use olaf_engine::party::ends::Order;
use olaf_engine::party::{Clipped, Voter};
use olaf_engine::{Event, FlowEnds, Instant, PeerId, Refused, Rejection};
use olaf_wire::{Address, Ages, Answer, ClusterId, Ends, JobId, Packet, Update};

/// Shortest time between two events about clipped updates of one worker.
const TELL_CLIPPED_EVERY: Duration = Duration::from_secs(1);

/// How often the mean age of all clusters is worked out.
const MEAN_AGE_EVERY: Duration = Duration::from_millis(10);

impl Server {
    pub(super) fn handle_update(
        &mut self,
        now: Instant,
        from: PeerId,
        packet: &Packet<'_>,
    ) -> Result<(), Refused> {
        let update = Update::parse(packet).map_err(Refused::Malformed)?;
        let taken = self.take_update(now, from, &update, packet.lanes());
        // A refused update has arrived all the same: a switch that paces by answers waits for one.
        if taken.is_err_and(|refused| refused != Refused::Duplicate) {
            if taken != Err(Refused::Overtaken)
                && let Some(flow) = self.flow_ends(from, &update)
            {
                flow.ended(update.flow_sequence);
            }
            let acknowledgement = self.answer_to(now, from, &update);
            self.answers.acknowledge(from, acknowledgement);
        }
        taken
    }

    fn take_update(
        &mut self,
        now: Instant,
        from: PeerId,
        update: &Update,
        lanes: &[u8],
    ) -> Result<(), Refused> {
        let id = update.address.job;
        let cluster = update.address.cluster;
        let job = self.jobs.get_mut(&id).ok_or(Refused::UnknownJob)?;
        let Some(hop) = self.hops.get_mut(&(from, id)) else {
            job.fates.reject(Refused::UnknownPeer, update.contributors);
            self.arrivals.unnumbered(update.contributors.into());
            return Err(Refused::UnknownPeer);
        };
        hop.liveness.note(now);
        let may_be = hop.may_send(update).and_then(|()| job.may_carry(from, update));
        if let Err(refused) = may_be {
            // Its number of contributions is not believed.
            job.fates.reject(refused, 1);
            self.arrivals.unnumbered(1);
            return Err(refused);
        }
        if !self.arrivals.is_news(from, update) {
            job.fates.reject(Refused::Duplicate, 0);
            return Err(Refused::Duplicate);
        }
        // Only of flows that can be: what comes from a network must not grow memory.
        let can_be = update.segments == job.shape.segments() && job.clusters.contains_key(&cluster);
        let flows = self.ends.entry((from, id)).or_default();
        let mut unknown = FlowEnds::default();
        let flow =
            if can_be { flows.entry((cluster, update.segment)).or_default() } else { &mut unknown };
        if !flow.arrives(update.flow_sequence, Order::Any) {
            job.fates.reject(Refused::Overtaken, update.contributors);
            return Err(Refused::Overtaken);
        }
        let takes = if update.hops == 0 {
            job.takes_own(now, from, update, self.config.limits.max_rate)
        } else {
            // A switch that sends for workers has judged each of them.
            job.takes_passed_on(from, update)
        };
        if let Err(refused) = takes {
            job.fates.reject(refused, update.contributors);
            if refused == Refused::TooOften {
                self.note_too_often(now, from, &update.address);
            }
            return Err(refused);
        }
        // What cannot change the model is no vote on what is usual, and takes no memory.
        if let Err(refused) = job.fits(update, lanes) {
            job.fates.reject(refused, update.contributors);
            return Err(refused);
        }
        let is_behind = job.members.get(&update.address.worker).is_some_and(|one| one.peer == from);
        let mut clipping = core::mem::take(&mut job.clipping);
        let mut measured = Measured {
            voter: Voter::of(from, update, is_behind),
            segment: (update.segment, update.segments),
            is_direct: update.hops == 0,
            contributors: update.contributors,
            weight: update.weight,
            reward: update.reward,
        };
        let rate = self.config.rule.learning_rate;
        let kept = clipping.clip(now, &self.config.limits, &mut measured, lanes, |multiple| {
            job.longest_step(update.segment, multiple, rate)
        });
        let Kept { lanes, clipped, effect } = kept;
        (job.effect, job.reward_is_clipped) = (effect, clipped.reward);
        if clipped.any() {
            self.note_clipped(now, from, &update.address, clipped);
        }
        let update = &Update { weight: measured.weight, reward: measured.reward, ..*update };
        let applied = self.apply_update(now, from, update, lanes);
        if let Some(job) = self.jobs.get_mut(&id) {
            job.clipping = clipping;
        }
        applied
    }

    /// Counts a clipped update, and tells of it once a second for each worker. Of a merge the first
    /// contributor is named.
    fn note_clipped(&mut self, now: Instant, from: PeerId, address: &Address, clipped: Clipped) {
        let Some(job) = self.jobs.get_mut(&address.job) else { return };
        job.clipped.count(clipped);
        let Some(member) = job.members.get_mut(&address.worker) else { return };
        member.clipped.0 += 1;
        if member.clipped.1.is_none_or(|told| now.since(told) >= TELL_CLIPPED_EVERY) {
            member.clipped.1 = Some(now);
            self.event(Event::ContributionClipped(seen(address, from), clipped));
        }
    }

    /// Tells once a second of a worker that sends far more updates than the others.
    fn note_too_often(&mut self, now: Instant, from: PeerId, address: &Address) {
        let Some(job) = self.jobs.get_mut(&address.job) else { return };
        let Some(member) = job.members.get_mut(&address.worker) else { return };
        if member.told_too_often.is_none_or(|told| now.since(told) >= TELL_CLIPPED_EVERY) {
            member.told_too_often = Some(now);
            self.event(Event::ContributionRejected(seen(address, from), Rejection::TooOften));
        }
    }

    fn apply_update(
        &mut self,
        now: Instant,
        from: PeerId,
        update: &Update,
        lanes: &[u8],
    ) -> Result<(), Refused> {
        if self.config.aggregate() != Aggregate::Each {
            return self.collect_update(now, from, update, lanes);
        }
        let (id, cluster) = (update.address.job, update.address.cluster);
        let job = self.jobs.get_mut(&id).ok_or(Refused::UnknownJob)?;
        let delivery = job.deliver(now, update, lanes, self.config.rule)?;
        if let Some(flow) =
            self.ends.get_mut(&(from, id)).and_then(|f| f.get_mut(&(cluster, update.segment)))
        {
            flow.delivered(update.flow_sequence);
        }
        let round_is_over = job.round_is_over(cluster, update.segment, update.segments);
        let snapshot = round_is_over.then(|| job.publish(self.config.keep_versions));
        let answer = Answer {
            delivered_version: delivery.newest_version,
            delivered_newest_ns: delivery.newest_generation_ns,
            ages: self.ages(now, id, cluster),
            ..self.answer_to(now, from, update)
        };
        if update.segments > 1 {
            self.answers.acknowledge(from, answer);
        }
        let job = self.jobs.get_mut(&id).expect("it was there a few lines above");
        let state = job.clusters.entry(cluster).or_default();
        if let Some(snapshot) = snapshot {
            let mut answers = state.end_round();
            self.rounds.set((id, cluster), None);
            answers.insert(from, answer);
            for (peer, answer) in answers {
                let answer = Answer { model_version: job.version, server_time_ns: now.0, ..answer };
                self.answers.model(peer, answer, job.shape, snapshot.clone());
            }
        } else {
            state.note_round(now + self.config.round, from, answer);
            self.rounds.set((id, cluster), state.round_ends());
        }
        Ok(())
    }

    /// A model for one worker that answers nothing in particular.
    pub(super) fn model_for(&self, now: Instant, id: JobId, address: Address) -> Answer {
        let job = self.jobs.get(&id);
        Answer {
            address,
            acknowledges: 0,
            segment: 0,
            segments: job.map_or(0, |job| job.shape.segments()),
            model_version: job.map_or(0, |job| job.version),
            parameters: job.map_or(0, |job| job.shape.parameters),
            epoch: self.epoch,
            delivered_version: 0,
            delivered_newest_ns: 0,
            server_time_ns: now.0,
            queue: olaf_wire::QueueStatus::default(),
            ages: Ages::default(),
            ends: Ends::NONE,
        }
    }

    /// How old a cluster's model is of late, and all clusters' on average, which is worked out anew
    /// now and then only.
    pub(super) fn ages(&mut self, now: Instant, id: JobId, cluster: ClusterId) -> Ages {
        if self.mean_age.is_none_or(|(_, at)| now.since(at) >= MEAN_AGE_EVERY) {
            let clusters = self.jobs.values().flat_map(|job| job.clusters.values());
            self.mean_age = Some((mean_of(clusters.map(|c| &c.recent_age), now), now));
        }
        let of = self.jobs.get(&id).and_then(|job| job.clusters.get(&cluster));
        let own = of.and_then(|cluster| cluster.recent_age.mean_ns(now)).unwrap_or_default();
        let mean = self.mean_age.map_or(0.0, |(mean, _)| mean);
        // A conversion from a float saturates.
        Ages { own_us: (own / 1000.0) as u32, mean_us: (mean / 1000.0) as u32 }
    }

    /// An answer to the cluster of an update, as far as the update itself says what is in it.
    pub(super) fn answer_to(&self, now: Instant, from: PeerId, update: &Update) -> Answer {
        let id = update.address.job;
        let cluster = Address {
            job: id,
            cluster: update.address.cluster,
            worker: olaf_wire::WorkerId::ALL,
            session: olaf_wire::Session(0),
        };
        Answer {
            acknowledges: update.hop_sequence,
            segment: update.segment,
            segments: update.segments,
            ends: self
                .ends
                .get(&(from, id))
                .and_then(|flows| flows.get(&(update.address.cluster, update.segment)))
                .map_or(Ends::NONE, FlowEnds::ends),
            ..self.model_for(now, id, cluster)
        }
    }

    pub(super) fn flow_ends(&mut self, from: PeerId, update: &Update) -> Option<&mut FlowEnds> {
        let flows = self.ends.get_mut(&(from, update.address.job))?;
        flows.get_mut(&(update.address.cluster, update.segment))
    }
}
