//! Where a worker stands with its job, and how it gets into a generation: joins, repeated until the switch lets it in or
//! turns it away.

use super::REPEAT;
use crate::collective::Standing;
use core::time::Duration;
use olaf_engine::Instant;
use olaf_wire::reduce::WelcomeCode;

/// A join is repeated after [`REPEAT`], then after twice as long, and so on up to this time.
const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// The joins of a worker to one authority.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joins {
    /// When the next one leaves; none: the worker asks for nothing.
    next: Option<Instant>,
    wait: Duration,
    /// The number with which the worker proves its address; 0: none asked for. It stays good in later joins.
    nonce: u32,
}

impl Default for Joins {
    fn default() -> Self {
        Self { next: None, wait: REPEAT, nonce: 0 }
    }
}

impl Joins {
    /// The next join leaves then, and is repeated from then on.
    pub(crate) const fn begin(&mut self, at: Instant) {
        (self.next, self.wait) = (Some(at), REPEAT);
    }

    pub(crate) const fn stop(&mut self) {
        self.next = None;
    }

    /// When the next one leaves.
    pub(crate) const fn at(&self) -> Option<Instant> {
        self.next
    }

    /// A join leaves now. If nobody answers, the next one follows after `longest` at the latest.
    pub(crate) fn sent(&mut self, now: Instant, longest: Duration) {
        let wait = self.wait.min(longest);
        (self.next, self.wait) = (Some(now + wait), wait * 2);
    }

    /// What the next join says to prove the worker's address.
    pub(crate) const fn nonce(&self) -> u32 {
        self.nonce
    }

    /// The authority lets the worker in once it joins with `nonce`, so a new one is sent at once. 0: nothing is left to
    /// prove.
    pub(crate) const fn prove(&mut self, now: Instant, nonce: u32) {
        if nonce != 0 && nonce != self.nonce {
            self.nonce = nonce;
            self.begin(now);
        }
    }
}

/// The standing of a worker with its switch, and its joins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joining {
    standing: Standing,
    joins: Joins,
}

impl Default for Joining {
    fn default() -> Self {
        Self { standing: Standing::Left, joins: Joins::default() }
    }
}

impl Joining {
    pub(crate) const fn standing(&self) -> Standing {
        self.standing
    }

    /// The worker asks to be let in, at once. The generation waits for `workers` workers.
    pub(crate) const fn begin(&mut self, now: Instant, workers: u32) {
        self.joins.begin(now);
        self.standing = Standing::Joining { here: 0, workers };
    }

    /// The generation ends. Joins wait until its last operations have ended.
    pub(crate) const fn wait_for_last(&mut self, workers: u32) {
        self.joins.stop();
        self.standing = Standing::Joining { here: 0, workers };
    }

    /// When the next join leaves.
    pub(crate) const fn at(&self) -> Option<Instant> {
        self.joins.at()
    }

    /// A join leaves now. The next one follows if nobody answers.
    pub(crate) fn sent(&mut self, now: Instant) {
        self.joins.sent(now, LONGEST_WAIT);
    }

    /// What the next join says to prove the worker's address.
    pub(crate) const fn nonce(&self) -> u32 {
        self.joins.nonce()
    }

    /// The switch has heard the join, and waits for others: `here` workers of `workers`. See [`Joins::prove`].
    pub(crate) const fn heard(&mut self, now: Instant, here: u32, workers: u32, nonce: u32) {
        self.standing = Standing::Joining { here, workers };
        self.joins.prove(now, nonce);
    }

    /// The worker is in a generation.
    pub(crate) const fn enter(&mut self, generation: u32, rank: u32, workers: u32) {
        self.joins.stop();
        self.standing = Standing::In { generation, rank, workers };
    }

    /// The switch turned the worker away. The program may ask again: a place may have become free.
    pub(crate) const fn turned_away(&mut self, code: WelcomeCode) {
        self.joins.stop();
        self.standing = Standing::Refused(code);
    }

    /// The worker has left.
    pub(crate) const fn leave(&mut self) {
        self.joins.stop();
        self.standing = Standing::Left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::Failure;
    use alloc::vec::Vec;

    const fn at(ms: u64) -> Instant {
        Instant(ms * 1_000_000)
    }

    /// When joins leave that nobody answers, in milliseconds.
    fn times(joining: &mut Joining, most: usize) -> Vec<u64> {
        let next = || {
            let at = joining.at()?;
            joining.sent(at);
            Some(at.0 / 1_000_000)
        };
        core::iter::from_fn(next).take(most).collect()
    }

    #[test]
    fn joins_come_more_and_more_seldom() {
        let mut joining = Joining::default();
        assert_eq!((joining.at(), joining.standing().refusal()), (None, Some(Failure::NotJoined)));
        joining.begin(at(0), 2);
        assert_eq!(times(&mut joining, 7), [0, 20, 60, 140, 300, 550, 800]);
        assert_eq!(joining.standing().refusal(), None);
    }

    #[test]
    fn a_number_that_proves_the_address_is_sent_at_once_and_from_then_on() {
        let mut joining = Joining::default();
        joining.begin(at(0), 2);
        joining.sent(at(0));
        joining.heard(at(1), 1, 2, 77);
        assert_eq!(joining.standing(), Standing::Joining { here: 1, workers: 2 });
        assert_eq!((joining.at(), joining.nonce()), (Some(at(1)), 77));
        joining.sent(at(1));
        joining.heard(at(2), 1, 2, 77);
        assert_eq!(joining.at(), Some(at(21)), "the same number asks for nothing new");
        joining.begin(at(30), 2);
        assert_eq!(joining.nonce(), 77, "the address is the same one");
    }

    #[test]
    fn a_worker_that_is_in_or_out_sends_no_joins() {
        let mut joining = Joining::default();
        joining.begin(at(0), 2);
        joining.enter(7, 0, 2);
        assert_eq!((joining.at(), joining.standing().is_part()), (None, true));
        joining.wait_for_last(2);
        assert_eq!((joining.at(), joining.standing().is_joining()), (None, true));
        joining.begin(at(1), 2);
        joining.turned_away(WelcomeCode::Full);
        assert_eq!((joining.at(), joining.standing().is_part()), (None, false));
        assert_eq!(joining.standing().refusal(), Some(Failure::Refused(WelcomeCode::Full)));
        joining.leave();
        assert_eq!(joining.standing(), Standing::Left);
    }
}
