//! What a stranger or a faulty worker may send to a server and to a worker: nothing of it lasts.

use olaf_engine::party::{Clip, Limits};
use olaf_engine::{DropReason, Engine, Event, Instant, PeerId, PortId, Rejection, Source, Verdict};
use olaf_host::push_pull::server::{RuleConfig, Step};
use olaf_host::push_pull::worker::Standing;
use olaf_host::{Refused, Server, ServerConfig, Worker, WorkerConfig};
use olaf_wire::{Answer, Fetch, JobId, Join, Kind, Packet, Update, Welcome, WelcomeCode};
use std::time::Duration;

pub(crate) const JOB: JobId = JobId(1);
const SERVER: PeerId = PeerId(1000);
pub(crate) const EPOCH: u32 = 9;

pub(crate) fn plain(limits: Limits) -> ServerConfig {
    let rule = RuleConfig { step: Step::Mean, staleness_power: 0.0, ..RuleConfig::default() };
    ServerConfig { rule, limits, ..ServerConfig::default() }
}

/// A server and a worker, directly connected. Peer 7 is the worker; other peers send by hand.
pub(crate) struct Pair {
    pub(crate) now: Instant,
    pub(crate) server: Server,
    pub(crate) worker: Worker,
    /// The last datagram of the server that had a model.
    pub(crate) model: Vec<u8>,
    hops: u32,
}

impl Pair {
    pub(crate) fn joined(config: ServerConfig) -> Self {
        Self::joined_as(config, |_| ())
    }

    pub(crate) fn joined_as(config: ServerConfig, set: impl FnOnce(&mut WorkerConfig)) -> Self {
        let address = olaf_samples::address(JOB.0, 0, 7);
        let mut own = WorkerConfig::new(address, SERVER);
        set(&mut own);
        let worker = Worker::new(own);
        let now = Instant(1_000_000_000);
        let server = Server::new(config, EPOCH).unwrap();
        let mut pair = Self { now, server, worker, model: Vec::new(), hops: 0 };
        pair.worker.join(now, &[&[1.0]]).unwrap();
        pair.run(100);
        assert_eq!(pair.worker.standing(), Standing::Joined);
        pair
    }

    pub(crate) fn run(&mut self, milliseconds: u64) {
        let mut buf = vec![0; 65_536];
        for _ in 0..milliseconds {
            for _ in 0..4 {
                while let Some(sent) = self.worker.poll_transmit(self.now, PortId(0), &mut buf) {
                    self.server.handle_packet(self.now, Source::end(PeerId(7)), &buf[..sent.len]);
                }
                while let Some(sent) = self.server.poll_transmit(self.now, PortId(0), &mut buf) {
                    if sent.to.one() != Some(PeerId(7)) {
                        continue;
                    }
                    if Packet::new_checked(&buf[..sent.len]).unwrap().kind() == Kind::Model {
                        self.model = buf[..sent.len].to_vec();
                    }
                    self.worker.handle_packet(self.now, Source::end(SERVER), &buf[..sent.len]);
                }
            }
            self.now = self.now + Duration::from_millis(1);
            for engine in [&mut self.worker as &mut dyn Engine, &mut self.server] {
                if engine.poll_timeout().is_some_and(|(at, _)| at <= self.now) {
                    engine.handle_timeout(self.now);
                }
            }
        }
    }

    /// The worker's next join, as an eavesdropper sees it. It does not arrive.
    pub(crate) fn next_join(&mut self) -> Join {
        let mut buf = vec![0; 65_536];
        for _ in 0..5000 {
            self.now = self.now + Duration::from_millis(1);
            self.worker.handle_timeout(self.now);
            while let Some(sent) = self.worker.poll_transmit(self.now, PortId(0), &mut buf) {
                let packet = Packet::new_checked(&buf[..sent.len]).unwrap();
                if packet.kind() == Kind::Join {
                    return Join::parse(&packet).unwrap();
                }
            }
        }
        panic!("the worker does not ask");
    }

    pub(crate) fn gives_worker(
        &mut self,
        emit: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<(), Refused> {
        let mut buf = [0; 512];
        let len = emit(&mut buf);
        taken(self.worker.handle_packet(self.now, Source::end(SERVER), &buf[..len]))
    }

    pub(crate) fn gives_server(
        &mut self,
        from: u32,
        emit: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<(), Refused> {
        let mut buf = [0; 512];
        let len = emit(&mut buf);
        taken(self.server.handle_packet(self.now, Source::end(PeerId(from)), &buf[..len]))
    }

    /// A worker of that number enters from a peer of the same number.
    pub(crate) fn enters(&mut self, worker: u32) {
        let join = olaf_samples::join(olaf_samples::address(JOB.0, 0, worker), 1, 2208);
        self.gives_server(worker, |buf| join.emit(buf)).unwrap();
    }

    pub(crate) fn sends(
        &mut self,
        worker: u32,
        lane: f32,
        change: impl FnOnce(&mut Update),
    ) -> Result<(), Refused> {
        self.hops += 1;
        let version = self.model().0;
        let mut update = olaf_samples::update(olaf_samples::address(JOB.0, 0, worker), self.hops);
        update.hop_sequence = self.hops;
        (update.version_oldest, update.version_newest) = (version, version);
        change(&mut update);
        self.gives_server(worker, |buf| update.emit(&[lane], buf))
    }

    pub(crate) fn model(&self) -> (u32, f32) {
        let (version, mut segments) = self.server.model(JOB).unwrap();
        (version, segments.next().unwrap()[0])
    }

    /// The last model as a forger changes it.
    pub(crate) fn forged(&self, change: impl FnOnce(&mut Answer)) -> Answer {
        let mut answer = Answer::parse(&Packet::new_checked(&self.model).unwrap()).unwrap();
        change(&mut answer);
        answer
    }

    /// The worker pushes, and hears of the model that results.
    pub(crate) fn goes_on(&mut self) {
        let now = self.now;
        self.worker.push(now, &[&[1.0]], 0.0, 1.0).unwrap();
        self.run(700);
        let (version, lane) = self.model();
        let model = self.worker.model().expect("it has a model");
        assert_eq!((model.version, model.lanes[0]), (version, lane));
        self.worker.taken(version);
    }
}

pub(crate) fn taken(verdict: Verdict) -> Result<(), Refused> {
    match verdict {
        Verdict::Absorb => Ok(()),
        Verdict::Drop(DropReason::End(refused)) => Err(refused),
        other => panic!("an end neither passes on nor screens: {other:?}"),
    }
}

#[test]
fn a_forged_answer_of_a_new_life_makes_nobody_deaf() {
    let mut pair = Pair::joined(plain(Limits::default()));
    for epoch in 100..200 {
        let forged = pair.forged(|answer| answer.epoch = epoch);
        assert_eq!(pair.gives_worker(|buf| forged.emit(&[5.0], buf)), Err(Refused::UnknownEpoch));
    }
    let joins = pair.worker.statistics(pair.now).joins;
    pair.goes_on();
    assert!(pair.worker.statistics(pair.now).joins <= joins + 4, "a flood makes no flood of joins");
}

#[test]
fn a_forged_model_of_the_highest_version_is_gone_with_the_next_answer_to_a_join() {
    let mut pair = Pair::joined(plain(Limits::default()));
    let forged = pair.forged(|answer| answer.model_version = u32::MAX);
    pair.gives_worker(|buf| forged.emit(&[5.0], buf)).unwrap();
    assert_eq!(pair.worker.model().unwrap().version, u32::MAX);
    // The learner takes it, too.
    pair.worker.taken(u32::MAX);
    pair.run(600);
    let (version, lane) = pair.model();
    let model = pair.worker.model().unwrap();
    assert_eq!((model.version, model.lanes[0]), (version, lane));
    assert!(pair.worker.is_newer(version, u32::MAX), "the learner gets it");
    assert!(!pair.worker.is_newer(version, version + 5), "nobody gets what is older");
    pair.goes_on();
}

#[test]
fn one_segment_of_a_forged_version_does_not_keep_the_worker_waiting_for_the_others() {
    let mut pair = Pair::joined(plain(Limits::default()));
    // A wish for a version that will never be there.
    let forged = pair.forged(|answer| answer.model_version = u32::MAX - 1);
    pair.gives_worker(|buf| forged.emit(&[f32::NAN], buf)).unwrap_err();
    pair.run(600);
    pair.goes_on();
}

#[test]
fn a_model_that_is_no_number_is_refused() {
    let mut pair = Pair::joined(plain(Limits::default()));
    for lane in [f32::NAN, f32::INFINITY] {
        let forged = pair.forged(|answer| answer.model_version += 1);
        assert_eq!(pair.gives_worker(|buf| forged.emit(&[lane], buf)), Err(Refused::NonFinite));
    }
    pair.goes_on();
}

#[test]
fn a_refusal_that_answers_no_join_turns_nobody_away() {
    let mut pair = Pair::joined(plain(Limits::default()));
    let join = olaf_samples::join(olaf_samples::address(JOB.0, 0, 7), 1, 2208);
    for code in [WelcomeCode::WrongModelSize, WelcomeCode::NotAdmitted, WelcomeCode::Welcome] {
        let forged =
            Welcome { code, epoch: 55, ..olaf_samples::welcome(&Join { sent_at_ns: 3, ..join }) };
        assert_eq!(pair.gives_worker(|buf| forged.emit(buf)), Err(Refused::NotAsked), "{code:?}");
    }
    assert_eq!(pair.worker.standing(), Standing::Joined);
    pair.goes_on();
}

#[test]
fn joins_that_claim_versions_move_the_job_a_little_and_then_nothing() {
    let mut pair = Pair::joined(ServerConfig::default());
    pair.enters(8);
    let join = olaf_samples::join(olaf_samples::address(JOB.0, 0, 8), 1, 2208);
    for claim in 0..5_000u32 {
        let have_version = pair.model().0 + 1 + claim % 60_000;
        pair.gives_server(8, |buf| Join { have_version, ..join }.emit(buf)).unwrap();
    }
    let followed = pair.model().0;
    assert!(followed < 200, "version {followed}");
    pair.goes_on();
    pair.goes_on();
    let before = pair.model().1;
    pair.goes_on();
    let moved = pair.model().1 - before;
    assert!(moved > 0.5, "an honest step is a step: {moved}");
}

#[test]
fn huge_numbers_are_clipped_and_named() {
    let mut pair = Pair::joined(plain(Limits::default()));
    for worker in 20..24 {
        pair.enters(worker);
    }
    // Nobody else has sent anything: the step is bounded by the model.
    pair.sends(20, 1e30, |_| ()).unwrap();
    assert!(pair.model().1 <= 110.0, "{}", pair.model().1);
    for worker in 21..24 {
        pair.sends(worker, 1.0, |_| ()).unwrap();
    }
    let before = pair.model().1;
    pair.sends(20, 1e30, |update| update.reward = 1e30).unwrap();
    pair.sends(20, 1e30, |update| update.weight = 1e300).unwrap();
    assert!((pair.model().1 - before).abs() <= 201.0, "{}", pair.model().1 - before);
    let counts = pair.server.statistics(pair.now);
    let named: Vec<_> = counts.jobs[0].clipped_workers.iter().collect();
    assert_eq!(named, [(&20, &3)]);
    let clipped = counts.jobs[0].clipped;
    assert_eq!((clipped.norm, clipped.weight, clipped.reward), (2, 1, 1));
    let says =
        |event: Event| matches!(event, Event::ContributionClipped(who, _) if who.worker.0 == 20);
    assert!(std::iter::from_fn(|| pair.server.poll_event()).any(says));
}

#[test]
fn a_flood_of_zeros_does_not_shorten_the_steps_of_others() {
    let steps = |flood: u32| {
        let mut pair = Pair::joined(ServerConfig::default());
        for worker in 20..24 {
            pair.enters(worker);
            pair.sends(worker, 1.0, |_| ()).unwrap();
        }
        let before = pair.model().1;
        for _ in 0..50 {
            let version = pair.model().0;
            for _ in 0..flood {
                pair.sends(20, 0.0, |_| ()).unwrap();
            }
            pair.sends(21, 1.0, |update| {
                (update.version_oldest, update.version_newest) = (version, version);
            })
            .unwrap();
        }
        pair.model().1 - before
    };
    let (undisturbed, flooded) = (steps(0), steps(100));
    assert!(flooded >= 0.9 * undisturbed, "{flooded} of {undisturbed}");
}

/// How far three workers move the model in ten seconds, each with an update every 100 ms, beside a fourth
/// that sends these lanes in turn, at a fixed distance of milliseconds.
fn progress(limits: Limits, fourth: [f32; 2], every_ms: u64) -> (f32, Pair) {
    let config = ServerConfig { limits, ..ServerConfig::default() };
    let mut pair = Pair::joined(config);
    (20..24).for_each(|worker| pair.enters(worker));
    let mut based_on = [pair.model().0; 4];
    let (mut moved, mut turns) = (0.0, 0);
    for ms in 0..10_000 {
        pair.now = pair.now + Duration::from_millis(1);
        let mut sends = |worker: usize, lane: f32, pair: &mut Pair| {
            let (version, before) = pair.model();
            let basis = based_on[worker];
            let sent = pair.sends(20 + worker as u32, lane, |update| {
                (update.version_oldest, update.version_newest) = (basis, basis);
            });
            based_on[worker] = version;
            assert!(worker == 3 || sent.is_ok(), "an honest worker is refused: {sent:?}");
            if worker < 3 {
                moved += pair.model().1 - before;
            }
        };
        (0..3).filter(|w| ms % 100 == 30 * *w as u64).for_each(|w| sends(w, 1.0, &mut pair));
        if ms % every_ms == 0 {
            turns += 1;
            sends(3, fourth[turns % 2], &mut pair);
        }
    }
    (moved, pair)
}

#[test]
fn a_flood_of_updates_just_above_a_hundredth_of_the_usual_length_leaves_others_their_share() {
    let (share, _) = progress(Limits::default(), [1.0, 1.0], 100);
    let (flooded, mut pair) = progress(Limits::default(), [0.011, -0.011], 1);
    assert!(flooded >= 0.9 * share, "{flooded} of {share}");
    let job = &pair.server.statistics(pair.now).jobs[0];
    assert!(job.fates.rejected["too_often"] > 7_000, "{:?}", job.fates);
    let told = std::iter::from_fn(|| pair.server.poll_event()).filter(|event| {
        matches!(event, Event::ContributionRejected(who, Rejection::TooOften) if who.worker.0 == 23)
    });
    assert!((5..=11).contains(&told.count()), "named once a second");
    let (unlimited, _) = progress(Limits::OFF, [0.011, -0.011], 1);
    assert!(unlimited < 0.2 * share, "without limits the flood hurts: {unlimited} of {share}");
}

#[test]
fn joining_again_fills_no_bucket_again() {
    let limits = Limits { max_rate: Clip::At(1.0), ..Limits::OFF };
    let mut pair = Pair::joined(plain(limits));
    let address = olaf_samples::address(JOB.0, 0, 8);
    let fetch = Fetch { address, version: 0, first: 0, mask: 1, have_version: 0 };
    let (mut fetched, mut pushed) = (0, 0);
    for _ in 0..400 {
        pair.enters(8);
        fetched += u32::from(pair.gives_server(8, |buf| fetch.emit(buf)).is_ok());
        pushed += u32::from(pair.sends(8, 1.0, |_| ()).is_ok());
    }
    // Four models and 256 segments; 64 updates.
    assert_eq!((fetched, pushed), (260, 64));
}

#[test]
fn honest_workers_ten_times_faster_or_slower_than_the_others_are_not_refused() {
    for every_ms in [10, 1_000] {
        let (_, pair) = progress(Limits::default(), [1.0, 1.0], every_ms);
        let job = &pair.server.statistics(pair.now).jobs[0];
        assert_eq!(job.fates.rejected.get("too_often"), None, "every {every_ms} ms");
    }
}

#[test]
fn a_worker_that_names_others_is_refused_and_the_others_are_not_charged() {
    let mut pair = Pair::joined(plain(Limits::default()));
    (20..23).for_each(|worker| pair.enters(worker));
    for ms in 0..10_000 {
        pair.now = pair.now + Duration::from_millis(1);
        if ms % 100 < 2 {
            pair.sends(20 + ms % 2, 1.0, |_| ()).unwrap();
        }
        // Two of these workers are here, at other addresses, and the others are nowhere.
        let named = 20 + ms % 7;
        let before = pair.model();
        pair.hops += 1;
        let mut forged = olaf_samples::update(olaf_samples::address(JOB.0, 0, named), pair.hops);
        forged.hop_sequence = pair.hops;
        let refused = pair.gives_server(22, |buf| forged.emit(&[1.0], buf));
        match named {
            20 | 21 => assert_eq!(refused, Err(Refused::UnknownPeer)),
            22 => assert!(refused.is_ok() || refused == Err(Refused::TooOften)),
            _ => assert_eq!(refused, Err(Refused::UnknownWorker)),
        }
        assert!(named == 22 || pair.model() == before);
    }
    let job = &pair.server.statistics(pair.now).jobs[0];
    let rejected = |reason| job.fates.rejected.get(reason).copied().unwrap_or_default();
    assert_eq!(rejected("unknown_peer") + rejected("unknown_worker"), 10_000 - 1_429);
}

#[test]
fn an_update_that_came_from_another_session_of_its_worker_is_refused() {
    let mut pair = Pair::joined(plain(Limits::default()));
    pair.enters(8);
    let session = olaf_wire::Session(12_345);
    let refused = pair.sends(8, 1.0, |update| update.address.session = session);
    assert_eq!(refused, Err(Refused::UnknownPeer));
    pair.sends(8, 1.0, |_| ()).unwrap();
}

#[test]
fn many_ids_of_one_address_do_not_raise_the_limit_of_a_contribution() {
    let limits = Limits { max_rate: Clip::Off, ..Limits::default() };
    let mut pair = Pair::joined(plain(limits));
    for worker in 20..23 {
        pair.enters(worker);
        pair.sends(worker, 1.0, |_| ()).unwrap();
    }
    for worker in 100..115 {
        let join = olaf_samples::join(olaf_samples::address(JOB.0, 0, worker), 1, 2208);
        pair.gives_server(50, |buf| join.emit(buf)).unwrap();
    }
    for _ in 0..5 {
        for worker in 100..115 {
            let (version, before) = pair.model();
            pair.hops += 1;
            let address = olaf_samples::address(JOB.0, 0, worker);
            let mut update = olaf_samples::update(address, pair.hops);
            update.hop_sequence = pair.hops;
            (update.version_oldest, update.version_newest) = (version, version);
            pair.gives_server(50, |buf| update.emit(&[1e30], buf)).unwrap();
            let moved = pair.model().1 - before;
            // With a vote for each id the limit grew a hundred times with each turn.
            assert!(moved <= 101.0, "{moved}");
        }
    }
}

#[test]
fn one_address_has_few_workers_and_a_switch_has_many() {
    let mut pair = Pair::joined(plain(Limits::default()));
    let enters = |pair: &mut Pair, from, worker, hops| {
        let join = olaf_samples::join(olaf_samples::address(JOB.0, 0, worker), 1, 2208);
        pair.gives_server(from, |buf| Join { hops, ..join }.emit(buf))
    };
    let full = Err(Refused::TurnedAway(WelcomeCode::Full));
    for worker in 1_000..1_300 {
        let entered = enters(&mut pair, 50, worker, 0);
        assert_eq!(entered, if worker < 1_256 { Ok(()) } else { full }, "{worker}");
        assert_eq!(enters(&mut pair, 51, 5_000 + worker, 1), Ok(()));
    }
    assert_eq!(enters(&mut pair, 50, 1_000, 0), Ok(()), "it is one of them");
}

#[test]
fn nobody_books_more_contributions_than_its_workers_may_carry() {
    let mut pair = Pair::joined(plain(Limits::default()));
    pair.enters(8);
    for contributors in [1025, u32::MAX] {
        let refused = pair.sends(8, 1.0, |update| update.contributors = contributors);
        assert_eq!(refused, Err(Refused::TooManyContributors));
    }
    let job = &pair.server.statistics(pair.now).jobs[0];
    assert_eq!((job.received, job.fates.rejected["too_many_contributors"]), (2, 2));
}

#[test]
fn a_claim_far_above_the_job_s_version_is_not_followed() {
    let mut pair = Pair::joined(plain(Limits::default()));
    pair.enters(8);
    let join = olaf_samples::join(olaf_samples::address(JOB.0, 0, 8), 1, 2208);
    let before = pair.model().0;
    for (ahead, version) in [(65_537, before), (65_536, before + 65_537)] {
        let have_version = before + ahead;
        pair.gives_server(8, |buf| Join { have_version, ..join }.emit(buf)).unwrap();
        assert_eq!(pair.model().0, version);
    }
}

#[test]
fn clusters_that_one_worker_names_are_few_and_forgotten() {
    let mut pair = Pair::joined(plain(Limits::default()));
    pair.enters(8);
    for cluster in 100..5_100 {
        let join = olaf_samples::join(olaf_samples::address(JOB.0, cluster, 8), 1, 2208);
        let _ = pair.gives_server(8, |buf| join.emit(buf));
    }
    let clusters = |pair: &Pair| pair.server.statistics(pair.now).jobs[0].clusters.len();
    assert!(clusters(&pair) <= 10, "{}", clusters(&pair));
    pair.now = pair.now + Duration::from_secs(70);
    pair.server.handle_timeout(pair.now);
    assert!(clusters(&pair) <= 2, "{}", clusters(&pair));
}

#[test]
fn jobs_of_strangers_give_way_to_a_new_one() {
    let mut pair = Pair::joined(ServerConfig { max_jobs: 20, ..plain(Limits::default()) });
    for job in 100..1_100 {
        let join = olaf_samples::join(olaf_samples::address(job, 0, 1), 1, 2208);
        pair.gives_server(job, |buf| join.emit(buf)).unwrap();
    }
    assert!(pair.server.statistics(pair.now).jobs.len() <= 20);
    pair.goes_on();
    pair.now = pair.now + Duration::from_secs(61);
    pair.server.handle_timeout(pair.now);
    pair.server.handle_timeout(pair.now + Duration::from_secs(1));
    assert_eq!(pair.server.statistics(pair.now).jobs.len(), 1, "a job with a model stays");
}

#[test]
fn jobs_that_strangers_left_with_a_model_give_way_and_one_that_was_trained_stays() {
    let mut pair = Pair::joined(ServerConfig { max_jobs: 8, ..plain(Limits::default()) });
    pair.sends(7, 1.0, |_| {}).unwrap();
    let trained = pair.model();
    let comes = |pair: &mut Pair, job| {
        let address = olaf_samples::address(job, 0, 1);
        let join = olaf_samples::join(address, 1, 2208);
        pair.gives_server(job, |buf| join.emit(buf))?;
        pair.gives_server(job, |buf| olaf_samples::offer(address, 1).emit(&[1.0], buf))
    };
    for job in 100..107 {
        comes(&mut pair, job).unwrap();
    }
    let full = Err(Refused::TurnedAway(WelcomeCode::Full));
    assert_eq!(comes(&mut pair, 200), full, "their workers may be at work");
    pair.now = pair.now + Duration::from_secs(3);
    for job in 201..208 {
        comes(&mut pair, job).unwrap();
    }
    assert_eq!(comes(&mut pair, 300), full, "nobody is at work in job 1, but it was trained");
    assert_eq!(pair.model(), trained);
}

#[test]
fn a_join_of_a_huge_model_in_tiny_segments_is_refused() {
    let mut pair = Pair::joined(plain(Limits::default()));
    let join = olaf_samples::join(olaf_samples::address(2, 0, 1), 1 << 28, 1);
    let refused = pair.gives_server(30, |buf| join.emit(buf));
    assert_eq!(refused, Err(Refused::TurnedAway(WelcomeCode::ModelTooLarge)));
}
