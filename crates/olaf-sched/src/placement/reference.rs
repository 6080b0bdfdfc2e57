//! MINA §III-B to the letter, slowly: every set of free hosts is looked at.

use crate::HostId;
use crate::topology::{Part, PodId, Pods};

/// Fragments of the hosts that are `in_set`: one where all are, none where none is, else those of
/// the parts.
pub(super) fn fragments(pods: &Pods, pod: PodId, in_set: &dyn Fn(HostId) -> bool) -> u32 {
    let hosts = pods.hosts(pod);
    if hosts.iter().all(|&host| in_set(host)) {
        return 1;
    }
    let of_part = |part: &Part| match *part {
        Part::Pod(pod) => fragments(pods, pod, in_set),
        Part::Host(host) => u32::from(in_set(host)),
    };
    pods.pod(pod).parts.iter().map(of_part).sum()
}

/// The score of giving `taken` of the hosts that are `free` to a job.
pub(super) fn score(pods: &Pods, free: &[HostId], taken: &[HostId], alpha: u32) -> u64 {
    let job = fragments(pods, PodId::CLUSTER, &|host| taken.contains(&host));
    let rest = |host| free.contains(&host) && !taken.contains(&host);
    let left = fragments(pods, PodId::CLUSTER, &rest);
    1000 * u64::from(job) + u64::from(alpha) * u64::from(left)
}

/// The least score of any `count` of the hosts that are `free`.
pub(super) fn least_score(pods: &Pods, free: &[HostId], count: usize, alpha: u32) -> u64 {
    let sets = (0u32..1 << free.len()).filter(|set| set.count_ones() as usize == count);
    let scores = sets.map(|set| {
        let taken: Vec<_> =
            (0..free.len()).filter(|bit| set >> bit & 1 == 1).map(|bit| free[bit]).collect();
        score(pods, free, &taken, alpha)
    });
    scores.min().expect("the caller checked that enough hosts are free")
}

/// Of all sets with the least score, the one that [`Policy::Fragments`](super::Policy) promises:
/// fewest hosts in the last part, then in the last but one, and so on within each pod.
pub(super) fn choice(pods: &Pods, free: &[HostId], count: usize, alpha: u32) -> Vec<HostId> {
    let least = least_score(pods, free, count, alpha);
    let sets = (0u32..1 << free.len()).filter(|set| set.count_ones() as usize == count);
    let taken = sets
        .map(|set| {
            let bits = (0..free.len()).filter(|bit| set >> bit & 1 == 1);
            bits.map(|bit| free[bit]).collect::<Vec<_>>()
        })
        .filter(|taken| score(pods, free, taken, alpha) == least);
    let first = taken.min_by_key(|taken| order(pods, PodId::CLUSTER, taken));
    let mut taken = first.expect("the caller checked that enough hosts are free");
    taken.sort_unstable();
    taken
}

/// What the promised choice has the least of: hosts in each part from the last on, part by part; and
/// then the same within the parts.
fn order(pods: &Pods, pod: PodId, taken: &[HostId]) -> Vec<u32> {
    let parts = &pods.pod(pod).parts;
    let count = |part: &Part| match *part {
        Part::Pod(pod) => taken.iter().filter(|&&host| pods.contains(pod, host)).count() as u32,
        Part::Host(host) => u32::from(taken.contains(&host)),
    };
    let here = parts.iter().rev().map(count);
    let within = parts.iter().rev().filter_map(|part| match *part {
        Part::Pod(pod) => Some(order(pods, pod, taken)),
        Part::Host(_) => None,
    });
    here.chain(within.flatten()).collect()
}
