//! A switch on real sockets that has its key, and changes the models that it passes on.

use super::{Key, KeySet};
use crate::driver::{Driver, Running};
use crate::io::peers::Peers;
use crate::io::socket::Socket;
use crate::{Client, ClientConfig, Server, ServerConfig};
use olaf_engine::seal::Secrets;
use olaf_engine::switch::native::Config;
use olaf_engine::{PortId, Switch, Wiring};
use olaf_samples::{Liar, Lie};
use serde_json::{Value, json};
use std::time::Duration;

/// Anything here takes less than this.
const PATIENCE: Duration = Duration::from_secs(20);

fn switch(server: &Server, key: &Key) -> Running<Liar> {
    let any = "127.0.0.1:0".parse().expect("an address");
    let socket = Socket::bind(any).expect("a port");
    let mut peers = Peers::new();
    let upstream = peers.fix(server.address().parse().expect("an address"));
    let mut inner = Switch::new(Config::default(), 7).expect("these settings can be");
    inner.set_default_server(upstream);
    let wiring = Wiring::new(PortId::DOWNLINK).with(upstream, PortId::UPLINK);
    let keys: Box<dyn Secrets> = Box::new(KeySet::new(&[key.for_switch()]));
    let driver = Driver::new("switch", Liar::new(inner), wiring, peers, socket).behind(Some(keys));
    let running = Running::new(driver, None);
    running.start().expect("a thread");
    running
}

fn tell(switch: &Running<Liar>, lie: Lie) {
    switch.ask(move |driver| driver.engine.lie = lie).expect("it runs");
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
    let switch = switch(&server, &key);
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

    for (lie, counter, event) in [
        (Lie::Lane, "forged", "model_forged"),
        (Lie::Hash, "wrong", "signature_forged"),
        (Lie::NoSignatures, "unsigned", "model_unsigned"),
    ] {
        let before = count(&client, counter);
        tell(&switch, lie);
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
        tell(&switch, Lie::None);
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
