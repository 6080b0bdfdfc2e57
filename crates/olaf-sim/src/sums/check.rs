//! Checks of a scenario, and the engines' settings that follow from its tables.

use super::spec::{
    BurstSpec, Engine, JobSpec, NetworkSpec, Scenario, StragglerSpec, SwitchSpecs, Table,
};
use crate::study::scenario::SpecError;
use core::fmt;
use olaf_engine::BitsPerSecond;
use olaf_engine::keys::ConfigError;
use olaf_engine::switch;
use olaf_host::collective::{IswitchOptions, Options, atp, atp::ServerConfig, iswitch, trio};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Most bytes of a model, and of all models at all workers.
const MOST_BYTES: u64 = 8 << 30;
/// Most hosts, workers and tensors: what fits a machine.
const MOST: u32 = 4096;
/// Most packets of a stream: the baselines number them with 32 bits.
const MOST_PACKETS: u64 = 1 << 31;

fn fail<T>(key: impl fmt::Display, what: impl fmt::Display) -> Result<T, SpecError> {
    Err(SpecError(format!("{key}: {what}")))
}

/// Fails unless that is so.
fn must(is_so: bool, key: impl fmt::Display, what: impl fmt::Display) -> Result<(), SpecError> {
    if is_so { Ok(()) } else { fail(key, what) }
}

impl Scenario {
    /// Everything that [`super::run`] relies on.
    ///
    /// # Errors
    /// The first thing that cannot be: its key, and what is allowed.
    pub fn check(&self) -> Result<(), SpecError> {
        self.network.check()?;
        self.switch.reduce_config()?;
        self.switch.iswitch_config()?;
        self.switch.trio_config()?;
        self.switch.atp_config()?;
        self.switch.atp_server_config()?;
        must(self.limit_ns > 0, "limit", "must be above 0")?;
        must(!self.jobs.is_empty(), "jobs", "give at least one [[jobs]] table")?;
        must(self.jobs.len() <= 255, "jobs", "must be at most 255")?;
        for (at, job) in self.jobs.iter().enumerate() {
            job.check(&format!("jobs[{at}]"), &self.network)?;
            let is_new = self.jobs[..at].iter().all(|other| other.name != job.name);
            must(is_new, format!("jobs[{at}].name"), "two jobs have this name")?;
        }
        let bytes = |job: &JobSpec| job.model_bytes.saturating_mul(u64::from(job.workers) + 1);
        let all = self.jobs.iter().map(bytes).fold(0, u64::saturating_add);
        must(all <= MOST_BYTES, "jobs", "the models of all workers together have at most 8 GiB")
    }
}

impl NetworkSpec {
    /// Hosts.
    #[must_use]
    pub fn hosts(&self) -> u32 {
        self.racks.iter().sum()
    }

    /// Bytes of the longest frame.
    pub(super) fn frame_bytes(&self) -> u64 {
        u64::from(self.datagram_bytes + self.header_bytes)
    }

    /// The rack of a host.
    pub(super) fn rack_of(&self, host: u32) -> usize {
        let mut end = 0;
        let is_behind = |hosts: &u32| {
            end += hosts;
            host < end
        };
        self.racks.iter().position(is_behind).expect("the scenario was checked")
    }

    fn check(&self) -> Result<(), SpecError> {
        let key = |key| format!("network.{key}");
        must(!self.racks.is_empty(), key("racks"), "give the number of hosts of each rack")?;
        must(!self.racks.contains(&0), key("racks"), "a rack must have a host")?;
        let hosts = self.racks.iter().map(|hosts| u64::from(*hosts)).sum::<u64>();
        must(hosts <= MOST.into(), key("racks"), format!("must be at most {MOST} hosts"))?;
        let is_rate = |rate| BitsPerSecond::new(rate).is_some();
        let rates = "must be from 1bit to 10tbit";
        must(is_rate(self.rate_bps), key("rate"), rates)?;
        must(self.trunk_rate_bps.is_none_or(is_rate), key("trunk_rate"), rates)?;
        let has_trunks = self.racks.len() == 1 || self.trunk_rate_bps.is_some();
        let missing =
            "several racks need trunks: give the rate of a trunk, as in trunk_rate = \"40gbit\"";
        must(has_trunks, key("trunk_rate"), missing)?;
        let longest = olaf_wire::offsets::MAX_DATAGRAM as u32;
        let is_datagram = (320..=longest).contains(&self.datagram_bytes);
        must(is_datagram, key("datagram"), format!("must be from 320B to {longest}B"))?;
        must(self.header_bytes <= 1000, key("header"), "must be at most 1000B")?;
        let frame = self.frame_bytes();
        let is_room = self.queue_bytes.is_none_or(|bytes| bytes >= frame);
        must(is_room, key("queue"), format!("must have room for a frame of {frame} bytes"))?;
        must(self.ecn_bytes != Some(0), key("ecn"), "must be above 0")?;
        must((0.0..1.0).contains(&self.loss), key("loss"), "must be from 0 to below 1")?;
        if let Some(lossy) = &self.lossy_hosts {
            let is_there = lossy.iter().all(|host| u64::from(*host) < hosts);
            must(is_there, key("lossy_hosts"), format!("must be below {hosts}"))?;
            let loses = self.loss > 0.0 || self.burst.is_some();
            must(loses, key("lossy_hosts"), "give loss or burst, too")?;
        }
        if let Some(BurstSpec { begins, frames }) = self.burst {
            let key = |key| format!("network.burst.{key}");
            must((0.0..1.0).contains(&begins), key("begins"), "must be from 0 to below 1")?;
            must((1.0..=1e6).contains(&frames), key("frames"), "must be from 1 to 1000000")?;
        }
        Ok(())
    }
}

impl JobSpec {
    /// The hosts of its workers.
    pub(super) fn places(&self) -> Vec<u32> {
        self.hosts.clone().unwrap_or_else(|| (0..self.workers).collect())
    }

    /// Lanes of its gradient.
    pub(super) fn lanes(&self) -> usize {
        usize::try_from(self.model_bytes.div_ceil(4)).expect("the scenario was checked")
    }

    /// Bytes of the part of the gradient that a tensor has.
    pub(super) fn tensor(&self, tensor: usize) -> core::ops::Range<usize> {
        let (lanes, tensors) = (self.lanes(), self.tensors as usize);
        4 * (lanes * tensor / tensors)..4 * (lanes * (tensor + 1) / tensors)
    }

    /// Whether a sum without some workers is good enough: it is for a job with a deadline.
    pub(super) fn accepts_partial(&self) -> bool {
        self.options.get("deadline_ms").is_some_and(|deadline| !deadline.is_null())
    }

    /// Servers of `ps`.
    pub(super) fn ps_servers(&self) -> u32 {
        self.servers.unwrap_or(if self.colocated { self.workers } else { 1 })
    }

    fn check(&self, at: &str, network: &NetworkSpec) -> Result<(), SpecError> {
        let key = |key: &str| format!("{at}.{key}");
        must(!self.name.is_empty(), key("name"), "must not be empty")?;
        let hosts = network.hosts();
        must(self.workers > 0, key("workers"), "must be at least 1")?;
        let is_room = self.workers <= hosts;
        must(is_room, key("workers"), format!("must be at most {hosts}, the hosts of all racks"))?;
        if let Some(places) = &self.hosts {
            let is_whole = places.len() == self.workers as usize;
            must(is_whole, key("hosts"), format!("must name {} hosts", self.workers))?;
            let is_there = places.iter().all(|host| *host < hosts);
            must(is_there, key("hosts"), format!("must be below {hosts}"))?;
            let mut sorted = places.clone();
            sorted.sort_unstable();
            sorted.dedup();
            must(sorted.len() == places.len(), key("hosts"), "names a host twice")?;
        }
        must(self.model_bytes > 0, key("model"), "must be above 0B")?;
        must(self.model_bytes <= MOST_BYTES / 8, key("model"), "must be at most 1GiB")?;
        let tensors = (1..=MOST).contains(&self.tensors) && self.tensors as usize <= self.lanes();
        let most = "must be from 1 to 4096, and at most the floats of the model";
        must(tensors, key("tensors"), most)?;
        must(self.iterations > 0, key("iterations"), "must be at least 1")?;
        let packets = (self.model_bytes / 300 + u64::from(self.tensors) * 64) * 2;
        let all = packets.saturating_mul(self.iterations.into());
        must(all < MOST_PACKETS, key("iterations"), "are too many packets for one run")?;
        self.check_work(&key)?;
        self.check_engine(&key)
    }

    fn check_work(&self, key: &impl Fn(&str) -> String) -> Result<(), SpecError> {
        match (self.compute_ns, &self.compute_list_ns) {
            (None, None) => return fail(key("compute"), "give compute or compute_list"),
            (Some(_), Some(_)) => {
                return fail(key("compute"), "give compute or compute_list, not both");
            }
            (_, Some(list)) if list.is_empty() => {
                return fail(key("compute_list"), "must not be empty");
            }
            _ => {}
        }
        let spread = (0.0..=10.0).contains(&self.compute_spread);
        must(spread, key("compute_spread"), "must be from 0 to 10")?;
        must((0.0..=1.0).contains(&self.overlap), key("overlap"), "must be from 0 to 1")?;
        if let Some(straggler) = self.straggler {
            let key = |name: &str| key(&format!("straggler.{name}"));
            let StragglerSpec { probability, points, typical_ns, least, most } = straggler;
            must((0.0..=1.0).contains(&probability), key("probability"), "must be from 0 to 1")?;
            must((1..=1000).contains(&points), key("points"), "must be from 1 to 1000")?;
            must(typical_ns > 0, key("typical"), "must be above 0")?;
            must((0.0..=1e6).contains(&least), key("least"), "must be from 0 to 1000000")?;
            let order = (least..=1e6).contains(&most);
            must(order, key("most"), "must be at least `least`, and at most 1000000")?;
        }
        Ok(())
    }

    fn check_engine(&self, key: &impl Fn(&str) -> String) -> Result<(), SpecError> {
        must(self.window != Some(0), key("window"), "must be at least 1")?;
        let is_ps = self.engine == Engine::Ps;
        must(is_ps || self.servers.is_none(), key("servers"), "is for the engine ps alone")?;
        must(is_ps || !self.colocated, key("colocated"), "is for the engine ps alone")?;
        let servers = self.ps_servers();
        must(servers > 0, key("servers"), "must be at least 1")?;
        let most = if self.colocated { self.workers } else { MOST };
        must(servers <= most, key("servers"), format!("must be at most {most}"))?;
        let is_baseline = matches!(self.engine, Engine::Ps | Engine::Ring);
        let adds = self.adds_bps.is_none() || is_baseline;
        must(adds, key("adds"), "is for the engines ps and ring alone")?;
        must(self.adds_bps != Some(0), key("adds"), "must be above 0")?;
        if matches!(self.engine, Engine::Ps | Engine::Ring | Engine::Ideal) {
            let name = self.engine.name();
            let none = format!("the engine {name} has none");
            must(self.options.is_empty(), key("options"), &none)?;
            must(self.protocol.is_empty(), key("protocol"), none)?;
            let windowless = self.engine == Engine::Ideal && self.window.is_some();
            return must(!windowless, key("window"), "the engine ideal has none");
        }
        self.options(&key("options"))?;
        match self.engine {
            Engine::Iswitch => {
                self.iswitch_options(&key("protocol"))?;
            }
            Engine::Atp => {
                self.atp_options(&key("protocol"))?;
            }
            Engine::Trio => {
                must(self.workers <= 255, key("workers"), "Trio-ML has at most 255")?;
                let window = self.window.is_none_or(|window| window <= u16::MAX.into());
                must(window, key("window"), "must be at most 65535")?;
                self.trio_options(&key("protocol"))?;
            }
            _ => must(self.protocol.is_empty(), key("protocol"), "the engine reduce has none")?,
        }
        Ok(())
    }

    /// What a worker is told that all protocols share.
    pub(super) fn options(&self, at: &str) -> Result<Options, SpecError> {
        let mut options: Options = read(at, &self.options)?;
        if self.window.is_some() {
            options.window_blocks = self.window;
        }
        options.check().map_err(|error| at_key(at, &error))
    }

    pub(super) fn iswitch_options(&self, at: &str) -> Result<IswitchOptions, SpecError> {
        let own: iswitch::Options = read(at, &self.protocol)?;
        own.check().map_err(|error| at_key(at, &error))
    }

    pub(super) fn trio_options(&self, at: &str) -> Result<trio::Options, SpecError> {
        let mut own: trio::Options = read(at, &self.protocol)?;
        if let Some(window) = self.window {
            own.window = u16::try_from(window).unwrap_or(u16::MAX);
        }
        Ok(own)
    }

    pub(super) fn atp_options(&self, at: &str) -> Result<atp::Options, SpecError> {
        let mut own: atp::Options = read(at, &self.protocol)?;
        if let Some(packets) = self.window {
            (own.first_packets, own.most_packets) = (packets, packets);
        }
        Ok(own)
    }
}

impl SwitchSpecs {
    pub(super) fn reduce_config(&self) -> Result<switch::reduce::Config, SpecError> {
        let config: switch::reduce::Config = read("switch.reduce", &self.reduce)?;
        config.check().map_err(|error| at_key("switch.reduce", &error))
    }

    pub(super) fn iswitch_config(&self) -> Result<switch::iswitch::Config, SpecError> {
        let config: switch::iswitch::Config = read("switch.iswitch", &self.iswitch)?;
        config.check().map_err(|error| at_key("switch.iswitch", &error))
    }

    pub(super) fn trio_config(&self) -> Result<switch::trio::Config, SpecError> {
        let config: switch::trio::Config = read("switch.trio", &self.trio)?;
        config.check().map_err(|error| at_key("switch.trio", &error))
    }

    pub(super) fn atp_config(&self) -> Result<switch::atp::Config, SpecError> {
        let config: switch::atp::Config = read("switch.atp", &self.atp)?;
        config.check().map_err(|error| at_key("switch.atp", &error))
    }

    pub(super) fn atp_server_config(&self) -> Result<ServerConfig, SpecError> {
        let config: ServerConfig = read("switch.atp_server", &self.atp_server)?;
        config.check().map_err(|error| at_key("switch.atp_server", &error))
    }
}

/// A table of another crate, all of whose keys that crate knows.
fn read<T: DeserializeOwned + Serialize + Default>(
    at: &str,
    table: &Table,
) -> Result<T, SpecError> {
    let known = serde_json::to_value(T::default()).expect("a set-up is plain data");
    let known = known.as_object().expect("a set-up is a table");
    for (key, value) in table {
        if !known.contains_key(key) {
            let all: Vec<&str> = known.keys().map(String::as_str).collect();
            return fail(
                format!("{at}.{key}"),
                format!("is unknown; there are {}", all.join(", ")),
            );
        }
        let one = Map::from_iter([(key.clone(), value.clone())]);
        if let Err(error) = serde_json::from_value::<T>(Value::Object(one)) {
            return fail(format!("{at}.{key}"), error);
        }
    }
    serde_json::from_value(Value::Object(table.clone()))
        .map_err(|error| SpecError(format!("{at}: {error}")))
}

fn at_key(at: &str, error: &ConfigError) -> SpecError {
    SpecError(format!("{at}.{}: {}", error.key, error.allowed))
}
