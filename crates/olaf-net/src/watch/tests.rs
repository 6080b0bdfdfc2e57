//! Real roles, read over HTTP as friends and strangers read.

use super::unmapped;
use crate::{Client, ClientConfig, Server, ServerConfig, Switch, SwitchConfig};
use serde_json::{Value, json};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);
/// The portable sockets do not carry the traffic class that iSwitch needs.
const ENGINES: &[&str] = if cfg!(feature = "portable") {
    &["queue", "reduce", "trio", "atp", "atp_server"]
} else {
    &["queue", "reduce", "iswitch", "trio", "atp", "atp_server"]
};

pub(super) struct Answer {
    pub(super) status: u16,
    head: String,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }
}

fn sent(address: SocketAddr, request: &str) -> Answer {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.write_all(request.as_bytes()).expect("it takes a request");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).expect("a status").parse().expect("a number");
    Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
}

fn got_with(address: SocketAddr, path: &str, headers: &str) -> Answer {
    sent(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n"))
}

pub(super) fn got(address: SocketAddr, path: &str) -> Answer {
    got_with(address, path, "")
}

pub(super) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "still not so: {what}");
        std::thread::yield_now();
    }
}

fn server(more: Value) -> Server {
    let mut config = json!({"listen": "127.0.0.1:0", "metrics": "127.0.0.1:0"});
    config.as_object_mut().expect("a table").extend(more.as_object().expect("a table").clone());
    let server = Server::bind(&ServerConfig::from_value(config).expect("a configuration"));
    let server = server.expect("a port");
    server.start().expect("threads");
    server
}

fn switch(upstream: &str, engines: &[&str]) -> Switch {
    let config = json!({
        "listen": "127.0.0.1:0", "metrics": "127.0.0.1:0", "upstream": upstream,
        "engines": engines, "uplink": "100mbit", "gate": 1e9,
        "uplink_ecn_depth_datagrams": 4, "silent_after_ms": 200,
    });
    let switch = Switch::bind(&SwitchConfig::from_value(config).expect("a configuration"));
    let switch = switch.expect("a port");
    switch.start().expect("threads");
    switch
}

fn joined(switch: &str, cluster: u32) -> Client {
    let config = json!({"metrics": "127.0.0.1:0"});
    let config = ClientConfig::from_value(config).expect("a configuration");
    let client = Client::open(switch, 1, cluster, Some(cluster), &config).expect("a socket");
    client.join(&[&[0.0; 8]], PATIENCE).expect("it joins");
    client.push(&[&[1.0; 8]], 2.0, 1.0).expect("it pushes");
    assert!(client.flush(PATIENCE), "its update has an end");
    client
}

/// Every field of every role is in the table, as a metric or as left out.
#[test]
fn each_field_of_the_statistics_is_a_metric_or_left_out_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = server(json!({"checkpoint": folder.path().join("c.npz")}));
    let upper = switch(server.address(), ENGINES);
    let lower = switch(upper.address(), &["queue"]);
    let clients = [joined(upper.address(), 1), joined(lower.address(), 2)];
    let places = [server.metrics_address(), upper.metrics_address(), lower.metrics_address()];
    let of_clients = clients.iter().map(Client::metrics_address);
    for place in places.into_iter().chain(of_clients) {
        let status = got(place.expect("it serves"), "/status.json").json();
        assert_eq!(unmapped(&status), Vec::<String>::new(), "of the {}", status["role"]);
    }
    let status = got(upper.metrics_address().expect("it serves"), "/status.json").json();
    assert!(!status["switches"].as_array().expect("a list").is_empty(), "the test has all lists");
    assert!(!status["workers"].as_array().expect("a list").is_empty(), "the test has all lists");
}

#[test]
fn metrics_tell_what_the_statistics_tell() {
    let server = server(json!({}));
    let switch = switch(server.address(), &["queue"]);
    let client = joined(switch.address(), 7);
    let place = switch.metrics_address().expect("it serves");
    let answer = got(place, "/metrics");
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("application/openmetrics-text"), "{}", answer.head);
    for line in [
        "olaf_updates_total{fate=\"sent_alone\"} 1.0",
        "olaf_cluster_updates_total{job_id=\"1\",cluster_id=\"7\",fate=\"sent_alone\"} 1.0",
        "olaf_queue_slots 8.0",
        "olaf_queue_info{discipline=\"olaf\"} 1",
        // 100 Mbit/s in the base unit.
        "olaf_link_rate_bytes_per_second{link=\"up\"} 12500000.0",
        "olaf_workers{job_id=\"1\",is_alive=\"true\"} 1.0",
        "# TYPE olaf_uptime_seconds gauge",
        "# UNIT olaf_uptime_seconds seconds",
    ] {
        assert!(answer.body.lines().any(|found| found == line), "{line} in {}", answer.body);
    }
    assert!(answer.body.ends_with("# EOF\n"));
    let ages = got(server.metrics_address().expect("it serves"), "/metrics").body;
    assert!(ages.contains("olaf_age_of_model_seconds{job_id=\"1\",cluster_id=\"7\"} 0."), "{ages}");
    let own = got(client.metrics_address().expect("it serves"), "/metrics").body;
    assert!(own.contains("olaf_worker_updates_total{fate=\"acknowledged\"} 1.0"), "{own}");
    assert!(own.contains("\nolaf_uptime_seconds 0."), "{own}");
}

#[test]
fn a_switch_is_ready_until_its_server_is_silent() {
    let server = server(json!({}));
    let switch = switch(server.address(), &["queue"]);
    let place = switch.metrics_address().expect("it serves");
    assert_eq!(got(place, "/readyz").status, 200, "no job has asked for a server yet");
    let client = joined(switch.address(), 1);
    assert_eq!(got(place, "/readyz").status, 200);
    assert_eq!(got(client.metrics_address().expect("it serves"), "/readyz").status, 200);
    server.stop().expect("it stops");
    // It only notices that a server is silent where it expects an answer.
    client.push(&[&[1.0; 8]], 2.0, 1.0).expect("it pushes");
    until("the switch misses its server", || got(place, "/readyz").status == 503);
    let answer = got(place, "/readyz").json();
    let reason = answer["reasons"][0].as_str().expect("a reason");
    assert!(reason.contains(server.address()) && reason.contains("has not answered"), "{reason}");
    assert_eq!(got(place, "/healthz").status, 200, "the switch itself works");
}

#[test]
fn slow_and_silent_readers_keep_nobody_waiting() {
    let server = server(json!({}));
    let place = server.metrics_address().expect("it serves");
    // They send half a head, or read nothing.
    let slow: Vec<_> = (0..40)
        .map(|_| {
            let mut stream = TcpStream::connect(place).expect("it listens");
            stream.write_all(b"GET /status.json HTTP/1.1\r\nHost").expect("half a head");
            stream
        })
        .collect();
    let began = Instant::now();
    assert_eq!(got(place, "/healthz").status, 200);
    assert!(began.elapsed() < Duration::from_secs(2), "it waited for others");
    // They are sent away at their deadline.
    for mut stream in slow {
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mut rest = Vec::new();
        match stream.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
    }
}

/// A connection to the place from another loopback address of this machine.
#[cfg(target_os = "linux")]
fn connected_from(last: u8, place: SocketAddr) -> TcpStream {
    let kind = socket2::Type::STREAM;
    let socket = socket2::Socket::new(socket2::Domain::IPV4, kind, None).expect("a socket");
    socket.bind(&SocketAddr::from(([127, 0, 0, last], 0)).into()).expect("an address");
    socket.connect(&place.into()).expect("it listens");
    socket.into()
}

/// How long `/healthz` takes to answer on that connection.
#[cfg(target_os = "linux")]
fn health_takes(mut stream: TcpStream) -> Duration {
    let began = Instant::now();
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let request = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    stream.write_all(request).expect("it takes a request");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    began.elapsed()
}

#[test]
#[cfg(target_os = "linux")]
fn who_holds_all_the_connections_it_can_get_keeps_nobody_from_health() {
    const SOON: Duration = Duration::from_secs(1);
    let server = server(json!({}));
    let place = server.metrics_address().expect("it serves");
    // Several times as many as there are places, from one address, and as many from five others.
    let mut held: Vec<_> = (0..200).map(|_| connected_from(1, place)).collect();
    assert!(health_takes(connected_from(1, place)) < SOON, "at the same address");
    assert!(health_takes(connected_from(7, place)) < SOON, "at another address");
    held.extend((0..200).map(|at| connected_from(2 + at % 5, place)));
    for stream in &mut held {
        // The other end may have closed it.
        let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost");
    }
    for last in [1, 2, 7] {
        assert!(health_takes(connected_from(last, place)) < SOON, "at 127.0.0.{last}");
    }
}

#[test]
fn there_are_few_places_and_they_are_given_back() {
    let server = server(json!({}));
    let place = server.metrics_address().expect("it serves");
    let many: Vec<_> = (0..200).map(|_| TcpStream::connect(place).expect("a backlog")).collect();
    drop(many);
    until("there is a place again", || {
        let Ok(mut stream) = TcpStream::connect(place) else { return false };
        let request = format!("GET /healthz HTTP/1.1\r\nHost: {place}\r\n\r\n");
        let mut text = String::new();
        let read = stream.write_all(request.as_bytes()).and_then(|()| {
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.read_to_string(&mut text)
        });
        read.is_ok() && text.starts_with("HTTP/1.1 200")
    });
}

#[test]
fn requests_that_are_too_long_or_not_for_reading_are_refused() {
    let server = server(json!({}));
    let place = server.metrics_address().expect("it serves");
    assert_eq!(got_with(place, "/healthz", &format!("X: {}\r\n", "a".repeat(20_000))).status, 431);
    assert_eq!(got_with(place, "/healthz", &"X: a\r\n".repeat(40)).status, 431);
    let posted = format!("POST /metrics HTTP/1.1\r\nHost: {place}\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(sent(place, &posted).status, 405);
    assert_eq!(got(place, "/secret").status, 404);
    let foreign = "GET /status.json HTTP/1.1\r\nHost: evil.example:80\r\n\r\n";
    assert_eq!(sent(place, foreign).status, 403, "a page that renamed this machine");
}

#[test]
fn beyond_loopback_a_reader_needs_the_token() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    fs::write(&file, "0123456789abcdef0123456789abcdef\n").expect("a file");
    let config = |file: Value| {
        let table = json!({
            "listen": "127.0.0.1:0", "metrics": "0.0.0.0:0", "metrics_token_file": file,
        });
        Server::bind(&ServerConfig::from_value(table).expect("a configuration"))
    };
    let told = config(Value::Null).err().expect("no token").to_string();
    assert!(told.contains("metrics = \"0.0.0.0:0\"") && told.contains("token_file"), "{told}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("a mode");
        let told = config(json!(file)).err().expect("others may read it").to_string();
        assert!(told.contains("chmod 600"), "{told}");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a mode");
    }
    let long = folder.path().join("long");
    fs::copy(&file, &long).expect("a file with the same mode");
    for (bytes, is_taken) in [(1_024, true), (1_025, false)] {
        fs::write(&long, "a".repeat(bytes)).expect("a file");
        let told = config(json!(long)).err().map(|error| error.to_string());
        assert_eq!(told.is_none(), is_taken, "{bytes} bytes: {told:?}");
        assert!(told.is_none_or(|told| told.contains("is longer than 1024 bytes")));
    }
    let server = config(json!(file)).expect("a port");
    server.start().expect("threads");
    let port = server.metrics_address().expect("it serves").port();
    let place = SocketAddr::from(([127, 0, 0, 1], port));
    let right = "Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n";
    let wrong = "Authorization: Bearer 0123456789abcdef0123456789abcdee\r\n";
    for path in ["/metrics", "/status.json", "/other"] {
        assert_eq!(got(place, path).status, 401);
        assert_eq!(got_with(place, path, wrong).status, 401);
    }
    assert_eq!(got_with(place, "/metrics", right).status, 200);
    for path in ["/", "/healthz", "/readyz"] {
        assert_eq!(got(place, path).status, 200, "{path} says nothing secret");
    }
    assert!(got(place, "/readyz").json().get("reasons").is_none());
    assert!(got_with(place, "/readyz", right).json().get("reasons").is_some());
}

#[test]
fn a_port_in_use_is_said_at_the_start() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let place = taken.local_addr().expect("bound").to_string();
    let table = json!({"listen": "127.0.0.1:0", "metrics": place});
    let error = Server::bind(&ServerConfig::from_value(table).expect("a configuration"));
    let error = error.err().expect("it is in use").to_string();
    assert!(error.contains(&place) && error.contains("--metrics HOST:PORT"), "{error}");
    assert!(!error.contains("--listen"), "{error}");
}

#[test]
fn stopping_a_role_frees_its_port_and_ends_its_threads() {
    let server = server(json!({}));
    let place = server.metrics_address().expect("it serves");
    let _idle = TcpStream::connect(place).expect("it listens");
    server.stop().expect("it stops");
    assert!(TcpStream::connect(place).is_err());
}
