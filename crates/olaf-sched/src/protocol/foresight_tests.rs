//! The machines of the protocol on a network with a delay, against the simulator without one.

use super::foresight::{Foresight, Sharer};
use super::{
    Body, Controller, Event, Grant, Host, HostTiming, Needs, NotNow, Packet, Party, Policy,
    Progress, Timing,
};
use crate::sharing::group::{self, Ran, Until, simulate};
use crate::sharing::{self, Policy as Rule};
use crate::{AllReduceSpeed, JobId, Operation, Pattern, Steps};
use std::collections::BTreeMap;

const NETWORK: AllReduceSpeed =
    AllReduceSpeed { bytes_per_second: 1_000_000_000, speedup_millis: 2000, latency_ns: 50_000 };
const MS: u64 = 1_000_000;

fn steps(compute_ms: u64, operations: &[(u64, u64)]) -> Steps {
    let operation =
        |&(start_ms, mb): &(u64, u64)| Operation { start_ns: start_ms * MS, bytes: mb * 1_000_000 };
    let operations = operations.iter().map(operation).collect();
    let pattern = Pattern { name: "p".into(), compute_ns: compute_ms * MS, operations };
    Steps::new(&pattern.check().expect("a pattern"), &NETWORK, 2)
}

/// Two jobs that want the switches for a part of each step.
fn pair() -> [Steps; 2] {
    [
        steps(200, &[(20, 10), (60, 20), (100, 30), (150, 60)]),
        steps(130, &[(10, 10), (40, 10), (80, 30), (110, 40)]),
    ]
}

/// A job of two hosts that plays its steps.
struct Player {
    steps: Steps,
    left: u64,
    hosts: Vec<Host>,
    step_begin: u64,
    operation: usize,
    /// When the next thing is due: an operation's start or end, or the end of a step.
    at: u64,
    runs: bool,
    ended: Option<u64>,
    in_network: u64,
}

impl Player {
    fn new(job: u64, steps: Steps, count: u64) -> Self {
        let host = |rank| Host::new(JobId(job), rank, 2, HostTiming::default());
        let at = steps.start_ns[0];
        let hosts = vec![host(0), host(1)];
        let (step_begin, operation, runs, ended, in_network) = (0, 0, false, None, 0);
        Self { steps, left: count, hosts, step_begin, operation, at, runs, ended, in_network }
    }

    fn work(&mut self, now: u64) {
        while self.ended.is_none() && self.at <= now {
            if self.runs {
                for host in &mut self.hosts {
                    let running = host.running().expect("all of them launched it");
                    host.done(running.index);
                }
                self.runs = false;
                self.operation += 1;
            } else if self.operation < self.steps.len() {
                for host in &mut self.hosts {
                    match host.launch() {
                        Ok(_) | Err(NotNow::Runs(_)) => {}
                        Err(NotNow::Locked) => return, // looks again with the next packet
                        Err(error) => panic!("{error}"),
                    }
                }
                let modes: Vec<bool> =
                    self.hosts.iter().map(|h| h.running().expect("launched").in_network).collect();
                assert_eq!(modes[0], modes[1], "one mode an all-reduce");
                for host in &mut self.hosts {
                    host.began(now - self.step_begin);
                }
                let of = if modes[0] { &self.steps.with_ns } else { &self.steps.without_ns };
                self.in_network += u64::from(modes[0]);
                (self.at, self.runs) = (now + of[self.operation], true);
                continue;
            } else {
                (self.step_begin, self.operation) = (self.at, 0);
                self.left -= 1;
                if self.left == 0 {
                    self.ended = Some(self.at);
                    self.hosts.iter_mut().for_each(|host| host.leave(now));
                    return;
                }
            }
            let after = match self.steps.start_ns.get(self.operation) {
                Some(start) => self.step_begin + start,
                None => self.step_begin + self.steps.compute_ns,
            };
            self.at = self.at.max(after);
        }
    }
}

/// Plays `count` steps of each job over a network with this delay. Job by job, when it ended, and
/// how many of its operations used the switches.
fn live(rule: Rule, ahead_ns: u64, delay_ns: u64, jobs: &[Steps], count: u64) -> Vec<(u64, u64)> {
    let capacity = BTreeMap::from([(0, 1)]);
    let mut policy = Foresight::new(rule, ahead_ns, capacity.clone());
    for (job, steps) in (1..).zip(jobs) {
        let (steps, resources) = (steps.clone(), vec![0]);
        policy.add(JobId(job), Sharer { steps, hosts: 2, count, resources, units: 1 });
    }
    let mut controller = Controller::new(1, 7, Timing::default(), capacity, policy);
    let mut players: Vec<Player> =
        (1..).zip(jobs).map(|(job, steps)| Player::new(job, steps.clone(), count)).collect();
    for job in 1..=jobs.len() as u64 {
        let needs = Needs { hosts: 2, resources: vec![0], units: 1 };
        controller.submit(0, JobId(job), needs).expect("it fits");
    }
    let mut flying: BTreeMap<(u64, u64), Packet> = BTreeMap::new();
    let (mut now, mut sent) = (0, 0);
    while players.iter().any(|player| player.ended.is_none()) {
        while let Some(entry) = flying.first_entry().filter(|entry| entry.key().0 <= now) {
            let packet = entry.remove();
            match packet.to {
                Party::Controller => controller.handle_packet(now, &packet),
                Party::Host(rank) => players[packet.job.0 as usize - 1].hosts[usize::from(rank)]
                    .handle_packet(now, &packet),
            }
        }
        controller.handle_timeout(now);
        let mut next = controller.poll_timeout();
        let mut due = |at: u64| next = Some(next.map_or(at, |next: u64| next.min(at)));
        for player in &mut players {
            player.hosts.iter_mut().for_each(|host| host.handle_timeout(now));
            player.work(now);
            player.hosts.iter().filter_map(Host::poll_timeout).for_each(&mut due);
            if player.at > now && player.ended.is_none() {
                due(player.at);
            }
        }
        let hosts = players.iter_mut().flat_map(|player| &mut player.hosts);
        let said = hosts.flat_map(|host| std::iter::from_fn(|| host.poll_transmit()));
        let said: Vec<Packet> =
            said.chain(std::iter::from_fn(|| controller.poll_transmit())).collect();
        for packet in said {
            sent += 1;
            flying.insert((now + delay_ns, sent), packet);
        }
        while let Some(event) = controller.poll_event() {
            assert!(!matches!(event, Event::Fence(..)), "{event:?}: nobody died");
        }
        if let Some(((at, _), _)) = flying.first_key_value() {
            due(*at);
        }
        now = next.expect("somebody has something to do").max(now + u64::from(delay_ns > 0));
    }
    players.iter().map(|player| (player.ended.expect("all have"), player.in_network)).collect()
}

fn score(jobs: &[Steps], count: u64, ended: &[(u64, u64)]) -> f64 {
    let ran: Vec<Ran> =
        ended.iter().map(|(ns, _)| Ran { steps: count, ns: *ns, ..Ran::default() }).collect();
    let jobs: Vec<_> = jobs.iter().map(|steps| (steps, 2)).collect();
    group::score(&jobs, &ran, false).expect("they gain something")
}

fn predicted(rule: Rule, jobs: &[Steps], count: u64) -> f64 {
    let jobs: Vec<_> = jobs.iter().map(|steps| (steps, 2)).collect();
    group::score(&jobs, &simulate(rule, &jobs, Until::Steps(count)), false).expect("they gain")
}

#[test]
fn over_a_network_it_comes_near_the_simulator() {
    let jobs = pair();
    for rule in [Rule::Plan, Rule::Mina, Rule::Greedy] {
        let predicted = predicted(rule, &jobs, 40);
        let live = score(&jobs, 40, &live(rule, MS, 50_000, &jobs, 40));
        assert!((live - predicted).abs() < 0.05, "{rule:?}: live {live}, simulated {predicted}");
        assert!(predicted > 0.6, "{rule:?}: {predicted}");
    }
}

#[test]
fn a_policy_without_switches_gives_no_grant() {
    let ended = live(sharing::Policy::None, MS, 50_000, &pair(), 3);
    assert!(ended.iter().all(|(_, in_network)| *in_network == 0));
}

#[test]
fn a_job_alone_has_the_switches_from_its_second_step_on() {
    let alone = [steps(100, &[(50, 80)])];
    let (_, used) = live(Rule::Plan, 5 * MS, MS, &alone, 20)[0];
    assert!(used >= 18, "{used} of 20");
}

#[test]
fn a_grant_is_asked_for_so_long_ahead() {
    for ahead_ns in [0, 100_000, 3 * MS] {
        let mut policy = Foresight::new(Rule::Plan, ahead_ns, BTreeMap::from([(0, 1)]));
        let steps = steps(100, &[(50, 80)]);
        policy.add(JobId(1), Sharer { steps, hosts: 2, count: 9, resources: vec![0], units: 1 });
        let free = [JobId(1)];
        assert_eq!((policy.turn(0, &free), policy.poll_timeout()), (None, None), "never heard of");
        // Its first operation begins at 50 ms and ends at 130 (and the latency), as does its step.
        let progress = Progress { next: 1, in_network: false, step_age_ns: 50 * MS };
        policy.progress(50 * MS, JobId(1), progress);
        let start = 180 * MS + NETWORK.latency_ns;
        let mut now = 50 * MS;
        while policy.turn(now, &free).is_none() {
            now = policy.poll_timeout().expect("it will want them").max(now + 1);
            assert!(now <= start - ahead_ns, "{now} is too late");
        }
        assert_eq!(now, start - ahead_ns);
        assert_eq!(policy.grant(now, JobId(1), 1), Some(Grant { from: 1, to: 2 }));
        policy.nobody();
        assert_eq!(policy.poll_timeout(), None);
    }
}

#[test]
fn what_hosts_say_may_be_anything() {
    let mut policy = Foresight::new(Rule::Plan, MS, BTreeMap::from([(0, 1)]));
    for (job, steps) in (1..).zip(pair()) {
        let sharer = Sharer { steps, hosts: 2, count: 3, resources: vec![0], units: 1 };
        policy.add(JobId(job), sharer);
    }
    let numbers = [0, 1, 2, 4, 5, 8, 1 << 40, u64::MAX - 1, u64::MAX];
    for now in [0, 1, 10 * MS, 1 << 60] {
        for next in numbers {
            for step_age_ns in numbers {
                let progress = Progress { next, in_network: next % 2 == 0, step_age_ns };
                let job = JobId(1 + step_age_ns % 2);
                policy.progress(now, job, progress);
                policy.observe(now, job, next);
                policy.turn(now, &[JobId(1), JobId(2)]);
                policy.grant(now, job, next);
                policy.free(now, job);
            }
        }
    }
}

#[test]
fn an_operation_that_the_job_does_not_have_is_not_believed() {
    let believed = |next| {
        let mut policy = Foresight::new(Rule::Plan, MS, BTreeMap::from([(0, 1)]));
        let steps = steps(100, &[(20, 10), (50, 80)]);
        policy.add(JobId(1), Sharer { steps, hosts: 2, count: 9, resources: vec![0], units: 1 });
        let before = policy.clone();
        policy.progress(MS, JobId(1), Progress { next, in_network: false, step_age_ns: MS });
        policy != before
    };
    // Nine steps of two operations.
    assert_eq!([1, 17, 18].map(believed), [true; 3]);
    assert_eq!([0, 19, 1 << 40, u64::MAX].map(believed), [false; 4]);
    // What is true still counts after it.
    let mut policy = Foresight::new(Rule::Plan, MS, BTreeMap::from([(0, 1)]));
    let steps = steps(100, &[(50, 80)]);
    policy.add(JobId(1), Sharer { steps, hosts: 2, count: 9, resources: vec![0], units: 1 });
    policy.progress(0, JobId(1), Progress { next: u64::MAX, in_network: true, step_age_ns: 0 });
    policy.grant(0, JobId(1), u64::MAX);
    let progress = Progress { next: 1, in_network: false, step_age_ns: 50 * MS };
    policy.progress(50 * MS, JobId(1), progress);
    policy.turn(50 * MS, &[JobId(1)]);
    assert!(policy.poll_timeout().is_some(), "it waits for the second step");
}

#[test]
fn a_host_tells_of_what_runs_and_the_earliest_counts() {
    let mut host = Host::new(JobId(1), 1, 2, HostTiming::default());
    host.began(5);
    assert_eq!(host.poll_transmit(), None);
    host.launch().expect("nothing is in its way");
    host.began(5);
    let progress = Progress { next: 1, in_network: false, step_age_ns: 5 };
    assert_eq!(host.poll_transmit().map(|packet| packet.body), Some(Body::Progress(progress)));
    // The other host's step began 9 ms earlier: it is the first that starts the next operation.
    let mut policy = Foresight::new(Rule::Plan, 0, BTreeMap::from([(0, 1)]));
    let steps = steps(100, &[(50, 80)]);
    policy.add(JobId(1), Sharer { steps, hosts: 2, count: 9, resources: vec![0], units: 1 });
    let mut now = 60 * MS;
    for age_ms in [50, 59, 55] {
        let progress = Progress { next: 1, in_network: false, step_age_ns: age_ms * MS };
        policy.progress(now, JobId(1), progress);
    }
    while policy.turn(now, &[JobId(1)]).is_none() {
        now = policy.poll_timeout().expect("it will want them").max(now + 1);
    }
    // Its first operation ends at 140.05 ms by all hosts, and the step with it.
    assert_eq!(now, 190 * MS + NETWORK.latency_ns);
}
