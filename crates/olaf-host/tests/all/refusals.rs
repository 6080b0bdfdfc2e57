//! What a server and a worker refuse, each by its reason.

use crate::hostile::{EPOCH, JOB, Pair, plain, taken};
use olaf_engine::party::Limits;
use olaf_engine::{Engine, Event, PeerId, Source};
use olaf_host::push_pull::server::Aggregate;
use olaf_host::push_pull::worker::Standing;
use olaf_host::{Refused, Server};
use olaf_wire::{Answer, JobId, Join, Leave, Welcome, WelcomeCode};
use std::time::Duration;

#[test]
fn an_update_that_its_sender_was_told_is_lost_is_refused_when_it_comes() {
    let mut pair = Pair::joined(plain(Limits::OFF));
    pair.enters(8);
    // What has not come 48 numbers later is given up, and number 3 is 47 before the newest.
    let mut sent = |flow| pair.sends(8, 1.0, |update| update.flow_sequence = flow);
    for flow in [1, 50] {
        sent(flow).unwrap();
    }
    assert_eq!(sent(2), Err(Refused::Overtaken));
    sent(3).unwrap();
    let job = &pair.server.statistics(pair.now).jobs[0];
    let applied = job.fates.delivered_alone;
    assert_eq!((job.received, applied, job.fates.rejected["overtaken"]), (4, 3, 1));
}

#[test]
fn an_update_to_a_job_without_a_model_is_refused_and_counted() {
    for aggregate in [Aggregate::Each, Aggregate::Round { deadline: Duration::from_secs(1) }] {
        let config = plain(Limits::OFF).aggregating(aggregate);
        let mut pair = Pair::joined(config);
        let address = olaf_samples::address(2, 0, 8);
        let join = olaf_samples::join(address, 1, 2208);
        pair.gives_server(8, |buf| join.emit(buf)).unwrap();
        let update = olaf_samples::update(address, 1);
        let refused = pair.gives_server(8, |buf| update.emit(&[1.0], buf));
        assert_eq!(refused, Err(Refused::NotReady));
        let jobs = &pair.server.statistics(pair.now).jobs;
        let job = jobs.iter().find(|job| job.job == 2).unwrap();
        assert_eq!((job.received, job.fates.rejected["not_ready"]), (1, 1));
    }
}

#[test]
fn what_the_server_s_former_life_still_had_on_the_way_is_refused() {
    let mut pair = Pair::joined(plain(Limits::default()));
    let model = pair.forged(|_| ());
    pair.server = Server::new(plain(Limits::default()), EPOCH + 1).unwrap();
    pair.run(700);
    pair.goes_on();
    let version = pair.worker.model().unwrap().version;
    let late = Answer { model_version: version + 1, ..model };
    assert_eq!(pair.gives_worker(|buf| late.emit(&[5.0], buf)), Err(Refused::OldEpoch));
    let join = olaf_samples::join(olaf_samples::address(JOB.0, 0, 7), 1, 2208);
    let welcome = Welcome { epoch: EPOCH, ..olaf_samples::welcome(&join) };
    assert_eq!(pair.gives_worker(|buf| welcome.emit(buf)), Err(Refused::OldEpoch));
    pair.goes_on();
}

/// A switch is pointed at a second server, and later back at the first one, which has gone on.
#[test]
fn a_server_that_comes_back_after_another_one_is_believed_again() {
    let mut pair = Pair::joined(plain(Limits::default()));
    let mut other = Server::new(plain(Limits::default()), EPOCH + 1).unwrap();
    for _ in 0..4 {
        core::mem::swap(&mut pair.server, &mut other);
        pair.run(700);
        pair.goes_on();
    }
}

/// Without keys, anybody who sees a join can echo it in a welcome of his own.
#[test]
fn a_forged_welcome_or_refusal_that_echoes_a_join_ends_nothing_for_ever() {
    for code in [WelcomeCode::Welcome, WelcomeCode::Loop, WelcomeCode::WrongModelSize] {
        for epoch in [EPOCH, EPOCH + 7] {
            let mut pair = Pair::joined(plain(Limits::default()));
            let seen = pair.next_join();
            let forged = Welcome { code, epoch, ..olaf_samples::welcome(&seen) };
            let _ = pair.gives_worker(|buf| forged.emit(buf));
            pair.run(3000);
            assert_eq!(pair.worker.standing(), Standing::Joined, "{code:?} {epoch}");
            pair.goes_on();
        }
    }
}

#[test]
fn who_is_not_in_the_list_of_switches_stands_for_nobody() {
    let mut pair = Pair::joined(plain(Limits::default()));
    pair.server.allow_switch(PeerId(60));
    let join = olaf_samples::join(olaf_samples::address(JOB.0, 0, 8), 1, 2208);
    let joins = |pair: &mut Pair, from, hops| {
        pair.gives_server(from, |buf| Join { hops, ..join }.emit(buf))
    };
    assert_eq!(joins(&mut pair, 50, 1), Err(Refused::NotASwitch));
    let refused = std::iter::from_fn(|| pair.server.poll_event());
    let told = refused.filter(|event| {
        matches!(event, Event::WorkerRefused(who, WelcomeCode::NotAdmitted) if who.peer == PeerId(50))
    });
    assert_eq!(told.count(), 1);
    assert_eq!(joins(&mut pair, 60, 1), Ok(()));
}

#[test]
fn what_only_travels_the_other_way_or_does_not_fit_is_refused_by_its_reason() {
    let mut pair = Pair::joined(plain(Limits::default()));
    pair.enters(8);
    let address = olaf_samples::address(JOB.0, 0, 8);
    let join = olaf_samples::join(address, 1, 2208);
    // At the server.
    let down = pair.gives_server(8, |buf| olaf_samples::welcome(&join).emit(buf));
    assert_eq!(down, Err(Refused::WrongDirection));
    let mut long = olaf_samples::update(address, 1);
    long.hop_sequence = 1;
    let too_long = pair.gives_server(8, |buf| long.emit(&[1.0, 2.0], buf));
    assert_eq!(too_long, Err(Refused::WrongSize));
    let leave = Leave { address: olaf_samples::address(5, 0, 8) };
    assert_eq!(pair.gives_server(8, |buf| leave.emit(buf)), Err(Refused::UnknownJob));
    assert!(matches!(pair.gives_server(8, |_| 3), Err(Refused::Malformed(_))));
    // At the worker.
    let own = olaf_samples::address(JOB.0, 0, 7);
    let up = pair.gives_worker(|buf| Leave { address: own }.emit(buf));
    assert_eq!(up, Err(Refused::WrongDirection));
    assert!(matches!(pair.gives_worker(|_| 3), Err(Refused::Malformed(_))));
    let model = pair.model.clone();
    let stranger = pair.worker.handle_packet(pair.now, Source::end(PeerId(99)), &model);
    assert_eq!(taken(stranger), Err(Refused::UnknownPeer));
    let long = pair.forged(|answer| {
        (answer.model_version, answer.parameters) = (answer.model_version + 1, 2);
    });
    assert_eq!(pair.gives_worker(|buf| long.emit(&[1.0, 2.0], buf)), Err(Refused::WrongSize));
    pair.goes_on();
}

#[test]
fn an_offered_model_that_does_not_fit_or_is_no_number_begins_no_job() {
    let mut pair = Pair::joined(plain(Limits::default()));
    let address = olaf_samples::address(2, 0, 8);
    let join = olaf_samples::join(address, 1, 2208);
    let offers = |pair: &mut Pair, lanes: &[f32]| {
        let offer = olaf_samples::offer(address, lanes.len() as u32);
        pair.gives_server(8, |buf| offer.emit(lanes, buf))
    };
    assert_eq!(offers(&mut pair, &[1.0]), Err(Refused::UnknownJob));
    pair.gives_server(8, |buf| join.emit(buf)).unwrap();
    assert_eq!(offers(&mut pair, &[1.0, 2.0]), Err(Refused::WrongSize));
    assert_eq!(offers(&mut pair, &[f32::NAN]), Err(Refused::NonFinite));
    // Whoever offered that is asked no more, until it joins again.
    assert_eq!(offers(&mut pair, &[1.0]), Err(Refused::NotAsked));
    assert!(pair.server.model(JobId(2)).is_none());
    pair.gives_server(8, |buf| join.emit(buf)).unwrap();
    assert_eq!(offers(&mut pair, &[1.0]), Ok(()));
    assert_eq!(pair.server.model(JobId(2)).map(|(version, _)| version), Some(1));
}
