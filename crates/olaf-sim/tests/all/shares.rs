//! Two jobs at one switch: the one that floods does not take the other's share of link and slots.

use crate::common::{SERVER, SWITCH, ms, update_of};
use core::time::Duration;
use olaf_engine::link::Shares;
use olaf_engine::switch::native::{Config, Pacing};
use olaf_engine::{BitsPerSecond, Instant, PeerId, PortId, Switch, Wiring};
use olaf_host::push_pull::worker::Standing;
use olaf_host::{Server, ServerConfig, Worker, WorkerConfig};
use olaf_sim::{Lot, Network, Wire};
use olaf_wire::{Address, ClusterId, JobId, Session, WorkerId};

const START: Instant = Instant(1_700_000_000_000_000_000);
const LANES: usize = 32;
/// Bits of one update: a header of 96 bytes and its lanes.
const UPDATE_BITS: u64 = 8 * (96 + 4 * LANES as u64);
/// Updates that the uplink sends in a second.
const CAPACITY: u64 = 2000;

/// Workers of a job, each with a cluster of its own, so that nothing merges.
struct Crowd {
    job: JobId,
    workers: Vec<PeerId>,
    /// Each pushes so often.
    every: Duration,
}

impl Crowd {
    fn new(job: u32, workers: u32, every: Duration) -> Self {
        let first = 100 * job;
        Self { job: JobId(job), workers: (first..first + workers).map(PeerId).collect(), every }
    }
}

/// Updates of each crowd that were pushed, and those that came to the server, in two seconds.
fn run(shares: Shares, crowds: &[Crowd]) -> Vec<(u64, u64)> {
    let mut net = Network::new(3, START);
    let wire = Wire { delay: Duration::from_micros(100), ..Wire::default() };
    let wiring = Wiring::new(PortId::DOWNLINK).with(SERVER, PortId::UPLINK);
    let rate = Pacing::Rate(BitsPerSecond::new(CAPACITY * UPDATE_BITS).unwrap());
    net.join(SWITCH, SERVER, wire);
    net.place_wired(SWITCH, wiring, move |life, _| {
        let config = Config { shares: shares.clone(), ..Config::default() }.paced(rate);
        let mut switch = Switch::new(config, 200 + life).unwrap();
        switch.set_default_server(SERVER);
        Box::new(switch)
    });
    net.place(SERVER, |life, _| {
        Box::new(Server::new(ServerConfig::default(), 100 + life).unwrap())
    });
    for crowd in crowds {
        for id in &crowd.workers {
            let (job, number) = (crowd.job, id.0);
            net.join(*id, SWITCH, wire);
            net.place(*id, move |_, now| {
                let address = Address {
                    job,
                    cluster: ClusterId(number),
                    worker: WorkerId(number),
                    session: Session(1000 + number),
                };
                let mut worker = Worker::new(WorkerConfig {
                    segment_lanes: u32::try_from(LANES).unwrap(),
                    ..WorkerConfig::new(address, SWITCH)
                });
                worker.join(now, &[&[0.0; LANES]]).unwrap();
                Box::new(worker)
            });
        }
    }
    net.run_for(ms(500));
    let begin = net.now();
    let mut pushed = vec![0; crowds.len()];
    let mut next: Vec<Vec<Instant>> = crowds
        .iter()
        .map(|crowd| {
            // Out of step with each other.
            let after = |k: usize| crowd.every * u32::try_from(k).unwrap();
            let workers = crowd.workers.len();
            (0..workers).map(|k| begin + after(k) / u32::try_from(workers).unwrap()).collect()
        })
        .collect();
    while net.now() < begin + ms(2000) {
        for ((crowd, next), pushed) in crowds.iter().zip(&mut next).zip(&mut pushed) {
            for (id, next) in crowd.workers.iter().zip(next) {
                while *next <= net.now() {
                    *next = *next + crowd.every;
                    *pushed += net
                        .with(*id, |worker: &mut Worker, now| {
                            assert_eq!(worker.standing(), Standing::Joined);
                            worker.push(now, &[&[1.0; LANES]], 0.0, 1.0).unwrap();
                            1
                        })
                        .unwrap();
                }
            }
        }
        net.run_for(Duration::from_micros(250));
    }
    net.run_for(ms(100));
    let came = |job: JobId| {
        let records = net.trace().iter().filter(|r| r.lot == Lot::Delivered && r.to == SERVER);
        let updates = records.filter_map(|record| update_of(&record.bytes));
        updates.filter(|update| update.address.job == job).map(|u| u64::from(u.contributors)).sum()
    };
    crowds.iter().zip(pushed).map(|(crowd, pushed)| (pushed, came(crowd.job))).collect()
}

/// 900 updates a second of 2,000.
fn honest() -> Crowd {
    Crowd::new(1, 9, ms(10))
}

/// 20,000 updates a second.
fn flood(job: u32) -> Crowd {
    Crowd::new(job, 20, ms(1))
}

#[test]
fn a_job_that_floods_leaves_another_what_it_would_have_alone() {
    let alone = run(Shares::default(), &[honest()])[0];
    let [beside, flooding] = run(Shares::default(), &[honest(), flood(2)])[..] else { panic!() };
    assert!(alone.1 >= 1750, "alone {alone:?}");
    let part = beside.1 as f64 / alone.1 as f64;
    assert!(part >= 0.9, "{part:.3} of what it has alone: {beside:?} beside {flooding:?}");
    // And what it does not use is not lost.
    assert!(beside.1 + flooding.1 >= 3800, "the link is busy: {beside:?} and {flooding:?}");
}

#[test]
fn two_floods_leave_a_third_of_the_link_and_a_larger_share_is_a_larger_part() {
    let heavy = || Crowd::new(1, 20, ms(2));
    let crowds = [heavy(), flood(2), flood(3)];
    let equal = run(Shares::default(), &crowds)[0].1 as f64;
    assert!(equal >= 0.9 * 4000.0 / 3.0, "{equal} of {:.0}", 4000.0 / 3.0);
    let larger = run(Shares::default().with(JobId(1), 4), &crowds)[0].1 as f64;
    assert!(larger >= 0.9 * 4000.0 * 4.0 / 6.0, "{larger} of {:.0}", 4000.0 * 4.0 / 6.0);
}
