//! Two switches in a row: the second takes in what the first has merged.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::*;
use core::time::Duration;
use olaf_engine::switch::{Config, Pacing};
use olaf_engine::{BitsPerSecond, PeerId, Switch};
use olaf_host::{Server, Worker};
use olaf_sim::{End, Link, Middle};

const SECOND: PeerId = PeerId(3000);

#[test]
fn merges_of_one_switch_are_merged_on_by_the_next_and_every_worker_hears_the_answer() {
    let link = Link { delay: Duration::from_micros(100), ..Link::default() };
    let mut job = Job::new(Setting {
        workers: 8,
        clusters: 2,
        pacing: Pacing::Rate(BitsPerSecond::new(8_000_000).unwrap()),
        ..Setting::default()
    });
    // Between the first switch and the server comes another.
    job.net.place(SECOND, |life, _| {
        let pacing = Pacing::Rate(BitsPerSecond::new(2_000_000).unwrap());
        let mut switch = Switch::new(Config { pacing, ..Config::default() }, 300 + life).unwrap();
        switch.set_default_server(SERVER);
        Box::new(Middle::new(switch, [SERVER]))
    });
    job.net.join(SECOND, SERVER, link);
    job.net.join(SWITCH, SECOND, link);
    job.net.kill_at(job.net.now(), SWITCH);
    job.first_switch_talks_to(SECOND);
    job.train_for(Duration::from_millis(800));
    job.settle();

    let second = job.net.node::<Middle<Switch>>(SECOND).unwrap();
    let (fates, waiting) = second.engine.fates();
    assert_eq!(fates.received, fates.settled() + waiting);
    assert_eq!(fates.rejected_sum(), 0, "{fates:?}");
    assert!(fates.merged > 20, "{fates:?}");
    let server = job.net.node::<End<Server>>(SERVER).unwrap();
    let applied: u64 = server.0.statistics(job.net.now()).jobs.iter().map(|job| job.received).sum();
    assert_eq!(applied, fates.sent_alone + fates.merged);
    assert!(job.model().iter().all(|lane| *lane < 1.5));
    for id in job.workers() {
        let worker = &job.net.node::<End<Worker>>(id).unwrap().0;
        let statistics = worker.statistics(job.net.now());
        assert!(statistics.acknowledged > 5, "{id:?}: {statistics:?}");
        assert_eq!(statistics.queue.switches, 2);
    }
    job.no_model_is_torn();
}
