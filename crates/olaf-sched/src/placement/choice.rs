//! The policies behind one door: what each keeps between placements.

use super::free::Free;
use super::regular::{self, Shape};
use super::tables::Tables;
use super::{MOST_ALPHA_MILLIS, Policy, first_fit, random};
use crate::HostId;

/// A policy and what it remembers.
#[derive(Clone, Debug)]
pub(super) enum Choice {
    FirstFit,
    Random(fastrand::Rng),
    /// Fewest fragments in a cluster whose pods of each level are all alike.
    Regular {
        shape: Shape,
        alpha: u32,
    },
    /// Fewest fragments anywhere.
    Tables(Box<Tables>),
}

/// Hosts, ascending, and the score that made them the choice; 0 where there is none.
pub(super) struct Chosen {
    pub(super) hosts: Vec<HostId>,
    pub(super) score_millis: u64,
}

impl Choice {
    pub(super) fn new(policy: Policy, free: &Free) -> Self {
        match policy {
            Policy::FirstFit => Self::FirstFit,
            Policy::Random { seed } => Self::Random(fastrand::Rng::with_seed(seed)),
            Policy::Fragments { alpha_millis: alpha } => {
                assert!(alpha <= MOST_ALPHA_MILLIS, "alpha_millis {alpha} > {MOST_ALPHA_MILLIS}");
                match free.shape() {
                    Some(shape) if alpha <= 1000 => Self::Regular { shape: *shape, alpha },
                    _ => Self::Tables(Box::new(Tables::new(free.pods(), alpha))),
                }
            }
        }
    }

    /// Chooses `count` of the free hosts; at least `count` are free.
    pub(super) fn choose(&mut self, free: &Free, count: u32) -> Chosen {
        let (mut hosts, score_millis) = match self {
            Self::FirstFit => (first_fit::choose(free, count), 0),
            Self::Random(rng) => (random::choose(free, count, rng), 0),
            Self::Regular { shape, alpha } => regular::choose(free, shape, *alpha, count),
            Self::Tables(tables) => tables.choose(free, count),
        };
        // As numbered: in an odd graph a pod's hosts lie apart.
        if !hosts.is_sorted() {
            hosts.sort_unstable();
        }
        Chosen { hosts, score_millis }
    }

    /// A host became free, or is no more.
    pub(super) fn changed(&mut self, host: HostId) {
        if let Self::Tables(tables) = self {
            tables.changed(host);
        }
    }
}
