//! Asking before a cluster joins: whose join waits for what, and what becomes of it.

use crate::common::*;
use core::time::Duration;
use olaf_engine::drop::DropReason;
use olaf_engine::engine::{Verdict, Why};
use olaf_engine::event::{Event, WorkerSeen};
use olaf_engine::switch::native::{Admission, AdmissionCounts, Config, Ruling};
use olaf_engine::{ClusterId, Engine, JobId, PeerId, WorkerId};
use olaf_wire::WelcomeCode;

const POLICY: Admission = Admission {
    timeout: Duration::from_millis(300),
    unanswered: Ruling::Refuse,
    refused_for: Duration::from_millis(1000),
    max_questions: 4,
};
const REFUSED: Verdict = Verdict::Drop(DropReason::JoinRefused(WelcomeCode::NotAdmitted));

fn asking() -> Bench {
    asking_with(POLICY)
}

fn asking_with(policy: Admission) -> Bench {
    Bench::new(Config::default().asking(policy))
}

fn who(w: W) -> WorkerSeen {
    WorkerSeen {
        job: JobId(w.job),
        cluster: ClusterId(w.cluster),
        worker: WorkerId(w.worker),
        peer: PeerId(w.peer),
    }
}

fn wanted(w: W) -> Event {
    Event::AdmissionWanted(who(w), Vec::new())
}

impl Bench {
    #[track_caller]
    fn decides(&mut self, of: W, ruling: Ruling) -> bool {
        let open = self.switch.decide(self.now, JobId(of.job), ClusterId(of.cluster), Some(ruling));
        self.accounts_are_in_order();
        open
    }

    /// The workers whose joins have gone up.
    #[track_caller]
    fn joins_up(&mut self) -> Vec<u32> {
        let up = self.up().into_iter();
        up.map(|(_, out)| match out {
            Out::Join(join) => join.address.worker.0,
            other => panic!("a join, not {other:?}"),
        })
        .collect()
    }

    /// What workers were told, and by which number they are known.
    #[track_caller]
    fn told(&mut self) -> Vec<(u32, WelcomeCode)> {
        let down = self.down().into_iter();
        down.map(|(peer, out)| match out {
            Out::Welcome(welcome) => (peer.0, welcome.code),
            other => panic!("a welcome, not {other:?}"),
        })
        .collect()
    }

    /// Joins, is asked about and let in.
    #[track_caller]
    fn enters_by_word(&mut self, w: W) {
        self.joins(w);
        assert!(self.decides(w, Ruling::Admit));
        self.enters(w);
    }

    fn running(&self) -> Vec<u32> {
        self.switch.running().into_iter().map(|(_, cluster)| cluster.0).collect()
    }

    #[track_caller]
    fn counts(&self) -> AdmissionCounts {
        let admission = self.switch.statistics(self.now).admission.unwrap();
        let counts = admission.counts;
        let settled = counts.admitted + counts.refused + counts.unanswered;
        assert_eq!(counts.asked, settled + u64::from(admission.open > 0), "{admission:?}");
        counts
    }
}

#[test]
fn nobody_is_asked_unless_the_switch_was_told_to() {
    let mut sw = Bench::new(Config::default());
    sw.joins(W1);
    assert_eq!((sw.joins_up(), sw.events()), (vec![1], vec![]));
    assert!(!sw.decides(W1, Ruling::Refuse), "there is no question");
    assert!(sw.switch.statistics(sw.now).admission.is_none());
}

#[test]
fn a_join_of_a_new_cluster_waits_for_the_word_and_goes_on_without_a_retry() {
    let mut sw = asking();
    assert_eq!(sw.joins(W1), Verdict::Absorb);
    assert_eq!(sw.events(), [wanted(W1)]);
    assert!(sw.joins_up().is_empty() && sw.running().is_empty());
    assert_eq!(sw.told(), [(1, WelcomeCode::AdmissionPending)], "its worker need not despair");
    assert!(sw.keeps(PeerId(1)), "its address is still needed");
    assert!(sw.decides(W1, Ruling::Admit));
    assert_eq!((sw.joins_up(), sw.running()), (vec![1], vec![0]));
    sw.welcomes(welcome(W1, WelcomeCode::Welcome));
    assert_eq!(sw.told(), [(1, WelcomeCode::Welcome)]);
    // It is in: its keepalives and its cluster's other workers raise no question.
    sw.joins(W1);
    sw.joins(W2);
    assert_eq!(sw.joins_up(), [1, 2]);
    assert_eq!(sw.sends(W1, 0, &[1.0, 1.0]), Verdict::Absorb);
}

#[test]
fn workers_of_one_cluster_that_join_together_raise_one_question_and_hear_one_answer() {
    let mut sw = asking();
    for _ in 0..3 {
        sw.joins(W1);
        sw.joins(W2);
    }
    assert_eq!(sw.events(), [wanted(W1)]);
    assert_eq!(sw.told(), [1, 2, 1, 2, 1, 2].map(|w| (w, WelcomeCode::AdmissionPending)));
    sw.decides(W1, Ruling::Admit);
    assert_eq!(sw.joins_up(), [1, 2], "of each the newest");
    let expected = AdmissionCounts { asked: 1, admitted: 1, joins_held: 6, ..Default::default() };
    assert_eq!(sw.counts(), expected);
}

#[test]
fn a_refusal_reaches_all_who_waited_and_is_remembered_for_a_while() {
    let mut sw = asking();
    sw.joins(W1);
    sw.joins(W2);
    sw.told();
    assert!(sw.decides(W1, Ruling::Refuse));
    assert_eq!(sw.told(), [1, 2].map(|w| (w, WelcomeCode::NotAdmitted)));
    assert_eq!(sw.refused("not_admitted"), 2);
    sw.events();

    sw.until(ms(999));
    assert_eq!(sw.joins(W1), REFUSED);
    assert_eq!(sw.told(), [(1, WelcomeCode::NotAdmitted)]);
    assert_eq!(sw.events(), [Event::WorkerRefused(who(W1), WelcomeCode::NotAdmitted)]);
    sw.until(ms(1000));
    assert_eq!(sw.joins(W1), Verdict::Absorb);
    assert_eq!(sw.events(), [wanted(W1)], "times may have changed");
    assert!(sw.joins_up().is_empty());
}

#[test]
fn without_an_answer_in_time_the_stated_one_is_given() {
    for (unanswered, up, told) in [
        (Ruling::Admit, vec![1], vec![]),
        (Ruling::Refuse, vec![], vec![(1, WelcomeCode::NotAdmitted)]),
    ] {
        let mut sw = asking_with(Admission { unanswered, ..POLICY });
        sw.until(ms(50));
        sw.joins(W1);
        sw.told();
        sw.events();
        assert_eq!(sw.switch.poll_timeout(), Some((ms(350), Why::AdmissionDeadline)));
        sw.until(ms(349));
        assert!(sw.events().is_empty());
        sw.until(ms(350));
        assert_eq!(sw.events()[0], Event::AdmissionUnanswered(who(W1), unanswered));
        assert_eq!((sw.joins_up(), sw.told()), (up, told));
        assert!(!sw.decides(W1, Ruling::Admit), "too late");
        assert_eq!(sw.counts().unanswered, 1);
        assert_eq!(
            sw.switch.poll_timeout().map(|(_, why)| why == Why::AdmissionDeadline),
            match unanswered {
                Ruling::Admit => Some(false),
                Ruling::Refuse => None,
            }
        );
    }
}

#[test]
fn who_was_asked_and_does_not_know_need_not_wait_for_the_deadline() {
    let mut sw = asking_with(Admission { unanswered: Ruling::Admit, ..POLICY });
    sw.joins(W1);
    sw.events();
    assert!(sw.switch.decide(sw.now, JobId(JOB), ClusterId(0), None));
    assert_eq!(sw.events(), [Event::AdmissionUnanswered(who(W1), Ruling::Admit)]);
    assert_eq!((sw.joins_up(), sw.counts().unanswered), (vec![1], 1));
}

#[test]
fn questions_are_put_one_at_a_time_so_that_each_answer_knows_the_ones_before() {
    let (a, b, c) = (w(3, 31), w(4, 41), w(5, 51));
    let mut sw = asking();
    for who in [a, b, c] {
        sw.joins(who);
    }
    assert_eq!(sw.events(), [wanted(a)]);
    assert!(!sw.decides(b, Ruling::Admit), "it was not put yet");
    sw.until(ms(200));
    sw.decides(a, Ruling::Admit);
    let running: Vec<_> = sw.switch.running().into_iter().collect();
    assert_eq!(running, [(JobId(b.job), ClusterId(3))]);
    assert_eq!(sw.all_events(), [Event::AdmissionWanted(who(b), running)]);
    // Its time runs from when it was put.
    sw.until(ms(499));
    assert!(sw.events().is_empty());
    sw.until(ms(500));
    let told = sw.events();
    assert_eq!(told[0], Event::AdmissionUnanswered(who(b), Ruling::Refuse));
    assert_eq!(told.last(), Some(&wanted(c)));
}

#[test]
fn the_same_cluster_of_another_job_is_another_question() {
    let mut sw = asking();
    sw.enters_by_word(W1);
    let other = W { job: 2, peer: 70, ..W1 };
    sw.joins(other);
    assert_eq!(sw.events(), [wanted(other)]);
}

#[test]
fn a_worker_that_starts_again_while_its_cluster_is_asked_about_is_held_once() {
    let mut sw = asking();
    sw.joins(W1);
    let again = W { session: 9, peer: 60, ..W1 };
    sw.joins(again);
    sw.told();
    sw.decides(W1, Ruling::Admit);
    assert_eq!((sw.joins_up(), sw.told()), (vec![1], vec![]), "its old life is no living owner");
    sw.welcomes(welcome(again, WelcomeCode::Welcome));
    assert_eq!(sw.sends(again, 0, &[1.0, 1.0]), Verdict::Absorb);
}

#[test]
fn a_worker_that_starts_again_in_a_cluster_that_is_in_is_not_asked_about() {
    let mut sw = asking();
    sw.enters_by_word(W1);
    sw.events();
    sw.until(ms(2100));
    sw.events();
    assert_eq!(sw.joins(W { session: 9, peer: 60, ..W1 }), Verdict::Absorb);
    assert_eq!((sw.joins_up(), sw.events()), (vec![1], vec![]));
}

#[test]
fn a_cluster_whose_members_have_all_left_or_been_forgotten_is_asked_about_again() {
    let mut sw = asking();
    sw.enters_by_word(W1);
    sw.enters(W2);
    sw.leaves(W1);
    sw.joins(W3);
    assert!(!sw.events().contains(&wanted(W3)), "one is still in");
    sw.leaves(W2);
    sw.leaves(W3);
    assert!(sw.running().is_empty());
    sw.joins(W1);
    assert!(sw.events().contains(&wanted(W1)));
    sw.decides(W1, Ruling::Admit);
    sw.up();
    sw.welcomes(welcome(W1, WelcomeCode::Welcome));
    sw.until(ms(100_000));
    sw.events();
    sw.joins(W1);
    assert_eq!(sw.events(), [wanted(W1)], "it was silent for so long that it was forgotten");
}

#[test]
fn who_no_longer_waits_is_not_passed_on() {
    let mut sw = asking_with(Admission { timeout: Duration::from_secs(60), ..POLICY });
    sw.joins(W1);
    sw.joins(W2);
    assert_eq!(sw.leaves(W1), Verdict::Absorb);
    sw.decides(W1, Ruling::Admit);
    assert_eq!(sw.joins_up(), [2]);

    // Dead ones repeat nothing.
    sw.joins(V1);
    sw.until(ms(2500));
    sw.decides(V1, Ruling::Admit);
    assert!(sw.joins_up().is_empty());
    assert!(!sw.running().contains(&7));
    assert_eq!(sw.counts().admitted, 2);
}

#[test]
fn a_question_that_nobody_waits_for_when_its_turn_comes_is_withdrawn() {
    let mut sw = asking();
    sw.joins(W1);
    sw.joins(V1);
    sw.leaves(V1);
    sw.events();
    sw.decides(W1, Ruling::Admit);
    assert!(!sw.events().contains(&wanted(V1)));
    assert_eq!((sw.counts().asked, sw.counts().withdrawn), (1, 1));
}

#[test]
fn a_worker_that_waits_and_names_another_cluster_waits_for_that_one() {
    let mut sw = asking();
    sw.joins(W1);
    let other = W { cluster: 7, ..W1 };
    sw.joins(other);
    sw.decides(W1, Ruling::Admit);
    assert!(sw.joins_up().is_empty());
    sw.decides(other, Ruling::Admit);
    assert_eq!((sw.joins_up(), sw.running()), (vec![1], vec![7]));
}

#[test]
fn a_worker_that_goes_over_to_a_new_cluster_stays_in_its_old_one_until_it_is_settled() {
    let mut sw = asking();
    sw.enters_by_word(W1);
    let over = W { cluster: 7, ..W1 };
    sw.events();
    sw.joins(over);
    assert_eq!(sw.events(), [wanted(over)]);
    assert_eq!(sw.running(), [0]);
    assert_eq!(sw.sends(W1, 0, &[1.0, 1.0]), Verdict::Absorb);
    sw.decides(over, Ruling::Admit);
    assert_eq!((sw.events(), sw.running()), (vec![Event::WorkerMoved(who(over))], vec![7]));
}

#[test]
fn a_worker_that_starts_again_in_a_new_cluster_does_not_keep_its_old_life_alive() {
    let mut sw = asking();
    sw.enters_by_word(W1);
    sw.until(ms(2100));
    sw.events();
    let again = W { cluster: 7, session: 9, peer: 60, ..W1 };
    for _ in 0..2 {
        assert_eq!(sw.joins(again), Verdict::Absorb);
    }
    sw.decides(again, Ruling::Admit);
    assert_eq!((sw.joins_up(), sw.running()), (vec![1], vec![7]));
}

#[test]
fn a_cluster_behind_a_switch_below_shares_this_uplink_and_is_asked_about_too() {
    let mut sw = asking();
    let behind = W { peer: 50, ..w(3, 31) };
    assert_eq!(sw.joins_through(behind, 1, 5), Verdict::Absorb);
    assert_eq!(sw.events(), [wanted(behind)]);
    sw.decides(behind, Ruling::Refuse);
    assert_eq!(
        sw.told(),
        [(50, WelcomeCode::AdmissionPending), (50, WelcomeCode::NotAdmitted)],
        "by way of that switch"
    );
}

#[test]
fn what_is_turned_away_anyway_raises_no_question() {
    let config = Config { max_parameters: 10, max_workers: 1, max_jobs: 1, ..Config::default() }
        .asking(POLICY);
    let mut sw = Bench::new(config);
    sw.enters_by_word(W1);
    sw.events();
    let refused = |code| Verdict::Drop(DropReason::JoinRefused(code));
    assert_eq!(sw.joins_with(V1, 11), refused(WelcomeCode::ModelTooLarge));
    assert_eq!(sw.joins(V1), refused(WelcomeCode::Full));
    assert_eq!(sw.joins(W { job: 2, ..V1 }), refused(WelcomeCode::Full));
    let claim = W { cluster: 7, session: 9, peer: 60, ..W1 };
    assert_eq!(sw.joins(claim), refused(WelcomeCode::WorkerIdInUse));
    assert_eq!(sw.counts().asked, 1);
}

#[test]
fn one_address_with_many_clusters_keeps_no_other_from_being_asked_about() {
    for unanswered in [Ruling::Refuse, Ruling::Admit] {
        let mut sw = asking_with(Admission { unanswered, max_questions: 16, ..POLICY });
        for n in 0..200u32 {
            let posed = W { peer: 100, ..w(1000 + n, 1000 + n) };
            let verdict = sw.joins(posed);
            let expected =
                if n < 4 { Verdict::Absorb } else { Verdict::Drop(DropReason::TooOften) };
            assert_eq!(verdict, expected, "cluster {n}");
        }
        assert_eq!(sw.joins(W1), Verdict::Absorb);
        assert_eq!(sw.switch.statistics(sw.now).admission.unwrap().open, 5);
        assert_eq!(sw.counts().not_asked, 0);
    }
    // Four addresses have all questions between them: the newest of one that has several gives way.
    let mut sw = asking_with(Admission { max_questions: 16, ..POLICY });
    for n in 0..200u32 {
        sw.joins(W { peer: 100 + n % 4, ..w(1000 + n, 1000 + n) });
    }
    assert_eq!(sw.joins(W1), Verdict::Absorb);
    let open = sw.switch.statistics(sw.now).admission.unwrap().open;
    assert_eq!((open, sw.counts().not_asked, sw.counts().withdrawn), (16, 0, 1));
}

#[test]
fn a_flood_of_made_up_clusters_stays_bounded_and_gets_the_stated_answer() {
    let flood = || (0..5000u32).map(|n| W { peer: 100 + n, ..w(1000 + n, 1000 + n) });
    let mut sw = asking();
    sw.enters_by_word(W1);
    sw.events();
    for who in flood() {
        sw.joins(who);
        sw.down();
    }
    let statistics = sw.switch.statistics(sw.now);
    let admission = statistics.admission.unwrap();
    assert_eq!((admission.open, admission.counts.not_asked), (4, 4996));
    assert_eq!((statistics.workers.len(), statistics.clusters.len()), (1, 1));
    assert_eq!(sw.refused("not_admitted"), 4996);
    let told = |event: &&Event| matches!(event, Event::AdmissionNotAsked(..));
    assert_eq!(sw.events().iter().filter(told).count(), 1, "one line a second");
    // Who is in is none the worse, and what was asked is settled by its deadline, one by one.
    assert_eq!(sw.sends(W1, 0, &[1.0, 1.0]), Verdict::Absorb);
    sw.until(ms(2000));
    assert_eq!(sw.switch.statistics(sw.now).admission.unwrap().open, 0);
    assert_eq!((sw.counts().unanswered, sw.counts().withdrawn), (4, 0));

    let mut sw = asking_with(Admission { unanswered: Ruling::Admit, ..POLICY });
    for who in flood().take(10) {
        sw.joins(who);
    }
    assert_eq!(sw.joins_up().len(), 6, "of the others, those for which there was no room");
}

#[test]
fn many_workers_of_one_cluster_are_held_up_to_a_bound_and_the_rest_come_by_themselves() {
    let mut sw = asking();
    for n in 0..1000 {
        assert_eq!(sw.joins(w(0, n)), Verdict::Absorb);
        sw.down();
    }
    sw.decides(W1, Ruling::Admit);
    let first = sw.joins_up().len();
    assert!((1..1000).contains(&first), "{first}");
    for n in 0..1000 {
        sw.joins(w(0, n));
    }
    assert_eq!(sw.joins_up().len(), 1000);
}
