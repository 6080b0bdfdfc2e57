//! Parties that are not ours: a plain switch, a parameter server, the workers of a ring.

use olaf_engine::{Engine, Event, Instant, PeerId, PortId, Report, Source, Transmit, Verdict, Why};
use std::collections::VecDeque;

/// What a party does with a datagram: returns datagrams, each with its receiver.
type Act = Box<dyn FnMut(&[u8]) -> Vec<(PeerId, Vec<u8>)> + Send>;

/// A party that answers datagrams with datagrams, at once.
pub(super) struct Party {
    act: Act,
    out: VecDeque<(PeerId, Vec<u8>)>,
    /// What came, and when.
    pub(super) came: Vec<(Instant, Vec<u8>)>,
}

impl Party {
    pub(super) fn new(act: impl FnMut(&[u8]) -> Vec<(PeerId, Vec<u8>)> + Send + 'static) -> Self {
        Self { act: Box::new(act), out: VecDeque::new(), came: Vec::new() }
    }

    pub(super) fn send(&mut self, to: PeerId, bytes: Vec<u8>) {
        self.out.push_back((to, bytes));
    }
}

impl Engine for Party {
    fn handle_packet(&mut self, now: Instant, _from: Source, bytes: &[u8]) -> Verdict {
        self.came.push((now, bytes.to_vec()));
        self.out.extend((self.act)(bytes));
        Verdict::Absorb
    }

    fn poll_transmit(&mut self, _now: Instant, _port: PortId, buf: &mut [u8]) -> Option<Transmit> {
        let (to, bytes) = self.out.pop_front()?;
        buf[..bytes.len()].copy_from_slice(&bytes);
        Some(Transmit::to(to, bytes.len()))
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        None
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_event(&mut self) -> Option<Event> {
        None
    }

    fn peers(&self, _keep: &mut dyn FnMut(PeerId)) {}

    fn report(&self, _now: Instant, _to: &mut dyn Report) {}
}
