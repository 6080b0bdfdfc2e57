//! What one faulty worker may claim beside its numbers: segments, clusters, versions and offers that the job
//! does not have. A server refuses each, and takes no memory and no time of others for it.

use crate::hostile::{EPOCH, JOB, Pair, plain, taken};
use olaf_engine::party::{Clip, Limits};
use olaf_engine::{Engine, Instant, PeerId, PortId, Source};
use olaf_host::push_pull::server::{RuleConfig, ServerGate};
use olaf_host::transmission::{Control, Fair};
use olaf_host::{Refused, Server, ServerConfig};
use olaf_wire::{
    Address, Answer, ClusterId, Fetch, JobId, JoinPath, Kind, Notice, Packet, QueueStatus, Welcome,
    WelcomeCode,
};
use std::time::Duration;

fn without_rate() -> ServerConfig {
    plain(Limits { max_rate: Clip::Off, ..Limits::default() })
}

#[test]
fn an_update_that_does_not_fit_the_model_is_measured_by_nobody() {
    let mut pair = Pair::joined(without_rate());
    for worker in 20..24 {
        pair.enters(worker);
        pair.sends(worker, 1.0, |_| ()).unwrap();
    }
    for segment in 1..1_000 {
        let refused = pair.sends(20, 1e30, |update| {
            (update.segment, update.segments) = (segment, u32::MAX);
            update.weight = 1e300;
        });
        assert_eq!(refused, Err(Refused::WrongSize));
    }
    let job = &pair.server.statistics(pair.now).jobs[0];
    assert_eq!(
        (job.clipped.norm, job.clipped.weight, job.fates.rejected["wrong_size"]),
        (0, 0, 999)
    );
}

#[test]
fn an_update_names_no_cluster_that_nobody_joined() {
    let mut pair = Pair::joined(without_rate());
    pair.enters(8);
    for cluster in 100..2_100 {
        let before = pair.model();
        let refused = pair.sends(8, 1.0, |update| update.address.cluster = ClusterId(cluster));
        assert_eq!(refused, Err(Refused::WrongCluster));
        assert_eq!(pair.model(), before);
    }
    let job = &pair.server.statistics(pair.now).jobs[0];
    assert_eq!((job.clusters.len(), job.fates.rejected["wrong_cluster"]), (1, 2_000));
    pair.sends(8, 1.0, |_| ()).unwrap();
}

#[test]
fn an_update_on_a_version_that_is_still_to_come_is_as_one_on_the_newest() {
    let mut pair = Pair::joined(without_rate());
    pair.enters(8);
    let version = pair.model().0;
    let claims = |update: &mut olaf_wire::Update| update.version_newest = u32::MAX;
    pair.sends(8, 1.0, claims).unwrap();
    assert_eq!(pair.model().0, version + 1);
    let mut buf = vec![0; 65_536];
    let mut told = Vec::new();
    while let Some(sent) = pair.server.poll_transmit(pair.now, PortId(0), &mut buf) {
        let packet = Packet::new_checked(&buf[..sent.len]).unwrap();
        told.extend(Answer::parse(&packet).map(|answer| answer.delivered_version));
    }
    assert!(!told.is_empty() && told.iter().all(|told| *told <= version), "{told:?}");
    let job = &pair.server.statistics(pair.now).jobs[0];
    assert_eq!((job.staleness_max, job.staleness_mean), (0, Some(0.0)));
}

#[test]
fn a_notice_or_the_word_of_a_switch_for_everyone_is_for_nobody() {
    let mut pair = Pair::joined(plain(Limits::default()));
    let everyone = olaf_samples::everyone(olaf_samples::address(JOB.0, 0, 7));
    let notice = olaf_wire::Notice { address: everyone, taken_newest_ns: u64::MAX };
    assert_eq!(pair.gives_worker(|buf| notice.emit(buf)), Err(Refused::NotForMe));
    // Nobody has to know the server's life for this one.
    pair.worker.push(pair.now, &[&[1.0]], 0.0, 1.0).unwrap();
    let mut buf = [0; 512];
    let sent = pair.worker.poll_transmit(pair.now, PortId(0), &mut buf).unwrap();
    let update = olaf_wire::Update::parse(&Packet::new_checked(&buf[..sent.len]).unwrap()).unwrap();
    let ends = olaf_wire::Ends { newest: update.flow_sequence, delivered: 0, ended: 1 };
    let lost = Answer { address: everyone, epoch: 0, ends, ..olaf_samples::answer(everyone, 0) };
    assert_eq!(pair.gives_worker(|buf| lost.emit(&[], buf)), Err(Refused::NotForMe));
    let counts = pair.worker.statistics(pair.now);
    assert_eq!(counts.not_delivered, 0);
}

/// A notice quiets its cluster for a round. One that names the end of time would be the newest for
/// ever, so that no later notice quieted the cluster again.
#[test]
fn a_notice_of_the_future_is_as_one_of_now() {
    let mut pair = Pair::joined_as(plain(Limits::default()), |config| {
        config.transmission.control = Control::Fair(Fair::default());
    });
    for (at, ahead_ns) in [0, u64::MAX, 0].into_iter().enumerate() {
        // The queue is crowded, and serves both clusters once in 200 ms.
        let queue =
            QueueStatus { active_clusters: 2, slots: 1, used: 1, switches: 1, round_us: 200_000 };
        let answer = pair.forged(|answer| answer.queue = queue);
        pair.gives_worker(|buf| answer.emit(&[1.0], buf)).unwrap();
        let address = olaf_samples::address(JOB.0, 0, 7);
        let notice = Notice { address, taken_newest_ns: pair.now.0.saturating_add(ahead_ns) };
        pair.gives_worker(|buf| notice.emit(buf)).unwrap();
        for (milliseconds, expected) in [(0, 0.0), (100, 0.0), (150, 1.0)] {
            pair.now = pair.now + Duration::from_millis(milliseconds);
            let probability = pair.worker.statistics(pair.now).probability;
            assert_eq!(probability, expected, "notice {at}, {milliseconds} ms later");
        }
    }
}

/// A server and a job of several segments.
struct Several {
    now: Instant,
    server: Server,
}

const SEGMENTS: u32 = 100;

impl Several {
    fn new() -> Self {
        let server = Server::new(ServerConfig::default(), EPOCH).unwrap();
        Self { now: Instant(1_000_000_000), server }
    }

    fn address(worker: u32) -> Address {
        olaf_samples::address(2, 0, worker)
    }

    fn says(&mut self, worker: u32, emit: impl FnOnce(&mut [u8]) -> usize) -> Result<(), Refused> {
        let mut buf = [0; 512];
        let len = emit(&mut buf);
        taken(self.server.handle_packet(self.now, Source::end(PeerId(worker)), &buf[..len]))
    }

    /// The worker joins; the first segment that the server wants of it.
    fn joins(&mut self, worker: u32, have_version: u32) -> Option<u32> {
        self.joins_after(worker, have_version, 0)
    }

    /// The same, of a worker that says how far the server is. One that had no answer says 0.
    fn joins_after(&mut self, worker: u32, have_version: u32, round_trip_us: u32) -> Option<u32> {
        let join = olaf_samples::join(Self::address(worker), SEGMENTS, 1);
        let path = JoinPath { round_trip_us, ..join.path };
        let join = olaf_wire::Join { have_version, path, ..join };
        self.says(worker, |buf| join.emit(buf)).unwrap();
        let welcome = self.sent().into_iter().rev().find_map(|(to, bytes)| {
            let packet = Packet::new_checked(&bytes).unwrap();
            let is_its = to == worker && packet.kind() == Kind::Welcome;
            is_its.then(|| Welcome::parse(&packet).unwrap())
        });
        let welcome = welcome.expect("each join is answered");
        assert_eq!(welcome.code, WelcomeCode::Welcome);
        Some(welcome.first_missing).filter(|first| *first != u32::MAX)
    }

    fn offers(&mut self, worker: u32, version: u32, segment: u32) -> Result<(), Refused> {
        let offer = Answer {
            segment,
            segments: SEGMENTS,
            model_version: version,
            ..olaf_samples::offer(Self::address(worker), SEGMENTS)
        };
        self.says(worker, |buf| offer.emit(&[1.0], buf))
    }

    fn sent(&mut self) -> Vec<(u32, Vec<u8>)> {
        let mut all = Vec::new();
        let mut buf = [0; 2048];
        while let Some(sent) = self.server.poll_transmit(self.now, PortId(0), &mut buf) {
            all.push((sent.to.one().unwrap().0, buf[..sent.len].to_vec()));
        }
        all
    }

    fn models(&mut self) -> usize {
        let is_model = |bytes: &[u8]| Packet::new_checked(bytes).unwrap().kind() == Kind::Model;
        self.sent().iter().filter(|(_, bytes)| is_model(bytes)).count()
    }

    fn passes(&mut self, milliseconds: u64) {
        self.now = self.now + Duration::from_millis(milliseconds);
        if self.server.poll_timeout().is_some_and(|(at, _)| at <= self.now) {
            self.server.handle_timeout(self.now);
        }
    }
}

/// A faulty worker is asked for its model first, and offers in its way for ten seconds. Whether the job gets an
/// honest worker's model meanwhile.
fn honest_model_comes(mut faulty: impl FnMut(&mut Several, u32)) -> bool {
    let mut several = Several::new();
    assert_eq!(several.joins(1, 0), Some(0));
    for turn in 0..100 {
        faulty(&mut several, turn);
        several.passes(100);
        several.joins(1, 0);
        if several.joins(2, 0).is_some() {
            (0..SEGMENTS).for_each(|segment| several.offers(2, 0, segment).unwrap());
            return several.server.model(JobId(2)).is_some();
        }
    }
    false
}

#[test]
fn an_offer_that_says_the_same_again_keeps_no_other_model_out() {
    assert!(honest_model_comes(|several, _| {
        let _ = several.offers(1, 0, 5);
    }));
}

#[test]
fn an_offer_that_begins_anew_again_and_again_keeps_no_other_model_out() {
    assert!(honest_model_comes(|several, turn| {
        let _ = several.offers(1, turn, 5);
    }));
    assert!(honest_model_comes(|several, turn| {
        let _ = several.offers(1, turn % 2, 5);
    }));
}

/// A new segment each 200 ms is never too late by itself.
#[test]
fn an_offer_that_trickles_keeps_no_other_model_out() {
    assert!(honest_model_comes(|several, turn| {
        let _ = several.offers(1, 0, turn / 2);
    }));
}

/// 1 Mbit/s, 100 ms and 5 % loss: a segment of 1,400 bytes takes 12 ms, and of each window of 64 some come a
/// round trip later. Another worker asks all the time.
#[test]
fn an_offer_over_a_slow_path_is_waited_for() {
    let mut several = Several::new();
    several.joins(1, 0);
    for segment in 0..SEGMENTS {
        several.passes(12 * 106 / 100 + 100 * u64::from(segment.is_multiple_of(16)));
        several.joins(1, 0);
        assert_eq!(several.joins(2, 0), None, "segment {segment}");
        several.offers(1, 0, segment).unwrap();
    }
    assert!(several.server.model(JobId(2)).is_some());
}

/// No answer of the server reaches worker 1.
#[test]
fn a_worker_that_hears_the_server_need_not_wait_for_one_that_does_not() {
    let patience = ServerConfig::default().offer_patience.as_millis() as u64;
    let first_asked_after = |round_trip_us| {
        let mut several = Several::new();
        several.joins(1, 0);
        (1..200u64).find(|_| {
            several.passes(100);
            several.joins(1, 0);
            several.joins_after(2, 0, round_trip_us).is_some()
        })
    };
    assert_eq!(first_asked_after(1_000), Some(patience / 100));
    assert_eq!(first_asked_after(0), Some(120), "nobody hears it: three times the longest path");
}

#[test]
fn a_worker_may_offer_a_newer_model_than_it_began_with() {
    let mut several = Several::new();
    several.joins(1, 0);
    several.offers(1, 3, 0).unwrap();
    (0..SEGMENTS).for_each(|segment| several.offers(1, 4, segment).unwrap());
    assert!(several.server.model(JobId(2)).is_some());
}

#[test]
fn a_wish_for_a_version_that_is_gone_costs_the_whole_model_that_it_brings() {
    let mut several = Several::new();
    several.joins(1, 0);
    (0..SEGMENTS).for_each(|segment| several.offers(1, 0, segment).unwrap());
    several.sent();
    let gone =
        Fetch { address: Several::address(1), version: 77, first: 0, mask: 1, have_version: 0 };
    // What waits is not paid for again.
    for _ in 0..50 {
        several.says(1, |buf| gone.emit(buf)).unwrap();
    }
    assert_eq!(several.models(), SEGMENTS as usize);
    let mut segments = 0;
    for _ in 0..1_000 {
        let _ = several.says(1, |buf| gone.emit(buf));
        segments += several.models();
    }
    // Four models and 256 segments, less what went before.
    assert!(segments <= 5 * SEGMENTS as usize + 56, "{segments}");
}

#[test]
fn a_version_that_no_honest_worker_has_moves_no_job_that_begins() {
    let mut several = Several::new();
    assert_eq!(several.joins(1, u32::MAX), None, "it is not asked for its model");
    assert_eq!(several.joins(2, 0), Some(0));
    (0..SEGMENTS).for_each(|segment| several.offers(2, 0, segment).unwrap());
    let version = several.server.model(JobId(2)).map(|(version, _)| version);
    assert!(version.is_some_and(|version| version < 10), "{version:?}");
}

#[test]
fn a_wish_of_an_address_that_is_not_proved_is_refused() {
    let mut several = Several::new();
    let mut last = 40;
    several.server.demand_proofs(Box::new(move || {
        last += 1;
        last
    }));
    several.joins(1, 0);
    (0..SEGMENTS).for_each(|segment| several.offers(1, 0, segment).unwrap());
    let wish =
        Fetch { address: Several::address(1), version: 1, first: 0, mask: 1, have_version: 0 };
    assert_eq!(several.says(1, |buf| wish.emit(buf)), Err(Refused::NotProven));
    assert_eq!(several.models(), 0);
}

#[test]
fn a_join_that_is_replayed_from_elsewhere_takes_no_worker_over() {
    let mut pair = Pair::joined(plain(Limits::default()));
    pair.enters(8);
    let join = olaf_samples::join(olaf_samples::address(JOB.0, 0, 8), 1, 2208);
    let in_use = Err(Refused::TurnedAway(WelcomeCode::WorkerIdInUse));
    assert_eq!(pair.gives_server(9, |buf| join.emit(buf)), in_use);
    pair.sends(8, 1.0, |_| ()).unwrap();
}

#[test]
fn an_answer_for_all_of_another_cluster_is_not_for_this_worker() {
    let mut pair = Pair::joined(plain(Limits::default()));
    let forged = pair.forged(|answer| {
        answer.address = olaf_samples::everyone(olaf_samples::address(JOB.0, 3, 0));
        answer.model_version += 1;
    });
    assert_eq!(pair.gives_worker(|buf| forged.emit(&[5.0], buf)), Err(Refused::NotForMe));
    pair.goes_on();
}

/// A worker that joins, leaves and joins again in another cluster has a new allowance of moves each time.
#[test]
fn a_worker_that_comes_and_goes_leaves_no_cluster_behind() {
    let mut pair = Pair::joined(without_rate());
    for cluster in 10..5_010 {
        let address = olaf_samples::address(JOB.0, cluster, 8);
        let join = olaf_samples::join(address, 1, 2208);
        pair.gives_server(8, |buf| join.emit(buf)).unwrap();
        // Some deliver before they go.
        if cluster % 2 == 0 {
            pair.sends(8, 1.0, |update| update.address.cluster = ClusterId(cluster)).unwrap();
        }
        pair.gives_server(8, |buf| olaf_wire::Leave { address }.emit(buf)).unwrap();
        if cluster % 100 == 0 {
            pair.run(100);
        }
        let clusters = pair.server.statistics(pair.now).jobs[0].clusters.len();
        assert!(clusters < 1_300, "{clusters} clusters");
    }
    pair.run(61_000);
    assert_eq!(pair.server.statistics(pair.now).jobs[0].clusters.len(), 1);
    pair.goes_on();
}

/// A worker that says that a switch passed its updates on would be judged by nobody, and could speak for
/// others.
#[test]
fn only_a_switch_sends_updates_of_others() {
    for listed in [false, true] {
        let mut pair = Pair::joined(plain(Limits::default()));
        if listed {
            pair.server.allow_switch(PeerId(500));
        }
        pair.enters(8);
        for (at, (worker, contributors)) in (1..).zip([(8, 1), (7, 1), (8, 1024)]) {
            let mut update = olaf_samples::update(olaf_samples::address(JOB.0, 0, worker), at);
            (update.hop_sequence, update.hops, update.contributors) = (at, 1, contributors);
            update.weight = contributors.into();
            let refused = pair.gives_server(8, |buf| update.emit(&[1.0], buf));
            assert_eq!(refused, Err(Refused::NotASwitch));
        }
        let job = &pair.server.statistics(pair.now).jobs[0];
        assert_eq!((job.fates.delivered_alone, job.fates.rejected["not_a_switch"]), (0, 3));
    }
}

/// Where no list says which peers are switches, anybody may join as one. It speaks for the workers behind it,
/// not for those of others.
#[test]
fn a_switch_sends_no_updates_of_workers_that_are_elsewhere() {
    let mut pair = Pair::joined(plain(Limits::default()));
    let join = olaf_samples::join(olaf_samples::address(JOB.0, 0, 8), 1, 2208);
    pair.gives_server(8, |buf| olaf_wire::Join { hops: 1, ..join }.emit(buf)).unwrap();
    let expected = [(7, Err(Refused::UnknownPeer)), (8, Ok(())), (99, Ok(()))];
    for (at, (worker, expected)) in (1..).zip(expected) {
        let mut update = olaf_samples::update(olaf_samples::address(JOB.0, 0, worker), at);
        (update.hop_sequence, update.hops) = (at, 1);
        assert_eq!(pair.gives_server(8, |buf| update.emit(&[1.0], buf)), expected, "{worker}");
    }
}

#[test]
fn a_worker_sends_no_updates_of_other_clusters() {
    let mut pair = Pair::joined(plain(Limits::default()));
    let elsewhere = olaf_samples::join(olaf_samples::address(JOB.0, 3, 8), 1, 2208);
    pair.gives_server(8, |buf| elsewhere.emit(buf)).unwrap();
    assert_eq!(pair.sends(8, 1.0, |_| ()), Err(Refused::WrongCluster));
    pair.sends(8, 1.0, |update| update.address.cluster = ClusterId(3)).unwrap();
}

/// The gate measures rewards by the best one. A clipped reward is still the largest ever, so that it would
/// shut the gate for good.
#[test]
fn a_reward_beyond_all_others_does_not_shut_the_gate() {
    let rule = RuleConfig { gate: ServerGate::Best, gate_margin: 1.0, ..RuleConfig::default() };
    let config = ServerConfig { rule, ..without_rate() };
    let mut pair = Pair::joined(config);
    for worker in [8, 9, 10, 20] {
        pair.enters(worker);
    }
    let honest = |pair: &mut Pair| {
        let mut gated = 0;
        for reward in 0..10 {
            for worker in [8, 9, 10] {
                let before = pair.server.statistics(pair.now).jobs[0].fates.gated;
                pair.sends(worker, 1.0, |update| update.reward = 50.0 + f64::from(reward % 2))
                    .unwrap();
                gated += pair.server.statistics(pair.now).jobs[0].fates.gated - before;
            }
        }
        gated
    };
    assert_eq!(honest(&mut pair), 0);
    pair.sends(20, 0.0, |update| update.reward = 1e30).unwrap();
    assert_eq!(honest(&mut pair), 0);
    assert_eq!(pair.server.statistics(pair.now).jobs[0].clipped.reward, 1);
}

/// A server that demands proofs, and the answer of each join.
fn proving() -> Several {
    let mut several = Several::new();
    let mut last = 40;
    several.server.demand_proofs(Box::new(move || {
        last += 1;
        last
    }));
    several
}

fn joined(
    several: &mut Several,
    (job, from): (u32, u32),
    nonce: u32,
) -> (Result<(), Refused>, Welcome) {
    let join = olaf_samples::join(olaf_samples::address(job, 0, from), SEGMENTS, 1);
    let join = olaf_wire::Join { nonce, ..join };
    let result = several.says(from, |buf| join.emit(buf));
    let welcome = several.sent().into_iter().find_map(|(to, bytes)| {
        let packet = Packet::new_checked(&bytes).unwrap();
        (to == from && packet.kind() == Kind::Welcome).then(|| Welcome::parse(&packet).unwrap())
    });
    (result, welcome.expect("each join is answered"))
}

#[test]
fn forged_addresses_take_few_places_at_a_server_and_do_not_stay() {
    let mut several = proving();
    let (first, _) = joined(&mut several, (2, 1), 0);
    assert_eq!(first, Ok(()));
    for from in 1_000..18_000 {
        let _ = joined(&mut several, (2, from), 0);
        if from % 1_000 == 0 {
            several.now = several.now + Duration::from_millis(50);
            several.server.handle_timeout(several.now);
        }
    }
    let here =
        |several: &Several| several.server.statistics(several.now).jobs[0].clusters[0].workers;
    assert!(here(&several) <= 321, "{}", here(&several));
    let (refused, welcome) = joined(&mut several, (2, 9), 0);
    assert_eq!((refused, welcome.code), (Err(Refused::NotProven), WelcomeCode::JoinAgain));
    let (stolen, _) = joined(&mut several, (2, 10), welcome.nonce);
    assert_eq!(stolen, Err(Refused::NotProven), "the cookie is of another address");
    let (let_in, again) = joined(&mut several, (2, 9), welcome.nonce);
    assert_eq!((let_in, again.code, again.nonce), (Ok(()), WelcomeCode::Welcome, 0));
    for _ in 0..30 {
        several.now = several.now + Duration::from_millis(100);
        several.server.handle_timeout(several.now);
    }
    assert_eq!(here(&several), 1, "the one that has proved its address");
}

#[test]
fn empty_jobs_of_one_switch_make_room_for_one_another() {
    let mut several = Several::new();
    for worker in 1..400 {
        let join =
            olaf_samples::join(olaf_samples::address(1_000 + worker, 0, worker), SEGMENTS, 1);
        // All of them come through one switch.
        several.says(7, |buf| olaf_wire::Join { hops: 1, ..join }.emit(buf)).unwrap();
        several.now = several.now + Duration::from_millis(1);
    }
    let jobs = several.server.statistics(several.now).jobs;
    assert_eq!(jobs.len(), 256);
    assert_eq!(jobs.first().map(|job| job.job), Some(1_144), "the oldest gave way");
}
