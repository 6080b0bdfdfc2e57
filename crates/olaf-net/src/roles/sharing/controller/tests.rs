//! A controller on a socket.

use super::*;
use olaf_sched::protocol::{Ballot, Body, Packet, Party};
use serde_json::Value;
use std::net::UdpSocket;

const PATIENCE: Duration = Duration::from_secs(10);

fn controller(jobs: &str) -> SharingController {
    let config = format!(
        r#"{{"listen": "127.0.0.1:0", "epoch": 1, "capacity": {{"0": 1}}, "jobs": {jobs},
            "network": {{"bytes_per_second": 1, "speedup_millis": 2000, "latency_ns": 1}}}}"#
    );
    let config = SharingConfig::from_json(&config).expect("it is well formed");
    SharingController::bind(&config).expect("a free port")
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    socket
}

fn datagrams(controller: &SharingController) -> u64 {
    let text = controller.statistics().expect("its thread lives");
    let statistics: Value = serde_json::from_str(&text).expect("JSON");
    statistics["datagrams"].as_u64().expect("a count")
}

#[test]
fn a_flood_of_strangers_is_counted_and_holds_nobody_up() {
    let host = socket();
    let address = host.local_addr().expect("it is bound");
    let job = format!(
        r#"[{{"job": 1, "hosts": ["{address}"], "resources": [0], "steps": 1, "pattern":
            {{"name": "p", "compute_ns": 9, "operations": [{{"start_ns": 1, "bytes": 1}}]}}}}]"#
    );
    let controller = controller(&job);
    let stranger = socket();
    let bye = Packet {
        job: JobId(1),
        ballot: Ballot::default(),
        from: Party::Host(0),
        to: Party::Controller,
        body: Body::Bye,
    };
    for _ in 0..50 {
        stranger.send_to(b"noise", controller.address()).expect("it is there");
        stranger.send_to(&bye.emit(), controller.address()).expect("it is there");
    }
    controller.run(Duration::from_millis(1)).expect("a thread");
    let began = std::time::Instant::now();
    while datagrams(&controller) < 100 {
        assert!(began.elapsed() < PATIENCE, "{} of 100", datagrams(&controller));
        controller.run(Duration::from_millis(1)).expect("it lives");
    }
    // The job is still there: it is asked what it holds. Its own leave ends it.
    let mut buf = [0; 128];
    let (len, from) = host.recv_from(&mut buf).expect("it is asked");
    assert_eq!(Packet::parse(&buf[..len]).map(|packet| packet.body), Ok(Body::Prepare));
    host.send_to(&bye.emit(), from).expect("it is there");
    let lines = controller.run(PATIENCE).expect("it lives");
    let last: Value = serde_json::from_str(lines.last().expect("it was urgent")).expect("JSON");
    assert_eq!((&last["event"], &last["job"]), (&"left".into(), &1.into()));
    let report = controller.running.ask(Driver::statistics).expect("it lives");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["refused"], serde_json::json!({"not_ours": 50, "unknown_peer": 50}));
}

#[test]
fn the_silence_of_a_job_is_that_of_the_host_that_was_heard_longest_ago() {
    use super::engine::ControllerEngine;
    use olaf_engine::{Engine, PeerId, Source, Verdict};
    use olaf_sched::protocol::Timing;
    let policy = Foresight::new(olaf_sched::sharing::Policy::None, 0, BTreeMap::new());
    let mut controller = Controller::new(1, 0, Timing::default(), BTreeMap::new(), policy);
    let needs = Needs { hosts: 3, resources: vec![], units: 1 };
    controller.submit(0, JobId(1), needs).expect("it needs nothing");
    let hosts = (0..3).map(|rank| ((JobId(1), rank), PeerId(rank.into()))).collect();
    let mut engine = ControllerEngine::new(controller, hosts, Arc::default());
    let silent = |engine: &ControllerEngine| {
        let walk = |to: &mut dyn olaf_engine::report::Report| {
            engine.report(olaf_engine::Instant(1000), to);
        };
        olaf_host::json::of(&|_| Value::Null, walk)["jobs"][0]["silent_ns"].clone()
    };
    assert_eq!(silent(&engine), Value::Null, "nobody was heard yet");
    for (rank, at, body) in [
        (0, 100, Body::Ready { next: 0, held: false }),
        (1, 200, Body::Ready { next: 0, held: false }),
        (0, 700, Body::Ready { next: 0, held: false }),
    ] {
        let ballot = Ballot { epoch: 1, round: 1 };
        let (from, to) = (Party::Host(rank), Party::Controller);
        let packet = Packet { job: JobId(1), ballot, from, to, body };
        let source = Source::end(PeerId(rank.into()));
        let verdict = engine.handle_packet(olaf_engine::Instant(at), source, &packet.emit());
        assert_eq!(verdict, Verdict::Absorb);
    }
    assert_eq!(silent(&engine), 800, "of host 1");
    let (from, to) = (Party::Host(1), Party::Controller);
    let bye = Packet { job: JobId(1), ballot: Ballot::default(), from, to, body: Body::Bye };
    engine.handle_packet(olaf_engine::Instant(800), Source::end(PeerId(1)), &bye.emit());
    assert_eq!(silent(&engine), 300, "host 1 has left: its silence is no fault");
}
