//! What a stranger or a faulty worker may send: nothing of it lasts, and each is counted and named.

use crate::common::*;
use core::time::Duration;
use olaf_engine::drop::DropReason;
use olaf_engine::engine::{Source, Verdict};
use olaf_engine::event::Event;
use olaf_engine::party::{Limits, Tenant, Tenants};
use olaf_engine::switch::native::{Config, Pacing};
use olaf_engine::{BitsPerSecond, Engine, Instant, JobId, PeerId, PortId, Rejection};
use olaf_wire::{
    Address, Answer, ClusterId, Ends, Join, Session, Update, Welcome, WelcomeCode, WorkerId,
};

/// Lets updates wait, so that they merge.
fn slow() -> Config {
    Config::default().paced(Pacing::Rate(BitsPerSecond::new(1_000_000).unwrap()))
}

fn clusters(sw: &Bench) -> usize {
    sw.switch.statistics(sw.now).clusters.len()
}

impl Bench {
    fn joins_cluster(&mut self, who: W, cluster: u32, sent_at_ns: u64) -> Verdict {
        let named = Join { sent_at_ns, ..join(W { cluster, ..who }, PARAMETERS) };
        let mut buf = [0; 256];
        let len = named.emit(&mut buf);
        self.recv(who.source(), &buf[..len])
    }
}

#[test]
fn a_worker_that_names_a_new_cluster_each_time_leaves_none_behind() {
    let mut sw = default();
    let before = clusters(&sw);
    for cluster in 100..10_100 {
        sw.joins_cluster(W1, cluster, u64::from(cluster));
    }
    assert!(clusters(&sw) <= before + 9, "{} clusters", clusters(&sw));
    assert!(sw.refused("too_often") > 9_900);
    let told = sw.events().len();
    assert!(told <= 16, "{told} lines");
    // Nothing was heard of them, so that nothing has to be remembered of them.
    sw.until(ms(200));
    assert!(clusters(&sw) <= before + 1, "{} clusters", clusters(&sw));
    // It moves again when it has waited.
    sw.until(ms(1_500));
    assert_eq!(sw.joins_cluster(W1, 0, 20_000), Verdict::Absorb);
    assert_eq!(sw.sends(W1, 1, &[1.0, 1.0]), Verdict::Absorb);
}

#[test]
fn workers_that_come_and_go_are_not_remembered_for_ever() {
    let mut sw = default();
    let many = 100..2_600;
    for worker in many.clone() {
        let who = w(0, worker);
        sw.enters(who);
        sw.sends(who, 1, &[1.0, 1.0]);
        sw.up();
        sw.leaves(who);
    }
    sw.until(ms(200));
    let arrivals = sw.switch.statistics(sw.now).arrivals;
    assert!(arrivals.hops.len() < 1_050, "{} senders", arrivals.hops.len());
    assert_eq!(arrivals.totals.datagrams, many.len() as u64);
    assert_eq!(arrivals.totals.forgotten, many.len() as u64 - arrivals.hops.len() as u64);
}

#[test]
fn a_cluster_that_was_heard_is_forgotten_when_it_is_gone() {
    let mut sw = default();
    sw.sends(V1, 0, &[1.0, 1.0]);
    sw.up();
    sw.leaves(V1);
    sw.until(ms(59_000));
    assert!(sw.switch.statistics(sw.now).clusters.iter().any(|cluster| cluster.cluster == 7));
    sw.until(ms(61_000));
    assert!(sw.switch.statistics(sw.now).clusters.is_empty());
    assert_eq!(sw.fate("received"), 1, "the sum of all keeps it");
}

#[test]
fn one_who_poses_as_a_switch_books_no_more_than_its_workers_may_carry() {
    let mut sw = default();
    let posed = W { peer: 90, ..w(0, 21) };
    sw.enters_behind(posed);
    for (number, contributors) in [(1, u32::MAX), (2, 4_000_000_000), (3, 1025)] {
        let merge = Update { hops: 1, contributors, hop_sequence: number, ..update(posed, number) };
        let verdict = sw.sends_update(posed.source(), &merge, &[1.0, 1.0]);
        assert_eq!(verdict, dropped(Rejection::TooManyContributors));
    }
    assert_eq!((sw.fate("received"), sw.fate("too_many_contributors")), (3, 3));
    let named = |event: &Event| matches!(event, Event::ContributionRejected(who, Rejection::TooManyContributors) if who.peer == PeerId(90));
    assert!(sw.events().iter().any(named));
    // Two workers behind it may carry twice as much.
    sw.enters_behind(W { peer: 90, ..w(0, 22) });
    let merge = Update { hops: 1, contributors: 2048, hop_sequence: 4, ..update(posed, 4) };
    assert_eq!(sw.sends_update(posed.source(), &merge, &[1.0, 1.0]), Verdict::Absorb);
}

#[test]
fn joins_of_one_peer_keep_no_other_jobs_out() {
    let mut sw = Bench::new(Config { max_jobs: 40, ..Config::default() });
    for job in 100..1_124 {
        sw.joins(W { job, peer: 90, ..W1 });
    }
    let full = Verdict::Drop(DropReason::JoinRefused(WelcomeCode::Full));
    assert_eq!(sw.joins(W { job: 2_000, peer: 90, ..W1 }), full);
    sw.enters(W2);
    assert_eq!(sw.sends(W2, 0, &[1.0, 1.0]), Verdict::Absorb);
}

#[test]
fn joins_of_many_peers_give_way_to_a_new_job_and_are_soon_forgotten() {
    let mut sw = Bench::new(Config { max_jobs: 40, ..Config::default() });
    sw.enters(W2);
    for peer in 100..1_124 {
        sw.joins(W { job: peer, peer, ..W1 });
    }
    assert_eq!(sw.sends(W2, 0, &[1.0, 1.0]), Verdict::Absorb, "a job with a model stays");
    sw.enters(W { job: 7_000, ..w(0, 5) });
    sw.until(ms(10_300));
    let jobs = sw.switch.statistics(sw.now).servers.len();
    assert_eq!(jobs, 2, "the others came to nothing");
}

#[test]
fn worker_ids_of_one_peer_take_no_room_of_others() {
    let mut sw = Bench::new(Config { max_workers: 1000, ..Config::default() });
    for worker in 100..1_200 {
        sw.joins(W { worker, peer: 90, ..W1 });
    }
    assert_eq!(sw.switch.statistics(sw.now).workers.len(), 256);
    sw.enters(W2);
}

#[test]
fn a_forged_answer_with_a_new_life_of_the_server_changes_nothing() {
    let mut sw = default();
    sw.sends(W1, 0, &[1.0, 1.0]);
    let (sent, _) = one_update(sw.up());
    let forged = Answer { epoch: 666, ..answer(0, sent.hop_sequence) };
    for _ in 0..100 {
        assert_eq!(sw.answers(forged, &[9.0, 9.0]), Verdict::Drop(DropReason::UnknownEpoch));
    }
    // The workers are asked once, so that the server says whether it restarted.
    let asked = sw.down();
    assert_eq!(asked.len(), 4, "{asked:?}");
    assert!(sw.events().is_empty());
    assert_eq!(sw.answers(answer(0, sent.hop_sequence), &[2.0, 2.0]), Verdict::Absorb);
    assert_eq!(answers(sw.down()).len(), 1, "the true answer finds its worker");
    // A welcome is believed where it answers a join, and only there.
    let forged = olaf_wire::Welcome {
        epoch: 666,
        echoed_sent_at_ns: 1,
        ..welcome(W1, WelcomeCode::Welcome)
    };
    assert_eq!(sw.welcomes(forged), Verdict::Drop(DropReason::UnknownEpoch));
    sw.joins(W1);
    let believed = olaf_wire::Welcome { epoch: 667, ..welcome(W1, WelcomeCode::Welcome) };
    assert_eq!(sw.welcomes(believed), Verdict::Absorb);
    assert!(matches!(sw.events().as_slice(), [Event::ServerRestarted(..)]));
}

/// A life of the server, as the answer to a join of that time would name it.
fn life(epoch: u32, echoed_sent_at_ns: u64) -> olaf_wire::Welcome {
    olaf_wire::Welcome { epoch, echoed_sent_at_ns, ..welcome(W1, WelcomeCode::Welcome) }
}

#[test]
fn a_late_answer_is_believed_although_joins_followed_and_a_forged_one_is_not() {
    let mut sw = default();
    let unknown = Verdict::Drop(DropReason::UnknownEpoch);
    // On a slow uplink the worker repeats its join many times before the first answer is here.
    for sent_at_ns in 1_001..=1_064 {
        assert_eq!(sw.joins_cluster(W1, W1.cluster, sent_at_ns), Verdict::Absorb);
    }
    for never_asked in [0, 1, 1_000, 1_065, u64::MAX] {
        assert_eq!(sw.welcomes(life(666, never_asked)), unknown, "{never_asked}");
    }
    // The switch above speaks for itself, ahead of the server's answers.
    let own_word = olaf_wire::Welcome { code: WelcomeCode::ServerSilent, ..life(0, 1_064) };
    assert_eq!(sw.welcomes(own_word), Verdict::Absorb);
    assert!(sw.events().is_empty());
    assert_eq!(sw.welcomes(life(667, 1_001)), Verdict::Absorb);
    assert!(matches!(sw.events().as_slice(), [Event::ServerRestarted(..)]));
    // An answer ends what came before it: the life before names itself no more.
    assert_eq!(sw.welcomes(life(667, 1_030)), Verdict::Absorb);
    assert_eq!(sw.welcomes(life(668, 1_029)), unknown);
    assert_eq!(sw.welcomes(life(668, 1_030)), Verdict::Absorb, "an answer of that join, again");
}

#[test]
fn a_flood_of_joins_is_remembered_up_to_a_limit() {
    let mut sw = default();
    for sent_at_ns in 1..=10_000 {
        sw.joins_cluster(W1, W1.cluster, sent_at_ns);
    }
    let unknown = Verdict::Drop(DropReason::UnknownEpoch);
    assert_eq!(sw.welcomes(life(666, 10_000 - 64)), unknown);
    assert_eq!(sw.welcomes(life(666, 10_000 - 63)), Verdict::Absorb);
}

#[test]
fn one_update_of_huge_numbers_is_clipped_and_named_before_it_merges() {
    for (lanes, weight, reward) in [
        ([1e30, 1e30], 1.0, 0.0),
        ([1.0, 1.0], 1e300, 0.0),
        ([1.0, 1.0], 1.0, 1e30),
        ([1e30, 1e30], 1e300, -1e30),
    ] {
        let mut sw = Bench::with(slow(), &[W1, W2, W3, V1]);
        for (who, number) in [(V1, 0), (W1, 0), (W2, 0)] {
            sw.sends(who, number, &[1.0, 1.0]);
        }
        let bad = Update { weight, reward, ..update(W3, 0) };
        assert_eq!(sw.sends_update(W3.source(), &bad, &lanes), Verdict::Absorb);
        let counts = sw.switch.statistics(sw.now);
        let named: Vec<_> =
            counts.workers.iter().map(|worker| (worker.worker, worker.clipped)).collect();
        assert_eq!(named, [(1, 0), (2, 0), (3, 1), (11, 0)]);
        let said = sw.events();
        assert!(
            said.iter()
                .any(|e| matches!(e, Event::ContributionClipped(who, _) if who.worker.0 == 3)),
            "{said:?}"
        );
        sw.until(ms(1_000));
        let left = sw.up();
        for (_, out) in &left {
            let Out::Update(update, lanes) = out else { panic!("{out:?}") };
            assert!(lanes.iter().all(|lane| lane.abs() <= 105.0), "{lanes:?}");
            assert!(update.weight <= 103.0 && update.reward.abs() <= 101.0, "{update:?}");
        }
        assert!(!left.is_empty());
    }
}

#[test]
fn numbers_that_are_none_are_refused_and_change_no_limit() {
    let mut sw = Bench::with(slow(), &[W1, W2, W3]);
    for (number, lane, reward) in [(0, f32::NAN, 0.0), (1, f32::INFINITY, 0.0), (2, 1.0, f64::NAN)]
    {
        let bad = Update { reward, ..update(W3, number) };
        let verdict = sw.sends_update(W3.source(), &bad, &[lane, 1.0]);
        assert_eq!(verdict, dropped(Rejection::NonFinite));
    }
    assert_eq!(sw.sends(W1, 0, &[1.0, 1.0]), Verdict::Absorb);
    assert_eq!(sw.sends(W2, 0, &[2.0, 2.0]), Verdict::Absorb);
    let clipped = sw.switch.statistics(sw.now).clipped;
    assert_eq!((clipped.norm, clipped.weight, clipped.reward), (0, 0, 0));
}

#[test]
fn without_limits_an_update_leaves_as_it_came() {
    let mut sw = Bench::with(Config { limits: Limits::OFF, ..Config::default() }, &[W1, W2]);
    sw.sends(W1, 0, &[1.0, 1.0]);
    sw.up();
    sw.sends(W2, 0, &[1e30, 1.0]);
    assert_eq!(one_update(sw.up()).1, [1e30, 1.0]);
}

#[test]
fn an_answer_for_a_cluster_without_workers_makes_no_cluster() {
    let mut sw = default();
    let before = clusters(&sw);
    for cluster in 1_000..2_000 {
        let forged = answer(cluster, 1);
        assert_eq!(forged.address.cluster, ClusterId(cluster));
        assert_eq!(sw.answers(forged, &[1.0, 1.0]), Verdict::Drop(DropReason::UnknownReceiver));
    }
    assert_eq!(clusters(&sw), before);
}

#[test]
fn a_flood_of_foreign_datagrams_leaves_by_no_port() {
    let mut sw = default();
    let stranger = Source::new(PortId::DOWNLINK, PeerId(4_000));
    for _ in 0..1_000 {
        assert_eq!(sw.recv(stranger, b"GET / HTTP/1.1"), Verdict::Drop(DropReason::Foreign));
    }
    let mut buf = [0; 2048];
    for port in (0..sw.switch.ports()).map(PortId) {
        assert!(sw.switch.poll_transmit(sw.now, port, &mut buf).is_none());
    }
    assert_eq!(sw.refused("foreign"), 1_000);
}

#[test]
fn a_job_takes_no_more_than_its_limits_and_one_that_is_not_listed_nothing() {
    let limits = Tenant { max_parameters: Some(4), max_workers: Some(2), max_clusters: Some(2) };
    let tenants = Tenants::only([(JobId(1), limits), (JobId(2), Tenant::default())]);
    let mut sw = Bench::new(Config { tenants, ..Config::default() });
    let refused = |code| Verdict::Drop(DropReason::JoinRefused(code));
    sw.enters(w(0, 21));
    // Other clusters, named by a worker that is in and by others.
    assert_eq!(sw.joins(w(1, 21)), Verdict::Absorb);
    assert_eq!(sw.joins(w(2, 21)), refused(WelcomeCode::TooManyClusters));
    assert_eq!(sw.joins(w(2, 22)), refused(WelcomeCode::TooManyClusters));
    sw.enters(w(0, 22));
    assert_eq!(sw.joins(w(0, 23)), refused(WelcomeCode::JobFull));
    let named = |event: &Event| matches!(event, Event::WorkerRefused(who, WelcomeCode::JobFull) if who.worker == WorkerId(23));
    assert!(sw.events().iter().any(named));
    // Another job has limits of its own, and one that is not listed is not served.
    sw.joins(W { job: 2, ..w(5, 24) });
    assert_eq!(sw.joins(W { job: 3, ..w(0, 25) }), refused(WelcomeCode::UnknownJob));
    let counted = ["too_many_clusters", "job_full", "unknown_job"].map(|name| sw.refused(name));
    assert_eq!(counted, [2, 1, 1]);
    // Who leaves makes room.
    sw.leaves(w(0, 22));
    assert_eq!(sw.joins(w(0, 23)), Verdict::Absorb);
}

#[test]
fn a_model_larger_than_its_job_may_have_is_refused() {
    let limits = Tenant { max_parameters: Some(1), ..Tenant::default() };
    let tenants = Tenants::only([(JobId(1), limits)]);
    let mut sw = Bench::new(Config { tenants, ..Config::default() });
    let refused = Verdict::Drop(DropReason::JoinRefused(WelcomeCode::ModelTooLarge));
    assert_eq!(sw.joins(w(0, 21)), refused, "the bench's models have two parameters");
    assert!(sw.up().is_empty());
}

#[test]
fn one_who_poses_as_a_switch_has_no_vote_in_the_name_of_the_workers_of_others() {
    let mut sw = Bench::with(slow(), &[]);
    let leaf = |worker| W { peer: 50, ..w(0, worker) };
    let posed = W { peer: 90, ..w(7, 90) };
    for who in [leaf(1), leaf(2), leaf(3), posed] {
        sw.enters_behind(who);
    }
    let sent_by = |who: W, first: u32, number| Update {
        address: Address {
            worker: WorkerId(first),
            session: Session(9_000 + who.peer),
            ..who.address()
        },
        hops: 1,
        hop_sequence: number,
        ..update(who, number)
    };
    for worker in 1..4 {
        sw.sends_update(leaf(1).source(), &sent_by(leaf(1), worker, worker), &[1.0, 1.0]);
    }
    // With the votes of the three its limit would grow a hundred times with each turn.
    for turn in 0..6 {
        let named = 1 + turn % 3;
        sw.sends_update(posed.source(), &sent_by(posed, named, 1 + turn), &[1e30, 1e30]);
    }
    let mut means = Vec::new();
    for _ in 0..100 {
        sw.until(Instant(sw.now.0 + 10_000_000));
        means.extend(sw.up().into_iter().filter_map(|(_, out)| match out {
            Out::Update(update, lanes) => Some(lanes[0] / update.weight as f32),
            _ => None,
        }));
    }
    assert!(!means.is_empty() && means.iter().all(|mean| *mean <= 101.0), "{means:?}");
    assert_eq!(sw.switch.statistics(sw.now).clipped.norm, 6);
}

#[test]
fn a_new_life_of_the_switch_above_is_believed_of_an_answer_to_a_join_only() {
    let mut sw = default();
    sw.joins(W1);
    sw.up();
    let of_life = |life, echoed_sent_at_ns| Welcome {
        switch_epoch: life,
        echoed_sent_at_ns,
        ..welcome(W1, WelcomeCode::Welcome)
    };
    assert_eq!(sw.welcomes(of_life(7, 5)), Verdict::Absorb);
    sw.down();
    for life in 100..200 {
        sw.welcomes(of_life(life, 1));
    }
    assert!(sw.events().is_empty());
    let asked = sw.down().into_iter().filter(
        |(_, out)| matches!(out, Out::Welcome(told) if told.code == WelcomeCode::JoinAgain),
    );
    assert_eq!(asked.count(), 4, "each worker is asked once");
    assert_eq!(sw.welcomes(of_life(8, 5)), Verdict::Absorb);
    assert_eq!(sw.events(), [Event::SwitchRestarted(JobId(JOB), SERVER)]);
}

#[test]
fn a_refusal_that_answers_no_join_puts_nobody_out() {
    let mut sw = default();
    let forged = Welcome { echoed_sent_at_ns: 1, ..welcome(W1, WelcomeCode::NotAdmitted) };
    assert_eq!(sw.welcomes(forged), Verdict::Drop(DropReason::NotAsked));
    assert!(sw.events().is_empty());
    assert_eq!(sw.sends(W1, 0, &[1.0, 1.0]), Verdict::Absorb);
}

#[test]
fn an_answer_that_names_no_life_of_the_server_acknowledges_nothing() {
    let credits = Pacing::Credits { credits: 1, timeout: Duration::from_secs(60) };
    let mut sw = Bench::with(Config::default().paced(credits), &[W1, V1]);
    sw.sends(W1, 0, &[1.0, 1.0]);
    let (sent, _) = one_update(sw.up());
    sw.sends(V1, 0, &[1.0, 1.0]);
    assert!(sw.up().is_empty(), "no credit is left");
    let forged = Answer { epoch: 0, ..answer(0, sent.hop_sequence) };
    let dropped = Verdict::Drop(DropReason::UnknownEpoch);
    assert_eq!(sw.answers(forged, &[]), dropped);
    assert_eq!(sw.answers(forged, &[9.0, 9.0]), dropped);
    let model = Answer { acknowledges: 0, ..forged };
    assert_eq!(sw.answers(model, &[9.0, 9.0]), dropped);
    assert!(sw.up().is_empty() && sw.down().is_empty());
    // The word of a switch about what will not go on says no more than that.
    let said =
        Answer { acknowledges: 0, ends: Ends { newest: 1, delivered: 0, ended: 1 }, ..forged };
    assert_eq!(sw.answers(said, &[]), Verdict::Absorb);
    assert_eq!(sw.answers(answer(0, sent.hop_sequence), &[2.0, 2.0]), Verdict::Absorb);
    assert_eq!(sw.up().len(), 1, "the true answer brings the credit back");
}
