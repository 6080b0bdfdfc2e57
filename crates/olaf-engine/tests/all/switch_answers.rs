//! What comes down through the switch, and its receivers. `Bench` checks after every step.

use crate::common::*;
use core::time::Duration;
use olaf_engine::BitsPerSecond;
use olaf_engine::drop::DropReason;
use olaf_engine::engine::Verdict;
use olaf_engine::switch::native::{AnswerTo, Config, Pacing};
use olaf_wire::{Answer, QueueStatus, WelcomeCode};

#[test]
fn an_acknowledgement_comes_to_each_sharer_under_its_own_number() {
    let mut sw = default();
    sw.sends(W1, 4, &[1.0, 1.0]);
    sw.sends(W2, 9, &[1.0, 1.0]);
    let (sent, _) = one_update(sw.up());
    sw.answers(answer(0, sent.hop_sequence), &[]);
    let heard = answers(sw.down());
    // 4 and 9 went out as hop sequences 5 and 10; W3 had no part in it.
    assert_eq!(
        heard.iter().map(|(peer, a)| (*peer, a.acknowledges)).collect::<Vec<_>>(),
        [(1, 5), (2, 10)]
    );
    assert_eq!(heard[0].1.address, W1.address());
    assert_eq!(heard[1].1.address, W2.address());
}

#[test]
fn those_whose_updates_were_replaced_or_filtered_hear_the_answer_too() {
    let mut sw = Bench::with(Config { gate: Some(1.0), ..Config::default() }, &[W1, W2, W3]);
    let with = |who, reward| olaf_wire::Update { reward, ..update(who, 0) };
    sw.sends_update(W1.source(), &with(W1, 0.0), &[1.0, 1.0]);
    assert_eq!(sw.sends_update(W2.source(), &with(W2, 9.0), &[2.0, 2.0]), Verdict::Absorb);
    let filtered = sw.sends_update(W3.source(), &with(W3, 0.0), &[3.0, 3.0]);
    assert_eq!(filtered, Verdict::Drop(DropReason::Filtered));
    let (sent, lanes) = one_update(sw.up());
    assert_eq!((sent.contributors, lanes), (1, vec![2.0, 2.0]));
    sw.answers(answer(0, sent.hop_sequence), &[5.0, 6.0]);
    let heard: Vec<u32> = answers(sw.down()).into_iter().map(|(peer, _)| peer).collect();
    assert_eq!(heard, [1, 2, 3]);
}

#[test]
fn a_model_goes_to_those_who_shared_or_to_the_whole_cluster_as_configured() {
    for (answer_to, expected) in [(AnswerTo::Shared, &[1][..]), (AnswerTo::Cluster, &[1, 2, 3])] {
        let mut sw = Bench::with(Config { answer_to, ..Config::default() }, &[W1, W2, W3, V1]);
        sw.sends(W1, 0, &[1.0, 1.0]);
        let (sent, _) = one_update(sw.up());
        sw.answers(answer(0, sent.hop_sequence), &[5.0, 6.0]);
        let heard: Vec<u32> = answers(sw.down()).into_iter().map(|(peer, _)| peer).collect();
        assert_eq!(heard, expected, "{answer_to:?}");
    }
}

#[test]
fn a_model_that_a_new_life_of_the_switch_knows_nothing_of_goes_to_the_whole_cluster() {
    let mut sw = default();
    sw.answers(answer(0, 41), &[5.0, 6.0]);
    let heard: Vec<u32> = answers(sw.down()).into_iter().map(|(peer, _)| peer).collect();
    assert_eq!(heard, [1, 2, 3]);
}

#[test]
fn an_answer_to_one_worker_goes_to_it_alone() {
    let mut sw = default();
    let to_one = Answer { address: W2.address(), ..answer(0, 0) };
    assert_eq!(sw.answers(to_one, &[5.0, 6.0]), Verdict::Absorb);
    assert_eq!(answers(sw.down()).into_iter().map(|(peer, _)| peer).collect::<Vec<_>>(), [2]);
    let nobody = Answer { address: w(0, 77).address(), ..answer(0, 0) };
    assert_eq!(sw.answers(nobody, &[]), Verdict::Drop(DropReason::UnknownReceiver));
}

#[test]
fn every_answer_takes_the_queues_status_along_as_it_is_when_it_passes() {
    let mut sw = Bench::with(Config { slots: 5, ..Config::default() }, &[W1, W2, V1]);
    sw.sends(W1, 0, &[1.0, 1.0]);
    let (sent, _) = one_update(sw.up());
    sw.sends(W2, 0, &[1.0, 1.0]);
    sw.sends(V1, 0, &[1.0, 1.0]);
    sw.answers(answer(0, sent.hop_sequence), &[]);
    let (_, heard) = answers(sw.down())[0];
    let expected = QueueStatus { active_clusters: 2, slots: 5, used: 2, switches: 1, round_us: 0 };
    assert_eq!(heard.queue, expected);
    // A cluster unheard for the window is no longer active; one heard since is.
    sw.until(ms(900));
    sw.sends(W2, 1, &[1.0, 1.0]);
    // Heard at 0: active to the end of the window, and not after it.
    sw.until(ms(1000));
    assert_eq!(sw.switch.queue_status(sw.now).active_clusters, 2);
    sw.until(ms(1001));
    assert_eq!(sw.switch.queue_status(sw.now).active_clusters, 1);
}

#[test]
fn of_two_switches_the_more_crowded_queue_is_told() {
    let status = |active_clusters, slots, used, round_us| QueueStatus {
        active_clusters,
        slots,
        used,
        switches: 1,
        round_us,
    };
    // 9 clusters on 3 slots are more crowded than 1 on 8; 1 on 100 are not. The longest round is
    // told whichever queue it is of: here an update takes a millisecond.
    for (earlier, expected) in [
        (status(9, 3, 3, 200), (9, 3, 3, 2, 1000)),
        (status(1, 100, 9, 7_000), (1, 8, 0, 2, 7_000)),
    ] {
        let rate = BitsPerSecond::new(104 * 8 * 1000).unwrap();
        let pacing = Pacing::Rate(rate);
        let mut sw = Bench::with(Config::default().paced(pacing), &[W1]);
        sw.sends(W1, 0, &[1.0, 1.0]);
        sw.until(sw.now + Duration::from_millis(1));
        let (sent, _) = one_update(sw.up());
        sw.answers(Answer { queue: earlier, ..answer(0, sent.hop_sequence) }, &[]);
        let (_, Answer { queue: q, .. }) = answers(sw.down())[0];
        assert_eq!((q.active_clusters, q.slots, q.used, q.switches, q.round_us), expected);
    }
}

#[test]
fn a_model_of_several_segments_goes_to_the_same_receivers_segment_by_segment() {
    let mut sw = Bench::new(Config::default());
    for who in [W1, W2] {
        sw.joins_with(who, 4);
        sw.up();
        sw.welcomes(olaf_wire::Welcome { parameters: 4, ..welcome(who, WelcomeCode::Welcome) });
    }
    sw.down();
    let part = |segment| olaf_wire::Update {
        hop_sequence: 1 + segment,
        segment,
        segments: 2,
        ..update(W1, 0)
    };
    sw.sends_update(W1.source(), &part(0), &[1.0, 1.0]);
    sw.sends_update(W1.source(), &part(1), &[1.0, 1.0]);
    assert_eq!(sw.up().len(), 2);
    let model = |segment| Answer { segment, segments: 2, parameters: 4, ..answer(0, 2) };
    sw.answers(model(0), &[1.0, 1.0]);
    // An update of another worker that leaves in between gets its own answer, not half of this.
    sw.sends_update(W2.source(), &olaf_wire::Update { segments: 2, ..update(W2, 0) }, &[1.0, 1.0]);
    sw.up();
    sw.answers(model(1), &[1.0, 1.0]);
    let heard: Vec<_> = answers(sw.down()).into_iter().map(|(peer, a)| (peer, a.segment)).collect();
    assert_eq!(heard, [(1, 0), (1, 1)]);
}

#[test]
fn a_full_downlink_drops_and_counts() {
    let mut sw = Bench::with(Config { downlink_limit: 2, ..Config::default() }, &[W1]);
    for _ in 0..5 {
        sw.welcomes(welcome(W1, WelcomeCode::Welcome));
    }
    assert_eq!(sw.down().len(), 2);
    assert_eq!(sw.refused("link_full"), 3);
}

#[test]
fn a_sender_hears_of_every_end_however_many_updates_it_sends_before_the_next_answer() {
    let mut sw = Bench::with(Config { gate: Some(1.0), ..Config::default() }, &[W1, W2]);
    let counted = |who, sequence, reward| olaf_wire::Update {
        reward,
        flow_sequence: sequence + 1,
        ..update(who, sequence)
    };
    // Number 1 is replaced by number 2. Number 3 is filtered, and the rest merge.
    sw.sends_update(W1.source(), &counted(W1, 0, 0.0), &[1.0, 1.0]);
    sw.sends_update(W1.source(), &counted(W1, 1, 0.0), &[1.0, 1.0]);
    sw.sends_update(W2.source(), &counted(W2, 0, 0.0), &[1.0, 1.0]);
    sw.sends_update(W1.source(), &counted(W1, 2, -9.0), &[1.0, 1.0]);
    let mut ended = Vec::new();
    for sequence in 3..90 {
        sw.sends_update(W1.source(), &counted(W1, sequence, 0.0), &[1.0, 1.0]);
        let told = answers(sw.down()).into_iter();
        ended.extend(told.map(|(peer, answer)| (sequence + 1, peer, answer.ends)));
    }
    // The last moment: a report covers 64 numbers.
    let [(number, 1, ends)] = ended[..] else { panic!("told once: {ended:?}") };
    assert_eq!(number, 65);
    assert_eq!(ends.ended.count_ones(), 2);
    assert!(ends.has_ended(1) && ends.has_ended(3), "{ends:?}");
}
