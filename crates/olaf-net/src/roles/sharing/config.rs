//! The configurations of the sharing controller and of a host.

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
    /// Number of this life of the controller: larger than that of every earlier controller.
    pub epoch: u64,
    /// Random seed of the waits before a retry.
    #[serde(default)]
    pub seed: u64,
    /// File with the key that the hosts have too. Off: none is needed, on this machine alone.
    #[serde(default)]
    pub key_file: Option<String>,
    /// Listens beyond this machine without a key.
    #[serde(default)]
    pub insecure: bool,
    /// Address of metrics, health and status over HTTP. Off: none.
    #[serde(default)]
    pub metrics: Option<String>,
    /// File with the token that readers of `metrics` send.
    #[serde(default)]
    pub metrics_token_file: Option<String>,
    /// Units of each resource, by its number.
    pub capacity: BTreeMap<u32, u32>,
    /// Speed of the network, from which the time of an all-reduce follows in either mode.
    pub network: AllReduceSpeed,
    /// The jobs that run, or are about to run.
    pub jobs: Vec<SharingJob>,
    /// See [`olaf_sched::protocol::SharingOptions::policy`], as for the keys that follow.
    #[serde(default = "default::policy")]
    pub policy: Policy,
    /// See [`olaf_sched::protocol::SharingOptions::ahead_ns`].
    #[serde(default = "default::ahead_ns")]
    pub ahead_ns: u64,
    /// See [`olaf_sched::protocol::SharingOptions::silent_ns`].
    #[serde(default = "default::silent_ns")]
    pub silent_ns: u64,
    /// See [`olaf_sched::protocol::SharingOptions::start_ns`].
    #[serde(default = "default::start_ns")]
    pub start_ns: u64,
}

/// A job, as the controller knows it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharingJob {
    /// Number of the job. A job that is started again needs a new number.
    pub job: u64,
    /// Addresses of the job's hosts, by rank.
    pub hosts: Vec<String>,
    /// Resources that the job's tree uses.
    pub resources: Vec<u32>,
    /// Units that the job needs of each resource.
    #[serde(default = "default::units")]
    pub units: u32,
    /// One step of the job.
    pub pattern: Pattern,
    /// Number of steps that the job runs.
    pub steps: u64,
}

/// One host of a job: plays its steps in real time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharingHostConfig {
    /// The controller's address.
    pub controller: String,
    /// File with the key of the controller and of all hosts. Off: as for the controller.
    #[serde(default)]
    pub key_file: Option<String>,
    /// Listens beyond this machine without a key.
    #[serde(default)]
    pub insecure: bool,
    /// Address of metrics, health and status over HTTP. Off: none.
    #[serde(default)]
    pub metrics: Option<String>,
    /// File with the token that readers of `metrics` send.
    #[serde(default)]
    pub metrics_token_file: Option<String>,
    /// Number of the job.
    pub job: u64,
    /// Index of this host in `hosts`. The host listens at that address.
    pub rank: u16,
    /// Addresses of all hosts of the job, by rank.
    pub hosts: Vec<String>,
    /// Speed of the network, from which the time of an all-reduce follows in either mode.
    pub network: AllReduceSpeed,
    /// One step of the job.
    pub pattern: Pattern,
    /// Number of steps that the job runs.
    pub steps: u64,
    /// File to which the host adds a line for each begin and each end of an all-reduce.
    pub log: String,
    /// See [`olaf_sched::protocol::SharingOptions::patience_ns`].
    #[serde(default = "default::patience_ns")]
    pub patience_ns: u64,
}

/// The scheduler's own defaults, one function for each key that may be left out.
mod default {
    use olaf_sched::protocol::SharingOptions;
    use olaf_sched::sharing::Policy;

    pub(super) fn policy() -> Policy {
        SharingOptions::default().policy
    }
    pub(super) fn ahead_ns() -> u64 {
        SharingOptions::default().ahead_ns
    }
    pub(super) fn silent_ns() -> u64 {
        SharingOptions::default().silent_ns
    }
    pub(super) fn start_ns() -> u64 {
        SharingOptions::default().start_ns
    }
    pub(super) fn patience_ns() -> u64 {
        SharingOptions::default().patience_ns
    }
    pub(super) fn units() -> u32 {
        SharingOptions::default().units
    }
}

impl SharingConfig {
    /// Reads the set-up.
    ///
    /// # Errors
    /// The key that is wrong, and why.
    pub fn from_json(text: &str) -> Result<Self, StartError> {
        json::read("sharing controller", text)
    }

    /// The controller's patience.
    pub(super) fn timing(&self) -> Timing {
        Timing::default().waiting_for_hosts(self.silent_ns, self.start_ns)
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

/// The steps of a pattern on that network, for that number of hosts.
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
