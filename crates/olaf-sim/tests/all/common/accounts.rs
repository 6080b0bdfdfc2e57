//! Every contribution from the workers' push to the server's model, hop by hop.

use super::{Job, SERVER, switch, update_of};
use olaf_engine::switch::native::Fates;
use olaf_engine::{PeerId, Switch};
use olaf_host::{Server, Worker};
use olaf_sim::Lot;

/// On every link what was sent arrived or was lost, at every switch what arrived has one fate, and
/// in the model each contribution is there at most once and as often as was counted.
#[track_caller]
pub(crate) fn everything_is_accounted_for(job: &Job) {
    let net = &job.net;
    let now = net.now();

    // Pushed = sent + replaced before it was sent.
    let mut sent = 0;
    for id in job.workers() {
        for worker in net.lives::<Worker>(id) {
            let statistics = worker.statistics(now);
            assert_eq!(
                statistics.contributions,
                statistics.sent + statistics.replaced_unsent + statistics.unsent
            );
            sent += statistics.sent;
        }
    }
    let is_worker = |id: PeerId| id.0 < job.setting.workers;
    assert_eq!(sent, job.contributions(Lot::Sent, |from, _| is_worker(from)));

    // On the links: sent + repeated = arrived + lost.
    let up = |from: PeerId, to: PeerId| from != SERVER && !is_worker(to);
    let count = |lot| job.contributions(lot, up);
    assert_eq!(
        count(Lot::Sent) + count(Lot::Repeated),
        count(Lot::Delivered) + count(Lot::Lost) + count(Lot::ToTheDead)
    );

    // At each switch: what arrived has one fate, and nothing waits any more.
    for number in 0..job.tree.hops.len() {
        let (id, above) = (switch(number), job.tree.above(number));
        let (mut received, mut left, mut lives) = (0, 0, 0);
        for switch in net.lives::<Switch>(id) {
            let (fates, waiting) = switch.fates();
            assert_eq!(fates.received, fates.settled() + waiting, "switch {number}: {fates:?}");
            received += fates.received;
            left += fates.sent_alone + fates.merged;
            lives += 1;
        }
        let arrived = job.contributions(Lot::Delivered, |from, to| to == id && from != above);
        // A new life takes nobody's word for how much a merge holds before it knows the switch.
        assert!(received == arrived || lives > 1 && received < arrived, "switch {number}");
        let sent = job.contributions(Lot::Sent, |from, to| from == id && to == above);
        assert_eq!(left, sent, "switch {number}");
    }

    // At the server: what arrived for the first time has one fate too.
    let (mut received, mut applied) = (0, 0);
    for server in net.lives::<Server>(SERVER) {
        for job in server.statistics(now).jobs {
            let fates = &job.fates;
            let rejected: u64 = fates.rejected.values().sum();
            let delivered = fates.delivered_alone + fates.delivered_merged;
            assert_eq!(job.received, delivered + fates.gated + rejected);
            received += job.received;
            applied += delivered;
        }
    }
    assert_eq!(received, job.distinct_at_the_server());

    // And in the model, lane by lane: each contribution at most once, and as many as were counted.
    let mut counted = 0;
    for (at, lane) in job.model().into_iter().enumerate() {
        let times = lane.round();
        assert!((lane - times).abs() < 1e-3 && (0.0..=1.0).contains(&times), "lane {at} is {lane}");
        counted += times as u64;
    }
    if net.lives::<Server>(SERVER).count() == 1 {
        assert_eq!(counted, applied);
    }
}

/// Every worker has had models, ever newer ones.
#[track_caller]
pub(crate) fn everyone_learns(job: &Job, at_least: usize) {
    for id in job.workers() {
        let seen = job.models_seen.get(&id).map_or(0, |seen| seen.len());
        assert!(seen >= at_least, "{id:?} saw {seen} models");
    }
}

impl Job {
    /// What became of contributions at a switch, over all its lives.
    pub(crate) fn fates_at(&self, number: usize) -> Fates {
        let lives = self.net.lives::<Switch>(switch(number));
        lives.fold(Fates::default(), |mut sum, life| {
            let (fates, _) = life.fates();
            sum.received += fates.received;
            sum.sent_alone += fates.sent_alone;
            sum.merged += fates.merged;
            sum.replaced += fates.replaced;
            sum.filtered += fates.filtered;
            sum.dropped += fates.dropped;
            sum.departures += fates.departures;
            sum.rejected.iter_mut().zip(fates.rejected).for_each(|(sum, one)| *sum += one);
            sum
        })
    }

    /// Contributions that the server applied.
    pub(crate) fn applied(&self) -> u64 {
        let servers = self.net.lives::<Server>(SERVER);
        let jobs = servers.flat_map(|server| server.statistics(self.net.now()).jobs);
        jobs.map(|job| job.fates.delivered_alone + job.fates.delivered_merged).sum()
    }

    /// Contributions that workers sent.
    pub(crate) fn sent(&self) -> u64 {
        self.contributions(Lot::Sent, |from, _| from.0 < self.setting.workers)
    }

    /// Update datagrams that a switch sent up, and of how many contributions each.
    pub(crate) fn departures_of(&self, number: usize) -> Vec<u32> {
        let records = self.net.trace().iter();
        let mine = records.filter(|r| r.lot == Lot::Sent && r.from == switch(number));
        mine.filter_map(|r| update_of(&r.bytes)).map(|update| update.contributors).collect()
    }
}
