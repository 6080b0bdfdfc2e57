//! What the suite needs to know of a protocol: how to make its switches and workers, what an operation is, and how
//! its parties account for themselves.

use super::job::{SILENCE, Setting};
use core::fmt::Debug;
use core::time::Duration;
use olaf_engine::{PeerId, Verdict};
use olaf_host::collective::{Collective, Config, Reduction};
use olaf_sim::Network;
use olaf_sim::network::Node;

/// The uppermost switch.
pub(crate) const TOP: PeerId = PeerId(2000);

/// A switch below the uppermost one.
pub(crate) fn lower(number: usize) -> PeerId {
    PeerId(2001 + number as u32)
}

/// What an authority, the party that decides who takes part, says of its jobs.
#[derive(Debug)]
pub(crate) struct Known {
    /// Numbers of the jobs that have a place.
    pub(crate) jobs: Vec<u32>,
}

/// A protocol that sums.
pub(crate) trait Protocol: Sized + Debug + Clone + Send + 'static {
    /// Its worker.
    type Worker: Collective + Node;
    /// What its worker alone can be told.
    type Own: Clone + Debug + Send + 'static;
    /// How its switches, and the server of ATP, are set up.
    type Config: Clone + Debug + Send + 'static;

    /// Its name in `docs/design/041-one-membership.md`.
    const NAME: &'static str;
    /// The party that decides who takes part.
    const AUTHORITY: PeerId = TOP;
    /// Whether a job can go on with fewer or more workers.
    const HAS_ELASTIC_JOBS: bool = false;
    /// Whether an operation that fails at one worker fails at all.
    const FAILS_ALIKE: bool = true;
    /// Whether the smaller side is named where calls differ, whoever came first. The hardware of iSwitch names whoever
    /// differs from the first packet.
    const NAMES_THE_SMALLER_SIDE: bool = true;
    /// Whether a switch that is restarted costs time alone, and no operation: the authority is elsewhere.
    const SWITCH_ONLY_RELAYS: bool = false;
    /// Lanes of an operation that takes some milliseconds, with [`Protocol::slow`].
    const LONG: usize;

    fn own() -> Self::Own;
    /// With a window in which an operation of [`Protocol::LONG`] takes some milliseconds.
    fn slow() -> Self::Own {
        Self::own()
    }
    /// With room for that many jobs. A worker that others wait for is dead after [`SILENCE`].
    fn config(jobs: u32) -> Self::Config {
        Self::config_with(jobs, SILENCE)
    }
    /// The same, with another silence.
    fn config_with(jobs: u32, silence: Duration) -> Self::Config;
    /// The reductions that it has.
    fn reductions(workers: u32) -> Vec<Reduction>;
    /// A lane of a worker: a number of which every sum is exact, in every order.
    fn lane(end: u32, number: u32, at: usize) -> f32;
    /// Places the switches, and the server of ATP, and joins them.
    fn place_switches(net: &mut Network, setting: &Setting<Self>);
    fn worker(setting: &Setting<Self>, config: Config) -> Self::Worker;
    fn open_operations(worker: &Self::Worker) -> usize;
    /// What all parties say of themselves, for a test that fails.
    fn describe(net: &Network, setting: &Setting<Self>) -> String;
    /// What each party sent and received is accounted for.
    fn accounts(net: &Network, setting: &Setting<Self>);
    /// What the authority knows.
    fn known(net: &Network) -> Known;
    /// The leave of the worker, as anybody can write it who has read its datagrams.
    fn leave_of(net: &Network, worker: PeerId) -> Vec<u8>;
    /// A datagram from below comes to a switch, or to the server.
    fn inject(net: &mut Network, at: PeerId, from: PeerId, bytes: &[u8]) -> Option<Verdict>;
}
