//! The engines that sum as papers print them, each with the engine of the switch above it.

use crate::driver::{Driver, Running};
use crate::error::StartError;
use crate::io::address;
use crate::io::peers::Peers;
use crate::io::socket::Socket;
use crate::random;
use crate::roles::switch::{above, in_key, keys_of, listen_of, longest_datagram_to};
use crate::roles::switch_config::{EngineKind, SumsConfig, SwitchConfig};
use olaf_engine::keys::ConfigError;
use olaf_engine::party::{Chance, Tenants};
use olaf_engine::sums::SETTLE;
use olaf_engine::switch::{iswitch, trio};
use olaf_engine::{Engine, PeerId, PortId, Wiring};
use std::time::Duration;

/// An engine that sums, as a process makes it.
pub(super) trait Summing: Engine + Send + Sized + 'static {
    /// What its decisions depend on.
    type Config: Clone + Default;

    /// Which one it is.
    const KIND: EngineKind;

    /// It reads more of the traffic class than the two bits of ECN.
    const READS_CLASS: bool;

    /// An engine without jobs; `epoch` names this life of it.
    fn make(config: Self::Config, epoch: u32) -> Result<Self, ConfigError>;

    /// The same set-up for these jobs.
    fn for_jobs(config: Self::Config, tenants: Tenants) -> Self::Config;

    /// Demands that members prove their addresses.
    fn demand_proofs(&mut self, chance: Chance);

    /// Keeps two programs apart that start with one job number.
    fn expect_strangers(&mut self, settle: Duration);

    /// Passes regular traffic from a peer on to another one.
    fn pass_on(&mut self, _from: PeerId, _to: PeerId) {}

    /// Names the switch above, and the longest datagram that the path to it takes.
    fn set_upstream(&mut self, peer: PeerId, datagram_bytes: u32);
}

impl Summing for iswitch::Switch {
    type Config = iswitch::Config;
    const KIND: EngineKind = EngineKind::Iswitch;
    const READS_CLASS: bool = true;

    fn make(config: Self::Config, epoch: u32) -> Result<Self, ConfigError> {
        Self::new(config, epoch)
    }

    fn for_jobs(config: Self::Config, tenants: Tenants) -> Self::Config {
        iswitch::Config { tenants, ..config }
    }

    fn demand_proofs(&mut self, chance: Chance) {
        self.demand_proofs(chance);
    }

    fn expect_strangers(&mut self, settle: Duration) {
        self.expect_strangers(settle);
    }

    fn pass_on(&mut self, from: PeerId, to: PeerId) {
        self.pass_on(from, to);
    }

    fn set_upstream(&mut self, peer: PeerId, datagram_bytes: u32) {
        self.set_upstream(peer, datagram_bytes);
    }
}

impl Summing for trio::Switch {
    type Config = trio::Config;
    const KIND: EngineKind = EngineKind::Trio;
    const READS_CLASS: bool = false;

    fn make(config: Self::Config, epoch: u32) -> Result<Self, ConfigError> {
        Self::new(config, epoch)
    }

    fn for_jobs(config: Self::Config, tenants: Tenants) -> Self::Config {
        trio::Config { tenants, ..config }
    }

    fn demand_proofs(&mut self, chance: Chance) {
        self.demand_proofs(chance);
    }

    fn expect_strangers(&mut self, settle: Duration) {
        self.expect_strangers(settle);
    }

    fn set_upstream(&mut self, peer: PeerId, _datagram_bytes: u32) {
        self.set_upstream(peer);
    }
}

/// The engine that listens on `listen`, an address that `key` names.
pub(super) fn engine<E: Summing>(
    config: &SwitchConfig,
    own: &SumsConfig<E::Config>,
    key: &str,
    listen: &str,
) -> Result<Running<E>, StartError> {
    let name = E::KIND.name();
    // Never from a seed: a life that looked like the one before would pass for it.
    let set_up = E::for_jobs(own.engine.clone(), config.tenants()?);
    let mut engine = E::make(set_up, random::draw())
        .map_err(|error| StartError::Config(format!("{name}.{error}")))?;
    // Behind keys a handshake has proved each address.
    if !config.has_keys() {
        engine.demand_proofs(Box::new(random::draw));
    }
    engine.expect_strangers(SETTLE);
    let listen = listen_of(config, key, listen)?;
    let bind = if E::READS_CLASS { Socket::bind_whole_class } else { Socket::bind };
    let socket = bind(listen)?.losing(config.receive_loss)?;
    let (mut peers, mut wiring) = (Peers::new(), Wiring::new(PortId::DOWNLINK));
    if let Some(text) = &own.upstream {
        let key = format!("{name}.upstream");
        let found = above(&socket, &key, text, "name the switch above it")?;
        let peer = peers.fix(found);
        engine.set_upstream(peer, longest_datagram_to(config, found)?);
        wiring.place(peer, PortId::UPLINK);
        // The class of service alone tells regular traffic: other engines see none.
        for text in config.pass_from.iter().filter(|_| E::READS_CLASS) {
            let from = address::resolve(text, |a| socket.reaches(a));
            engine.pass_on(peers.fix(from.map_err(in_key("pass_from"))?), peer);
        }
    }
    let driver =
        Driver::new("switch", engine, wiring, peers, socket).behind_files(keys_of(config)?);
    Ok(Running::new(driver, config.core))
}
