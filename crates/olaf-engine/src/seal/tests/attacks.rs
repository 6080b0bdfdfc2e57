//! What a party without the key can do, or with the key of another job: nothing that lasts.

use super::*;
use proptest::prelude::*;

fn joined() -> Pair {
    let mut pair = Pair::new();
    pair.say_up(b"\x01first");
    pair.settle();
    pair
}

#[test]
fn a_stranger_leaves_no_trace() {
    let mut pair = Pair::new();
    for port in 0..5000 {
        let stranger = Sent { from: PeerId(100 + port), to: SWITCH, bytes: hello() };
        pair.deliver(&stranger);
        pair.drain();
    }
    let mut known = 0;
    pair.switch.peers(&mut |_| known += 1);
    assert_eq!((known, pair.switch.guard.as_ref().unwrap().answering.len()), (0, 0));
    assert!(pair.at_switch().is_empty());
}

#[test]
fn answers_that_find_no_room_are_counted() {
    let mut pair = Pair::new();
    for port in 0..2000 {
        pair.deliver(&Sent { from: PeerId(100 + port), to: SWITCH, bytes: hello() });
    }
    let answered = pair.drain().len() as u64;
    assert_eq!((answered, pair.switch.counters().unwrap().unanswered), (1024, 2000 - 1024));
}

fn hello() -> Vec<u8> {
    let mut bytes = vec![0; handshake::LEN];
    let said = Handshake { key_name: KEY.to_be_bytes(), ..Handshake::new(Kind::Hello) };
    said.emit(&mut bytes);
    bytes
}

#[test]
fn a_datagram_that_comes_again_is_refused() {
    let mut pair = joined();
    let recorded = pair.seen.clone();
    for sent in recorded.iter().filter(|sent| sent.to == SWITCH) {
        pair.deliver(sent);
    }
    assert_eq!(pair.at_switch(), [b"\x01first"], "the engine saw it once");
    assert_eq!(pair.refused(Reason::Replayed), 1);
}

#[test]
fn a_recorded_handshake_does_not_take_a_worker_over() {
    let mut pair = joined();
    let recorded = pair.seen.clone();
    pair.restart_worker();
    pair.say_up(b"\x01second life");
    pair.settle();
    // The handshake of the first life, word for word, while its cookie is still good.
    for sent in recorded.iter().filter(|sent| sent.to == SWITCH && sent.bytes.len() == 96) {
        pair.deliver(sent);
    }
    pair.settle();
    pair.say_up(b"\x01more");
    pair.say_down(b"\x01answer");
    pair.settle();
    assert_eq!(pair.at_switch().last().unwrap(), b"\x01more");
    assert_eq!(pair.at_worker(), [b"\x01answer"], "what comes down is still for the second life");
}

#[test]
fn a_cookie_is_good_though_a_flood_changes_the_number_of_its_address() {
    let mut pair = Pair::new();
    pair.say_up(b"\x01first");
    let hello = pair.drain().remove(0);
    let (own, other) = ([7; 18], [8; 18]);
    pair.switch.comes_from(own);
    pair.deliver(&hello);
    let cookie = pair.drain().remove(0);
    pair.deliver(&cookie);
    let open = pair.drain().remove(0);
    // The driver had to forget the stranger, and gives its address another number.
    let again = Sent { from: PeerId(5000), ..open };
    pair.switch.comes_from(other);
    let refused = Verdict::Drop(DropReason::Seal(Reason::BadCookie));
    assert_eq!(pair.deliver(&again), refused, "from another address it is none");
    pair.switch.comes_from(own);
    assert_eq!(pair.deliver(&again), Verdict::Absorb);
    let mut known = Vec::new();
    pair.switch.peers(&mut |peer| known.push(peer));
    assert_eq!(known, [PeerId(5000)]);
}

#[test]
fn a_cookie_is_good_for_one_address_and_ten_seconds() {
    let mut pair = Pair::new();
    pair.say_up(b"\x01first");
    let sent = pair.drain();
    pair.deliver(&sent[0]);
    let cookie = pair.drain();
    pair.deliver(&cookie[0]);
    let open = pair.drain();
    let elsewhere = Sent { from: PeerId(50), ..open[0].clone() };
    pair.deliver(&elsewhere);
    assert_eq!(pair.refused(Reason::BadCookie), 1);
    pair.wait(Duration::from_secs(11));
    pair.deliver(&open[0]);
    assert_eq!(pair.refused(Reason::OldCookie), 1);
    for _ in 0..5 {
        pair.settle();
        pair.wait(Duration::from_secs(1));
    }
    assert_eq!(pair.at_switch(), [b"\x01first"], "it asks for another cookie");
}

#[test]
fn a_cookie_of_the_future_is_none() {
    let mut pair = Pair::new();
    pair.say_up(b"\x01first");
    let hello = pair.drain().remove(0);
    let now = pair.now;
    // The clock of the switch was ahead when it made the cookie.
    pair.wait(Duration::from_secs(3600));
    pair.deliver(&hello);
    let cookie = pair.drain().into_iter().find(|sent| sent.from == SWITCH).unwrap();
    pair.now = now;
    pair.deliver(&cookie);
    let open = pair.drain().remove(0);
    let refused = Verdict::Drop(DropReason::Seal(Reason::OldCookie));
    assert_eq!(pair.deliver(&open), refused);
    assert_eq!(pair.switch.guard.as_ref().unwrap().answering.len(), 0);
}

#[test]
fn what_comes_under_another_peers_association_is_refused() {
    let mut pair = joined();
    pair.say_up(b"\x01second");
    let sent = pair.drain().remove(0);
    let stolen = Sent { from: PeerId(50), ..sent.clone() };
    let refused = Verdict::Drop(DropReason::Seal(Reason::UnknownAssociation));
    assert_eq!(pair.deliver(&stolen), refused);
    assert_eq!(pair.at_switch(), [b"\x01first"]);
    assert_eq!(pair.deliver(&sent), Verdict::Absorb, "its number is not taken");
    assert_eq!(pair.at_switch().len(), 2);
}

#[test]
fn sixteen_messages_wait_for_a_handshake_and_the_oldest_gives_way() {
    let mut pair = Pair::new();
    for number in 0..40 {
        pair.say_up(&[1, number]);
        pair.drain();
    }
    assert_eq!(pair.worker.counters().unwrap().held_too_long, 40 - 16);
    // The handshake is repeated.
    for _ in 0..5 {
        pair.wait(Duration::from_secs(1));
        pair.settle();
    }
    let newest: Vec<_> = (24..40).map(|number| vec![1, number]).collect();
    assert_eq!(pair.at_switch(), newest);
}

#[test]
fn the_key_of_one_job_is_not_good_for_another() {
    // The worker believes that its key is for any job.
    let mut pair = Pair::with(&[(7, None)], &[(7, Some(1)), (8, Some(2))]);
    pair.say_up(b"\x02of another job");
    pair.say_up(b"\x01of its own");
    pair.settle();
    assert_eq!(pair.at_switch(), [b"\x01of its own"]);
    assert_eq!(pair.refused(Reason::OtherJob), 1);
}

#[test]
fn the_owners_of_one_key_cannot_take_all_associations() {
    let keys = [(7, Some(1)), (8, Some(2))];
    let mut switch = Sealed::with_keys(Post::default(), Toy::new(2, &keys));
    switch.guard.as_mut().unwrap().answering = Answering::new(8);
    let mut pair = Pair { switch, ..Pair::with(&[(7, Some(1))], &keys) };
    for peer in 0..10 {
        join_from(&mut pair, PeerId(100 + peer), 7);
    }
    assert_eq!(pair.refused(Reason::Full), 6, "four of eight are for this key");
    join_from(&mut pair, PeerId(200), 8);
    assert_eq!(pair.refused(Reason::Full), 6);
    pair.wait(Duration::from_secs(31));
    join_from(&mut pair, PeerId(110), 7);
    assert_eq!(pair.refused(Reason::Full), 6, "an idle one gives way");
    assert_eq!(pair.switch.guard.as_ref().unwrap().answering.len(), 5);
}

#[test]
fn a_party_that_is_heard_does_not_give_way_to_a_newcomer() {
    let mut switch = Sealed::with_keys(Post::default(), Toy::new(2, &[(KEY, None)]));
    switch.guard.as_mut().unwrap().answering = Answering::new(2);
    let mut pair = Pair { switch, ..Pair::new() };
    pair.say_up(b"\x01first");
    pair.settle();
    pair.say_down(b"\x01answer");
    pair.settle();
    join_from(&mut pair, PeerId(100), KEY);
    for _ in 0..4 {
        pair.wait(Duration::from_secs(10));
        pair.say_up(b"\x01more");
        pair.say_down(b"\x01answer");
        pair.settle();
    }
    join_from(&mut pair, PeerId(101), KEY);
    assert_eq!(pair.refused(Reason::Full), 0, "the other one was idle");
    let before = pair.at_switch().len();
    pair.say_up(b"\x01last");
    pair.settle();
    assert_eq!(pair.at_switch().len(), before + 1);
    assert_eq!(pair.refused(Reason::UnknownAssociation), 0);
}

#[test]
fn messages_of_a_handshake_that_nobody_sends_here_have_their_reasons() {
    let mut pair = joined();
    let said = |kind| {
        let mut bytes = vec![0; handshake::LEN];
        Handshake { association: 9, ..Handshake::new(kind) }.emit(&mut bytes);
        bytes
    };
    let refused = |reason| Verdict::Drop(DropReason::Seal(reason));
    // A switch answers handshakes, and a worker begins them.
    let up = [(Kind::Opened, Reason::BadHandshake), (Kind::Unknown, Reason::BadHandshake)];
    let down = [
        (Kind::Hello, Reason::BadHandshake),
        (Kind::Cookie, Reason::NotAsked),
        (Kind::Opened, Reason::NotAsked),
        (Kind::NoKey, Reason::NotAsked),
        (Kind::Unknown, Reason::NotAsked),
    ];
    for (from, to, kinds) in [(WORKER, SWITCH, &up[..]), (SWITCH, WORKER, &down[..])] {
        for (kind, reason) in kinds {
            let sent = Sent { from, to, bytes: said(*kind) };
            assert_eq!(pair.deliver(&sent), refused(*reason), "{kind:?}");
        }
    }
    pair.say_up(b"\x01second");
    pair.settle();
    assert_eq!(pair.at_switch(), [&b"\x01first"[..], b"\x01second"]);
}

/// A party at another address does the whole handshake.
fn join_from(pair: &mut Pair, peer: PeerId, key: u64) {
    let mut party = Sealed::with_keys(Post::default(), Toy::new(u64::from(peer.0), &[(key, None)]));
    party.set_above(SWITCH);
    party.to_send.push_back((vec![SWITCH], vec![if key == 7 { 1 } else { 2 }]));
    let mut buf = vec![0; MAX_DATAGRAM];
    for _ in 0..4 {
        while let Some(sent) = party.poll_transmit(pair.now, PORT, &mut buf) {
            pair.switch.handle_packet(pair.now, Source::new(PORT, peer), &buf[..sent.len]);
        }
        while let Some(sent) = pair.switch.poll_transmit(pair.now, PORT, &mut buf) {
            party.handle_packet(pair.now, Source::new(PORT, SWITCH), &buf[..sent.len]);
        }
    }
}

#[test]
fn a_false_hint_changes_nothing() {
    let mut pair = joined();
    let association = sealed::Sealed::parse(&pair.seen.last().unwrap().bytes).unwrap().association;
    for kind in [Kind::Unknown, Kind::NoKey, Kind::Cookie, Kind::Opened] {
        let mut bytes = vec![0; handshake::LEN];
        Handshake { association, ..Handshake::new(kind) }.emit(&mut bytes);
        pair.deliver(&Sent { from: SWITCH, to: WORKER, bytes });
    }
    pair.say_up(b"\x01second");
    pair.settle();
    assert_eq!(pair.at_switch(), [&b"\x01first"[..], &b"\x01second"[..]]);
    assert_eq!(pair.worker.standing(), Standing::Open);
}

proptest! {
    #[test]
    fn a_changed_datagram_is_refused(at in any::<prop::sample::Index>(), bit in 0..8) {
        let mut pair = joined();
        pair.say_up(b"\x01second message");
        let mut sent = pair.drain().remove(0);
        let at = at.index(sent.bytes.len());
        sent.bytes[at] ^= 1_u8 << bit;
        let verdict = pair.deliver(&sent);
        prop_assert!(matches!(verdict, Verdict::Drop(DropReason::Seal(_))));
        prop_assert_eq!(pair.at_switch(), [b"\x01first"]);
        prop_assert!(adds_up(pair.switch.counters().unwrap()));
    }

    #[test]
    fn a_stranger_gets_no_more_bytes_than_it_sends(
        bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0..7_u8, like in any::<bool>(),
    ) {
        let mut pair = joined();
        let mut bytes = if like { hello() } else { bytes };
        if like {
            bytes[handshake::KIND] = kind;
        }
        let len = bytes.len();
        pair.deliver(&Sent { from: PeerId(77), to: SWITCH, bytes });
        let answered: usize = pair.drain().iter().map(|sent| sent.bytes.len()).sum();
        prop_assert!(answered <= len, "{answered} bytes for {len}");
        prop_assert!(adds_up(pair.switch.counters().unwrap()));
    }
}
