//! How long a datagram may be is found on the whole way there and back, before the job is cut; and
//! a path that becomes narrower in a run is noticed, said once, and not flooded.

use crate::common::*;
use core::time::Duration;
use olaf_engine::switch::native::Pacing;
use olaf_engine::{Event, Instant, PeerId, WorkerEvent};
use olaf_host::push_pull::worker::{PathConfig, Standing, WorkerStatistics};
use olaf_host::{Worker, WorkerConfig};
use olaf_sim::{Lot, Wire};
use olaf_wire::offsets::SEGMENT_HEADER;
use olaf_wire::{Address, ClusterId, Session, WelcomeCode, WorkerId};

const A: PeerId = PeerId(0);
const B: PeerId = PeerId(1);
const HEADERS: u32 = 28;

/// The UDP payload of an IP packet.
fn payload(mtu: u32) -> usize {
    (mtu - HEADERS) as usize
}

/// Segments that fit an IP packet.
fn lanes_of(mtu: u32) -> u32 {
    (mtu - HEADERS - SEGMENT_HEADER as u32) / 4
}

/// Two workers that search their path, two switches in a row, 20 ms there and back.
fn job(change: impl Fn(&mut Setting)) -> Job {
    let link = Wire { delay: Duration::from_millis(3), ..Wire::default() };
    let mut setting = Setting {
        workers: 2,
        clusters: 2,
        segments: 5,
        segment_lanes: 2000,
        slots: 500,
        pacing: Pacing::Unlimited,
        edge: link,
        core: link,
        every: ms(50),
        searches: Some(PathConfig { search: true, largest: 65_000, headers: HEADERS }),
        ..Setting::default()
    };
    change(&mut setting);
    Job::in_tree(setting, Tree::chain(&setting, 2))
}

fn narrow(link: Wire, mtu: u32, says: bool) -> Wire {
    Wire { longest: payload(mtu), says_too_long: says, ..link }
}

fn worker(job: &Job, id: PeerId) -> &Worker {
    job.net.node::<Worker>(id).unwrap()
}

fn statistics(job: &Job, id: PeerId) -> WorkerStatistics {
    worker(job, id).statistics(job.net.now())
}

#[track_caller]
fn runs_until(job: &mut Job, what: &str, at_most: Duration, is: impl Fn(&Job) -> bool) -> Duration {
    let began = job.net.now();
    while !is(job) {
        job.net.run_for(ms(1));
        let took = job.net.now().since(began);
        assert!(took < at_most, "{what}: not after {took:?}: {:?}", statistics(job, A));
    }
    job.net.now().since(began)
}

fn joined(job: &Job, id: PeerId) -> bool {
    worker(job, id).standing() == Standing::Joined
}

fn said(job: &Job, from: Instant, is: impl Fn(&Event) -> bool) -> usize {
    let hosts = job.net.events().iter().filter(|(at, _, n)| *at >= from && matches!(n, e if is(e)));
    hosts.count()
}

fn too_long(job: &Job, longest: usize) -> usize {
    job.net.trace().iter().filter(|r| r.lot == Lot::Lost && r.bytes.len() > longest).count()
}

#[test]
fn a_wide_path_costs_one_more_round_trip_and_nothing_else() {
    let mut job = job(|_| {});
    let took = runs_until(&mut job, "the join", ms(500), |job| joined(job, A) && joined(job, B));
    assert!(took <= ms(18) * 6);
    for id in [A, B] {
        let statistics = statistics(&job, id);
        assert_eq!((statistics.path.segment_lanes, statistics.path.probes), (2000, 2));
    }
}

#[test]
fn every_narrow_place_on_the_way_is_found_and_the_job_is_cut_to_it_before_it_is_joined() {
    for (says, mtu) in [(false, 1500), (true, 1500), (false, 1400), (false, 1492), (false, 600)] {
        // At the worker's own link, between the switches, or before the server; there or back.
        for place in 0..4 {
            let mut job = job(|setting| {
                if place == 0 {
                    setting.edge = narrow(setting.edge, mtu, says);
                }
            });
            let link = job.setting.core;
            let (from, to) =
                [(A, SWITCH), (SWITCH, switch(1)), (switch(1), SERVER), (SERVER, switch(1))][place];
            job.net.join_one_way(from, to, narrow(link, mtu, says));
            if place == 0 {
                job.net.join_one_way(B, SWITCH, narrow(link, mtu, says));
            }
            let took =
                runs_until(&mut job, "the join", ms(2000), |job| joined(job, A) && joined(job, B));
            assert!(took < ms(18) * 20, "{took:?}");
            for id in [A, B] {
                let path = statistics(&job, id).path;
                let expected = if mtu == 600 { 576 } else { mtu };
                assert_eq!(path.segment_lanes, lanes_of(expected), "{mtu} at {place}");
                assert!(path.probes < 45, "{path:?}");
            }
            let before = too_long(&job, payload(mtu));
            job.train_for(ms(1000));
            job.settle();
            everyone_learns(&job, 5);
            assert_eq!(too_long(&job, payload(mtu)), before, "nothing is too long after the join");
        }
    }
}

#[test]
fn who_comes_later_takes_the_jobs_cut_over() {
    let mut job = job(|_| {});
    let link = job.setting.edge;
    job.net.join(A, SWITCH, narrow(link, 1500, false));
    job.net.kill_at(job.net.now(), B);
    runs_until(&mut job, "the join", ms(1000), |job| joined(job, A));
    job.net.start_at(job.net.now(), B);
    job.net.run_for(ms(1));
    runs_until(&mut job, "the second join", ms(500), |job| joined(job, B));
    assert_eq!(statistics(&job, B).path.segment_lanes, lanes_of(1500));
    job.train_for(ms(500));
    everyone_learns(&job, 3);
}

#[test]
fn who_comes_later_behind_a_narrower_path_is_told_the_true_cause_and_is_quiet() {
    let mut job = job(|_| {});
    let link = job.setting.edge;
    job.net.join(A, SWITCH, narrow(link, 1500, false));
    job.net.kill_at(job.net.now(), A);
    runs_until(&mut job, "the join", ms(1000), |job| joined(job, B));
    assert_eq!(statistics(&job, B).path.segment_lanes, 2000);
    job.net.start_at(job.net.now(), A);
    job.net.run_for(ms(1));
    let code = Standing::TurnedAway(WelcomeCode::WrongSegmentLanes);
    runs_until(&mut job, "the refusal", ms(1000), |job| worker(job, A).standing() == code);
    let why = worker(&job, A).too_narrow().unwrap();
    let needed = HEADERS + SEGMENT_HEADER as u32 + 4 * 2000;
    assert_eq!((why.needed_mtu_bytes, why.mtu_bytes, why.segment_lanes), (needed, 1500, 2000));
    let before = job.net.counts(A, SWITCH).sent;
    job.train_for(ms(3000));
    assert_eq!(job.net.counts(A, SWITCH).sent, before, "nothing is repeated for ever");
}

#[test]
fn a_cut_that_is_set_is_not_looked_for_and_another_ones_is_refused() {
    let mut job = job(|setting| setting.searches = None);
    runs_until(&mut job, "the join", ms(500), |job| joined(job, A) && joined(job, B));
    assert_eq!(statistics(&job, A).path.probes, 0);
    // A third one that leaves it to the path finds itself in a job that is cut already.
    let late = PeerId(2);
    let link = job.setting.edge;
    job.net.join(late, SWITCH, link);
    job.net.place(late, |_, now| {
        let address =
            Address { job: JOB, cluster: ClusterId(0), worker: WorkerId(2), session: Session(77) };
        let path = PathConfig { search: true, largest: 1472, headers: HEADERS };
        let mut worker = Worker::new(WorkerConfig { path, ..WorkerConfig::new(address, SWITCH) });
        worker.join(now, &[&vec![0.0; 10_000]]).unwrap();
        Box::new(worker)
    });
    runs_until(&mut job, "the refusal", ms(1000), |job| worker(job, late).too_narrow().is_some());
}

#[test]
fn a_path_that_becomes_narrower_in_a_run_is_said_once_and_not_flooded_and_found_well_again() {
    for (says, back) in [(true, false), (false, false), (false, true)] {
        let mut job = job(|setting| setting.workers = 1);
        runs_until(&mut job, "the join", ms(500), |job| joined(job, A));
        job.train_for(ms(300));
        let (from, wide) = (job.net.now(), job.setting.edge);
        let (a, b) = if back { (SERVER, switch(1)) } else { (A, SWITCH) };
        job.net.join_one_way(a, b, narrow(wide, 1500, says));
        // What was found well a moment ago is trusted for ten seconds.
        for _ in 0..if says { 2 } else { 15 } {
            job.pushed = 0;
            job.train_for(ms(1000));
        }
        let events =
            said(&job, from, |e| matches!(e, Event::Worker(_, _, WorkerEvent::PathTooNarrow(_))));
        assert_eq!(events, 1, "says {says}, back {back}");
        let narrowed = statistics(&job, A);
        assert!(narrowed.path.narrow);
        assert!(narrowed.path.mtu_bytes.unwrap() <= 1500, "{:?}", narrowed.path);
        let before = too_long(&job, payload(1500));
        let quiet_from = job.net.now();
        job.train_for(ms(10_000));
        let flood = too_long(&job, payload(1500)) - before;
        assert!(flood < 12, "{flood} too long in ten seconds");
        assert_eq!(
            said(&job, quiet_from, |e| matches!(
                e,
                Event::Worker(_, _, WorkerEvent::PathTooNarrow(_))
            )),
            0
        );
        // The path is as before: the next look finds it so.
        job.net.join_one_way(a, b, wide);
        let version = job.server_version();
        job.pushed = 0;
        job.train_for(ms(10_000));
        assert_eq!(
            said(&job, quiet_from, |e| matches!(e, Event::Worker(_, _, WorkerEvent::PathBack))),
            1
        );
        assert!(job.server_version() > version + 5, "it learns again");
    }
}
