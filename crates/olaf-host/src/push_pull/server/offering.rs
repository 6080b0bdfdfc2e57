//! The model that a job begins with: a worker offers its own, segment by segment.

use super::checkpoint::Restored;
use super::job::{CLAIM_LIMIT, Job, Member, ModelNow};
use super::{Server, ServerConfig};
use crate::push_pull::segments::Present;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_engine::party::Shape;
use olaf_engine::{Event, Instant, PeerId, Refused};
use olaf_wire::update::read_lanes;
use olaf_wire::{
    Address, Answer, JobId, Join, JoinPath, Packet, Session, Welcome, WelcomeCode, WorkerId,
};

pub(super) struct Offer {
    worker: WorkerId,
    session: Session,
    version: u32,
    /// The segments that came. A claimed size takes no memory.
    segments: BTreeMap<u32, Vec<f32>>,
    present: Present,
    /// How often it began anew with a newer model.
    renewed: u32,
    began: Instant,
    last_progress: Instant,
    /// To its worker and back, as the worker says; zero while it does not know.
    round_trip: Duration,
}

/// A worker has few newer models while it offers one: it offers to a job that has none.
const MOST_RENEWED: u32 = 8;
/// Nobody's round trip is taken to be longer: a claim must not hold up a job.
const LONGEST_ROUND_TRIP: Duration = Duration::from_secs(4);

/// A whole offer may take this many times the patience for one segment, and the time that its bytes take at
/// [`SLOWEST_BYTES_A_SECOND`].
const PATIENCES: u32 = 8;
/// An eighth of 1 Mbit/s. What is lost and the round trips between two windows of an offer take less than as
/// much again as its bytes do.
const SLOWEST_BYTES_A_SECOND: u64 = 125_000 / 8;

impl Job {
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
            let stuck = offer.is_stuck(now, patience, self.members.get(&offer.worker))
                || offer.takes_too_long(now, patience, self.shape)
                || offer.is_behind(now, patience, join);
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
                renewed: 0,
                began: now,
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
            // The worker has had a newer model meanwhile: the two do not mix. One that begins anew again and
            // again never ends.
            if !offer.segments.is_empty() {
                offer.renewed += 1;
            }
            if offer.renewed > MOST_RENEWED {
                return Err(Refused::TooOften);
            }
            offer.version = message.model_version;
            offer.segments.clear();
            offer.present.clear();
        }
        if !offer.present.insert(message.segment) {
            return Err(Refused::Duplicate);
        }
        offer.last_progress = now;
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
}

impl Offer {
    /// Returns true if another worker's model is to be taken instead. Between two windows of an
    /// offer lies a round trip at least. A worker that does not know its own yet has not been
    /// answered: it is waited for while it repeats itself, and not for ever: it may be one that
    /// hears nothing.
    fn is_stuck(&self, now: Instant, patience: Duration, by: Option<&Member>) -> bool {
        let Some(member) = by.filter(|member| member.session == self.session) else { return true };
        if self.has_heard_nothing() {
            return member.liveness.is_overdue(now, patience * 3)
                || now.since(self.last_progress) >= LONGEST_ROUND_TRIP * 3;
        }
        let round_trip = self.round_trip.min(LONGEST_ROUND_TRIP);
        now.since(self.last_progress) >= patience.max(round_trip * 3)
    }

    /// Returns true if its worker has no answer yet, but the joining one has. All answers to the first one
    /// may be lost.
    fn is_behind(&self, now: Instant, patience: Duration, join: &Join) -> bool {
        let is_answered = join.path.round_trip_us > 0;
        is_answered && self.has_heard_nothing() && now.since(self.last_progress) >= patience
    }

    fn has_heard_nothing(&self) -> bool {
        self.round_trip.is_zero() && self.present.is_empty()
    }

    /// Returns true if the whole offer has taken longer than over a slow path. A worker could otherwise send
    /// a segment now and then, and keep its job from beginning.
    fn takes_too_long(&self, now: Instant, patience: Duration, shape: Shape) -> bool {
        if self.has_heard_nothing() {
            return false; // See `is_stuck`: nobody knows how long its path is.
        }
        let segment = patience.max(self.round_trip.min(LONGEST_ROUND_TRIP) * 3);
        let bytes = u64::from(shape.parameters) * 4;
        let slowest = Duration::from_secs(1).saturating_mul(
            u32::try_from(bytes.div_ceil(SLOWEST_BYTES_A_SECOND)).unwrap_or(u32::MAX),
        );
        now.since(self.began) >= slowest + segment * PATIENCES
    }

    fn is_by(&self, address: &Address) -> bool {
        self.worker == address.worker && self.session == address.session
    }
}

impl Server {
    pub(super) fn handle_offer(
        &mut self,
        now: Instant,
        from: PeerId,
        packet: &Packet<'_>,
    ) -> Result<(), Refused> {
        let offer = Answer::parse(packet).map_err(Refused::Malformed)?;
        let id = offer.address.job;
        let job = self.jobs.get_mut(&id).ok_or(Refused::UnknownJob)?;
        job.member(from, &offer.address)?.liveness.note(now);
        if !job.take_offer(now, &offer, packet.lanes(), &self.config)? {
            return Ok(());
        }
        let started = Event::ModelStarted {
            job: id,
            worker: offer.address.worker,
            parameters: job.shape.parameters,
            version: job.version,
        };
        self.tell_everyone(now, id);
        self.event(started);
        Ok(())
    }

    /// The job has its model. All workers wait for it, so the server tells them before they ask
    /// again.
    pub(super) fn tell_everyone(&mut self, now: Instant, id: JobId) {
        let Some(job) = self.jobs.get(&id) else { return };
        let waiting = job.members.iter().map(|(worker, member)| (*worker, member.clone()));
        for (worker, member) in waiting.collect::<Vec<_>>() {
            let address =
                Address { job: id, cluster: member.cluster, worker, session: member.session };
            let join = Join {
                address,
                have_version: 0,
                parameters: 0,
                segment_lanes: 0,
                clock_error_us: 0,
                sent_at_ns: member.last_join_sent_at_ns,
                clock_offset_ns: 0,
                hops: 0,
                wants_notices: false,
                path: JoinPath::default(),
                nonce: 0,
            };
            let welcome = Welcome {
                received_at_ns: member.last_join_received_at_ns,
                ..self.welcome(now, &join, WelcomeCode::Welcome)
            };
            self.answers.control(member.peer, welcome);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A million parameters over 1 Mbit/s take 32 s, and less than twice that with losses and round trips.
    #[test]
    fn a_large_model_over_a_slow_path_has_the_time_that_it_takes() {
        let shape = Shape { parameters: 1_000_000, segment_lanes: 350 };
        let offer = Offer {
            worker: WorkerId(1),
            session: Session(1),
            version: 0,
            segments: BTreeMap::new(),
            present: Present::none_of(shape.segments()),
            renewed: 0,
            began: Instant(0),
            last_progress: Instant(0),
            round_trip: Duration::from_millis(100),
        };
        let after = |seconds: u64| {
            let now = Instant(seconds * 1_000_000_000);
            offer.takes_too_long(now, Duration::from_millis(300), shape)
        };
        assert_eq!([64, 250, 260].map(after), [false, false, true]);
    }
}
