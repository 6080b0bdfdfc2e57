//! A key is replaced while its job runs: nothing is lost, and the old key is worth nothing after its time.

use super::*;
use crate::event::{Event, Said};

const NEW: u64 = 0x2222;
const DAY: Duration = Duration::from_secs(86_400);

/// The keys of a file after a rotation: the present key, and the one before until its time is over.
fn rotated(pair: &mut Pair, until: Instant) -> Box<Toy> {
    Toy::with_old(pair.life(), &[(NEW, None, None), (KEY, None, Some(until))])
}

fn finished(pair: &mut Pair) -> Box<Toy> {
    Toy::new(pair.life(), &[(NEW, None)])
}

/// A message each way. Every one of them has to arrive at once.
fn talks(pair: &mut Pair, number: u8) {
    let before = (pair.at_switch().len(), pair.at_worker().len());
    pair.say_up(&[1, number]);
    pair.settle();
    pair.say_down(&[1, number]);
    pair.settle();
    assert_eq!(pair.at_switch()[before.0..], [[1, number]], "message {number} up");
    assert_eq!(pair.at_worker()[before.1..], [[1, number]], "message {number} down");
}

fn with_old_key(engine: &Sealed<Post>, now: Instant) -> usize {
    let guard = engine.guard.as_ref().unwrap();
    let told = serde_json::to_value(guard.statistics(now)).unwrap();
    usize::try_from(told["with_old_key"].as_u64().unwrap()).unwrap()
}

#[test]
fn whichever_side_gets_the_new_file_first_every_message_arrives() {
    for switch_first in [true, false] {
        let mut pair = Pair::new();
        let until = pair.now + DAY;
        (0..3).for_each(|number| talks(&mut pair, number));
        for step in 0..2 {
            let keys = rotated(&mut pair, until);
            let now = pair.now;
            if (step == 0) == switch_first {
                pair.switch.rekey(now, keys);
            } else {
                pair.worker.rekey(now, keys);
            }
            for number in 0..10 {
                talks(&mut pair, 10 * step + number);
                pair.wait(Duration::from_millis(700));
            }
            let (worker, switch) =
                (with_old_key(&pair.worker, pair.now), with_old_key(&pair.switch, pair.now));
            // The switch that has the old key alone knows of no other.
            let (still, unknown) = if switch_first { ([0, 1], [0, 0]) } else { ([1, 0], [0, 0]) };
            assert_eq!([worker, switch], if step == 0 { still } else { unknown });
        }
        let (now, keys) = (pair.now, finished(&mut pair));
        pair.switch.rekey(now, keys);
        (30..40).for_each(|number| talks(&mut pair, number));
        let keys = finished(&mut pair);
        pair.worker.rekey(now, keys);
        (40..50).for_each(|number| talks(&mut pair, number));
        assert_eq!(pair.worker.counters().unwrap().held_too_long, 0);
        assert!(adds_up(pair.switch.counters().unwrap()));
    }
}

#[test]
fn what_is_on_its_way_under_the_old_key_still_arrives() {
    let mut pair = Pair::new();
    talks(&mut pair, 0);
    let until = pair.now + DAY;
    pair.say_up(b"\x01late");
    let late = pair.drain().remove(0);
    for side in 0..2 {
        let (now, keys) = (pair.now, rotated(&mut pair, until));
        if side == 0 { pair.switch.rekey(now, keys) } else { pair.worker.rekey(now, keys) }
    }
    // The first message goes under the old key, the second one under the new.
    talks(&mut pair, 1);
    talks(&mut pair, 2);
    assert_eq!(with_old_key(&pair.switch, pair.now), 0, "it has moved");
    pair.deliver(&late);
    assert_eq!(pair.at_switch().last().unwrap(), b"\x01late");
    // A recording is worth nothing some seconds later.
    pair.wait(Duration::from_secs(6));
    pair.say_up(b"\x01more");
    let mut recorded = late.clone();
    recorded.bytes[0] = 2;
    pair.deliver(&recorded);
    assert_eq!(pair.refused(Reason::UnknownAssociation), 1);
}

#[test]
fn a_party_with_the_old_file_works_until_the_time_and_hears_then_why_not() {
    let mut pair = Pair::new();
    talks(&mut pair, 0);
    let until = pair.now + Duration::from_secs(60);
    let (now, keys) = (pair.now, rotated(&mut pair, until));
    pair.switch.rekey(now, keys);
    for number in 0..59 {
        talks(&mut pair, number);
        pair.wait(Duration::from_secs(1));
    }
    assert_eq!(with_old_key(&pair.switch, pair.now), 1);
    pair.wait(Duration::from_secs(1));
    let before = pair.at_switch().len();
    for _ in 0..4 {
        pair.say_up(b"\x01too late");
        pair.settle();
        pair.wait(Duration::from_millis(600));
    }
    assert_eq!(pair.at_switch().len(), before, "the old key is worth nothing now");
    assert!(pair.refused(Reason::KeyOver) > 0);
    assert_eq!(pair.worker.standing(), Standing::KeyOver(KEY.to_be_bytes()));
    let Some(Event::Other(told)) = pair.worker.poll_event() else { panic!("it tells of it") };
    assert_eq!(told.name, "key_over");
    assert_eq!(told.fields[0], ("key".into(), Said::Text("0000000000001111".into())));
    assert_eq!(told.fields[1], ("until_s".into(), Said::Number(until.0 / 1_000_000_000)));
    assert_eq!(pair.worker.poll_event(), None, "once");
    assert_eq!(with_old_key(&pair.switch, pair.now), 0);
    // Its own new file is all that it needs.
    let (now, keys) = (pair.now, finished(&mut pair));
    pair.worker.rekey(now, keys);
    pair.wait(Duration::from_secs(2));
    pair.say_up(b"\x01again");
    pair.settle();
    assert_eq!(pair.worker.standing(), Standing::Open);
    talks(&mut pair, 100);
}

#[test]
fn a_recorded_handshake_with_the_old_key_is_refused_after_its_time() {
    let mut pair = Pair::new();
    let until = pair.now + Duration::from_secs(5);
    let (now, keys) = (pair.now, rotated(&mut pair, until));
    pair.switch.rekey(now, keys);
    talks(&mut pair, 0);
    let is_open = |sent: &&Sent| {
        sealed::Sealed::parse(&sent.bytes)
            .filter(|found| found.association == 0)
            .and_then(|found| Handshake::parse(found.message).ok())
            .is_some_and(|said| said.kind == Kind::Open)
    };
    let open = pair.seen.iter().find(is_open).unwrap().clone();
    // Its cookie is good for ten seconds, its key for five.
    pair.wait(Duration::from_secs(5));
    let refused = Verdict::Drop(DropReason::Seal(Reason::KeyOver));
    assert_eq!(pair.deliver(&open), refused);
}

#[test]
fn a_switch_that_has_the_old_key_alone_is_served_until_it_gets_the_new_one() {
    let until = Instant(1_000_000_000_000) + DAY;
    let mut worker = Sealed::with_keys(
        Post::default(),
        Toy::with_old(1, &[(NEW, None, None), (KEY, None, Some(until))]),
    );
    worker.set_above(SWITCH);
    let mut pair = Pair { worker, ..Pair::new() };
    // A new party with both keys: the present one is refused, and the first message goes with the other.
    talks(&mut pair, 0);
    assert_eq!(pair.worker.standing(), Standing::Open);
    assert_eq!(with_old_key(&pair.worker, pair.now), 1);
    let (now, keys) = (pair.now, rotated(&mut pair, until));
    pair.switch.rekey(now, keys);
    for number in 1..6 {
        pair.wait(Duration::from_millis(700));
        talks(&mut pair, number);
    }
    assert_eq!(
        with_old_key(&pair.worker, pair.now),
        0,
        "it asks for the present one again and again"
    );
}

#[test]
fn associations_of_those_who_left_end_and_those_of_members_stay() {
    let mut pair = Pair::new();
    talks(&mut pair, 0);
    let held = |pair: &Pair| pair.switch.guard.as_ref().unwrap().answering.len();
    for (number, said) in [(100, &b"\x01"[..]), (101, b"\x01bye"), (102, b"\x01bye")] {
        let mut party = Sealed::with_keys(Post::default(), Toy::new(number, &[(KEY, None)]));
        party.set_above(SWITCH);
        party.to_send.push_back((vec![SWITCH], said.to_vec()));
        let (mut buf, peer) = (vec![0; MAX_DATAGRAM], PeerId(u32::try_from(number).unwrap()));
        for _ in 0..4 {
            while let Some(sent) = party.poll_transmit(pair.now, PORT, &mut buf) {
                pair.switch.handle_packet(pair.now, Source::new(PORT, peer), &buf[..sent.len]);
            }
            while let Some(sent) = pair.switch.poll_transmit(pair.now, PORT, &mut buf) {
                party.handle_packet(pair.now, Source::new(PORT, SWITCH), &buf[..sent.len]);
            }
        }
    }
    assert_eq!(held(&pair), 4);
    for _ in 0..8 {
        pair.wait(Duration::from_secs(10));
        let at = pair.switch.poll_timeout();
        assert!(at.is_some(), "somebody has to wake it");
        pair.drain();
    }
    assert_eq!(held(&pair), 2, "of the worker and of the member that is silent");
}
