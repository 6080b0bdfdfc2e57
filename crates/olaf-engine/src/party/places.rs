//! Which job gives its place to a new one, where a party that sums has all its jobs.

use crate::ids::PeerId;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The job that gives way to one that `peer` wants to begin. `unbegun` are the jobs whose workers were never all here, and
/// who waits in each of them. Each address that waits has some of them; a job counts for the address that has the
/// fewest. The job whose address has the most gives way, if the peer has fewer.
///
/// Example: A waits in jobs 1, 2 and 3, and B in job 3 alone. C takes the place of job 1 or 2.
#[must_use]
pub fn gives_way<Id: Copy>(peer: PeerId, unbegun: &[(Id, Vec<PeerId>)]) -> Option<Id> {
    let mut held: BTreeMap<PeerId, usize> = BTreeMap::new();
    for waiting in unbegun.iter().flat_map(|(_, peers)| peers) {
        *held.entry(*waiting).or_default() += 1;
    }
    let own = held.get(&peer).copied().unwrap_or(0);
    let held_by = |peers: &[PeerId]| peers.iter().map(|peer| held[peer]).min();
    let each = unbegun.iter().map(|(id, peers)| (*id, held_by(peers).unwrap_or(usize::MAX)));
    each.filter(|(_, held)| *held > own).max_by_key(|(_, held)| *held).map(|(id, _)| id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn the_address_that_has_the_most_jobs_gives_one_away() {
        let [a, b, c] = [1, 2, 3].map(PeerId);
        let unbegun = [(1, vec![a]), (2, vec![a]), (3, vec![a, b])];
        assert_eq!(gives_way(c, &unbegun), Some(2));
        assert_eq!(gives_way(b, &unbegun), Some(2));
        assert_eq!(gives_way(a, &unbegun), None, "it has the most itself");
        assert_eq!(gives_way(c, &[(1, vec![a]), (2, vec![])]), Some(2), "nobody waits there");
        assert_eq!(gives_way::<u8>(c, &[]), None, "all jobs have begun");
    }
}
