//! Asynchronous training: it goes on, nothing counts twice, and no model is torn.

use super::fault::Fault;
use super::{MS, NAMED_WITHIN};
use crate::common::sums::Draws;
use crate::common::*;
use core::time::Duration;
use olaf_engine::{Event, PeerId};
use olaf_sim::Wire;
use std::collections::BTreeSet;

pub(super) fn episode(seed: u64, fault: Fault) -> Option<Duration> {
    let draws = &mut Draws(seed);
    let good = Wire { delay: Duration::from_micros(100), ..Wire::default() };
    let link = if draws.below(2) == 0 { bad_link() } else { good };
    let mut job = Job::new(Setting {
        seed,
        segments: 1 + draws.below(3) as u32,
        segment_lanes: 2000,
        every: ms(20),
        edge: link,
        core: link,
        slots: 12,
        ..Setting::default()
    });
    job.train_for(MS * (300 + draws.below(300)) as u32);
    let victim = PeerId(draws.below(job.setting.workers.into()) as u32);
    // The server, too, is a party whose death is to be survived.
    let middle = if draws.below(2) == 0 { SWITCH } else { SERVER };
    let away = MS * (50 + draws.below(1500)) as u32;
    let happened = job.net.now();
    match fault {
        Fault::Switch => {
            job.net.kill_at(happened, middle);
            job.net.start_at(happened + away, middle);
            job.train_for(away);
        }
        _ => fault.happen(
            &mut job,
            |job| &mut job.net,
            |job, time| job.train_for(time),
            (victim, SWITCH, link),
            away,
        ),
    }
    let mut named = None;
    if fault == Fault::Kill {
        job.train_for(NAMED_WITHIN);
        named = Some(named_after(&job, victim, happened));
        job.net.start_at(job.net.now(), victim);
    }
    // All are back; within the deadline all train again.
    job.train_for(NOTICED_WITHIN + ms(600));
    let progress = versions(&mut job, ms(400));
    assert!(progress > 5, "training stands still: {progress} versions in 400 ms");
    everyone_is_current(&job, 60);
    job.no_model_is_torn();
    assert!(job.model().iter().all(|lane| *lane < 1.5), "something counted twice");
    named
}

/// The time until switch and server had both named the victim.
fn named_after(job: &Job, victim: PeerId, happened: olaf_engine::Instant) -> Duration {
    let is = |event: &Event| matches!(event, Event::WorkerSilent(who) if who.worker.0 == victim.0);
    let said = who_said(job, happened..=happened + NAMED_WITHIN, is);
    assert_eq!(said, BTreeSet::from([SWITCH, SERVER]), "who named {victim:?}");
    let events = job.net.events().iter().filter(|(at, _, event)| *at >= happened && is(event));
    events.map(|(at, ..)| at.since(happened)).max().unwrap_or_default()
}
