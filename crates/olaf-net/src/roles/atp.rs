//! The engines of ATP: the switch, and the parameter server that completes what switches could not.

use crate::driver::{Driver, Running};
use crate::error::StartError;
use crate::io::peers::Peers;
use crate::io::socket::Socket;
use crate::random;
use crate::roles::switch::{above, keys_of, listen_of};
use crate::roles::switch_config::SwitchConfig;
use olaf_engine::keys::ConfigError;
use olaf_engine::sums::SETTLE;
use olaf_engine::switch::atp::{Config, Switch};
use olaf_engine::{PortId, Wiring};
use olaf_host::collective::atp::{AtpServer, ServerConfig, Topology};
use olaf_wire::atp::{MAX_SERVERS, switch_id};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The switch. `beside`: where the server of this switch's own process listens.
pub(super) fn switch(
    config: &SwitchConfig,
    key: &str,
    listen: &str,
    beside: Option<&str>,
) -> Result<Running<Switch>, StartError> {
    let wrong = |error: ConfigError| StartError::Config(format!("atp.{error}"));
    let id = config.atp.name.as_deref().map_or_else(random::draw, switch_id);
    let set_up = Config { tenants: config.tenants()?, ..config.atp.engine.clone() };
    let mut engine = Switch::new(set_up, id).map_err(wrong)?;
    let socket = bound(config, key, listen)?;
    let (mut peers, mut wiring) = (Peers::new(), Wiring::new(PortId::DOWNLINK));
    let mut servers = Vec::new();
    for text in upstream(config, beside)?.split(',') {
        let found = above(&socket, "atp.upstream", text, "name the server of ATP")?;
        let peer = peers.fix(found);
        wiring.place(peer, PortId::UPLINK);
        servers.push(peer);
    }
    if servers.len() > usize::from(MAX_SERVERS) {
        let many = servers.len();
        return Err(StartError::Config(format!(
            "atp.upstream names {many} servers: at most {MAX_SERVERS} share a tensor"
        )));
    }
    engine.set_servers(&servers);
    // Behind keys a handshake has proved each address.
    if !config.has_keys() {
        engine.demand_proofs(Box::new(random::draw));
    }
    let driver =
        Driver::new("switch", engine, wiring, peers, socket).behind_files(keys_of(config)?);
    Ok(Running::new(driver, config.core))
}

/// The parameter server.
pub(super) fn server(
    config: &SwitchConfig,
    key: &str,
    listen: &str,
) -> Result<Running<AtpServer>, StartError> {
    let wrong = |error: ConfigError| StartError::Config(format!("atp_server.{error}"));
    // Never from a seed: a life that looked like the one before would pass for it.
    let epoch = random::draw() as u16;
    let set_up = ServerConfig { tenants: config.tenants()?, ..config.atp_server.engine.clone() };
    let mut engine = AtpServer::new(set_up, epoch).map_err(wrong)?;
    // Behind keys a handshake has proved each address.
    if !config.has_keys() {
        engine.demand_proofs(Box::new(random::draw));
    }
    engine.expect_strangers(SETTLE);
    if let Some(file) = &config.atp_server.topology {
        engine.set_topology(topology(file)?);
    }
    let socket = bound(config, key, listen)?;
    let wiring = Wiring::new(PortId(0));
    let driver =
        Driver::new("switch", engine, wiring, Peers::new(), socket).behind_files(keys_of(config)?);
    Ok(Running::new(driver, config.core))
}

/// Reads the file that says where workers are.
fn topology(file: &str) -> Result<Topology, StartError> {
    let wrong = |what: String| StartError::Config(format!("atp_server.topology: {file}: {what}"));
    let text = std::fs::read_to_string(file).map_err(|error| {
        wrong(format!("cannot be read: {error}: name a JSON file, or leave the key out"))
    })?;
    Topology::parse(&text).map_err(|error| wrong(error.to_string()))
}

fn bound(config: &SwitchConfig, key: &str, listen: &str) -> Result<Socket, StartError> {
    let listen = listen_of(config, key, listen)?;
    Socket::bind(listen)?.losing(config.receive_loss)
}

/// The servers that are named, or the one beside.
fn upstream(config: &SwitchConfig, beside: Option<&str>) -> Result<String, StartError> {
    if let Some(named) = &config.atp.upstream {
        return Ok(named.clone());
    }
    let beside = beside.and_then(|address| address.parse::<SocketAddr>().ok());
    let Some(mut beside) = beside else {
        return Err(StartError::Config(
            "atp.upstream: ATP needs a server: name it (--upstream atp=HOST:PORT), or run one beside \
             it (--engines atp,atp_server)"
                .into(),
        ));
    };
    if beside.ip().is_unspecified() {
        let loopback: IpAddr = match beside {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        beside.set_ip(loopback);
    }
    Ok(beside.to_string())
}
