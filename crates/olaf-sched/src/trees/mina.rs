//! The paper's trees: the largest set of trees that do not conflict, found anew at each arrival,
//! among a few random candidates of each job; then sharing groups (MINA §III-C).

use super::Weight;
use super::gain::groups;
use super::ground::{Ground, Slot};
use super::independent::Graph;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The weight of a job or a host. A tree that is there already weighs one more, so that of sets of
/// one size the one with the fewest changes is preferred. There are never this many trees.
const UNIT: u64 = 1 << 24;

/// How a set is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    pub(super) rounds: u32,
    pub(super) seed: u64,
    pub(super) keep: bool,
}

/// The graph of conflicts: a vertex is a candidate of a running job; vertices are joined that are
/// of one job or cannot both be had (MINA Figure 7).
///
/// Where a resource has units for several, conflicts are no graph; see `super::Forest`.
#[derive(Clone, Debug, Default)]
pub(super) struct Conflicts {
    graph: Graph,
    /// Of each vertex: whose, and which candidate.
    meaning: Vec<(Slot, usize)>,
    /// Of each job: its vertices, by candidate.
    vertices: BTreeMap<Slot, Vec<u32>>,
    /// Of each resource: the vertices that use it.
    users: Vec<Vec<u32>>,
}

impl Conflicts {
    pub(super) fn add(&mut self, ground: &Ground, slot: Slot, weight: Weight) {
        let member = ground.member(slot);
        let weight = match weight {
            Weight::Jobs => 1,
            Weight::Hosts => member.arrival.hosts.len() as u64,
        };
        let mut mine: Vec<u32> = Vec::new();
        for at in 0..member.candidates.len() {
            let vertex = self.graph.add(weight * UNIT);
            let index = vertex as usize;
            self.meaning.resize(self.meaning.len().max(index + 1), (slot, at));
            self.meaning[index] = (slot, at);
            for &other in &mine {
                self.graph.join(vertex, other);
            }
            for &resource in member.candidates.uses(at) {
                let resource = resource as usize;
                if self.users.len() <= resource {
                    self.users.resize(resource + 1, Vec::new());
                }
                for &other in &self.users[resource] {
                    if other != vertex {
                        self.graph.join(vertex, other);
                    }
                }
                self.users[resource].push(vertex);
            }
            mine.push(vertex);
        }
        self.vertices.insert(slot, mine);
    }

    /// To be called while the job still has the candidates that it was added with.
    pub(super) fn remove(&mut self, ground: &Ground, slot: Slot) {
        for (at, vertex) in self.vertices.remove(&slot).unwrap_or_default().into_iter().enumerate()
        {
            for &resource in ground.member(slot).candidates.uses(at) {
                self.users[resource as usize].retain(|&user| user != vertex);
            }
            self.graph.remove(vertex);
        }
    }

    /// Gives every job its tree anew.
    pub(super) fn rebuild(&mut self, ground: &mut Ground, search: Search, join: bool) {
        for (&slot, vertices) in &self.vertices {
            let seat = ground.member(slot).seat();
            for (at, &vertex) in vertices.iter().enumerate() {
                self.graph.prefer(vertex, search.keep && seat == Some(at), UNIT);
            }
        }
        let set = self.graph.independent_set(search.rounds, search.seed);
        let mut seats: BTreeMap<Slot, usize> = BTreeMap::new();
        let mut conflicts = vec![0u32; self.meaning.len()];
        for &vertex in &set {
            let (slot, at) = self.meaning[vertex as usize];
            seats.insert(slot, at);
            for &other in self.graph.neighbours(vertex) {
                conflicts[other as usize] += 1;
            }
        }
        // A job that is left over joins the one tree that its own conflicts with.
        let mut shares: BTreeMap<Slot, usize> = BTreeMap::new();
        if join {
            for &center in &set {
                for &other in self.graph.neighbours(center) {
                    let (slot, at) = self.meaning[other as usize];
                    if conflicts[other as usize] == 1 && !seats.contains_key(&slot) {
                        shares.entry(slot).or_insert(at);
                    }
                }
            }
        }
        let slots: Vec<Slot> = self.vertices.keys().copied().collect();
        for &slot in &slots {
            let kept = match (seats.get(&slot), shares.get(&slot)) {
                (Some(&at), _) => ground.member(slot).seat() == Some(at),
                (_, Some(&at)) => {
                    let place = ground.member(slot).place;
                    place.is_some_and(|place| !place.seated && place.candidate == at)
                }
                _ => false,
            };
            if !kept {
                ground.put(slot, None);
            }
        }
        for (slot, at) in seats {
            ground.seat(slot, at);
        }
        for (slot, at) in shares {
            ground.share(slot, at);
        }
    }
}

/// Where a resource has units for several jobs, conflicts are no graph: jobs are seated one by
/// one, the heaviest first.
pub(super) fn pack(ground: &mut Ground, weight: Weight, join: bool) {
    let mut slots: Vec<Slot> = ground.slots().collect();
    slots.retain(|&slot| ground.member(slot).candidates.len() > 0);
    if weight == Weight::Hosts {
        slots.sort_by_key(|&slot| Reverse(ground.member(slot).arrival.hosts.len()));
    }
    for &slot in &slots {
        ground.put(slot, None);
    }
    let mut left_over = Vec::new();
    for slot in slots {
        let candidates = ground.member(slot).candidates.len();
        match (0..candidates).find(|&at| ground.is_free(slot, at)) {
            Some(at) => ground.seat(slot, at),
            None => left_over.push(slot),
        }
    }
    for slot in left_over.into_iter().filter(|_| join) {
        let candidates = ground.member(slot).candidates.len();
        if let Some(at) = (0..candidates).find(|&at| groups(ground, slot, at) == 1) {
            ground.share(slot, at);
        }
    }
}
