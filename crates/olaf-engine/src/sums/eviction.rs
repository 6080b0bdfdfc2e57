//! Which job gives its place to a new one, where an authority has as many jobs as it may have.

use crate::ids::PeerId;
use crate::party::gives_way;
use alloc::vec::Vec;

/// A job that holds a place.
#[derive(Clone, Debug)]
pub struct Held<Id> {
    /// Its name.
    pub id: Id,
    /// Nobody has been heard of it for the silence that makes a worker count as dead.
    pub is_deserted: bool,
    /// Where its workers wait, if it never had a generation. None: it had one.
    pub unbegun: Option<Vec<PeerId>>,
}

/// A job that loses its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted<Id> {
    /// Its name.
    pub id: Id,
    /// Workers that waited in it, and are turned away with it.
    pub turned_away: usize,
}

/// The job whose place the first job of `peer` takes: a deserted one, which nobody misses, or else one that never
/// began, by the rule of [`gives_way`]. A job whose workers live is never evicted after it has begun.
pub fn evicted<Id: Copy + PartialEq>(
    peer: PeerId,
    jobs: impl IntoIterator<Item = Held<Id>>,
) -> Option<Evicted<Id>> {
    let mut unbegun = Vec::new();
    for Held { id, is_deserted, unbegun: waiting } in jobs {
        if is_deserted {
            return Some(Evicted { id, turned_away: 0 });
        }
        unbegun.extend(waiting.map(|waiting| (id, waiting)));
    }
    let id = gives_way(peer, &unbegun)?;
    let waiting =
        unbegun.iter().find(|(one, _)| *one == id).map_or(0, |(_, waiting)| waiting.len());
    Some(Evicted { id, turned_away: waiting })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const A: PeerId = PeerId(1);
    const B: PeerId = PeerId(2);

    fn running(id: u8) -> Held<u8> {
        Held { id, is_deserted: false, unbegun: None }
    }

    fn unbegun(id: u8, waiting: &[PeerId]) -> Held<u8> {
        Held { unbegun: Some(waiting.to_vec()), ..running(id) }
    }

    #[test]
    fn a_job_that_nobody_is_in_goes_first() {
        let deserted = Held { is_deserted: true, ..running(3) };
        let jobs = [running(1), unbegun(2, &[A, A]), deserted];
        assert_eq!(evicted(B, jobs), Some(Evicted { id: 3, turned_away: 0 }));
    }

    #[test]
    fn a_job_that_never_began_goes_next_with_its_workers() {
        let jobs = [running(1), unbegun(2, &[A, A])];
        assert_eq!(evicted(B, jobs), Some(Evicted { id: 2, turned_away: 2 }));
    }

    #[test]
    fn an_address_takes_no_place_from_itself_and_none_of_a_job_that_runs() {
        assert_eq!(evicted(A, [running(1), unbegun(2, &[A])]), None);
        assert_eq!(evicted(B, vec![running(1)]), None);
    }
}
