//! Ports and their links: several ways down, their pace, traffic classes and marks. `Bench` looks
//! after every step.

use crate::common::*;
use olaf_engine::engine::{Source, Verdict};
use olaf_engine::switch::native::{AnswerTo, Config, Datagrams};
use olaf_engine::{BitsPerSecond, Ecn, Engine, Instant, PeerId, PortId, TrafficClass, Why};
use olaf_wire::offsets::{MAX_DATAGRAM, answer as at};
use olaf_wire::{ClusterId, Update, Welcome, WelcomeCode};

const SECOND: PortId = PortId(2);
const CAPABLE: TrafficClass = TrafficClass::new(10, Ecn::Capable0);
const MARKED: TrafficClass = TrafficClass::new(10, Ecn::Marked);
const DEAF: TrafficClass = TrafficClass::new(10, Ecn::NotCapable);

impl Bench {
    /// Everything that has left a port by now, with its receivers and its class.
    fn leaves_by(&mut self, port: PortId) -> Vec<(Vec<u32>, TrafficClass, Out)> {
        let mut buf = vec![0; MAX_DATAGRAM];
        let mut left = Vec::new();
        while let Some(sent) = self.switch.poll_transmit(self.now, port, &mut buf) {
            let to = sent.to.as_slice().iter().map(|peer| peer.0).collect();
            left.push((to, sent.class, read(&buf[..sent.len])));
        }
        left
    }

    /// What each downlink counts.
    fn downlinks(&self) -> Vec<Datagrams> {
        let downlinks = self.switch.statistics(self.now).downlinks;
        downlinks.into_iter().map(|link| link.datagrams).collect()
    }

    /// Joins by another port than the first, and is let in.
    fn enters_by(&mut self, port: PortId, who: W, hops: u8) {
        self.joins_by(port, who, hops);
        let told = self.leaves_by(port);
        assert!(matches!(&told[..], [(to, _, Out::Welcome(Welcome { .. }))] if *to == [who.peer]));
        self.events();
    }

    /// Joins by that port. The welcome waits for the port's link.
    fn joins_by(&mut self, port: PortId, who: W, hops: u8) {
        let mut buf = [0; 512];
        let join = olaf_wire::Join { hops, ..join(who, PARAMETERS) };
        let len = join.emit(&mut buf);
        assert_eq!(self.recv(Source::new(port, PeerId(who.peer)), &buf[..len]), Verdict::Absorb);
        self.up();
        assert_eq!(self.welcomes(welcome(who, WelcomeCode::Welcome)), Verdict::Absorb);
    }

    /// An answer to the whole cluster 0 comes down in that class.
    fn answers_in(&mut self, class: TrafficClass, acknowledges: u32, lanes: &[f32]) {
        let mut buf = vec![0; MAX_DATAGRAM];
        let len = answer(0, acknowledges).emit(lanes, &mut buf);
        let from = Source { class, ..Source::new(PortId::UPLINK, SERVER) };
        assert_eq!(self.recv(from, &buf[..len]), Verdict::Absorb);
    }

    fn sends_in(&mut self, class: TrafficClass, who: W, sequence: u32, reward: f64) -> Verdict {
        let mut buf = vec![0; MAX_DATAGRAM];
        let update = Update { reward, ..update(who, sequence) };
        let len = update.emit(&[1.0, 1.0], &mut buf);
        self.recv(Source { class, ..who.source() }, &buf[..len])
    }

    /// The classes of the updates that have left by now.
    fn classes_up(&mut self) -> Vec<TrafficClass> {
        let left = self.leaves_by(PortId::UPLINK);
        left.iter().for_each(|(.., out)| assert!(matches!(out, Out::Update(..))));
        left.into_iter().map(|(_, class, _)| class).collect()
    }
}

fn receivers(left: &[(Vec<u32>, TrafficClass, Out)]) -> Vec<u32> {
    left.iter().flat_map(|(to, ..)| to.clone()).collect()
}

/// A rate at which an acknowledgement takes a millisecond.
fn an_answer_a_millisecond() -> BitsPerSecond {
    BitsPerSecond::new(at::PAYLOAD as u64 * 8 * 1000).unwrap()
}

#[test]
fn a_datagram_leaves_by_the_port_on_which_its_receiver_was_heard() {
    let config = Config { downlinks: 2, answer_to: AnswerTo::Cluster, ..Config::default() };
    let mut sw = Bench::with(config, &[W1]);
    assert_eq!(sw.switch.ports(), 3);
    sw.enters_by(SECOND, W2, 0);
    sw.sends(W1, 0, &[1.0, 1.0]);
    let (sent, _) = one_update(sw.up());
    sw.answers(answer(0, sent.hop_sequence), &[5.0, 6.0]);
    assert_eq!(receivers(&sw.leaves_by(PortId::DOWNLINK)), [W1.peer]);
    assert_eq!(receivers(&sw.leaves_by(SECOND)), [W2.peer]);
    // It moves; what is for it follows.
    sw.joins(W2);
    sw.up();
    sw.answers(answer(0, 0), &[5.0, 6.0]);
    assert_eq!(receivers(&sw.leaves_by(PortId::DOWNLINK)), [W1.peer, W2.peer]);
    assert!(sw.leaves_by(SECOND).is_empty());
    assert!(sw.leaves_by(PortId(3)).is_empty(), "there is no such port");
}

#[test]
fn switches_below_that_hear_the_same_get_one_datagram() {
    let config = Config { answer_to: AnswerTo::Cluster, downlinks: 2, ..Config::default() };
    let mut sw = Bench::with(config, &[W1]);
    let behind = |worker, peer| W { peer, ..w(0, worker) };
    sw.enters_by(PortId::DOWNLINK, behind(21, 80), 1);
    sw.enters_by(PortId::DOWNLINK, behind(22, 81), 1);
    sw.enters_by(SECOND, behind(23, 82), 1);
    sw.answers(answer(0, 41), &[5.0, 6.0]);
    let left = sw.leaves_by(PortId::DOWNLINK);
    let to: Vec<_> = left.iter().map(|(to, ..)| to.clone()).collect();
    assert_eq!(to, [vec![W1.peer], vec![80, 81]]);
    let Out::Answer(told, lanes) = &left[1].2 else { panic!("an answer, not {left:?}") };
    assert_eq!((told.address.cluster, &lanes[..]), (ClusterId(0), &[5.0, 6.0][..]));
    assert_eq!(receivers(&sw.leaves_by(SECOND)), [82]);
}

#[test]
fn a_group_that_finds_no_room_counts_each_of_its_receivers() {
    let config = Config { answer_to: AnswerTo::Cluster, downlink_limit: 1, ..Config::default() };
    let mut sw = Bench::with(config, &[W1]);
    let behind = |worker, peer| W { peer, ..w(0, worker) };
    sw.enters_by(PortId::DOWNLINK, behind(21, 80), 1);
    sw.enters_by(PortId::DOWNLINK, behind(22, 81), 1);
    let before = sw.refused("link_full");
    sw.answers(answer(0, 41), &[5.0, 6.0]);
    assert_eq!(receivers(&sw.leaves_by(PortId::DOWNLINK)), [W1.peer]);
    assert_eq!(sw.refused("link_full") - before, 2, "80 and 81 hear nothing");
    assert_eq!(sw.downlinks()[0].dropped["link_full"], 2);
}

#[test]
fn a_paced_downlink_keeps_order_and_counts_what_does_not_fit() {
    let config = Config {
        downlink_rate: Some(an_answer_a_millisecond()),
        downlink_limit: 3,
        ..Config::default()
    };
    let mut sw = Bench::new(config);
    for who in [W1, W2] {
        sw.joins(who);
        sw.up();
        sw.welcomes(welcome(who, WelcomeCode::Welcome));
        sw.until(Instant(sw.now.0 + 10_000_000));
        sw.down();
    }
    let start = sw.now;
    for sequence in 0..5 {
        let to = if sequence % 2 == 0 { W1 } else { W2 };
        sw.answers(olaf_wire::Answer { address: to.address(), ..answer(0, sequence) }, &[]);
    }
    assert_eq!(sw.refused("link_full"), 2);
    assert!(sw.leaves_by(PortId::DOWNLINK).is_empty(), "the first is on the wire");
    let mut left = Vec::new();
    for millisecond in 1..=4 {
        sw.until(Instant(start.0 + millisecond * 1_000_000));
        left.push(receivers(&sw.leaves_by(PortId::DOWNLINK)));
    }
    assert_eq!(left, [vec![1], vec![2], vec![1], vec![]]);
}

#[test]
fn each_downlink_counts_its_own_datagrams_a_copy_for_each_receiver() {
    let config = Config {
        answer_to: AnswerTo::Cluster,
        downlinks: 2,
        downlink_rate: Some(an_answer_a_millisecond()),
        downlink_limit: 1,
        ..Config::default()
    };
    let mut sw = Bench::new(config);
    let behind = |worker, peer| W { peer, ..w(0, worker) };
    for (who, port) in [
        (behind(21, 80), PortId::DOWNLINK),
        (behind(22, 81), PortId::DOWNLINK),
        (behind(23, 82), SECOND),
    ] {
        sw.joins_by(port, who, 1);
        sw.until(Instant(sw.now.0 + 10_000_000));
        assert_eq!(sw.leaves_by(port).len(), 1, "the welcome");
    }
    sw.answers(answer(0, 41), &[]);
    sw.answers(answer(0, 42), &[]);
    let count = |sw: &Bench, of: fn(&Datagrams) -> u64| sw.downlinks().iter().map(of).collect();
    let counts: [fn(&Datagrams) -> u64; 4] = [
        |link| link.forwarded,
        |link| link.sent,
        |link| link.waiting,
        |link| link.dropped["link_full"],
    ];
    let told: Vec<Vec<u64>> = counts.iter().map(|of| count(&sw, *of)).collect();
    assert_eq!(told, [[4, 2], [2, 1], [2, 1], [2, 1]]);
    sw.until(Instant(sw.now.0 + 10_000_000));
    assert_eq!(receivers(&sw.leaves_by(PortId::DOWNLINK)), [80, 81]);
    let told: Vec<Vec<u64>> = counts.iter().map(|of| count(&sw, *of)).collect();
    assert_eq!(told, [[4, 2], [4, 1], [0, 1], [2, 1]]);
}

#[test]
fn the_wakeup_is_that_of_the_port_whose_departure_ends_first() {
    let config = Config {
        downlinks: 2,
        downlink_rate: Some(an_answer_a_millisecond()),
        uplink: Some(BitsPerSecond::new(8_000).unwrap()),
        ..Config::default()
    };
    let mut sw = Bench::new(config);
    sw.joins(W1);
    sw.until(ms(1000));
    sw.up();
    sw.welcomes(welcome(W1, WelcomeCode::Welcome));
    sw.sends(W1, 0, &[1.0, 1.0]);
    let (at, why) = sw.switch.poll_timeout().unwrap();
    assert_eq!(why, Why::Departure);
    assert!(at.0 - sw.now.0 < 2_000_000, "{at:?}: an answer's time, not an update's");
}

#[test]
fn what_is_passed_on_keeps_its_class() {
    let mut sw = default();
    sw.answers_in(CAPABLE, 0, &[5.0, 6.0]);
    sw.answers_in(MARKED, 0, &[5.0, 6.0]);
    let classes: Vec<_> = sw.leaves_by(PortId::DOWNLINK).into_iter().map(|left| left.1).collect();
    assert_eq!(classes, [[CAPABLE; 3], [MARKED; 3]].concat());
    sw.sends_in(DEAF, W1, 0, 0.0);
    assert_eq!(sw.classes_up(), [DEAF]);
    sw.sends(W1, 1, &[1.0, 1.0]);
    assert_eq!(sw.classes_up(), [TrafficClass::NONE]);
}

#[test]
fn a_mark_seen_on_the_way_in_stays_on_whatever_becomes_of_the_update() {
    let gate = Some(1.0);
    // Merged into an update, taking its place, or filtered against it.
    for (who, reward) in [(W2, 0.0), (W2, 9.0), (W1, 0.0), (W2, -9.0)] {
        for (first, second) in [(CAPABLE, MARKED), (MARKED, CAPABLE), (DEAF, MARKED)] {
            let mut sw = Bench::with(Config { gate, ..Config::default() }, &[W1, W2]);
            sw.sends_in(first, W1, 0, 0.0);
            sw.sends_in(second, who, 1, reward);
            assert_eq!(sw.classes_up(), [MARKED], "{first:?}, then {second:?}, {reward}");
            sw.sends_in(CAPABLE, W1, 2, 0.0);
            assert_eq!(sw.classes_up(), [CAPABLE], "the next one has a class of its own");
        }
    }
}

#[test]
fn an_uplink_above_its_depth_marks_those_that_understand_marks() {
    let clusters = [w(0, 1), w(1, 2), w(2, 3), w(3, 4)];
    let config = Config { uplink_ecn_depth: Some(3), ..Config::default() };
    for (class, marked) in [(CAPABLE, MARKED), (DEAF, DEAF)] {
        let mut sw = Bench::with(config.clone(), &clusters);
        for who in clusters {
            sw.sends_in(class, who, 0, 0.0);
        }
        // Four wait, then three, two, one.
        assert_eq!(sw.classes_up(), [marked, marked, class, class]);
        let up = sw.switch.statistics(sw.now).uplink.datagrams;
        assert_eq!(up.marked, if marked == class { 0 } else { 2 });
    }
}

#[test]
fn a_downlink_above_its_depth_marks_and_below_it_does_not() {
    let config = Config { downlink_ecn_depth: Some(3), ..Config::default() };
    for (class, marked) in [(CAPABLE, MARKED), (DEAF, DEAF)] {
        let mut sw = Bench::with(config.clone(), &[W1, W2, W3]);
        sw.answers_in(class, 0, &[5.0, 6.0]);
        let left = sw.leaves_by(PortId::DOWNLINK);
        let classes: Vec<_> = left.into_iter().map(|left| left.1).collect();
        assert_eq!(classes, [marked, class, class]);
        assert_eq!(sw.downlinks()[0].marked, u64::from(marked != class));
        // A mark of a link before this one is passed on, and counts there.
        sw.answers_in(MARKED, 0, &[5.0, 6.0]);
        assert_eq!(sw.leaves_by(PortId::DOWNLINK).len(), 3);
        assert_eq!(sw.downlinks()[0].marked, u64::from(marked != class));
    }
}

#[test]
fn a_switch_without_a_downlink_or_with_a_depth_of_nothing_cannot_be() {
    for (key, config) in [
        ("downlinks", Config { downlinks: 0, ..Config::default() }),
        ("uplink_ecn_depth_datagrams", Config { uplink_ecn_depth: Some(0), ..Config::default() }),
        (
            "downlink_ecn_depth_datagrams",
            Config { downlink_ecn_depth: Some(0), ..Config::default() },
        ),
    ] {
        assert_eq!(config.check().unwrap_err().key, key);
    }
}
