//! Whether a party that owes a heartbeat has given one.
//!
//! Some parties owe a heartbeat only when something was asked of them: a server that no party
//! sends to has nothing to answer. Others owe one all the time: a worker repeats its join.
//!
//! | time since a sign was due | the party is |
//! |---|---|
//! | below `silent_after` | alive |
//! | at least `silent_after` | silent: an event says so, and its id may be taken over |
//! | at least 30 times that | gone: it is forgotten |

use crate::time::Instant;
use core::time::Duration;

/// A party that is not heard for this multiple of `silent_after` is gone. Ids and memory must not
/// belong to the dead for ever; a worker whose machine restarts comes back sooner.
pub const GONE: u32 = 30;

/// A switch that sums looks this often, within the three heartbeats after which a worker counts as silent (1.5 s), whether one
/// is dead: it is found at most 94 ms later than it could be.
pub const LOOKS: u32 = 16;

/// When a party was heard, and since when it owes a heartbeat.
#[derive(Clone, Debug, Default)]
pub struct Liveness {
    heard: Option<Instant>,
    /// From here on it owes a heartbeat.
    expected: Option<Instant>,
    silent: bool,
    epoch: u32,
}

/// What a heartbeat says beside that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Nothing.
    Usual,
    /// The party was silent until now.
    Back,
    /// The party began a new life.
    Restarted,
}

impl Liveness {
    /// A party that is heard at `now` and owes the next heartbeat from then on.
    #[must_use]
    pub const fn since(now: Instant) -> Self {
        Self { heard: Some(now), expected: Some(now), silent: false, epoch: 0 }
    }

    /// Something was asked of it.
    pub fn expect(&mut self, now: Instant) {
        self.expected.get_or_insert(now);
    }

    /// What was asked of it does not reach it: it owes nothing.
    pub fn excuse(&mut self) {
        self.expected = None;
    }

    /// It was heard, and owes nothing until something is asked of it. `epoch` is 0 where what was
    /// heard does not name its life.
    pub fn heard(&mut self, now: Instant, epoch: u32) -> Sign {
        self.heard = Some(now);
        self.expected = None;
        let back = self.comes_back();
        if epoch != 0 {
            let before = core::mem::replace(&mut self.epoch, epoch);
            if before != 0 && before != epoch {
                return Sign::Restarted;
            }
        }
        if back { Sign::Back } else { Sign::Usual }
    }

    /// It was heard, and owes the next heartbeat from now on. A silent party stays silent until
    /// [`comes_back`](Self::comes_back): the caller chooses which sign brings a party back.
    pub const fn note(&mut self, now: Instant) {
        self.heard = Some(now);
        self.expected = Some(now);
    }

    /// It is silent no more; whether it was.
    pub const fn comes_back(&mut self) -> bool {
        core::mem::replace(&mut self.silent, false)
    }

    /// Returns true if it has just fallen silent: true once.
    pub fn fell_silent(&mut self, now: Instant, after: Duration) -> bool {
        let fell = !self.silent && self.is_overdue(now, after);
        self.silent |= fell;
        fell
    }

    /// When it will have fallen silent, should it not be heard before.
    #[must_use]
    pub fn falls_silent_at(&self, after: Duration) -> Option<Instant> {
        self.expected.filter(|_| !self.silent).map(|since| since + after)
    }

    /// For how long it has owed a heartbeat.
    #[must_use]
    pub fn silence(&self, now: Instant) -> Duration {
        self.expected.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Returns true if it has owed a heartbeat for at least `after`.
    #[must_use]
    pub fn is_overdue(&self, now: Instant, after: Duration) -> bool {
        self.expected.is_some() && self.silence(now) >= after
    }

    /// Returns true if the party has been silent long enough to be forgotten.
    #[must_use]
    pub fn is_gone(&self, now: Instant, silent_after: Duration) -> bool {
        self.is_overdue(now, silent_after * GONE)
    }

    /// Returns true if it fell silent, and has not come back.
    #[must_use]
    pub const fn is_silent(&self) -> bool {
        self.silent
    }

    /// Returns true if it was ever heard, and is not silent.
    #[must_use]
    pub const fn is_alive(&self) -> bool {
        self.heard.is_some() && !self.silent
    }

    /// The life that it named last; 0: none.
    #[must_use]
    pub const fn epoch(&self) -> u32 {
        self.epoch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: Duration = Duration::from_millis(100);

    fn ms(ms: u64) -> Instant {
        Instant(ms * 1_000_000)
    }

    #[test]
    fn a_party_of_which_nothing_is_asked_never_falls_silent() {
        let mut server = Liveness::default();
        assert!(!server.fell_silent(ms(9_000), AFTER) && !server.is_alive());
        server.expect(ms(9_000));
        server.expect(ms(9_090));
        assert_eq!(server.falls_silent_at(AFTER), Some(ms(9_100)));
        assert!(!server.fell_silent(ms(9_099), AFTER));
        assert!(server.fell_silent(ms(9_100), AFTER) && !server.fell_silent(ms(9_200), AFTER));
        assert_eq!(server.heard(ms(9_300), 7), Sign::Back);
        assert_eq!(server.silence(ms(20_000)), Duration::ZERO);
        assert_eq!(server.heard(ms(9_400), 0), Sign::Usual);
        assert_eq!(server.heard(ms(9_500), 8), Sign::Restarted);
        assert_eq!(server.epoch(), 8);
    }

    #[test]
    fn a_party_that_owes_a_sign_all_the_time_falls_silent_by_itself_and_is_gone_later() {
        let mut worker = Liveness::since(ms(0));
        worker.note(ms(50));
        assert!(!worker.fell_silent(ms(149), AFTER) && worker.fell_silent(ms(150), AFTER));
        worker.note(ms(160));
        assert!(worker.is_silent(), "only its join brings it back");
        assert!(worker.comes_back() && !worker.comes_back() && worker.is_alive());
        assert!(!worker.is_gone(ms(3_159), AFTER) && worker.is_gone(ms(3_160), AFTER));
    }
}
