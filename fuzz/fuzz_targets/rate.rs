//! Any text: a rate that reads is in range, and reads the same when written in bits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use olaf_engine::BitsPerSecond;

fuzz_target!(|text: &str| {
    match BitsPerSecond::parse(text) {
        Ok(rate) => {
            assert!((1..=BitsPerSecond::MAX).contains(&rate.get()));
            let again = BitsPerSecond::parse(&format!("{}bit", rate.get()));
            assert_eq!(again, Ok(rate));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
