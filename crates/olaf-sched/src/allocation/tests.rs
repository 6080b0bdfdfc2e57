//! Random commands and answers in any order; every order of a small case; single behaviours.

use super::reference::{World, check_settled};
use super::*;
use crate::topology::LeafSpine;
use proptest::prelude::*;

fn allocator(topology: &str, capacity: Capacity, trees: trees::Policy) -> Allocator {
    let topology = Topology::parse(topology).expect("a topology of a test");
    let config = Config {
        capacity,
        placement: placement::Policy::FirstFit,
        trees,
        seed: 7,
        most_queued: 4,
        most_ended: 3,
    };
    Allocator::new(Arc::new(topology), config)
}

fn request(hosts: u32, gain: u64) -> Command {
    Command::Submit(Request { name: "j".into(), pattern: None, hosts, units: 1, steps: None, gain })
}

/// Nobody shares: what a service does by default.
fn apart(trees: &str) -> trees::Policy {
    let join = Some(trees::Join::None);
    let asked = trees::Asked { trees: trees.into(), join, ..trees::Asked::default() };
    asked.resolve().expect("it has the parameter")
}

/// Applies a command and lets the world hear of it.
fn tell(
    allocator: &mut Allocator,
    world: &mut World,
    command: &Command,
) -> Result<Outcome, Refusal> {
    let outcome = allocator.apply(0, command)?;
    world.hear(allocator, &outcome.events);
    Ok(outcome)
}

/// All messages arrive, those of the lowest job first; more follow from them.
fn settle(allocator: &mut Allocator, world: &mut World) {
    for _ in 0..10_000 {
        if let Some(job) = world.orders.keys().next().copied() {
            world.obey(job);
        } else if let Some(answer) = world.answers.pop() {
            let _ = tell(allocator, world, &answer);
        } else {
            return;
        }
    }
    panic!("it never comes to rest");
}

/// Through bytes and back.
fn restarted(allocator: &Allocator) -> Allocator {
    let snapshot = allocator.snapshot();
    let bytes = serde_json::to_vec(&snapshot).expect("plain data");
    let read: Snapshot = serde_json::from_slice(&bytes).expect("just written");
    let topology = Arc::clone(&allocator.topology);
    let again = Allocator::restore(topology, allocator.config, &read).expect("a state");
    assert_eq!(again.snapshot(), snapshot);
    assert_eq!(again.wanting, allocator.wanting);
    assert_eq!(again.placer.free(), allocator.placer.free());
    again
}

#[derive(Clone, Debug)]
enum Step {
    Submit { hosts: u32, gain: u64 },
    End { job: usize, how: u8 },
    Switch { switch: usize, drain: bool },
    Host { host: usize, how: u8 },
    Obey { job: usize },
    Answer { at: usize, twice: bool },
    Nonsense { job: u64, generation: u64 },
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..9u32, 0..100u64).prop_map(|(hosts, gain)| Step::Submit { hosts, gain }),
        2 => (any::<usize>(), 0..3u8).prop_map(|(job, how)| Step::End { job, how }),
        1 => (any::<usize>(), any::<bool>())
            .prop_map(|(switch, drain)| Step::Switch { switch, drain }),
        1 => (any::<usize>(), 0..4u8).prop_map(|(host, how)| Step::Host { host, how }),
        5 => any::<usize>().prop_map(|job| Step::Obey { job }),
        5 => (any::<usize>(), any::<bool>()).prop_map(|(at, twice)| Step::Answer { at, twice }),
        1 => (0..12u64, 0..6u64)
            .prop_map(|(job, generation)| Step::Nonsense { job, generation }),
        1 => Just(Step::Restart),
    ]
}

fn policy() -> impl Strategy<Value = trees::Policy> {
    prop_oneof![
        Just(trees::Policy::First),
        Just(trees::Policy::MINA),
        Just(trees::Policy::GAIN),
        Just(apart("gain")),
        Just(apart("mina")),
        Just(trees::Policy::Gain {
            candidates: 0,
            join: trees::Join::None,
            price_millis: 0,
            depth: 3,
            work: 10_000,
        }),
    ]
}

fn capacity() -> impl Strategy<Value = Capacity> {
    prop_oneof![Just(Capacity::PerSwitch(1)), Just(Capacity::PerPort(1)), Just(Capacity::Slots(2)),]
}

fn command_of(step: &Step, allocator: &Allocator) -> Option<Command> {
    let pick = |many: &[String], at: usize| many[at % many.len()].clone();
    Some(match *step {
        Step::Submit { hosts, gain } => request(hosts, gain),
        Step::End { job, how } => {
            let known: Vec<JobId> = allocator.jobs().map(|(job, _)| job).collect();
            let job = *known.get(job % known.len().max(1))?;
            match how {
                0 => Command::Finish { job },
                1 => Command::Fail { job, reason: "dead".into() },
                _ => Command::Cancel { job },
            }
        }
        Step::Switch { switch, drain } => {
            let names: Vec<String> = allocator.switches.keys().cloned().collect();
            let switch = pick(&names, switch);
            if drain { Command::DrainSwitch { switch } } else { Command::UndrainSwitch { switch } }
        }
        Step::Host { host, how } => {
            let names: Vec<String> = allocator.hosts.keys().cloned().collect();
            let host = pick(&names, host);
            match how {
                0 => Command::DrainHost { host },
                1 => Command::HostLost { host },
                _ => Command::UndrainHost { host },
            }
        }
        // What was never asked for is refused; what was is an answer that came early.
        Step::Nonsense { job, generation } => Command::Acquired { job: JobId(job), generation },
        Step::Restart | Step::Obey { .. } | Step::Answer { .. } => return None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: olaf_samples::cases(200), ..ProptestConfig::default() })]

    #[test]
    fn nobody_meets_and_all_settle_whatever_happens_in_whatever_order(
        steps in prop::collection::vec(step(), 0..120),
        policy in policy(),
        capacity in capacity(),
    ) {
        let mut allocator = allocator("fat-tree:4", capacity, policy);
        let mut world = World::default();
        for step in &steps {
            match step {
                Step::Obey { job } => {
                    let waiting: Vec<JobId> = world.orders.keys().copied().collect();
                    if !waiting.is_empty() {
                        world.obey(waiting[job % waiting.len()]);
                    }
                }
                Step::Answer { at, twice } if !world.answers.is_empty() => {
                    let at = at % world.answers.len();
                    let answer = world.answers[at].clone();
                    if !twice {
                        world.answers.remove(at);
                    }
                    let _ = tell(&mut allocator, &mut world, &answer);
                }
                Step::Restart => allocator = restarted(&allocator),
                step => {
                    if let Some(command) = command_of(step, &allocator) {
                        let before = format!("{allocator:?}");
                        if tell(&mut allocator, &mut world, &command).is_err() {
                            prop_assert_eq!(before, format!("{allocator:?}"));
                        }
                    }
                }
            }
            world.check(&allocator).map_err(TestCaseError::fail)?;
        }
        settle(&mut allocator, &mut world);
        world.check(&allocator).map_err(TestCaseError::fail)?;
        prop_assert!(world.is_quiet());
        check_settled(&allocator).map_err(TestCaseError::fail)?;
    }
}

/// Every order in which a case's commands, orders and answers can come. How many states, and in
/// how many of them somebody had to wait for another's release.
struct Explored {
    states: usize,
    waits: usize,
    violation: Option<String>,
}

fn explore(start: &Allocator, script: &[Command], lies: bool) -> Explored {
    let mut seen = BTreeSet::new();
    let world = World { lies, ..World::default() };
    let mut open = vec![(start.clone(), world, 0)];
    let mut explored = Explored { states: 0, waits: 0, violation: None };
    while let Some((allocator, world, at)) = open.pop() {
        // What is decided depends on the script alone; holds and messages are the rest.
        if !seen.insert(format!("{at} {:?} {world:?}", allocator.holds)) {
            continue;
        }
        explored.states += 1;
        explored.waits += usize::from(!allocator.wanting.is_empty());
        if let Err(found) = world.check(&allocator) {
            explored.violation = Some(found);
            return explored;
        }
        if at == script.len() && world.is_quiet() {
            if let Err(found) = check_settled(&allocator) {
                explored.violation = Some(found);
                return explored;
            }
            continue;
        }
        if let Some(command) = script.get(at) {
            let (mut allocator, mut world) = (allocator.clone(), world.clone());
            tell(&mut allocator, &mut world, command).expect("a script that can be");
            open.push((allocator, world, at + 1));
        }
        for &job in world.orders.keys() {
            let mut world = world.clone();
            world.obey(job);
            open.push((allocator.clone(), world, at));
        }
        for n in 0..world.answers.len() {
            let (mut allocator, mut world) = (allocator.clone(), world.clone());
            let answer = world.answers.remove(n);
            let _ = tell(&mut allocator, &mut world, &answer);
            open.push((allocator, world, at));
        }
    }
    explored
}

/// Two leaves, two spines: three jobs that cross, and two of them have a tree at a time; the drains
/// make them move, one dies in between.
fn crossing(capacity: Capacity) -> (Allocator, Vec<Command>) {
    let trees = trees::Policy::Gain {
        candidates: 0,
        join: trees::Join::None,
        price_millis: 0,
        depth: 3,
        work: 10_000,
    };
    let topology =
        Topology::leaf_spine(LeafSpine { leaves: 3, hosts: 2, spines: 2 }).expect("small");
    let config = Config {
        capacity,
        placement: placement::Policy::FirstFit,
        trees,
        seed: 0,
        most_queued: 9,
        most_ended: 9,
    };
    let drain = |switch: &str| Command::DrainSwitch { switch: switch.into() };
    let undrain = |switch: &str| Command::UndrainSwitch { switch: switch.into() };
    let spine = |n: usize| {
        let top = topology.switches().iter().filter(|switch| switch.up.is_empty());
        top.map(|switch| switch.name.clone()).nth(n).expect("two spines")
    };
    let script = vec![
        request(3, 10),
        request(3, 20),
        drain(&spine(0)),
        undrain(&spine(0)),
        drain(&spine(1)),
        Command::Fail { job: JobId(2), reason: "dead".into() },
        request(3, 30),
        undrain(&spine(1)),
    ];
    (Allocator::new(Arc::new(topology), config), script)
}

#[test]
fn every_order_of_a_small_case_is_safe_and_comes_to_rest() {
    for capacity in [Capacity::PerPort(1), Capacity::PerSwitch(1)] {
        let (start, script) = crossing(capacity);
        let explored = explore(&start, &script, false);
        assert_eq!(explored.violation, None);
        assert!(explored.states > 1000, "{} states", explored.states);
        assert!(explored.waits > 50, "somebody has to wait in {} of them", explored.waits);
    }
}

#[test]
fn a_runtime_that_releases_with_words_only_is_seen() {
    let (start, script) = crossing(Capacity::PerSwitch(1));
    assert!(explore(&start, &script, true).violation.is_some());
}

// Single behaviours.

fn events(outcome: &Outcome) -> Vec<&'static str> {
    outcome
        .events
        .iter()
        .map(|event| match event {
            Event::Queued { .. } => "queued",
            Event::Started { .. } => "started",
            Event::Planned { .. } => "planned",
            Event::Release { .. } => "release",
            Event::Acquire { .. } => "acquire",
            Event::Fence { .. } => "fence",
            Event::Stop { .. } => "stop",
            Event::Ended { .. } => "ended",
            Event::Drained { .. } => "drained",
        })
        .collect()
}

fn first(topology: &str) -> Allocator {
    allocator(topology, Capacity::PerPort(1), trees::Policy::First)
}

#[test]
fn without_sharing_a_job_goes_without_until_the_switch_is_free() {
    let mut a = allocator("fat-tree:4", Capacity::PerSwitch(1), apart("gain"));
    a.apply(0, &request(3, 100)).expect("fits"); // tor0.0 and tor0.1
    a.apply(0, &request(3, 50)).expect("fits"); // tor0.1 and tor1.0: tor0.1 has one unit
    let told = a.explain(JobId(2)).expect("runs");
    assert_eq!((told.tree, told.again), (None, Some(trees::Again::Free)));
    assert!(
        told.blocked.iter().all(|b| (b.resource.as_str(), &b.by[..]) == ("tor0.1", &[JobId(1)]))
    );
    assert!(!told.blocked.is_empty());
    let ended = a.apply(0, &Command::Finish { job: JobId(1) }).expect("runs");
    assert_eq!(events(&ended), ["ended", "planned", "acquire"]);
    assert!(a.explain(JobId(2)).is_some_and(|told| told.tree.is_some() && told.again.is_none()));
    // With sharing on, the same two take turns at once.
    let mut a = allocator("fat-tree:4", Capacity::PerSwitch(1), trees::Policy::GAIN);
    a.apply(0, &request(3, 100)).expect("fits");
    a.apply(0, &request(3, 50)).expect("fits");
    assert_eq!(a.explain(JobId(2)).map(|told| told.shares_with), Some(vec![JobId(1)]));
}

#[test]
fn nobody_overtakes_the_head() {
    let mut a = first("fat-tree:4");
    a.apply(1, &request(10, 0)).expect("fits");
    let head = a.apply(2, &request(8, 0)).expect("waits");
    let why = Waiting::Hosts { hosts: 8, free: 6 };
    assert_eq!(head.events, [Event::Queued { job: JobId(2), position: 1, why }]);
    let behind = a.apply(3, &request(1, 0)).expect("waits");
    let why = Waiting::Behind { head: JobId(2) };
    assert_eq!(behind.events, [Event::Queued { job: JobId(3), position: 2, why }]);
    let ended = a.apply(4, &Command::Finish { job: JobId(1) }).expect("runs");
    assert_eq!(events(&ended)[..3], ["ended", "started", "started"]);
    assert_eq!(a.job(JobId(3)).and_then(|job| job.started_ms), Some(4));
}

#[test]
fn what_a_dead_job_held_is_given_on_when_it_is_fenced() {
    let mut a = first("fat-tree:2");
    a.apply(0, &request(2, 0)).expect("fits");
    a.apply(0, &Command::Acquired { job: JobId(1), generation: 1 }).expect("asked");
    let failed = Command::Fail { job: JobId(1), reason: "power".into() };
    assert_eq!(events(&a.apply(0, &failed).expect("runs")), ["ended", "fence"]);
    let next = a.apply(0, &request(2, 0)).expect("its hosts are free");
    assert_eq!(events(&next), ["started", "planned"]);
    let fenced = Command::Released { job: JobId(1), generation: 1 };
    assert_eq!(events(&a.apply(0, &fenced).expect("told")), ["acquire"]);
}

#[test]
fn a_job_that_shall_stop_keeps_its_hosts_until_it_did() {
    let mut a = first("fat-tree:2");
    a.apply(0, &request(2, 0)).expect("fits");
    let cancel = Command::Cancel { job: JobId(1) };
    assert_eq!(events(&a.apply(0, &cancel).expect("runs")), ["stop"]);
    assert!(!a.apply(0, &cancel).expect("again").changed);
    assert_eq!(events(&a.apply(0, &request(1, 0)).expect("waits")), ["queued"]);
    a.apply(0, &Command::Finish { job: JobId(1) }).expect("stops");
    assert_eq!(a.job(JobId(1)).map(|job| job.state), Some(State::Cancelled));
    assert_eq!(a.job(JobId(2)).map(|job| job.state), Some(State::Running));
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let mut a = first("fat-tree:2");
    let job = JobId(1);
    assert!(matches!(a.apply(0, &request(0, 0)), Err(Refusal::Hosts { .. })));
    assert!(matches!(a.apply(0, &request(3, 0)), Err(Refusal::Hosts { cluster: 2, .. })));
    assert_eq!(a.apply(0, &Command::Finish { job }), Err(Refusal::NoJob { job }));
    a.apply(0, &request(2, 0)).expect("fits");
    let early = Command::Acquired { job, generation: 2 };
    assert!(matches!(a.apply(0, &early), Err(Refusal::Generation { newest: 1, .. })));
    a.apply(0, &Command::Finish { job }).expect("runs");
    let state = State::Finished;
    assert_eq!(a.apply(0, &Command::Finish { job }), Err(Refusal::NotNow { job, state }));
    let nowhere = Command::DrainSwitch { switch: "moon".into() };
    assert!(matches!(a.apply(0, &nowhere), Err(Refusal::NoNode { .. })));
}

#[test]
fn a_lost_host_fails_its_job_and_is_given_to_nobody() {
    let mut a = first("fat-tree:2");
    a.apply(0, &request(2, 0)).expect("fits");
    let lost = Command::HostLost { host: "h1".into() };
    assert_eq!(events(&a.apply(0, &lost).expect("there")), ["drained", "ended", "fence"]);
    assert_eq!(events(&a.apply(0, &request(2, 0)).expect("waits")), ["queued"]);
    let back = Command::UndrainHost { host: "h1".into() };
    assert_eq!(events(&a.apply(0, &back).expect("there"))[..2], ["drained", "started"]);
}

#[test]
fn jobs_that_ended_long_ago_are_forgotten_but_for_those_to_be_fenced() {
    let mut a = first("fat-tree:2");
    for _ in 0..6 {
        let job = a.apply(0, &request(2, 0)).expect("fits").submitted.expect("a number");
        let end = if job == JobId(1) {
            Command::Fail { job, reason: "dead".into() }
        } else {
            Command::Finish { job }
        };
        a.apply(0, &end).expect("runs");
    }
    let known: Vec<u64> = a.jobs().map(|(job, _)| job.0).collect();
    assert_eq!(known, [1, 5, 6]);
}

#[test]
fn a_damaged_snapshot_is_refused() {
    let mut a = first("fat-tree:4");
    a.apply(0, &request(3, 0)).expect("fits");
    let good = serde_json::to_value(a.snapshot()).expect("plain data");
    let damage = |path: &str, value: serde_json::Value| {
        let mut bad = good.clone();
        *bad.pointer_mut(path).unwrap_or_else(|| panic!("{path} is there")) = value;
        let bad: Snapshot = serde_json::from_value(bad).expect("of the right shape");
        Allocator::restore(Arc::clone(&a.topology), a.config, &bad).err()
    };
    assert!(damage("/jobs/1/hosts", [99, 100].into()).is_some());
    assert!(damage("/jobs/1/hosts", [1, 0].into()).is_some());
    assert!(damage("/jobs/1/state", "queued".into()).is_some());
    assert!(damage("/jobs/1/tree/root", 77.into()).is_some());
    assert!(damage("/next", 1.into()).is_some());
    assert!(damage("/holds/1/phase", "fencing".into()).is_some());
    assert!(damage("/forest/drained", [400].into()).is_some());
    assert!(damage("/next", u64::MAX.into()).is_some());
    assert!(damage("/ended", [1, 1].into()).is_some());
    assert!(damage("/jobs/1/hosts", [0, 1].into()).is_some());
    assert!(damage("/jobs/1/request/units", 9.into()).is_some());
    assert!(damage("/jobs/1/request/name", "".into()).is_some());
    assert!(damage("/next", 2.into()).is_none());
}
