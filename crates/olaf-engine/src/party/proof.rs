//! Whether a peer is where its datagrams say: it echoed a number that was sent to its address.
//!
//! A sender can write any address into a datagram. Before the proof nothing goes to the address but
//! answers to joins, each at most twice as long as the join; so nobody draws models to another's address.
//!
//! A join makes a member at once, and is proved by a number that is remembered. Where many members have not
//! proved their addresses, a newcomer has to do it first, with a [cookie](super::Cookies) that nobody
//! remembers: a flood of forged addresses takes few places.

use super::Cookies;
use crate::engine::Place;
use crate::ids::PeerId;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;

/// Draws numbers that nobody can guess.
pub type Chance = Box<dyn FnMut() -> u32 + Send>;

/// What is known of each peer. Its memory is the caller's: see [`Proofs::keep`].
pub struct Proofs<K> {
    /// None: addresses are believed, as where no address can be forged, or another layer proves them.
    chance: Option<Chance>,
    of: BTreeMap<K, Proof>,
    /// For newcomers while there is a crowd. Its secret is drawn when it is needed first.
    cookies: Cookies,
    /// Members of peers that have proved nothing, as counted last, and newcomers since.
    unproven: usize,
}

/// Members of peers that have not proved their addresses, beyond which newcomers prove theirs first. A
/// switch forgets such a member after `silent_after` (2 s), and its server after a minute: of one switch
/// the server then knows at most 9,600, fewer than one peer may bring. It is more than the workers that one
/// address may have, so that a crowd at one address is refused for what it is.
pub const UNPROVEN: usize = 320;

struct Proof {
    nonce: u32,
    is_proven: bool,
    /// Wrong numbers that came since this one was drawn.
    wrong: u32,
}

/// A peer's number is drawn anew after this many wrong ones: whoever tries all numbers in turn never
/// comes to the end.
const MOST_WRONG: u32 = 4096;

impl Proof {
    fn drawn(chance: &mut Chance) -> Self {
        Self { nonce: chance().max(1), is_proven: false, wrong: 0 }
    }
}

impl<K> Default for Proofs<K> {
    fn default() -> Self {
        Self { chance: None, of: BTreeMap::new(), cookies: Cookies::default(), unproven: 0 }
    }
}

impl<K: Ord> Proofs<K> {
    /// Addresses have to be proved from now on.
    pub fn demand(&mut self, chance: Chance) {
        self.chance = Some(chance);
    }

    /// The next joins come from this address.
    pub const fn comes_from(&mut self, address: Place) {
        self.cookies.comes_from(address);
    }

    /// Returns true if addresses have to be proved.
    pub const fn are_demanded(&self) -> bool {
        self.chance.is_some()
    }

    /// Returns true if a newcomer has to prove its address first: [`UNPROVEN`] members have not proved theirs.
    pub const fn are_crowded(&self) -> bool {
        self.unproven >= UNPROVEN
    }

    /// A worker became a member at that peer.
    pub fn joined(&mut self, peer: &K) {
        self.unproven += usize::from(!self.is_proven(peer));
    }

    /// Counts the members of peers that have proved nothing; `members` says how many are at a peer.
    pub fn count(&mut self, members: impl Fn(&K) -> usize) {
        let open = self.of.iter().filter(|(_, proof)| !proof.is_proven);
        self.unproven = open.map(|(peer, _)| members(peer)).sum();
    }

    /// Takes the number in a newcomer's join for the cookie that was sent to its address; returns true if
    /// it is this.
    pub fn takes_cookie(&mut self, now: Instant, of: (PeerId, K), echo: u32) -> bool {
        let Some(chance) = &mut self.chance else { return true };
        if !self.cookies.are_demanded() || !self.cookies.proves(now, of.0, echo) {
            return false;
        }
        self.of.entry(of.1).or_insert_with(|| Proof::drawn(chance)).is_proven = true;
        true
    }

    /// The cookie that a newcomer has to send back.
    pub fn cookie(&mut self, now: Instant, peer: PeerId) -> u32 {
        let Some(chance) = &mut self.chance else { return 0 };
        if !self.cookies.are_demanded() {
            self.cookies.demand(chance);
        }
        self.cookies.asked(now, peer)
    }

    /// A peer's join came with that number; 0: with none.
    pub fn heard(&mut self, peer: K, echo: u32) {
        let Some(chance) = &mut self.chance else { return };
        let proof = self.of.entry(peer).or_insert_with(|| Proof::drawn(chance));
        proof.is_proven |= proof.nonce == echo;
        proof.wrong += u32::from(!proof.is_proven && echo != 0);
        if proof.wrong >= MOST_WRONG {
            *proof = Proof::drawn(chance);
        }
    }

    /// Returns true if the peer may get more than answers to its joins.
    pub fn is_proven(&self, peer: &K) -> bool {
        self.chance.is_none() || self.of.get(peer).is_some_and(|proof| proof.is_proven)
    }

    /// The number that the answer to a join of the peer carries: 0 where nothing is left to prove.
    pub fn asked(&self, peer: &K) -> u32 {
        let open = self.of.get(peer).filter(|proof| !proof.is_proven);
        open.map_or(0, |proof| proof.nonce)
    }

    /// The number that the answer carries where a party above asks for a proof: `theirs` stands for it
    /// where this party asks for none. Any number makes the peer join again.
    pub fn asked_with(&self, peer: &K, theirs: u32) -> u32 {
        match self.of.get(peer) {
            Some(proof) if theirs != 0 || !proof.is_proven => proof.nonce,
            Some(_) => 0,
            None => theirs,
        }
    }

    /// Forgets the others.
    pub fn keep(&mut self, mut is_here: impl FnMut(&K) -> bool) {
        self.of.retain(|peer, _| is_here(peer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demanding() -> Proofs<u32> {
        let mut proofs = Proofs::default();
        let mut last = 40;
        proofs.demand(Box::new(move || {
            last += 1;
            last
        }));
        proofs
    }

    #[test]
    fn a_peer_is_proven_when_it_echoes_its_own_number() {
        let mut proofs = demanding();
        assert!(!proofs.is_proven(&1));
        proofs.heard(1, 0);
        proofs.heard(2, 41);
        assert_eq!([proofs.asked(&1), proofs.asked(&2)], [41, 42]);
        assert!(!proofs.is_proven(&1) && !proofs.is_proven(&2), "41 is another peer's");
        proofs.heard(1, 41);
        assert!(proofs.is_proven(&1));
        assert_eq!((proofs.asked(&1), proofs.asked(&2)), (0, 42));
        // Once proven it stays so: a join that was on its way has no number yet.
        proofs.heard(1, 0);
        assert!(proofs.is_proven(&1));
        // A peer that was forgotten proves anew, with another number.
        proofs.keep(|peer| *peer == 2);
        proofs.heard(1, 41);
        assert!(!proofs.is_proven(&1));
    }

    #[test]
    fn a_number_that_is_guessed_at_is_drawn_anew() {
        let mut proofs = demanding();
        proofs.heard(1, 0);
        for guess in 1..=MOST_WRONG {
            assert_eq!(proofs.asked(&1), 41, "after {guess} guesses");
            proofs.heard(1, 1_000_000 + guess);
        }
        assert_eq!(proofs.asked(&1), 42);
        proofs.heard(1, 41);
        assert!(!proofs.is_proven(&1), "the old number is worth nothing");
        // Joins without a number are no guesses.
        (0..2 * MOST_WRONG).for_each(|_| proofs.heard(1, 0));
        proofs.heard(1, 42);
        assert!(proofs.is_proven(&1));
        // Nor do wrong numbers take a proof away.
        (0..2 * MOST_WRONG).for_each(|_| proofs.heard(1, 7));
        assert!(proofs.is_proven(&1));
    }

    #[test]
    fn a_party_above_is_proved_through_the_peers_below() {
        let mut proofs = demanding();
        proofs.heard(1, 0);
        proofs.heard(1, 41);
        assert_eq!((proofs.asked_with(&1, 0), proofs.asked_with(&1, 7)), (0, 41));
        let believing: Proofs<u32> = Proofs::default();
        assert_eq!((believing.asked_with(&1, 0), believing.asked_with(&1, 7)), (0, 7));
    }

    #[test]
    fn without_chance_addresses_are_believed() {
        let mut proofs: Proofs<u32> = Proofs::default();
        proofs.heard(1, 0);
        assert!(proofs.is_proven(&1));
        assert_eq!(proofs.asked(&1), 0);
    }
}
