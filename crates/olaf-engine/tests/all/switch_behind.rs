//! Switches behind switches: which may send merges, the names they are known by, the parties asked
//! again after a death, and the end of a circle.

use crate::common::*;
use core::time::Duration;
use olaf_engine::drop::DropReason;
use olaf_engine::engine::{Source, Verdict};
use olaf_engine::event::Event;
use olaf_engine::switch::native::{Config, Pacing};
use olaf_engine::{ClusterId, JobId, PeerId, PortId, Rejection, Session, WorkerId};
use olaf_wire::{Address, Answer, Join, QueueStatus, Update, Welcome, WelcomeCode};

/// The switch below and the life it is in.
const LEAF: u32 = 50;
const LIFE: u32 = 9000;

/// Workers behind it, of one cluster; and one of another.
const A: W = W { peer: LEAF, ..w(0, 21) };
const B: W = W { peer: LEAF, ..w(0, 22) };
const C: W = W { peer: LEAF, ..w(7, 23) };

/// The switch under test, with three workers of its own and three behind the leaf.
fn root() -> Bench {
    root_with(Config::default())
}

fn root_with(config: Config) -> Bench {
    let mut sw = Bench::with(config, &[W1, W2, V1]);
    for who in [A, B, C] {
        sw.enters_behind(who);
    }
    sw
}

/// An update of the leaf with a number of contributions, the first of them that worker's.
fn merged(first: W, hop_sequence: u32, contributors: u32) -> Update {
    let sequence = 1;
    Update {
        address: Address { session: Session(LIFE), ..first.address() },
        hop_sequence,
        contributors,
        weight: f64::from(contributors),
        hops: 1,
        ..update(first, sequence)
    }
}

impl Bench {
    #[track_caller]
    fn merge(&mut self, update: &Update) -> Verdict {
        self.sends_update(A.source(), update, &[1.0, 1.0])
    }

    fn welcomes_by_worker(&mut self) -> Vec<(u32, WelcomeCode, WorkerId)> {
        welcomes(self.down())
    }
}

fn welcomes(out: Vec<(PeerId, Out)>) -> Vec<(u32, WelcomeCode, WorkerId)> {
    out.into_iter()
        .map(|(peer, out)| match out {
            Out::Welcome(welcome) => (peer.0, welcome.code, welcome.address.worker),
            other => panic!("a welcome, not {other:?}"),
        })
        .collect()
}

#[test]
fn a_merge_counts_although_its_first_contributor_has_left_meanwhile() {
    let mut sw = root();
    assert_eq!(sw.leaves(A), Verdict::Absorb);
    sw.up();
    assert_eq!(sw.merge(&merged(A, 1, 3)), Verdict::Absorb);
    assert_eq!(one_update(sw.up()).0.contributors, 3);
    // Nor is it lost when the last of them has left.
    for who in [B, C] {
        sw.leaves(who);
    }
    sw.up();
    assert_eq!(sw.merge(&merged(B, 2, 2)), Verdict::Absorb);
}

#[test]
fn merges_are_told_apart_by_the_count_of_the_switch_that_sends_them() {
    let mut sw = root();
    // By its first contributor's sequence the second would be a repetition.
    assert_eq!(sw.merge(&merged(A, 1, 2)), Verdict::Absorb);
    assert_eq!(sw.merge(&merged(A, 2, 2)), Verdict::Absorb);
    assert_eq!(sw.merge(&merged(A, 2, 2)), dropped(Rejection::Duplicate));
    assert_eq!(sw.merge(&merged(A, 1, 2)), dropped(Rejection::Duplicate));
    // Out of order is not twice.
    assert_eq!(sw.merge(&merged(B, 9, 2)), Verdict::Absorb);
    assert_eq!(sw.merge(&merged(A, 8, 2)), Verdict::Absorb);
    assert_eq!((sw.fate("received"), sw.fate("duplicate")), (12, 4));
    let leaf = &sw.switch.statistics(sw.now).switches[0];
    assert_eq!((leaf.workers, leaf.received, leaf.rejected), (3, 12, 4));
}

#[test]
fn a_new_life_of_the_switch_below_counts_anew_and_is_told() {
    let mut sw = root();
    sw.merge(&merged(A, 1, 2));
    let reborn = |hop_sequence| Update {
        address: Address { session: Session(LIFE + 1), ..A.address() },
        ..merged(A, hop_sequence, 2)
    };
    assert_eq!(sw.merge(&reborn(1)), Verdict::Absorb);
    assert_eq!(sw.events(), [Event::SwitchRestarted(JobId(JOB), PeerId(LEAF))]);
    // What the old life still had on the way is no third life.
    assert_eq!(sw.merge(&merged(A, 2, 2)), Verdict::Absorb);
    assert_eq!(sw.merge(&reborn(2)), Verdict::Absorb);
    assert_eq!(sw.merge(&reborn(1)), dropped(Rejection::Duplicate));
    assert!(sw.events().is_empty());
}

#[test]
fn a_merge_is_never_replaced_and_what_is_merged_into_it_adds_up() {
    let mut sw = root();
    sw.merge(&merged(A, 1, 3));
    // The same worker's newer update, alone: it joins, for the merge holds others' experience.
    sw.merge(&merged(A, 2, 1));
    sw.sends(W1, 0, &[1.0, 1.0]);
    let (sent, lanes) = one_update(sw.up());
    assert_eq!((sent.contributors, sent.weight, sent.hops), (5, 5.0, 2));
    assert_eq!(lanes, [3.0, 3.0]);
    assert_eq!((sent.generated_oldest_ns, sent.generated_newest_ns), (10, 11));
    assert_eq!((sw.fate("merged"), sw.fate("replaced")), (5, 0));
}

#[test]
fn an_unmerged_update_that_a_newer_one_overtook_between_switches_replaces_nothing() {
    let mut sw = root();
    assert_eq!(sw.merge(&merged(A, 6, 1)), Verdict::Absorb);
    assert_eq!(sw.merge(&merged(A, 5, 1)), dropped(Rejection::Superseded));
    assert_eq!(sw.merge(&merged(A, 7, 1)), Verdict::Absorb);
    assert_eq!(sw.fate("replaced"), 1);
}

#[test]
fn a_worker_that_says_its_update_has_passed_a_switch_is_refused_and_counts_as_one() {
    let mut sw = root();
    let claim = Update { hops: 1, contributors: 4000, ..update(W1, 0) };
    let refused = sw.sends_update(W1.source(), &claim, &[1.0, 1.0]);
    assert_eq!(refused, dropped(Rejection::NotASwitch));
    assert_eq!((sw.fate("received"), sw.fate("not_a_switch")), (1, 1));
    let worker = sw.switch.statistics(sw.now).workers.into_iter().find(|w| w.worker == 1).unwrap();
    assert_eq!((worker.received, worker.rejected), (1, 1));
    // Under another's name it is nobody's.
    let forged = sw.sends_update(W1.source(), &merged(A, 1, 3), &[1.0, 1.0]);
    assert_eq!(forged, dropped(Rejection::UnknownWorker));
    assert_eq!(sw.sends(W1, 0, &[1.0, 1.0]), Verdict::Absorb);
}

#[test]
fn a_worker_behind_a_switch_does_not_send_for_itself() {
    let mut sw = root();
    assert_eq!(sw.sends(A, 0, &[1.0, 1.0]), dropped(Rejection::WrongSender));
}

#[test]
fn a_worker_may_carry_what_it_held_back_but_no_more_than_it_can_have() {
    let mut sw = root_with(Config { max_carried: 3, ..Config::default() });
    let carries = |contributors, sequence| Update {
        contributors,
        weight: f64::from(contributors),
        ..update(W1, sequence)
    };
    assert_eq!(sw.sends_update(W1.source(), &carries(3, 2), &[1.0, 1.0]), Verdict::Absorb);
    let refused = sw.sends_update(W1.source(), &carries(4, 3), &[1.0, 1.0]);
    assert_eq!(refused, dropped(Rejection::TooManyContributors));
    assert_eq!((sw.fate("received"), sw.fate("too_many_contributors")), (4, 1));
}

#[test]
fn what_has_passed_too_many_switches_is_refused() {
    let mut sw = root();
    let looping = Update { hops: 16, ..merged(A, 1, 2) };
    assert_eq!(sw.merge(&looping), dropped(Rejection::TooManyHops));
    assert_eq!(sw.merge(&Update { hops: 15, ..merged(A, 2, 2) }), Verdict::Absorb);
}

#[test]
fn a_merge_of_a_cluster_or_size_that_the_job_has_not_is_refused() {
    let mut sw = root();
    let address = Address { cluster: ClusterId(99), ..merged(A, 1, 2).address };
    let nowhere = Update { address, ..merged(A, 1, 2) };
    assert_eq!(sw.merge(&nowhere), dropped(Rejection::WrongCluster));
    let long = sw.sends_update(A.source(), &merged(A, 2, 2), &[1.0, 1.0, 1.0]);
    assert_eq!(long, dropped(Rejection::WrongSize));
    // A number stands for one datagram, and that one came, whatever became of it.
    assert_eq!(sw.merge(&merged(A, 2, 2)), dropped(Rejection::Duplicate));
    assert_eq!(sw.merge(&merged(A, 3, 2)), Verdict::Absorb);
}

#[test]
fn a_switch_below_hears_one_answer_under_its_own_number_and_its_workers_hear_none() {
    let mut sw = root();
    sw.merge(&merged(A, 3, 2));
    sw.merge(&merged(B, 4, 2));
    sw.sends(W1, 8, &[1.0, 1.0]);
    let (sent, _) = one_update(sw.up());
    sw.answers(answer(0, sent.hop_sequence), &[5.0, 6.0]);
    let heard = answers(sw.down());
    let to: Vec<_> =
        heard.iter().map(|(peer, a)| (*peer, a.address.worker, a.acknowledges)).collect();
    assert_eq!(to, [(1, WorkerId(1), 9), (LEAF, WorkerId::ALL, 4)]);
    assert!(heard.iter().all(|(_, a)| a.queue.switches == 1));
}

#[test]
fn an_answer_to_a_whole_cluster_is_one_for_the_switch_that_stands_for_its_part_of_it() {
    let mut sw = root();
    // Of this number nobody knows anything: a new life of the switch.
    sw.answers(answer(0, 41), &[5.0, 6.0]);
    let heard: Vec<_> =
        answers(sw.down()).iter().map(|(peer, a)| (*peer, a.address.worker)).collect();
    assert_eq!(heard, [(1, WorkerId(1)), (2, WorkerId(2)), (LEAF, WorkerId::ALL)]);
}

#[test]
fn an_answer_for_one_worker_finds_its_way_through_the_switch_below() {
    let mut sw = root();
    sw.answers(Answer { address: B.address(), ..answer(0, 0) }, &[5.0, 6.0]);
    let heard = answers(sw.down());
    assert_eq!((heard[0].0, heard[0].1.address), (LEAF, B.address()));
}

#[test]
fn a_switch_that_is_not_known_is_asked_once_for_all_whom_it_sends_for() {
    let mut sw = default();
    assert_eq!(sw.merge(&merged(A, 1, 3)), dropped(Rejection::UnknownWorker));
    assert_eq!(sw.welcomes_by_worker(), [(LEAF, WelcomeCode::JoinAgain, WorkerId::ALL)]);
    assert_eq!((sw.fate("received"), sw.fate("unknown_worker")), (1, 1));
}

/// The switch under test as a leaf: above it another one, in that life.
fn above(who: W, code: WelcomeCode, life: u32) -> Welcome {
    Welcome { switch_epoch: life, ..welcome(who, code) }
}

fn everyone_again(life: u32) -> Welcome {
    let address = Address { job: JobId(JOB), worker: WorkerId::ALL, ..Address::default() };
    Welcome { address, ..above(A, WelcomeCode::JoinAgain, life) }
}

#[test]
fn a_switch_that_is_asked_for_all_asks_each_of_its_own_and_each_switch_below_once() {
    let mut sw = root();
    sw.welcomes(everyone_again(7));
    let again = |peer, worker| (peer, WelcomeCode::JoinAgain, WorkerId(worker));
    let expected = [again(1, 1), again(2, 2), again(11, 11), again(LEAF, u32::MAX)];
    assert_eq!(sw.welcomes_by_worker(), expected);
    // A second question right behind the first brings nothing new; a later one does.
    sw.welcomes(everyone_again(7));
    assert!(sw.welcomes_by_worker().is_empty());
    sw.until(ms(101));
    sw.welcomes(everyone_again(7));
    assert_eq!(sw.welcomes_by_worker().len(), 4);
}

#[test]
fn a_new_life_of_the_switch_above_is_told_and_everyone_joins_again() {
    let mut sw = root();
    sw.welcomes(above(W1, WelcomeCode::Welcome, 7));
    sw.down();
    sw.welcomes(above(W1, WelcomeCode::Welcome, 8));
    assert_eq!(sw.events(), [Event::SwitchRestarted(JobId(JOB), SERVER)]);
    let again =
        sw.welcomes_by_worker().into_iter().filter(|(_, code, _)| *code == WelcomeCode::JoinAgain);
    assert_eq!(again.map(|(peer, ..)| peer).collect::<Vec<_>>(), [1, 2, 11, LEAF]);
    // A late word of the old life is not another one.
    sw.welcomes(above(W1, WelcomeCode::Welcome, 7));
    assert!(sw.events().is_empty());
    assert!(sw.switch.statistics(sw.now).servers[0].is_switch);
}

#[test]
fn a_new_life_of_the_server_has_everyone_join_again_at_once() {
    let mut sw = default();
    sw.welcomes(Welcome { epoch: 1234, ..welcome(W2, WelcomeCode::Welcome) });
    let again =
        sw.welcomes_by_worker().into_iter().filter(|(_, code, _)| *code == WelcomeCode::JoinAgain);
    assert_eq!(again.count(), 4);
}

#[test]
fn a_silent_switch_is_told_by_its_place_below_or_above() {
    let mut sw = root();
    sw.welcomes(above(W1, WelcomeCode::Welcome, 7));
    sw.events();
    sw.until(ms(100));
    sw.joins(W1);
    sw.until(ms(2200));
    let switches = |sw: &mut Bench| -> Vec<Event> {
        let about = |event: &Event| {
            matches!(
                event,
                Event::SwitchSilent(..) | Event::SwitchBack(..) | Event::ServerSilent(..)
            )
        };
        sw.events().into_iter().filter(about).collect()
    };
    let (leaf, upper) = (PeerId(LEAF), SERVER);
    let silent = |peer| Event::SwitchSilent(JobId(JOB), peer);
    assert_eq!(switches(&mut sw), [silent(leaf), silent(upper)]);
    assert!(!sw.switch.statistics(sw.now).switches[0].alive);
    sw.joins_through(A, 1, 99);
    sw.welcomes(above(W1, WelcomeCode::Welcome, 7));
    let back = |peer| Event::SwitchBack(JobId(JOB), peer);
    assert_eq!(switches(&mut sw), [back(leaf), back(upper)]);
}

#[test]
fn a_join_goes_up_with_one_switch_more_behind_it() {
    let mut sw = root();
    sw.joins_through(A, 3, 6);
    let sent = sw.up();
    assert!(matches!(sent.as_slice(), [(SERVER, Out::Join(Join { hops: 4, .. }))]), "{sent:?}");
}

const REFUSED_LOOP: Verdict = Verdict::Drop(DropReason::JoinRefused(WelcomeCode::Loop));

#[test]
fn two_switches_that_have_each_other_above_refuse_and_tell_it() {
    let mut sw = root();
    let bytes = {
        let mut buf = vec![0; 100];
        let len = Join { hops: 1, ..join(w(0, 70), PARAMETERS) }.emit(&mut buf);
        buf.truncate(len);
        buf
    };
    let from_above = Source::new(PortId::UPLINK, SERVER);
    for _ in 0..3 {
        assert_eq!(sw.recv(from_above, &bytes), REFUSED_LOOP);
    }
    assert_eq!(sw.refused("loop"), 3);
    assert_eq!(sw.events(), [Event::Loop(JobId(JOB), SERVER)], "told once a second");
    // Back to where it came from, by the same port; that switch hands it down to the worker.
    assert_eq!(welcomes(sw.up()), [(SERVER.0, WelcomeCode::Loop, WorkerId(70)); 3]);
}

/// Another program took the server's port, and sends back what it gets.
#[test]
fn a_join_that_comes_back_as_it_left_is_no_answer() {
    let mut sw = Bench::new(Config::default());
    assert_eq!(sw.joins_through(W1, 0, 5), Verdict::Absorb);
    let sent = sw.up();
    let [(_, Out::Join(sent))] = sent.as_slice() else { panic!("{sent:?}") };
    let mut buf = vec![0; 100];
    let len = sent.emit(&mut buf);
    let from_above = Source::new(PortId::UPLINK, SERVER);
    let ignored = Verdict::Drop(DropReason::WrongDirection);
    assert_eq!(sw.recv(from_above, &buf[..len]), ignored);
    assert!(sw.up().is_empty());
    assert!(sw.welcomes_by_worker().is_empty(), "its worker is not refused");
    // A switch above would have counted itself.
    let len = Join { hops: sent.hops + 1, ..*sent }.emit(&mut buf);
    assert_eq!(sw.recv(from_above, &buf[..len]), REFUSED_LOOP);
}

#[test]
fn a_join_that_comes_round_is_stopped_where_it_was_first() {
    let mut sw = Bench::new(Config::default());
    assert_eq!(sw.joins_through(W1, 0, 5), Verdict::Absorb);
    sw.up();
    // The last switch of the ring sends it here again.
    let round = W { peer: 80, ..W1 };
    assert_eq!(sw.joins_through(round, 3, 5), REFUSED_LOOP);
    assert!(sw.up().is_empty(), "it does not go round again");
    assert_eq!(sw.events(), [Event::Loop(JobId(JOB), PeerId(80))]);
    assert_eq!(
        sw.welcomes_by_worker(),
        [(1, WelcomeCode::Loop, WorkerId(1))],
        "its worker hears it"
    );
    // The network's repetition of a join is none, and a worker may move behind a switch
    // when it is heard no more where it was.
    assert_eq!(sw.joins_through(W1, 0, 5), Verdict::Absorb);
    sw.until(ms(1999));
    assert_eq!(
        sw.joins_through(round, 3, 6),
        Verdict::Drop(DropReason::JoinRefused(WelcomeCode::WorkerIdInUse))
    );
    sw.now = ms(2000);
    assert_eq!(sw.joins_through(round, 3, 6), Verdict::Absorb);
}

#[test]
fn a_join_that_has_passed_as_many_switches_as_may_be_is_refused() {
    let mut sw = Bench::new(Config { max_hops: 2, ..Config::default() });
    assert_eq!(sw.joins_through(A, 1, 5), Verdict::Absorb);
    assert_eq!(sw.joins_through(B, 2, 5), REFUSED_LOOP);
    assert_eq!(sw.welcomes_by_worker(), [(LEAF, WelcomeCode::Loop, WorkerId(22))]);
}

#[test]
fn behind_another_switch_a_credit_comes_back_only_when_its_own_update_is_answered() {
    let pacing = Pacing::Credits { credits: 2, timeout: Duration::from_secs(3600) };
    let mut sw = Bench::with(Config::default().paced(pacing), &[W1, W2, V1]);
    sw.sends(V1, 0, &[1.0, 1.0]);
    sw.sends(W1, 0, &[1.0, 1.0]);
    assert_eq!(sw.up().len(), 2);
    sw.sends(V1, 1, &[1.0, 1.0]);
    sw.sends(W2, 0, &[1.0, 1.0]);
    assert!(sw.up().is_empty());
    // The switch above sent number 2 on first; number 1, of cluster 7, still waits there.
    let through = QueueStatus { active_clusters: 1, slots: 8, used: 1, switches: 1, round_us: 0 };
    sw.answers(Answer { queue: through, ..answer(0, 2) }, &[]);
    assert_eq!(sw.up().len(), 1, "one answered, one more may go");
    assert_eq!(sw.switch.statistics(sw.now).uplink.outstanding, 2);
    sw.answers(Answer { queue: through, ..answer(7, 1) }, &[]);
    assert_eq!(sw.up().len(), 1);
}

#[test]
fn behind_another_switch_a_worker_is_acknowledged_segment_by_segment() {
    let mut sw = Bench::new(Config::default());
    sw.joins_with(W1, 4);
    sw.up();
    sw.welcomes(Welcome { parameters: 4, ..welcome(W1, WelcomeCode::Welcome) });
    sw.down();
    for segment in 0..2 {
        let part = Update { segment, segments: 2, hop_sequence: segment + 1, ..update(W1, 0) };
        sw.sends_update(W1.source(), &part, &[1.0, 1.0]);
    }
    assert_eq!(sw.up().len(), 2);
    let through = QueueStatus { active_clusters: 1, slots: 8, used: 1, switches: 1, round_us: 0 };
    let of = |segment, acknowledges| Answer {
        segment,
        segments: 2,
        parameters: 4,
        queue: through,
        ..answer(0, acknowledges)
    };
    // The second segment was sent on first; the first waits above.
    sw.answers(of(1, 2), &[]);
    assert_eq!(answers(sw.down()).iter().map(|(_, a)| a.acknowledges).collect::<Vec<_>>(), [2]);
    sw.answers(of(0, 1), &[]);
    assert_eq!(answers(sw.down()).iter().map(|(_, a)| a.acknowledges).collect::<Vec<_>>(), [1]);
}
