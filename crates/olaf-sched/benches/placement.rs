//! What one placement costs in a busy cluster, and what giving the hosts back costs: fewest
//! fragments next to first fit and random, on the same arrivals.
//!
//! `cargo bench -p olaf-sched --bench placement`. Every single call is timed: the measure is about
//! single decisions, median and 99th percentile.

#![allow(clippy::print_stdout, reason = "a benchmark says what it measured")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a benchmark has a clock"
)]

use olaf_samples::are_benches_quick;
use olaf_sched::placement::{Placer, Policy};
use olaf_sched::topology::{HostSpec, Topology};
use olaf_sched::{HostId, JobId};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Hosts a job, and how often (MINA §V-A, the mixes of its experiments).
const MIX: [(u32, u32); 8] =
    [(1, 225), (2, 219), (4, 330), (8, 456), (16, 475), (32, 252), (48, 39), (64, 4)];

fn main() {
    let mix = |rng: &mut fastrand::Rng| {
        let mut at = rng.u32(..MIX.iter().map(|(_, weight)| weight).sum::<u32>());
        for (hosts, weight) in MIX {
            if at < weight {
                return hosts;
            }
            at -= weight;
        }
        unreachable!("weights are summed above")
    };
    let paper = Topology::parse("fat-tree:16").expect("a form");
    let large = Topology::parse("fat-tree:32,32,64:32,32").expect("a form");
    // A host more in one rack, and no two levels are alike any more: Algorithm 1's tables.
    let odd = |topology: &Topology| {
        let mut spec = topology.spec();
        let up = spec.hosts[0].up.clone();
        spec.hosts.insert(0, HostSpec { name: "odd".into(), count: None, up });
        spec.build().expect("a tree")
    };
    run("1,024 hosts, MINA's job sizes", &paper, 20_000, mix);
    run("1,025 hosts, one rack larger", &odd(&paper), 20_000, mix);
    run("65,536 hosts, MINA's job sizes", &large, 10_000, mix);
    run("65,537 hosts, one rack larger", &odd(&large), 10_000, mix);
    run("65,536 hosts, jobs of 1 to 8,192", &large, 1_000, |rng| rng.u32(1..=8192));
    run("65,536 hosts, jobs of 1 to 60,000", &large, 300, |rng| rng.u32(1..=60_000));
    run("65,537 hosts, jobs of 1 to 8,192", &odd(&large), 60, |rng| rng.u32(1..=8192));
}

/// Runs arrivals. Each waits until enough running jobs, drawn by chance, have ended.
fn run(name: &str, topology: &Topology, arrivals: u64, size: impl Fn(&mut fastrand::Rng) -> u32) {
    let arrivals = if are_benches_quick() { arrivals.min(20) } else { arrivals };
    println!("{name}: {arrivals} arrivals");
    let policies = [
        ("first fit", Policy::FirstFit),
        ("random", Policy::Random { seed: 1 }),
        ("fragments", Policy::Fragments { alpha_millis: 500 }),
    ];
    for (name, policy) in policies {
        let mut placer = Placer::new(topology, policy);
        let mut rng = fastrand::Rng::with_seed(42);
        let mut running: BTreeMap<JobId, Vec<HostId>> = BTreeMap::new();
        let (mut place, mut with_release) = (Vec::new(), Vec::new());
        for job in 0..arrivals {
            let hosts = size(&mut rng);
            let mut released = Duration::ZERO;
            while placer.free() < hosts {
                let at = rng.usize(..running.len());
                let ended = *running.keys().nth(at).expect("one of the running");
                let hosts = running.remove(&ended).expect("it runs");
                released += time(|| placer.release(&hosts)).1;
            }
            let full = !released.is_zero();
            let (placed, took) = time(|| placer.place(hosts).expect("room was made"));
            running.insert(JobId(job), black_box(placed).hosts);
            if full {
                place.push(took);
                with_release.push(took + released);
            }
        }
        println!("  {name:9}  place {}   with releases {}", spread(place), spread(with_release));
    }
}

fn time<T>(call: impl FnOnce() -> T) -> (T, Duration) {
    let began = Instant::now();
    let result = call();
    (result, began.elapsed())
}

fn spread(mut times: Vec<Duration>) -> String {
    if times.is_empty() {
        // Of few arrivals, as in a quick run, none finds the cluster full.
        return "not measured".into();
    }
    times.sort_unstable();
    let at =
        |thousandths: usize| times[(times.len() - 1) * thousandths / 1000].as_nanos() as f64 / 1e3;
    format!("median {:7.1} us, p99 {:7.1}, most {:8.1}", at(500), at(990), at(1000))
}
