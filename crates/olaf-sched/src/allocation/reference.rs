//! The slow, obvious side of the tests: runtimes that use trees, messages on their way to and from
//! them, and a count of each tree's users that knows nothing of the allocator's own count.

use super::{Allocator, Command, Event, Phase};
use crate::topology::Capacity;
use crate::{JobId, Tree};
use std::collections::{BTreeMap, VecDeque};

/// An order to a runtime.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Order {
    Acquire(u64),
    Release(u64),
    Fence(u64),
}

/// Runtimes, switches, and what is on its way between them and the allocator.
#[derive(Clone, Debug, Default)]
pub(super) struct World {
    /// Orders to each job's runtime, in order; a dead job's go to the switches.
    pub(super) orders: BTreeMap<JobId, VecDeque<Order>>,
    /// Acknowledgements on their way: they may overtake each other.
    pub(super) answers: Vec<Command>,
    /// Of each job: the trees that its hosts may be using. A runtime may do so from the moment
    /// it could have the order, and does not any more when it has answered the release.
    pub(super) uses: BTreeMap<(JobId, u64), (Tree, u32)>,
    /// Two jobs that met and must not.
    pub(super) met: Option<String>,
    /// A runtime that says `released` and goes on: to see that the check sees it.
    pub(super) lies: bool,
}

impl World {
    /// What the allocator said of a command.
    pub(super) fn hear(&mut self, allocator: &Allocator, events: &[Event]) {
        for event in events {
            match *event {
                Event::Acquire { job, generation, .. } => {
                    let hold = allocator.holds().of(job).expect("it was just given");
                    assert_eq!((hold.generation, hold.phase), (generation, Phase::Acquiring));
                    let mine = self.uses.range((job, 0)..=(job, u64::MAX)).next();
                    assert!(mine.is_none(), "job {} has two trees", job.0);
                    self.uses.insert((job, generation), (Tree::clone(&hold.tree), hold.units));
                    self.begin(allocator, job);
                    self.orders.entry(job).or_default().push_back(Order::Acquire(generation));
                }
                Event::Release { job, generation } => {
                    self.orders.entry(job).or_default().push_back(Order::Release(generation));
                }
                Event::Fence { job, generation } => {
                    // Its runtime is dead and hears nothing; the switches are told.
                    self.orders.insert(job, VecDeque::from([Order::Fence(generation)]));
                }
                Event::Ended { job, state, .. } if state != super::State::Failed => {
                    self.uses.retain(|(user, _), _| *user != job);
                    self.orders.remove(&job);
                }
                _ => {}
            }
        }
    }

    /// The job's runtime, or the switches, take the next order; the answer is on its way.
    pub(super) fn obey(&mut self, job: JobId) {
        let Some(order) = self.orders.get_mut(&job).and_then(VecDeque::pop_front) else { return };
        self.orders.retain(|_, orders| !orders.is_empty());
        self.answers.push(match order {
            Order::Acquire(generation) => Command::Acquired { job, generation },
            Order::Release(generation) | Order::Fence(generation) => {
                if !self.lies {
                    self.uses.remove(&(job, generation));
                }
                Command::Released { job, generation }
            }
        });
    }

    /// A job begins to use a tree. If a resource is then used beyond its capacity, all its users
    /// must be planned to take turns: no user that has to release, and none of another group. A
    /// user that has to release later takes turns until it has released.
    fn begin(&mut self, allocator: &Allocator, job: JobId) {
        let group = allocator.forest.group(job);
        let planned = |(user, generation, _): &(JobId, u64, u32)| {
            let record = allocator.job(*user);
            group.contains(user)
                && record.is_some_and(|r| r.state.runs() && r.generation == *generation)
        };
        for (resource, users) in self.beyond(allocator.config.capacity) {
            if users.iter().any(|user| user.0 == job) && !users.iter().all(planned) {
                self.met = Some(format!("resource {resource} is used by {users:?}"));
            }
        }
    }

    /// The users of each resource that is used beyond its capacity.
    fn beyond(&self, capacity: Capacity) -> BTreeMap<u32, Vec<(JobId, u64, u32)>> {
        let mut users = BTreeMap::<u32, Vec<(JobId, u64, u32)>>::new();
        for ((job, generation), (tree, units)) in &self.uses {
            for resource in tree.resources(capacity) {
                users.entry(resource).or_default().push((*job, *generation, *units));
            }
        }
        users.retain(|_, users| {
            users.iter().map(|(_, _, units)| u64::from(*units)).sum::<u64>()
                > capacity.units().into()
        });
        users
    }

    /// No two jobs met that were not planned to. Without taking turns: no resource is used beyond
    /// its capacity.
    pub(super) fn check(&self, allocator: &Allocator) -> Result<(), String> {
        if let Some(met) = &self.met {
            return Err(met.clone());
        }
        let turns = allocator.config.trees.shares();
        match self.beyond(allocator.config.capacity).first_key_value() {
            Some((resource, users)) if !turns => Err(format!("{resource} is used by {users:?}")),
            _ => Ok(()),
        }
    }

    /// Nothing is on its way.
    pub(super) fn is_quiet(&self) -> bool {
        self.orders.is_empty() && self.answers.is_empty()
    }
}

/// Every job that shall have a tree uses it, and no other job uses a tree.
pub(super) fn check_settled(allocator: &Allocator) -> Result<(), String> {
    for (job, record) in allocator.jobs() {
        let held = allocator.holds().of(job);
        match (&record.tree, held) {
            (Some(tree), Some(hold))
                if hold.phase == Phase::Held
                    && hold.generation == record.generation
                    && hold.tree == *tree => {}
            (None, None) => {}
            _ => return Err(format!("job {}: shall {:?}, holds {held:?}", job.0, record.tree)),
        }
    }
    // What is held adds up to what the holds say.
    let capacity = allocator.config.capacity;
    let mut units = vec![0u64; capacity.resources(&allocator.topology)];
    for (_, hold) in allocator.holds().iter() {
        for resource in hold.tree.resources(capacity) {
            units[resource as usize] += u64::from(hold.units);
        }
    }
    allocator.holds().audit(&units)
}
