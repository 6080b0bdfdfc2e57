//! Who may speak for which bits: the seats that the server's welcomes give to the workers behind this switch.

use crate::ids::{PeerId, Session};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use olaf_wire::atp::{BITS, Header, LEVELS, Upper, Welcome};

/// Whose the bits of a packet are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// Of workers behind the sender.
    Senders,
    /// One is of a worker behind another peer, or the packet contradicts the seat.
    Others,
    /// One is of nobody whose welcome passed here.
    Unknown,
}

/// A worker's seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seat {
    bitmaps: [u32; LEVELS],
    fan_ins: [u8; LEVELS],
}

/// The workers that a bit of a level stands for.
#[derive(Debug, Default)]
struct Bit {
    /// Where they are, and how many of them.
    peers: Vec<(PeerId, u32)>,
    /// As their seats have it. All workers of a bit have the same from the bit's level on.
    fan_ins: [u8; LEVELS],
}

/// The seats of one generation.
#[derive(Debug)]
pub(super) struct Seats {
    pub(super) generation: u16,
    of: BTreeMap<Session, (Seat, PeerId)>,
    /// By level, and by the numbers of the bits from that level on.
    bits: BTreeMap<(usize, u32), Bit>,
}

/// The numbers of the bits from that level on, with `bit` at the level itself.
fn number(level: usize, bit: u32, bitmap: impl Fn(usize) -> u32) -> u32 {
    let number = |above: usize| bitmap(above).trailing_zeros() % BITS;
    (level + 1..LEVELS).rev().fold(0, |group, above| group * BITS + number(above)) * BITS + bit
}

impl Seat {
    fn of(welcome: &Welcome) -> Self {
        let Upper { bitmaps: [bitmap2, bitmap3], fan_ins: [fan_in2, fan_in3], .. } =
            welcome.upper.unwrap_or_default();
        Self {
            bitmaps: [welcome.bitmap0, welcome.bitmap1, bitmap2, bitmap3],
            fan_ins: [welcome.fan_in0, welcome.fan_in1, fan_in2, fan_in3],
        }
    }

    /// Its bit at each level.
    fn bits(self) -> impl Iterator<Item = (usize, u32)> {
        (0..LEVELS).map(move |level| {
            let bit = self.bitmaps[level].trailing_zeros() % BITS;
            (level, number(level, bit, |above| self.bitmaps[above]))
        })
    }
}

impl Seats {
    pub(super) const fn new(generation: u16) -> Self {
        Self { generation, of: BTreeMap::new(), bits: BTreeMap::new() }
    }

    /// A welcome gives a seat to the worker behind that peer.
    pub(super) fn seat(&mut self, welcome: &Welcome, peer: PeerId) {
        let seat = Seat::of(welcome);
        if self.of.get(&welcome.session) != Some(&(seat, peer)) {
            self.leave(welcome.session);
            self.sit(welcome.session, seat, peer);
        }
    }

    /// The worker is behind another peer.
    pub(super) fn moved(&mut self, session: Session, peer: PeerId) {
        if let Some((seat, _)) = self.leave(session) {
            self.sit(session, seat, peer);
        }
    }

    fn sit(&mut self, session: Session, seat: Seat, peer: PeerId) {
        for at in seat.bits() {
            let bit = self.bits.entry(at).or_default();
            bit.fan_ins = seat.fan_ins;
            match bit.peers.iter_mut().find(|(other, _)| *other == peer) {
                Some((_, workers)) => *workers += 1,
                None => bit.peers.push((peer, 1)),
            }
        }
        self.of.insert(session, (seat, peer));
    }

    /// The worker's seat is nobody's from now on.
    pub(super) fn leave(&mut self, session: Session) -> Option<(Seat, PeerId)> {
        let (seat, peer) = self.of.remove(&session)?;
        for at in seat.bits() {
            let Some(bit) = self.bits.get_mut(&at) else { continue };
            bit.peers.iter_mut().filter(|(other, _)| *other == peer).for_each(|at| at.1 -= 1);
            bit.peers.retain(|(_, workers)| *workers > 0);
            if bit.peers.is_empty() {
                self.bits.remove(&at);
            }
        }
        Some((seat, peer))
    }

    pub(super) fn has(&self, session: Session) -> bool {
        self.of.contains_key(&session)
    }

    /// Whose the bits of a packet from that peer are. `is_switch`: the peer has workers behind it.
    pub(super) fn whose(&self, header: &Header, peer: PeerId, is_switch: bool) -> Whose {
        // Below this level the packet names nobody: everyone there is in it.
        let level = (0..LEVELS).find(|level| header.bitmap(*level) != 0).unwrap_or(LEVELS - 1);
        let bitmap = header.bitmap(level);
        let mut whose = Whose::Senders;
        for bit in (0..BITS).filter(|bit| bitmap >> bit & 1 == 1) {
            let Some(bit) = self.bits.get(&(level, number(level, bit, |at| header.bitmap(at))))
            else {
                whose = Whose::Unknown;
                continue;
            };
            let fits = (level..LEVELS).all(|at| header.fan_in(at) == bit.fan_ins[at]);
            let is_its = bit.peers.iter().all(|(other, _)| *other == peer);
            // A worker itself has no sum of groups.
            if !fits || !is_its || (level > 0 && !is_switch) {
                return Whose::Others;
            }
        }
        whose
    }
}
