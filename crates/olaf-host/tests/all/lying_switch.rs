//! A switch that lies may keep its worker busy, and no more: whatever it answers, the worker sends few datagrams.

use olaf_engine::{Engine, Instant, PeerId, PortId, Source};
use olaf_host::{Worker, WorkerConfig};
use olaf_wire::{Address, Join, Kind, Packet, Welcome, WelcomeCode};
use std::time::Duration;

const SWITCH: PeerId = PeerId(9);
const LANES: u32 = 10;
const SEGMENTS: usize = 100;
/// The path there and back.
const ROUND_TRIP: Duration = Duration::from_micros(150);

fn address() -> Address {
    olaf_samples::address(1, 0, 7)
}

/// What an honest server says to a worker whose model it wants.
fn honest(join: &Join, now: Instant) -> Welcome {
    Welcome {
        address: join.address,
        code: WelcomeCode::Welcome,
        ready: false,
        version: 0,
        parameters: join.parameters,
        segment_lanes: join.segment_lanes,
        epoch: 5,
        first_missing: u32::MAX,
        echoed_sent_at_ns: join.sent_at_ns,
        received_at_ns: now.0,
        sent_at_ns: now.0,
        switch_epoch: 6,
        silent_ms: 0,
        rule: None,
        layout_missing: u32::MAX,
        missing: 0,
        padded_to: 0,
        nonce: 0,
    }
}

/// Datagrams that a worker sends in ten seconds to a switch that answers each join at once, and its bytes.
fn drawn(mut lie: impl FnMut(u32, Welcome) -> Welcome) -> u32 {
    let mut worker =
        Worker::new(WorkerConfig { segment_lanes: LANES, ..WorkerConfig::new(address(), SWITCH) });
    let mut now = Instant(1_000_000_000);
    let end = now + Duration::from_secs(10);
    let weights = vec![1.0; SEGMENTS * LANES as usize];
    worker.join(now, &[&weights]).expect("a model");
    let (mut buf, mut sent, mut answers) = (vec![0; 65_536], 0, 0);
    while now < end {
        let mut joins = Vec::new();
        while let Some(transmit) = worker.poll_transmit(now, PortId(0), &mut buf) {
            sent += 1;
            let packet = Packet::new_checked(&buf[..transmit.len]).expect("the worker's own");
            if packet.kind() == Kind::Join {
                joins.push(Join::parse(&packet).expect("the worker's own"));
            }
            assert!(sent < 1_000_000, "it never stops");
        }
        now = now + ROUND_TRIP;
        for join in joins {
            answers += 1;
            let len = lie(answers, honest(&join, now)).emit(&mut buf);
            let _ = worker.handle_packet(now, Source::end(SWITCH), &buf[..len]);
        }
        if worker.poll_timeout().is_some_and(|(at, _)| at <= now) {
            worker.handle_timeout(now);
        }
        while worker.poll_event().is_some() {}
    }
    sent
}

#[test]
fn what_a_switch_answers_draws_few_datagrams() {
    type Lie = fn(u32, Welcome) -> Welcome;
    let lies: [(&str, Lie); 7] = [
        ("join again", |_, of| Welcome { code: WelcomeCode::JoinAgain, ..of }),
        ("prove anew", |number, of| Welcome { nonce: number + 1, ..of }),
        ("join again and prove anew", |number, of| Welcome {
            code: WelcomeCode::JoinAgain,
            nonce: number + 1,
            ..of
        }),
        ("nothing of the model came", |_, of| Welcome {
            first_missing: 0,
            missing: u64::MAX,
            ..of
        }),
        ("another server each time", |number, of| Welcome {
            epoch: number + 1,
            first_missing: 0,
            missing: u64::MAX,
            ..of
        }),
        ("a newer version each time", |number, of| Welcome { ready: true, version: number, ..of }),
        ("another switch each time", |number, of| Welcome { switch_epoch: number + 1, ..of }),
    ];
    let found: Vec<(&str, u32)> = lies.into_iter().map(|(name, lie)| (name, drawn(lie))).collect();
    assert!(found.iter().all(|(_, sent)| *sent < 3_000), "{found:?}");
}
