//! The class of service: what a message was sent with counts, and not what the IP header says.

use super::*;
use crate::engine::Ecn;

const DATA: u8 = 35;
const CONTROL: u8 = 43;

/// Delivers everything, each datagram with that class in its IP header.
fn settle_as(pair: &mut Pair, outer: TrafficClass) {
    for _ in 0..20 {
        for sent in pair.drain() {
            let source = Source { class: outer, ..Source::new(PORT, sent.from) };
            let to = if sent.to == SWITCH { &mut pair.switch } else { &mut pair.worker };
            to.handle_packet(pair.now, source, &sent.bytes);
        }
    }
}

fn reclassified(engine: &Sealed<Post>) -> u64 {
    engine.counters().unwrap().reclassified
}

#[test]
fn a_message_keeps_the_class_that_it_was_sent_with() {
    // A network that clears the class; one that sets another; one that lets it be.
    for (outer, differs) in [(0, 1), (CONTROL, 1), (DATA, 0)] {
        let mut pair = Pair::new();
        let outer = TrafficClass::new(outer, Ecn::Marked);
        pair.worker.class = TrafficClass::new(DATA, Ecn::Capable0);
        pair.switch.class = pair.worker.class;
        // The first one waits for the handshake, and the next does not.
        pair.say_up(b"\x01first");
        settle_as(&mut pair, outer);
        pair.say_up(b"\x01second");
        settle_as(&mut pair, outer);
        pair.say_down(b"\x01back");
        pair.switch.to_send.push_back((vec![WORKER, WORKER], b"\x01to all".to_vec()));
        settle_as(&mut pair, outer);
        // Marks of congestion are the network's: they come from the IP header.
        let as_sent = TrafficClass::new(DATA, Ecn::Marked);
        assert_eq!(pair.switch.classes, [as_sent; 2]);
        assert_eq!(pair.worker.classes, [as_sent; 3]);
        assert_eq!(reclassified(&pair.switch), 2 * differs);
        assert_eq!(reclassified(&pair.worker), 3 * differs);
    }
}

#[test]
fn the_class_is_under_the_tag() {
    let mut pair = Pair::new();
    pair.worker.class = TrafficClass::new(DATA, Ecn::Capable0);
    pair.say_up(b"\x01first");
    pair.settle();
    pair.say_up(b"\x01second");
    let mut sent = pair.drain().remove(0);
    let class = sent.bytes.len() - trailer::COUNTER + 2;
    for bit in 0..6 {
        sent.bytes[class] ^= 4 << bit;
        pair.deliver(&sent);
        sent.bytes[class] ^= 4 << bit;
    }
    assert_eq!(pair.refused(Reason::BadTag), 6);
    pair.deliver(&sent);
    assert_eq!(pair.at_switch(), [&b"\x01first"[..], b"\x01second"]);
}
