//! The choice of trees as a problem for an exact solver (MINA §III-C, the ILP), and its answer.
//!
//! Of each job at most one candidate is chosen; on no resource do the chosen ask for more units
//! than it has; the values of the chosen are to be as large as can be together.

use super::ground::{Ground, Slot};
use crate::{JobId, SwitchId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What is to be chosen. Jobs that gain nothing by a tree are not in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Units that each resource has.
    pub capacity: u32,
    /// By job, ascending.
    pub jobs: Vec<Chooser>,
}

/// A job of a [`Problem`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chooser {
    /// Whose.
    pub job: JobId,
    /// Units that it asks of each resource of its tree.
    pub units: u32,
    /// Of the chosen candidate: [`Arrival::gain`](super::Arrival::gain), and for `current` what a
    /// change would cost on top.
    pub values: Vec<u64>,
    /// The candidate that it has now, if it belongs to the conflict-free set.
    pub current: Option<usize>,
    /// Of each candidate: its root.
    pub roots: Vec<SwitchId>,
    /// Of each candidate: the resources that others could want too, ascending.
    pub uses: Vec<Vec<u32>>,
}

/// Which candidates are chosen; jobs that are not named have none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Solution {
    /// Each job at most once.
    pub chosen: Vec<Chosen>,
}

/// One job's tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chosen {
    /// Whose.
    pub job: JobId,
    /// An index into the job's candidates.
    pub candidate: usize,
}

/// Solves problems, however it likes: HiGHS in Python, say.
pub trait Solve {
    /// None when it has nothing better than the current choice.
    fn solve(&mut self, problem: &Problem) -> Option<Solution>;
}

impl<F: FnMut(&Problem) -> Option<Solution>> Solve for F {
    fn solve(&mut self, problem: &Problem) -> Option<Solution> {
        self(problem)
    }
}

/// Why a solution is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SolutionError {
    /// This job is not in the problem, or is named twice.
    Job(JobId),
    /// This job has fewer candidates.
    Candidate(Chosen),
    /// More units of this resource are asked for than it has.
    Capacity {
        /// A switch or a link, as the forest counts.
        resource: u32,
        /// Asked for.
        units: u64,
        /// What there is.
        capacity: u32,
    },
}

impl fmt::Display for SolutionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(job) => write!(f, "job {}: not in the problem, or has two choices", job.0),
            Self::Candidate(Chosen { job, candidate }) => {
                write!(f, "job {} has no candidate {candidate}", job.0)
            }
            Self::Capacity { resource, units, capacity } => {
                write!(f, "{units} units of resource {resource}, which has {capacity}")
            }
        }
    }
}

impl std::error::Error for SolutionError {}

impl Problem {
    pub(super) fn new(ground: &Ground, price_millis: u64) -> Self {
        let chooser = |slot: Slot| {
            let member = ground.member(slot);
            let (gain, current) = (member.arrival.gain, member.seat());
            let count = member.candidates.len();
            let price = u128::from(gain) * u128::from(price_millis) / 1000;
            let price = u64::try_from(price).unwrap_or(u64::MAX).saturating_add(1);
            let value = |at| if current == Some(at) { gain.saturating_add(price) } else { gain };
            (gain > 0 && count > 0).then(|| Chooser {
                job: member.arrival.job,
                units: member.arrival.units,
                values: (0..count).map(value).collect(),
                current,
                roots: member.candidates.roots.clone(),
                uses: (0..count).map(|at| member.candidates.uses(at).to_vec()).collect(),
            })
        };
        Self { capacity: ground.rule.units(), jobs: ground.slots().filter_map(chooser).collect() }
    }

    /// What the current choice is worth.
    #[must_use]
    pub fn current(&self) -> u64 {
        let value = |job: &Chooser| job.current.map_or(0, |at| job.values[at]);
        self.jobs.iter().map(value).fold(0, u64::saturating_add)
    }

    /// No choice is worth more than the current one, plainly: every job has what it likes best.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.jobs.iter().all(|job| job.current.is_some())
    }

    /// What `solution` is worth, if it is one.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, solution: &Solution) -> Result<u64, SolutionError> {
        let mut jobs: BTreeMap<JobId, &Chooser> =
            self.jobs.iter().map(|job| (job.job, job)).collect();
        let mut held: BTreeMap<u32, u64> = BTreeMap::new();
        let mut worth = 0u64;
        for &chosen in &solution.chosen {
            let job = jobs.remove(&chosen.job).ok_or(SolutionError::Job(chosen.job))?;
            let uses = job.uses.get(chosen.candidate);
            for &resource in uses.ok_or(SolutionError::Candidate(chosen))? {
                *held.entry(resource).or_default() += u64::from(job.units);
            }
            worth = worth.saturating_add(job.values[chosen.candidate]);
        }
        let capacity = self.capacity;
        match held.into_iter().find(|(_, units)| *units > u64::from(capacity)) {
            Some((resource, units)) => Err(SolutionError::Capacity { resource, units, capacity }),
            None => Ok(worth),
        }
    }
}
