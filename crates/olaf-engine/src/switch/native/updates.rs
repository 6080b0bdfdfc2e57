//! The way up: checks, the queue, departures.

use super::Switch;
use super::answers::{Hearer, Sharer, UNANSWERED_LIMIT, Unanswered};
use super::job::Job;
use super::neighbours::everyone;
use super::screening::screen;
use crate::contribution::{Contribution, datagram_bytes};
use crate::drop::DropReason;
use crate::engine::{Source, Transmit, Verdict};
use crate::event::{Event, WorkerSeen};
use crate::ids::{ClusterId, Flow, PeerId};
use crate::queue::{Arrival, EntryId, Outcome};
use crate::rejection::Rejection;
use crate::time::Instant;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_wire::offsets::update;
use olaf_wire::update::write_lanes;
use olaf_wire::{Address, Session, Update, WelcomeCode, serial};

/// A rejection is told at most so often for each worker and reason.
const TELL_EVERY: Duration = Duration::from_secs(1);

impl Switch {
    pub(super) fn handle_update(
        &mut self,
        now: Instant,
        from: Source,
        update: &Update,
        lanes: &[u8],
    ) -> Verdict {
        let Some(job) = self.jobs.get_mut(&update.address.job) else {
            return self.stranger(now, from, update);
        };
        let hearer = match screen(now, job, from.peer, update, lanes, &self.config) {
            Ok(hearer) => hearer,
            Err(Rejection::UnknownWorker) => return self.stranger(now, from, update),
            Err(rejection) => return self.reject(now, from, update, rejection),
        };
        job.asked_since.get_or_insert(now);
        let number = update.flow_sequence;
        let contribution = Contribution::of_update(update, datagram_bytes(lanes));
        let Flow { segment, .. } = contribution.flow;
        let flow = contribution.flow;
        let ends = &mut job.clusters.entry(update.address.cluster).or_default().ends;
        if !ends.arrives(hearer, segment, number) && matches!(hearer, Hearer::Switch(_)) {
            return self.reject(now, from, update, Rejection::Superseded);
        }

        let outcome = self.uplink.arrive(now, &Arrival { contribution, lanes });
        let cluster = job.clusters.entry(update.address.cluster).or_default();
        cluster.last_heard = Some(now);
        // What it evicts may be another cluster's: see `evict`.
        let own = match outcome {
            Outcome::Evicted { entry, .. } => Outcome::Appended(entry),
            outcome => outcome,
        };
        cluster.fates.count(update.contributors, own);
        let somebody_asked = !cluster.wants_notices.is_empty();
        self.counters.total.count(update.contributors, outcome);
        match outcome {
            Outcome::Appended(entry)
            | Outcome::Merged(entry)
            | Outcome::Filtered(entry)
            | Outcome::Replaced { entry, .. }
            | Outcome::Evicted { entry, .. } => {
                let sharers = self.sharers.entry(entry).or_default();
                remember(sharers, Sharer { hearer, sequence: update.hop_sequence });
            }
            Outcome::Dropped | Outcome::Rejected(_) => {}
        }
        if let Outcome::Filtered(_) = outcome {
            // The answer to what filtered it says so.
            cluster.ended(hearer, segment, number);
        }
        if let Some((received, rejected, _)) = job.sender(from.peer, update) {
            *received += u64::from(update.contributors);
            if let Outcome::Rejected(_) = outcome {
                *rejected += u64::from(update.contributors);
            }
        }
        if let Outcome::Evicted { evicted, flow, dropped, .. } = outcome {
            self.evict(evicted, flow, dropped);
        }
        match outcome {
            Outcome::Replaced { entry, .. } => {
                self.end_all_in(entry, flow, Some(hearer));
                self.hold(entry, hearer, number);
            }
            Outcome::Appended(entry) | Outcome::Merged(entry) | Outcome::Evicted { entry, .. } => {
                self.hold(entry, hearer, number);
            }
            Outcome::Dropped | Outcome::Rejected(_) => self.end_at_once(flow, hearer, number),
            Outcome::Filtered(_) => {}
        }
        if let Hearer::Switch(peer) = hearer {
            self.heard_below(now, update.address.job, peer, update.address.session);
        }
        let is_in =
            !matches!(outcome, Outcome::Dropped | Outcome::Filtered(_) | Outcome::Rejected(_));
        if somebody_asked && is_in {
            self.notify(update);
        }
        match outcome {
            Outcome::Rejected(rejection) => {
                let rejection = Rejection::from(rejection);
                self.tell(now, from, update, rejection);
                Verdict::Drop(DropReason::Contribution(rejection))
            }
            Outcome::Dropped => Verdict::Drop(DropReason::QueueFull),
            Outcome::Filtered(_) => Verdict::Drop(DropReason::Filtered),
            _ => Verdict::Absorb,
        }
    }

    /// An entry gave its slot to an arrival: dropped, and nobody will hear an answer to it.
    fn evict(&mut self, entry: EntryId, flow: Flow, contributors: u32) {
        self.sharers.remove(&entry);
        self.end_all_in(entry, flow, None);
        let job = self.jobs.get_mut(&flow.job).expect("an update is taken only for a known job");
        job.clusters.entry(flow.cluster).or_default().fates.evicted += u64::from(contributors);
    }

    /// The locked entry has left: writes it out and frees its slot.
    pub(super) fn depart(&mut self, now: Instant, buf: &mut [u8]) -> Transmit {
        let entry = self.uplink.leaving_update().expect("due() said so");
        let id = entry.id;
        let Contribution { flow, contributors, .. } = entry.contribution;
        let job = self.jobs.get_mut(&flow.job).expect("an update is taken only for a known job");
        job.hop_sequence = serial::next(job.hop_sequence);
        let hop_sequence = job.hop_sequence;
        let holds = self.holds.remove(&id).unwrap_or_default();
        let cluster = job.clusters.entry(flow.cluster).or_default();
        let flow_sequence = cluster.ends.departs(flow.segment, holds, self.epoch);
        Contribution { hops: entry.contribution.hops.saturating_add(1), ..entry.contribution }
            .to_update(Session(self.epoch), hop_sequence, flow_sequence)
            .emit_header(entry.lanes.len(), buf);
        let len = Update::datagram_len(entry.lanes.len());
        write_lanes(&entry.lanes, &mut buf[update::PAYLOAD..len]);

        let cluster = job.clusters.entry(flow.cluster).or_default();
        cluster.fates.departed(contributors);
        self.counters.total.departed(contributors);
        let sharers = self.sharers.remove(&id).unwrap_or_default();
        if cluster.unanswered.len() == UNANSWERED_LIMIT {
            cluster.unanswered.pop_front();
        }
        let segment = flow.segment;
        cluster.unanswered.push_back(Unanswered { hop_sequence, segment, sharers });
        let peer = job.server;
        self.uplink.release(now, Some((flow, hop_sequence)));
        Transmit::to(peer, len)
    }

    /// An update whose worker, or whose switch, this switch does not know, as after a restart: they
    /// are asked to introduce themselves, of a switch all whom it sends for.
    fn stranger(&mut self, now: Instant, from: Source, update: &Update) -> Verdict {
        let address = if update.hops == 0 { update.address } else { everyone(update.address.job) };
        let welcome = self.welcome(now, address, 0, WelcomeCode::JoinAgain);
        self.reply(from.peer, &welcome);
        let rejection = Rejection::UnknownWorker;
        self.counters.total.reject(rejection.counts(1), rejection);
        self.tell(now, from, update, rejection);
        Verdict::Drop(DropReason::Contribution(rejection))
    }

    fn reject(
        &mut self,
        now: Instant,
        from: Source,
        update: &Update,
        rejection: Rejection,
    ) -> Verdict {
        let contributors = rejection.counts(update.contributors);
        self.counters.total.reject(contributors, rejection);
        // Only what it sent itself is held against a party and its cluster.
        if let Some(job) = self.jobs.get_mut(&update.address.job)
            && let Some((received, rejected, cluster)) = job.sender(from.peer, update)
        {
            *received += u64::from(contributors);
            *rejected += u64::from(contributors);
            if let Some(cluster) = job.clusters.get_mut(&cluster) {
                cluster.fates.reject(contributors, rejection);
            }
        }
        self.tell(now, from, update, rejection);
        Verdict::Drop(DropReason::Contribution(rejection))
    }

    /// Tells of a rejection, at most once a second for each known sender and reason. Duplicates
    /// are the network's doing and are only counted.
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
    /// Who sent an update, as counters: the contributions received of them, those of them that
    /// were rejected, and the cluster they belong to. Nothing where the sender is not who it says.
    fn sender(&mut self, peer: PeerId, update: &Update) -> Option<(&mut u64, &mut u64, ClusterId)> {
        if update.hops > 0
            && let Some(below) = self.below.get_mut(&peer)
        {
            return Some((&mut below.received, &mut below.rejected, update.address.cluster));
        }
        let member = self.members.get_mut(&update.address.worker)?;
        let own = member.is(peer, update.address.session) && !member.behind_switch;
        own.then_some((&mut member.received, &mut member.rejected, member.cluster))
    }

    /// When a rejection for that reason was last told of whoever sent an update, or of the worker
    /// it names.
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

fn remember(sharers: &mut Vec<Sharer>, sharer: Sharer) {
    match sharers.iter_mut().find(|known| known.hearer == sharer.hearer) {
        Some(known) => known.sequence = serial::later(known.sequence, sharer.sequence),
        None => sharers.push(sharer),
    }
}
