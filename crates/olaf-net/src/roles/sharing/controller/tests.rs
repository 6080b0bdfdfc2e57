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
    // The job is still there: it is asked what it holds. Its own good-bye ends it.
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
