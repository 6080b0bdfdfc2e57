//! A large independent set of a weighted graph: reduce and peel (Chang, Li, Zhang, SIGMOD 2017,
//! which MINA §III-C names), then local search.
//!
//! Reductions decide vertices without loss; where none applies, the vertex that stands most in
//! the way is peeled off. What was peeled without need comes back; then single and double swaps,
//! from the result and from some disturbances of it, drawn by a seed.

/// A graph whose vertices come and go. Vertices without weight are not there.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    neighbours: Vec<Vec<u32>>,
    weight: Vec<u64>,
    vacant: Vec<u32>,
}

impl Graph {
    /// A new vertex, not yet joined to any.
    pub(super) fn add(&mut self, weight: u64) -> u32 {
        assert!(weight > 0, "a vertex weighs something");
        if let Some(vertex) = self.vacant.pop() {
            self.weight[vertex as usize] = weight;
            return vertex;
        }
        self.neighbours.push(Vec::new());
        self.weight.push(weight);
        u32::try_from(self.weight.len() - 1).expect("fewer than 2^32 vertices")
    }

    /// Both may not be chosen.
    pub(super) fn join(&mut self, a: u32, b: u32) {
        for (one, other) in [(a, b), (b, a)] {
            let list = &mut self.neighbours[one as usize];
            if let Err(at) = list.binary_search(&other) {
                list.insert(at, other);
            }
        }
    }

    /// Weighs a little more, or no longer: what is less than a `unit`.
    pub(super) fn prefer(&mut self, vertex: u32, yes: bool, unit: u64) {
        let weight = &mut self.weight[vertex as usize];
        *weight = *weight / unit * unit + u64::from(yes);
    }

    pub(super) fn remove(&mut self, vertex: u32) {
        for other in std::mem::take(&mut self.neighbours[vertex as usize]) {
            let list = &mut self.neighbours[other as usize];
            if let Ok(at) = list.binary_search(&vertex) {
                list.remove(at);
            }
        }
        self.weight[vertex as usize] = 0;
        self.vacant.push(vertex);
    }

    pub(super) fn neighbours(&self, vertex: u32) -> &[u32] {
        &self.neighbours[vertex as usize]
    }

    fn joined(&self, a: u32, b: u32) -> bool {
        self.neighbours[a as usize].binary_search(&b).is_ok()
    }

    /// An independent set, ascending: of `rounds` disturbances the best.
    pub(super) fn independent_set(&self, rounds: u32, seed: u64) -> Vec<u32> {
        let mut set = Set::new(self);
        for vertex in reduce_and_peel(self) {
            set.insert(vertex);
        }
        set.open.clone_from(&set.outside);
        set.improve();
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..rounds {
            if set.outside.is_empty() {
                break;
            }
            let before = set.weight;
            set.journal.clear();
            set.force(set.outside[rng.usize(..set.outside.len())]);
            set.improve();
            if set.weight <= before {
                set.undo();
            }
        }
        set.vertices()
    }
}

/// Only vertices with few neighbours are looked at closely.
const CLOSE: usize = 12;

fn reduce_and_peel(graph: &Graph) -> Vec<u32> {
    let count = graph.weight.len();
    let mut alive: Vec<bool> = graph.weight.iter().map(|&weight| weight > 0).collect();
    let mut around: Vec<u64> = vec![0; count];
    let mut degree: Vec<usize> = graph.neighbours.iter().map(Vec::len).collect();
    for (vertex, neighbours) in graph.neighbours.iter().enumerate() {
        around[vertex] = neighbours.iter().map(|&n| graph.weight[n as usize]).sum();
    }
    let mut chosen = Vec::new();
    let all = 0..u32::try_from(count).expect("checked when they were added");
    let mut open: Vec<u32> = all.clone().rev().filter(|&v| alive[v as usize]).collect();
    let mut waits: Vec<bool> = alive.clone();
    loop {
        while let Some(vertex) = open.pop() {
            waits[vertex as usize] = false;
            if !alive[vertex as usize] {
                continue;
            }
            let weight = graph.weight[vertex as usize];
            let mut gone: Vec<u32> = Vec::new();
            let mut near = Vec::new();
            if weight >= around[vertex as usize] || degree[vertex as usize] <= CLOSE {
                let neighbours = graph.neighbours[vertex as usize].iter().copied();
                near.extend(neighbours.filter(|&n| alive[n as usize]));
            }
            if weight >= around[vertex as usize] {
                // No set is better without it: it weighs as much as all of its neighbours.
                chosen.push(vertex);
                alive[vertex as usize] = false;
                gone = near;
            } else {
                // Vertices that conflict with all that this one conflicts with, and weigh no more.
                gone.extend(near.iter().copied().filter(|&n| {
                    graph.weight[n as usize] <= weight
                        && near.iter().all(|&other| other == n || graph.joined(n, other))
                }));
            }
            for &n in &gone {
                alive[n as usize] = false;
            }
            for n in gone {
                drop_vertex(graph, n, &alive, &mut around, &mut degree, &mut open, &mut waits);
            }
        }
        let in_the_way = |&a: &u32, &b: &u32| {
            let of = |v: u32| u128::from(around[v as usize]);
            let weight = |v: u32| u128::from(graph.weight[v as usize]);
            (of(a) * weight(b)).cmp(&(of(b) * weight(a))).then(b.cmp(&a))
        };
        let Some(peeled) = all.clone().filter(|&v| alive[v as usize]).max_by(in_the_way) else {
            return chosen;
        };
        alive[peeled as usize] = false;
        drop_vertex(graph, peeled, &alive, &mut around, &mut degree, &mut open, &mut waits);
    }
}

fn drop_vertex(
    graph: &Graph,
    vertex: u32,
    alive: &[bool],
    around: &mut [u64],
    degree: &mut [usize],
    open: &mut Vec<u32>,
    waits: &mut [bool],
) {
    for &n in &graph.neighbours[vertex as usize] {
        let at = n as usize;
        around[at] -= graph.weight[vertex as usize];
        degree[at] -= 1;
        if alive[at] && !waits[at] {
            waits[at] = true;
            open.push(n);
        }
    }
}

/// An independent set, and how tightly it holds the vertices outside.
struct Set<'a> {
    graph: &'a Graph,
    inside: Vec<bool>,
    /// Of each vertex: the weight of its neighbours inside.
    tight: Vec<u64>,
    /// Of each vertex: their number.
    holders: Vec<u32>,
    /// Vertices outside, in no order that means anything.
    outside: Vec<u32>,
    position: Vec<u32>,
    weight: u64,
    /// Vertices outside that are held less tightly than when they were last looked at.
    open: Vec<u32>,
    /// The vertices that came and went, to be undone.
    journal: Vec<u32>,
}

impl<'a> Set<'a> {
    fn new(graph: &'a Graph) -> Self {
        let count = graph.weight.len();
        let number = |v: usize| u32::try_from(v).expect("checked when they were added");
        let outside: Vec<u32> = (0..count).filter(|&v| graph.weight[v] > 0).map(number).collect();
        let mut position = vec![0; count];
        for (at, &vertex) in outside.iter().enumerate() {
            position[vertex as usize] = number(at);
        }
        Self {
            graph,
            inside: vec![false; count],
            tight: vec![0; count],
            holders: vec![0; count],
            outside,
            position,
            weight: 0,
            open: Vec::new(),
            journal: Vec::new(),
        }
    }

    fn vertices(&self) -> Vec<u32> {
        let all = 0..u32::try_from(self.inside.len()).expect("checked when they were added");
        all.filter(|&v| self.inside[v as usize]).collect()
    }

    fn insert(&mut self, vertex: u32) {
        debug_assert_eq!(self.holders[vertex as usize], 0);
        self.inside[vertex as usize] = true;
        self.journal.push(vertex);
        self.weight += self.graph.weight[vertex as usize];
        let at = self.position[vertex as usize] as usize;
        self.outside.swap_remove(at);
        if let Some(&moved) = self.outside.get(at) {
            self.position[moved as usize] = self.position[vertex as usize];
        }
        for &n in &self.graph.neighbours[vertex as usize] {
            self.tight[n as usize] += self.graph.weight[vertex as usize];
            self.holders[n as usize] += 1;
        }
    }

    fn remove(&mut self, vertex: u32) {
        self.inside[vertex as usize] = false;
        self.journal.push(vertex);
        self.open.push(vertex);
        self.weight -= self.graph.weight[vertex as usize];
        self.position[vertex as usize] = u32::try_from(self.outside.len()).expect("few");
        self.outside.push(vertex);
        for &n in &self.graph.neighbours[vertex as usize] {
            self.tight[n as usize] -= self.graph.weight[vertex as usize];
            self.holders[n as usize] -= 1;
            self.open.push(n);
        }
    }

    fn undo(&mut self) {
        for vertex in std::mem::take(&mut self.journal).into_iter().rev() {
            if self.inside[vertex as usize] { self.remove(vertex) } else { self.insert(vertex) }
        }
        self.open.clear();
    }

    /// Puts `vertex` in, and out the vertices in its way.
    fn force(&mut self, vertex: u32) {
        let graph = self.graph;
        for &n in &graph.neighbours[vertex as usize] {
            if self.inside[n as usize] {
                self.remove(n);
            }
        }
        self.insert(vertex);
    }

    /// Swaps until no swap pays: one vertex for all in its way, or two vertices for one.
    fn improve(&mut self) {
        let graph = self.graph;
        while let Some(vertex) = self.open.pop() {
            if self.inside[vertex as usize] {
                continue;
            }
            if graph.weight[vertex as usize] > self.tight[vertex as usize] {
                self.force(vertex);
            } else if self.holders[vertex as usize] == 1 {
                let holder = graph.neighbours[vertex as usize]
                    .iter()
                    .copied()
                    .find(|&n| self.inside[n as usize])
                    .expect("one holds it");
                self.two_for(holder, vertex);
            }
        }
    }

    /// Swaps `holder` for `one` and another that only it is in the way of, if they weigh more.
    fn two_for(&mut self, holder: u32, one: u32) {
        let graph = self.graph;
        let enough = graph.weight[holder as usize] - graph.weight[one as usize];
        let other = graph.neighbours[holder as usize].iter().copied().find(|&other| {
            self.holders[other as usize] == 1
                && other != one
                && graph.weight[other as usize] > enough
                && !graph.joined(one, other)
        });
        if let Some(other) = other {
            self.remove(holder);
            self.insert(one);
            self.insert(other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(weights: &[u64], edges: &[(u32, u32)]) -> Graph {
        let mut graph = Graph::default();
        for &weight in weights {
            graph.add(weight);
        }
        for &(a, b) in edges {
            graph.join(a, b);
        }
        graph
    }

    /// All subsets.
    fn optimum(graph: &Graph) -> u64 {
        let count = graph.weight.len();
        let mut best = 0;
        for subset in 0u32..1 << count {
            let inside = |v: usize| subset >> v & 1 == 1;
            let independent = (0..count)
                .filter(|&v| inside(v))
                .all(|v| graph.neighbours[v].iter().all(|&n| !inside(n as usize)));
            if independent {
                best = best.max((0..count).filter(|&v| inside(v)).map(|v| graph.weight[v]).sum());
            }
        }
        best
    }

    #[test]
    fn a_path_is_solved_by_its_ends() {
        let path = graph(&[1; 5], &[(0, 1), (1, 2), (2, 3), (3, 4)]);
        assert_eq!(path.independent_set(0, 0), [0, 2, 4]);
        let heavy = graph(&[1, 5, 1], &[(0, 1), (1, 2)]);
        assert_eq!(heavy.independent_set(0, 0), [1]);
    }

    #[test]
    fn a_vertex_that_left_is_in_no_set() {
        let mut star = graph(&[9, 1, 1], &[(0, 1), (0, 2)]);
        star.remove(0);
        assert_eq!(star.independent_set(0, 0), [1, 2]);
        assert_eq!(star.add(1), 0);
        assert_eq!(star.independent_set(0, 0), [0, 1, 2]);
    }

    /// Random graphs of up to 14 vertices: how often the optimum is found. The rate is stated in
    /// docs/design/015-trees.md; should it fall, something broke.
    #[test]
    fn small_graphs_are_solved_nearly_always() {
        let mut rng = fastrand::Rng::with_seed(11);
        let (mut solved, mut lost, mut all) = (0, 0, 0);
        for _ in 0..2000 {
            let count = rng.usize(3..15);
            let weights: Vec<u64> = (0..count).map(|_| rng.u64(1..20)).collect();
            let density = rng.f64();
            let mut edges = Vec::new();
            for a in 0..count {
                for b in a + 1..count {
                    if rng.f64() < density {
                        edges
                            .push((u32::try_from(a).expect("few"), u32::try_from(b).expect("few")));
                    }
                }
            }
            let graph = graph(&weights, &edges);
            let set = graph.independent_set(20, 1);
            for &v in &set {
                assert!(graph.neighbours(v).iter().all(|n| !set.contains(n)));
            }
            let found: u64 = set.iter().map(|&v| graph.weight[v as usize]).sum();
            let best = optimum(&graph);
            assert!(found <= best);
            solved += u32::from(found == best);
            (lost, all) = (lost + best - found, all + best);
        }
        assert!(solved >= 1990, "{solved} of 2000 solved, {lost} of {all} lost");
    }
}
