//! The link behind the queue: one update after the other, at its rate.

/// A link. Times are in nanoseconds, as fractions: an update of 256 bytes takes 12.8 cycles at 40 Gbit/s.
pub(super) struct Link {
    ns_per_byte: f64,
    /// When the last byte so far leaves.
    free_at: f64,
}

impl Link {
    pub(super) fn new(rate_bps: u64) -> Self {
        Self { ns_per_byte: 8e9 / rate_bps as f64, free_at: 0.0 }
    }

    /// Bytes begin at `now`, when the link is idle.
    pub(super) fn begin(&mut self, now: f64, bytes: u64) {
        self.free_at = now;
        self.follow(bytes);
    }

    /// Bytes follow the last ones without a gap.
    pub(super) fn follow(&mut self, bytes: u64) {
        self.free_at += bytes as f64 * self.ns_per_byte;
    }

    /// Whether all bytes have left by `now`.
    pub(super) fn is_free(&self, now: f64) -> bool {
        // Nanoseconds of a run are below a thousand million: sums are exact to far below a picosecond.
        self.free_at <= now + 1e-3
    }
}
