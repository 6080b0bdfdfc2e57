//! How far the server's clock is from this worker's, and how sure that is.

use alloc::collections::VecDeque;
use olaf_engine::Instant;

/// Exchanges remembered: the surest of them counts, and old ones go, for clocks drift.
const REMEMBERED: usize = 16;

/// An estimate from the times that joins and welcomes carry, as NTP makes it.
#[derive(Debug, Default)]
pub(in crate::push_pull) struct Clock {
    exchanges: VecDeque<Exchange>,
}

#[derive(Clone, Copy, Debug)]
struct Exchange {
    offset_ns: i64,
    error_ns: u64,
}

impl Clock {
    /// One exchange: sent here, received and sent there, received here.
    pub(in crate::push_pull) fn exchange(
        &mut self,
        sent: u64,
        there: u64,
        back: u64,
        received: u64,
    ) {
        let path = received.saturating_sub(sent).saturating_sub(back.saturating_sub(there));
        let forth = i128::from(there) - i128::from(sent);
        let return_ = i128::from(back) - i128::from(received);
        let Ok(offset_ns) = i64::try_from((forth + return_) / 2) else { return };
        if self.exchanges.len() == REMEMBERED {
            self.exchanges.pop_front();
        }
        self.exchanges.push_back(Exchange { offset_ns, error_ns: path / 2 });
    }

    fn best(&self) -> Option<Exchange> {
        self.exchanges.iter().copied().min_by_key(|exchange| exchange.error_ns)
    }

    /// Server's clock minus this one, nanoseconds. An offset within its own error bound is taken
    /// for none: on one machine, and between well-kept clocks, that is the truth.
    pub(in crate::push_pull) fn offset_ns(&self) -> i64 {
        self.best().filter(|e| e.offset_ns.unsigned_abs() > e.error_ns).map_or(0, |e| e.offset_ns)
    }

    /// Bound of the estimate's error, nanoseconds; nothing before the first exchange.
    pub(in crate::push_pull) fn error_ns(&self) -> Option<u64> {
        self.best().map(|exchange| exchange.error_ns)
    }

    pub(in crate::push_pull) fn error_us(&self) -> u32 {
        self.error_ns()
            .map_or(u32::MAX, |ns| u32::try_from(ns.div_ceil(1000)).unwrap_or(u32::MAX - 1))
    }

    /// `now` by the server's clock, nanoseconds.
    pub(in crate::push_pull) fn server_time(&self, now: Instant) -> u64 {
        now.0.saturating_add_signed(self.offset_ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_found_within_half_the_round_trip() {
        let mut clock = Clock::default();
        // Server 1,000 ahead; 30 there, 10 back.
        clock.exchange(100, 1130, 1135, 145);
        assert_eq!((clock.offset_ns(), clock.error_ns()), (1010, Some(20)));
        assert_eq!(clock.server_time(Instant(200)), 1210);
    }

    #[test]
    fn an_offset_within_its_error_is_none() {
        let mut clock = Clock::default();
        clock.exchange(100, 130, 130, 140);
        assert_eq!((clock.offset_ns(), clock.error_ns()), (0, Some(20)));
    }
}
