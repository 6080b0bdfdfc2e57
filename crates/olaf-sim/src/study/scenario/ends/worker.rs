//! A worker of a scenario that is an engine: its updates are ready at the scenario's times.

use crate::study::scenario::sender::Decision;
use crate::study::scenario::spec::{Scenario, SpecError};
use crate::study::scenario::worker::Worker;
use olaf_engine::report::{Report, walk};
use olaf_engine::{
    Contribution, Engine, Event, Instant, PeerId, PortId, Refused, Session, Source, Transmit,
    Verdict, Why,
};
use olaf_host::transmission::Feedback;
use olaf_wire::offsets::MAX_SEGMENT_LANES;
use olaf_wire::{Answer, Notice, Packet, Refusal};
use serde::Serialize;
use std::collections::VecDeque;

/// The peer that is the server.
const SERVER: PeerId = PeerId(0);

/// A worker. Each contribution's lanes are all 1, so that every sum on the way is known.
pub struct WorkerEnd {
    pub(super) worker: Worker,
    lanes: usize,
    /// When its next updates are ready, in order.
    ready: VecDeque<Instant>,
    /// When it decides anew about what it holds.
    retry: Option<Instant>,
    outbox: VecDeque<Contribution>,
    answers: u64,
    notices: u64,
    refused: u64,
}

#[derive(Serialize)]
struct Statistics {
    generated: u64,
    packets_sent: u32,
    contributions_sent: u64,
    discarded: u64,
    held: u64,
    answers: u64,
    notices: u64,
    refused: u64,
}

impl WorkerEnd {
    /// The worker of that number, counted through all groups. Its updates have `lanes` lanes; its
    /// server is peer 0.
    ///
    /// # Errors
    /// The scenario cannot be or has fewer workers, or no datagram has that number of lanes.
    pub fn new(scenario: &Scenario, worker: u32, lanes: usize) -> Result<Self, SpecError> {
        if lanes == 0 || lanes > MAX_SEGMENT_LANES {
            return Err(SpecError(format!("lanes must be from 1 to {MAX_SEGMENT_LANES}")));
        }
        let mut places = (0..).zip(scenario.clusters()?);
        let (cluster, place) = places
            .find(|(_, place)| place.workers.contains(&worker))
            .ok_or_else(|| SpecError(format!("the scenario has no worker {worker}")))?;
        let mut ready = scenario.ready_of(&scenario.groups[place.group], worker);
        ready.sort_unstable();
        Ok(Self {
            worker: Worker::new(scenario, (cluster, &place), worker)?,
            lanes,
            ready: ready.into_iter().map(Instant).collect(),
            retry: None,
            outbox: VecDeque::new(),
            answers: 0,
            notices: 0,
            refused: 0,
        })
    }

    fn act(&mut self, now: Instant, decision: Decision) {
        match decision {
            Decision::Send(held) => self.outbox.push_back(self.worker.packet(held).contribution),
            Decision::RetryAfter(after) => self.retry = Some(now + after),
            Decision::Hold => {}
        }
    }

    fn hear(&mut self, now: Instant, bytes: &[u8]) -> Result<(), Refusal> {
        let packet = Packet::new_checked(bytes)?;
        if let Ok(answer) = Answer::parse(&packet) {
            self.answers += 1;
            let ns = |us: u32| u64::from(us) * 1000;
            let feedback = Feedback {
                queue: answer.queue,
                round_ns: ns(answer.queue.round_us),
                own_age_ns: ns(answer.ages.own_us),
                mean_age_ns: ns(answer.ages.mean_us),
            };
            self.worker.sender.hear(now, &feedback);
        } else {
            let notice = Notice::parse(&packet)?;
            self.notices += 1;
            self.worker.sender.taken(now, notice.taken_newest_ns);
        }
        Ok(())
    }
}

impl Engine for WorkerEnd {
    fn handle_packet(&mut self, now: Instant, _from: Source, bytes: &[u8]) -> Verdict {
        match self.hear(now, bytes) {
            Ok(()) => Verdict::Absorb,
            Err(refusal) => {
                self.refused += 1;
                Verdict::refused(Refused::Malformed(refusal))
            }
        }
    }

    fn poll_transmit(&mut self, _now: Instant, _port: PortId, buf: &mut [u8]) -> Option<Transmit> {
        let contribution = self.outbox.pop_front()?;
        let lanes = vec![contribution.contributors as f32; self.lanes];
        let update = contribution.to_update(Session(0), contribution.sequence, 0);
        Some(Transmit::to(SERVER, update.emit(&lanes, buf)))
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        let at = self.ready.front().copied().into_iter().chain(self.retry).min()?;
        Some((at, Why::Departure))
    }

    fn handle_timeout(&mut self, now: Instant) {
        // What it holds comes before what is new, as in a scenario that runs here.
        if self.retry.take_if(|at| *at <= now).is_some() {
            let decision = self.worker.sender.retry(now);
            self.act(now, decision);
        }
        while self.ready.front().is_some_and(|at| *at <= now) {
            self.ready.pop_front();
            let decision = self.worker.ready(now);
            self.act(now, decision);
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }

    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        keep(SERVER);
    }

    fn report(&self, _now: Instant, to: &mut dyn Report) {
        let Worker { sender, generated, packets_sent, contributions_sent, .. } = &self.worker;
        let statistics = Statistics {
            generated: *generated,
            packets_sent: *packets_sent,
            contributions_sent: *contributions_sent,
            discarded: sender.discarded(),
            held: sender.held(),
            answers: self.answers,
            notices: self.notices,
            refused: self.refused,
        };
        walk(&statistics, to);
    }
}
