//! A lower switch as a member of the switch above, for one job.

use super::Patience;
use crate::ids::Session;
use crate::time::Instant;

/// What a lower switch has told the switch above about a job, and heard of it.
///
/// While a generation goes on, the switch sends heartbeats, and each of them has an answer. So silence of the switch above
/// means that it is gone, or the path to it.
#[derive(Clone, Debug, Default)]
pub struct Upward {
    /// Names this switch's life in the job; 0: none drawn yet.
    pub session: Session,
    /// Workers that the newest join stood for.
    told: u32,
    /// Proves this switch's address; 0: no proof was asked for.
    nonce: u32,
    heard: Option<Instant>,
}

impl Upward {
    /// A switch of that session, which has not joined yet.
    #[must_use]
    pub fn new(session: Session) -> Self {
        Self { session, ..Self::default() }
    }

    /// A join leaves for that many workers. Returns the number with which it proves this switch's address.
    pub const fn joins_for(&mut self, workers: u32) -> u32 {
        self.told = workers;
        self.nonce
    }

    /// Returns true if the answer asks for a proof that the join did not have: the switch joins again with it at once.
    pub const fn is_to_prove(&mut self, nonce: u32) -> bool {
        let is_new = nonce != 0 && nonce != self.nonce;
        if is_new {
            self.nonce = nonce;
        }
        is_new
    }

    /// Returns true if the generation of an answer is that of the workers who wait now. Where workers came or went since
    /// the join, the sums above would wait for others than there are.
    #[must_use]
    pub const fn is_for(&self, workers: u32) -> bool {
        workers > 0 && workers == self.told
    }

    /// The switch above was heard about the job.
    pub const fn hear(&mut self, now: Instant) {
        self.heard = Some(now);
    }

    /// Returns true if the switch above was heard about the job, and is silent. Who was never heard owes no answer.
    #[must_use]
    pub fn is_silent(&self, now: Instant, patience: Patience) -> bool {
        self.heard.is_some_and(|heard| patience.is_overdue(now, heard))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sums::SILENCE;

    #[test]
    fn an_answer_is_for_those_for_whom_the_switch_joined() {
        let mut above = Upward::new(Session(7));
        assert!(!above.is_for(0), "nobody waits");
        assert_eq!(above.joins_for(2), 0);
        assert!(above.is_for(2) && !above.is_for(3));
    }

    #[test]
    fn a_proof_is_asked_for_once() {
        let mut above = Upward::new(Session(7));
        assert!(!above.is_to_prove(0) && above.is_to_prove(40) && !above.is_to_prove(40));
        assert_eq!(above.joins_for(1), 40);
        assert!(above.is_to_prove(41), "the switch above drew another secret");
    }

    #[test]
    fn the_switch_above_is_silent_after_it_was_heard() {
        let (mut above, patience) = (Upward::default(), Patience::new(SILENCE));
        assert!(!above.is_silent(Instant(u64::MAX), patience));
        above.hear(Instant(0));
        let then = Instant(0) + SILENCE;
        assert!(!above.is_silent(Instant(then.0 - 1), patience) && above.is_silent(then, patience));
    }
}
