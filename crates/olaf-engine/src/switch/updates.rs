//! The way up: checks, the queue, departures.

use super::Switch;
use super::answers::{Sharer, UNANSWERED_LIMIT};
use super::job::Job;
use crate::discipline::{Arrival, Outcome, Rejection};
use crate::engine::{DropReason, Event, Source, Transmit, Verdict, WorkerSeen};
use crate::ids::{Flow, PeerId};
use crate::time::Instant;
use core::time::Duration;
use olaf_wire::offsets::{LANE, update};
use olaf_wire::update::write_lanes;
use olaf_wire::{Address, Session, Update, Welcome, WelcomeCode};

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
        match admit(job, from.peer, update, lanes, self.config.max_hops) {
            Ok(()) => {}
            Err(Rejection::UnknownWorker) => return self.stranger(now, from, update),
            Err(rejection) => return self.reject(now, from, update, rejection),
        }
        let member = job.members.get_mut(&update.address.worker).expect("admit() found it");
        member.last_heard = now;
        member.behind_switch = update.hops > 0;
        member.received += u64::from(update.contributors);
        member.last_sequence = member.last_sequence.max(Some(update.sequence));
        job.asked_since.get_or_insert(now);

        let outcome = self.uplink.arrive(now, &arrival(update, lanes));
        let cluster = job.clusters.entry(update.address.cluster).or_default();
        cluster.last_heard = Some(now);
        cluster.fates.count(update.contributors, outcome);
        self.counters.total.count(update.contributors, outcome);
        match outcome {
            Outcome::Appended(entry)
            | Outcome::Merged(entry)
            | Outcome::Filtered(entry)
            | Outcome::Replaced { entry, .. } => {
                remember(
                    self.sharers.entry(entry).or_default(),
                    Sharer { worker: update.address.worker, sequence: update.hop_sequence },
                );
            }
            Outcome::Dropped | Outcome::Rejected(_) => {}
        }
        if let Outcome::Rejected(rejection) = outcome {
            member.rejected += u64::from(update.contributors);
            self.tell(now, from, &update.address, rejection);
            return Verdict::Drop(DropReason::Contribution(rejection));
        }
        taken(member, update);
        match outcome {
            Outcome::Dropped => Verdict::Drop(DropReason::QueueFull),
            Outcome::Filtered(_) => Verdict::Drop(DropReason::Filtered),
            _ => Verdict::Absorb,
        }
    }

    /// The locked entry has left: writes it out and frees its slot.
    pub(super) fn depart(&mut self, now: Instant, buf: &mut [u8]) -> Transmit {
        let entry = self.uplink.leaving_update().expect("due() said so");
        let (id, flow, contributors) = (entry.id, entry.flow, entry.contributors);
        let job = self.jobs.get_mut(&flow.job).expect("an update is taken only for a known job");
        job.hop_sequence = job.hop_sequence.wrapping_add(1).max(1);
        let hop_sequence = job.hop_sequence;
        Update {
            address: Address {
                job: flow.job,
                cluster: flow.cluster,
                worker: entry.worker,
                session: Session(self.epoch),
            },
            sequence: entry.sequence,
            hop_sequence,
            segment: flow.segment,
            segments: entry.segments,
            generated_oldest_ns: entry.generated_ns.0,
            generated_newest_ns: entry.generated_ns.1,
            version_oldest: entry.versions.0,
            version_newest: entry.versions.1,
            contributors,
            weight: entry.weight,
            reward: entry.reward,
            hops: entry.hops.saturating_add(1),
        }
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
        cluster.unanswered.push_back((hop_sequence, sharers));
        let peer = job.server;
        self.uplink.release(now, Some((flow.job, hop_sequence)));
        Transmit { peer, len }
    }

    /// An update whose worker this switch does not know, as after a restart of the switch: it is
    /// asked to introduce itself.
    fn stranger(&mut self, now: Instant, from: Source, update: &Update) -> Verdict {
        let welcome = Welcome {
            address: update.address,
            code: WelcomeCode::JoinAgain,
            ready: false,
            version: 0,
            parameters: 0,
            segment_lanes: 0,
            epoch: 0,
            first_missing: u32::MAX,
            echoed_sent_at_ns: 0,
            received_at_ns: now.0,
            sent_at_ns: now.0,
            switch_epoch: self.epoch,
            silent_ms: 0,
        };
        self.reply(from.peer, &welcome);
        // Counted as one, whatever it claims to be a merge of: a stranger's word inflates nothing.
        self.counters.total.count(1, Outcome::Rejected(Rejection::UnknownWorker));
        self.tell(now, from, &update.address, Rejection::UnknownWorker);
        Verdict::Drop(DropReason::Contribution(Rejection::UnknownWorker))
    }

    fn reject(
        &mut self,
        now: Instant,
        from: Source,
        update: &Update,
        rejection: Rejection,
    ) -> Verdict {
        // Only what its own worker sent is held against a worker and its cluster.
        let own = rejection != Rejection::WrongSender;
        let contributors = if own { update.contributors } else { 1 };
        let outcome = Outcome::Rejected(rejection);
        self.counters.total.count(contributors, outcome);
        if own
            && let Some(job) = self.jobs.get_mut(&update.address.job)
            && let Some(member) = job.members.get_mut(&update.address.worker)
        {
            member.last_heard = now;
            member.received += u64::from(contributors);
            member.rejected += u64::from(contributors);
            job.clusters.entry(member.cluster).or_default().fates.count(contributors, outcome);
        }
        self.tell(now, from, &update.address, rejection);
        Verdict::Drop(DropReason::Contribution(rejection))
    }

    /// Tells of a rejection, at most once a second for each known worker and reason. Duplicates
    /// are the network's doing and are only counted.
    fn tell(&mut self, now: Instant, from: Source, address: &Address, rejection: Rejection) {
        if matches!(rejection, Rejection::Duplicate | Rejection::Superseded) {
            return;
        }
        let last = match self
            .jobs
            .get_mut(&address.job)
            .and_then(|j| j.members.get_mut(&address.worker))
        {
            Some(member) => &mut member.told[rejection.index()],
            None => &mut self.told_of_strangers,
        };
        if last.is_some_and(|last| now.since(last) < TELL_EVERY) {
            return;
        }
        *last = Some(now);
        self.event(Event::ContributionRejected(seen(address, from.peer), rejection));
    }
}

pub(super) fn seen(address: &Address, peer: PeerId) -> WorkerSeen {
    WorkerSeen { job: address.job, cluster: address.cluster, worker: address.worker, peer }
}

/// Whether an update is from whom it says and of its job's shape.
fn admit(
    job: &Job,
    peer: PeerId,
    update: &Update,
    lanes: &[u8],
    max_hops: u8,
) -> Result<(), Rejection> {
    let member = job.members.get(&update.address.worker).ok_or(Rejection::UnknownWorker)?;
    // What an earlier switch sends names that switch's life, and comes the way its workers joined.
    let of_this_life = member.session == update.address.session || update.hops > 0;
    if member.peer != peer || !of_this_life {
        return Err(Rejection::WrongSender);
    }
    let Some(shape) = job.shape.filter(|_| member.admitted) else {
        return Err(Rejection::UnknownWorker);
    };
    if member.cluster != update.address.cluster {
        return Err(Rejection::WrongCluster);
    }
    if update.segments != shape.segments()
        || shape.lanes(update.segment).is_none_or(|n| n as usize * LANE != lanes.len())
    {
        return Err(Rejection::WrongSize);
    }
    if update.hops >= max_hops {
        return Err(Rejection::TooManyHops);
    }
    match member.taken.get(update.segment as usize).copied().unwrap_or(0) {
        next if update.sequence >= next => Ok(()),
        next if update.sequence + 1 == next => Err(Rejection::Duplicate),
        _ => Err(Rejection::Superseded),
    }
}

/// The network may repeat and reorder; a worker's segment has one fate, and none after a newer
/// one's.
fn taken(member: &mut super::job::Member, update: &Update) {
    let segment = update.segment as usize;
    if member.taken.len() <= segment {
        member.taken.resize(update.segments as usize, 0);
    }
    member.taken[segment] = update.sequence.saturating_add(1);
}

fn remember(sharers: &mut alloc::vec::Vec<Sharer>, sharer: Sharer) {
    match sharers.iter_mut().find(|known| known.worker == sharer.worker) {
        Some(known) => known.sequence = known.sequence.max(sharer.sequence),
        None => sharers.push(sharer),
    }
}

fn arrival<'a>(update: &Update, lanes: &'a [u8]) -> Arrival<'a> {
    Arrival {
        flow: Flow {
            job: update.address.job,
            cluster: update.address.cluster,
            segment: update.segment,
        },
        worker: update.address.worker,
        sequence: update.sequence,
        segments: update.segments,
        contributors: update.contributors,
        weight: update.weight,
        reward: update.reward,
        generated_ns: (update.generated_oldest_ns, update.generated_newest_ns),
        versions: (update.version_oldest, update.version_newest),
        hops: update.hops,
        bytes: u32::try_from(Update::datagram_len(lanes.len() / LANE)).unwrap_or(u32::MAX),
        lanes,
    }
}
