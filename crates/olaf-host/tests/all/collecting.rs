//! A server that collects before it applies, and single datagrams that it should not have to trust:
//! none of them spoils what others sent, closes a round for somebody else, or outlives its refusal.

use olaf_engine::party::Limits;
use olaf_engine::{DropReason, Engine, Event, Instant, PeerId, PortId, Source, Verdict};
use olaf_host::push_pull::server::{Aggregate, RuleConfig, ServerGate, ServerStatistics, Step};
use olaf_host::{Refused, Server, ServerConfig};
use olaf_wire::{Address, Answer, JobId, Join, Kind, Packet, Update};
use std::time::Duration;

const JOB: JobId = JobId(1);
const DEADLINE: Duration = Duration::from_millis(100);
const ROUND: Aggregate = Aggregate::Round { deadline: DEADLINE };

fn address(worker: u32) -> Address {
    olaf_samples::address(JOB.0, 0, worker)
}

/// A worker's first update on version 1, as a healthy one would be.
fn update(worker: u32) -> Update {
    Update { reward: 1.0, ..olaf_samples::update(address(worker), 0) }
}

fn on(version: u32, update: Update) -> Update {
    Update { version_oldest: version, version_newest: version, ..update }
}

fn taken(verdict: Verdict) -> Result<(), Refused> {
    match verdict {
        Verdict::Absorb => Ok(()),
        Verdict::Drop(DropReason::End(refused)) => Err(refused),
        other => panic!("a server neither passes on nor screens: {other:?}"),
    }
}

/// A server, and workers that talk to it directly: peer `n` is worker `n`. Or one switch talks for all.
struct Served {
    now: Instant,
    server: Server,
    sent: u32,
    switch: Option<PeerId>,
}

impl Served {
    /// The learning rate is 1 and staleness does not count: the model is the sum of the means that
    /// changed it.
    fn new(aggregate: Aggregate, workers: u32, gate: ServerGate) -> Self {
        let rule =
            RuleConfig { step: Step::Mean, staleness_power: 0.0, gate, ..RuleConfig::default() };
        Self::with(rule, aggregate, workers)
    }

    /// The same behind a switch.
    fn behind_a_switch(aggregate: Aggregate, workers: u32) -> Self {
        let rule = RuleConfig { step: Step::Mean, staleness_power: 0.0, ..RuleConfig::default() };
        Self::over(Some(PeerId(70)), rule, aggregate, workers)
    }

    /// A model of one zero at version 1; `workers` workers, all of cluster 0.
    fn with(rule: RuleConfig, aggregate: Aggregate, workers: u32) -> Self {
        Self::over(None, rule, aggregate, workers)
    }

    fn over(switch: Option<PeerId>, rule: RuleConfig, aggregate: Aggregate, workers: u32) -> Self {
        // Without limits on what one contribution may do: huge numbers come as far as the sums.
        let limits = Limits::OFF;
        let config =
            ServerConfig { rule, limits, ..ServerConfig::default() }.aggregating(aggregate);
        let server = Server::new(config, 9).unwrap();
        let mut served = Self { now: Instant(1_000_000), server, sent: 0, switch };
        let mut buf = [0; 512];
        for worker in 0..workers {
            let join = olaf_samples::join(address(worker), 1, 1);
            let len = Join { hops: served.hops(), ..join }.emit(&mut buf);
            served.hears(worker, &buf[..len]).unwrap();
        }
        let len = olaf_samples::offer(address(0), 1).emit(&[0.0], &mut buf);
        served.hears(0, &buf[..len]).unwrap();
        served.models();
        served
    }

    fn push(&mut self, update: Update, lane: f32) -> Result<(), Refused> {
        let mut buf = [0; 512];
        let update = Update { hop_sequence: self.sent, hops: self.hops(), ..update };
        self.sent += 1;
        let len = update.emit(&[lane], &mut buf);
        self.hears(update.address.worker.0, &buf[..len])
    }

    fn hops(&self) -> u8 {
        self.switch.map_or(0, |_| 1)
    }

    fn hears(&mut self, worker: u32, bytes: &[u8]) -> Result<(), Refused> {
        let from = self.switch.unwrap_or(PeerId(worker));
        taken(self.server.handle_packet(self.now, Source::end(from), bytes))
    }

    /// Time passes beyond the deadline.
    fn wait(&mut self) {
        self.now = self.now + DEADLINE;
        self.server.handle_timeout(self.now);
    }

    fn model(&self) -> (u32, f32) {
        let (version, mut segments) = self.server.model(JOB).unwrap();
        (version, segments.next().unwrap()[0])
    }

    /// Whom a model was sent since the last look, and its version.
    fn models(&mut self) -> Vec<(u32, u32)> {
        let (mut buf, mut models) = ([0; 512], Vec::new());
        while let Some(transmit) = self.server.poll_transmit(self.now, PortId(0), &mut buf) {
            let packet = Packet::new_checked(&buf[..transmit.len]).unwrap();
            if packet.kind() == Kind::Model {
                models.push((
                    transmit.to.one().expect("one receiver").0,
                    Answer::parse(&packet).unwrap().model_version,
                ));
            }
        }
        models
    }

    /// Workers that rounds ended without.
    fn named(&mut self) -> Vec<u32> {
        let mut named = Vec::new();
        while let Some(event) = self.server.poll_event() {
            if let Event::RoundWithout(seen) = event {
                named.push(seen.worker.0);
            }
        }
        named
    }

    /// Its counts, which agree: what was received has a fate or waits.
    fn counts(&self) -> ServerStatistics {
        let counts = self.server.statistics(self.now);
        let (job, fates) = (&counts.jobs[0], &counts.jobs[0].fates);
        let rejected: u64 = fates.rejected.values().sum();
        let ended = fates.delivered_alone + fates.delivered_merged + fates.gated + rejected;
        assert_eq!(job.received, ended + fates.waiting);
        counts
    }

    fn rejected(&self, why: Refused) -> u64 {
        self.counts().jobs[0].fates.rejected.get(why.name()).copied().unwrap_or(0)
    }

    fn short(&self) -> u64 {
        self.counts().jobs[0].rounds_short
    }
}

#[test]
fn a_huge_reward_of_a_huge_weight_keeps_nothing_out_that_comes_later() {
    for gate in [ServerGate::Best, ServerGate::Recent] {
        let mut served = Served::new(ROUND, 1, gate);
        served.push(Update { weight: 1e200, reward: 1e200, ..update(0) }, 0.0).unwrap();
        assert_eq!(served.counts().jobs[0].fates.delivered_alone, 1, "its mean is finite");
        // Beyond what was best it may be: 1e200 is a number like any other, infinity is not.
        served.push(on(2, Update { reward: 2e200, ..update(0) }), 3.0).unwrap();
        assert_eq!(served.model(), (3, 3.0), "{gate:?}");
    }
}

#[test]
fn what_has_no_finite_sum_with_the_others_is_refused_and_spoils_them_not() {
    let bad = [
        (Update { ..update(1) }, f32::MAX),
        (Update { ..update(1) }, f32::INFINITY),
        (Update { weight: f64::MAX, ..update(1) }, 0.0),
        (Update { reward: f64::NAN, ..update(1) }, 0.0),
    ];
    for (bad, lane) in bad {
        let mut served = Served::new(ROUND, 3, ServerGate::None);
        // Half of each sum's room is taken: the arrival is what goes beyond it.
        let heavy = Update { weight: f64::MAX / 2.0, ..update(0) };
        let (first, first_lane) =
            if lane == f32::MAX { (update(0), f32::MAX / 2.0) } else { (heavy, 4.0) };
        served.push(first, first_lane).unwrap();
        assert_eq!(served.push(bad, lane), Err(Refused::NonFinite), "{bad:?}");
        assert_eq!(served.rejected(Refused::NonFinite), 1);
        served.push(update(2), -first_lane).unwrap();
        served.wait();
        // Its worker is missed, and the others' sum is what it would have been without it.
        assert_eq!((served.model(), served.named()), ((2, 0.0), vec![1]), "{bad:?}");
        assert_eq!(served.counts().jobs[0].fates.delivered_alone, 2);
        assert_eq!(served.rejected(Refused::NonFinite), 1);
    }
}

#[test]
fn whoever_pushes_twice_stands_for_nobody_else() {
    let mut served = Served::new(ROUND, 2, ServerGate::None);
    served.push(update(0), 2.0).unwrap();
    served.push(update(0), 4.0).unwrap();
    assert_eq!(served.model().0, 1, "worker 1 is waited for");
    served.wait();
    assert_eq!((served.model(), served.short()), ((2, 3.0), 1));
    assert_eq!(served.named(), [1]);
    served.push(on(2, update(0)), 1.0).unwrap();
    served.push(on(2, update(1)), 1.0).unwrap();
    assert_eq!((served.model(), served.short()), ((3, 4.0), 1));
}

#[test]
fn a_straggler_s_late_update_is_none_of_the_next_round_and_is_answered_with_the_model() {
    let mut served = Served::new(ROUND, 2, ServerGate::None);
    served.push(update(0), 2.0).unwrap();
    served.wait();
    assert_eq!(served.model(), (2, 2.0));
    assert_eq!(served.models(), [(0, 2), (1, 2)]);
    // Both models of the straggler were lost, say: its old update brings it another one.
    assert_eq!(served.push(update(1), 100.0), Err(Refused::Stale));
    assert_eq!(served.models(), [(1, 2)]);
    assert_eq!(served.rejected(Refused::Stale), 1);
    served.push(on(2, update(1)), 5.0).unwrap();
    assert_eq!(served.model().0, 2, "worker 0 is waited for");
    served.push(on(2, update(0)), 7.0).unwrap();
    assert_eq!((served.model(), served.short()), ((3, 8.0), 1));
}

#[test]
fn a_worker_alone_that_lost_its_model_is_not_left_behind() {
    let mut served = Served::new(ROUND, 1, ServerGate::None);
    served.push(update(0), 1.0).unwrap();
    assert_eq!(served.models(), [(0, 2)]);
    assert_eq!(served.push(update(0), 1.0), Err(Refused::Stale));
    assert_eq!(served.models(), [(0, 2)]);
    served.push(on(2, update(0)), 1.0).unwrap();
    assert_eq!(served.model(), (3, 2.0));
}

#[test]
fn merges_count_by_their_number_and_with_something_old_in_them_once() {
    let merge = |count| Update { contributors: count, weight: f64::from(count), ..update(0) };
    let mut served = Served::behind_a_switch(ROUND, 3);
    served.push(merge(2), 2.0).unwrap();
    // Worker 0 is known to be in that merge: it does not stand for another one again.
    served.push(update(0), 1.0).unwrap();
    assert_eq!(served.model().0, 1);
    served.push(update(2), 1.0).unwrap();
    assert_eq!((served.model(), served.short()), ((2, 1.0), 0));

    let mixed = Update { version_oldest: 1, version_newest: 2, ..merge(2) };
    served.push(mixed, 4.0).unwrap();
    served.push(on(2, update(2)), 1.0).unwrap();
    assert_eq!(served.model().0, 2, "one of the two in it is of the last round");
    served.push(on(2, update(1)), 1.0).unwrap();
    assert_eq!((served.model(), served.short()), ((3, 2.5), 0));
}

/// A worker's own merge of its steps stands for that worker, however large it says that the merge is.
#[test]
fn a_worker_ends_no_round_for_others() {
    let mut served = Served::new(ROUND, 3, ServerGate::None);
    for contributors in [1024, 3] {
        let merge = Update { contributors, weight: f64::from(contributors), ..update(0) };
        served.push(merge, 0.0).unwrap();
        assert_eq!(served.model().0, 1, "the others are waited for");
    }
    served.push(update(1), 1.0).unwrap();
    assert_eq!(served.model().0, 1, "worker 2 is waited for");
    served.push(update(2), 1.0).unwrap();
    assert_eq!((served.model().0, served.short()), (2, 0));
}

/// A claim of many contributions must not make the step of all longer.
#[test]
fn a_worker_that_claims_many_contributions_lengthens_no_step() {
    let moved = |contributors: u32| {
        let mut served = Served::with(RuleConfig::default(), ROUND, 3);
        // Its gradient is as long as the others' in each of the contributions.
        let merge = Update { contributors, weight: f64::from(contributors), ..update(0) };
        served.push(merge, contributors as f32).unwrap();
        served.push(update(1), 1.0).unwrap();
        served.push(update(2), 1.0).unwrap();
        assert_eq!(served.model().0, 2);
        served.model().1
    };
    let (honest, claimed) = (moved(1), moved(1024));
    assert!(claimed < 2.0 * honest, "{claimed} beside {honest}");
}

#[test]
fn a_worker_that_only_joins_slows_few_rounds() {
    let mut served = Served::new(ROUND, 3, ServerGate::None);
    for version in 1..=3 {
        served.push(on(version, update(0)), 1.0).unwrap();
        served.push(on(version, update(1)), 1.0).unwrap();
        assert_eq!(served.model().0, version, "worker 2 is waited for");
        served.wait();
        assert_eq!((served.model().0, served.named()), (version + 1, vec![2]));
    }
    let both = |served: &mut Served, version| {
        served.push(on(version, update(0)), 1.0).unwrap();
        served.push(on(version, update(1)), 1.0).unwrap();
    };
    for version in 4..20 {
        both(&mut served, version);
        assert_eq!(served.model().0, version + 1, "nobody waits for worker 2");
    }
    assert_eq!((served.short(), served.named()), (3, vec![]));
    // It was only slow: it is waited for again, also where its first update comes too late.
    assert_eq!(served.push(on(1, update(2)), 1.0), Err(Refused::Stale));
    both(&mut served, 20);
    assert_eq!(served.model().0, 20, "worker 2 is waited for");
    served.push(on(20, update(2)), 1.0).unwrap();
    assert_eq!(served.model().0, 21);
}

#[test]
fn who_left_after_contributing_stands_for_nobody_who_stayed() {
    let mut served = Served::new(ROUND, 3, ServerGate::None);
    served.push(update(0), 3.0).unwrap();
    let mut buf = [0; 512];
    let len = olaf_wire::Leave { address: address(0) }.emit(&mut buf);
    taken(served.server.handle_packet(served.now, Source::end(PeerId(0)), &buf[..len])).unwrap();
    served.push(update(1), 3.0).unwrap();
    assert_eq!(served.model().0, 1, "worker 2 is waited for");
    served.push(update(2), 3.0).unwrap();
    assert_eq!((served.model(), served.short()), ((2, 3.0), 0));
}

#[test]
fn periodic_aggregation_takes_old_contributions_in() {
    let aggregate = Aggregate::Periodic { contributions: Some(2), after: DEADLINE };
    let mut served = Served::new(aggregate, 2, ServerGate::None);
    for _ in 0..2 {
        served.push(update(0), 1.0).unwrap();
        served.push(update(1), 3.0).unwrap();
    }
    assert_eq!(served.model(), (3, 4.0));
    assert_eq!(served.rejected(Refused::Stale), 0);
}

#[test]
fn a_merge_counts_as_its_updates_up_to_the_number_of_workers() {
    let rule = RuleConfig { staleness_power: 0.5, ..RuleConfig::default() };
    let mut served = Served::with(rule, Aggregate::Each, 8);
    let merge = |count| Update { contributors: count, weight: f64::from(count), ..update(0) };
    let moves = |served: &mut Served, version, count: u32| {
        let before = served.model().1;
        served.push(on(version, merge(count)), count as f32).unwrap();
        served.model().1 - before
    };
    // The names of seven of the eight are not known; they count all the same.
    let eight = moves(&mut served, 1, 8);
    assert!((eight - 8.0 * 8f32.powf(-0.5)).abs() < 1e-5, "{eight}");
    // The updates of a worker that waits for nothing add up in a merge: no more steps than workers.
    let eighty = moves(&mut served, 2, 80);
    assert!((eighty - eight).abs() < 1e-5, "{eighty} against {eight}");
    let three = moves(&mut served, 3, 3);
    assert!((three - 3.0 * 3f32.powf(-0.5)).abs() < 1e-5, "{three}");
}
