//! A sharing controller and the hosts of a job, read over HTTP.

use super::tests::{got, until};
use super::unmapped;
use crate::{SharingConfig, SharingController, SharingHost, SharingHostConfig};
use serde_json::{Value, json};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

/// Addresses that were free just now.
fn addresses(count: usize) -> Vec<String> {
    let socket = |_| UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let sockets: Vec<_> = (0..count).map(socket).collect();
    sockets.iter().map(|one| one.local_addr().expect("it is bound").to_string()).collect()
}

fn of_job(hosts: &[String]) -> Value {
    let operation = json!({"start_ns": 100_000, "bytes": 1000});
    let pattern = json!({"name": "p", "compute_ns": 1_000_000, "operations": [operation]});
    json!({"job": 3, "hosts": hosts, "pattern": pattern, "steps": 1_000_000})
}

fn and(mut table: Value, more: &Value) -> String {
    let more = more.as_object().expect("a table").clone();
    table.as_object_mut().expect("a table").extend(more);
    table.to_string()
}

const NETWORK: &str = r#"{"bytes_per_second": 1000000, "speedup_millis": 2000, "latency_ns": 1}"#;

fn network() -> Value {
    serde_json::from_str(NETWORK).expect("JSON")
}

fn controller(hosts: &[String], more: &Value) -> SharingController {
    let job = and(of_job(hosts), &json!({"resources": [5]}));
    let job: Value = serde_json::from_str(&job).expect("JSON");
    let config = json!({
        "listen": "127.0.0.1:0", "epoch": 1, "capacity": {"5": 1}, "network": network(),
        "jobs": [job], "metrics": "127.0.0.1:0",
    });
    let config = SharingConfig::from_json(&and(config, more)).expect("it is well formed");
    SharingController::bind(&config).expect("free ports")
}

fn host(hosts: &[String], rank: u16, controller: &str, folder: &Path) -> SharingHost {
    let log = folder.join(format!("{rank}.jsonl"));
    let own = json!({
        "controller": controller, "rank": rank, "network": network(), "log": log,
        "metrics": "127.0.0.1:0",
    });
    let config = SharingHostConfig::from_json(&and(own, &of_job(hosts))).expect("well formed");
    SharingHost::start(&config).expect("free ports")
}

fn reasons(place: SocketAddr) -> Vec<String> {
    let answer = got(place, "/readyz");
    let told = answer.json();
    assert_eq!(told["ready"] == true, answer.status == 200, "{told}");
    let reasons = told["reasons"].as_array().expect("a list").iter();
    reasons.map(|reason| reason.as_str().expect("a text").to_owned()).collect()
}

/// All fields are in the table, whatever the state.
fn status(place: SocketAddr) -> Value {
    let status = got(place, "/status.json").json();
    assert_eq!(unmapped(&status), Vec::<String>::new(), "of the {}", status["role"]);
    status
}

fn number(place: SocketAddr, sample: &str) -> f64 {
    let text = got(place, "/metrics").body;
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{sample} in {text}")).parse().expect("a number")
}

#[test]
fn those_who_share_are_ready_once_all_have_heard_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let hosts = addresses(2);
    let controller = controller(&hosts, &json!({}));
    let at = controller.metrics_address().expect("it serves");
    controller.run(Duration::from_millis(1)).expect("a thread");
    assert_eq!(reasons(at), ["job 3: host 0 was not heard yet, 0 of 2"]);
    status(at);
    assert_eq!(number(at, "olaf_sharing_job_seen_hosts{job_id=\"3\",state=\"heard\"}"), 0.0);

    let first = host(&hosts, 0, controller.address(), folder.path());
    let of_first = first.metrics_address().expect("it serves");
    until("it heard the first host", || reasons(at) == ["job 3: host 1 was not heard yet, 1 of 2"]);
    let missing = format!("host 1 of the job, {}, was not heard yet", hosts[1]);
    until("it heard the controller", || reasons(of_first) == [missing.clone()]);
    assert_eq!(number(of_first, "olaf_sharing_peers{heard=\"false\"}"), 1.0);
    assert!(status(of_first)["peers"][0]["silent_ns"].is_null());

    let second = host(&hosts, 1, controller.address(), folder.path());
    let of_second = second.metrics_address().expect("it serves");
    for place in [at, of_first, of_second] {
        until("all have heard all", || reasons(place).is_empty());
        assert_eq!(got(place, "/healthz").status, 200);
        status(place);
    }
    assert_eq!(number(of_first, "olaf_sharing_peers{heard=\"true\"}"), 1.0);
    let launched = || number(of_first, "olaf_sharing_launches_total");
    let before = launched();
    until("it launches", || launched() > before);
    until("a grant", || number(at, "olaf_sharing_rounds_total{result=\"granted\"}") > 0.0);
    assert!(number(of_second, "olaf_timer_late_seconds{percentile=\"99\"}") < 60.0);
    assert_eq!(number(at, "olaf_sharing_resource_units{resource=\"5\"}"), 1.0);
    drop(second);
    let closed = std::net::TcpStream::connect(of_second).is_err();
    assert!(closed, "a host that has ended serves nothing");
}

#[test]
fn a_job_that_failed_makes_the_controller_not_ready_and_is_told() {
    let controller = controller(&addresses(1), &json!({}));
    let at = controller.metrics_address().expect("it serves");
    controller.fail(3).expect("it is there");
    controller.run(Duration::from_secs(20)).expect("a thread");
    let failed = "job 3 has failed (a caller reported that it had ended): its tree is not down yet";
    until("the sample is new", || reasons(at) == [failed]);
    assert_eq!(number(at, "olaf_sharing_job_failed{job_id=\"3\"}"), 1.0);
    assert_eq!(number(at, "olaf_sharing_jobs{phase=\"fencing\"}"), 1.0);
    let events = status(at)["recent_events"].clone();
    assert_eq!(events[0]["event"], "fence", "{events}");
    assert_eq!(events[0]["job"], 3, "{events}");
    controller.fenced(3).expect("it is there");
    until("it is forgotten", || reasons(at).is_empty());
}

#[test]
fn those_who_share_serve_beyond_this_machine_with_a_token_alone() {
    let text = json!({
        "listen": "127.0.0.1:0", "epoch": 1, "capacity": {}, "network": network(), "jobs": [],
        "metrics": "0.0.0.0:0",
    });
    let config = SharingConfig::from_json(&text.to_string()).expect("it is well formed");
    let error = SharingController::bind(&config).err().expect("it is refused").to_string();
    assert!(error.contains("metrics_token_file"), "{error}");
}
