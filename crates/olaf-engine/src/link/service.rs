//! How long an update takes a link.

use super::Departure;
use super::pacer::Pacer;
use crate::time::Instant;
use core::time::Duration;

/// The measured time, smoothed.
#[derive(Default)]
pub(super) struct Service {
    time: Duration,
    /// With credits: when the last update left, where another one waited then.
    backlogged_since: Option<Instant>,
    /// Credits that had expired by then.
    expired: u64,
}

impl Service {
    pub(super) const fn time(&self) -> Duration {
        self.time
    }

    /// An update has left, and others wait or not.
    pub(super) fn measure(
        &mut self,
        now: Instant,
        pacer: &Pacer,
        departure: Departure,
        others_wait: bool,
    ) {
        match pacer {
            Pacer::Unlimited => {}
            Pacer::Rate(_) => self.take(departure.end.since(departure.start)),
            Pacer::Credit(pacer) => {
                let expired = pacer.expired();
                // A credit that expired says nothing of how fast the server is.
                let honest = core::mem::replace(&mut self.expired, expired) == expired;
                match self.backlogged_since {
                    Some(before) if honest => self.take(now.since(before)),
                    Some(_) => {}
                    // No update waited: the server is faster than the measured time.
                    None => self.time = self.time * 7 / 8,
                }
                self.backlogged_since = others_wait.then_some(now);
            }
        }
    }

    /// Smoothed: the last segment of a model may be shorter than the others.
    fn take(&mut self, sample: Duration) {
        let first = self.time.is_zero();
        self.time = if first { sample } else { (self.time * 7 + sample) / 8 };
    }
}
