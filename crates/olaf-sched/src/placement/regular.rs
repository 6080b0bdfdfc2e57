//! Fewest fragments where all pods of a level are alike: fat trees, leaf-spines.
//!
//! The score of a choice depends only on the free fragments that it uses (MINA §III-B). A pod that
//! is not all free is never one fragment, neither of the job nor of the free hosts: it adds nothing
//! to the scores of its parts. A pod, or the cluster, is therefore described by its number of free
//! fragments of each level. Example: 3 single hosts, 2 ToR switches and 1 pod. A job takes some of
//! them whole, breaks some into their parts, and takes parts.
//!
//! - Of each level it breaks one at most. Of two that are broken, swap parts until one has all the
//!   job's or none: by induction at most one part of both is broken itself, so that one of the two
//!   becomes whole, which makes the score less, or no more at alpha 0.
//! - With those broken that are to be, each fragment that is taken turns alpha into 1. For alpha up
//!   to 1 the fewest are best, that is, the largest first, as each size divides the next.
//!
//! That is an exact score in a handful of divisions, whatever the size of job and cluster. The
//! tables of the paper's Algorithm 1 (`tables.rs`) give the same hosts; tests hold the two together.

use super::free::{Fragments, Free};
use crate::HostId;
use crate::topology::{Part, PodId, Pods};

/// Levels of hosts and pods that a regular cluster has at most.
pub(super) const LEVELS: usize = 8;

/// How many parts a pod of each level has, and hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    height: usize,
    parts: [u32; LEVELS],
    hosts: [u32; LEVELS],
    inverse: [u64; LEVELS],
}

impl Shape {
    /// None where pods of one level differ.
    pub(super) fn of(pods: &Pods) -> Option<Self> {
        let inverse = [Self::inverse(1); LEVELS];
        let mut shape = Self { height: 0, parts: [0; LEVELS], hosts: [1; LEVELS], inverse };
        let mut pod = PodId::CLUSTER;
        let mut way = vec![pod];
        while let Some(Part::Pod(first)) = pods.pod(pod).parts.first() {
            pod = *first;
            way.push(pod);
        }
        shape.height = Some(way.len()).filter(|&height| height < LEVELS)?;
        for (level, pod) in (1..).zip(way.iter().rev()) {
            shape.parts[level] = u32::try_from(pods.pod(*pod).parts.len()).ok()?;
            shape.hosts[level] = shape.hosts[level - 1] * shape.parts[level];
            shape.inverse[level] = Self::inverse(shape.hosts[level]);
        }
        let alike = pods.all().iter().all(|pod| {
            let level = shape.height.saturating_sub(pod.depth as usize);
            pod.parts.len() as u64 == u64::from(shape.parts[level])
                && pod.parts.iter().all(|part| matches!(part, Part::Host(_)) == (level == 1))
        });
        alike.then_some(shape)
    }

    /// The cluster's level; hosts are at 0.
    pub(super) fn height(&self) -> u32 {
        u32::try_from(self.height).expect("fewer than LEVELS")
    }

    /// `count / self.hosts[level]`, by a multiplication: half of a placement's time is spent here.
    /// Exact, as count and hosts are 2^20 at most: the product is off by less than 2^20 / 2^42.
    fn whole(&self, level: usize, count: u32) -> u32 {
        ((u64::from(count) * self.inverse[level]) >> 42) as u32
    }

    const fn inverse(hosts: u32) -> u64 {
        (1_u64 << 42).div_ceil(hosts as u64)
    }
}

/// Free fragments that a choice is made from.
struct Stock<'a> {
    shape: &'a Shape,
    alpha: u64,
    fragments: &'a Fragments,
    /// Of each level: hosts of the fragments below it.
    below: [u32; LEVELS],
}

/// Fragments of levels that are decided.
#[derive(Clone, Copy)]
struct Taken {
    /// Of the job.
    whole: u32,
    /// Not of the job, those of levels to come among them.
    left: u32,
}

impl<'a> Stock<'a> {
    fn new(shape: &'a Shape, alpha: u64, fragments: &'a Fragments) -> Self {
        let mut below = [0; LEVELS];
        for level in 1..=shape.height {
            let hosts = fragments.of_level[level - 1] * shape.hosts[level - 1];
            below[level] = below[level - 1] + hosts;
        }
        Self { shape, alpha, fragments, below }
    }

    /// The least score, in thousandths, of taking `count` hosts. At least `count` are free.
    fn score(&self, count: u32) -> u64 {
        self.from(self.shape.height, 0, count, Taken { whole: 0, left: self.fragments.all })
    }

    /// The same, of fragments of `level` and below, `more` of that level beside those listed: parts
    /// of a broken one.
    fn from(&self, level: usize, more: u32, count: u32, taken: Taken) -> u64 {
        let there = self.fragments.of_level[level] + more;
        if level == 0 {
            return self.sum(Taken { whole: taken.whole + count, left: taken.left - count });
        }
        if there == 0 {
            return self.from(level - 1, 0, count, taken);
        }
        let whole = there.min(self.shape.whole(level, count));
        let taken = Taken { whole: taken.whole + whole, left: taken.left - whole };
        let count = count - whole * self.shape.hosts[level];
        if count == 0 {
            return self.sum(taken);
        }
        // One that stays, if one does, may be broken; it must be where those below are too few.
        let kept = (count <= self.below[level]).then(|| self.from(level - 1, 0, count, taken));
        let broken = (whole < there).then(|| {
            let parts = self.shape.parts[level];
            self.from(level - 1, parts, count, Taken { left: taken.left + parts - 1, ..taken })
        });
        match (kept, broken) {
            (Some(kept), Some(broken)) => kept.min(broken),
            (kept, broken) => kept.or(broken).expect("no more hosts than there are"),
        }
    }

    fn sum(&self, taken: Taken) -> u64 {
        1000 * u64::from(taken.whole) + self.alpha * u64::from(taken.left)
    }
}

/// `count` of the free hosts, and their score.
pub(super) fn choose(free: &Free, shape: &Shape, alpha: u32, count: u32) -> (Vec<HostId>, u64) {
    let mut pick =
        Pick { free, shape, alpha: alpha.into(), hosts: Vec::with_capacity(count as usize) };
    let cluster = free.tally(PodId::CLUSTER);
    let score = if count == cluster.free {
        // What is taken is all: fragments of the job, where they were free ones.
        1000 * u64::from(cluster.fragments.all)
    } else {
        Stock::new(shape, pick.alpha, &cluster.inside()).score(count)
    };
    pick.pod(PodId::CLUSTER, count);
    (pick.hosts, score)
}

struct Pick<'a> {
    free: &'a Free,
    shape: &'a Shape,
    alpha: u64,
    hosts: Vec<HostId>,
}

impl Pick<'_> {
    /// Takes `count` hosts of the pod, more than none: of the choices with the least score, the one
    /// with the fewest in the last part, then in the last but one, and so on.
    fn pod(&mut self, pod: PodId, count: u32) {
        let (places, tally) = (self.free.pods().pod(pod), self.free.tally(pod));
        if count == tally.free || matches!(places.parts[0], Part::Host(_)) {
            let hosts = self.free.at(places.places.clone()).take(count as usize);
            return self.hosts.extend(hosts);
        }
        let mut before = tally.inside();
        let mut hosts_before = tally.free;
        let mut left = count;
        let mut taken = Vec::new();
        let mut target = Stock::new(self.shape, self.alpha, &before).score(count);
        for part in places.parts.iter().rev() {
            let Part::Pod(part) = *part else { unreachable!("parts of one pod are alike") };
            let tally = self.free.tally(part);
            if tally.free == 0 {
                continue;
            }
            before = before.exchange(&tally.fragments, &Fragments::default());
            hosts_before -= tally.free;
            let rest = Stock::new(self.shape, self.alpha, &before);
            let own = Stock::new(self.shape, self.alpha, &tally.fragments);
            let (here, score) = (left.saturating_sub(hosts_before)..=tally.free.min(left))
                .map(|here| (here, own.score(here)))
                .find(|&(here, score)| score + rest.score(left - here) == target)
                .expect("the least score is that of some choice");
            if here > 0 {
                taken.push((part, here));
                left -= here;
                if left == 0 {
                    break;
                }
            }
            target -= score;
        }
        for (part, here) in taken.into_iter().rev() {
            self.pod(part, here);
        }
    }
}
