//! Any text: a rate, a time or a size that reads is in range, and reads the same when it is written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use olaf_engine::{BitsPerSecond, units};

fuzz_target!(|text: &str| {
    match BitsPerSecond::parse(text) {
        Ok(rate) => {
            assert!((1..=BitsPerSecond::MAX).contains(&rate.get()));
            assert_eq!(BitsPerSecond::parse(&units::format_rate(rate)), Ok(rate));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match units::parse_time(text) {
        Ok(ns) => assert_eq!(units::parse_time(&units::format_time(ns)), Ok(ns)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match units::parse_size(text) {
        Ok(bytes) => assert_eq!(units::parse_size(&units::format_size(bytes)), Ok(bytes)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
