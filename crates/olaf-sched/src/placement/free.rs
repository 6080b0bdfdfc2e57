//! Which hosts are free, pod by pod, and how many fragments they are.

use super::choice::Choice;
use super::regular::{LEVELS, Shape};
use crate::HostId;
use crate::topology::{PodId, Pods};

/// What jobs hold, what is drained, and what is left.
#[derive(Clone, Debug)]
pub(super) struct Free {
    pods: Pods,
    held: Vec<bool>,
    drained: Vec<bool>,
    free: Vec<bool>,
    usable: u32,
    tallies: Vec<Tally>,
    shape: Option<Shape>,
}

/// What is known of one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tally {
    parent: Option<PodId>,
    /// Pods and single hosts that it is made of.
    parts: u32,
    /// The cluster is regular: levels above the hosts. Else 0.
    level: u32,
    /// Hosts.
    size: u32,
    /// Of them free.
    pub(super) free: u32,
    /// What the free ones are.
    pub(super) fragments: Fragments,
}

/// Fragments of free hosts (MINA §III-B): pods that are all free and in no larger one that is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fragments {
    pub(super) all: u32,
    /// In a regular cluster: how many are of each level, hosts first.
    pub(super) of_level: [u32; LEVELS],
}

impl Fragments {
    /// `count` fragments, all of one level.
    pub(super) fn alike(count: u32, level: u32) -> Self {
        let mut fragments = Self { all: count, ..Self::default() };
        fragments.of_level[level as usize] = count;
        fragments
    }

    /// These with `more`, without `less`, which were among them.
    pub(super) fn exchange(mut self, less: &Self, more: &Self) -> Self {
        self.all = self.all + more.all - less.all;
        for (level, count) in self.of_level.iter_mut().enumerate() {
            *count = *count + more.of_level[level] - less.of_level[level];
        }
        self
    }
}

impl Tally {
    const fn is_whole(&self) -> bool {
        self.free == self.size
    }

    /// What its parts are, whether or not they are one fragment together.
    pub(super) fn inside(&self) -> Fragments {
        if self.is_whole() {
            return Fragments::alike(self.parts, self.level.saturating_sub(1));
        }
        self.fragments
    }
}

impl Free {
    /// Every host of the cluster.
    pub(super) fn all(pods: Pods) -> Self {
        let hosts = pods.order().len();
        let shape = Shape::of(&pods);
        let height = shape.as_ref().map_or(0, Shape::height);
        let tallies = pods.all().iter().map(|pod| {
            let level = height.saturating_sub(pod.depth);
            let size = pod.places.end - pod.places.start;
            Tally {
                parent: pod.parent,
                parts: u32::try_from(pod.parts.len()).expect("fewer parts than hosts"),
                level,
                size,
                free: size,
                fragments: Fragments::alike(1, level),
            }
        });
        Self {
            tallies: tallies.collect(),
            pods,
            held: vec![false; hosts],
            drained: vec![false; hosts],
            free: vec![true; hosts],
            usable: u32::try_from(hosts).expect("a topology has fewer than 2^32 hosts"),
            shape,
        }
    }

    pub(super) fn take(&mut self, hosts: &[HostId], choice: &mut Choice) {
        for &host in hosts {
            assert!(!self.held[host.index()], "host {} is taken twice", host.0);
            self.held[host.index()] = true;
        }
        self.update(hosts, choice);
    }

    pub(super) fn release(&mut self, hosts: &[HostId], choice: &mut Choice) {
        for &host in hosts {
            assert!(self.held[host.index()], "host {} is released twice", host.0);
            self.held[host.index()] = false;
        }
        self.update(hosts, choice);
    }

    pub(super) fn drain(&mut self, host: HostId, choice: &mut Choice) -> bool {
        let before = std::mem::replace(&mut self.drained[host.index()], true);
        self.usable -= u32::from(!before);
        self.update(&[host], choice);
        !before
    }

    pub(super) fn undrain(&mut self, host: HostId, choice: &mut Choice) -> bool {
        let before = std::mem::replace(&mut self.drained[host.index()], false);
        self.usable += u32::from(before);
        self.update(&[host], choice);
        before
    }

    /// `hosts` may have become free, or not free: all that are side by side in a smallest pod count
    /// in one walk up.
    fn update(&mut self, hosts: &[HostId], choice: &mut Choice) {
        let mut at = 0;
        while at < hosts.len() {
            let pod = self.pods.smallest(hosts[at]);
            let (mut more, mut less) = (0, 0);
            while at < hosts.len() && self.pods.smallest(hosts[at]) == pod {
                let host = hosts[at];
                let free = !self.held[host.index()] && !self.drained[host.index()];
                if free != self.free[host.index()] {
                    self.free[host.index()] = free;
                    choice.changed(host);
                    *if free { &mut more } else { &mut less } += 1;
                }
                at += 1;
            }
            if more > 0 || less > 0 {
                self.climb(pod, more, less);
            }
        }
    }

    /// `more` single hosts of `pod`, in none of its lower pods, became free; `less` are free no
    /// more.
    fn climb(&mut self, pod: PodId, more: u32, less: u32) {
        let (mut before, mut after) = (Fragments::alike(less, 0), Fragments::alike(more, 0));
        let mut above = Some(pod);
        while let Some(pod) = above {
            let tally = &mut self.tallies[pod.index()];
            let inside = tally.inside().exchange(&before, &after);
            before = tally.fragments;
            tally.free = tally.free + more - less;
            let whole = tally.is_whole();
            tally.fragments = if whole { Fragments::alike(1, tally.level) } else { inside };
            after = tally.fragments;
            above = tally.parent;
        }
    }

    /// Free hosts, as numbered.
    pub(super) fn hosts(&self) -> impl Iterator<Item = HostId> + '_ {
        (0u32..).zip(&self.free).filter(|(_, free)| **free).map(|(number, _)| HostId(number))
    }

    /// Free hosts of a range of places, from left to right.
    pub(super) fn at(&self, places: std::ops::Range<u32>) -> impl Iterator<Item = HostId> + '_ {
        let hosts = &self.pods.order()[places.start as usize..places.end as usize];
        hosts.iter().copied().filter(|&host| self.is_free(host))
    }

    pub(super) fn is_free(&self, host: HostId) -> bool {
        self.free[host.index()]
    }

    pub(super) fn is_drained(&self, host: HostId) -> bool {
        self.drained[host.index()]
    }

    pub(super) fn tally(&self, pod: PodId) -> &Tally {
        &self.tallies[pod.index()]
    }

    pub(super) fn fragments(&self) -> u32 {
        self.tallies[0].fragments.all
    }

    pub(super) const fn pods(&self) -> &Pods {
        &self.pods
    }

    pub(super) const fn shape(&self) -> Option<&Shape> {
        self.shape.as_ref()
    }

    pub(super) fn left(&self) -> u32 {
        self.tallies[0].free
    }

    pub(super) const fn usable(&self) -> u32 {
        self.usable
    }

    #[cfg(test)]
    pub(super) fn tallies(&self) -> &[Tally] {
        &self.tallies
    }

    pub(super) fn cluster(&self) -> u32 {
        self.tallies[0].size
    }
}
