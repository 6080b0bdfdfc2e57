//! Whether the sender of a join is where it says, without a memory of it.
//!
//! A sender can write any address into a datagram. A switch that sums answers the first join of an
//! address with a cookie, and keeps nothing. A join that carries the cookie comes from somebody who
//! reads what is sent to that address. Only such a join makes a member, or moves one to another
//! address; results, and answers to questions, go to members alone.
//!
//! [`Proofs`](super::Proofs) remembers a number for each peer: there a join makes a member at once,
//! and the models wait for the proof.

use super::Chance;
use crate::engine::Place;
use crate::ids::PeerId;
use crate::time::Instant;
use core::hash::Hasher;
use core::time::Duration;
use siphasher::sip::SipHasher24;

/// A cookie is good for this time at least, and for twice as long at most: an address may get
/// another owner.
const PERIOD: Duration = Duration::from_secs(600);

/// Makes cookies and knows them again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cookies {
    /// None: addresses are believed, as where no address can be forged, or another layer proves them.
    secret: Option<(u64, u64)>,
    /// Where the datagrams come from, where the driver says so. A flood of strangers changes the numbers of
    /// peers, and not their addresses.
    place: Option<Place>,
}

impl Cookies {
    /// Addresses have to be proved from now on. `chance` draws the secret; a switch draws more from it.
    pub fn demand(&mut self, chance: &mut Chance) {
        let mut word = || u64::from(chance()) << 32 | u64::from(chance());
        self.secret = Some((word(), word()));
    }

    /// The next joins come from this address.
    pub const fn comes_from(&mut self, address: Place) {
        self.place = Some(address);
    }

    /// Returns true if addresses have to be proved.
    #[must_use]
    pub const fn are_demanded(&self) -> bool {
        self.secret.is_some()
    }

    /// Returns true if a join of the peer with that cookie comes from its address. 0 is no cookie.
    #[must_use]
    pub fn proves(&self, now: Instant, peer: PeerId, cookie: u32) -> bool {
        let Some(secret) = self.secret else { return true };
        let period = period_of(now);
        let mut periods = [Some(period), period.checked_sub(1)].into_iter().flatten();
        periods.any(|period| self.cookie_of(secret, period, peer) == cookie)
    }

    /// The cookie that the peer has to send back; 0 where addresses are believed.
    #[must_use]
    pub fn asked(&self, now: Instant, peer: PeerId) -> u32 {
        self.secret.map_or(0, |secret| self.cookie_of(secret, period_of(now), peer))
    }

    fn cookie_of(&self, (k0, k1): (u64, u64), period: u64, peer: PeerId) -> u32 {
        let mut hasher = SipHasher24::new_with_keys(k0, k1);
        hasher.write_u64(period);
        match &self.place {
            Some(place) => hasher.write(place),
            None => hasher.write_u32(peer.0),
        }
        (hasher.finish() as u32).max(1)
    }
}

fn period_of(now: Instant) -> u64 {
    now.0 / u64::try_from(PERIOD.as_nanos()).expect("ten minutes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::boxed::Box;

    const A: PeerId = PeerId(1);
    const B: PeerId = PeerId(2);
    const MINUTE: u64 = 60 * 1_000_000_000;

    fn demanding(seed: u32) -> Cookies {
        let mut cookies = Cookies::default();
        let mut last = seed;
        let mut chance: Chance = Box::new(move || {
            last += 1;
            last
        });
        cookies.demand(&mut chance);
        cookies
    }

    #[test]
    fn a_peer_proves_its_address_with_its_own_cookie() {
        let cookies = demanding(40);
        let now = Instant(5 * MINUTE);
        let [a, b] = [A, B].map(|peer| cookies.asked(now, peer));
        assert!(a != b && a != 0 && b != 0);
        assert!(cookies.proves(now, A, a) && cookies.proves(now, B, b));
        assert!(!cookies.proves(now, A, b), "it is another peer's");
        assert!(!cookies.proves(now, A, 0), "0 is none");
        assert!(!demanding(41).proves(now, A, a), "another switch drew another secret");
    }

    #[test]
    fn a_cookie_is_good_for_ten_minutes_at_least_and_twenty_at_most() {
        let cookies = demanding(40);
        let drawn = cookies.asked(Instant(9 * MINUTE), A);
        assert!(cookies.proves(Instant(19 * MINUTE), A, drawn));
        assert!(!cookies.proves(Instant(20 * MINUTE), A, drawn));
        assert_ne!(cookies.asked(Instant(10 * MINUTE), A), drawn);
    }

    #[test]
    fn a_cookie_is_of_an_address_where_the_driver_says_it() {
        let mut cookies = demanding(40);
        let now = Instant(5 * MINUTE);
        cookies.comes_from([7; 18]);
        let drawn = cookies.asked(now, A);
        cookies.comes_from([8; 18]);
        assert!(!cookies.proves(now, A, drawn), "another address has the number now");
        cookies.comes_from([7; 18]);
        assert!(cookies.proves(now, B, drawn), "the address has another number now");
    }

    #[test]
    fn without_chance_addresses_are_believed() {
        let cookies = Cookies::default();
        assert!(cookies.proves(Instant(0), A, 0) && cookies.proves(Instant(0), A, 7));
        assert_eq!(cookies.asked(Instant(0), A), 0);
    }
}
