//! Which aggregation tree each running job has, if any (MINA §III-C).
//!
//! A [`Forest`] holds the trees of all running jobs. A job arrives, leaves, or a switch is drained;
//! each time the forest says whose tree changed, and why. Jobs whose trees conflict share
//! resources in time (MINA §III-D, the module `sharing`); a job without a tree does without.

mod first;
mod gain;
mod ground;
mod independent;
mod mina;
mod policy;
mod problem;
mod reason;
#[cfg(test)]
mod reference;
mod restore;
mod seat;
#[cfg(test)]
mod tests;

pub use policy::{Again, Asked, AskedError, Join, Policy, Weight};
pub use problem::{Chooser, Chosen, Problem, Solution, SolutionError, Solve};
pub use reason::{Change, Reason};
pub use restore::{Stand, Standing};

use crate::topology::{Capacity, Topology};
use crate::{HostId, JobId, SwitchId, Tree};
use gain::MadeRoom;
use ground::{Ground, Slot};
use mina::Search;
use seat::Limits;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What makes two trees conflict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conflicts {
    /// A resource that has too few units for both (§III-C, (2)).
    #[default]
    Capacity,
    /// A switch that is in both, even where the capacity is a port's: how the authors' code of the
    /// paper builds trees.
    Switch,
}

/// A forest's settings, given once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// What a switch can sum for at once.
    pub capacity: Capacity,
    /// How trees are chosen.
    pub policy: Policy,
    /// What makes trees conflict.
    pub conflicts: Conflicts,
    /// Of what is drawn: candidates, disturbances.
    pub seed: u64,
}

/// A job that begins to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its name.
    pub job: JobId,
    /// Where it runs, ascending.
    pub hosts: Vec<HostId>,
    /// Units that it asks of each resource: 1, or slots of our own switches.
    pub units: u32,
    /// What it gains by its tree, in host-nanoseconds a second of running: what a policy may weigh.
    /// 0 for a job that is as fast without.
    pub gain: u64,
}

/// The trees of all running jobs.
#[derive(Clone, Debug)]
pub struct Forest {
    config: Config,
    ground: Ground,
    conflicts: mina::Conflicts,
    /// Rebuilds so far: each has its own chances.
    rebuilds: u64,
}

impl Forest {
    /// No job runs; trees conflict where the capacity is exceeded.
    #[must_use]
    pub fn new(topology: Arc<Topology>, capacity: Capacity, policy: Policy) -> Self {
        Self::with(topology, Config { capacity, policy, conflicts: Conflicts::Capacity, seed: 0 })
    }

    /// No job runs.
    #[must_use]
    pub fn with(topology: Arc<Topology>, config: Config) -> Self {
        let rule = match (config.conflicts, config.capacity) {
            (Conflicts::Switch, Capacity::PerPort(units)) => Capacity::PerSwitch(units),
            (_, capacity) => capacity,
        };
        let ground = Ground::new(topology, rule);
        Self { config, ground, conflicts: mina::Conflicts::default(), rebuilds: 0 }
    }

    /// Jobs begin to run, all at the same instant. Returns whose trees changed, the new jobs'
    /// first; a job that stays as it was is not among them.
    ///
    /// # Panics
    /// When a job is running already.
    pub fn arrive(&mut self, arrivals: Vec<Arrival>) -> Vec<Change> {
        let slots: Vec<Slot> = arrivals.into_iter().map(|arrival| self.enter(arrival)).collect();
        let made_room = self.rebuild(&slots);
        self.finish(&slots, &made_room)
    }

    /// As [`arrive`](Self::arrive); then, if a job that gains something has no place of its own
    /// and the policy is `Exact`, `solver` is asked for a better choice. One that is none is not
    /// taken, nor one that is worth no more.
    ///
    /// # Panics
    /// When a job is running already.
    pub fn arrive_with(&mut self, arrivals: Vec<Arrival>, solver: &mut dyn Solve) -> Vec<Change> {
        let slots: Vec<Slot> = arrivals.into_iter().map(|arrival| self.enter(arrival)).collect();
        let mut made_room = self.rebuild(&slots);
        if let (Policy::Exact { .. }, Some((limits, join))) =
            (self.config.policy, self.config.policy.gains())
        {
            let problem = Problem::new(&self.ground, limits.price_millis);
            let solution = if problem.is_settled() { None } else { solver.solve(&problem) };
            if let Some(solution) = solution
                && problem.check(&solution).is_ok_and(|worth| worth > problem.current())
            {
                made_room.extend(gain::adopt(&mut self.ground, limits, join, &problem, &solution));
            }
        }
        self.finish(&slots, &made_room)
    }

    /// The choice of trees as it stands, for a solver. Jobs that gain nothing are not in it.
    #[must_use]
    pub fn problem(&self) -> Problem {
        let price = self.config.policy.gains().map_or(0, |(limits, _)| limits.price_millis);
        Problem::new(&self.ground, price)
    }

    /// Takes a solver's choice for the conflict-free set; the other jobs take turns or do without,
    /// as the policy says. Returns whose trees changed.
    ///
    /// # Errors
    /// When it is no solution of [`problem`](Self::problem); nothing is changed then.
    pub fn adopt(&mut self, solution: &Solution) -> Result<Vec<Change>, SolutionError> {
        let problem = self.problem();
        problem.check(solution)?;
        let (limits, join) = self
            .config
            .policy
            .gains()
            .unwrap_or((Limits { depth: 0, work: 0, price_millis: 0 }, Join::None));
        let made_room = gain::adopt(&mut self.ground, limits, join, &problem, solution);
        Ok(self.finish(&[], &made_room))
    }

    /// A job has ended. Returns whose trees changed; its own is not among them.
    ///
    /// # Panics
    /// When it is not running.
    pub fn leave(&mut self, job: JobId) -> Vec<Change> {
        let slot = self.ground.slot(job).expect("a job that leaves has arrived");
        self.conflicts.remove(&self.ground, slot);
        self.ground.remove(slot);
        // Baselines, and MINA: trees are built when a job arrives.
        let gains = self.config.policy.gains().is_some();
        let made_room = if gains { self.rebuild(&[]) } else { MadeRoom::new() };
        self.finish(&[], &made_room)
    }

    /// No tree leads through `switch` any more, until it is undrained. Returns whose trees
    /// changed; jobs that have no other way lose theirs.
    pub fn drain_switch(&mut self, switch: SwitchId) -> Vec<Change> {
        let touched = |ground: &Ground, slot: Slot| {
            ground.member(slot).candidates.lead_through(&ground.topology, ground.rule, switch)
        };
        self.turn(switch, true, touched)
    }

    /// Trees may lead through `switch` again. Returns whose trees changed.
    pub fn undrain(&mut self, switch: SwitchId) -> Vec<Change> {
        let touched = |ground: &Ground, slot: Slot| {
            ground.is_above(switch, &ground.member(slot).arrival.hosts)
        };
        self.turn(switch, false, touched)
    }

    /// The job's tree, and why it is that.
    #[must_use]
    pub fn tree(&self, job: JobId) -> Option<(Option<&Arc<Tree>>, &Reason)> {
        let member = self.ground.member(self.ground.slot(job)?);
        Some((member.tree.as_ref(), &member.reason))
    }

    /// The job's tree is one of the conflict-free set: jobs that share with it came after.
    #[must_use]
    pub fn is_seated(&self, job: JobId) -> bool {
        let slot = self.ground.slot(job);
        slot.is_some_and(|slot| self.ground.member(slot).seat().is_some())
    }

    /// All running jobs, ascending.
    pub fn jobs(&self) -> impl Iterator<Item = JobId> + '_ {
        self.ground.slots().map(|slot| self.ground.member(slot).arrival.job)
    }

    /// The jobs whose trees conflict with the job's, or with one of those, and so on: a sharing
    /// group, ascending, the job among them. Empty for a job without a tree.
    #[must_use]
    pub fn group(&self, job: JobId) -> Vec<JobId> {
        let slot = self.ground.slot(job).filter(|&slot| self.ground.member(slot).place.is_some());
        slot.map_or(Vec::new(), |slot| self.ground.jobs(self.ground.group(slot, None)))
    }

    /// The jobs whose trees conflict with the job's, ascending.
    #[must_use]
    pub fn rivals(&self, job: JobId) -> Vec<JobId> {
        self.ground.slot(job).map_or(Vec::new(), |slot| self.ground.rivals(slot))
    }

    /// The jobs whose trees are in the way of any tree that the job could have, ascending.
    #[must_use]
    pub fn in_the_way(&self, job: JobId) -> Vec<JobId> {
        self.ground.slot(job).map_or(Vec::new(), |slot| self.ground.in_the_way(slot))
    }

    /// Where the job's trees could have their roots, as far as they were looked at, ascending.
    #[must_use]
    pub fn candidates(&self, job: JobId) -> &[SwitchId] {
        let slot = self.ground.slot(job);
        slot.map_or(&[], |slot| &self.ground.member(slot).candidates.roots)
    }

    /// Switches that no tree may lead through, ascending.
    pub fn drained(&self) -> impl Iterator<Item = SwitchId> + '_ {
        let switches = (0u32..).map(SwitchId).zip(&self.ground.drained);
        switches.filter(|(_, drained)| **drained).map(|(switch, _)| switch)
    }

    fn enter(&mut self, arrival: Arrival) -> Slot {
        let seed = self.seed_of(arrival.job);
        let candidates = match self.config.policy {
            Policy::None => ground::Candidates::default(),
            policy => self.ground.find_candidates(&arrival.hosts, policy.candidates(), seed),
        };
        let candidates = if arrival.units > self.ground.rule.units() {
            // It asks for more than a resource has, even if no other job runs.
            ground::Candidates::default()
        } else {
            candidates
        };
        let slot = self.ground.enter(arrival, candidates);
        self.consider(slot);
        slot
    }

    /// The job's candidates conflict with others' from now on.
    fn consider(&mut self, slot: Slot) {
        if let Policy::Mina { weight, .. } = self.config.policy
            && self.ground.rule.units() == 1
        {
            self.conflicts.add(&self.ground, slot, weight);
        }
    }

    /// Trees for the jobs at `new`, and for others as the policy likes.
    fn rebuild(&mut self, new: &[Slot]) -> MadeRoom {
        let ground = &mut self.ground;
        match self.config.policy {
            Policy::None => {}
            Policy::First => new.iter().for_each(|&slot| first::seat_first(ground, slot)),
            Policy::FirstGain => {
                let useful = new.iter().copied().filter(|&slot| ground.gain(slot) > 0);
                for slot in useful.collect::<Vec<_>>() {
                    first::seat_first(ground, slot);
                }
            }
            Policy::Random => {
                for &slot in new {
                    let seed = self.config.seed ^ ground.member(slot).arrival.job.0.rotate_left(32);
                    first::seat_random(ground, slot, seed);
                }
            }
            Policy::Mina { join, rounds, weight, keep, .. } => {
                self.rebuilds += 1;
                let seed = self.config.seed.wrapping_add(self.rebuilds);
                if ground.rule.units() == 1 {
                    self.conflicts.rebuild(ground, Search { rounds, seed, keep }, join);
                } else {
                    mina::pack(ground, weight, join);
                }
            }
            Policy::Gain { .. } | Policy::Exact { .. } => {
                let (limits, join) = self.config.policy.gains().expect("both have limits");
                return gain::settle(ground, limits, join, new);
            }
        }
        MadeRoom::new()
    }

    fn turn(
        &mut self,
        switch: SwitchId,
        drained: bool,
        touched: impl Fn(&Ground, Slot) -> bool,
    ) -> Vec<Change> {
        if std::mem::replace(&mut self.ground.drained[switch.index()], drained) == drained {
            return Vec::new();
        }
        let slots: Vec<Slot> =
            self.ground.slots().filter(|&slot| touched(&self.ground, slot)).collect();
        let mut open = Vec::new();
        for slot in slots {
            self.conflicts.remove(&self.ground, slot);
            let arrival = &self.ground.member(slot).arrival;
            if matches!(self.config.policy, Policy::None)
                || arrival.units > self.ground.rule.units()
            {
                continue;
            }
            let (seed, limit) = (self.seed_of(arrival.job), self.config.policy.candidates());
            let candidates = self.ground.find_candidates(&arrival.hosts, limit, seed);
            let had = self.ground.member(slot).place.is_some();
            self.ground.replace_candidates(slot, candidates);
            self.consider(slot);
            // The baselines give no second chance to a job that had no tree.
            if had || self.config.policy.gains().is_some() {
                open.push(slot);
            }
        }
        open.retain(|&slot| self.ground.member(slot).place.is_none());
        let made_room = self.rebuild(&open);
        self.finish(&[], &made_room)
    }

    /// Plants the trees of this event, and says so.
    fn finish(&mut self, new: &[Slot], made_room: &MadeRoom) -> Vec<Change> {
        let (changed, mut stale) = self.ground.take_touched();
        let mut planted = Vec::new();
        let others = changed.iter().copied().filter(|slot| !new.contains(slot));
        for slot in new.iter().copied().chain(others) {
            planted.push((slot, self.ground.plant(slot)));
        }
        stale.extend(planted.iter().map(|(slot, _)| *slot));
        stale.sort_unstable();
        stale.dedup();
        for slot in stale {
            let moved = changed.contains(&slot) && !new.contains(&slot);
            let reason = self.reason(slot, moved, made_room);
            self.ground.set_reason(slot, reason);
        }
        let mut changes = Vec::new();
        for (slot, [from, to]) in planted {
            let member = self.ground.member(slot);
            if from != to || new.contains(&slot) {
                let reason = member.reason.clone();
                changes.push(Change { job: member.arrival.job, from, to, reason });
            }
        }
        changes
    }

    fn reason(&self, slot: Slot, moved: bool, made_room: &MadeRoom) -> Reason {
        let (ground, member) = (&self.ground, self.ground.member(slot));
        let candidates = member.candidates.len();
        if let Some(place) = member.place {
            let with = ground.jobs(ground.rivals_at(slot, place.candidate));
            return if !with.is_empty() {
                Reason::Shares { with }
            } else if let Some(&other) = made_room.get(&slot).filter(|_| moved) {
                Reason::Moved { made_room_for: ground.member(other).arrival.job }
            } else if !moved && matches!(member.reason, Reason::Moved { .. }) {
                member.reason.clone()
            } else {
                Reason::Alone
            };
        }
        match self.config.policy {
            Policy::None => Reason::Off,
            _ if member.arrival.hosts.len() < 2 => Reason::OneHost,
            _ if member.arrival.units > ground.rule.units() => {
                Reason::TooLarge { units: member.arrival.units, capacity: ground.rule.units() }
            }
            _ if candidates == 0 => {
                Reason::Cut { drained: ground.drained_above(&member.arrival.hosts) }
            }
            Policy::FirstGain if member.arrival.gain == 0 => {
                Reason::NoGain { with: ground.in_the_way(slot) }
            }
            Policy::Gain { .. } | Policy::Exact { .. } if member.arrival.gain == 0 => {
                Reason::NoGain { with: ground.in_the_way(slot) }
            }
            policy if !policy.shares() => {
                Reason::Conflict { candidates, with: ground.in_the_way(slot) }
            }
            _ => Reason::LeftOut { candidates, with: ground.in_the_way(slot) },
        }
    }

    fn seed_of(&self, job: JobId) -> u64 {
        self.config.seed ^ job.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}
