//! What only ATP has to be told.

use core::time::Duration;
use olaf_engine::keys::{ConfigError, Named, ms, named};
use olaf_wire::atp::{MAX_SERVERS, VALUES};
use serde::{Deserialize, Serialize};

/// What a worker does about sums that run over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// Nothing: the server sees a saturated sum, and asks all workers for f32 (ATP §3.8).
    Reactive,
    /// A packet whose values may run over goes past the aggregators (ATP §B.2).
    Proactive,
}

impl Named for Overflow {
    const NAMES: &'static [(&'static str, Self)] =
        &[("reactive", Self::Reactive), ("proactive", Self::Proactive)];
}

/// What the factor of fixed point is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factor {
    /// One number for the job.
    Fixed,
    /// The server follows the range of the sums (ATP §B.3).
    Dynamic,
}

impl Named for Factor {
    const NAMES: &'static [(&'static str, Self)] =
        &[("fixed", Self::Fixed), ("dynamic", Self::Dynamic)];
}

/// Which aggregator a fragment asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// A window of fragments has an index each: ours (`indices.rs`).
    Window,
    /// `HASH(job, sequence) % N`. After a collision another index takes the place of one (ATP §3.5, §3.6).
    Hashed,
    /// `sequence % N`: the comparison of ATP §5.4.2.
    Linear,
    /// The job has a part of the aggregators to itself, as in the SwitchML of ATP §5.4.
    Static,
}

impl Named for Allocation {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("window", Self::Window),
        ("hashed", Self::Hashed),
        ("linear", Self::Linear),
        ("static", Self::Static),
    ];
}

/// What the window follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// ECN marks halve it; a loss takes away the queue that the round trip shows: ours (`window.rs`).
    Queue,
    /// ECN marks and losses halve it (ATP §3.7).
    Halve,
    /// Nothing: it always has `most_packets` (ATP §5.2.3, §5.5).
    Off,
}

impl Named for Congestion {
    const NAMES: &'static [(&'static str, Self)] =
        &[("queue", Self::Queue), ("halve", Self::Halve), ("off", Self::Off)];
}

/// The set-up of a worker, as serde reads and writes it: a flat table.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Options {
    /// Values in a packet. 62, the paper's; more, where the path takes longer datagrams.
    pub values: u16,
    /// Servers, each with a part of every tensor. 1.
    pub servers: u8,
    /// The first window, in packets. 200.
    pub first_packets: u32,
    /// Below this the window grows by an MTU for each parameter packet. 1,000: the paper names none.
    pub threshold_packets: u32,
    /// The largest window, in packets. 4,096: the paper names none.
    pub most_packets: u32,
    /// A packet without an answer is sent again after this time, in milliseconds, at the earliest: the
    /// last packets of a tensor never see three parameter packets out of order. 5 ms.
    #[serde(rename = "time_out_ms", with = "ms")]
    pub time_out: Duration,
    /// What the worker does about sums that run over. `reactive`, the paper's choice. With `proactive`
    /// at all workers no sum of a switch runs over.
    #[serde(with = "named")]
    pub overflow: Overflow,
    /// Whether the factor of fixed point follows the range of the sums. `fixed`, the paper's choice.
    /// With `dynamic` the job's factor is that of the first window. The same at all workers.
    #[serde(with = "named")]
    pub factor: Factor,
    /// Which aggregator a fragment asks for. `window`, our choice; `hashed` is the paper's. The same at all
    /// workers.
    #[serde(with = "named")]
    pub allocation: Allocation,
    /// With `static`: parts of equal size into which the aggregators are divided. The job has one of them, and at
    /// most as many packets on their way as its part has aggregators. 1.
    pub parts: u16,
    /// With `static`: the part of this job, counted from 0. 0.
    pub part: u16,
    /// What the window follows. `queue`, our choice; `halve` is the paper's; `off`: it always has `most_packets`.
    #[serde(with = "named")]
    pub congestion: Congestion,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            values: VALUES,
            servers: 1,
            first_packets: 200,
            threshold_packets: 1000,
            most_packets: 4096,
            time_out: Duration::from_millis(5),
            overflow: Overflow::Reactive,
            factor: Factor::Fixed,
            allocation: Allocation::Window,
            parts: 1,
            part: 0,
            congestion: Congestion::Queue,
        }
    }
}

impl Options {
    /// The same, when its numbers can be.
    ///
    /// # Errors
    /// The first key that cannot.
    pub fn check(self) -> Result<Self, ConfigError> {
        ConfigError::unless_positive("values", self.values > 0)?;
        if self.servers == 0 || self.servers > MAX_SERVERS {
            return Err(ConfigError { key: "servers", allowed: "must be from 1 to 4" });
        }
        ConfigError::unless_positive("first_packets", self.first_packets > 0)?;
        ConfigError::unless_positive("most_packets", self.most_packets > 0)?;
        ConfigError::unless_positive("time_out_ms", self.time_out > Duration::ZERO)?;
        ConfigError::unless_positive("parts", self.parts > 0)?;
        if self.part >= self.parts {
            return Err(ConfigError { key: "part", allowed: "must be below `parts`" });
        }
        if self.parts > 1 && self.allocation != Allocation::Static {
            return Err(ConfigError { key: "parts", allowed: "is for allocation = \"static\"" });
        }
        Ok(self)
    }
}
