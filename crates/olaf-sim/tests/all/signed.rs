//! The server signs its models and the workers check them: in any weather they learn as without, and a
//! switch that lies gets nothing into them.

use crate::common::*;
use olaf_engine::{Event, PeerId, WorkerEvent};
use olaf_host::push_pull::worker::Standing;
use olaf_host::{Server, Worker};
use olaf_sim::Wire;
use olaf_wire::{Kind, Packet};
use proptest::prelude::*;

fn setting(seed: u64, link: Wire) -> Setting {
    Setting {
        seed,
        segment_lanes: 2000,
        every: ms(15),
        edge: link,
        core: link,
        signed: true,
        ..Setting::default()
    }
}

fn good_link() -> Wire {
    Wire { delay: core::time::Duration::from_micros(100), ..Wire::default() }
}

/// One of the counters of all workers together.
fn of_workers(
    job: &Job,
    count: impl Fn(&olaf_host::push_pull::worker::SignatureCounts) -> u64,
) -> u64 {
    let now = job.net.now();
    let workers = job.workers().into_iter().filter_map(|id| job.net.node::<Worker>(id));
    workers.map(|worker| count(&worker.statistics(now).signatures)).sum()
}

fn tell_the_switch(job: &mut Job, lie: Lie) {
    job.net.with(SWITCH, |liar: &mut Liar, _| liar.lie = lie).unwrap();
}

fn say(job: &Job, is: impl Fn(&WorkerEvent) -> bool) -> bool {
    let of = |event: &Event| matches!(event, Event::Worker(JOB, SWITCH, what) if is(what));
    job.net.events().iter().any(|(_, _, event)| of(event))
}

#[test]
fn on_a_good_network_every_model_is_checked_and_nobody_has_to_ask_twice() {
    for segments in [1, 3] {
        let mut job = Job::new(Setting { segments, ..setting(1, good_link()) });
        job.train_for(ms(1000));
        job.settle();
        everything_is_accounted_for(&job);
        everyone_learns(&job, 10);
        everyone_is_current(&job, 0);
        assert!(job.no_model_is_torn() > 100);
        let models: u64 = job
            .workers()
            .into_iter()
            .map(|id| job.net.node::<Worker>(id).unwrap().statistics(job.net.now()).models)
            .sum();
        assert_eq!(of_workers(&job, |seen| seen.checked), models);
        for bad in [of_workers(&job, |s| s.forged), of_workers(&job, |s| s.wrong)] {
            assert_eq!(bad, 0);
        }
        assert_eq!(of_workers(&job, |seen| seen.unsigned), 0);
        // Each asks once which life of the server this is.
        let asked = of_workers(&job, |seen| seen.asked);
        assert!((6..=18).contains(&asked), "{asked} questions");
    }
}

#[test]
fn without_secrets_nothing_is_signed_and_nothing_is_asked() {
    let mut job = Job::new(Setting { signed: false, ..setting(1, good_link()) });
    job.train_for(ms(300));
    let signed = job.net.trace().iter().filter(|record| {
        let kind = Packet::new_checked(&record.bytes).map(|packet| packet.kind());
        matches!(kind, Ok(Kind::Signature | Kind::AskSignature))
    });
    assert_eq!(signed.count(), 0);
    everyone_learns(&job, 5);
}

#[test]
fn a_worker_with_a_switchs_key_takes_models_unchecked_and_says_so_once() {
    let mut job = Job::new(setting(2, good_link()));
    job.net.with(PeerId(0), |worker: &mut Worker, now| {
        let address = olaf_wire::Address {
            job: JOB,
            cluster: olaf_wire::ClusterId(0),
            worker: olaf_wire::WorkerId(0),
            session: olaf_wire::Session(4711),
        };
        *worker = Worker::new(olaf_host::WorkerConfig {
            segment_lanes: 2000,
            silent_after: SILENT_AFTER,
            keepalive: ms(100),
            ..olaf_host::WorkerConfig::new(address, SWITCH)
        });
        worker.check_models(Toy::of_a_switch());
        worker.join(now, &[&[0.0; 2000]]).unwrap();
    });
    job.train_for(ms(2000));
    everyone_is_current(&job, 30);
    let told = job.net.events().iter().filter(|(_, who, event)| {
        *who == PeerId(0) && matches!(event, Event::Worker(_, _, WorkerEvent::ModelsUnchecked))
    });
    assert_eq!(told.count(), 1);
    let unchecked = job.net.node::<Worker>(PeerId(0)).unwrap().statistics(job.net.now());
    assert!(!unchecked.signatures.checks && unchecked.signatures.checked == 0);
    assert!(unchecked.models > 5);
}

#[test]
fn a_server_without_the_secret_is_found_out_by_each_worker() {
    let mut job = Job::new(setting(3, good_link()));
    job.net.with(SERVER, |server: &mut Server, _| server.sign_models(Toy::of_a_switch()));
    job.train_for(ms(1500));
    for id in job.workers() {
        let worker = job.net.node::<Worker>(id).unwrap();
        assert!(worker.model().is_none() && worker.standing() == Standing::Joining);
    }
    assert!(of_workers(&job, |seen| seen.unsigned) >= 6);
    assert!(say(&job, |said| matches!(said, WorkerEvent::ModelUnsigned { .. })));
    let server = job.net.node::<Server>(SERVER).unwrap().statistics(job.net.now());
    assert!(server.refused["cannot_sign"] > 0);
    // Not more than a few questions a second of each.
    assert!(of_workers(&job, |seen| seen.asked) < 6 * 40);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: olaf_samples::cases(12), ..ProptestConfig::default() })]

    #[test]
    fn in_bad_weather_the_workers_learn_and_no_model_is_refused_as_forged(
        seed: u64, segments in 1u32..4, below in 1usize..4,
    ) {
        let setting = Setting { segments, ..setting(seed, bad_link()) };
        let mut job = Job::in_tree(setting, Tree::chain(&setting, below));
        job.train_for(ms(1500));
        job.settle();
        everything_is_accounted_for(&job);
        everyone_learns(&job, 10);
        everyone_is_current(&job, 2);
        job.no_model_is_torn();
        prop_assert_eq!(of_workers(&job, |seen| seen.forged + seen.wrong), 0);
    }

    #[test]
    fn whoever_restarts_the_workers_learn_on(
        seed: u64, segments in 1u32..3, who in prop::sample::select(vec![SERVER, SWITCH, PeerId(1)]),
        down in 0u64..800,
    ) {
        let mut job = Job::new(Setting { segments, ..setting(seed, bad_link()) });
        job.train_for(ms(700));
        let before = job.server_version();
        let at = job.net.now();
        job.net.kill_at(at, who);
        job.net.start_at(at + ms(down), who);
        job.train_for(ms(down + 1500));
        job.settle();
        prop_assert!(job.server_version() > before, "{} after {before}", job.server_version());
        everyone_is_current(&job, 2);
        job.no_model_is_torn();
        prop_assert_eq!(of_workers(&job, |seen| seen.forged + seen.wrong), 0);
    }
}

/// Trains with a switch that tells this lie for a while; then it is honest again. Nothing of the lie
/// gets into a worker, and afterwards all learn on.
fn lied_to(seed: u64, segments: u32, lie: Lie) -> Job {
    let mut job = Job::new(Setting { segments, lying: true, ..setting(seed, good_link()) });
    job.train_for(ms(500));
    everyone_is_current(&job, 30);
    let before = versions_of(&job);
    tell_the_switch(&mut job, lie);
    job.train_for(ms(1500));
    for (before, after) in before.into_iter().zip(versions_of(&job)) {
        assert!(after >= before, "{lie:?}: back from {before} to {after}");
    }
    let lies = job.net.node::<Liar>(SWITCH).unwrap().lies;
    assert!(lies > 20, "{lies} lies");
    // A worker that comes while the switch lies does not believe it either.
    let now = job.net.now();
    job.net.kill_at(now, PeerId(0));
    job.net.start_at(now + ms(10), PeerId(0));
    job.train_for(ms(1500));
    assert!(job.net.node::<Worker>(PeerId(0)).unwrap().model().is_none(), "{lie:?}");
    job.no_model_is_torn();
    tell_the_switch(&mut job, Lie::None);
    job.train_for(ms(1500));
    everyone_is_current(&job, 30);
    job.no_model_is_torn();
    job
}

#[test]
fn a_changed_lane_is_found() {
    for segments in [1, 3] {
        let job = lied_to(5, segments, Lie::Lane);
        assert!(of_workers(&job, |seen| seen.forged) > 5);
        assert!(say(&job, |said| matches!(said, WorkerEvent::ModelForged { .. })));
        assert!(!say(&job, |said| matches!(said, WorkerEvent::SignatureForged { .. })));
    }
}

#[test]
fn a_changed_hash_is_found() {
    let job = lied_to(10, 2, Lie::Hash);
    assert!(of_workers(&job, |seen| seen.wrong) > 5);
    assert!(say(&job, |said| matches!(said, WorkerEvent::SignatureForged { .. })));
}

#[test]
fn a_changed_version_is_found() {
    for (segments, version) in [(1, 3), (1, 1 << 20), (3, 1 << 20), (1, u32::MAX)] {
        let job = lied_to(6, segments, Lie::Version(version));
        assert!(of_workers(&job, |seen| seen.wrong) > 5, "{version}");
        assert!(say(&job, |said| matches!(said, WorkerEvent::SignatureForged { .. })));
    }
}

#[test]
fn a_switch_that_keeps_signatures_back_stops_models_and_is_named() {
    let job = lied_to(7, 2, Lie::NoSignatures);
    assert!(of_workers(&job, |seen| seen.unsigned) > 5);
    assert!(say(&job, |said| matches!(said, WorkerEvent::ModelUnsigned { .. })));
}

#[test]
fn another_life_of_the_server_is_not_believed_without_its_signature() {
    let job = lied_to(8, 1, Lie::Epoch(777));
    let worker = job.net.node::<Worker>(PeerId(1)).unwrap().statistics(job.net.now());
    assert!(worker.refused["unknown_epoch"] > 0, "{:?}", worker.refused);
    // Those that had the server's own word did not even begin to believe the switch.
    let restarted =
        |event: &Event| matches!(event, Event::Worker(_, _, WorkerEvent::ServerRestarted));
    let believed = who_said(&job, .., restarted);
    assert!(believed.is_subset(&[PeerId(0)].into()), "{believed:?}");
}

#[test]
fn a_recording_of_an_older_version_is_not_taken() {
    for (segments, lie) in
        [(1, Lie::Recording), (2, Lie::Recording), (1, Lie::RecordingBesideAnswers)]
    {
        let mut job = lied_to(9, segments, lie);
        for id in job.workers() {
            let seen: Vec<u32> = job.models_seen[&id].iter().map(|(version, _)| *version).collect();
            assert!(seen.len() > 10);
        }
        // Nor after the server began a new life, which the recording is not of.
        let now = job.net.now();
        job.net.kill_at(now, SERVER);
        job.net.start_at(now + ms(5), SERVER);
        job.train_for(ms(1000));
        everyone_is_current(&job, 30);
        let before: Vec<u32> = versions_of(&job);
        tell_the_switch(&mut job, lie);
        job.train_for(ms(1500));
        for (before, after) in before.into_iter().zip(versions_of(&job)) {
            assert!(after >= before, "{after} after {before}");
        }
        tell_the_switch(&mut job, Lie::None);
        job.train_for(ms(1500));
        everyone_is_current(&job, 30);
    }
}

fn versions_of(job: &Job) -> Vec<u32> {
    let version = |id| job.net.node::<Worker>(id).unwrap().model().map_or(0, |model| model.version);
    job.workers().into_iter().map(version).collect()
}
