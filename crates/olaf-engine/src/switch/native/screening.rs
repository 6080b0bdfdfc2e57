//! Whether an update may meet the queue: its sender, whether it has the model's shape, and whether
//! it comes for the first time.

use super::answers::Receiver;
use super::config::Config;
use super::counters::Account;
use super::flows::Hints;
use super::job::{Cluster, Job, Member};
use crate::ids::{PeerId, Session};
use crate::party::{Arrivals, Clipping, Voter};
use crate::rejection::Rejection;
use crate::table::{Hint, Table};
use crate::time::Instant;
use olaf_wire::{Address, Update, serial};

/// An update that may meet the queue.
pub(super) struct Screened<'a> {
    /// The receiver of the answer to it.
    pub(super) receiver: Receiver,
    /// Whose vote it is on what is usual.
    pub(super) voter: Voter,
    /// The contributions that its sender sent.
    pub(super) account: &'a mut Account,
    /// The cluster that it names.
    pub(super) cluster: &'a mut Cluster,
    /// What the workers of its job sent lately.
    pub(super) clipping: &'a mut Clipping,
}

/// Lets an update in, or says why not. From then on the update is known: a repetition of it is
/// refused.
///
/// An update that comes straight from a worker is known by the worker's id and session, and by its
/// sequence. An update that has passed a switch is known by that switch and the switch's own count.
/// The header of a merge names only one of its contributors, which may have left meanwhile; it
/// proves nothing.
#[inline]
pub(super) fn screen<'a>(
    now: Instant,
    job: &'a mut Job,
    arrivals: &mut Arrivals,
    peer: PeerId,
    (update, lanes): (&Update, &[u8]),
    config: &Config,
    hints: &mut Hints,
) -> Result<Screened<'a>, Rejection> {
    if update.hops == 0 {
        own(now, job, arrivals, peer, (update, lanes), config, hints)
    } else {
        passed_on(now, job, arrivals, peer, (update, lanes), config, hints)
    }
}

/// What comes straight from a worker.
#[inline]
fn own<'a>(
    now: Instant,
    job: &'a mut Job,
    arrivals: &mut Arrivals,
    peer: PeerId,
    (update, lanes): (&Update, &[u8]),
    config: &Config,
    hints: &mut Hints,
) -> Result<Screened<'a>, Rejection> {
    let Address { worker, session, cluster, .. } = update.address;
    let member = job.members.at_hint(&worker, &mut hints.member).ok_or(Rejection::UnknownWorker)?;
    if !member.is(peer, session) || member.behind_switch {
        return Err(Rejection::WrongSender);
    }
    let shape = job.shape.filter(|_| member.admitted).ok_or(Rejection::UnknownWorker)?;
    // A worker's update holds its own contribution and those that it held back before.
    if update.contributors > config.max_carried {
        return Err(Rejection::TooManyContributors);
    }
    if update.hop_sequence != 0 && !arrivals.is_news_at(peer, update, &mut hints.arrivals) {
        return Err(Rejection::Duplicate);
    }
    if member.cluster != cluster {
        return Err(Rejection::WrongCluster);
    }
    let cluster = job.clusters.at(&cluster, &mut hints.cluster).ok_or(Rejection::WrongCluster)?;
    if !shape.fits(update, lanes) {
        return Err(Rejection::WrongSize);
    }
    member.taken.take(update.segment, update.sequence, &mut hints.taken)?;
    member.liveness.note(now);
    let (limit, pace, voter) = (config.limits.max_rate, &mut member.pace, Voter::At(peer));
    let of = (update.sequence, update.segments);
    if !job.paces.takes_at(now, limit, voter, pace, of, &mut hints.pace) {
        return Err(Rejection::TooOften);
    }
    let newer = member.last_sequence.is_none_or(|last| serial::is_after(update.sequence, last));
    if newer {
        member.last_sequence = Some(update.sequence);
    }
    job.liveness.expect(now);
    Ok(Screened {
        receiver: Receiver::Worker(worker),
        voter,
        account: &mut member.account,
        cluster,
        clipping: &mut job.clipping,
    })
}

/// What comes from a switch.
#[inline(never)]
fn passed_on<'a>(
    now: Instant,
    job: &'a mut Job,
    arrivals: &mut Arrivals,
    peer: PeerId,
    (update, lanes): (&Update, &[u8]),
    config: &Config,
    hints: &mut Hints,
) -> Result<Screened<'a>, Rejection> {
    let Address { worker, session, cluster, .. } = update.address;
    let Some(below) = job.below.get_mut(&peer) else {
        // A worker that joined for itself does not become a switch by saying so.
        let is_worker = |member: &Member| member.peer == peer && !member.behind_switch;
        let claims = job.members.get(&worker).is_some_and(is_worker);
        return Err(if claims { Rejection::NotASwitch } else { Rejection::UnknownWorker });
    };
    // A merge holds contributions of the workers behind the switch, as many as these may carry.
    let most = u64::from(config.max_carried) * job.members.at(peer).max(1) as u64;
    if u64::from(update.contributors) > most {
        return Err(Rejection::TooManyContributors);
    }
    below.liveness.note(now);
    if update.hop_sequence != 0 && !arrivals.is_news_at(peer, update, &mut hints.arrivals) {
        return Err(Rejection::Duplicate);
    }
    if update.hops >= config.max_hops {
        return Err(Rejection::TooManyHops);
    }
    let cluster = job.clusters.at(&cluster, &mut hints.cluster).ok_or(Rejection::WrongCluster)?;
    if !job.shape.is_some_and(|shape| shape.fits(update, lanes)) {
        return Err(Rejection::WrongSize);
    }
    let named =
        job.members.at_hint(&worker, &mut hints.member).filter(|member| member.peer == peer);
    let voter = Voter::of(peer, update, named.is_some());
    // An unmerged update replaces a waiting one of the same worker. The link between the two
    // switches may reorder them, and then the older update must not replace the newer one.
    if update.contributors == 1
        && let Some(member) = named
    {
        member.taken.live(session);
        member.taken.take(update.segment, update.hop_sequence, &mut hints.taken)?;
    }
    job.liveness.expect(now);
    Ok(Screened {
        receiver: Receiver::Switch(peer),
        voter,
        account: &mut below.account,
        cluster,
        clipping: &mut job.clipping,
    })
}

/// The newest of a worker's numbers taken, segment by segment: its own count where it sends
/// itself, the hop's where a switch does.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// The sender's life, where it is not the worker's own.
    life: Session,
    /// Only of segments that came: a number in a header costs no memory for those before it.
    newest: Table<u32, u32>,
}

impl Taken {
    /// From here on the numbers are of that life of their sender.
    fn live(&mut self, life: Session) {
        if self.life != life {
            *self = Self { life, newest: Table::new() };
        }
    }

    /// Takes a number, unless it or a later one was taken before. The network may repeat and
    /// reorder: a worker's segment has one fate, and none after a newer one's.
    #[inline]
    fn take(&mut self, segment: u32, number: u32, hint: &mut Hint) -> Result<(), Rejection> {
        let Some(newest) = self.newest.at(&segment, hint) else {
            self.newest.at_or_insert(segment, hint, || number);
            return Ok(());
        };
        if *newest == number {
            return Err(Rejection::Duplicate);
        }
        if !serial::is_after(number, *newest) {
            return Err(Rejection::Superseded);
        }
        *newest = number;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(taken: &mut Taken, segment: u32, number: u32) -> Result<(), Rejection> {
        taken.take(segment, number, &mut Hint::default())
    }

    #[test]
    fn a_workers_count_goes_on_after_the_largest_number() {
        let mut taken = Taken::default();
        for number in [u32::MAX - 1, u32::MAX, 0, 1] {
            assert_eq!(take(&mut taken, 0, number), Ok(()), "{number}");
        }
        assert_eq!(take(&mut taken, 0, 1), Err(Rejection::Duplicate));
        assert_eq!(take(&mut taken, 0, u32::MAX), Err(Rejection::Superseded));
    }

    #[test]
    fn a_huge_segment_number_takes_the_memory_of_one_segment() {
        let mut taken = Taken::default();
        assert_eq!(take(&mut taken, u32::MAX, 1), Ok(()));
        assert_eq!(take(&mut taken, u32::MAX, 1), Err(Rejection::Duplicate));
        assert_eq!(taken.newest.len(), 1);
    }

    #[test]
    fn another_life_of_the_sender_counts_anew() {
        let mut taken = Taken::default();
        taken.live(Session(1));
        assert_eq!(take(&mut taken, 0, 500), Ok(()));
        taken.live(Session(2));
        assert_eq!(take(&mut taken, 0, 3), Ok(()));
    }
}
