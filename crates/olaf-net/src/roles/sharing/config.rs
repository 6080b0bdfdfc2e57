//! What the processes of the sharing protocol are told.

use crate::error::StartError;
use crate::io::address;
use crate::json;
use olaf_sched::protocol::{HostTiming, Timing};
use olaf_sched::sharing::Policy;
use olaf_sched::{AllReduceSpeed, Pattern, Steps};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The sharing controller's set-up.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharingConfig {
    /// Address and port for the hosts.
    pub listen: String,
    /// Larger than that of every controller before it.
    pub epoch: u64,
    /// Spreads the retries.
    #[serde(default)]
    pub seed: u64,
    /// Units by resource.
    pub capacity: BTreeMap<u32, u32>,
    /// How long an all-reduce takes, in either mode.
    pub network: AllReduceSpeed,
    /// The jobs that run, or are about to.
    pub jobs: Vec<SharingJob>,
    /// Which all-reduces use the switches: as in the simulator.
    #[serde(default = "default_policy")]
    pub policy: Policy,
    /// A host asks for a grant this long before the grant's first operation starts.
    #[serde(default = "default_ahead_ns")]
    pub ahead_ns: u64,
    /// A host that does not answer for so long is dead.
    #[serde(default = "default_silent_ns")]
    pub silent_ns: u64,
    /// The same of a host that was not heard yet.
    #[serde(default = "default_start_ns")]
    pub start_ns: u64,
}

/// A job, as the controller knows it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharingJob {
    /// Its number, never used again.
    pub job: u64,
    /// Its hosts' addresses, by rank.
    pub hosts: Vec<String>,
    /// What its tree uses.
    pub resources: Vec<u32>,
    /// Of each.
    #[serde(default = "one")]
    pub units: u32,
    /// A step of it.
    pub pattern: Pattern,
    /// How many of them it runs.
    pub steps: u64,
}

/// One host of a job: plays its steps in real time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharingHostConfig {
    /// The controller's address.
    pub controller: String,
    /// The job's number.
    pub job: u64,
    /// This host's place among `hosts`; it listens there.
    pub rank: u16,
    /// All hosts' addresses, by rank.
    pub hosts: Vec<String>,
    /// How long an all-reduce takes, in either mode.
    pub network: AllReduceSpeed,
    /// A step.
    pub pattern: Pattern,
    /// How many of them.
    pub steps: u64,
    /// A line for each begin and end of an all-reduce is added to this file.
    pub log: String,
    /// Another host may be so late at an all-reduce before this one gives up.
    #[serde(default = "default_patience_ns")]
    pub patience_ns: u64,
}

const fn default_policy() -> Policy {
    Policy::Plan
}
/// A guess that the measurements in docs/schedule.md do not contradict; their loads differ.
fn default_ahead_ns() -> u64 {
    5_000_000
}
fn default_silent_ns() -> u64 {
    1_000_000_000
}
fn default_start_ns() -> u64 {
    30_000_000_000
}
fn default_patience_ns() -> u64 {
    5_000_000_000
}
fn one() -> u32 {
    1
}

impl SharingConfig {
    /// Reads the set-up.
    ///
    /// # Errors
    /// The key that is wrong, and why.
    pub fn from_json(text: &str) -> Result<Self, StartError> {
        json::read("sharing controller", text)
    }

    /// How long everybody is waited for.
    pub(super) fn timing(&self) -> Timing {
        let timing = Timing::default();
        let sendings = |ns: u64| u32::try_from(ns / timing.resend_ns).unwrap_or(u32::MAX).max(2);
        Timing {
            sendings: sendings(self.silent_ns),
            first_sendings: sendings(self.start_ns),
            ..timing
        }
    }
}

impl SharingHostConfig {
    /// Reads the set-up.
    ///
    /// # Errors
    /// The key that is wrong, and why.
    pub fn from_json(text: &str) -> Result<Self, StartError> {
        json::read("sharing host", text)
    }

    pub(super) fn timing() -> HostTiming {
        HostTiming::default()
    }
}

/// The pattern on the network, for so many hosts.
pub(super) fn steps(
    key: &str,
    pattern: &Pattern,
    network: &AllReduceSpeed,
    hosts: usize,
) -> Result<Steps, StartError> {
    let bad = |why: String| StartError::Config(format!("{key}: {why}"));
    if network.bytes_per_second == 0 || network.speedup_millis == 0 {
        return Err(bad("network.bytes_per_second and speedup_millis are above zero".into()));
    }
    let pattern = pattern.clone().check().map_err(|error| bad(error.to_string()))?;
    let hosts = u32::try_from(hosts).unwrap_or(u32::MAX);
    if hosts == 0 || hosts > u32::from(u16::MAX) {
        return Err(bad("hosts: from 1 to 65,535".into()));
    }
    Ok(Steps::new(&pattern, network, hosts))
}

pub(super) fn resolve(key: &str, text: &str) -> Result<SocketAddr, StartError> {
    address::resolve(text, SocketAddr::is_ipv4)
        .map_err(|error| StartError::Config(format!("{key}: {error}")))
}
