//! The way up: checks, the queue, departures.

use super::Switch;
use super::answers::{Receiver, Sharer, UNANSWERED_LIMIT, Unanswered};
use super::counters::Account;
use super::job::{Cluster, Job};
use super::meetings::Meeting;
use super::neighbours::everyone;
use super::screening::{Screened, screen};
use crate::contribution::Contribution;
use crate::drop::DropReason;
use crate::engine::{Receivers, Source, Transmit, Verdict};
use crate::event::{Event, WorkerSeen};
use crate::ids::{ClusterId, Flow, PeerId, PortId};
use crate::lanes;
use crate::link::Departure;
use crate::party::clip::Measured;
use crate::queue::slots::Ready;
use crate::queue::{Arrival, EntryId, Outcome};
use crate::rejection::Rejection;
use crate::time::Instant;
use alloc::vec;
use core::time::Duration;
use olaf_wire::offsets::update;
use olaf_wire::update::write_lanes;
use olaf_wire::{Address, Session, Update, WelcomeCode, serial};

/// A rejection is told at most so often for each worker and reason.
const TELL_EVERY: Duration = Duration::from_secs(1);

impl Switch {
    /// An update from below. Screening refuses what has no right to be here; the queue says what
    /// becomes of the rest. Both are counted, and each sender learns what became of its update.
    pub(super) fn handle_update(
        &mut self,
        now: Instant,
        from: Source,
        update: &Update,
        arrival: &mut Arrival<'_>,
    ) -> Verdict {
        let hints = self.flows.of(from.peer, update);
        let Some(job) = self.jobs.at(&update.address.job, &mut hints.job) else {
            self.arrivals.unnumbered(Rejection::UnknownWorker.counts(update.contributors).into());
            return self.stranger(now, from, update);
        };
        let (arrivals, config) = (&mut self.arrivals, &self.config);
        let before = arrivals.taken_in();
        let screened =
            screen(now, job, arrivals, from.peer, (update, arrival.lanes), config, hints);
        if arrivals.taken_in() == before {
            // A duplicate is no contribution of its own.
            let contributions = match &screened {
                Ok(_) => update.contributors,
                Err(Rejection::Duplicate) => 0,
                Err(rejection) => rejection.counts(update.contributors),
            };
            arrivals.unnumbered(contributions.into());
        }
        let screened = match screened {
            Ok(screened) => screened,
            Err(Rejection::UnknownWorker) => return self.stranger(now, from, update),
            Err(rejection) => return self.reject(now, from, update, rejection),
        };
        let Screened { receiver, voter, account, cluster, clipping } = screened;
        let (flow, number, contributors) =
            (arrival.contribution.flow, update.flow_sequence, update.contributors);
        // A switch counts each of its flows. A number that this switch has given up, and told the
        // sender so, must not be delivered after all. A worker's segments are judged by its
        // sequence, in screening.
        let (may_be_taken, untold) =
            cluster.ends.arrives(receiver, flow.segment, number, &mut hints.ends);
        if !may_be_taken && matches!(receiver, Receiver::Switch(_)) {
            return self.reject(now, from, update, Rejection::Superseded);
        }

        let mut measured = Measured {
            voter,
            segment: (update.segment, update.segments),
            is_direct: matches!(receiver, Receiver::Worker(_)),
            contributors,
            weight: update.weight,
            reward: update.reward,
        };
        let (limits, up) = (&self.config.limits, &mut self.ports.up);
        // Where the update will probably merge, one pass adds its lanes and measures them.
        let measures = limits.measure_norms();
        let ready = if measures { up.prepare(arrival, &mut hints.link) } else { None };
        let length = || ready.as_ref().map_or_else(|| lanes::length(arrival.lanes), Ready::length);
        // A switch has no model: where nobody else has sent anything, it cannot tell what is usual.
        let (hint, unknown) = (&mut hints.clip, |_| None);
        let judged = clipping.judge(now, limits, &mut measured, length, hint, None, unknown);
        let clipped = judged.clipped;
        (arrival.contribution.weight, arrival.contribution.reward) =
            (measured.weight, measured.reward);
        let outcome = if judged.keeps_lanes() {
            up.arrive_at(now, arrival, ready, &mut hints.link)
        } else {
            // Lanes that are scaled down have another sum.
            let lanes = clipping.scale(judged, arrival.lanes);
            up.arrive(now, &Arrival { lanes, ..*arrival })
        };
        let tells_of_clipped = clipped.any() && account.clip(now, TELL_EVERY);
        if clipped.any() {
            self.counters.clipped.count(clipped);
        }
        cluster.last_heard = Some(now);
        self.hearings.note((flow.job, flow.cluster), now, update.segments);
        // The cluster counts what became of this arrival. An entry that the arrival evicted may be
        // another cluster's; `evict` counts it there.
        let own = match outcome {
            Outcome::Evicted { entry, .. } => Outcome::Appended(entry),
            outcome => outcome,
        };
        cluster.fates.count(contributors, own);
        account.count(contributors, matches!(outcome, Outcome::Rejected(_)));
        self.counters.total.count(contributors, outcome);
        if let Outcome::Filtered(_) = outcome {
            // The answer to the entry that filtered it says so.
            cluster.ended(receiver, flow.segment, number);
        }
        let somebody_asked = !cluster.wants_notices.is_empty();
        let sharer = Sharer { receiver, sequence: update.hop_sequence };
        let verdict = match outcome {
            Outcome::Appended(entry) | Outcome::Merged(entry) => {
                self.meetings
                    .of(entry, &mut hints.meeting)
                    .take_in(sharer, number, from.class, hints);
                Verdict::Absorb
            }
            Outcome::Filtered(entry) => {
                self.meetings.of(entry, &mut hints.meeting).share(sharer, from.class, hints);
                Verdict::Drop(DropReason::Filtered)
            }
            Outcome::Replaced { entry, .. } => {
                let meeting = self.meetings.of(entry, &mut hints.meeting);
                let replaced = core::mem::take(&mut meeting.holds);
                meeting.take_in(sharer, number, from.class, hints);
                self.end_all(now, flow, replaced, Some(receiver));
                Verdict::Absorb
            }
            Outcome::Evicted { entry, evicted, flow, dropped } => {
                self.meetings
                    .of(entry, &mut hints.meeting)
                    .take_in(sharer, number, from.class, hints);
                self.evict(now, evicted, flow, dropped);
                Verdict::Absorb
            }
            Outcome::Dropped => {
                self.end_at_once(now, flow, receiver, number);
                Verdict::Drop(DropReason::QueueFull)
            }
            Outcome::Rejected(rejection) => {
                self.end_at_once(now, flow, receiver, number);
                Verdict::Drop(DropReason::Contribution(rejection.into()))
            }
        };
        if tells_of_clipped {
            self.event(Event::ContributionClipped(seen(&update.address, from.peer), clipped));
        }
        if let Some(ends) = untold {
            self.tell_ends(now, flow, vec![(receiver, ends)]);
        }
        if let Receiver::Switch(_) = receiver {
            self.heard_below(now, flow.job, from, update.address.session);
        }
        if let Outcome::Rejected(rejection) = outcome {
            self.tell(now, from, update, rejection.into());
        }
        if somebody_asked && verdict == Verdict::Absorb {
            self.notify(now, update);
        }
        verdict
    }

    /// An entry gave its slot to an arrival. Its contributions are dropped, and no answer to them
    /// will ever come.
    fn evict(&mut self, now: Instant, entry: EntryId, flow: Flow, contributors: u32) {
        let Meeting { holds, .. } = self.meetings.take(entry);
        self.end_all(now, flow, holds, None);
        let job = self.jobs.get_mut(&flow.job).expect("an update is taken only for a known job");
        job.clusters.get_or_insert(flow.cluster, Cluster::default).fates.evicted +=
            u64::from(contributors);
    }

    /// The locked entry has left: writes it out and frees its slot.
    pub(super) fn depart(
        &mut self,
        now: Instant,
        departure: Departure,
        buf: &mut [u8],
    ) -> Transmit {
        let entry = self.ports.up.leaving_update().expect("due() said so");
        let id = entry.id;
        let Contribution { flow, contributors, .. } = entry.contribution;
        let job = self.jobs.get_mut(&flow.job).expect("an update is taken only for a known job");
        job.hop_sequence = serial::next(job.hop_sequence);
        let hop_sequence = job.hop_sequence;
        let Meeting { sharers, holds, class } = self.meetings.take(id);
        let cluster = job.clusters.get_or_insert(flow.cluster, Cluster::default);
        let flow_sequence = cluster.ends.departs(flow.segment, holds, self.epoch);
        Contribution { hops: entry.contribution.hops.saturating_add(1), ..entry.contribution }
            .to_update(Session(self.epoch), hop_sequence, flow_sequence)
            .emit_header(entry.lanes.len(), buf);
        let len = Update::datagram_len(entry.lanes.len());
        write_lanes(&entry.lanes, &mut buf[update::PAYLOAD..len]);

        cluster.fates.departed(contributors);
        self.counters.total.departed(contributors);
        self.departed.entry(flow.job).or_default().note(hop_sequence, contributors);
        if cluster.unanswered.len() == UNANSWERED_LIMIT {
            cluster.unanswered.pop_front();
        }
        let segment = flow.segment;
        cluster.unanswered.push_back(Unanswered { hop_sequence, segment, sharers });
        let peer = job.server;
        self.ports.up.release(now, Some((flow, hop_sequence)));
        let class = self.ports.mark(PortId::UPLINK, departure, class, 1);
        Transmit { to: Receivers::One(peer), len, class }
    }

    /// An update of a worker or a switch that this switch does not know, as after its own restart.
    /// The sender is asked to join again; a switch passes the request on to every worker behind it.
    fn stranger(&mut self, now: Instant, from: Source, update: &Update) -> Verdict {
        let address = if update.hops == 0 { update.address } else { everyone(update.address.job) };
        let welcome = self.welcome(now, address, 0, WelcomeCode::JoinAgain);
        self.reply(now, from, welcome);
        let rejection = Rejection::UnknownWorker;
        self.counters.total.reject(rejection.counts(1), rejection);
        self.tell(now, from, update, rejection);
        Verdict::Drop(DropReason::Contribution(rejection))
    }

    /// An update that screening refused. It counts against its sender and its sender's cluster only
    /// if the sender is who it says: nobody can spoil the numbers of others.
    fn reject(
        &mut self,
        now: Instant,
        from: Source,
        update: &Update,
        rejection: Rejection,
    ) -> Verdict {
        let contributors = rejection.counts(update.contributors);
        self.counters.total.reject(contributors, rejection);
        if let Some(job) = self.jobs.get_mut(&update.address.job)
            && let Some((account, cluster)) = job.sender(from.peer, update)
        {
            account.count(contributors, true);
            if let Some(cluster) = job.clusters.get_mut(&cluster) {
                cluster.fates.reject(contributors, rejection);
            }
        }
        self.tell(now, from, update, rejection);
        Verdict::Drop(DropReason::Contribution(rejection))
    }

    /// Tells of a rejection, at most once a second for each known sender and reason. A network may
    /// duplicate and reorder: what comes of that is counted, and no event.
    fn tell(&mut self, now: Instant, from: Source, update: &Update, rejection: Rejection) {
        if matches!(rejection, Rejection::Duplicate | Rejection::Superseded) {
            return;
        }
        let job = self.jobs.get_mut(&update.address.job);
        let last = match job.and_then(|job| job.told(from.peer, update, rejection)) {
            Some(last) => last,
            None => &mut self.told_of_strangers,
        };
        if last.is_some_and(|last| now.since(last) < TELL_EVERY) {
            return;
        }
        *last = Some(now);
        let who = seen(&update.address, from.peer);
        self.event(Event::ContributionRejected(who, rejection));
    }
}

impl Job {
    /// The account of an update's sender, and the cluster that the sender is in. Nothing where the
    /// sender is not who it says.
    fn sender(&mut self, peer: PeerId, update: &Update) -> Option<(&mut Account, ClusterId)> {
        if update.hops > 0
            && let Some(below) = self.below.get_mut(&peer)
        {
            return Some((&mut below.account, update.address.cluster));
        }
        let member = self.members.get_mut(&update.address.worker)?;
        let own = member.is(peer, update.address.session) && !member.behind_switch;
        own.then_some((&mut member.account, member.cluster))
    }

    /// When a rejection for that reason was last told of an update's sender: of the switch below
    /// that sent it, or of the worker that it names.
    fn told(
        &mut self,
        peer: PeerId,
        update: &Update,
        rejection: Rejection,
    ) -> Option<&mut Option<Instant>> {
        let told = match self.below.get_mut(&peer).filter(|_| update.hops > 0) {
            Some(below) => &mut below.told,
            None => &mut self.members.get_mut(&update.address.worker)?.told,
        };
        Some(&mut told[rejection.index()])
    }
}

pub(super) fn seen(address: &Address, peer: PeerId) -> WorkerSeen {
    WorkerSeen { job: address.job, cluster: address.cluster, worker: address.worker, peer }
}
