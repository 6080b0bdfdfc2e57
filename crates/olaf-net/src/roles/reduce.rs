//! The engine `reduce` of a switch: one engine for each core, with a socket and a thread of its own.
//!
//! The engines share nothing. Workers of a fixed job divide each operation among them, as
//! [`SumClient`](crate::SumClient) does. The engine of core `i` listens on the port `i` after the
//! first one's.

use crate::driver::{Driver, Running};
use crate::error::StartError;
use crate::io::peers::Peers;
use crate::io::socket::Socket;
use crate::random;
use crate::roles::switch::{above, keys_of, listen_of, longest_datagram_to};
use crate::roles::switch_config::SwitchConfig;
use olaf_engine::sums::SETTLE;
use olaf_engine::switch::reduce::{Config, Switch};
use olaf_engine::{PortId, Wiring};
use serde_json::{Map, Value};
use std::net::SocketAddr;

/// If the first port may be any free one, the ports after it must be free too: it is chosen anew
/// that often.
const TRIES: usize = 32;

/// The engines of all cores; the first listens on `listen`, an address that `key` names.
pub(super) fn engines(
    config: &SwitchConfig,
    key: &str,
    listen: &str,
) -> Result<Vec<Running<Switch>>, StartError> {
    let engine = config.reduce()?;
    let first = listen_of(config, key, listen)?;
    let sockets = sockets(first, engine.cores)?;
    let each = sockets.into_iter().enumerate();
    each.map(|(core, socket)| {
        let socket = socket.losing(config.receive_loss)?;
        one(config, engine.clone(), core, socket)
    })
    .collect()
}

/// As many sockets, on ports that follow each other.
fn sockets(first: SocketAddr, count: u32) -> Result<Vec<Socket>, StartError> {
    let mut tries = 0;
    loop {
        let socket = Socket::bind(first)?;
        let local = socket.local();
        match after(socket, local, count) {
            Err(_) if first.port() == 0 && tries < TRIES => tries += 1,
            bound => return bound,
        }
    }
}

fn after(first: Socket, at: SocketAddr, count: u32) -> Result<Vec<Socket>, StartError> {
    let mut sockets = vec![first];
    for core in 1..count {
        sockets.push(Socket::bind(port_of(at, core)?)?);
    }
    Ok(sockets)
}

/// The address of a core's engine, where the first core's is known.
pub(crate) fn port_of(first: SocketAddr, core: u32) -> Result<SocketAddr, StartError> {
    let port = u16::try_from(core).ok().and_then(|core| first.port().checked_add(core));
    port.map(|port| SocketAddr::new(first.ip(), port)).ok_or_else(|| {
        StartError::Config(format!(
            "reduce.cores: there is no port {core} after {first} for core {core}: listen on a \
             lower port"
        ))
    })
}

/// The engine of one core, with that core's engine of the switch above it.
fn one(
    config: &SwitchConfig,
    engine: Config,
    core: usize,
    socket: Socket,
) -> Result<Running<Switch>, StartError> {
    // As for the queue, a number that differs from life to life.
    let mut engine = Switch::new(engine, random::draw())
        .map_err(|error| StartError::Config(format!("reduce.{error}")))?;
    // Behind keys a handshake has proved each address.
    if !config.has_keys() {
        engine.demand_proofs(Box::new(random::draw));
    }
    engine.expect_strangers(SETTLE);
    let mut peers = Peers::new();
    let mut wiring = Wiring::new(PortId::DOWNLINK);
    if let Some(text) = &config.reduce.upstream {
        let found = above(&socket, "reduce.upstream", text, "name the switch above it")?;
        let found = port_of(found, u32::try_from(core).expect("at most MAX_CORES"))?;
        let peer = peers.fix(found);
        engine.set_upstream(peer, longest_datagram_to(config, found)?);
        wiring.place(peer, PortId::UPLINK);
    }
    let pinned = config.core.map(|first| first + core);
    let driver =
        Driver::new("switch", engine, wiring, peers, socket).behind_files(keys_of(config)?);
    Ok(Running::new(driver, pinned))
}

/// The counts of all engines: numbers are added, and each job names its core.
pub(super) fn together(mut each: Vec<Value>) -> Value {
    if each.len() == 1 {
        return each.remove(0);
    }
    for (core, counts) in each.iter_mut().enumerate() {
        for job in counts["jobs"].as_array_mut().into_iter().flatten() {
            job["core"] = core.into();
        }
    }
    let mut each = each.into_iter();
    let first = each.next().unwrap_or_default();
    each.fold(first, |mut all, more| {
        let uptime = all["uptime_s"].take();
        add(&mut all, more);
        all["uptime_s"] = uptime;
        all
    })
}

/// Adds numbers, joins lists, and otherwise keeps what is there.
fn add(all: &mut Value, more: Value) {
    match (all, more) {
        (Value::Object(all), Value::Object(more)) => add_each(all, more),
        (Value::Array(all), Value::Array(more)) => all.extend(more),
        (Value::Number(all), Value::Number(more)) => {
            let whole = all.as_u64().zip(more.as_u64()).map(|(all, more)| (all + more).into());
            let real = || serde_json::Number::from_f64(all.as_f64()? + more.as_f64()?);
            if let Some(sum) = whole.or_else(real) {
                *all = sum;
            }
        }
        (all @ Value::Null, more) => *all = more,
        _ => {}
    }
}

fn add_each(all: &mut Map<String, Value>, more: Map<String, Value>) {
    for (key, value) in more {
        match all.get_mut(&key) {
            Some(known) => add(known, value),
            None => drop(all.insert(key, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn counts_of_all_cores_add_up() {
        let core = |pieces: u64, reason: &str| {
            json!({"address": "a:1", "uptime_s": 2.5, "pieces": {"received": pieces},
                   "refused": {reason: 1}, "cpu_s": 0.5, "jobs": [{"job": 7}]})
        };
        let all = together(vec![core(3, "late"), core(4, "late"), core(5, "other")]);
        assert_eq!(all["pieces"]["received"], 12);
        assert_eq!(all["refused"], json!({"late": 2, "other": 1}));
        assert_eq!((&all["uptime_s"], &all["cpu_s"]), (&json!(2.5), &json!(1.5)));
        let jobs = json!([{"job": 7, "core": 0}, {"job": 7, "core": 1}, {"job": 7, "core": 2}]);
        assert_eq!(all["jobs"], jobs);
        assert_eq!(together(vec![core(3, "late")])["jobs"], json!([{"job": 7}]));
    }

    #[test]
    fn the_ports_of_the_cores_follow_each_other() {
        let any = "127.0.0.1:0".parse().expect("an address");
        let sockets = sockets(any, 4).expect("free ports");
        let ports: Vec<u16> = sockets.iter().map(|socket| socket.local().port()).collect();
        assert!(ports.windows(2).all(|two| two[0] + 1 == two[1]), "{ports:?}");
        let taken = sockets[0].local();
        let error = super::sockets(taken, 2).map(|_| ()).expect_err("it is taken").to_string();
        assert!(error.contains(&taken.to_string()), "{error}");
        let last = SocketAddr::new(taken.ip(), u16::MAX);
        assert!(port_of(last, 1).expect_err("no port").to_string().contains("reduce.cores"));
    }
}
