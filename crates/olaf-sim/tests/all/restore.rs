//! The server dies and comes back from a checkpoint, with workers, without, and through loss: what
//! was learnt goes on. Lane `k` of the model counts how often contribution `k` was applied.

use crate::common::*;
use core::time::Duration;
use olaf_engine::{Event, PeerId};
use olaf_host::push_pull::server::JobState;
use olaf_host::push_pull::worker::Standing;
use olaf_host::{Server, Worker};
use olaf_sim::Wire;
use proptest::prelude::*;

/// Longer than a restored model waits for a newer one, and a reborn worker for its id.
const PATIENCE: Duration = Duration::from_millis(3500);

fn job(seed: u64, link: Wire, segments: u32) -> Job {
    Job::new(Setting {
        seed,
        segments,
        segment_lanes: 1500,
        workers: 4,
        clusters: 2,
        every: ms(20),
        edge: link,
        core: link,
        ..Setting::default()
    })
}

fn good() -> Wire {
    Wire { delay: Duration::from_micros(100), ..Wire::default() }
}

fn checkpoint(job: &Job) -> JobState {
    job.net.node::<Server>(SERVER).unwrap().checkpoint(JOB).unwrap()
}

fn bits(state: &JobState) -> Vec<u32> {
    state.segments.iter().flat_map(|s| s.iter()).map(|w| w.to_bits()).collect()
}

/// The server dies with those workers, and all come back, the server with that checkpoint.
fn all_die(job: &mut Job, workers: &[PeerId], state: Option<JobState>, is_last: bool) {
    let now = job.net.now();
    for id in workers.iter().chain(&[SERVER]) {
        job.net.kill_at(now, *id);
    }
    job.net.run_for(ms(50));
    job.net.start_at(job.net.now(), SERVER);
    job.net.run_for(Duration::ZERO);
    let restored = job.net.with(SERVER, |server: &mut Server, _| {
        state.map_or(Ok(()), |state| server.restore(state, is_last))
    });
    restored.unwrap().unwrap();
    let now = job.net.now();
    workers.iter().for_each(|id| job.net.start_at(now, *id));
}

fn said(job: &Job, is: impl Fn(&Event) -> bool) -> bool {
    let mut notices = job.net.events().iter().filter(|(_, who, _)| *who == SERVER);
    notices.any(|(_, _, notice)| is(notice))
}

fn everyone_is_in(job: &Job) -> bool {
    let standing = |id| job.net.node::<Worker>(id).unwrap().standing();
    job.workers().into_iter().all(|id| standing(id) == Standing::Joined)
}

#[test]
fn killed_with_all_workers_the_job_goes_on_with_the_bits_of_the_checkpoint() {
    let mut job = job(1, good(), 3);
    job.train_for(ms(500));
    let state = checkpoint(&job);
    assert!(state.version > 10);
    job.train_for(ms(200));
    let workers = job.workers();
    all_die(&mut job, &workers, Some(state.clone()), false);
    job.quiet = true;
    job.train_for(PATIENCE);
    assert!(said(&job, |e| matches!(e, Event::ModelRestored { .. })));
    assert!(everyone_is_in(&job));
    let after = checkpoint(&job);
    assert!(bits(&after) == bits(&state), "not the checkpoint's model");
    assert_eq!((&after.rules, &after.counts), (&state.rules, &state.counts));
    // What had changed since the last version is one of its own now.
    assert_eq!(after.version, state.version + u32::from(state.unpublished));
    for id in job.workers() {
        let model = job.net.node::<Worker>(id).unwrap().model().unwrap();
        let have: Vec<u32> = model.lanes.iter().map(|w| w.to_bits()).collect();
        assert!((model.version, have) == (after.version, bits(&state)), "{id:?}");
    }
    job.quiet = false;
    job.train_for(ms(300));
    let later = checkpoint(&job);
    assert!(later.version > state.version && later.counts.received > state.counts.received);
}

#[test]
fn killed_alone_the_server_goes_on_with_what_its_workers_know_not_with_the_older_file() {
    let mut job = job(2, good(), 1);
    job.train_for(ms(300));
    let old = checkpoint(&job);
    job.train_for(ms(600));
    job.settle();
    let newest = checkpoint(&job);
    assert!(newest.version > old.version + 20);
    all_die(&mut job, &[], Some(old.clone()), false);
    job.train_for(PATIENCE);
    assert!(!said(&job, |e| matches!(e, Event::ModelRestored { .. })));
    let after = checkpoint(&job);
    assert!(bits(&after) == bits(&newest), "another model");
    assert!(after.version > newest.version);
    // The rule's memory and the counts are those of the file.
    assert_eq!((after.rules, after.counts.received), (old.rules, old.counts.received));
}

#[test]
fn with_one_worker_left_its_model_is_taken_and_the_others_follow() {
    let mut job = job(3, good(), 2);
    job.train_for(ms(300));
    let old = checkpoint(&job);
    job.train_for(ms(300));
    job.settle();
    let newest = checkpoint(&job);
    let others: Vec<PeerId> = job.workers().into_iter().skip(1).collect();
    all_die(&mut job, &others, Some(old), false);
    job.train_for(PATIENCE);
    assert!(bits(&checkpoint(&job)) == bits(&newest), "another model");
    assert!(everyone_is_in(&job));
}

#[test]
fn an_orderly_end_is_taken_up_without_waiting() {
    let mut job = job(4, good(), 1);
    job.train_for(ms(300));
    let state = checkpoint(&job);
    let workers = job.workers();
    all_die(&mut job, &workers, Some(state.clone()), true);
    job.quiet = true;
    // Their ids are free again after 500 ms; the wait for a newer model takes 2 s more.
    job.train_for(ms(1500));
    assert!(everyone_is_in(&job));
    assert!(checkpoint(&job) == state, "not what was saved");
}

#[test]
fn killed_before_its_next_checkpoint_the_file_of_an_orderly_end_is_not_the_newest() {
    let mut job = job(6, good(), 2);
    job.train_for(ms(300));
    job.settle();
    let last = checkpoint(&job);
    all_die(&mut job, &[], Some(last.clone()), true);
    job.quiet = false;
    job.train_for(ms(1500));
    job.settle();
    let newest = checkpoint(&job);
    assert!(newest.version > last.version + 10, "{} of {}", newest.version, last.version);
    all_die(&mut job, &[], Some(last), true);
    job.train_for(PATIENCE);
    assert!(bits(&checkpoint(&job)) == bits(&newest), "the older model");
}

#[test]
fn a_slow_way_is_waited_for() {
    let link = Wire { delay: ms(60), ..Wire::default() };
    let mut job = job(5, link, 1);
    job.train_for(ms(6000));
    let old = checkpoint(&job);
    job.train_for(ms(2000));
    job.settle();
    let newest = checkpoint(&job);
    assert!(newest.version > old.version);
    all_die(&mut job, &[], Some(old), false);
    job.train_for(ms(8000));
    assert!(bits(&checkpoint(&job)) == bits(&newest), "another model");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: olaf_samples::cases(12), ..ProptestConfig::default() })]

    /// Through loss, at any moment, with any of the workers gone: nothing is applied that was not
    /// pushed, nothing of the checkpoint is lost, and training goes on.
    #[test]
    fn whatever_dies_and_is_lost_the_checkpoint_s_contributions_stay(
        seed: u64,
        before in 100u64..600,
        between in 0u64..400,
        gone in 0usize..=4,
        segments in 1u32..4,
    ) {
        let mut job = job(seed, bad_link(), segments);
        job.train_for(ms(1000 + before));
        let state = checkpoint(&job);
        job.train_for(ms(between));
        let workers: Vec<PeerId> = job.workers().into_iter().take(gone).collect();
        all_die(&mut job, &workers, Some(state.clone()), false);
        job.train_for(PATIENCE + ms(3000));
        prop_assert!(everyone_is_in(&job));
        let after = checkpoint(&job);
        prop_assert!(after.version > state.version);
        prop_assert!(after.counts.received > state.counts.received);
        // A worker's newer model may lack nothing that the checkpoint has, since its version is
        // one that the server published later.
        let kept: Vec<f32> = state.segments.iter().flat_map(|s| s.iter().copied()).collect();
        let now = job.model();
        for (lane, (now, kept)) in now.iter().zip(&kept).enumerate() {
            prop_assert!(now >= kept, "lane {lane}: {now} of {kept}");
        }
    }
}
