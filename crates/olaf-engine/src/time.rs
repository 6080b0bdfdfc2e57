//! Time and rates as arguments.

use crate::units::{Decimal, DecimalError, split};
use core::fmt;
use core::ops::{Add, Sub};
use core::time::Duration;

/// Nanoseconds since an origin that all parties of a run share. Drivers over sockets count from
/// the Unix epoch; a simulation, a trace or a test bench counts from its own zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(pub u64);

impl Instant {
    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Time since `earlier`; zero when that is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Self> for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

/// A link's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BitsPerSecond(u64);

impl BitsPerSecond {
    /// The fastest rate taken: 10 Tbit/s.
    pub const MAX: u64 = 10_000_000_000_000;

    /// A rate from 1 bit/s to 10 Tbit/s.
    #[must_use]
    pub const fn new(bits_per_second: u64) -> Option<Self> {
        if bits_per_second == 0 || bits_per_second > Self::MAX {
            None
        } else {
            Some(Self(bits_per_second))
        }
    }

    /// Bits per second.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Reads a rate as `tc` writes it: a decimal number and `bit`, `kbit`, `mbit`, `gbit`, `tbit`
    /// (powers of 1000), `kibit` .. (powers of 1024), or the same with `bps` for bytes; without a
    /// unit, bits. Case does not matter.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, RateError> {
        let (number, unit) = split(text.trim());
        let factor = unit_factor(unit).ok_or(RateError::Unit)?;
        let number = Decimal::parse(number).map_err(|error| match error {
            DecimalError::NoNumber => RateError::Number,
            DecimalError::TooLong => RateError::Range,
        })?;
        let (bits, _) = number.times(factor).ok_or(RateError::Range)?;
        u64::try_from(bits).ok().and_then(Self::new).ok_or(RateError::Range)
    }
}

fn unit_factor(unit: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 20] = [
        ("", 1),
        ("bit", 1),
        ("kbit", 1_000),
        ("mbit", 1_000_000),
        ("gbit", 1_000_000_000),
        ("tbit", 1_000_000_000_000),
        ("kibit", 1 << 10),
        ("mibit", 1 << 20),
        ("gibit", 1 << 30),
        ("tibit", 1 << 40),
        ("bps", 8),
        ("kbps", 8_000),
        ("mbps", 8_000_000),
        ("gbps", 8_000_000_000),
        ("tbps", 8_000_000_000_000),
        ("kibps", 8 << 10),
        ("mibps", 8 << 20),
        ("gibps", 8 << 30),
        ("tibps", 8 << 40),
        ("bit/s", 1),
    ];
    UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).map(|(_, factor)| *factor)
}

/// Why a text is no rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateError {
    /// It does not begin with a decimal number.
    Number,
    /// Its unit is none that `tc` knows.
    Unit,
    /// It is zero or beyond 10 Tbit/s.
    Range,
}

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number => "a rate begins with a decimal number, like 1.9mbit",
            Self::Unit => {
                "a rate ends in bit, kbit, mbit, gbit or tbit (bits), kibit .. (powers of 1024), \
                 or bps, kbps, mbps .. (bytes)"
            }
            Self::Range => "a rate is above 0 and at most 10tbit",
        })
    }
}

impl core::error::Error for RateError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_read_as_tc_writes_them() {
        for (text, bits) in [
            ("40gbit", 40_000_000_000),
            ("1.9mbit", 1_900_000),
            ("2048000000bit", 2_048_000_000),
            ("5Gbit", 5_000_000_000),
            ("800", 800),
            ("1kbps", 8_000),
            (".5mbit", 500_000),
        ] {
            assert_eq!(BitsPerSecond::parse(text).map(BitsPerSecond::get), Ok(bits), "{text}");
        }
    }

    #[test]
    fn what_is_no_rate_says_why() {
        assert_eq!(BitsPerSecond::parse("fast"), Err(RateError::Unit));
        assert_eq!(BitsPerSecond::parse("gbit"), Err(RateError::Number));
        assert_eq!(BitsPerSecond::parse("1.2.3gbit"), Err(RateError::Number));
        assert_eq!(BitsPerSecond::parse("-1gbit"), Err(RateError::Unit));
        assert_eq!(BitsPerSecond::parse("0bit"), Err(RateError::Range));
        assert_eq!(BitsPerSecond::parse("99tbit"), Err(RateError::Range));
        assert_eq!(
            BitsPerSecond::parse("9999999999999999999999999999999999999999gbit"),
            Err(RateError::Range)
        );
    }
}
