//! Any tree of switches (ATP §A.2): as many levels as it needs, a bitmap each.
//!
//! A switch with more than 32 members has them meet in groups of 32, and these groups again: it has
//! several levels. A switch begins at the level behind the highest one of its members. Where a member
//! ends at a lower level, it has the levels in between as well, with nobody else.

use super::{Path, Seat};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use olaf_wire::atp::{BITS, LEVELS};

const GROUP: usize = BITS as usize;

/// A switch, with the switches and workers below it.
///
/// It is known by its whole way to the server. Joins that contradict each other thus make no circle.
#[derive(Debug, Default)]
struct Node {
    below: BTreeMap<u32, Self>,
    ranks: Vec<u32>,
}

/// Levels for as many members.
fn levels_of(members: usize) -> usize {
    let mut levels = 1;
    while GROUP.pow(levels) < members {
        levels += 1;
    }
    levels as usize
}

impl Node {
    fn members(&self) -> usize {
        self.below.len() + self.ranks.len()
    }

    /// The level that its members meet at first.
    fn begins(&self) -> usize {
        self.below.values().map(Self::ends).max().unwrap_or(0)
    }

    /// The level behind its last one.
    fn ends(&self) -> usize {
        self.begins() + levels_of(self.members())
    }

    /// What adds anything: a last switch with a single switch below it adds nothing.
    fn trimmed(mut self) -> Self {
        while self.ranks.is_empty() && self.below.len() == 1 {
            let Some((_, only)) = self.below.pop_first() else { break };
            self = only;
        }
        self
    }
}

/// The trees that no common switch unites, and the workers without a switch.
#[derive(Debug, Default)]
struct Forest {
    trees: Vec<Node>,
    alone: Vec<u32>,
}

impl Forest {
    fn new(paths: &[Path]) -> Self {
        let (mut roots, mut alone) = (BTreeMap::<u32, Node>::new(), Vec::new());
        for (rank, path) in (0..).zip(paths) {
            let mut way = path.switches().rev();
            let Some(last) = way.next() else {
                alone.push(rank);
                continue;
            };
            let root = roots.entry(last).or_default();
            let node = way.fold(root, |node, id| node.below.entry(id).or_default());
            node.ranks.push(rank);
        }
        Self { trees: roots.into_values().map(Node::trimmed).collect(), alone }
    }

    /// Levels that tell the trees apart. Nothing meets there.
    fn apart(&self) -> usize {
        match self.trees.len() + usize::from(!self.alone.is_empty()) {
            0 | 1 => 0,
            parts => levels_of(parts),
        }
    }

    fn highest(&self) -> usize {
        let alone = if self.alone.is_empty() { 0 } else { levels_of(self.alone.len()) };
        self.trees.iter().map(Node::ends).max().unwrap_or(0).max(alone)
    }

    /// Where the bitmaps do not reach, the last switches of the highest trees add nothing.
    fn fit(&mut self) {
        while self.highest() + self.apart() > LEVELS && !self.trees.is_empty() {
            let highest = self.trees.iter().map(Node::ends).max();
            let (high, rest) = core::mem::take(&mut self.trees)
                .into_iter()
                .partition(|tree| Some(tree.ends()) == highest);
            self.trees = rest;
            for tree in Vec::<Node>::into_iter(high) {
                self.alone.extend(tree.ranks);
                self.trees.extend(tree.below.into_values().map(Node::trimmed));
            }
        }
    }
}

/// Gives members their bits at the levels from `begins` on, up to `ends`. `fan_in`: how many meet.
fn sit(
    seat: &mut Seat,
    member: usize,
    members: usize,
    levels: core::ops::Range<usize>,
    meets: bool,
) {
    let (mut member, mut members) = (member, members);
    for level in levels {
        let first = member - member % GROUP;
        let group = if meets { (members - first).min(GROUP) } else { 1 };
        seat.bitmaps[level] = 1 << (member % GROUP);
        seat.fan_ins[level] = u8::try_from(group).unwrap_or(u8::MAX);
        (member, members) = (member / GROUP, members.div_ceil(GROUP));
    }
}

/// Seats everyone below a switch whose levels end at `ends`. `seat` has the levels from there on.
fn seat_below(node: &Node, ends: usize, seat: &Seat, seats: &mut [Seat]) {
    let (begins, members) = (node.begins(), node.members());
    let mut seat = *seat;
    seat.level = u8::try_from(begins).unwrap_or(u8::MAX);
    seat.same_switch[begins..ends - 1].fill(true);
    for (member, below) in node.below.values().enumerate() {
        let mut seat = seat;
        sit(&mut seat, member, members, begins..node.ends(), true);
        seat_below(below, begins, &seat, seats);
    }
    for (member, rank) in (node.below.len()..).zip(&node.ranks) {
        let mut seat = seat;
        sit(&mut seat, member, members, begins..node.ends(), true);
        seats[*rank as usize] = seat;
    }
}

/// Seats workers by their paths; also the levels that this takes.
pub(super) fn seats(paths: &[Path]) -> (Vec<Seat>, usize) {
    let mut forest = Forest::new(paths);
    forest.fit();
    forest.alone.sort_unstable();
    let mut seats = alloc::vec![Seat::default(); paths.len()];
    let (highest, apart) = (forest.highest(), forest.apart());
    let levels = (highest + apart).min(LEVELS);
    let parts = forest.trees.len() + usize::from(!forest.alone.is_empty());
    for (part, tree) in forest.trees.iter().enumerate() {
        let mut seat = Seat::default();
        sit(&mut seat, part, parts, highest..levels, false);
        seat_below(tree, highest, &seat, &mut seats);
    }
    for (member, rank) in forest.alone.iter().enumerate() {
        let mut seat = Seat { alone: true, ..Seat::default() };
        sit(&mut seat, forest.trees.len(), parts, highest..levels, false);
        sit(&mut seat, member, forest.alone.len(), 0..highest, false);
        seats[*rank as usize] = seat;
    }
    (seats, levels)
}
