//! Which peer is behind which port, and where a datagram goes that no engine claims.

use crate::ids::{PeerId, PortId};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The wiring of one engine, as its driver keeps it.
///
/// A peer without a place is behind the port for strangers: at a switch, workers below come and
/// go, while servers and switches above are configured. Example of a switch with one server:
/// `Wiring::new(PortId::DOWNLINK).with(server, PortId::UPLINK)`.
#[derive(Clone, Debug)]
pub struct Wiring {
    strangers: PortId,
    ports: BTreeMap<PeerId, PortId>,
    /// For each port the peer that gets what is not ours.
    defaults: Vec<Option<PeerId>>,
}

impl Wiring {
    /// Every peer is behind that port.
    #[must_use]
    pub const fn new(strangers: PortId) -> Self {
        Self { strangers, ports: BTreeMap::new(), defaults: Vec::new() }
    }

    /// The wiring of an end of the network, which has one port.
    #[must_use]
    pub const fn end() -> Self {
        Self::new(PortId(0))
    }

    /// The same with `peer` behind `port`. The first peer of a port is its default peer.
    #[must_use]
    pub fn with(mut self, peer: PeerId, port: PortId) -> Self {
        self.place(peer, port);
        self
    }

    /// The same with `peer` as the default peer of `port`.
    #[must_use]
    pub fn with_default(mut self, peer: PeerId, port: PortId) -> Self {
        self.place(peer, port);
        self.defaults[usize::from(port.0)] = Some(peer);
        self
    }

    /// Puts `peer` behind `port`. The first peer of a port is its default peer.
    pub fn place(&mut self, peer: PeerId, port: PortId) {
        let ports = usize::from(port.0) + 1;
        if self.defaults.len() < ports {
            self.defaults.resize(ports, None);
        }
        self.defaults[ports - 1].get_or_insert(peer);
        self.ports.insert(peer, port);
    }

    /// The port that `peer` is behind.
    #[must_use]
    pub fn port(&self, peer: PeerId) -> PortId {
        self.ports.get(&peer).copied().unwrap_or(self.strangers)
    }

    /// The peers that were placed behind `port`.
    pub fn peers_of(&self, port: PortId) -> impl Iterator<Item = PeerId> {
        self.ports.iter().filter(move |(_, at)| **at == port).map(|(peer, _)| *peer)
    }

    /// The peer that gets what leaves `port` and is not ours; nothing where there is none.
    #[must_use]
    pub fn default_peer(&self, port: PortId) -> Option<PeerId> {
        self.defaults.get(usize::from(port.0)).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_knows_its_servers_and_takes_strangers_for_workers() {
        let (first, second, worker) = (PeerId(1), PeerId(2), PeerId(9));
        let wiring =
            Wiring::new(PortId::DOWNLINK).with(first, PortId::UPLINK).with(second, PortId::UPLINK);
        assert_eq!(wiring.port(second), PortId::UPLINK);
        assert_eq!(wiring.port(worker), PortId::DOWNLINK);
        assert_eq!(wiring.default_peer(PortId::UPLINK), Some(first));
        assert_eq!(wiring.default_peer(PortId::DOWNLINK), None, "nobody knows for which worker");
        let wiring = wiring.with_default(worker, PortId::DOWNLINK);
        assert_eq!(wiring.default_peer(PortId::DOWNLINK), Some(worker));
    }
}
