//! A job around learners that somebody else runs: it learns, waits end when a model comes, nothing
//! depends on anything but the configuration.

use core::time::Duration;
use olaf_engine::switch::native::{self as switch, Pacing};
use olaf_engine::{BitsPerSecond, ClusterId, PeerId};
use olaf_host::push_pull::server::{Aggregate, RuleConfig};
use olaf_host::{ServerConfig, WorkerConfig};
use olaf_sim::Wire;
use olaf_sim::job::{Config, Job, JoinError, SetupError};
use olaf_wire::{Address, JobId, Session, WorkerId};

const MS: u64 = 1_000_000;
const PARAMETERS: usize = 40;

/// A model that was pulled: its version and its parameters.
type Pulled = (u32, Vec<f32>);

fn config(workers: u32) -> Config {
    let nobody =
        Address { job: JobId(1), cluster: ClusterId(0), worker: WorkerId(0), session: Session(1) };
    let rule = RuleConfig { learning_rate: 1.0, staleness_power: 0.0, ..RuleConfig::default() };
    let link = Wire { delay: Duration::from_millis(1), ..Wire::default() };
    Config {
        seed: 1,
        clusters: (0..workers).map(|worker| ClusterId(worker % 2)).collect(),
        worker: WorkerConfig { segment_lanes: 10, ..WorkerConfig::new(nobody, PeerId(0)) },
        switch: switch::Config { slots: 32, ..switch::Config::default() },
        server: ServerConfig { rule, ..ServerConfig::default() },
        edge: link,
        core: link,
    }
}

fn joined(config: &Config) -> Job {
    let mut job = Job::new(config).unwrap();
    for worker in 0..job.workers() {
        let zeros = [0.0; PARAMETERS];
        assert!(job.join(worker, &[&zeros], None, Duration::from_secs(10)).unwrap() > 0);
    }
    job
}

/// Every worker pushes ones, one every 10 ms; the job, and the models that were pulled.
fn train(config: &Config, rounds: u64) -> (Job, Vec<Pulled>) {
    let mut job = joined(config);
    let mut pulled = Vec::new();
    for _ in 0..rounds {
        for worker in 0..job.workers() {
            let mut model = [0.0; PARAMETERS];
            if let Some(version) = job.pull(worker, &mut [&mut model], 0).unwrap() {
                pulled.push((version, model.to_vec()));
            }
            job.push(worker, &[&[1.0; 30], &[1.0; 10]], 1.0, 1.0).unwrap();
            job.run_until(job.now_ns() + 10 * MS);
        }
    }
    (job, pulled)
}

#[test]
fn what_workers_push_moves_the_model_that_they_pull() {
    let (mut job, pulled) = train(&config(3), 20);
    job.run_until(job.now_ns() + 1000 * MS);
    let (version, model) = job.model().unwrap();
    assert_eq!(model, vec![60.0; PARAMETERS]);
    assert!(version > 60);
    // Workers take turns: each one's models are every third.
    let newer = |(old, new): (&Pulled, &Pulled)| {
        old.0 < new.0 && old.1.iter().zip(&new.1).all(|(old, new)| old <= new)
    };
    assert_eq!(pulled.len(), 60);
    assert!(pulled.iter().zip(&pulled[3..]).all(newer));
    let statistics = job.statistics();
    assert_eq!(statistics.workers.len(), 3);
    let fates = &statistics.server.jobs[0].fates;
    assert_eq!(fates.delivered_alone, 60 * 4, "four segments an update");
}

#[test]
fn the_same_twice_and_another_seed_is_another_run() {
    let lossy = |seed| {
        let bad = Wire { loss: 0.1, jitter: Duration::from_millis(3), ..config(3).edge };
        let rate = Pacing::Rate(BitsPerSecond::new(100_000).unwrap());
        let switch = switch::Config { slots: 6, ..switch::Config::default() }.paced(rate);
        let (job, pulled) = train(&Config { seed, edge: bad, core: bad, switch, ..config(3) }, 30);
        (serde_json::to_string(&job.statistics()).unwrap(), pulled, job.model())
    };
    let one = lossy(1);
    assert_eq!(one, lossy(1));
    assert_ne!(one.0, lossy(2).0);
    let statistics: serde_json::Value = serde_json::from_str(&one.0).unwrap();
    assert!(statistics["links"]["edge_up"]["lost"].as_u64().unwrap() > 0);
    assert!(statistics["switch"]["fates"]["merged"].as_u64().unwrap() > 0, "it merged on the way");
}

#[test]
fn a_wait_ends_when_the_model_comes_and_not_before() {
    let mut job = joined(&config(2));
    let begin = job.now_ns();
    let mut model = [0.0; PARAMETERS];
    let version = job.pull(0, &mut [&mut model], 0).unwrap().unwrap();
    job.push(0, &[&[1.0; PARAMETERS]], 1.0, 1.0).unwrap();
    job.wait(0, version);
    job.wait(1, u32::MAX);
    assert_eq!(job.run_until(begin + 3 * MS), [0_u32; 0]);
    assert_eq!(job.now_ns(), begin + 3 * MS);
    // Two links up and two down, a millisecond each.
    assert_eq!(job.run_until(begin + 1000 * MS), [0]);
    assert_eq!(job.now_ns(), begin + 4 * MS);
    job.pull(0, &mut [&mut model], version).unwrap().unwrap();
    assert_eq!(model, [1.0; PARAMETERS]);
    job.end_wait(1);
    assert_eq!(job.run_until(begin + 1000 * MS), [0_u32; 0]);
    job.wait(0, version);
    assert_eq!(job.run_until(begin + 2000 * MS), [0], "what is there already needs no time");
    assert_eq!(job.now_ns(), begin + 1000 * MS);
}

#[test]
fn a_round_is_one_update_of_every_worker() {
    let aggregate = Aggregate::Round { deadline: Duration::from_secs(1) };
    let server = config(3).server.aggregating(aggregate);
    let mut job = joined(&Config { server, ..config(3) });
    let begin = job.now_ns();
    let mut version = 0;
    for worker in 0..3 {
        let mut model = [0.0; PARAMETERS];
        version = job.pull(worker, &mut [&mut model], 0).unwrap().unwrap();
    }
    for (worker, at) in [(0, 5), (1, 100), (2, 300)] {
        job.run_until(begin + at * MS);
        job.push(worker, &[&[1.0; PARAMETERS]], 1.0, 1.0).unwrap();
        job.wait(worker, version);
    }
    let mut came = Vec::new();
    while came.len() < 3 {
        let answered = job.run_until(begin + 900 * MS);
        assert!(!answered.is_empty(), "a round of three is over when the third has pushed");
        came.extend(answered);
        assert_eq!(job.now_ns(), begin + 304 * MS);
    }
    came.sort_unstable();
    assert_eq!(came, [0, 1, 2]);
    // Three updates of 1, and a power of 0: each counts in full.
    assert_eq!(job.model().unwrap().1, vec![3.0; PARAMETERS]);
}

#[test]
fn what_cannot_be_is_said() {
    let none = Config { clusters: Vec::new(), ..config(1) };
    assert!(matches!(Job::new(&none).err(), Some(SetupError::Workers)));
    let certain = Config { edge: Wire { loss: 1.0, ..Wire::default() }, ..config(1) };
    assert!(matches!(Job::new(&certain).err(), Some(SetupError::Chance)));
    let switch = switch::Config { slots: 0, ..switch::Config::default() };
    let error = Job::new(&Config { switch, ..config(1) }).err().unwrap();
    assert!(error.to_string().starts_with("switch.slots"), "{error}");

    let mut job = joined(&config(2));
    let other = job.join(1, &[&[0.0; 7]], None, Duration::from_secs(1));
    assert!(matches!(other, Err(JoinError::TurnedAway(_))), "{other:?}");
    assert!(job.push(0, &[&[f32::NAN; PARAMETERS]], 1.0, 1.0).is_err());
    let mut short = [0.0; 3];
    let error = job.pull(0, &mut [&mut short], 0).unwrap_err();
    assert_eq!((error.have, error.need), (3, PARAMETERS));

    let slow = Wire { delay: Duration::from_secs(3), ..Wire::default() };
    let mut far = Job::new(&Config { edge: slow, ..config(1) }).unwrap();
    let zeros = [0.0; PARAMETERS];
    let late = far.join(0, &[&zeros], None, Duration::from_secs(1));
    assert!(matches!(late, Err(JoinError::Unanswered)), "{late:?}");
    assert_eq!(far.now_ns(), 1_000 * MS);
}
