//! Places the parties of all jobs, and joins them by links.

use super::baseline::{PsServer, PsWorker, RingWorker, StreamConfig};
use super::fabric::Fabric;
use super::link::{Burst, Link, LinkConfig};
use super::party::{Helps, Party, Works};
use super::spec::{Engine, JobSpec, NetworkSpec, Scenario};
use crate::chance::Chance;
use crate::study::scenario::SpecError;
use core::time::Duration;
use olaf_engine::switch::{atp, iswitch, reduce, trio};
use olaf_engine::{BitsPerSecond, JobId, PeerId, PortId, Session, Wiring};
use olaf_host::collective::{
    AtpServer, AtpWorker, Config, IswitchWorker, Options, Reducer, TrioWorker,
};
use std::collections::BTreeMap;

/// All parties in their places.
pub(super) struct Placed {
    pub(super) fabric: Fabric,
    /// By job; none where the job is ideal.
    pub(super) workers: Vec<Vec<PeerId>>,
}

/// A place of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spot {
    Host(u32),
    /// Counted through all jobs; at the upper switch.
    Server(u32),
    Rack(usize),
    /// The upper switch.
    Top,
}

/// Places everything.
///
/// # Errors
/// A worker's set-up that cannot be.
pub(super) fn place(scenario: &Scenario) -> Result<Placed, SpecError> {
    let mut placer = Placer::new(scenario);
    let workers = scenario.jobs.iter().enumerate();
    let workers = workers.map(|(at, job)| placer.job(at, job)).collect::<Result<_, _>>()?;
    Ok(Placed { fabric: placer.fabric, workers })
}

struct Placer<'a> {
    scenario: &'a Scenario,
    fabric: Fabric,
    cables: Cables,
    /// The switches of each protocol, by rack.
    switches: BTreeMap<Engine, Vec<PeerId>>,
    servers: u32,
}

impl<'a> Placer<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let mut fabric = Fabric::new(scenario.network.header_bytes);
        let cables = Cables::new(scenario, &mut fabric);
        Self { scenario, fabric, cables, switches: BTreeMap::new(), servers: 0 }
    }

    fn network(&self) -> &'a NetworkSpec {
        &self.scenario.network
    }

    fn join(&mut self, a: (PeerId, Spot), b: (PeerId, Spot)) {
        for ((from, at), (to, there)) in [(a, b), (b, a)] {
            let path = self.cables.path(self.network(), at, there);
            self.fabric.route(from, to, &path);
        }
    }

    fn new_server(&mut self) -> Spot {
        let number = self.servers;
        self.servers += 1;
        self.cables.add_server(self.scenario, &mut self.fabric, number);
        Spot::Server(number)
    }

    fn job(&mut self, at: usize, job: &JobSpec) -> Result<Vec<PeerId>, SpecError> {
        match job.engine {
            Engine::Ideal => Ok(Vec::new()),
            Engine::Ps => Ok(self.ps(job)),
            Engine::Ring => Ok(self.ring(job)),
            _ => self.protocol(at, job),
        }
    }

    fn helper(&mut self, helper: impl Helps + 'static, wiring: Wiring) -> PeerId {
        self.fabric.place(Party::Helper(Box::new(helper)), wiring)
    }

    fn worker(&mut self, worker: impl Works + 'static) -> PeerId {
        self.fabric.place(Party::Worker(Box::new(worker)), Wiring::end())
    }

    fn stream(&self, job: &JobSpec, senders: u32) -> StreamConfig {
        let network = self.network();
        StreamConfig {
            datagram_bytes: network.datagram_bytes as usize,
            window: job.window,
            senders,
            ecn: network.ecn_bytes.is_some(),
        }
    }

    fn ps(&mut self, job: &JobSpec) -> Vec<PeerId> {
        let first = self.fabric.next_id().0;
        let servers = job.ps_servers();
        let of_servers: Vec<PeerId> = (first..first + servers).map(PeerId).collect();
        let first = first + servers;
        let of_workers: Vec<PeerId> = (first..first + job.workers).map(PeerId).collect();
        let places = job.places();
        let mut spots = Vec::new();
        for server in 0..servers {
            let is_at = job.colocated.then(|| Spot::Host(places[server as usize]));
            spots.push(is_at.unwrap_or_else(|| self.new_server()));
            let config = self.stream(job, job.workers);
            let adds = job.adds_bps;
            self.helper(PsServer::new(&of_workers, config, adds), Wiring::end());
        }
        for (rank, (worker, host)) in (0..).zip(of_workers.iter().zip(&places)) {
            let config = self.stream(job, job.workers);
            self.worker(PsWorker::new(rank, job.workers, &of_servers, config));
            for (server, spot) in of_servers.iter().zip(&spots) {
                self.join((*worker, Spot::Host(*host)), (*server, *spot));
            }
        }
        of_workers
    }

    fn ring(&mut self, job: &JobSpec) -> Vec<PeerId> {
        let first = self.fabric.next_id().0;
        let workers = job.workers;
        let peer = |rank: u32| PeerId(first + rank % workers);
        let places = job.places();
        for rank in 0..workers {
            let around = [peer(rank + 1), peer(rank + workers - 1)];
            let config = self.stream(job, 1);
            self.worker(RingWorker::new(rank, workers, around, config, job.adds_bps));
        }
        for rank in 0..workers {
            let (here, next) = (places[rank as usize], places[((rank + 1) % workers) as usize]);
            self.join((peer(rank), Spot::Host(here)), (peer(rank + 1), Spot::Host(next)));
        }
        (0..workers).map(peer).collect()
    }

    fn protocol(&mut self, at: usize, job: &JobSpec) -> Result<Vec<PeerId>, SpecError> {
        let switches = match self.switches.get(&job.engine) {
            Some(switches) => switches.clone(),
            None => self.place_switches(job.engine)?,
        };
        let mut workers = Vec::new();
        for (rank, host) in (0..).zip(job.places()) {
            let rack = self.network().rack_of(host);
            let switch = switches[rack];
            let config = self.config(at, job, rank, switch)?;
            let worker = self.protocol_worker(at, job, config)?;
            self.join((worker, Spot::Host(host)), (switch, Spot::Rack(rack)));
            workers.push(worker);
        }
        Ok(workers)
    }

    fn config(
        &self,
        at: usize,
        job: &JobSpec,
        rank: u32,
        switch: PeerId,
    ) -> Result<Config, SpecError> {
        let number = u32::try_from(at).expect("the scenario was checked");
        let options = job.options(&format!("jobs[{at}].options"))?;
        // Workers that name no program are waited for.
        let options = Options { program: u64::from(number) + 1, ..options };
        let session = Session(10_000 * (number + 1) + rank);
        Ok(Config {
            rank: Some(rank),
            workers: job.workers,
            datagram_bytes: self.network().datagram_bytes,
            options,
            ..Config::new(JobId(number), session, switch)
        })
    }

    fn protocol_worker(
        &mut self,
        at: usize,
        job: &JobSpec,
        config: Config,
    ) -> Result<PeerId, SpecError> {
        let key = format!("jobs[{at}].protocol");
        let cannot = |error| SpecError(format!("jobs[{at}]: {error}"));
        Ok(match job.engine {
            Engine::Iswitch => {
                let worker = IswitchWorker::new(config, job.iswitch_options(&key)?);
                self.worker(worker.map_err(cannot)?)
            }
            Engine::Trio => {
                let worker = TrioWorker::new(config, job.trio_options(&key)?);
                self.worker(worker.map_err(cannot)?)
            }
            Engine::Atp => {
                let worker = AtpWorker::new(config, job.atp_options(&key)?);
                self.worker(worker.map_err(cannot)?)
            }
            _ => self.worker(Reducer::new(config)),
        })
    }

    /// Places a protocol's switches, and the server of ATP. Returns the switch of each rack.
    fn place_switches(&mut self, engine: Engine) -> Result<Vec<PeerId>, SpecError> {
        let racks = self.network().racks.len();
        let above = if engine == Engine::Atp { Some(self.atp_server()?) } else { None };
        let top = self.switch(engine, above.map(|(server, _)| server))?;
        if let Some((server, spot)) = above {
            self.join((top, Spot::Top), (server, spot));
        }
        let mut switches = vec![top];
        if racks > 1 {
            switches.clear();
            for rack in 0..racks {
                let lower = self.switch(engine, Some(top))?;
                self.join((lower, Spot::Rack(rack)), (top, Spot::Top));
                switches.push(lower);
            }
        }
        self.switches.insert(engine, switches.clone());
        Ok(switches)
    }

    fn atp_server(&mut self) -> Result<(PeerId, Spot), SpecError> {
        let config = self.scenario.switch.atp_server_config()?;
        let server = AtpServer::new(config, 1).map_err(|error| SpecError(error.to_string()))?;
        let spot = self.new_server();
        Ok((self.helper(server, Wiring::end()), spot))
    }

    fn switch(&mut self, engine: Engine, above: Option<PeerId>) -> Result<PeerId, SpecError> {
        let wiring = Wiring::new(PortId::DOWNLINK);
        let wiring = above.map_or(wiring.clone(), |above| wiring.with(above, PortId::UPLINK));
        let (specs, bytes) = (&self.scenario.switch, self.network().datagram_bytes);
        // Each switch has another epoch.
        let epoch = 1000 + self.fabric.next_id().0;
        let cannot = |error| SpecError(format!("switch.{}: {error}", engine.name()));
        Ok(match engine {
            Engine::Iswitch => {
                let made = iswitch::Switch::new(specs.iswitch_config()?, epoch);
                let mut switch = made.map_err(cannot)?;
                above.into_iter().for_each(|above| switch.set_upstream(above, bytes));
                self.helper(switch, wiring)
            }
            Engine::Trio => {
                let mut switch = trio::Switch::new(specs.trio_config()?, epoch).map_err(cannot)?;
                above.into_iter().for_each(|above| switch.set_upstream(above));
                self.helper(switch, wiring)
            }
            Engine::Atp => {
                let mut switch = atp::Switch::new(specs.atp_config()?, epoch).map_err(cannot)?;
                switch.set_servers(&above.into_iter().collect::<Vec<_>>());
                self.helper(switch, wiring)
            }
            _ => {
                let made = reduce::Switch::new(specs.reduce_config()?, epoch);
                let mut switch = made.map_err(cannot)?;
                above.into_iter().for_each(|above| switch.set_upstream(above, bytes));
                self.helper(switch, wiring)
            }
        })
    }
}

/// Links by place: up towards the switch, and down from it.
struct Cables {
    hosts: Vec<[u32; 2]>,
    servers: Vec<[u32; 2]>,
    trunks: Vec<[u32; 2]>,
    /// From a host to itself.
    inside: Vec<u32>,
}

/// Frames that a host puts into its own queue before it waits, as with byte queue limits in Linux.
const OWN_FRAMES: u64 = 16;

const UP: usize = 0;
const DOWN: usize = 1;

impl Cables {
    fn new(scenario: &Scenario, fabric: &mut Fabric) -> Self {
        let network = &scenario.network;
        let (mut hosts, mut inside) = (Vec::new(), Vec::new());
        for host in 0..network.hosts() {
            let (name, rack) = (format!("host{host}"), network.rack_of(host));
            let loses = network.lossy_hosts.as_ref().is_none_or(|lossy| lossy.contains(&host));
            let kind = CableKind { is_trunk: false, loses };
            hosts.push(cable(scenario, fabric, &name, &format!("rack{rack}"), kind));
            let config = LinkConfig {
                rate: BitsPerSecond::new(BitsPerSecond::MAX).expect("it is the fastest one"),
                delay: Duration::ZERO,
                queue_bytes: None,
                ecn_bytes: None,
                loss: 0.0,
                burst: None,
                own_bytes: None,
            };
            inside.push(fabric.add_link(Link::new(name, config, Chance::new(0, 0))));
        }
        let mut trunks = Vec::new();
        if network.racks.len() > 1 {
            for rack in 0..network.racks.len() {
                let kind = CableKind { is_trunk: true, loses: network.lossy_hosts.is_none() };
                trunks.push(cable(scenario, fabric, &format!("rack{rack}"), "top", kind));
            }
        }
        Self { hosts, servers: Vec::new(), trunks, inside }
    }

    fn add_server(&mut self, scenario: &Scenario, fabric: &mut Fabric, number: u32) {
        let switch = if self.trunks.is_empty() { "rack0" } else { "top" };
        let loses = scenario.network.lossy_hosts.is_none();
        let kind = CableKind { is_trunk: false, loses };
        self.servers.push(cable(scenario, fabric, &format!("server{number}"), switch, kind));
    }

    /// The links from one place to another.
    fn path(&self, network: &NetworkSpec, from: Spot, to: Spot) -> Vec<u32> {
        if let (Spot::Host(host), true) = (from, from == to) {
            return vec![self.inside[host as usize]];
        }
        let (a, first) = self.switch_of(network, from);
        let (b, last) = self.switch_of(network, to);
        let up = a.filter(|_| a != b).map(|rack| self.trunks[rack][UP]);
        let down = b.filter(|_| a != b).map(|rack| self.trunks[rack][DOWN]);
        let first = first.map(|cable| cable[UP]);
        [first, up, down, last.map(|cable| cable[DOWN])].into_iter().flatten().collect()
    }

    /// The rack of a place, none where that is the upper switch, and the cable to its switch.
    fn switch_of(&self, network: &NetworkSpec, spot: Spot) -> (Option<usize>, Option<[u32; 2]>) {
        let top = if self.trunks.is_empty() { Some(0) } else { None };
        match spot {
            Spot::Host(host) => (Some(network.rack_of(host)), Some(self.hosts[host as usize])),
            Spot::Server(server) => (top, Some(self.servers[server as usize])),
            Spot::Rack(rack) => (Some(rack), None),
            Spot::Top => (top, None),
        }
    }
}

/// What a cable is.
#[derive(Clone, Copy)]
struct CableKind {
    is_trunk: bool,
    /// It may lose frames.
    loses: bool,
}

/// Both directions of a cable from a place up to a switch.
fn cable(
    scenario: &Scenario,
    fabric: &mut Fabric,
    low: &str,
    high: &str,
    CableKind { is_trunk, loses }: CableKind,
) -> [u32; 2] {
    let network = &scenario.network;
    let of_trunk =
        |trunk: Option<u64>, usual| if is_trunk { trunk.unwrap_or(usual) } else { usual };
    let rate = of_trunk(network.trunk_rate_bps, network.rate_bps);
    let ports = |is_switch: bool, bytes: Option<u64>| bytes.filter(|_| is_switch);
    [(low, high, is_trunk), (high, low, true)].map(|(from, to, is_port)| {
        let config = LinkConfig {
            rate: BitsPerSecond::new(rate).expect("the scenario was checked"),
            delay: Duration::from_nanos(of_trunk(network.trunk_delay_ns, network.delay_ns)),
            // A host's own queue drops nothing: the host waits.
            queue_bytes: ports(is_port, network.queue_bytes),
            ecn_bytes: ports(is_port, network.ecn_bytes),
            loss: if loses { network.loss } else { 0.0 },
            own_bytes: (!is_port).then(|| OWN_FRAMES * network.frame_bytes()),
            burst: network
                .burst
                .filter(|_| loses)
                .map(|of| Burst { begins: of.begins, frames: of.frames }),
        };
        let purpose = 3 << 56 | fabric.links().len() as u64;
        let chance = Chance::new(scenario.seed, purpose);
        fabric.add_link(Link::new(format!("{from} to {to}"), config, chance))
    })
}
