//! A job in a simulated network: workers that push without end, one switch or a tree of them, a
//! server.
#![allow(dead_code, unused_imports, reason = "each test file uses a part")]

mod accounts;
pub(crate) mod sums;
mod tree;
mod watching;

pub(crate) use accounts::{everyone_learns, everything_is_accounted_for};
pub(crate) use olaf_samples::{Liar, Lie, Toy};
pub(crate) use tree::{Down, Hop, Tree, switch};
pub(crate) use watching::{NOTICED_WITHIN, all_workers, everyone_is_current, versions, who_said};

use core::time::Duration;
use olaf_engine::switch::native::{Admission, Pacing};
use olaf_engine::{BitsPerSecond, Instant, PeerId};
use olaf_host::push_pull::server::{Aggregate, RuleConfig, Step};
use olaf_host::push_pull::worker::{PathConfig, Standing};
use olaf_host::{Server, ServerConfig, Worker, WorkerConfig};
use olaf_sim::{Lot, Network, Wire};
use olaf_wire::update::read_lanes;
use olaf_wire::{Address, Answer, ClusterId, JobId, Kind, Packet, Session, Update, WorkerId};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const JOB: JobId = JobId(1);
pub(crate) const SERVER: PeerId = PeerId(1000);
pub(crate) const SWITCH: PeerId = PeerId(2000);
pub(crate) const SILENT_AFTER: Duration = Duration::from_millis(500);
const START: Instant = Instant(1_700_000_000_000_000_000);

pub(crate) fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// What a run is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) seed: u64,
    pub(crate) workers: u32,
    pub(crate) clusters: u32,
    pub(crate) segments: u32,
    pub(crate) segment_lanes: u32,
    pub(crate) slots: usize,
    pub(crate) pacing: Pacing,
    pub(crate) gate: Option<f64>,
    /// Between worker and switch.
    pub(crate) edge: Wire,
    /// Between switch and server.
    pub(crate) core: Wire,
    /// A worker pushes so often.
    pub(crate) every: Duration,
    /// Whether switches ask before a cluster joins.
    pub(crate) admission: Option<Admission>,
    /// When updates change the model. Workers of rounds push when they have a newer model.
    pub(crate) aggregate: Aggregate,
    /// A party unheard for this time is silent.
    pub(crate) silent_after: Duration,
    pub(crate) keepalive: Duration,
    /// Longest time from the first segment to the server's answer.
    pub(crate) round: Duration,
    /// Workers look for what their path carries, and cut the model to it.
    pub(crate) searches: Option<PathConfig>,
    /// The server signs its models, and the workers check them.
    pub(crate) signed: bool,
    /// The switches can be told to lie: they are [`Liar`]s.
    pub(crate) lying: bool,
}

impl Default for Setting {
    fn default() -> Self {
        let link = Wire { delay: Duration::from_micros(100), ..Wire::default() };
        Self {
            seed: 1,
            workers: 6,
            clusters: 3,
            segments: 1,
            segment_lanes: 400,
            slots: 4,
            pacing: Pacing::Rate(BitsPerSecond::new(8_000_000).unwrap()),
            gate: None,
            edge: link,
            core: link,
            every: ms(7),
            admission: None,
            aggregate: Aggregate::Each,
            silent_after: SILENT_AFTER,
            keepalive: ms(100),
            round: ms(20),
            searches: None,
            signed: false,
            lying: false,
        }
    }
}

/// A link on which everything goes wrong now and then.
pub(crate) fn bad_link() -> Wire {
    Wire {
        rate: BitsPerSecond::new(1_000_000_000),
        delay: Duration::from_micros(200),
        jitter: Duration::from_micros(500),
        loss: 0.03,
        duplication: 0.05,
        reordering: 0.05,
        late: ms(3),
        ..Wire::default()
    }
}

/// The job. Contribution `k` is 1 at lane `k` of each segment and 0 elsewhere, every contribution
/// is applied with its full weight, and the model begins with zeros: lane `k` of the model counts
/// how often contribution `k` was applied.
pub(crate) struct Job {
    pub(crate) net: Network,
    pub(crate) setting: Setting,
    pub(crate) tree: Tree,
    pub(crate) pushed: u32,
    /// Who made which contribution.
    pub(crate) pushes: Vec<(WorkerId, u32)>,
    next_push: BTreeMap<PeerId, Instant>,
    /// The version each worker last pushed on, and when: in rounds it waits for a newer one.
    pushed_on: BTreeMap<PeerId, (u32, Instant)>,
    /// No pushes from now on.
    pub(crate) quiet: bool,
    /// Models that workers were seen to have: versions, and digests of all lanes.
    pub(crate) models_seen: BTreeMap<PeerId, BTreeSet<(u32, u64)>>,
}

impl Job {
    /// Through one switch.
    pub(crate) fn new(setting: Setting) -> Self {
        Self::in_tree(setting, Tree::single(&setting))
    }

    /// Through several.
    pub(crate) fn in_tree(setting: Setting, tree: Tree) -> Self {
        let mut net = Network::new(setting.seed, START);
        let worker_ids: Vec<PeerId> = (0..setting.workers).map(PeerId).collect();
        for id in &worker_ids {
            net.join(*id, tree.home_of(*id), setting.edge);
        }
        tree.place(&mut net, &setting);
        let rule = RuleConfig {
            learning_rate: 1.0,
            step: Step::Sum,
            staleness_power: 0.0,
            ..RuleConfig::default()
        };
        net.place(SERVER, move |life, _| {
            let config = ServerConfig {
                rule,
                silent_after: setting.silent_after,
                round: setting.round,
                ..ServerConfig::default()
            };
            let config = config.aggregating(setting.aggregate);
            let mut server = Server::new(config, 100 + life).unwrap();
            if setting.signed {
                server.sign_models(Toy::with_secret(7, life));
            }
            Box::new(server)
        });
        let parameters = (setting.segments * setting.segment_lanes) as usize;
        for id in &worker_ids {
            let (id, home) = (*id, tree.home_of(*id));
            net.place(id, move |life, now| {
                let address = Address {
                    job: JOB,
                    cluster: ClusterId(id.0 % setting.clusters),
                    worker: WorkerId(id.0),
                    session: Session(1000 * (life + 1) + id.0),
                };
                let mut worker = Worker::new(WorkerConfig {
                    segment_lanes: setting.segment_lanes,
                    path: setting.searches.unwrap_or_default(),
                    keepalive: setting.keepalive,
                    silent_after: setting.silent_after,
                    ..WorkerConfig::new(address, home)
                });
                if setting.signed {
                    worker.check_models(Toy::with_secret(7, 1000 * (life + 1) + id.0));
                }
                worker.join(now, &[&vec![0.0; parameters]]).unwrap();
                Box::new(worker)
            });
        }
        let next_push = worker_ids.iter().map(|id| (*id, START)).collect();
        Self {
            net,
            setting,
            tree,
            pushed: 0,
            pushes: Vec::new(),
            next_push,
            pushed_on: BTreeMap::new(),
            quiet: false,
            models_seen: BTreeMap::new(),
        }
    }

    pub(crate) fn workers(&self) -> Vec<PeerId> {
        (0..self.setting.workers).map(PeerId).collect()
    }

    /// The most contributions that lanes can tell apart.
    pub(crate) fn room(&self) -> u32 {
        self.setting.segment_lanes
    }

    /// Lets the job train for that long: every worker takes new models and pushes in its rhythm.
    pub(crate) fn train_for(&mut self, duration: Duration) {
        let end = self.net.now() + duration;
        while self.net.now() < end {
            for id in self.workers() {
                self.step(id);
            }
            self.net.run_for(ms(1));
        }
    }

    fn step(&mut self, id: PeerId) {
        let (lanes, segments) = (self.setting.segment_lanes as usize, self.setting.segments);
        let due = self.next_push[&id] <= self.net.now();
        let may_push = !self.quiet && due && self.pushed < self.room();
        let number = self.pushed as usize;
        let waits_for = match self.setting.aggregate {
            // A worker has a deadline too; otherwise a round that loses everything is the last.
            Aggregate::Round { deadline } => self
                .pushed_on
                .get(&id)
                .copied()
                .filter(|(_, at)| self.net.now().since(*at) < deadline * 3),
            _ => None,
        };
        let result = self.net.with(id, |worker: &mut Worker, now| {
            let model = worker.model().map(|model| (model.version, digest(&model.lanes)));
            let version = model.map(|(version, _)| version);
            version.into_iter().for_each(|version| worker.taken(version));
            let stays = waits_for.is_some_and(|(on, _)| version.unwrap_or(0) <= on);
            if !may_push || stays || worker.standing() != Standing::Joined {
                return (model, false);
            }
            let mut one_hot = vec![0.0; lanes * segments as usize];
            (0..segments as usize).for_each(|segment| one_hot[segment * lanes + number] = 1.0);
            worker.push(now, &[&one_hot], number as f64 % 5.0, 1.0).unwrap();
            (model, true)
        });
        let Some((model, pushed)) = result else { return };
        self.models_seen.entry(id).or_default().extend(model);
        if pushed {
            self.pushes.push((WorkerId(id.0), self.pushed));
            self.pushed += 1;
            let version = model.map_or(0, |(version, _)| version);
            self.pushed_on.insert(id, (version, self.net.now()));
            // Workers out of step with each other, as their episodes are.
            let own = Duration::from_micros(u64::from(id.0) * 370);
            self.next_push.insert(id, self.net.now() + self.setting.every + own);
        }
    }

    /// No more pushes; everything on its way arrives.
    pub(crate) fn settle(&mut self) {
        self.quiet = true;
        self.train_for(ms(2000));
    }

    pub(crate) fn server_version(&self) -> u32 {
        self.net
            .node::<Server>(SERVER)
            .and_then(|server| server.model(JOB).map(|(version, _)| version))
            .unwrap_or(0)
    }

    /// The model of the living server, whole.
    pub(crate) fn model(&self) -> Vec<f32> {
        let server = &self.net.node::<Server>(SERVER).unwrap();
        let (_, segments) = server.model(JOB).unwrap();
        segments.flat_map(|segment| segment.iter().copied()).collect()
    }

    /// Contributions in update datagrams of that lot, from one place to another.
    pub(crate) fn contributions(&self, lot: Lot, between: impl Fn(PeerId, PeerId) -> bool) -> u64 {
        let records = self.net.trace().iter().filter(|r| r.lot == lot && between(r.from, r.to));
        records.filter_map(|r| update_of(&r.bytes)).map(|u| u64::from(u.contributors)).sum()
    }

    /// Contributions that the server saw for the first time.
    pub(crate) fn distinct_at_the_server(&self) -> u64 {
        let mut seen = BTreeSet::new();
        let records = self.net.trace().iter().filter(|r| r.lot == Lot::Delivered && r.to == SERVER);
        records
            .filter_map(|r| update_of(&r.bytes))
            .filter(|u| seen.insert((u.address.session, u.hop_sequence)))
            .map(|u| u64::from(u.contributors))
            .sum()
    }

    /// Each complete model that a worker ever had is what the server sent as that version, to the bit; and
    /// the server never sent two models under one name.
    #[track_caller]
    pub(crate) fn no_model_is_torn(&self) -> usize {
        let mut sent: BTreeMap<(u32, u32, u32), Vec<u8>> = BTreeMap::new();
        for record in self.net.trace().iter().filter(|r| r.lot == Lot::Sent && r.from == SERVER) {
            let Ok(packet) = Packet::new_checked(&record.bytes) else { continue };
            if packet.kind() != Kind::Model {
                continue;
            }
            let answer = Answer::parse(&packet).unwrap();
            let name = (answer.epoch, answer.model_version, answer.segment);
            let lanes = packet.lanes().to_vec();
            let known = sent.entry(name).or_insert_with(|| lanes.clone());
            assert_eq!(*known, lanes, "two segments by the name of {name:?}");
        }
        let mut compared = 0;
        for (id, models) in &self.models_seen {
            for (version, seen) in models {
                let whole = (100..110).any(|epoch| {
                    let parts: Option<Vec<&Vec<u8>>> = (0..self.setting.segments)
                        .map(|segment| sent.get(&(epoch, *version, segment)))
                        .collect();
                    parts.is_some_and(|parts| {
                        let bytes: Vec<u8> = parts.into_iter().flatten().copied().collect();
                        let mut lanes = vec![0.0; bytes.len() / 4];
                        read_lanes(&bytes, &mut lanes);
                        digest(&lanes) == *seen
                    })
                });
                assert!(whole, "{id:?} had a version {version} that nobody sent");
                compared += 1;
            }
        }
        compared
    }
}

fn digest(lanes: &[f32]) -> u64 {
    lanes.iter().fold(0xcbf2_9ce4_8422_2325, |digest, lane| {
        (digest ^ u64::from(lane.to_bits())).wrapping_mul(0x0100_0000_01b3)
    })
}

pub(crate) fn update_of(bytes: &[u8]) -> Option<Update> {
    let packet = Packet::new_checked(bytes).ok()?;
    Update::parse(&packet).ok()
}
