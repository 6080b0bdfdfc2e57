//! Parties that share a key find each other, and find each other again.

use super::*;

#[test]
fn the_first_message_waits_for_the_handshake_and_arrives() {
    let mut pair = Pair::new();
    pair.say_up(b"\x01first");
    pair.settle();
    assert_eq!(pair.at_switch(), [b"\x01first"]);
    pair.say_down(b"\x01back");
    pair.settle();
    assert_eq!(pair.at_worker(), [b"\x01back"]);
    let kinds: Vec<usize> = pair.seen.iter().map(|sent| sent.bytes.len()).collect();
    // Hello, cookie, open and opened have one length; then message and trailer.
    assert_eq!(kinds, [96, 96, 96, 96, 6 + 24, 5 + 24]);
}

#[test]
fn without_keys_a_datagram_is_its_message() {
    let mut engine = Sealed::clear(Post::default());
    engine.to_send.push_back((vec![SWITCH], b"plain".to_vec()));
    let mut buf = [0; 100];
    let sent = engine.poll_transmit(Instant(1), PORT, &mut buf).unwrap();
    assert_eq!((&buf[..sent.len], engine.overhead()), (&b"plain"[..], 0));
    engine.handle_packet(Instant(1), Source::new(PORT, SWITCH), b"answer");
    assert_eq!(engine.came, [(SWITCH, b"answer".to_vec())]);
}

#[test]
fn messages_of_a_handshake_that_are_lost_are_sent_again() {
    let mut pair = Pair::new();
    pair.say_up(b"\x01first");
    for lost in 0..4 {
        let sent = pair.drain();
        assert_eq!(sent.len(), 1, "message {lost} of the handshake, or its repetition");
        pair.wait(Duration::from_millis(50));
        assert!(pair.drain().is_empty(), "it is not repeated before its time");
        pair.wait(Duration::from_secs(2));
        let again = pair.drain();
        assert!(again.iter().all(|again| again.from == WORKER), "the switch remembers nothing");
        for one in again {
            pair.deliver(&one);
        }
    }
    pair.wait(Duration::from_secs(2));
    pair.settle();
    assert_eq!(pair.at_switch(), [b"\x01first"]);
}

#[test]
fn a_switch_that_begins_a_new_life_is_found_again() {
    let mut pair = Pair::new();
    pair.say_up(b"\x01first");
    pair.settle();
    pair.restart_switch();
    pair.wait(Duration::from_secs(5));
    // A long datagram gets the hint that the association is unknown.
    pair.say_up(&[1; 100]);
    pair.settle();
    assert!(pair.at_switch().is_empty(), "it was sealed for the life before");
    pair.say_up(b"\x01again");
    pair.settle();
    assert_eq!(pair.at_switch(), [b"\x01again"]);
}

#[test]
fn a_new_life_is_found_without_a_hint_after_a_second_of_silence() {
    let mut pair = Pair::new();
    pair.say_up(b"\x01first");
    pair.settle();
    pair.restart_switch();
    for _ in 0..3 {
        pair.wait(Duration::from_millis(600));
        pair.say_up(b"\x01short");
        pair.settle();
    }
    pair.say_up(b"\x01again");
    pair.settle();
    assert_eq!(pair.at_switch().last().unwrap(), b"\x01again");
}

#[test]
fn a_worker_that_gets_answers_keeps_its_association() {
    let mut pair = Pair::new();
    for _ in 0..40 {
        pair.say_up(b"\x01up");
        pair.settle();
        pair.say_down(b"\x01down");
        pair.settle();
        pair.wait(Duration::from_millis(300));
    }
    assert_eq!((pair.at_switch().len(), pair.at_worker().len()), (40, 40));
    for engine in [&pair.worker, &pair.switch] {
        assert_eq!(engine.counters().unwrap().associations_begun, 1);
    }
}

#[test]
fn a_worker_that_begins_a_new_life_at_its_address_is_let_in() {
    let mut pair = Pair::new();
    pair.say_up(b"\x01first");
    pair.settle();
    pair.restart_worker();
    pair.say_up(b"\x01second");
    pair.settle();
    pair.say_down(b"\x01answer");
    pair.settle();
    assert_eq!(pair.at_switch(), [&b"\x01first"[..], &b"\x01second"[..]]);
    assert_eq!(pair.at_worker(), [b"\x01answer"]);
    let counters = pair.switch.counters().unwrap();
    assert_eq!((counters.associations_begun, counters.associations_ended), (2, 1));
}

#[test]
fn a_message_for_several_receivers_is_sealed_for_each() {
    let mut pair = Pair::new();
    pair.say_up(b"\x01first");
    pair.settle();
    let stranger = PeerId(9);
    pair.switch.to_send.push_back((vec![WORKER, stranger, WORKER], b"\x01all".to_vec()));
    pair.settle();
    assert_eq!(pair.at_worker(), [b"\x01all", b"\x01all"]);
    assert_eq!(pair.switch.counters().unwrap().no_association, 1, "the stranger has no key");
}

#[test]
fn a_worker_with_a_key_that_nobody_knows_is_told_so() {
    let mut pair = Pair::with(&[(7, None)], &[(KEY, None)]);
    pair.say_up(b"\x01first");
    pair.settle();
    assert_eq!(pair.worker.standing(), Standing::KeyRefused);
    assert!(pair.at_switch().is_empty());
    // The operator of the switch sees it, too.
    assert_eq!(pair.refused(Reason::NoSuchKey), 1);
    assert!(adds_up(pair.switch.counters().unwrap()));
}

#[test]
fn ends_of_different_versions_hear_so_and_answer_no_answer() {
    let mut pair = Pair::new();
    pair.say_up(b"\x01first");
    let mut hello = pair.drain().remove(0);
    hello.bytes[handshake::VERSION] += 1;
    let have = hello.bytes[handshake::VERSION];
    let told = Verdict::Drop(DropReason::Seal(Reason::OtherVersion { have }));
    assert_eq!(pair.deliver(&hello), told);
    let mut answer = pair.drain();
    assert_eq!(answer.len(), 1);
    // Two switches that each take the other for a stranger.
    let back = Sent { from: PeerId(9), to: SWITCH, bytes: answer[0].bytes.clone() };
    pair.deliver(&back);
    assert!(pair.drain().is_empty(), "an answer to an answer would never end");
    answer[0].bytes[handshake::VERSION] = 9;
    pair.deliver(&answer[0]);
    assert_eq!(pair.worker.standing(), Standing::OtherVersion(9));
}

#[test]
fn each_job_has_its_own_key_at_one_switch() {
    let keys = [(7, Some(1)), (8, Some(2))];
    let mut pair = Pair::with(&keys, &keys);
    pair.say_up(b"\x01of one");
    pair.say_up(b"\x02of two");
    pair.say_up(b"\x03of three");
    pair.settle();
    assert_eq!(pair.at_switch(), [b"\x01of one", b"\x02of two"]);
    assert_eq!(pair.worker.counters().unwrap().no_association, 1, "no key is for job 3");
    pair.say_down(b"\x02back");
    pair.settle();
    assert_eq!(pair.at_worker(), [b"\x02back"]);
}

#[test]
fn a_message_that_is_too_long_for_a_seal_is_counted() {
    let mut pair = Pair::new();
    pair.say_up(b"\x01first");
    pair.settle();
    pair.say_up(&vec![1; MAX_DATAGRAM - 23]);
    pair.say_up(&vec![1; MAX_DATAGRAM - 24]);
    pair.settle();
    assert_eq!(pair.worker.counters().unwrap().too_long, 1);
    assert_eq!(pair.at_switch().last().unwrap().len(), MAX_DATAGRAM - 24);
}
