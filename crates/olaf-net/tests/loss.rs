//! `receive_loss` of a role, by its own counters.

use olaf_net::{Server, ServerConfig, Switch, SwitchConfig};
use serde_json::{Value, json};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

fn switch(probability: f64) -> SwitchConfig {
    let config = json!({
        "listen": "127.0.0.1:0", "upstream": "127.0.0.1:9",
        "receive_loss": {"probability": probability, "seed": 3},
    });
    SwitchConfig::from_json(&config.to_string()).expect("a configuration")
}

#[test]
fn a_switch_loses_the_share_that_its_configuration_names() {
    let switch = Switch::bind(&switch(0.5)).expect("a port");
    switch.start().expect("a thread");
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("a port");
    for _ in 0..200 {
        stranger.send_to(b"no update", switch.address()).expect("loopback");
    }
    let began = Instant::now();
    let (received, lost) = loop {
        let text = switch.statistics().expect("it runs");
        let io = serde_json::from_str::<Value>(&text).expect("JSON")["io"].take();
        let count = |key: &str| io[key].as_u64().expect("a count");
        let (received, lost) = (count("received_datagrams"), count("lost_on_purpose"));
        if received + lost == 200 {
            break (received, lost);
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{received} and {lost} of 200");
    };
    assert!((60..140).contains(&lost), "{received} received, {lost} lost");
}

#[test]
fn a_share_above_one_is_refused_and_no_loss_is_not_written() {
    let error = Switch::bind(&switch(1.5)).err().expect("no share");
    assert!(error.to_string().contains("receive_loss.probability"), "{error}");
    let config = json!({"receive_loss": {"probability": -0.1, "seed": 1}}).to_string();
    let config = ServerConfig::from_json(&config).expect("a configuration");
    assert!(Server::bind(&config).is_err());
    assert!(!ServerConfig::default().to_table().contains_key("receive_loss"));
    assert_eq!(config.to_table()["receive_loss"]["seed"], 1);
}
