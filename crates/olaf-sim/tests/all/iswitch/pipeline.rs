//! Asynchronous training (iSwitch §4.1, Algorithm 1) around the switch: LGC and LWU overlap, a fast worker sends
//! several vectors for one sum, and the weights of all workers are equal at each iteration, bit for bit.

use super::job::*;
use core::time::Duration;
use olaf_engine::switch::iswitch::Switch;
use olaf_host::collective::iswitch::pipeline::Pipeline;
use olaf_host::collective::{
    Collective, Commit, Failure, IswitchWorker, Label, Operation, OperationId, Reduction,
};
use olaf_sim::Wire;
use olaf_wire::reduce::{LaneType, Reason};
use std::collections::{BTreeMap, VecDeque};

/// Sums that are open ahead, so that a result never comes before its sum has begun.
const AHEAD: usize = 2;
const TICK: Duration = Duration::from_micros(100);
const MS: Duration = Duration::from_millis(1);

/// What the workers train.
#[derive(Clone, Copy, Debug)]
struct Plan {
    lanes: usize,
    iterations: u64,
    bound: u64,
}

/// The two threads of a worker.
struct Trainer {
    pipeline: Pipeline,
    /// Sums that are open, in order.
    open: VecDeque<OperationId>,
    /// Iteration of the next sum to begin.
    next: u64,
    computing: Duration,
    /// The gradient under way: when it is done, t_w, and its floats.
    gradient: Option<(Duration, u64, Vec<u8>)>,
    /// Gradients begun, which makes each of them another one.
    begun: u32,
    failed: Option<Failure>,
    /// Time of a weight update, and when the last one is done.
    updating: Duration,
    busy_until: Duration,
    /// When each iteration began.
    reached: Vec<Duration>,
}

impl Trainer {
    fn new(plan: Plan, weights: Vec<f32>, iteration: u64, computing: Duration) -> Self {
        assert_eq!(weights.len(), plan.lanes);
        let left = plan.iterations - iteration;
        Self {
            pipeline: Pipeline::new(weights, 0.05, left, plan.bound),
            open: VecDeque::new(),
            next: 0,
            computing,
            gradient: None,
            begun: 0,
            failed: None,
            updating: Duration::ZERO,
            busy_until: Duration::ZERO,
            reached: Vec::new(),
        }
    }
}

/// A gradient towards 0 whose sum depends on the order of its terms.
fn gradient(end: u32, number: u32, weights: &[f32]) -> Vec<u8> {
    let noise = |at: usize| (at as f32 * 0.7 + (end * 31 + number) as f32).sin() * 0.01;
    let lanes = weights.iter().enumerate().map(|(at, weight)| 2.0 * weight + noise(at));
    lanes.flat_map(f32::to_le_bytes).collect()
}

fn bits(weights: &[f32]) -> Vec<u32> {
    weights.iter().map(|weight| weight.to_bits()).collect()
}

struct Training {
    job: Job,
    plan: Plan,
    trainers: BTreeMap<u32, Trainer>,
    /// The weights of each iteration, as the first worker to reach it has them.
    history: Vec<Vec<u32>>,
    time: Duration,
}

impl Training {
    /// `computing`: time of a gradient, by worker.
    fn new(setting: Setting, plan: Plan, computing: &[Duration]) -> Self {
        let mut job = Job::new(Setting { workers: computing.len() as u32, ..setting });
        job.run_for(200 * MS);
        let first: Vec<f32> = (0..plan.lanes).map(|at| (at as f32 * 0.3).cos()).collect();
        let trainer = |time: &Duration| Trainer::new(plan, first.clone(), 0, *time);
        let trainers = (0..).zip(computing.iter().map(trainer)).collect();
        Self { job, plan, trainers, history: vec![bits(&first)], time: Duration::ZERO }
    }

    fn step(&mut self) {
        self.job.run_for(TICK);
        self.time += TICK;
        let ends: Vec<u32> = self.trainers.keys().copied().collect();
        for end in ends {
            self.update_weights(end);
            self.compute(end);
        }
    }

    /// LWU.
    fn update_weights(&mut self, end: u32) {
        let base = self.plan.iterations;
        let trainer = self.trainers.get_mut(&end).expect("it trains");
        while trainer.busy_until <= self.time
            && let Some(id) = trainer.open.front()
        {
            let Some(ended) = self.job.ended.get(&peer(end)).and_then(|all| all.get(id)) else {
                break;
            };
            trainer.open.pop_front();
            match ended.outcome {
                Ok(sum) => {
                    assert!(sum.contributors > 0 && sum.contributors <= sum.expected);
                    // It is the mean already.
                    trainer.pipeline.take_sum(&ended.lanes, 1).expect("a good sum");
                    trainer.reached.push(self.time);
                    trainer.busy_until = self.time + trainer.updating;
                    let iteration = base - trainer.pipeline.left();
                    let weights = bits(trainer.pipeline.weights());
                    match self.history.get(iteration as usize) {
                        Some(known) => assert!(*known == weights, "{end}, iteration {iteration}"),
                        None => self.history.push(weights),
                    }
                }
                Err(failure) => trainer.failed = trainer.failed.or(Some(failure)),
            }
        }
        let is_more = |trainer: &Trainer| {
            trainer.failed.is_none()
                && trainer.open.len() < AHEAD
                && (trainer.open.len() as u64) < trainer.pipeline.left()
        };
        while is_more(trainer) {
            let operation = Operation {
                lane_type: LaneType::F32,
                reduction: Reduction::Pipelined { iteration: trainer.next },
                buffer: Box::new(vec![0u8; 4 * self.plan.lanes]),
                accepts_partial: false,
                label: Label::default(),
            };
            let begun = self.job.with(end, |worker, now| worker.begin(now, operation));
            trainer.open.push_back(begun.map_err(|(failure, _)| failure).expect("it begins"));
            trainer.next += 1;
        }
    }

    /// LGC.
    fn compute(&mut self, end: u32) {
        let trainer = self.trainers.get_mut(&end).expect("it trains");
        if trainer.failed.is_some() {
            return;
        }
        if let Some((_, began, floats)) = trainer.gradient.take_if(|(at, ..)| *at <= self.time) {
            let bound = self.plan.bound;
            let sums = trainer.pipeline.iteration();
            let commit = self
                .job
                .with(end, |worker, now| worker.contribute(now, began, bound, Box::new(floats)));
            match commit.expect("the vector fits") {
                Commit::Send { staleness } => assert!(staleness <= bound),
                // The end may know of more sums than its program.
                Commit::Stale { staleness } => assert!(staleness > bound && sums >= began),
                Commit::Surplus | Commit::NoSum => {}
            }
        }
        if trainer.gradient.is_none()
            && let Some((began, weights)) = trainer.pipeline.begin_gradient()
        {
            trainer.begun += 1;
            let floats = gradient(end, trainer.begun, weights);
            trainer.gradient = Some((self.time + trainer.computing, began, floats));
        }
    }

    fn is_over(&self) -> bool {
        self.trainers.values().all(|trainer| trainer.pipeline.is_finished())
    }

    #[track_caller]
    fn run(&mut self, at_most: Duration) {
        let until = self.time + at_most;
        while !self.is_over() {
            assert!(self.time < until, "{:?}\n{}", self.iterations(), self.job.state());
            self.step();
        }
        self.job.accounts();
    }

    fn iterations(&self) -> Vec<u64> {
        let trainers = self.trainers.values();
        trainers.map(|of| self.plan.iterations - of.pipeline.left()).collect()
    }

    /// Vectors sent and stale ones, by worker.
    fn vectors(&self) -> Vec<(u64, u64)> {
        let now = self.job.net.now();
        let ends = (0..self.job.setting.workers).map(|end| {
            let of = self.job.net.node::<IswitchWorker>(peer(end)).expect("it lives");
            let of = of.statistics(now).vectors;
            assert_eq!(of.committed, of.sent + of.stale + of.surplus + of.without_sum);
            (of.sent, of.stale)
        });
        ends.collect()
    }
}

fn times(millis: &[u32]) -> Vec<Duration> {
    millis.iter().map(|each| MS * *each).collect()
}

const PLAN: Plan = Plan { lanes: 1500, iterations: 60, bound: 3 };

#[test]
fn workers_of_one_speed_each_send_a_vector_for_each_sum() {
    let mut training = Training::new(Setting::default(), PLAN, &times(&[5, 5, 5]));
    training.run(2000 * MS);
    let vectors = training.vectors();
    assert!(
        vectors.iter().all(|(sent, stale)| (60..70).contains(sent) && *stale == 0),
        "{vectors:?}"
    );
    let last = f32::from_bits(training.history[60][0]);
    assert!(last.abs() < 0.1, "the weights go towards 0: {last}");
}

#[test]
fn a_slow_worker_holds_nobody_up() {
    // With one vector of a worker in each sum, 60 iterations would take 60 x 200 ms.
    let mut training = Training::new(Setting::default(), PLAN, &times(&[5, 5, 200]));
    training.run(1500 * MS);
    let vectors = training.vectors();
    assert!(vectors[0].0 > 80 && vectors[1].0 > 80, "two make up for the third: {vectors:?}");
    assert!(vectors[2].1 >= 2, "its gradients are older than S: {vectors:?}");
    // The slow worker has the same weights all the same, at nearly the same time.
    let reached = |end: u32| *training.trainers[&end].reached.last().expect("60 iterations");
    assert!(reached(2) < reached(0) + 25 * MS, "{:?}, {:?}", reached(0), reached(2));
}

#[test]
fn one_worker_alone_goes_on_while_the_others_compute() {
    let plan = Plan { iterations: 20, ..PLAN };
    let mut training = Training::new(Setting::default(), plan, &times(&[2, 5000, 5000]));
    training.run(1000 * MS);
    let vectors = training.vectors();
    assert_eq!(vectors[0].0, 60, "H = 3 vectors for each of 20 sums");
}

#[test]
fn the_bound_decides_whose_vectors_count() {
    let sent = |bound| {
        let mut training =
            Training::new(Setting::default(), Plan { bound, ..PLAN }, &times(&[5, 5, 27]));
        training.run(2000 * MS);
        training.vectors()[2]
    };
    let (none, some, all) = (sent(0), sent(3), sent(1000));
    assert_eq!(none.0, 0, "{none:?}");
    assert!(some.0 > 0 && all.1 == 0 && all.0 >= some.0, "{some:?}, {all:?}");
}

#[test]
fn weights_are_equal_at_each_iteration_whatever_the_network_does() {
    for (seed, share) in [(1, 0.01), (2, 0.1), (3, 0.1)] {
        for (millis, leaves) in [
            (vec![3, 4, 40, 7], vec![]),
            (vec![3, 4, 40, 7], vec![Some(0), Some(1), Some(0), Some(1)]),
            (vec![1, 60], vec![]),
        ] {
            let wire = Wire {
                loss: share,
                duplication: share,
                reordering: share,
                late: MS,
                delay: Duration::from_micros(200),
                jitter: Duration::from_micros(50),
                ..Wire::default()
            };
            // 33 packets, more than the window and the slots take at once.
            let plan = Plan { lanes: 12_000, iterations: 30, bound: 3 };
            let switch = olaf_engine::switch::iswitch::Config { slots: 16, ..Default::default() };
            let setting = Setting { seed, wire, leaves, switch, ..Setting::default() };
            let mut training = Training::new(setting, plan, &times(&millis));
            training.run(60_000 * MS);
            assert_eq!(training.history.len(), 31);
        }
    }
}

#[test]
fn a_lost_later_vector_comes_again() {
    // One worker fills the sums alone: nobody else's packets complete them, and no Help names its later vectors.
    let wire = Wire { loss: 0.2, delay: Duration::from_micros(200), ..Wire::default() };
    let plan = Plan { lanes: 400, iterations: 40, bound: 3 };
    let mut training =
        Training::new(Setting { wire, ..Setting::default() }, plan, &times(&[2, 100_000]));
    training.run(20_000 * MS);
    assert_eq!(training.vectors()[0].0, 80);
}

/// Waits until the job's failure is known to all that live, and returns it with their iterations.
fn failures(training: &mut Training) -> Vec<(Failure, u64)> {
    for _ in 0..60_000 {
        if training.trainers.values().all(|trainer| trainer.failed.is_some()) {
            break;
        }
        training.step();
    }
    let iterations = training.iterations();
    let failed = training.trainers.values().map(|trainer| trainer.failed.expect("it failed"));
    failed.zip(iterations).collect()
}

#[test]
fn training_goes_on_after_a_death_from_the_same_iteration() {
    for seed in 0..6 {
        let wire = Wire { loss: 0.02, ..Setting::default().wire };
        // Survivors make up for the dead worker, until its silence blocks the table.
        let plan = Plan { iterations: 10_000, ..PLAN };
        let setting = Setting { seed, wire, ..Setting::default() };
        let mut training = Training::new(setting, plan, &times(&[4, 5, 9]));
        let victim = (seed % 3) as u32;
        for _ in 0..(900 + seed * 7) {
            training.step();
        }
        training.job.net.kill_at(training.job.net.now(), peer(victim));
        training.trainers.remove(&victim);
        let failed = failures(&mut training);
        let dead = Failure::Closed { reason: Reason::Dead, culprit: Some(victim) };
        assert!(failed.iter().all(|(failure, _)| *failure == dead), "{failed:?}");
        assert_eq!(failed[0].1, failed[1].1, "all survivors hold the same sums: {failed:?}");
        let iteration = failed[0].1;
        assert!(iteration > 25 && iteration < 10_000, "{iteration}");
        let survivor = training.trainers.values().next().expect("two survive");
        let weights = survivor.pipeline.weights().to_vec();
        assert_eq!(bits(&weights), training.history[iteration as usize]);

        // The worker comes back; its program takes weights and iteration from a survivor.
        training.job.net.start_at(training.job.net.now(), peer(victim));
        training.job.ended.remove(&peer(victim));
        training.plan.iterations = iteration + 30;
        let plan = training.plan;
        for (end, millis) in [(0, 4), (1, 5), (2, 9)] {
            let trainer = Trainer::new(plan, weights.clone(), iteration, MS * millis);
            training.trainers.insert(end, trainer);
        }
        training.job.run_for(500 * MS);
        training.run(3000 * MS);
        assert_eq!(training.history.len() as u64, iteration + 31, "seed {seed}");
    }
}

#[test]
fn a_worker_that_updates_slowly_gets_the_sums_that_it_has_not_begun() {
    // Worker 0 fills the sums alone, and leaves as soon as it has the last one. Worker 1 is far behind.
    let wire = Wire { loss: 0.05, ..Setting::default().wire };
    let plan = Plan { iterations: 20, ..PLAN };
    let setting = Setting { wire, ..Setting::default() };
    let mut training = Training::new(setting, plan, &times(&[2, 10_000]));
    training.trainers.get_mut(&1).expect("it trains").updating = 30 * MS;
    while !training.trainers[&0].pipeline.is_finished() {
        training.step();
    }
    assert!(training.trainers[&1].pipeline.iteration() + 3 < 20, "it is not behind");
    training.job.with(0, |worker, now| worker.leave(now));
    training.trainers.remove(&0);
    training.run(3000 * MS);
    assert_eq!(training.trainers[&1].failed, None);
}

#[test]
fn a_death_ends_training_after_the_same_iteration_however_far_a_worker_is_behind() {
    for seed in 0..4 {
        let plan = Plan { iterations: 10_000, ..PLAN };
        let mut training =
            Training::new(Setting { seed, ..Setting::default() }, plan, &times(&[2, 2, 2]));
        training.trainers.get_mut(&1).expect("it trains").updating = 15 * MS;
        for _ in 0..(600 + 13 * seed) {
            training.step();
        }
        training.job.net.kill_at(training.job.net.now(), peer(2));
        training.trainers.remove(&2);
        let failed = failures(&mut training);
        assert_eq!(failed[0], failed[1], "seed {seed}");
    }
}

#[test]
fn training_goes_on_after_a_restart_of_the_switch() {
    let plan = Plan { iterations: 60, ..PLAN };
    let mut training = Training::new(Setting::default(), plan, &times(&[4, 5, 30]));
    for _ in 0..700 {
        training.step();
    }
    training.job.net.kill_at(training.job.net.now(), SWITCH);
    training.job.net.start_at(training.job.net.now() + 20 * MS, SWITCH);
    let failed = failures(&mut training);
    // A switch that has forgotten the job does not know which results exist: workers may be one sum apart.
    let most = failed.iter().map(|(_, iteration)| *iteration).max().expect("three workers");
    let furthest =
        training.trainers.values().find(|of| plan.iterations - of.pipeline.left() == most);
    let weights = furthest.expect("one is the furthest").pipeline.weights().to_vec();
    for (end, millis) in [(0, 4), (1, 5), (2, 30)] {
        let trainer = Trainer::new(plan, weights.clone(), most, MS * millis);
        training.trainers.insert(end, trainer);
    }
    training.job.run_for(1000 * MS);
    training.run(5000 * MS);
    assert_eq!(training.history.len(), 61);
}

#[test]
fn the_switch_counts_every_vector() {
    let mut training = Training::new(Setting::default(), PLAN, &times(&[5, 5, 200]));
    training.run(1500 * MS);
    training.job.run_for(100 * MS);
    let sent: u64 = training.vectors().iter().map(|(sent, _)| sent).sum();
    let now = training.job.net.now();
    let switch = training.job.net.node::<Switch>(SWITCH).expect("it lives");
    let pieces = switch.statistics(now).pieces;
    // Five packets each, and 3 vectors in each of 60 sums.
    assert_eq!(pieces.summed, 5 * 3 * 60);
    assert_eq!(pieces.received, pieces.summed + pieces.late + pieces.repeated + pieces.held);
    assert!(pieces.received >= 5 * sent, "{pieces:?}, {sent} vectors");
}
