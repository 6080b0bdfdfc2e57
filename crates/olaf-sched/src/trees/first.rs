//! The first tree that conflicts with nobody's.

use super::{Arrival, Forest, Reason};
use crate::Tree;
use std::sync::Arc;

pub(super) fn choose(forest: &Forest, arrival: &Arrival) -> (Option<Arc<Tree>>, Reason) {
    let roots = Tree::roots(&forest.topology, &arrival.hosts);
    if roots.is_empty() {
        return (None, Reason::OneHost);
    }
    let candidates = roots.len();
    for root in roots {
        if let Some(tree) = Tree::to(&forest.topology, &arrival.hosts, root)
            && forest.fits(&tree, arrival.units)
        {
            return (Some(Arc::new(tree)), Reason::Alone);
        }
    }
    (None, Reason::Conflict { candidates })
}
