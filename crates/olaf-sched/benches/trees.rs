//! How long a job waits for its tree, and the share of the possible gain that the trees allow.
//!
//! `cargo bench -p olaf-sched --bench trees [-- DEGREE JOBS]`. Jobs like those of MINA's first mix
//! keep a fat tree full (degree 16: 1,024 hosts) and leave when their steps are done; each policy
//! sees the same jobs on the same hosts at the same times.

#![allow(clippy::print_stdout, reason = "a benchmark says what it measured")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a benchmark has a clock, and arguments"
)]

use olaf_samples::are_benches_quick;
use olaf_sched::placement::{self, Placer};
use olaf_sched::topology::FatTree;
use olaf_sched::trees::{Arrival, Change, Config, Conflicts, Forest, Policy, Weight};
use olaf_sched::{Capacity, HostId, JobId, Topology};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Of each model: a step in milliseconds, and what a tree saves of it, in thousandths, as
/// recorded and with computing 1.5 times as fast and a speed-up of 1.5.
const MODELS: [(u64, [u64; 2]); 7] = [
    (81, [0, 97]),
    (222, [0, 98]),
    (762, [0, 181]),
    (94, [42, 97]),
    (219, [0, 86]),
    (57, [0, 32]),
    (142, [0, 255]),
];
/// Numbers of hosts, and how many of 2,000 jobs have each.
const HOSTS: [(u32, u32); 8] =
    [(1, 225), (2, 219), (4, 330), (8, 456), (16, 475), (32, 252), (48, 39), (64, 4)];

/// A job begins or ends.
struct Event {
    at_ms: u64,
    job: usize,
    begins: bool,
}

struct Job {
    hosts: Vec<HostId>,
    gain: [u64; 2],
}

struct Load {
    jobs: Vec<Job>,
    events: Vec<Event>,
}

fn main() {
    let numbers: Vec<usize> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    let (degree, jobs) = if are_benches_quick() { (8, 100) } else { (16, 2000) };
    let degree = numbers.first().map_or(degree, |&n| u32::try_from(n).expect("a degree"));
    let jobs = numbers.get(1).copied().unwrap_or(jobs);
    let shape = FatTree::of_degree(degree).expect("an even degree");
    let topology = Arc::new(Topology::fat_tree(shape).expect("not too large"));
    println!("{} hosts, {jobs} jobs", topology.hosts().len());
    let load = Load::new(&topology, jobs);
    let mina = |weight, keep| Policy::Mina { candidates: 5, weight, join: true, rounds: 50, keep };
    for (setting, name) in ["as recorded", "every job gains"].into_iter().enumerate() {
        for capacity in [Capacity::PerPort(1), Capacity::PerSwitch(1)] {
            println!("{name}, {capacity}");
            for (policy, called) in [
                (Policy::First, "first"),
                (Policy::MINA, "mina, jobs"),
                (mina(Weight::Hosts, true), "mina, hosts"),
                (mina(Weight::Jobs, false), "mina, anew"),
                (Policy::GAIN, "gain"),
            ] {
                run(&topology, &load, capacity, policy, called, setting);
            }
        }
    }
}

/// The same commands give the same trees, so each is timed by its fastest run: what the machine did
/// meanwhile is not the policy's.
const RUNS: usize = 3;

fn run(
    topology: &Arc<Topology>,
    load: &Load,
    capacity: Capacity,
    policy: Policy,
    called: &str,
    setting: usize,
) {
    let config = Config { capacity, policy, conflicts: Conflicts::Capacity, seed: 1 };
    let mut fastest = vec![Duration::MAX; load.events.len()];
    for _ in 1..RUNS {
        let forest = Forest::with(Arc::clone(topology), config);
        drive(forest, load, setting, &mut fastest, |_, _, _| ());
    }
    let (mut changes, mut migrations, mut now) = (0, 0, 0);
    // Host-nanoseconds a second, times milliseconds: gained in the conflict-free set, by others
    // with trees, and to be gained.
    let mut gained = [0u128; 3];
    let mut running: BTreeMap<JobId, u64> = BTreeMap::new();
    let forest = Forest::with(Arc::clone(topology), config);
    drive(forest, load, setting, &mut fastest, |forest, event, said| {
        let Some(said) = said else {
            for (&job, &gain) in &running {
                let weight = u128::from(gain) * u128::from(event.at_ms - now);
                gained[2] += weight;
                if forest.tree(job).is_some_and(|(tree, _)| tree.is_some()) {
                    gained[usize::from(!forest.is_seated(job))] += weight;
                }
            }
            now = event.at_ms;
            let job = JobId(event.job as u64);
            if event.begins {
                running.insert(job, load.jobs[event.job].gain[setting]);
            } else {
                running.remove(&job);
            }
            return;
        };
        changes += said.len();
        migrations += said.iter().filter(|change| change.is_migration()).count();
    });
    let mut times: [Vec<Duration>; 2] = Default::default();
    for (event, time) in load.events.iter().zip(fastest) {
        times[usize::from(event.begins)].push(time);
    }
    let jobs = load.jobs.len() as f64;
    let part = |of: u128| of as f64 / gained[2] as f64;
    println!(
        "  {called:12} gain {:.4}, in turns {:.4}  migrations a job {:.2} (changes {:.2})",
        part(gained[0]),
        part(gained[1]),
        migrations as f64 / jobs,
        changes as f64 / jobs,
    );
    println!("  {:12} arrive {}  leave {}", "", spread(&mut times[1]), spread(&mut times[0]));
}

/// All events; `look` sees the forest before each, and what was said after.
fn drive(
    mut forest: Forest,
    load: &Load,
    setting: usize,
    fastest: &mut [Duration],
    mut look: impl FnMut(&Forest, &Event, Option<&[Change]>),
) {
    for (event, fastest) in load.events.iter().zip(fastest) {
        look(&forest, event, None);
        let of = &load.jobs[event.job];
        let job = JobId(event.job as u64);
        let arrival = Arrival { job, hosts: of.hosts.clone(), units: 1, gain: of.gain[setting] };
        let begin = Instant::now();
        let said = if event.begins { forest.arrive(vec![arrival]) } else { forest.leave(job) };
        *fastest = begin.elapsed().min(*fastest);
        look(&forest, event, Some(&said));
    }
}

fn spread(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let at = |permille: usize| times[(times.len() - 1) * permille / 1000].as_secs_f64() * 1e3;
    format!("median {:.3} p99 {:.3} max {:.3} ms", at(500), at(990), at(1000))
}

impl Load {
    /// As many jobs as fit, always: the next waits for its hosts.
    fn new(topology: &Topology, jobs: usize) -> Self {
        let fragments = placement::Policy::Fragments { alpha_millis: placement::ALPHA_MILLIS };
        let mut placer = Placer::new(topology, fragments);
        let mut rng = fastrand::Rng::with_seed(42);
        let mut load = Self { jobs: Vec::new(), events: Vec::new() };
        let mut ends: BTreeMap<(u64, usize), ()> = BTreeMap::new();
        let mut now = 0;
        while load.jobs.len() < jobs {
            let mut left = rng.u32(..2000);
            let count = HOSTS.iter().find(|(_, weight)| {
                let here = left < *weight;
                left = left.saturating_sub(*weight);
                here
            });
            let &(count, _) = count.expect("the weights are 2,000 together");
            let (step_ms, permille) = MODELS[rng.usize(..MODELS.len())];
            let steps = 10 * rng.u64(1..=10);
            let placement = loop {
                if let Ok(placement) = placer.place(count) {
                    break placement;
                }
                let ((at, job), ()) = ends.pop_first().expect("a job fits when none runs");
                now = at;
                placer.release(&load.jobs[job].hosts);
                load.events.push(Event { at_ms: now, job, begins: false });
            };
            let job = load.jobs.len();
            let gain =
                permille.map(|p| if count < 2 { 0 } else { p * u64::from(count) * 1_000_000 });
            load.jobs.push(Job { hosts: placement.hosts, gain });
            load.events.push(Event { at_ms: now, job, begins: true });
            ends.insert((now + steps * step_ms, job), ());
        }
        for ((at_ms, job), ()) in ends {
            load.events.push(Event { at_ms, job, begins: false });
        }
        load
    }
}
