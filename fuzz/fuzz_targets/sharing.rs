//! Any bytes as packets of the sharing protocol: read or refused, written back as they came, and
//! taken in by a controller and a host in any order without a panic, timers and launches between.
#![no_main]

use libfuzzer_sys::fuzz_target;
use olaf_sched::protocol::{
    Controller, Foresight, Host, HostTiming, Needs, Packet, Sharer, Timing,
};
use olaf_sched::sharing::Policy;
use olaf_sched::{AllReduceSpeed, JobId, Operation, Pattern, Steps};
use olaf_wire::mina::{Here, LEN};
use std::collections::BTreeMap;

fuzz_target!(|data: &[u8]| {
    let operation = |start_ns| Operation { start_ns, bytes: 1_000_000 };
    let operations = [5, 100_000, 900_000].map(operation).to_vec();
    let pattern = Pattern { name: "p".into(), compute_ns: 1_000_000, operations };
    let steps = Steps::new(&pattern, &AllReduceSpeed::PAPER, 2);
    let sharer = Sharer { steps, hosts: 2, count: 9, resources: vec![0], units: 1 };
    let capacity = BTreeMap::from([(0, 1)]);
    let mut policy = Foresight::new(Policy::Plan, 10, capacity.clone());
    policy.add(JobId(1), sharer);
    let mut controller = Controller::new(2, 7, Timing::default(), capacity, policy);
    let needs = Needs { hosts: 2, resources: vec![0], units: 1 };
    controller.submit(0, JobId(1), needs).expect("it fits");
    let mut host = Host::new(JobId(1), 0, 2, HostTiming::default());
    let mut now = 0;
    if let Ok(here) = Here::parse(data) {
        assert_eq!(here.emit(), data, "one message, one form");
    }
    for chunk in data.chunks(LEN + 1) {
        let (first, bytes) = chunk.split_first().expect("chunks are not empty");
        now += u64::from(*first) * 100_000;
        if let Ok(packet) = Packet::parse(bytes) {
            assert_eq!(packet.emit(), bytes, "one packet, one form");
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
