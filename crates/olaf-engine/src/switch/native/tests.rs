//! What only the inside can set up: counts that are about to begin anew.

use super::{Config, Switch};
use crate::engine::{Engine, Source};
use crate::ids::{ClusterId, JobId, PeerId, PortId, Session, WorkerId};
use crate::time::Instant;
use alloc::vec;
use alloc::vec::Vec;
use olaf_wire::{Address, Answer, Join, Kind, Packet, QueueStatus, Update, Welcome, WelcomeCode};

const SERVER: PeerId = PeerId(9);
const WORKER: Source = Source::new(PortId::DOWNLINK, PeerId(1));
const ABOVE: Source = Source::new(PortId::UPLINK, SERVER);
const ADDRESS: Address =
    Address { job: JobId(1), cluster: ClusterId(0), worker: WorkerId(4), session: Session(3) };

fn recv(switch: &mut Switch, from: Source, emit: impl FnOnce(&mut [u8]) -> usize) {
    let mut buf = vec![0; 512];
    let len = emit(&mut buf);
    switch.handle_packet(Instant(0), from, &buf[..len]);
}

fn drain(switch: &mut Switch, port: PortId) -> Vec<Vec<u8>> {
    let mut buf = vec![0; 512];
    core::iter::from_fn(|| {
        let sent = switch.poll_transmit(Instant(0), port, &mut buf)?;
        Some(buf[..sent.len].to_vec())
    })
    .collect()
}

#[test]
fn answers_find_their_sharers_across_the_largest_hop_sequence() {
    let mut switch = Switch::new(Config::default(), 5).expect("a configuration that can be");
    switch.set_default_server(SERVER);
    switch.forgotten_hop_sequence = u32::MAX - 2;
    let join = Join {
        address: ADDRESS,
        have_version: 0,
        parameters: 1,
        segment_lanes: 1,
        clock_error_us: 0,
        sent_at_ns: 1,
        clock_offset_ns: 0,
        hops: 0,
        wants_notices: false,
        path: olaf_wire::JoinPath::default(),
    };
    recv(&mut switch, WORKER, |buf| join.emit(buf));
    let welcome = Welcome {
        address: ADDRESS,
        code: WelcomeCode::Welcome,
        ready: true,
        version: 1,
        parameters: 1,
        segment_lanes: 1,
        epoch: 2,
        first_missing: u32::MAX,
        echoed_sent_at_ns: 1,
        received_at_ns: 1,
        sent_at_ns: 1,
        switch_epoch: 0,
        silent_ms: 0,
        rule: None,
        layout_missing: u32::MAX,
        missing: 0,
        padded_to: 0,
    };
    recv(&mut switch, ABOVE, |buf| welcome.emit(buf));
    drain(&mut switch, PortId::UPLINK);
    drain(&mut switch, PortId::DOWNLINK);

    // The worker's own count goes over the edge as well.
    for (own, expected) in [(u32::MAX, u32::MAX - 1), (1, u32::MAX), (2, 1), (3, 2)] {
        let update = Update {
            address: ADDRESS,
            sequence: own,
            hop_sequence: own,
            segment: 0,
            segments: 1,
            generated_oldest_ns: 0,
            generated_newest_ns: 0,
            version_oldest: 1,
            version_newest: 1,
            contributors: 1,
            weight: 1.0,
            reward: 0.0,
            hops: 0,
            flow_sequence: 0,
        };
        recv(&mut switch, WORKER, |buf| update.emit(&[1.0], buf));
        let sent = drain(&mut switch, PortId::UPLINK);
        let packet = Packet::new_checked(&sent[0]).expect("an update");
        assert_eq!(Update::parse(&packet).expect("an update").hop_sequence, expected);
        let answer = Answer {
            address: Address { worker: WorkerId::ALL, session: Session(0), ..ADDRESS },
            acknowledges: expected,
            segment: 0,
            segments: 1,
            model_version: 2,
            parameters: 1,
            epoch: 2,
            delivered_version: 1,
            delivered_newest_ns: 0,
            server_time_ns: 0,
            queue: QueueStatus::default(),
            ages: olaf_wire::Ages::default(),
            ends: olaf_wire::Ends::NONE,
        };
        recv(&mut switch, ABOVE, |buf| answer.emit(&[], buf));
        let heard = drain(&mut switch, PortId::DOWNLINK);
        let packet = Packet::new_checked(&heard[0]).expect("an answer");
        assert_eq!(packet.kind(), Kind::Acknowledgement);
        assert_eq!(Answer::parse(&packet).expect("an answer").acknowledges, own);
    }
}
