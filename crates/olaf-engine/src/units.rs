//! Times and sizes as people write them: `20ms`, `9kB`. Rates are [`BitsPerSecond`].
//!
//! One reader for all of them, in whole numbers, so that 1.9mbit is 1,900,000 and 0.3ms is
//! 300,000 ns and neither is a neighbour of it. What is written here reads back as it was.

use crate::time::BitsPerSecond;
use alloc::format;
use alloc::string::String;
use core::fmt;

/// Units of time with their nanoseconds, the finest first.
const TIMES: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Units of size with their bytes. A capital B: a small one would be taken for bits.
const SIZES: [(&str, u64); 9] = [
    ("B", 1),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("kiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

const RATES: [(&str, u64); 5] = [
    ("bit", 1),
    ("kbit", 1_000),
    ("mbit", 1_000_000),
    ("gbit", 1_000_000_000),
    ("tbit", 1_000_000_000_000),
];

/// Why a text is no amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitError {
    /// No time; `bare` where only the unit is missing.
    Time {
        /// It is a number without a unit.
        bare: bool,
    },
    /// No size; `bare` where only the unit is missing.
    Size {
        /// It is a number without a unit.
        bare: bool,
    },
    /// A time finer than a nanosecond, or a size finer than a byte.
    TooFine,
    /// More than 64 bits of nanoseconds or bytes.
    TooLarge,
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Time { bare: true } => "a time needs its unit: ns, us, ms, s, min or h, as in 20ms",
            Self::Time { bare: false } => {
                "a time is a number and its unit, ns, us, ms, s, min or h, as in 20ms or 1.5s"
            }
            Self::Size { bare: true } => {
                "a size needs its unit: B, kB, MB, GB, KiB, MiB or GiB, as in 9kB"
            }
            Self::Size { bare: false } => {
                "a size is a number and its unit, B, kB, MB, GB, KiB, MiB or GiB, as in 9kB or 1.5MiB"
            }
            Self::TooFine => "is finer than a nanosecond, or than a byte",
            Self::TooLarge => "is too large",
        })
    }
}

impl core::error::Error for UnitError {}

/// Nanoseconds of a time: `20ms`, `1.5s`, `2min`. A zero needs no unit.
///
/// # Errors
/// What is wrong with it.
pub fn parse_time(text: &str) -> Result<u64, UnitError> {
    amount(text, &TIMES, |bare| UnitError::Time { bare })
}

/// Bytes of a size: `1500B`, `9kB`, `1.5MiB`. A zero needs no unit.
///
/// # Errors
/// What is wrong with it.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    amount(text, &SIZES, |bare| UnitError::Size { bare })
}

/// A time in the largest unit in which it is a whole number: `90s`, `20ms`, `2min`.
#[must_use]
pub fn format_time(ns: u64) -> String {
    // 90 s stays 90s, though 2min and 1h are minutes and hours.
    const WRITTEN: [(&str, u64); 6] = [
        ("h", 3_600_000_000_000),
        ("min", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ];
    written(ns, &WRITTEN, "0s")
}

/// Writes a size without rounding it, in the largest unit that divides it: `9kB`, `1500B`, `256MiB`.
#[must_use]
pub fn format_size(bytes: u64) -> String {
    const WRITTEN: [(&str, u64); 6] = [
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
        ("kB", 1_000),
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("B", 1),
    ];
    written(bytes, &WRITTEN, "0B")
}

/// A rate in the largest unit in which it is a whole number: `1900kbit`, `40gbit`.
#[must_use]
pub fn format_rate(rate: BitsPerSecond) -> String {
    let mut largest_first = RATES;
    largest_first.reverse();
    written(rate.get(), &largest_first, "0bit")
}

fn written(value: u64, largest_first: &[(&str, u64)], zero: &str) -> String {
    let unit = largest_first.iter().find(|(_, factor)| value.is_multiple_of(*factor));
    match unit {
        Some((name, factor)) if value > 0 => format!("{}{name}", value / factor),
        _ => String::from(zero),
    }
}

fn amount(
    text: &str,
    units: &[(&str, u64)],
    wrong: impl Fn(bool) -> UnitError,
) -> Result<u64, UnitError> {
    let (number, unit) = split(text.trim());
    let number = Decimal::parse(number).map_err(|error| match error {
        DecimalError::NoNumber => wrong(false),
        DecimalError::TooLong => UnitError::TooLarge,
    })?;
    let factor = match unit {
        "" if number.mantissa == 0 => 1,
        "" => return Err(wrong(true)),
        unit => {
            units.iter().find(|(name, _)| *name == unit).map(|(_, f)| *f).ok_or(wrong(false))?
        }
    };
    let (whole, rest) = number.times(factor).ok_or(UnitError::TooLarge)?;
    if rest {
        return Err(UnitError::TooFine);
    }
    u64::try_from(whole).map_err(|_| UnitError::TooLarge)
}

/// The number and what follows it.
pub(crate) fn split(text: &str) -> (&str, &str) {
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    (number, unit.trim())
}

/// A decimal number above or equal to 0, exactly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decimal {
    mantissa: u128,
    scale: u128,
}

/// Why a text is no decimal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecimalError {
    NoNumber,
    TooLong,
}

impl Decimal {
    /// Reads digits with at most one point and at most twelve digits behind it.
    pub(crate) fn parse(number: &str) -> Result<Self, DecimalError> {
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.len() > 12 {
            return Err(DecimalError::NoNumber);
        }
        let scale = (0..fraction.len()).fold(1, |scale, _| scale * 10);
        let mut mantissa: u128 = 0;
        for digit in whole.bytes().chain(fraction.bytes()) {
            if !digit.is_ascii_digit() {
                return Err(DecimalError::NoNumber);
            }
            mantissa = mantissa
                .checked_mul(10)
                .and_then(|m| m.checked_add(u128::from(digit - b'0')))
                .ok_or(DecimalError::TooLong)?;
        }
        Ok(Self { mantissa, scale })
    }

    /// So many times it, rounded down, and whether anything was lost; nothing beyond 128 bits.
    pub(crate) fn times(self, factor: u64) -> Option<(u128, bool)> {
        let product = self.mantissa.checked_mul(u128::from(factor))?;
        Some((product / self.scale, product % self.scale != 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_read_exactly() {
        for (text, ns) in [
            ("20ms", 20_000_000),
            ("1.5s", 1_500_000_000),
            ("0.3ms", 300_000),
            (" 2 min ", 120_000_000_000),
            ("7us", 7_000),
            ("7µs", 7_000),
            ("1h", 3_600_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(parse_time(text), Ok(ns), "{text}");
        }
        for (text, bytes) in
            [("9kB", 9_000), ("1500B", 1_500), ("1.5MiB", 3 << 19), ("2GB", 2_000_000_000)]
        {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_amount_says_why() {
        assert_eq!(parse_time("20"), Err(UnitError::Time { bare: true }));
        for text in ["", "ms", "soon", "20 parsecs", "-1s", "1.2.3s", "20MS", "0.0000000000001s"] {
            assert_eq!(parse_time(text), Err(UnitError::Time { bare: false }), "{text}");
        }
        assert_eq!(parse_time("0.1ns"), Err(UnitError::TooFine));
        assert_eq!(parse_time("999999999999h"), Err(UnitError::TooLarge));
        let digits = "9".repeat(60);
        assert_eq!(parse_time(&digits), Err(UnitError::TooLarge));
        assert_eq!(parse_size("9"), Err(UnitError::Size { bare: true }));
        // A small b could mean bits.
        assert_eq!(parse_size("9kb"), Err(UnitError::Size { bare: false }));
        assert_eq!(parse_size("0.5B"), Err(UnitError::TooFine));
    }

    #[test]
    fn what_is_written_reads_back() {
        for (ns, text) in [
            (20_000_000, "20ms"),
            (90_000_000_000, "90s"),
            (120_000_000_000, "2min"),
            (1_500_000, "1500us"),
            (0, "0s"),
            (1, "1ns"),
        ] {
            assert_eq!(format_time(ns), text);
            assert_eq!(parse_time(text), Ok(ns));
        }
        for bytes in [1, 999, 1_500, 9_000, 64 << 20, u64::MAX] {
            assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
        }
        assert_eq!((&*format_size(9_000), &*format_size(64 << 20)), ("9kB", "64MiB"));
        for bits in [1, 1_900_000, 400_000, 40_000_000_000, BitsPerSecond::MAX] {
            let rate = BitsPerSecond::new(bits).expect("a rate");
            assert_eq!(BitsPerSecond::parse(&format_rate(rate)), Ok(rate));
        }
        assert_eq!(format_rate(BitsPerSecond::new(1_900_000).expect("a rate")), "1900kbit");
    }
}
