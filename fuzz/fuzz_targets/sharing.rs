//! Any bytes as packets of the sharing protocol: read or refused, written back as they came, and
//! taken in by a controller and a host in any order without a panic, timers and launches between.
#![no_main]

use libfuzzer_sys::fuzz_target;
use olaf_sched::JobId;
use olaf_sched::protocol::{Controller, Host, HostTiming, Members, Timing, Turns, Worth, codec};
use std::collections::BTreeMap;

fuzz_target!(|data: &[u8]| {
    let mut turns = Turns::new(10);
    turns.add(JobId(1), Worth { operations: 3, first: 1, start_ns: 5 });
    let mut controller = Controller::new(2, 7, Timing::default(), BTreeMap::from([(0, 1)]), turns);
    let members = Members { hosts: 2, resources: vec![0], units: 1 };
    controller.submit(0, JobId(1), members).expect("it fits");
    let mut host = Host::new(JobId(1), 0, 2, HostTiming::default());
    let mut now = 0;
    for chunk in data.chunks(codec::LEN + 1) {
        let (first, bytes) = chunk.split_first().expect("chunks are not empty");
        now += u64::from(*first) * 100_000;
        if let Ok(packet) = codec::parse(bytes) {
            assert_eq!(codec::emit(&packet), bytes, "one packet, one form");
            controller.handle_packet(now, &packet);
            host.handle_packet(now, &packet);
        }
        controller.handle_timeout(now);
        host.handle_timeout(now);
        if first & 1 == 1 {
            match host.running() {
                Some(running) => host.done(running.index),
                None => drop(host.launch()),
            }
        }
        while let Some(packet) = controller.poll_transmit() {
            host.handle_packet(now, &packet);
        }
        while let Some(packet) = host.poll_transmit() {
            controller.handle_packet(now, &packet);
        }
        while controller.poll_event().is_some() {}
    }
});
