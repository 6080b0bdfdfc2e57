//! A job's state leaves one server and is taken up by the next.

use olaf_engine::{Engine, Event, Instant, PeerId, PortId, Source, Verdict};
use olaf_host::push_pull::server::{
    Aggregate, ClusterState, Counts, JobState, RestoreError, RuleConfig, RuleKind, RuleState,
    ServerGate, Staleness,
};
use olaf_host::push_pull::worker::Standing;
use olaf_host::{Layout, NamedArray, Server, ServerConfig, Shape, Worker, WorkerConfig};
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::{Address, ClusterId, JobId, Session, WelcomeCode, WorkerId};
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;

const JOB: JobId = JobId(1);
const SERVER: PeerId = PeerId(1000);

struct Net {
    now: Instant,
    server: Server,
    workers: Vec<Worker>,
    events: Vec<Event>,
}

fn rule() -> RuleConfig {
    RuleConfig { staleness_power: 0.0, gate: ServerGate::Best, ..RuleConfig::default() }
}

fn config(rule: RuleConfig) -> ServerConfig {
    ServerConfig { rule, ..ServerConfig::default() }
}

fn worker(id: u32, life: u32, segment_lanes: u32) -> Worker {
    let address = Address {
        job: JOB,
        cluster: ClusterId(id),
        worker: WorkerId(id),
        session: Session(100 * life + id),
    };
    Worker::new(WorkerConfig { segment_lanes, ..WorkerConfig::new(address, SERVER) })
}

impl Net {
    fn new(server: Server, workers: Vec<Worker>) -> Self {
        Self { now: Instant(1_000_000), server, workers, events: Vec::new() }
    }

    fn run(&mut self, milliseconds: u64) {
        let mut buf = vec![0; MAX_DATAGRAM];
        for _ in 0..milliseconds {
            for (id, worker) in self.workers.iter_mut().enumerate() {
                let peer = PeerId(u32::try_from(id).unwrap());
                while let Some(sent) = worker.poll_transmit(self.now, PortId(0), &mut buf) {
                    let _ =
                        self.server.handle_packet(self.now, Source::end(peer), &buf[..sent.len]);
                }
            }
            while let Some(sent) = self.server.poll_transmit(self.now, PortId(0), &mut buf) {
                let to = &mut self.workers[sent.to.one().expect("one receiver").0 as usize];
                let _ = to.handle_packet(self.now, Source::end(SERVER), &buf[..sent.len]);
            }
            self.events.extend(std::iter::from_fn(|| self.server.poll_event()));
            self.now = self.now + Duration::from_millis(1);
            self.workers.iter_mut().for_each(|worker| worker.handle_timeout(self.now));
            self.server.handle_timeout(self.now);
        }
    }

    /// Every worker pushes its number once, and takes the model that results.
    fn train(&mut self, parameters: usize, reward: f64) {
        for (id, worker) in self.workers.iter_mut().enumerate() {
            let values = vec![id as f32 + 0.25; parameters];
            worker.push(self.now, &[&values], reward, 1.0).unwrap();
        }
        self.run(20);
        for worker in &mut self.workers {
            let version = worker.model().unwrap().version;
            worker.taken(version);
        }
    }

    fn model(&self) -> (u32, Vec<u32>) {
        let (version, segments) = self.server.model(JOB).unwrap();
        (version, segments.flatten().map(|w| w.to_bits()).collect())
    }
}

/// Two workers that have trained for a while, three segments.
fn trained(rounds: u32) -> Net {
    let server = Server::new(config(rule()), 9).unwrap();
    let mut net = Net::new(server, vec![worker(0, 1, 4), worker(1, 1, 4)]);
    for worker in &mut net.workers {
        worker.join(net.now, &[&[0.5; 10]]).unwrap();
    }
    net.run(50);
    for round in 0..rounds {
        net.train(10, f64::from(round));
    }
    net
}

#[test]
fn after_everything_was_killed_the_job_goes_on_with_the_very_bits_of_the_checkpoint() {
    let before = trained(5);
    let state = before.server.checkpoint(JOB).unwrap();
    assert_eq!(state.clusters.len(), 2);
    assert_eq!(state.counts.received, 30);

    let mut server = Server::new(config(rule()), 10).unwrap();
    server.restore(state.clone(), false).unwrap();
    assert_eq!(server.checkpoint(JOB).unwrap(), state);
    let mut net = Net::new(server, vec![worker(0, 2, 4)]);
    assert_eq!(net.model(), before.model());
    net.workers[0].join(net.now, &[&[7.0; 10]]).unwrap();
    net.run(1900);
    assert_eq!(net.workers[0].standing(), Standing::Joining, "a newer model may still come");
    net.run(200);
    assert_eq!(net.workers[0].standing(), Standing::Joined);
    assert_eq!(net.model(), before.model());
    let model = net.workers[0].model().unwrap();
    let bits: Vec<u32> = model.lanes.iter().map(|w| w.to_bits()).collect();
    assert_eq!((model.version, bits), before.model());
    let resumed = Event::ModelRestored { job: JOB, parameters: 10, version: state.version };
    assert!(net.events.contains(&resumed), "{:?}", net.events);
    assert_eq!(net.server.checkpoint(JOB).unwrap(), state);

    // Counts and version go on.
    net.train(10, 100.0);
    let after = net.server.checkpoint(JOB).unwrap();
    assert_eq!(after.counts.received, state.counts.received + 3);
    assert!(after.version > state.version);
    let job = &net.server.statistics(net.now).jobs[0];
    let restored = job.restored.as_ref().unwrap();
    assert_eq!((restored.version, &restored.counts), (state.version, &state.counts));
}

#[test]
fn a_worker_with_a_newer_model_than_the_checkpoint_gives_it_and_the_rule_goes_on() {
    let mut net = trained(3);
    let old = net.server.checkpoint(JOB).unwrap();
    for round in 3..6 {
        net.train(10, f64::from(round));
    }
    let (version, bits) = net.model();
    assert!(version > old.version);
    let newest = net.workers.iter().map(|w| w.model().unwrap().version).max().unwrap();
    assert_eq!(newest, version);

    net.server = Server::new(config(rule()), 10).unwrap();
    net.server.restore(old.clone(), false).unwrap();
    net.events.clear();
    net.run(1500);
    let (after, same) = net.model();
    assert_eq!(same, bits, "not the checkpoint's");
    assert!(after > version);
    assert!(net.events.iter().any(|e| matches!(e, Event::ModelStarted { .. })));
    assert!(!net.events.iter().any(|e| matches!(e, Event::ModelRestored { .. })));
    // The best reward of the checkpoint was 2: what is worse is kept out, as before.
    net.train(10, 1.0);
    let state = net.server.checkpoint(JOB).unwrap();
    assert_eq!(state.counts.gated, old.counts.gated + 6);
    assert_eq!(net.model().1, bits);
}

#[test]
fn who_claims_a_newer_model_and_dies_holds_nobody_up_for_long() {
    let mut net = trained(3);
    let old = net.server.checkpoint(JOB).unwrap();
    let bits = net.model().1;
    net.train(10, 9.0);
    let claimed = net.workers[0].model().unwrap().version;

    net.server = Server::new(config(rule()), 10).unwrap();
    net.server.restore(old, false).unwrap();
    net.workers[1] = worker(1, 2, 4);
    net.workers[1].join(net.now, &[&[0.0; 10]]).unwrap();
    // Worker 0's join is the last that is heard of it.
    let mut buf = vec![0; MAX_DATAGRAM];
    net.now = net.now + Duration::from_secs(1);
    let sent = net.workers[0].poll_transmit(net.now, PortId(0), &mut buf).unwrap();
    let verdict = net.server.handle_packet(net.now, Source::end(PeerId(0)), &buf[..sent.len]);
    assert_eq!(verdict, Verdict::Absorb);
    net.workers[0] = worker(0, 3, 4);
    net.run(3000);
    let (version, restored) = net.model();
    assert_eq!(restored, bits);
    assert!(version > claimed, "{version} > {claimed}: no worker takes the old for the new");
    assert_eq!(net.workers[1].model().unwrap().version, version);
}

#[test]
fn the_last_word_of_a_server_that_stopped_in_order_is_taken_up_at_once() {
    let before = trained(2);
    let mut server = Server::new(config(rule()), 10).unwrap();
    server.restore(before.server.checkpoint(JOB).unwrap(), true).unwrap();
    let mut net = Net::new(server, vec![worker(5, 2, 4)]);
    net.workers[0].join(net.now, &[&[0.0; 10]]).unwrap();
    net.run(20);
    assert_eq!(net.workers[0].standing(), Standing::Joined);
    assert_eq!(net.model(), before.model());
}

#[test]
fn a_path_of_another_size_cuts_the_same_model_otherwise() {
    let literal = RuleConfig { kind: RuleKind::PaperLiteral, ..RuleConfig::default() };
    let train = |server: Server, life: u32, lanes: u32, rewards: &[f64]| {
        let mut net = Net::new(server, vec![worker(0, life, lanes)]);
        net.workers[0].join(net.now, &[&[0.5; 10]]).unwrap();
        net.run(2100);
        for reward in rewards {
            let values: Vec<f32> = (0..10u8).map(|n| f32::from(n) + *reward as f32).collect();
            net.workers[0].push(net.now, &[&values], *reward, 1.0).unwrap();
            net.run(20);
        }
        net
    };
    let fresh = || Server::new(config(literal), 9).unwrap();
    let through = train(fresh(), 1, 4, &[1.0, 2.0, 3.0]);
    let state = train(fresh(), 1, 4, &[1.0, 2.0]).server.checkpoint(JOB).unwrap();
    let mut server = fresh();
    server.restore(state, false).unwrap();
    let net = train(server, 2, 6, &[3.0]);
    // The average of the rule went on as well, or the third step would be another one.
    assert_eq!(net.model().1, through.model().1);
    assert_eq!(net.server.statistics(net.now).jobs[0].segments, 2);
}

#[test]
fn nobody_cuts_a_restored_model_into_crumbs() {
    let state = |lanes: u32| JobState {
        shape: Shape { parameters: 1000, segment_lanes: lanes },
        segments: (0..1000u32.div_ceil(lanes))
            .map(|at| Arc::new(vec![0.5; lanes.min(1000 - at * lanes) as usize]))
            .collect(),
        rules: Vec::new(),
        layout: None,
        ..trained(1).server.checkpoint(JOB).unwrap()
    };
    for (stored, asked, cut) in [(400, 1, 400), (400, 95, 400), (400, 100, 100), (40, 41, 41)] {
        let mut server = Server::new(config(rule()), 10).unwrap();
        server.restore(state(stored), false).unwrap();
        let mut net = Net::new(server, vec![worker(0, 2, asked)]);
        net.workers[0].join(net.now, &[&[0.0; 1000]]).unwrap();
        net.run(5);
        let now = net.server.checkpoint(JOB).unwrap().shape.segment_lanes;
        assert_eq!(now, cut, "{stored} lanes, and a join with {asked}");
    }
}

#[test]
fn a_network_of_another_size_is_refused_and_the_checkpoint_stays() {
    let state = trained(2).server.checkpoint(JOB).unwrap();
    let mut server = Server::new(config(rule()), 10).unwrap();
    server.restore(state.clone(), false).unwrap();
    let mut net = Net::new(server, vec![worker(0, 2, 4)]);
    net.workers[0].join(net.now, &[&[0.0; 11]]).unwrap();
    net.run(5000);
    assert_eq!(net.workers[0].standing(), Standing::TurnedAway(WelcomeCode::WrongModelSize));
    assert_eq!(net.server.checkpoint(JOB).unwrap(), state);
}

#[test]
fn what_waits_in_a_collection_is_counted_as_lost() {
    let aggregate = Aggregate::Periodic { contributions: Some(8), after: Duration::from_secs(60) };
    let server = Server::new(config(rule()).aggregating(aggregate), 9).unwrap();
    let mut net = Net::new(server, vec![worker(0, 1, 16)]);
    net.workers[0].join(net.now, &[&[0.0; 10]]).unwrap();
    net.run(50);
    net.workers[0].push(net.now, &[&[1.0; 10]], 0.0, 1.0).unwrap();
    net.run(5);
    let counts = net.server.checkpoint(JOB).unwrap().counts;
    assert_eq!(counts.received, 1);
    assert_eq!(counts.rejected.get("server_restarted"), Some(&1));
}

#[test]
fn a_state_that_contradicts_itself_is_refused_by_the_name_of_its_part() {
    let state = trained(2).server.checkpoint(JOB).unwrap();
    let mut server = Server::new(config(rule()), 10).unwrap();
    let mut refused = |part: &str, change: &dyn Fn(&mut JobState)| {
        let mut bad = state.clone();
        change(&mut bad);
        let error = server.restore(bad, false).unwrap_err().to_string();
        assert!(error.contains(part), "{error}: {part}");
    };
    refused("parameters", &|s| s.shape.parameters = 0);
    refused("segment_lanes", &|s| s.shape.segment_lanes = 0);
    refused("segment_lanes", &|s| s.shape.segment_lanes = u32::MAX);
    refused("the model's size", &|s| s.shape.parameters = 11);
    refused("the model's size", &|s| drop(s.segments.pop()));
    refused("not finite", &|s| Arc::make_mut(&mut s.segments[0])[0] = f32::NAN);
    refused("the rule's size", &|s| drop(s.rules.pop()));
    refused("the rule's state", &|s| s.rules[0].best = f64::NAN);
    refused("the rule's state", &|s| s.rules[0].recent = Some(f64::INFINITY));
    refused("the rule's state", &|s| s.rules[0].average = vec![1.0; 3]);
    refused("staleness", &|s| s.staleness.sum = -1.0);
    refused("staleness", &|s| {
        s.clusters.get_mut(&ClusterId(0)).unwrap().last_reward = Some(f64::NAN);
    });
    refused("counts", &|s| s.counts.gated = u64::MAX);
    refused("counts.rejected", &|s| {
        s.counts.rejected = (0..65).map(|n| (format!("reason {n}"), 1)).collect();
    });
    let other = vec![NamedArray { name: "w".into(), shape: vec![11] }];
    refused("layout", &|s| s.layout = Some(Layout::new(other.clone(), 11).unwrap()));
    server.restore(state.clone(), false).unwrap();
    assert_eq!(server.restore(state, false), Err(RestoreError::JobRuns));
}

fn states() -> impl Strategy<Value = JobState> {
    let weights = || (-1e30f32..1e30).prop_map(|w| w);
    let shape = (1u32..40, 1u32..12);
    shape.prop_flat_map(move |(parameters, segment_lanes)| {
        let shape = Shape { parameters, segment_lanes };
        let segments: Vec<_> = (0..shape.segments())
            .map(|segment| {
                prop::collection::vec(weights(), shape.lanes(segment)).prop_map(Arc::new)
            })
            .collect();
        let rules: Vec<_> = (0..shape.segments())
            .map(|segment| {
                let best = prop_oneof![Just(f64::NEG_INFINITY), -1e9f64..1e9];
                let average = prop::collection::vec(weights(), shape.lanes(segment));
                let average = prop_oneof![Just(Vec::new()), average];
                (best, prop::option::of(-1e9f64..1e9), average)
                    .prop_map(|(best, recent, average)| RuleState { best, recent, average })
            })
            .collect();
        let staleness = || {
            (0.0f64..1e9, 0..1u64 << 56, any::<u32>()).prop_map(|(sum, count, max)| Staleness {
                sum,
                count,
                max,
            })
        };
        let cluster = (
            [0..1u64 << 56, 0..1u64 << 56],
            staleness(),
            prop::option::of(-1e9f64..1e9),
            any::<u32>(),
        )
            .prop_map(|(n, staleness, last_reward, newest_version)| ClusterState {
                deliveries: n[0],
                contributions: n[1],
                staleness,
                last_reward,
                newest_version,
            });
        let clusters = prop::collection::btree_map(any::<u32>().prop_map(ClusterId), cluster, 0..4);
        let rejected = prop::collection::btree_map("[a-z_]{1,20}", 0..1u64 << 56, 0..5);
        let counts =
            (prop::array::uniform7(0..1u64 << 56), rejected).prop_map(|(n, rejected)| Counts {
                received: n[0],
                deliveries: n[1],
                delivered_alone: n[2],
                delivered_merged: n[3],
                gated: n[4],
                rejected,
                collections: n[5],
                rounds_short: n[6],
            });
        let named = any::<bool>();
        (
            (any::<u32>(), any::<bool>(), named),
            segments,
            prop_oneof![Just(Vec::new()).boxed(), rules.boxed()],
            counts,
            staleness(),
            clusters,
        )
            .prop_map(
                move |(
                    (version, unpublished, named),
                    segments,
                    rules,
                    counts,
                    staleness,
                    clusters,
                )| {
                    let arrays = vec![NamedArray { name: "w".into(), shape: vec![parameters] }];
                    JobState {
                        job: JOB,
                        shape,
                        version,
                        unpublished,
                        segments,
                        rules,
                        layout: named.then(|| Layout::new(arrays, parameters).unwrap()),
                        counts,
                        staleness,
                        clusters,
                    }
                },
            )
    })
}

proptest! {
    #[test]
    fn what_is_restored_is_what_was_saved(state in states(), is_last: bool) {
        let mut server = Server::new(config(rule()), 10).unwrap();
        server.restore(state.clone(), is_last).unwrap();
        prop_assert_eq!(server.checkpoint(JOB).unwrap(), state);
    }
}
