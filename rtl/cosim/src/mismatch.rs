//! The length and seed of a run, and a difference that it found.

use std::env;
use std::fmt;

/// How long to run, and with which randomness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Everything random follows from it.
    pub seed: u64,
    /// Clock cycles.
    pub cycles: u64,
}

impl Run {
    /// `COSIM_CYCLES` and `COSIM_SEED` of the environment, where they are set.
    ///
    /// # Panics
    /// If one of them is not a whole number.
    #[must_use]
    pub fn from_environment(seed: u64, cycles: u64) -> Self {
        Self {
            seed: number("COSIM_SEED").unwrap_or(seed),
            cycles: number("COSIM_CYCLES").unwrap_or(cycles),
        }
    }
}

fn number(key: &str) -> Option<u64> {
    let text = env::var(key).ok()?.replace('_', "");
    Some(text.parse().unwrap_or_else(|_| panic!("{key} = {text}: a whole number")))
}

/// Hardware and engine differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The run that found it.
    pub run: Run,
    /// The cycle, counted from 0.
    pub cycle: u64,
    /// Both values.
    pub what: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run, cycle, what } = self;
        write!(
            f,
            "cycle {cycle}: {what}\nrepeat it with COSIM_SEED={} COSIM_CYCLES={}",
            run.seed,
            cycle + 1
        )
    }
}

/// Fails with both values where they differ.
pub(crate) fn same<T: PartialEq + fmt::Debug>(
    what: &str,
    hardware: T,
    engine: T,
) -> Result<(), String> {
    if hardware == engine {
        return Ok(());
    }
    Err(format!("{what}: the hardware has {hardware:?}, the engine {engine:?}"))
}
