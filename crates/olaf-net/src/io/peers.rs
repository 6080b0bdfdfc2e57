//! Addresses and the numbers by which the pure crates know them.

use olaf_engine::PeerId;
use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};

/// Addresses beyond the parties' own that are remembered before the idle ones are forgotten.
const STRANGERS: usize = 4096;

/// A party's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) address: SocketAddr,
    /// Which of this machine's addresses it talks to, where there are several.
    pub(crate) reply_from: Option<IpAddr>,
}

/// The map, both ways.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    ids: HashMap<SocketAddr, PeerId>,
    places: HashMap<PeerId, Place>,
    fixed: BTreeSet<PeerId>,
    next: u32,
    /// The number of peers that starts the next search for forgotten ones.
    sweep_at: usize,
}

impl Peers {
    pub(crate) fn new() -> Self {
        Self { sweep_at: STRANGERS, ..Self::default() }
    }

    /// The number of an address, which is remembered for good.
    pub(crate) fn fix(&mut self, address: SocketAddr) -> PeerId {
        let id = self.id(address, None);
        self.fixed.insert(id);
        id
    }

    /// The number of an address; a new one where it is not known.
    pub(crate) fn id(&mut self, address: SocketAddr, reply_from: Option<IpAddr>) -> PeerId {
        if let Some(id) = self.ids.get(&address).copied() {
            if reply_from.is_some()
                && let Some(place) = self.places.get_mut(&id)
            {
                place.reply_from = reply_from;
            }
            return id;
        }
        let id = self.free_number();
        self.ids.insert(address, id);
        self.places.insert(id, Place { address, reply_from });
        id
    }

    /// A number that no peer has. Strangers use numbers up, and the numbers begin again after 2^32: a
    /// stranger must not get the number of a server or a worker.
    fn free_number(&mut self) -> PeerId {
        loop {
            let id = PeerId(self.next);
            self.next = self.next.wrapping_add(1);
            if !self.places.contains_key(&id) {
                return id;
            }
        }
    }

    /// The number of an address, if it has one.
    pub(crate) fn known(&self, address: SocketAddr) -> Option<PeerId> {
        self.ids.get(&address).copied()
    }

    pub(crate) fn place(&self, id: PeerId) -> Option<Place> {
        self.places.get(&id).copied()
    }

    /// The address as text, for people.
    pub(crate) fn name(&self, id: PeerId) -> String {
        self.place(id).map_or_else(|| format!("peer {}", id.0), |place| place.address.to_string())
    }

    pub(crate) fn is_crowded(&self) -> bool {
        self.ids.len() >= self.sweep_at
    }

    /// Forgets everyone but the fixed and the known.
    pub(crate) fn keep(&mut self, known: impl Fn(PeerId) -> bool) {
        let fixed = &self.fixed;
        self.places.retain(|id, _| fixed.contains(id) || known(*id));
        let places = &self.places;
        self.ids.retain(|_, id| places.contains_key(id));
        self.sweep_at = self.ids.len() + STRANGERS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn an_address_keeps_its_number() {
        let mut peers = Peers::new();
        let (a, b) = (peers.id(address(1), None), peers.id(address(2), None));
        assert_ne!(a, b);
        assert_eq!(peers.id(address(1), None), a);
        assert_eq!((peers.name(a), peers.name(PeerId(9))), ("127.0.0.1:1".into(), "peer 9".into()));
    }

    #[test]
    fn after_the_last_number_no_stranger_gets_that_of_a_known_peer() {
        let mut peers = Peers::new();
        let (server, worker) = (peers.fix(address(1)), peers.id(address(2), None));
        peers.next = u32::MAX;
        let strangers = [3, 4, 5].map(|port| peers.id(address(port), None));
        assert!(strangers.iter().all(|id| ![server, worker].contains(id)), "{strangers:?}");
        assert_eq!(peers.place(server).map(|place| place.address), Some(address(1)));
        assert_eq!(peers.place(worker).map(|place| place.address), Some(address(2)));
    }

    #[test]
    fn strangers_are_forgotten_and_servers_never() {
        let mut peers = Peers::new();
        let server = peers.fix(address(1));
        let worker = peers.id(address(2), None);
        for port in 3..=4096 {
            peers.id(address(port), None);
        }
        assert!(peers.is_crowded());
        peers.keep(|id| id == worker);
        assert!(!peers.is_crowded());
        assert_eq!(peers.places.len(), 2);
        assert!(peers.place(server).is_some() && peers.place(worker).is_some());
        assert_eq!(peers.id(address(2), None), worker);
    }
}
