//! Which peer is behind which port.

use crate::ids::{PeerId, PortId};
use alloc::collections::BTreeMap;

/// The wiring of one engine, as its driver keeps it.
///
/// A peer without a place is behind the port for strangers: at a switch, workers below come and
/// go, while servers and switches above are configured. Example of a switch with one server:
/// `Wiring::new(PortId::DOWNLINK).with(server, PortId::UPLINK)`.
#[derive(Clone, Debug)]
pub struct Wiring {
    strangers: PortId,
    ports: BTreeMap<PeerId, PortId>,
}

impl Wiring {
    /// Every peer is behind that port.
    #[must_use]
    pub const fn new(strangers: PortId) -> Self {
        Self { strangers, ports: BTreeMap::new() }
    }

    /// The wiring of an end of the network, which has one port.
    #[must_use]
    pub const fn end() -> Self {
        Self::new(PortId(0))
    }

    /// The same with `peer` behind `port`.
    #[must_use]
    pub fn with(mut self, peer: PeerId, port: PortId) -> Self {
        self.place(peer, port);
        self
    }

    /// Puts `peer` behind `port`.
    pub fn place(&mut self, peer: PeerId, port: PortId) {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn a_switch_knows_its_servers_and_takes_strangers_for_workers() {
        let (first, second, worker) = (PeerId(1), PeerId(2), PeerId(9));
        let wiring =
            Wiring::new(PortId::DOWNLINK).with(first, PortId::UPLINK).with(second, PortId::UPLINK);
        assert_eq!(wiring.port(second), PortId::UPLINK);
        assert_eq!(wiring.port(worker), PortId::DOWNLINK);
        assert_eq!(wiring.peers_of(PortId::UPLINK).collect::<Vec<_>>(), [first, second]);
    }
}
