//! Where a worker stands with its job, and how it gets into a generation: joins, repeated until the switch lets it in or
//! turns it away.

use super::REPEAT;
use crate::collective::{Failure, Standing};
use core::time::Duration;
use olaf_engine::Instant;
use olaf_wire::reduce::WelcomeCode;

/// A join is repeated after [`REPEAT`], then after twice as long, and so on up to this time.
const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// The standing of a worker, and its joins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joining {
    standing: Standing,
    /// When the next join leaves, while it is to be let in.
    next: Option<Instant>,
    wait: Duration,
    /// The number with which the worker proves its address; 0: none asked for. It stays good in later joins.
    nonce: u32,
}

impl Default for Joining {
    fn default() -> Self {
        Self { standing: Standing::Left, next: None, wait: REPEAT, nonce: 0 }
    }
}

impl Joining {
    pub(crate) const fn standing(&self) -> Standing {
        self.standing
    }

    /// Returns true if the worker takes part, or wants to.
    pub(crate) const fn is_part(&self) -> bool {
        matches!(self.standing, Standing::Joining { .. } | Standing::In { .. })
    }

    pub(crate) const fn is_joining(&self) -> bool {
        matches!(self.standing, Standing::Joining { .. })
    }

    /// Why no operation can begin.
    pub(crate) const fn refusal(&self) -> Option<Failure> {
        match self.standing {
            Standing::Left => Some(Failure::NotJoined),
            Standing::Refused(code) => Some(Failure::Refused(code)),
            Standing::Joining { .. } | Standing::In { .. } => None,
        }
    }

    /// The worker asks to be let in, at once. The generation waits for so many workers.
    pub(crate) const fn begin(&mut self, now: Instant, workers: u32) {
        (self.next, self.wait) = (Some(now), REPEAT);
        self.standing = Standing::Joining { here: 0, workers };
    }

    /// The generation ends. Joins wait until its last operations have ended.
    pub(crate) const fn wait_for_last(&mut self, workers: u32) {
        self.next = None;
        self.standing = Standing::Joining { here: 0, workers };
    }

    /// When the next join leaves.
    pub(crate) fn at(&self) -> Option<Instant> {
        self.next.filter(|_| self.is_joining())
    }

    /// A join leaves now. The next one follows if nobody answers.
    pub(crate) fn sent(&mut self, now: Instant) {
        self.next = Some(now + self.wait);
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
    }

    /// What the next join says to prove the worker's address.
    pub(crate) const fn nonce(&self) -> u32 {
        self.nonce
    }

    /// The switch has heard the join, and waits for others: `here` workers of `workers`. It lets this one in once it joins
    /// with `nonce`, so a new one is sent at once. 0: nothing is left to prove.
    pub(crate) const fn heard(&mut self, now: Instant, here: u32, workers: u32, nonce: u32) {
        self.standing = Standing::Joining { here, workers };
        if nonce != 0 && nonce != self.nonce {
            self.nonce = nonce;
            (self.next, self.wait) = (Some(now), REPEAT);
        }
    }

    /// The worker is in a generation.
    pub(crate) const fn enter(&mut self, generation: u32, rank: u32, workers: u32) {
        self.next = None;
        self.standing = Standing::In { generation, rank, workers };
    }

    /// The switch turned the worker away. The program may ask again: a place may have become free.
    pub(crate) const fn turned_away(&mut self, code: WelcomeCode) {
        self.next = None;
        self.standing = Standing::Refused(code);
    }

    /// The worker has left.
    pub(crate) const fn leave(&mut self) {
        self.next = None;
        self.standing = Standing::Left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert_eq!((joining.at(), joining.refusal()), (None, Some(Failure::NotJoined)));
        joining.begin(at(0), 2);
        assert_eq!(times(&mut joining, 7), [0, 20, 60, 140, 300, 550, 800]);
        assert_eq!(joining.refusal(), None);
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
        assert_eq!((joining.at(), joining.is_part()), (None, true));
        joining.wait_for_last(2);
        assert_eq!((joining.at(), joining.is_joining()), (None, true));
        joining.begin(at(1), 2);
        joining.turned_away(WelcomeCode::Full);
        assert_eq!((joining.at(), joining.is_part()), (None, false));
        assert_eq!(joining.refusal(), Some(Failure::Refused(WelcomeCode::Full)));
        joining.leave();
        assert_eq!(joining.standing(), Standing::Left);
    }
}
