//! Whether an update may meet the queue: who sends it, of which shape it is, and whether it comes
//! for the first time.

use super::answers::Hearer;
use super::config::Config;
use super::job::{Job, Member};
use crate::ids::{PeerId, Session};
use crate::rejection::Rejection;
use crate::time::Instant;
use alloc::vec::Vec;
use olaf_wire::offsets::LANE;
use olaf_wire::{Update, serial};

/// Lets an update in, which is known from then on; says who is to hear the answer to it.
///
/// A worker is known by its id and session, and its updates by their sequence. What has passed a
/// switch is known by that switch and its count of what it sent: of a merge the header names one
/// contributor of many, who may have left meanwhile.
pub(super) fn screen(
    now: Instant,
    job: &mut Job,
    peer: PeerId,
    update: &Update,
    lanes: &[u8],
    config: &Config,
) -> Result<Hearer, Rejection> {
    if update.hops == 0 {
        own(now, job, peer, update, lanes, config).map(|()| Hearer::Worker(update.address.worker))
    } else {
        passed_on(now, job, peer, update, lanes, config).map(|()| Hearer::Switch(peer))
    }
}

/// What comes straight from a worker.
fn own(
    now: Instant,
    job: &mut Job,
    peer: PeerId,
    update: &Update,
    lanes: &[u8],
    config: &Config,
) -> Result<(), Rejection> {
    let shape = job.shape;
    let member = job.members.get_mut(&update.address.worker).ok_or(Rejection::UnknownWorker)?;
    if !member.is(peer, update.address.session) || member.behind_switch {
        return Err(Rejection::WrongSender);
    }
    let shape = shape.filter(|_| member.admitted).ok_or(Rejection::UnknownWorker)?;
    if member.cluster != update.address.cluster {
        return Err(Rejection::WrongCluster);
    }
    if !shape.fits(update, lanes) {
        return Err(Rejection::WrongSize);
    }
    // Its own, and those that it held back before.
    if update.contributors > config.max_carried {
        return Err(Rejection::TooManyContributors);
    }
    member.taken.judge(update.segment, update.sequence)?;
    member.taken.note(update.segment, update.sequence);
    member.last_heard = now;
    let newer = member.last_sequence.is_none_or(|last| serial::is_after(update.sequence, last));
    if newer {
        member.last_sequence = Some(update.sequence);
    }
    Ok(())
}

/// What comes from a switch.
fn passed_on(
    now: Instant,
    job: &mut Job,
    peer: PeerId,
    update: &Update,
    lanes: &[u8],
    config: &Config,
) -> Result<(), Rejection> {
    let Some(below) = job.below.get_mut(&peer) else {
        // Whoever joined for itself does not become a switch by saying so.
        let is_worker = |member: &Member| member.peer == peer && !member.behind_switch;
        let claims = job.members.get(&update.address.worker).is_some_and(is_worker);
        return Err(if claims { Rejection::NotASwitch } else { Rejection::UnknownWorker });
    };
    if update.hops >= config.max_hops {
        return Err(Rejection::TooManyHops);
    }
    if !job.clusters.contains_key(&update.address.cluster) {
        return Err(Rejection::WrongCluster);
    }
    if !job.shape.is_some_and(|shape| shape.fits(update, lanes)) {
        return Err(Rejection::WrongSize);
    }
    below.hops.last_heard = now;
    if !below.hops.is_news(update.address.session, update.hop_sequence) {
        return Err(Rejection::Duplicate);
    }
    // A newer one of the same worker may wait here, and what is unmerged replaces it: the older
    // must not, should the link between the two switches have turned them round.
    if update.contributors == 1
        && let Some(member) = job.members.get_mut(&update.address.worker)
        && member.peer == peer
    {
        member.taken.live(update.address.session);
        member.taken.judge(update.segment, update.hop_sequence)?;
        member.taken.note(update.segment, update.hop_sequence);
    }
    Ok(())
}

/// The newest of a worker's numbers taken, segment by segment: its own count where it sends
/// itself, the hop's where a switch does.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// The sender's life, where it is not the worker's own.
    life: Session,
    newest: Vec<Option<u32>>,
}

impl Taken {
    /// From here on the numbers are of that life of their sender.
    fn live(&mut self, life: Session) {
        if self.life != life {
            *self = Self { life, newest: Vec::new() };
        }
    }

    /// The network may repeat and reorder; a worker's segment has one fate, and none after a newer
    /// one's.
    fn judge(&self, segment: u32, number: u32) -> Result<(), Rejection> {
        match self.newest.get(segment as usize).copied().flatten() {
            Some(newest) if newest == number => Err(Rejection::Duplicate),
            Some(newest) if !serial::is_after(number, newest) => Err(Rejection::Superseded),
            _ => Ok(()),
        }
    }

    fn note(&mut self, segment: u32, number: u32) {
        let segment = segment as usize;
        if self.newest.len() <= segment {
            self.newest.resize(segment + 1, None);
        }
        self.newest[segment] = Some(number);
    }
}

impl super::job::Shape {
    fn fits(self, update: &Update, lanes: &[u8]) -> bool {
        update.segments == self.segments()
            && self.lanes(update.segment).is_some_and(|n| n as usize * LANE == lanes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workers_count_goes_on_after_the_largest_number() {
        let mut taken = Taken::default();
        for number in [u32::MAX - 1, u32::MAX, 0, 1] {
            assert_eq!(taken.judge(0, number), Ok(()), "{number}");
            taken.note(0, number);
        }
        assert_eq!(taken.judge(0, 1), Err(Rejection::Duplicate));
        assert_eq!(taken.judge(0, u32::MAX), Err(Rejection::Superseded));
    }

    #[test]
    fn another_life_of_the_sender_counts_anew() {
        let mut taken = Taken::default();
        taken.live(Session(1));
        taken.note(0, 500);
        taken.live(Session(2));
        assert_eq!(taken.judge(0, 3), Ok(()));
    }
}
