//! What a caller may choose of the sharing protocol, with the one place of its defaults.

use super::Timing;
use crate::sharing::Policy;
use serde::{Deserialize, Serialize};

/// The choices, as serde reads and writes them: keys of the sharing processes' configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SharingOptions {
    /// The policy that decides which all-reduces use the switches: as in the simulator.
    pub policy: Policy,
    /// A host asks for a grant this long before the grant's first operation starts. 5 ms: a guess
    /// that the measurements in docs/schedule.md do not contradict; their loads differ.
    pub ahead_ns: u64,
    /// A host that does not answer within this time is dead. 1 s.
    pub silent_ns: u64,
    /// The controller waits this long for the first word of a host, which may still be starting.
    /// 30 s.
    pub start_ns: u64,
    /// A host gives up after waiting this long for another host's all-reduce. 5 s, longer than
    /// the controller waits for a host that it has heard.
    pub patience_ns: u64,
    /// Units that a job needs of each resource of its tree. 1.
    pub units: u32,
}

impl Default for SharingOptions {
    fn default() -> Self {
        Self {
            policy: Policy::Plan,
            ahead_ns: 5_000_000,
            silent_ns: 1_000_000_000,
            start_ns: 30_000_000_000,
            patience_ns: 5_000_000_000,
            units: 1,
        }
    }
}

impl Timing {
    /// The controller's usual patience, with other times for hosts: `silent_ns` for the answers of
    /// a host that was heard, `start_ns` for the first word of a host. The controller asks at least
    /// twice.
    #[must_use]
    pub fn waiting_for_hosts(self, silent_ns: u64, start_ns: u64) -> Self {
        let sendings = |ns: u64| u32::try_from(ns / self.resend_ns).unwrap_or(u32::MAX).max(2);
        Self { sendings: sendings(silent_ns), first_sendings: sendings(start_ns), ..self }
    }
}
