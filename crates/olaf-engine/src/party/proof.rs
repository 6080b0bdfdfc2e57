//! Whether a peer is where its datagrams say: it echoed a number that was sent to its address.
//!
//! A sender can write any address into a datagram. Before the proof nothing goes to the address but
//! answers to joins, each at most twice as long as the join; so nobody draws models to another's address.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

/// Draws numbers that nobody can guess.
pub type Chance = Box<dyn FnMut() -> u32 + Send>;

/// What is known of each peer. Its memory is the caller's: see [`Proofs::keep`].
pub struct Proofs<K> {
    /// None: addresses are believed, as where no address can be forged, or another layer proves them.
    chance: Option<Chance>,
    of: BTreeMap<K, Proof>,
}

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
        Self { chance: None, of: BTreeMap::new() }
    }
}

impl<K: Ord> Proofs<K> {
    /// Addresses have to be proved from now on.
    pub fn demand(&mut self, chance: Chance) {
        self.chance = Some(chance);
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
