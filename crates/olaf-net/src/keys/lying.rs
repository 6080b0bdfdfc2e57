//! A switch on real sockets that has its key, and changes the models that it passes on.

use super::{Key, KeySet};
use crate::driver::{Driver, Running};
use crate::io::peers::Peers;
use crate::io::socket::Socket;
use crate::{Client, ClientConfig, Server, ServerConfig};
use olaf_engine::seal::Secrets;
use olaf_engine::switch::native::Config;
use olaf_engine::{
    Engine, Event, Instant, PeerId, PortId, Report, Source, Switch, Transmit, Verdict, Why, Wiring,
};
use olaf_wire::offsets::{answer, signature};
use olaf_wire::{Kind, Packet};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// Anything here takes less than this.
const PATIENCE: Duration = Duration::from_secs(20);

const HONEST: u8 = 0;
/// It changes a lane of each model.
const LANE: u8 = 1;
/// It changes a lane of each model, and the hash in its signature.
const HASH: u8 = 2;
/// It keeps signatures back.
const SILENT: u8 = 3;

struct Liar {
    inner: Switch,
    lie: Arc<AtomicU8>,
}

impl Liar {
    /// Whether the datagram leaves.
    fn change(&self, datagram: &mut [u8]) -> bool {
        let lie = self.lie.load(Ordering::Relaxed);
        let Ok(packet) = Packet::new_checked(datagram) else { return true };
        match packet.kind() {
            Kind::Model if lie == LANE || lie == HASH => datagram[answer::PAYLOAD] ^= 1,
            Kind::Signature if lie == HASH => datagram[signature::HASH] ^= 1,
            Kind::Signature => return lie != SILENT,
            _ => {}
        }
        true
    }
}

impl Engine for Liar {
    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        self.inner.handle_packet(now, from, bytes)
    }
    fn poll_transmit(&mut self, now: Instant, port: PortId, buf: &mut [u8]) -> Option<Transmit> {
        loop {
            let sent = self.inner.poll_transmit(now, port, buf)?;
            if port == PortId::UPLINK || self.change(&mut buf[..sent.len]) {
                return Some(sent);
            }
        }
    }
    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        self.inner.poll_timeout()
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.inner.handle_timeout(now);
    }
    fn poll_event(&mut self) -> Option<Event> {
        self.inner.poll_event()
    }
    fn ports(&self) -> u16 {
        self.inner.ports()
    }
    fn must_drain(&self) -> bool {
        self.inner.must_drain()
    }
    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        self.inner.peers(keep);
    }
    fn report(&self, now: Instant, to: &mut dyn Report) {
        self.inner.report(now, to);
    }
    fn job_of(&self, at: Source, message: &[u8]) -> Option<u32> {
        self.inner.job_of(at, message)
    }
}

fn switch(server: &Server, key: &Key, lie: &Arc<AtomicU8>) -> Running<Liar> {
    let any = "127.0.0.1:0".parse().expect("an address");
    let socket = Socket::bind(any).expect("a port");
    let mut peers = Peers::new();
    let upstream = peers.fix(server.address().parse().expect("an address"));
    let mut inner = Switch::new(Config::default(), 7).expect("these settings can be");
    inner.set_default_server(upstream);
    let wiring = Wiring::new(PortId::DOWNLINK).with(upstream, PortId::UPLINK);
    let keys: Box<dyn Secrets> = Box::new(KeySet::new(&[key.for_switch()]));
    let liar = Liar { inner, lie: lie.clone() };
    let driver = Driver::new("switch", liar, wiring, peers, socket).behind(Some(keys));
    let running = Running::new(driver, None);
    running.start().expect("a thread");
    running
}

/// A counter of the worker's signatures.
fn count(client: &Client, of: &str) -> u64 {
    let told: Value = serde_json::from_str(&client.statistics()).expect("JSON");
    told["signatures"][of].as_u64().expect("a count")
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what} in time");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_worker_takes_nothing_of_a_switch_that_lies_names_it_and_goes_on_with_an_honest_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("job.key");
    let key = Key::generate(None);
    key.write(&file).expect("a new file");
    let server = json!({"listen": "127.0.0.1:0", "key_files": [&file], "learning_rate": 1.0});
    let server = ServerConfig::from_json(&server.to_string()).expect("a configuration");
    let server = Server::bind(&server).expect("a port");
    server.start().expect("a thread");
    let lie = Arc::new(AtomicU8::new(HONEST));
    let switch = switch(&server, &key, &lie);
    let config = json!({"segment_lanes": 100, "key_file": &file, "silent_after_ms": 400, "keepalive_ms": 100});
    let config = ClientConfig::from_json(&config.to_string()).expect("a configuration");
    let client = Client::open(switch.address(), 1, 0, Some(1), &config).expect("a socket");
    let zeros = [0.0; 250];
    assert_eq!(client.join(&[&zeros], PATIENCE).expect("it joins"), 1);

    let push = || client.push(&[&[1.0; 250]], 0.0, 1.0).expect("finite values");
    let learn = |from: u32| {
        (0..5).fold(from, |version, _| {
            push();
            client.wait(version, PATIENCE).expect("a newer model")
        })
    };
    learn(1);
    let (checked, held) = (count(&client, "checked"), count(&client, "held"));
    assert!(checked >= 5 && held == 0, "{checked} checked, {held} held");

    for (says, counter, event) in [
        (LANE, "forged", "model_forged"),
        (HASH, "wrong", "signature_forged"),
        (SILENT, "unsigned", "model_unsigned"),
    ] {
        let before = count(&client, counter);
        lie.store(says, Ordering::Relaxed);
        until(counter, || {
            push();
            count(&client, counter) > before + 1
        });
        until(event, || {
            let told = client.events().expect("it runs");
            let about =
                |told: &Value| told["event"] == event && told["through"] == switch.address();
            told.iter().any(|told| about(&serde_json::from_str(told).expect("JSON")))
        });
        lie.store(HONEST, Ordering::Relaxed);
        learn(client.wait(0, PATIENCE).expect("a model"));
    }
    // To the bit, the worker's model is the server's.
    until("the server's newest model", || {
        client.refresh();
        let _ = client.wait_refreshed(Duration::from_millis(200));
        let mut model = zeros;
        let taken = client.pull(&mut [&mut model], 0).expect("the model's size");
        let (version, whole) = server.model(1).expect("it runs").expect("a model");
        taken == Some(version) && model[..] == whole[..]
    });
    switch.stop().expect("it stops");
}
