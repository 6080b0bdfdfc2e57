//! Parties die and come back in the middle of a run: it is noticed within the deadline, training
//! goes on without a restart of anyone else, and nobody waits for ever for anybody.

use crate::common::*;
use core::time::Duration;
use olaf_engine::{Event, PeerId, WorkerEvent};
use olaf_sim::Wire;
use olaf_wire::WorkerId;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn roomy(seed: u64, link: Wire) -> Job {
    let every = ms(15);
    Job::new(Setting {
        seed,
        segment_lanes: 2000,
        every,
        edge: link,
        core: link,
        ..Setting::default()
    })
}

fn pushes(job: &mut Job, during: Duration) -> u32 {
    let before = job.pushed;
    job.train_for(during);
    job.pushed - before
}

#[test]
fn a_worker_that_dies_is_noticed_by_switch_and_server_and_the_rest_goes_on() {
    let mut job = roomy(1, Wire { delay: Duration::from_micros(100), ..Wire::default() });
    job.train_for(ms(300));
    let (died, dead) = (job.net.now(), PeerId(2));
    job.net.kill_at(died, dead);
    assert!(pushes(&mut job, NOTICED_WITHIN) > 100);
    let noticed = who_said(
        &job,
        died..=died + NOTICED_WITHIN,
        |event| matches!(event, Event::WorkerSilent(who) if who.worker == WorkerId(2)),
    );
    assert_eq!(noticed, BTreeSet::from([SWITCH, SERVER]));

    // Under the same id and another session it is let in again, and goes on from the job's model.
    let back = job.net.now();
    job.net.start_at(back, dead);
    job.train_for(ms(300));
    let joined = who_said(
        &job,
        back..,
        |n| matches!(n, Event::Worker(_, _, WorkerEvent::Joined { version }) if *version > 1),
    );
    assert_eq!(joined, BTreeSet::from([dead]));
    everyone_is_current(&job, 30);
}

#[test]
fn a_worker_that_comes_back_at_once_waits_only_until_its_old_life_counts_as_silent() {
    let mut job = roomy(2, Wire { delay: Duration::from_micros(100), ..Wire::default() });
    job.train_for(ms(300));
    let died = job.net.now();
    job.net.kill_at(died, PeerId(0));
    job.net.start_at(died + ms(20), PeerId(0));
    job.train_for(NOTICED_WITHIN + ms(200));
    everyone_is_current(&job, 30);
}

#[test]
fn a_switch_that_dies_is_noticed_by_every_worker_and_its_next_life_goes_on_by_itself() {
    let mut job = roomy(3, Wire { delay: Duration::from_micros(100), ..Wire::default() });
    job.train_for(ms(300));
    let died = job.net.now();
    job.net.kill_at(died, SWITCH);
    // Nobody stops pushing because nobody answers.
    assert!(pushes(&mut job, NOTICED_WITHIN) > 100);
    let silent = |n: &Event| matches!(n, Event::Worker(_, _, WorkerEvent::SwitchSilent));
    assert_eq!(who_said(&job, died..=died + NOTICED_WITHIN, silent), all_workers(&job));

    let back = job.net.now();
    job.net.start_at(back, SWITCH);
    assert!(versions(&mut job, ms(300)) > 20);
    let told = |n: &Event| {
        matches!(
            n,
            Event::Worker(_, _, WorkerEvent::SwitchRestarted)
                | Event::Worker(_, _, WorkerEvent::SwitchBack)
        )
    };
    assert_eq!(who_said(&job, back.., told), all_workers(&job));
    everyone_is_current(&job, 30);
}

#[test]
fn a_switch_that_is_replaced_at_once_asks_its_workers_to_join_again() {
    let mut job = roomy(4, Wire { delay: Duration::from_micros(100), ..Wire::default() });
    job.train_for(ms(330));
    let died = job.net.now();
    job.net.kill_at(died, SWITCH);
    job.net.start_at(died, SWITCH);
    // Long before the next keepalives, which come together at 400 ms.
    let fresh = versions(&mut job, ms(50));
    assert!(fresh >= 3, "{fresh} versions");
    let told = |n: &Event| matches!(n, Event::Worker(_, _, WorkerEvent::SwitchRestarted));
    assert_eq!(who_said(&job, died.., told), all_workers(&job));
}

#[test]
fn a_server_that_dies_is_noticed_and_its_next_life_takes_the_model_over_from_a_worker() {
    let mut job = roomy(5, Wire { delay: Duration::from_micros(100), ..Wire::default() });
    job.train_for(ms(300));
    let before = job.server_version();
    let (died, model) = (job.net.now(), job.model());
    job.net.kill_at(died, SERVER);
    assert!(pushes(&mut job, NOTICED_WITHIN + ms(200)) > 100);
    let silent = |n: &Event| {
        matches!(n, Event::Worker(_, _, WorkerEvent::ServerSilent) | Event::ServerSilent(..))
    };
    let mut everyone = all_workers(&job);
    everyone.insert(SWITCH);
    assert_eq!(who_said(&job, died.., silent), everyone);
    let switch = |n: &Event| matches!(n, Event::Worker(_, _, WorkerEvent::SwitchSilent));
    assert!(who_said(&job, died.., switch).is_empty(), "the switch lives");

    let back = job.net.now();
    job.net.start_at(back, SERVER);
    job.train_for(ms(400));
    let told = |n: &Event| {
        matches!(n, Event::Worker(_, _, WorkerEvent::ServerRestarted) | Event::ServerRestarted(..))
    };
    assert_eq!(who_said(&job, back.., told), everyone);
    // Versions go on from where they were, and what had been learnt is still there but for the
    // last few updates.
    assert!(job.server_version() > before + 10, "{} after {before}", job.server_version());
    let kept =
        job.model().iter().zip(&model).filter(|(new, old)| **old > 0.5 && **new > 0.5).count();
    let had = model.iter().filter(|lane| **lane > 0.5).count();
    assert!(kept + 30 >= had, "{kept} of {had}");
    assert!(job.model().iter().all(|lane| *lane < 1.5), "nothing counts twice");
    everyone_is_current(&job, 30);
    job.no_model_is_torn();
}

#[test]
fn when_switch_and_server_die_together_training_goes_on_when_they_are_back() {
    let mut job = roomy(6, bad_link());
    job.train_for(ms(300));
    let died = job.net.now();
    for id in [SWITCH, SERVER] {
        job.net.kill_at(died, id);
        job.net.start_at(died + ms(1000), id);
    }
    job.train_for(ms(1000));
    assert!(versions(&mut job, ms(1000)) > 30);
    everyone_is_current(&job, 40);
    assert!(job.model().iter().all(|lane| *lane < 1.5), "nothing counts twice");
    job.no_model_is_torn();
}

#[test]
fn a_link_that_is_cut_and_mended_is_like_a_death_and_a_return() {
    let good = Wire { delay: Duration::from_micros(100), ..Wire::default() };
    let mut job = roomy(7, good);
    job.train_for(ms(300));
    let cut = job.net.now();
    job.net.join(PeerId(1), SWITCH, Wire { loss: 1.0, ..good });
    job.train_for(NOTICED_WITHIN);
    let silent = |n: &Event| matches!(n, Event::Worker(_, _, WorkerEvent::SwitchSilent));
    assert_eq!(who_said(&job, cut.., silent), BTreeSet::from([PeerId(1)]));
    let mended = job.net.now();
    job.net.join(PeerId(1), SWITCH, good);
    job.train_for(ms(300));
    let back = |n: &Event| matches!(n, Event::Worker(_, _, WorkerEvent::SwitchBack));
    assert_eq!(who_said(&job, mended.., back), BTreeSet::from([PeerId(1)]));
    everyone_is_current(&job, 30);
}

#[test]
fn what_an_old_life_of_the_switch_still_had_on_the_way_makes_nothing_count_twice() {
    for seed in 0..10 {
        let late = Wire {
            delay: ms(1),
            duplication: 0.5,
            reordering: 0.4,
            late: ms(40),
            ..Wire::default()
        };
        let mut job = roomy(seed, Wire { delay: ms(1), ..Wire::default() });
        job.net.join(SWITCH, SERVER, late);
        for _ in 0..6 {
            job.train_for(ms(150));
            let now = job.net.now();
            job.net.kill_at(now, SWITCH);
            job.net.start_at(now, SWITCH);
        }
        job.train_for(ms(300));
        let twice = job.model().iter().filter(|lane| **lane > 1.5).count();
        assert_eq!(twice, 0, "seed {seed}: contributions that counted twice");
        job.no_model_is_torn();
    }
}

#[test]
fn what_a_new_life_of_the_server_sends_is_never_mixed_with_what_the_old_one_sent() {
    for seed in 0..12 {
        let lossy = Wire { delay: ms(1), loss: 0.1, ..Wire::default() };
        let mut job = Job::new(Setting {
            seed,
            segments: 6,
            segment_lanes: 600,
            slots: 24,
            every: ms(20),
            core: lossy,
            edge: lossy,
            ..Setting::default()
        });
        for _ in 0..5 {
            job.train_for(ms(200));
            let now = job.net.now();
            job.net.kill_at(now, SERVER);
            job.net.start_at(now + ms(1), SERVER);
        }
        job.train_for(ms(400));
        let whole = job.no_model_is_torn();
        assert!(whole > 20, "seed {seed}: {whole} models");
    }
}

fn who() -> impl Strategy<Value = PeerId> {
    prop_oneof![(0u32..6).prop_map(PeerId), Just(SWITCH), Just(SERVER)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: olaf_samples::cases(32), max_shrink_iters: 64, ..ProptestConfig::default() })]
    #[test]
    fn whoever_dies_whenever_and_comes_back_training_goes_on(
        seed: u64,
        deaths in prop::collection::vec((who(), 0u64..1500, 0u64..1200), 1..6),
        segments in 1u32..4,
        faulty: bool,
    ) {
        let link = if faulty { bad_link() } else { Wire { delay: Duration::from_micros(100), ..Wire::default() } };
        let mut job = Job::new(Setting {
            seed, segments, segment_lanes: 1500, every: ms(20), edge: link, core: link, slots: 12, ..Setting::default()
        });
        let start = job.net.now();
        for (who, at, away) in &deaths {
            job.net.kill_at(start + ms(*at), *who);
            job.net.start_at(start + ms(at + away), *who);
        }
        job.train_for(ms(2700));
        // All are back; within the deadline all train again.
        job.train_for(NOTICED_WITHIN + ms(600));
        let progress = versions(&mut job, ms(400));
        prop_assert!(progress > 5, "{progress} versions");
        everyone_is_current(&job, 60);
        job.no_model_is_torn();
        let model = job.model();
        prop_assert!(model.iter().all(|lane| *lane < 1.5), "something counted twice");
    }
}
