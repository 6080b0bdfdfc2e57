//! The network itself: its links do what they say, and the same seed does the same.

use crate::common::*;
use core::time::Duration;
use olaf_engine::{
    BitsPerSecond, Engine, Event, Instant, PeerId, PortId, Report, Source, Transmit, Verdict, Why,
};
use olaf_sim::{Lot, Network, Wire};
use std::collections::VecDeque;

const A: PeerId = PeerId(1);
const B: PeerId = PeerId(2);

/// Sends the datagrams it is given, and notes those it receives.
#[derive(Default)]
struct Parrot {
    to_send: VecDeque<(PeerId, Vec<u8>)>,
    heard: Vec<(Instant, Vec<u8>)>,
    life: u32,
}

impl Engine for Parrot {
    fn handle_packet(&mut self, now: Instant, _from: Source, bytes: &[u8]) -> Verdict {
        self.heard.push((now, bytes.to_vec()));
        Verdict::Absorb
    }
    fn poll_transmit(&mut self, _now: Instant, _port: PortId, buf: &mut [u8]) -> Option<Transmit> {
        let (peer, bytes) = self.to_send.pop_front()?;
        buf[..bytes.len()].copy_from_slice(&bytes);
        Some(Transmit::to(peer, bytes.len()))
    }
    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        None
    }
    fn handle_timeout(&mut self, _now: Instant) {}
    fn poll_event(&mut self) -> Option<Event> {
        None
    }
    fn peers(&self, _keep: &mut dyn FnMut(PeerId)) {}
    fn report(&self, _now: Instant, _to: &mut dyn Report) {}
}

fn two(seed: u64, link: Wire) -> Network {
    let mut net = Network::new(seed, Instant(0));
    for id in [A, B] {
        net.place(id, |life, _| Box::new(Parrot { life, ..Parrot::default() }));
    }
    net.join(A, B, link);
    net
}

fn says(net: &mut Network, words: impl IntoIterator<Item = Vec<u8>>) {
    net.with(A, |a: &mut Parrot, _| a.to_send.extend(words.into_iter().map(|w| (B, w))));
}

fn heard(net: &Network) -> Vec<(u64, u8)> {
    let heard = &net.node::<Parrot>(B).unwrap().heard;
    heard.iter().map(|(at, bytes)| (at.0, bytes[0])).collect()
}

#[test]
fn a_link_takes_its_rate_and_its_delay() {
    // 10 bytes at 8 Gbit/s are 10 ns.
    let rate = BitsPerSecond::new(8_000_000_000);
    let mut net = two(1, Wire { rate, delay: Duration::from_nanos(100), ..Wire::default() });
    says(&mut net, [vec![1; 10], vec![2; 20]]);
    net.run_until(Instant(1000));
    assert_eq!(heard(&net), [(110, 1), (130, 2)]);
}

#[test]
fn a_link_loses_repeats_and_reorders_as_often_as_it_says() {
    let link = Wire {
        delay: Duration::from_nanos(100),
        loss: 0.2,
        duplication: 0.1,
        reordering: 0.3,
        late: Duration::from_nanos(5000),
        ..Wire::default()
    };
    let mut net = two(3, link);
    for word in 0..2000 {
        says(&mut net, [vec![word as u8; 4]]);
        net.run_for(Duration::from_nanos(10));
    }
    net.run_for(Duration::from_micros(100));
    let counts = net.counts(A, B);
    assert_eq!(counts.sent, 2000 + counts.repeated);
    assert_eq!(counts.sent, counts.lost + counts.delivered);
    assert!((300..500).contains(&counts.lost), "{counts:?}");
    assert!((100..240).contains(&counts.repeated), "{counts:?}");
    let overtaken = heard(&net).windows(2).filter(|w| w[0].1.wrapping_sub(w[1].1) < 128).count();
    assert!((300..1000).contains(&overtaken), "{overtaken}");
}

#[test]
fn what_arrives_where_nobody_lives_is_noted_and_a_new_life_begins_with_nothing() {
    let mut net = two(1, Wire { delay: Duration::from_nanos(100), ..Wire::default() });
    net.kill_at(Instant(50), B);
    net.start_at(Instant(200), B);
    says(&mut net, [vec![1]]);
    net.run_until(Instant(150));
    assert_eq!(net.counts(A, B).to_the_dead, 1);
    assert!(net.node::<Parrot>(B).is_none());
    says(&mut net, [vec![2]]);
    net.run_until(Instant(300));
    assert_eq!(heard(&net), [(250, 2)]);
    assert_eq!(net.lives::<Parrot>(B).map(|b| b.life).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn where_no_link_leads_nothing_arrives() {
    let mut net = two(1, Wire::default());
    net.with(A, |a: &mut Parrot, _| a.to_send.push_back((PeerId(9), vec![1])));
    assert_eq!(net.trace()[0].lot, Lot::NoLink);
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_seed_another() {
    let run = |seed| {
        let mut job =
            Job::new(Setting { seed, edge: bad_link(), core: bad_link(), ..Setting::default() });
        job.net.kill_at(job.net.now() + ms(300), SWITCH);
        job.net.start_at(job.net.now() + ms(500), SWITCH);
        job.train_for(ms(800));
        (job.net.trace().to_vec(), job.net.events().to_vec())
    };
    let first = run(5);
    assert!(first.0.len() > 1000);
    assert_eq!(first, run(5));
    assert_ne!(first.0, run(6).0);
}
