//! The parts of a job, and their places in the network.

use super::{BEGIN, JOB, SERVER, SWITCH, SetupError, place};
use crate::chance::Chance;
use crate::network::Network;
use crate::network::Node;
use crate::wire::Wire;
use olaf_engine::switch::native::{self as switch, Switch};
use olaf_engine::{Instant, PeerId, PortId, Wiring};
use olaf_host::{Server, ServerConfig, Worker, WorkerConfig};
use olaf_wire::{Address, ClusterId, Session, WorkerId};

/// Lives and sessions are drawn for these purposes; a worker's links and draws have their own.
const SWITCH_LIFE: u64 = 1 << 40;
const SERVER_LIFE: u64 = (1 << 40) + 1;
const WORKERS: u64 = 1 << 41;

/// The set-up.
#[derive(Clone, Debug)]
pub struct Config {
    /// Fixes everything that is drawn: losses, delays, transmission control.
    pub seed: u64,
    /// The cluster of each worker.
    pub clusters: Vec<ClusterId>,
    /// Every worker; its address, its switch and its chance are the job's to give.
    pub worker: WorkerConfig,
    /// The switch, with its queue and its pacer.
    pub switch: switch::Config,
    /// The server, with its rule.
    pub server: ServerConfig,
    /// Between each worker and the switch, in each direction.
    pub edge: Wire,
    /// Between the switch and the server, in each direction.
    pub core: Wire,
}

impl Config {
    /// Puts all parties in place. Returns the number of workers.
    pub(super) fn place(&self, network: &mut Network) -> Result<u32, SetupError> {
        let workers = u32::try_from(self.clusters.len()).ok().filter(|n| (1..SWITCH.0).contains(n));
        let workers = workers.ok_or(SetupError::Workers)?;
        for wire in [self.edge, self.core] {
            if ![wire.loss, wire.duplication, wire.reordering]
                .iter()
                .all(|p| (0.0..1.0).contains(p))
            {
                return Err(SetupError::Chance);
            }
        }
        network.join(SWITCH, SERVER, self.core);
        let server = Server::new(self.server.clone(), self.life(SERVER_LIFE));
        put(network, SERVER, Wiring::end(), server.map_err(SetupError::Server)?);
        let mut engine =
            Switch::new(self.switch.clone(), self.life(SWITCH_LIFE)).map_err(SetupError::Switch)?;
        engine.set_default_server(SERVER);
        let wiring = Wiring::new(PortId::DOWNLINK).with(SERVER, PortId::UPLINK);
        put(network, SWITCH, wiring, engine);
        for (worker, cluster) in (0..workers).zip(&self.clusters) {
            network.join(place(worker), SWITCH, self.edge);
            put(network, place(worker), Wiring::end(), self.worker(worker, *cluster));
        }
        Ok(workers)
    }

    fn worker(&self, worker: u32, cluster: ClusterId) -> Worker {
        let mut chance = Chance::new(self.seed, WORKERS + u64::from(worker));
        let session = Session(low(&mut chance));
        let address = Address { job: JOB, cluster, worker: WorkerId(worker), session };
        let chance_seed = chance.up_to(u64::MAX);
        Worker::new(WorkerConfig { address, switch: SWITCH, chance_seed, ..self.worker.clone() })
    }

    fn life(&self, purpose: u64) -> u32 {
        low(&mut Chance::new(self.seed, purpose))
    }
}

/// Not 0, which stands for no life.
fn low(chance: &mut Chance) -> u32 {
    1 + u32::try_from(chance.up_to(u64::from(u32::MAX) - 1)).expect("drawn below 2^32")
}

/// Nobody dies in here, so that a place has one life to give.
fn put(network: &mut Network, id: PeerId, wiring: Wiring, node: impl Node) {
    debug_assert_eq!(network.now(), BEGIN, "everybody is there from the beginning");
    let mut node = Some(node);
    network.place_wired(id, wiring, move |_: u32, _: Instant| {
        Box::new(node.take().expect("nobody is born again in a job"))
    });
}
