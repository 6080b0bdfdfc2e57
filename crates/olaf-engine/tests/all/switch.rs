//! The switch as packet traces, one behaviour a test. After every step each contribution has
//! exactly one fate: `Bench` looks.

use crate::common::*;
use core::time::Duration;
use olaf_engine::drop::DropReason;
use olaf_engine::engine::{Source, Verdict};
use olaf_engine::event::Event;
use olaf_engine::switch::native::{Config, Pacing};
use olaf_engine::{BitsPerSecond, Engine, Instant, PeerId, PortId, Rejection};
use olaf_wire::{Address, Answer, Fetch, JobId, Session, WelcomeCode, WorkerId};

#[test]
fn updates_that_wait_together_leave_as_one_with_sum_and_weight() {
    let mut sw = default();
    assert_eq!(sw.sends(W1, 4, &[1.0, 2.0]), Verdict::Absorb);
    let heavier = olaf_wire::Update { weight: 3.0, reward: 4.0, ..update(W2, 9) };
    assert_eq!(sw.sends_update(W2.source(), &heavier, &[3.0, 4.0]), Verdict::Absorb);
    let (sent, lanes) = one_update(sw.up());
    assert_eq!(lanes, [4.0, 6.0]);
    assert_eq!((sent.contributors, sent.weight, sent.reward), (2, 4.0, 3.0));
    assert_eq!((sent.generated_oldest_ns, sent.generated_newest_ns), (14, 19));
    assert_eq!(sent.hops, 1);
    // It goes by its first contributor's name, in the life of this switch, by its own count.
    assert_eq!(sent.address, Address { session: Session(EPOCH), ..W1.address() });
    assert_eq!((sent.sequence, sent.hop_sequence), (4, 1));
    assert_eq!((sw.fate("merged"), sw.fate("received")), (2, 2));
}

#[test]
fn an_update_from_another_address_than_its_workers_is_no_ones_fault_but_the_senders() {
    let mut sw = default();
    let forged = sw.sends_update(W2.source(), &update(W1, 0), &[1.0, 1.0]);
    assert_eq!(forged, dropped(Rejection::WrongSender));
    let statistics = sw.switch.statistics(sw.now);
    let owner = statistics.workers.iter().find(|worker| worker.worker == 1).unwrap();
    assert_eq!((owner.received, owner.rejected), (0, 0));
    // Nor does it use up the owner's sequence number.
    assert_eq!(sw.sends(W1, 0, &[1.0, 1.0]), Verdict::Absorb);
}

#[test]
fn an_update_of_an_earlier_life_of_its_worker_is_refused() {
    let mut sw = default();
    let old = W { session: 1, ..W1 };
    assert_eq!(sw.sends(old, 0, &[1.0, 1.0]), dropped(Rejection::WrongSender));
}

#[test]
fn an_update_for_another_cluster_than_its_workers_is_refused_and_held_against_the_worker() {
    let mut sw = default();
    assert_eq!(sw.sends(W { cluster: 7, ..W1 }, 0, &[1.0, 1.0]), dropped(Rejection::WrongCluster));
    let statistics = sw.switch.statistics(sw.now);
    let of = |cluster| statistics.clusters.iter().find(|c| c.cluster == cluster).unwrap();
    assert_eq!((of(0).rejected, of(7).rejected), (1, 0));
}

#[test]
fn the_same_update_counts_once() {
    let mut sw = default();
    assert_eq!(sw.sends(W1, 3, &[1.0, 1.0]), Verdict::Absorb);
    assert_eq!(sw.sends(W1, 3, &[1.0, 1.0]), dropped(Rejection::Duplicate));
    sw.up();
    assert_eq!(sw.sends(W1, 3, &[1.0, 1.0]), dropped(Rejection::Duplicate));
    assert!(sw.up().is_empty());
}

#[test]
fn an_update_that_a_newer_one_overtook_is_superseded() {
    let mut sw = default();
    assert_eq!(sw.sends(W1, 3, &[1.0, 1.0]), Verdict::Absorb);
    assert_eq!(sw.sends(W1, 1, &[1.0, 1.0]), dropped(Rejection::Superseded));
    assert_eq!(sw.sends(W1, 4, &[2.0, 2.0]), Verdict::Absorb);
    assert_eq!(one_update(sw.up()).1, [2.0, 2.0]);
    assert_eq!(sw.fate("replaced"), 1);
}

#[test]
fn the_segments_of_one_update_are_taken_each_for_itself() {
    let big = Config { slots: 8, ..Config::default() };
    let mut sw = Bench::new(big);
    sw.joins_with(W1, 5);
    sw.welcomes(olaf_wire::Welcome { parameters: 5, ..welcome(W1, WelcomeCode::Welcome) });
    let segment = |segment| olaf_wire::Update {
        hop_sequence: 1 + segment,
        segment,
        segments: 3,
        ..update(W1, 0)
    };
    for (at, lanes) in [(2, &[9.0][..]), (0, &[1.0, 2.0]), (1, &[3.0, 4.0])] {
        assert_eq!(sw.sends_update(W1.source(), &segment(at), lanes), Verdict::Absorb);
        let again = sw.sends_update(W1.source(), &segment(at), lanes);
        assert_eq!(again, dropped(Rejection::Duplicate));
    }
    // The last segment is shorter, and no segment is of another size or number.
    let newer = |segment, segments| olaf_wire::Update { segment, segments, ..update(W1, 1) };
    for (hop_sequence, (at, of, lanes)) in
        (4..).zip([(2, 3, &[1.0, 2.0][..]), (0, 3, &[1.0]), (3, 4, &[1.0]), (0, 1, &[1.0, 2.0])])
    {
        let newer = olaf_wire::Update { hop_sequence, ..newer(at, of) };
        let refused = sw.sends_update(W1.source(), &newer, lanes);
        assert_eq!(refused, dropped(Rejection::WrongSize), "{at} of {of}");
    }
}

#[test]
fn an_update_that_is_not_finite_is_refused_and_told_once_a_second() {
    let mut sw = default();
    assert_eq!(sw.sends(W1, 0, &[1.0, 1.0]), Verdict::Absorb);
    for sequence in 0..5 {
        assert_eq!(sw.sends(W2, sequence, &[f32::NAN, 1.0]), dropped(Rejection::NonFinite));
    }
    let told = sw.events();
    assert!(
        matches!(told.as_slice(), [Event::ContributionRejected(who, Rejection::NonFinite)] if who.worker.0 == 2),
        "{told:?}"
    );
    // Whose contribution waited is none the worse.
    assert_eq!(one_update(sw.up()).1, [1.0, 1.0]);
    assert_eq!(sw.fate("non_finite"), 5);
}

#[test]
fn a_stranger_is_asked_to_join_again() {
    let mut sw = default();
    let stranger = w(0, 50);
    assert_eq!(sw.sends(stranger, 0, &[1.0, 1.0]), dropped(Rejection::UnknownWorker));
    match sw.down().as_slice() {
        [(PeerId(50), Out::Welcome(told))] => {
            assert_eq!((told.code, told.address), (WelcomeCode::JoinAgain, stranger.address()));
            assert_eq!(told.switch_epoch, EPOCH);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_worker_that_the_server_has_not_let_in_yet_is_no_contributor() {
    let mut sw = Bench::with(Config::default(), &[W2]);
    sw.joins(W1);
    assert_eq!(sw.sends(W1, 0, &[1.0, 1.0]), dropped(Rejection::UnknownWorker));
}

#[test]
fn what_each_worker_sent_is_counted_by_worker() {
    let mut sw = default();
    sw.sends(W1, 0, &[1.0, 1.0]);
    sw.sends_update(
        W1.source(),
        &olaf_wire::Update { contributors: 3, ..update(W1, 1) },
        &[1.0, 1.0],
    );
    sw.sends(W1, 2, &[f32::NAN, 1.0]);
    sw.sends(W1, 1, &[1.0, 1.0]);
    let statistics = sw.switch.statistics(sw.now);
    let worker = statistics.workers.iter().find(|worker| worker.worker == 1).unwrap();
    assert_eq!((worker.received, worker.rejected, worker.last_sequence), (6, 2, Some(2)));
}

#[test]
fn an_id_in_use_is_refused_while_its_owner_lives_and_free_when_it_is_silent() {
    let mut sw = default();
    let claim = W { session: 9, peer: 60, ..W1 };
    let refused = Verdict::Drop(DropReason::JoinRefused(WelcomeCode::WorkerIdInUse));
    assert_eq!(sw.joins(claim), refused);
    let told = sw.down();
    assert!(
        matches!(told.as_slice(), [(PeerId(60), Out::Welcome(to))] if to.code == WelcomeCode::WorkerIdInUse && to.address == claim.address()),
        "{told:?}"
    );
    assert!(sw.up().is_empty(), "the server is not troubled with it");
    assert_eq!(sw.sends(W1, 0, &[1.0, 1.0]), Verdict::Absorb);
    sw.until(ms(2100));
    sw.enters(claim);
    assert_eq!(sw.sends(claim, 0, &[1.0, 1.0]), Verdict::Absorb);
}

#[test]
fn a_worker_may_go_on_from_another_address() {
    let mut sw = default();
    let moved = W { peer: 61, ..W1 };
    // While it is heard where it was, a join with its session is a replay.
    let refused = Verdict::Drop(DropReason::JoinRefused(WelcomeCode::WorkerIdInUse));
    assert_eq!(sw.joins(moved), refused);
    assert_eq!(sw.sends(W1, 0, &[1.0, 1.0]), Verdict::Absorb);
    sw.until(ms(2100));
    sw.down();
    sw.events();
    assert_eq!(sw.joins(moved), Verdict::Absorb);
    assert!(matches!(sw.events().as_slice(), [Event::WorkerMoved(who)] if who.peer == PeerId(61)));
    assert_eq!(sw.sends(moved, 1, &[1.0, 1.0]), Verdict::Absorb);
    assert_eq!(sw.sends(W1, 2, &[1.0, 1.0]), dropped(Rejection::WrongSender));
}

#[test]
fn a_refusal_of_the_server_reaches_the_worker_and_forgets_it() {
    let mut sw = Bench::new(Config::default());
    sw.joins(W1);
    sw.up();
    sw.welcomes(welcome(W1, WelcomeCode::WrongModelSize));
    let told = sw.down();
    assert!(
        matches!(told.as_slice(), [(PeerId(1), Out::Welcome(to))] if to.code == WelcomeCode::WrongModelSize)
    );
    assert!(!sw.keeps(PeerId(1)));
}

#[test]
fn joins_that_cannot_be_are_refused_by_the_switch_itself() {
    let mut sw =
        Bench::with(Config { max_parameters: 10, max_workers: 1, ..Config::default() }, &[W1]);
    let refused = |code| Verdict::Drop(DropReason::JoinRefused(code));
    assert_eq!(sw.joins_with(W2, 11), refused(WelcomeCode::ModelTooLarge));
    assert_eq!(sw.joins(W2), refused(WelcomeCode::Full));
    let mut nowhere = olaf_engine::Switch::new(Config::default(), 1).unwrap();
    let mut buf = [0; 100];
    let len = join(W1, 2).emit(&mut buf);
    let verdict = nowhere.handle_packet(Instant(0), W1.source(), &buf[..len]);
    assert_eq!(verdict, refused(WelcomeCode::UnknownJob));
}

#[test]
fn a_welcome_is_signed_with_the_switchs_life() {
    let mut sw = Bench::new(Config::default());
    sw.joins(W1);
    sw.welcomes(welcome(W1, WelcomeCode::Welcome));
    let expected = olaf_wire::Welcome { switch_epoch: EPOCH, ..welcome(W1, WelcomeCode::Welcome) };
    assert_eq!(sw.down(), [(PeerId(1), Out::Welcome(expected))]);
}

#[test]
fn what_is_not_ours_goes_up_untouched_where_a_list_names_its_sender() {
    let mut sw = default();
    sw.switch.pass_on_from(PeerId(1));
    let foreign = Verdict::Drop(DropReason::Foreign);
    for bytes in [&b""[..], b"OLA", b"GET / HTTP/1.1\r\n", &[0xff; 1500]] {
        assert_eq!(sw.recv(W2.source(), bytes), foreign);
        assert_eq!(sw.recv(Source::new(PortId::UPLINK, SERVER), bytes), foreign);
        assert!(sw.up().is_empty() && sw.down().is_empty());
        assert_eq!(sw.recv(W1.source(), bytes), Verdict::Absorb);
        assert_eq!(sw.up(), [(SERVER, Out::Other(bytes.to_vec()))]);
    }
    assert_eq!(sw.switch.statistics(sw.now).forwarded.untouched, 4);
    assert_eq!(sw.refused("foreign"), 8);
}

#[test]
fn messages_in_the_wrong_direction_are_dropped() {
    let mut sw = default();
    let mut buf = vec![0; 200];
    let above = Source::new(PortId::UPLINK, SERVER);
    let len = welcome(W1, WelcomeCode::Welcome).emit(&mut buf);
    assert_eq!(sw.recv(W1.source(), &buf[..len]), Verdict::Drop(DropReason::WrongDirection));
    let len = update(W1, 0).emit(&[1.0, 1.0], &mut buf);
    assert_eq!(sw.recv(above, &buf[..len]), Verdict::Drop(DropReason::WrongDirection));
    assert_eq!(sw.refused("wrong_direction"), 2);
}

#[test]
fn only_the_jobs_server_speaks_for_it() {
    let mut sw = default();
    let other = PeerId(2000);
    let forged = sw.welcomes_from(other, welcome(W1, WelcomeCode::WrongModelSize));
    assert_eq!(forged, Verdict::Drop(DropReason::NotTheServer));
    assert!(sw.keeps(PeerId(1)));
}

#[test]
fn silent_workers_are_noticed_once_and_noticed_again_when_they_are_back() {
    let mut sw = default();
    sw.until(ms(1500));
    sw.joins(W2);
    sw.welcomes(welcome(W2, WelcomeCode::Welcome));
    sw.until(ms(2200));
    let silent: Vec<u32> = sw
        .events()
        .iter()
        .filter_map(
            |event| if let Event::WorkerSilent(who) = event { Some(who.worker.0) } else { None },
        )
        .collect();
    assert_eq!(silent, [1, 3, 11]);
    sw.until(ms(2400));
    assert!(sw.events().is_empty());
    sw.joins(W1);
    assert!(matches!(sw.events().as_slice(), [Event::WorkerBack(who)] if who.worker.0 == 1));
}

#[test]
fn a_silent_server_is_noticed_and_its_workers_are_told_when_they_ask() {
    let mut sw = default();
    sw.sends(W1, 0, &[1.0, 1.0]);
    sw.up();
    sw.until(ms(900));
    sw.joins(W1);
    assert!(sw.down().is_empty(), "not silent yet");
    // Told before it counts as silent, so that a worker does not take the switch for dead as well.
    sw.until(ms(1100));
    sw.joins(W1);
    let told = sw.down();
    assert!(
        matches!(told.as_slice(), [(PeerId(1), Out::Welcome(to))] if to.code == WelcomeCode::ServerSilent && to.silent_ms >= 1000),
        "{told:?}"
    );
    sw.until(ms(2100));
    assert!(sw.events().iter().any(|e| matches!(e, Event::ServerSilent(JobId(JOB), SERVER))));
    sw.joins(W1);
    let told = sw.down();
    assert!(
        matches!(told.as_slice(), [(PeerId(1), Out::Welcome(to))] if to.code == WelcomeCode::ServerSilent && to.silent_ms >= 2000),
        "{told:?}"
    );
    sw.welcomes(welcome(W1, WelcomeCode::Welcome));
    assert!(sw.events().iter().any(|e| matches!(e, Event::ServerBack(..))));
}

#[test]
fn a_server_that_nobody_asks_anything_owes_no_sign_of_life() {
    let mut sw = default();
    sw.until(ms(60_000));
    assert!(!sw.events().iter().any(|e| matches!(e, Event::ServerSilent(..))));
}

#[test]
fn a_servers_new_life_is_told_and_its_old_debts_are_forgotten() {
    let mut sw = default();
    sw.sends(W1, 0, &[1.0, 1.0]);
    sw.up();
    let reborn = olaf_wire::Welcome { epoch: 1234, ..welcome(W2, WelcomeCode::Welcome) };
    sw.welcomes(reborn);
    assert!(matches!(sw.events().as_slice(), [Event::ServerRestarted(JobId(JOB), SERVER)]));
    sw.down();
    // The new life answers the next update, which is W2's: W1's was lost with the old one.
    sw.sends(W2, 0, &[1.0, 1.0]);
    let (sent, _) = one_update(sw.up());
    sw.answers(Answer { epoch: 1234, ..answer(0, sent.hop_sequence) }, &[]);
    let heard: Vec<u32> = answers(sw.down()).into_iter().map(|(peer, _)| peer).collect();
    assert_eq!(heard, [2]);
}

#[test]
fn a_welcome_for_an_earlier_life_of_a_worker_lets_nobody_in() {
    let mut sw = Bench::with(Config::default(), &[W2]);
    sw.joins(W1);
    let late = W { session: 1, ..W1 };
    let verdict = sw.welcomes(welcome(late, WelcomeCode::Welcome));
    assert_eq!(verdict, Verdict::Drop(DropReason::UnknownReceiver));
    assert!(sw.down().is_empty());
    assert_eq!(sw.sends(W1, 0, &[1.0, 1.0]), dropped(Rejection::UnknownWorker));
}

#[test]
fn a_worker_that_leaves_is_gone_and_the_server_hears_it() {
    let mut sw = default();
    assert_eq!(sw.leaves(W1), Verdict::Absorb);
    assert!(
        matches!(sw.up().as_slice(), [(SERVER, Out::Leave(leave))] if leave.address == W1.address())
    );
    assert_eq!(sw.sends(W1, 0, &[1.0, 1.0]), dropped(Rejection::UnknownWorker));
    assert_eq!(sw.leaves(W { peer: 9, ..W2 }), Verdict::Drop(DropReason::UnknownReceiver));
}

#[test]
fn several_jobs_share_the_slots_and_nothing_else() {
    let other_server = PeerId(1001);
    let mut sw = Bench::new(Config { slots: 2, ..Config::default() });
    sw.switch.set_server(JobId(2), other_server);
    // The same worker and cluster numbers in two jobs.
    let (mine, other) = (w(0, 1), W { job: 2, peer: 31, session: 8, ..w(0, 1) });
    sw.enters(mine);
    sw.enters(other);
    sw.enters(V1);
    sw.sends(mine, 0, &[1.0, 1.0]);
    sw.sends(other, 0, &[2.0, 2.0]);
    // Both slots are taken now, one by each job.
    assert_eq!(sw.sends(V1, 0, &[3.0, 3.0]), Verdict::Drop(DropReason::QueueFull));
    let mut sent = sw.up();
    sent.sort_by_key(|(server, _)| *server);
    let of = |out: &Out| {
        if let Out::Update(u, l) = out {
            (u.address.job.0, u.hop_sequence, l.clone())
        } else {
            panic!("{out:?}")
        }
    };
    assert_eq!((sent[0].0, of(&sent[0].1)), (SERVER, (1, 1, vec![1.0, 1.0])));
    assert_eq!((sent[1].0, of(&sent[1].1)), (other_server, (2, 1, vec![2.0, 2.0])));
}

#[test]
fn a_job_that_sends_much_takes_no_other_jobs_slots_and_no_other_jobs_time() {
    // 104 bytes a datagram: 104 us at 8 Mbit/s.
    let pacing = Pacing::Rate(BitsPerSecond::parse("8mbit").unwrap());
    let mut sw = Bench::new(Config { slots: 4, ..Config::default().paced(pacing) });
    let flood: Vec<W> =
        (0..8).map(|of| W { job: 2, peer: 31, session: 8, ..w(of, 50 + of) }).collect();
    for who in [W1].into_iter().chain(flood.clone()) {
        sw.joins(who);
        sw.now = sw.now + Duration::from_millis(1);
        sw.up();
        sw.welcomes(welcome(who, WelcomeCode::Welcome));
    }
    let (mut own, mut others) = (0, 0);
    for round in 0..200 {
        // Eight updates of eight clusters, and two datagrams that are no updates.
        for who in &flood {
            sw.sends(*who, round, &[2.0, 2.0]);
            sw.fetches(*who);
        }
        let verdict = sw.sends(W1, round, &[1.0, 1.0]);
        assert_eq!(verdict, Verdict::Absorb, "round {round}");
        sw.now = sw.now + Duration::from_micros(208);
        for (_, out) in sw.up() {
            match out {
                Out::Update(update, _) if update.address.job.0 == 1 => own += 1,
                _ => others += 1,
            }
        }
    }
    assert!(own >= 180, "{own} of 200, and {others} of the others");
    assert!(others >= 150, "{others}");
}

#[test]
fn what_is_kept_for_a_job_goes_with_the_job() {
    let mut sw = Bench::with(Config::default(), &[W { job: 2, ..w(0, 1) }, W1]);
    sw.sends(W { job: 2, ..w(0, 1) }, 0, &[2.0, 2.0]);
    sw.up();
    assert_eq!(sw.switch.statistics(sw.now).queue.slots, 8);
    sw.until(ms(200_000));
    assert!(sw.switch.statistics(sw.now).clusters.is_empty());
    assert_eq!(sw.switch.statistics(sw.now).queue.slots, 8, "slots are those of all jobs");
}

impl Bench {
    fn fetches(&mut self, who: W) {
        let fetch =
            Fetch { address: who.address(), version: 0, first: 0, mask: 1, have_version: 0 };
        let mut buf = [0; 128];
        let len = fetch.emit(&mut buf);
        self.recv(who.source(), &buf[..len]);
    }
}

#[test]
fn control_goes_ahead_of_updates() {
    let mut sw = default();
    sw.sends(W1, 0, &[1.0, 1.0]);
    sw.joins(W2);
    let sent = sw.up();
    assert!(matches!(sent.as_slice(), [(_, Out::Join(_)), (_, Out::Update(..))]), "{sent:?}");
}

#[test]
fn on_a_paced_uplink_updates_leave_at_its_rate_and_merge_meanwhile() {
    // 104 bytes a datagram: 104 us at 8 Mbit/s.
    let pacing = Pacing::Rate(BitsPerSecond::parse("8mbit").unwrap());
    let mut sw = Bench::new(Config::default().paced(pacing));
    for who in [W1, W2, W3] {
        sw.joins(who);
        sw.now = sw.now + Duration::from_millis(1);
        sw.up();
        sw.welcomes(welcome(who, WelcomeCode::Welcome));
    }
    let start = sw.now;
    sw.switch.handle_timeout(start);
    sw.sends(W1, 0, &[1.0, 1.0]);
    assert!(sw.up().is_empty());
    sw.sends(W2, 0, &[2.0, 2.0]);
    sw.sends(W3, 0, &[4.0, 4.0]);
    assert_eq!(sw.switch.poll_timeout().unwrap().0, start + Duration::from_micros(104));
    sw.now = start + Duration::from_nanos(103_999);
    assert!(sw.up().is_empty());
    sw.now = start + Duration::from_micros(104);
    assert_eq!(one_update(sw.up()).1, [1.0, 1.0]);
    sw.now = start + Duration::from_micros(208);
    assert_eq!(one_update(sw.up()).1, [6.0, 6.0]);
}

#[test]
fn on_an_uplink_of_credits_updates_wait_for_acknowledgements_and_merge_meanwhile() {
    let pacing = Pacing::Credits { credits: 1, timeout: Duration::from_millis(500) };
    let mut sw = Bench::with(Config::default().paced(pacing), &[W1, W2, W3]);
    sw.sends(W1, 0, &[1.0, 1.0]);
    let (first, _) = one_update(sw.up());
    sw.sends(W2, 0, &[2.0, 2.0]);
    assert!(sw.up().is_empty());
    sw.sends(W3, 0, &[4.0, 4.0]);
    sw.answers(answer(0, first.hop_sequence), &[]);
    let (second, lanes) = one_update(sw.up());
    assert_eq!((second.contributors, lanes), (2, vec![6.0, 6.0]));
    // Nobody acknowledges this one: the credit comes back by itself.
    sw.sends(W1, 1, &[8.0, 8.0]);
    sw.until(ms(499));
    assert!(sw.up().is_empty());
    sw.until(ms(500));
    assert_eq!(one_update(sw.up()).1, [8.0, 8.0]);
}

#[test]
fn a_worker_for_all_is_no_worker() {
    let mut sw = Bench::new(Config::default());
    let all = W { worker: WorkerId::ALL.0, ..W1 };
    assert!(matches!(sw.joins(all), Verdict::Drop(DropReason::Malformed(_))));
}
