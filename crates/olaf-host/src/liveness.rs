//! Whether a party that owes a sign of life has given one.

use core::time::Duration;
use olaf_engine::Instant;

/// A party that should be heard at least every so often.
#[derive(Clone, Debug, Default)]
pub(crate) struct Liveness {
    heard: Option<Instant>,
    /// From here on it owes a sign of life.
    expected: Option<Instant>,
    silent: bool,
    epoch: u32,
}

/// What a sign of life says beside that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    Usual,
    Back,
    Restarted,
}

impl Liveness {
    /// Something was asked of it.
    pub(crate) fn expect(&mut self, now: Instant) {
        self.expected.get_or_insert(now);
    }

    /// What was asked of it does not reach it: it owes nothing.
    pub(crate) fn excuse(&mut self) {
        self.expected = None;
    }

    /// It was heard; `epoch` 0 where what was heard does not name its life.
    pub(crate) fn heard(&mut self, now: Instant, epoch: u32) -> Sign {
        self.heard = Some(now);
        self.expected = None;
        let back = core::mem::take(&mut self.silent);
        if epoch != 0 {
            let before = core::mem::replace(&mut self.epoch, epoch);
            if before != 0 && before != epoch {
                return Sign::Restarted;
            }
        }
        if back { Sign::Back } else { Sign::Usual }
    }

    /// Whether it has just fallen silent: true once.
    pub(crate) fn fell_silent(&mut self, now: Instant, after: Duration) -> bool {
        let fell = !self.silent && self.silence(now) >= after;
        self.silent |= fell;
        fell
    }

    /// When it will have fallen silent, should it not be heard before.
    pub(crate) fn falls_silent_at(&self, after: Duration) -> Option<Instant> {
        self.expected.filter(|_| !self.silent).map(|since| since + after)
    }

    /// For how long it has owed a sign of life.
    pub(crate) fn silence(&self, now: Instant) -> Duration {
        self.expected.map_or(Duration::ZERO, |since| now.since(since))
    }

    pub(crate) const fn epoch(&self) -> u32 {
        self.epoch
    }

    pub(crate) const fn is_alive(&self) -> bool {
        self.heard.is_some() && !self.silent
    }
}
