//! A forest as it was, after a restart.
//!
//! What a forest remembers beside its trees (in which order they came, chances to come) is not
//! kept: one that was restored may decide otherwise, from then on, than the one it was made from
//! would have. A caller that needs them to agree goes on with the restored one.

use super::ground::Place;
use super::{Arrival, Config, Forest, Reason};
use crate::{JobId, SwitchId, Topology};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What stands where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Rebuilds so far.
    pub rebuilds: u64,
    /// Switches that no tree may lead through.
    pub drained: Vec<SwitchId>,
    /// Of each running job: its tree.
    pub jobs: Vec<(JobId, Stand)>,
}

/// A job's tree: its root says which, for ways up are found the same again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stand {
    /// None: it does without.
    pub root: Option<SwitchId>,
    /// In the conflict-free set; else it shares.
    pub seated: bool,
    /// Why.
    pub reason: Reason,
}

impl Forest {
    /// What stands where now.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let jobs = self.ground.slots().map(|slot| {
            let member = self.ground.member(slot);
            let root = member.tree.as_ref().map(|tree| tree.root);
            let seated = member.seat().is_some();
            (member.arrival.job, Stand { root, seated, reason: member.reason.clone() })
        });
        Standing {
            rebuilds: self.rebuilds,
            drained: self.drained().collect(),
            jobs: jobs.collect(),
        }
    }

    /// The forest in which these jobs run, and that stands so. A tree that cannot be is left out:
    /// compare with [`Forest::tree`].
    #[must_use]
    pub fn restore(
        topology: Arc<Topology>,
        config: Config,
        arrivals: Vec<Arrival>,
        standing: &Standing,
    ) -> Self {
        let mut forest = Self::with(topology, config);
        forest.rebuilds = standing.rebuilds;
        for switch in &standing.drained {
            if let Some(drained) = forest.ground.drained.get_mut(switch.index()) {
                *drained = true;
            }
        }
        let stands: BTreeMap<JobId, &Stand> =
            standing.jobs.iter().map(|(job, stand)| (*job, stand)).collect();
        let mut entered = Vec::new();
        for arrival in arrivals {
            let stand = stands.get(&arrival.job).copied();
            entered.push((forest.enter(arrival), stand));
        }
        for &(slot, stand) in &entered {
            let Some(root) = stand.and_then(|stand| stand.root) else { continue };
            let roots = &forest.ground.member(slot).candidates.roots;
            if let (Ok(candidate), Some(stand)) = (roots.binary_search(&root), stand) {
                let place = Place { candidate, seated: stand.seated };
                forest.ground.put(slot, Some(place));
            }
        }
        let _ = forest.ground.take_touched();
        for (slot, stand) in entered {
            forest.ground.plant(slot);
            if let Some(stand) = stand {
                forest.ground.set_reason(slot, stand.reason.clone());
            }
        }
        forest
    }
}
