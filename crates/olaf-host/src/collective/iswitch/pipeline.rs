//! Asynchronous training with in-switch aggregation (iSwitch §4.1, Algorithm 1): the two threads of a worker as
//! one state machine without threads.
//!
//! LGC computes gradients, LWU changes weights. The caller runs both, in one thread or in two with a lock, and
//! carries gradients and sums. Every worker begins with the same weights and takes the same sums in the same
//! order, so all workers have the same weights at each iteration, bit for bit.
//!
//! Example with S = 1:
//!
//! | step | outcome | why |
//! |---|---|---|
//! | `begin_gradient` | weights of iteration 0 | t_w = 0 |
//! | `take_sum`, twice | iteration 2 | two sums came while the gradient was computed |
//! | `commit` | `Stale { staleness: 2 }` | 2 - 0 is more than S |

use alloc::vec::Vec;

/// What becomes of a gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// Send it: it is at most S iterations old.
    Send {
        /// Iterations since its weights were copied.
        staleness: u64,
    },
    /// Throw it away, and compute another one.
    Stale {
        /// Iterations since its weights were copied.
        staleness: u64,
    },
    /// H vectors of this worker are on their way for the sum: they complete it alone. Wait for the sum.
    ///
    /// differs: LGC of Algorithm 1 would send on. Such a vector could only come too late for this sum.
    Surplus,
    /// No gradient is under way, or no sum is open for it.
    NoSum,
}

/// LGC lines 7-12: what becomes of a gradient for the sum of an iteration. `began` is the iteration of its weights,
/// `vectors` the number of this worker's vectors for the sum so far.
pub(super) const fn decide(
    iteration: u64,
    began: u64,
    bound: u64,
    vectors: u32,
    threshold: u32,
) -> Commit {
    let staleness = iteration.saturating_sub(began);
    if staleness > bound {
        Commit::Stale { staleness }
    } else if vectors >= threshold {
        Commit::Surplus
    } else {
        Commit::Send { staleness }
    }
}

/// Why a sum is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SumRefused {
    /// It has another number of lanes than the weights.
    WrongSize,
    /// It has no contributor.
    Empty,
    /// All T iterations are done.
    Finished,
}

/// A worker of asynchronous training.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// w_s of Algorithm 1.
    weights: Vec<f32>,
    /// t_s.
    iteration: u64,
    /// T.
    iterations: u64,
    /// S.
    staleness_bound: u64,
    learning_rate: f32,
    /// w_w and t_w, while a gradient is computed.
    copy: Option<(Vec<f32>, u64)>,
    /// Memory of the last copy.
    spare: Vec<f32>,
    sent: u64,
    stale: u64,
}

impl Pipeline {
    /// A worker with these first weights, which all workers must have alike; `iterations` weight updates in all;
    /// a gradient may be `staleness_bound` iterations old when it is sent (the paper measures with 3).
    #[must_use]
    pub const fn new(
        weights: Vec<f32>,
        learning_rate: f32,
        iterations: u64,
        staleness_bound: u64,
    ) -> Self {
        Self {
            weights,
            iteration: 0,
            iterations,
            staleness_bound,
            learning_rate,
            copy: None,
            spare: Vec::new(),
            sent: 0,
            stale: 0,
        }
    }

    /// LGC lines 2-4: copies the iteration and the weights, and returns this copy for the gradient. None when
    /// all iterations are done. A gradient that was under way is forgotten.
    pub fn begin_gradient(&mut self) -> Option<(u64, &[f32])> {
        if self.is_finished() {
            self.copy = None;
            return None;
        }
        let mut copy = match self.copy.take() {
            Some((weights, _)) => weights,
            None => core::mem::take(&mut self.spare),
        };
        copy.clear();
        copy.extend_from_slice(&self.weights);
        let (weights, iteration) = self.copy.insert((copy, self.iteration));
        Some((*iteration, weights))
    }

    /// LGC lines 7-12: the gradient is computed. Says whether to send it.
    pub fn commit(&mut self) -> Commit {
        let Some((weights, began)) = self.copy.take() else { return Commit::NoSum };
        self.spare = weights;
        let commit = decide(self.iteration, began, self.staleness_bound, 0, u32::MAX);
        match commit {
            Commit::Send { .. } => self.sent += 1,
            _ => self.stale += 1,
        }
        commit
    }

    /// LWU lines 3-4: a sum of the gradients of `contributors` workers came. The weights become
    /// `w - learning_rate * sum / contributors`.
    ///
    /// differs: Algorithm 1 divides by H. A sum that an FBcast forced has fewer than H vectors; the number of
    /// contributors is H for all others.
    ///
    /// differs: LWU of Algorithm 1 counts `t_s = 0 ... T`, LGC ends at `t_s = T`. Here both have T iterations.
    ///
    /// # Errors
    /// Why the sum is not taken; the weights are as they were.
    pub fn take_sum(&mut self, sum: &[f32], contributors: u32) -> Result<u64, SumRefused> {
        if self.is_finished() {
            return Err(SumRefused::Finished);
        }
        if sum.len() != self.weights.len() {
            return Err(SumRefused::WrongSize);
        }
        if contributors == 0 {
            return Err(SumRefused::Empty);
        }
        for (weight, sum) in self.weights.iter_mut().zip(sum) {
            *weight -= self.learning_rate * sum / contributors as f32;
        }
        self.iteration += 1;
        Ok(self.iteration)
    }

    /// w_s: the newest weights.
    #[must_use]
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// t_s: weight updates so far.
    #[must_use]
    pub const fn iteration(&self) -> u64 {
        self.iteration
    }

    /// Weight updates still to come.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.iterations - self.iteration
    }

    /// Returns true if all iterations are done.
    #[must_use]
    pub const fn is_finished(&self) -> bool {
        self.iteration >= self.iterations
    }

    /// Gradients that were to be sent, and gradients that were too old.
    #[must_use]
    pub const fn gradients(&self) -> (u64, u64) {
        (self.sent, self.stale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    fn pipeline(bound: u64) -> Pipeline {
        Pipeline::new(vec![1.0, 2.0], 0.5, 10, bound)
    }

    #[test]
    fn a_gradient_of_the_bound_is_sent_and_an_older_one_is_not() {
        let mut worker = pipeline(1);
        assert_eq!(worker.begin_gradient(), Some((0, &[1.0, 2.0][..])));
        assert_eq!(worker.take_sum(&[2.0, 4.0], 2), Ok(1));
        assert_eq!(worker.weights(), [0.5, 1.0]);
        assert_eq!(worker.commit(), Commit::Send { staleness: 1 });
        assert_eq!(worker.commit(), Commit::NoSum, "it is sent once");
        assert_eq!(worker.begin_gradient(), Some((1, &[0.5, 1.0][..])));
        worker.take_sum(&[0.0, 0.0], 1).expect("a good sum");
        worker.take_sum(&[0.0, 0.0], 1).expect("a good sum");
        assert_eq!(worker.commit(), Commit::Stale { staleness: 2 });
        assert_eq!(worker.gradients(), (1, 1));
    }

    #[test]
    fn a_gradient_is_computed_on_a_copy() {
        let mut worker = pipeline(3);
        worker.begin_gradient();
        worker.take_sum(&[1.0, 1.0], 1).expect("a good sum");
        let copied = worker.copy.as_ref().map(|(weights, began)| (weights.clone(), *began));
        assert_eq!(copied, Some((vec![1.0, 2.0], 0)));
    }

    #[test]
    fn a_bad_sum_changes_nothing() {
        let mut worker = pipeline(3);
        assert_eq!(worker.take_sum(&[1.0], 1), Err(SumRefused::WrongSize));
        assert_eq!(worker.take_sum(&[1.0, 1.0], 0), Err(SumRefused::Empty));
        assert_eq!((worker.weights(), worker.iteration()), (&[1.0, 2.0][..], 0));
    }

    #[test]
    fn training_ends_after_t_iterations() {
        let mut worker = pipeline(3);
        worker.begin_gradient();
        for _ in 0..10 {
            worker.take_sum(&[1.0, 1.0], 1).expect("a good sum");
        }
        assert!(worker.is_finished());
        assert_eq!(worker.take_sum(&[1.0, 1.0], 1), Err(SumRefused::Finished));
        assert_eq!(worker.begin_gradient(), None);
        assert_eq!(worker.commit(), Commit::NoSum);
    }

    /// The switch of Algorithm 1: any H vectors make a sum.
    struct Switch {
        h: u32,
        sum: Vec<f32>,
        count: u32,
    }

    impl Switch {
        fn take(&mut self, gradient: &[f32]) -> Option<Vec<f32>> {
            self.sum.iter_mut().zip(gradient).for_each(|(sum, lane)| *sum += lane);
            self.count += 1;
            (self.count == self.h).then(|| {
                self.count = 0;
                core::mem::replace(&mut self.sum, vec![0.0; gradient.len()])
            })
        }
    }

    /// Trains `weights -> 0` with workers that need so many ticks for a gradient. Sums arrive after as many ticks
    /// as `delays` says for the worker. Returns the workers; checks staleness and weights on the way.
    fn trains(
        computing: &[u32],
        delays: &[u32],
        h: u32,
        bound: u64,
        iterations: u64,
    ) -> Vec<Pipeline> {
        let first = vec![1.0, -3.0, 0.25];
        let new = || Pipeline::new(first.clone(), 0.1, iterations, bound);
        let mut workers: Vec<Pipeline> = computing.iter().map(|_| new()).collect();
        let mut busy: Vec<(u32, Vec<f32>)> = vec![(0, Vec::new()); computing.len()];
        let mut switch = Switch { h, sum: vec![0.0; first.len()], count: 0 };
        // What is on its way to each worker, and the weights of each iteration as the first worker to reach it has
        // them.
        let mut on_the_way: Vec<Vec<(u32, Vec<f32>)>> = vec![Vec::new(); computing.len()];
        let mut history = vec![first.clone()];
        for tick in 0..100_000u32 {
            if workers.iter().all(Pipeline::is_finished) {
                break;
            }
            for (at, worker) in workers.iter_mut().enumerate() {
                while on_the_way[at].first().is_some_and(|(due, _)| *due <= tick) {
                    let (_, sum) = on_the_way[at].remove(0);
                    let Ok(iteration) = worker.take_sum(&sum, h) else { continue };
                    if history.len() as u64 == iteration {
                        history.push(worker.weights().to_vec());
                    }
                    let bits = |weights: &[f32]| -> Vec<u32> {
                        weights.iter().map(|weight| weight.to_bits()).collect()
                    };
                    let known = &history[iteration as usize];
                    assert_eq!(bits(worker.weights()), bits(known), "iteration {iteration}");
                }
                let (until, gradient) = &mut busy[at];
                if *until > tick {
                    continue;
                }
                if let Commit::Send { staleness } = worker.commit() {
                    assert!(staleness <= bound);
                    if let Some(sum) = switch.take(gradient) {
                        for (to, delay) in on_the_way.iter_mut().zip(delays) {
                            to.push((tick + delay, sum.clone()));
                        }
                    }
                }
                if let Some((_, weights)) = worker.begin_gradient() {
                    *gradient = weights.iter().map(|weight| 2.0 * weight).collect();
                    *until = tick + computing[at];
                }
            }
        }
        workers
    }

    #[test]
    fn faster_workers_contribute_more_and_a_slow_one_holds_nobody_up() {
        let workers = trains(&[3, 3, 40], &[1, 1, 1], 2, 3, 60);
        let of: Vec<(u64, u64)> = workers.iter().map(Pipeline::gradients).collect();
        assert!(of[0].0 > 50 && of[1].0 > 50, "{of:?}");
        assert_eq!(of[2].0, 0, "its gradients are older than S: {of:?}");
        assert!(of[2].1 > 2, "{of:?}");
        for worker in &workers {
            assert!(worker.is_finished());
            assert!(worker.weights().iter().all(|weight| weight.abs() < 0.01));
        }
    }

    proptest! {
        #[test]
        fn weights_are_equal_at_each_iteration_whatever_the_speeds(
            computing in prop::collection::vec(1u32..20, 2..6),
            delay in 1u32..5,
            h in 1u32..5,
            bound in 0u64..5,
        ) {
            let delays: Vec<u32> = computing.iter().map(|ticks| delay + ticks % 3).collect();
            let h = h.min(computing.len() as u32);
            let workers = trains(&computing, &delays, h, bound, 30);
            for worker in &workers {
                prop_assert!(worker.is_finished(), "{:?}", worker.gradients());
                prop_assert_eq!(worker.weights(), workers[0].weights());
            }
        }
    }
}
