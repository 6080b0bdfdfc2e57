//! What a scenario is: data. `check` checks it once.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A table whose keys another crate knows.
pub(super) type Table = Map<String, Value>;

/// Jobs that sum over one network.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Fixes computation, stragglers and losses.
    #[serde(default)]
    pub seed: u64,
    /// Jobs that have not ended by then have failed.
    #[serde(default = "an_hour")]
    pub limit_ns: u64,
    /// Hosts, switches and links.
    pub network: NetworkSpec,
    /// The switches' set-up, by protocol.
    #[serde(default)]
    pub switch: SwitchSpecs,
    /// The jobs.
    pub jobs: Vec<JobSpec>,
}

fn an_hour() -> u64 {
    3_600_000_000_000
}

/// Hosts, switches and links.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkSpec {
    /// Hosts of each rack. Several racks are below an upper switch; servers are at the upper switch.
    pub racks: Vec<u32>,
    /// Rate of the link of a host, and of a server: each direction, bits per second.
    pub rate_bps: u64,
    /// From the last bit into a link to the last bit out of it.
    #[serde(default)]
    pub delay_ns: u64,
    /// Rate of the link between a rack's switch and the upper one.
    #[serde(default)]
    pub trunk_rate_bps: Option<u64>,
    /// The same as `delay_ns` for trunks. None: as the other links.
    #[serde(default)]
    pub trunk_delay_ns: Option<u64>,
    /// Bytes of the longest datagram: 1,472 without Ethernet's jumbo frames.
    #[serde(default = "ethernet")]
    pub datagram_bytes: u32,
    /// Bytes around a datagram on a link. 66: UDP, IPv4, Ethernet with its check, preamble and gap.
    #[serde(default = "headers")]
    pub header_bytes: u32,
    /// Bytes that may wait at a port of a switch; none: any number. A host's own queue has no end.
    #[serde(default)]
    pub queue_bytes: Option<u64>,
    /// A frame is marked (ECN) while that many bytes wait before it at a port of a switch; none: never.
    #[serde(default)]
    pub ecn_bytes: Option<u64>,
    /// Probability that a link loses a frame.
    #[serde(default)]
    pub loss: f64,
    /// Losses that come together.
    #[serde(default)]
    pub burst: Option<BurstSpec>,
    /// The hosts whose links lose frames, counted through all racks; no other link does then. None: every link may.
    #[serde(default)]
    pub lossy_hosts: Option<Vec<u32>>,
}

fn ethernet() -> u32 {
    1472
}

fn headers() -> u32 {
    66
}

/// Losses that come together: in a burst every frame is lost.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BurstSpec {
    /// Probability that a frame begins a burst.
    pub begins: f64,
    /// Mean number of frames of a burst.
    pub frames: f64,
}

/// The switches' set-up: the keys of `[switch.reduce]` and so on in a switch's configuration, with the unit in the key.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs, reason = "each field is a protocol's name")]
pub struct SwitchSpecs {
    pub reduce: Table,
    pub iswitch: Table,
    pub trio: Table,
    pub atp: Table,
    /// The server of ATP.
    pub atp_server: Table,
}

/// What sums the gradients of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// Olaf's own protocol.
    Reduce,
    /// iSwitch.
    Iswitch,
    /// ATP.
    Atp,
    /// Trio-ML.
    Trio,
    /// Parameter servers that wait for whole vectors.
    Ps,
    /// A ring all-reduce.
    Ring,
    /// Bytes over bandwidth, after the slowest worker, without any packet.
    Ideal,
}

impl Engine {
    /// Its name in a scenario.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reduce => "reduce",
            Self::Iswitch => "iswitch",
            Self::Atp => "atp",
            Self::Trio => "trio",
            Self::Ps => "ps",
            Self::Ring => "ring",
            Self::Ideal => "ideal",
        }
    }
}

/// A job.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    /// Its name, unique.
    pub name: String,
    /// What sums its gradients.
    pub engine: Engine,
    /// Workers, one on each host.
    pub workers: u32,
    /// The hosts of its workers, counted through all racks. None: the first ones.
    #[serde(default)]
    pub hosts: Option<Vec<u32>>,
    /// Bytes of its gradient: f32.
    pub model_bytes: u64,
    /// Tensors of the gradient, of equal size: each one is an operation.
    #[serde(default = "one")]
    pub tensors: u32,
    /// Iterations.
    pub iterations: u32,
    /// When its workers join.
    #[serde(default)]
    pub begin_ns: u64,
    /// Time to compute a gradient.
    #[serde(default)]
    pub compute_ns: Option<u64>,
    /// The same, a recorded list: each worker begins at another place of it, and goes round.
    #[serde(default)]
    pub compute_list_ns: Option<Vec<u64>>,
    /// Standard deviation of the time to compute, as a share of its mean; the distribution is log-normal.
    #[serde(default)]
    pub compute_spread: f64,
    /// Workers that are delayed.
    #[serde(default)]
    pub straggler: Option<StragglerSpec>,
    /// Share of the computation in which tensors become ready one after the other, and are summed meanwhile. 0: all
    /// of them are ready at its end.
    #[serde(default)]
    pub overlap: f64,
    /// Time to update the model with the sum.
    #[serde(default)]
    pub update_ns: u64,
    /// For `ps`: servers, each with a part of the vector.
    #[serde(default)]
    pub servers: Option<u32>,
    /// For `ps`: the servers are on the hosts of the workers. Otherwise each has a host of its own.
    #[serde(default)]
    pub colocated: bool,
    /// For `ps` and `ring`: how fast a host adds vectors that it has received, bits per second. None: in no time.
    #[serde(default)]
    pub adds_bps: Option<u64>,
    /// Packets of a worker that may be on their way. None: as the protocol has it. For `ps` and `ring`: of a stream.
    #[serde(default)]
    pub window: Option<u32>,
    /// Options of a worker that all protocols share.
    #[serde(default)]
    pub options: Table,
    /// Options of a worker of this protocol.
    #[serde(default)]
    pub protocol: Table,
}

fn one() -> u32 {
    1
}

/// The Slow Worker Pattern (Trio-ML §6.1): at each point of an iteration, one worker is delayed with that probability.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StragglerSpec {
    /// Probability of a delay at each point.
    pub probability: f64,
    /// Points of an iteration.
    #[serde(default = "three")]
    pub points: u32,
    /// The typical time of an iteration.
    pub typical_ns: u64,
    /// Shortest delay, as a multiple of it.
    #[serde(default = "half")]
    pub least: f64,
    /// Longest delay, as a multiple of it.
    #[serde(default = "two")]
    pub most: f64,
}

fn three() -> u32 {
    3
}

fn half() -> f64 {
    0.5
}

fn two() -> f64 {
    2.0
}
