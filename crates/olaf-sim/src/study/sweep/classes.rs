//! Every class of phases once, in order: clusters that are equal may change places, and so may
//! equal senders of a cluster.

use super::question::{Kind, Question};

/// Phases, ticks, as an odometer. That of a sender is up to its interval: there it stands for
/// what is hardly below it.
pub(super) struct Classes {
    /// Equal clusters, one after the other.
    groups: Vec<Group>,
    phases: Vec<u64>,
    /// The least phase. Of a share it is 1: a tick stands for the times just up to it, and with 0
    /// senders would also have an update just after the horizon.
    least: u64,
}

struct Group {
    /// Kinds of senders that each of these clusters has.
    kinds: Vec<SenderKind>,
    /// Of each cluster its senders, kind by kind.
    clusters: Vec<Vec<usize>>,
}

#[derive(PartialEq, Eq)]
struct SenderKind {
    interval: u64,
    count: usize,
}

/// What two clusters must share to change places.
type Alike = (u32, bool, Vec<u64>);

impl Classes {
    /// At the first class, where all phases are the least.
    pub(super) fn new(question: &Question) -> Self {
        let mut keyed: Vec<(Alike, Vec<usize>)> = Vec::new();
        for (cluster, alike) in question.alike.iter().enumerate() {
            let interval = |sender: &usize| question.senders[*sender].interval;
            let mut senders: Vec<usize> = (0..question.senders.len())
                .filter(|sender| question.senders[*sender].cluster == cluster)
                .collect();
            senders.sort_by_key(interval);
            if senders.is_empty() {
                continue;
            }
            let intervals = senders.iter().map(interval).collect();
            keyed.push(((*alike, question.about.contains(&cluster), intervals), senders));
        }
        keyed.sort();
        let groups = keyed
            .chunk_by(|a, b| a.0 == b.0)
            .map(|of_group| Group {
                kinds: of_group[0]
                    .0
                    .2
                    .chunk_by(|a, b| a == b)
                    .map(|same| SenderKind { interval: same[0], count: same.len() })
                    .collect(),
                clusters: of_group.iter().map(|(_, senders)| senders.clone()).collect(),
            })
            .collect();
        let least = least_phase(question.kind);
        Self { groups, phases: vec![least; question.senders.len()], least }
    }

    /// How many there are; `u128::MAX` stands for all that is more.
    pub(super) fn count(&self) -> u128 {
        self.groups.iter().fold(1, |all: u128, group| {
            let states = group.kinds.iter().fold(1, |states: u128, kind| {
                states.saturating_mul(multisets(
                    u128::from(kind.interval + 1 - self.least),
                    kind.count,
                ))
            });
            all.saturating_mul(multisets(states, group.clusters.len()))
        })
    }

    /// The phase of each sender.
    pub(super) fn phases(&self) -> &[u64] {
        &self.phases
    }

    /// Goes to the next class; false where that was the last.
    pub(super) fn advance(&mut self) -> bool {
        for group in &self.groups {
            // The last cluster that can go on does, and those behind it begin where it is, so
            // that no order of equal clusters comes twice.
            for index in (0..group.clusters.len()).rev() {
                let cluster = &group.clusters[index];
                if advance_cluster(&group.kinds, cluster, self.least, &mut self.phases) {
                    for later in &group.clusters[index + 1..] {
                        for (from, to) in cluster.iter().zip(later) {
                            self.phases[*to] = self.phases[*from];
                        }
                    }
                    return true;
                }
            }
        }
        false
    }

    /// What is known of the order within a tick, as pairs of an earlier and a later sender. What is
    /// hardly below its interval is before what is 0 or hardly above. Of senders of one phase that
    /// may change places the first may be taken to be the earlier one.
    pub(super) fn known(&self, question: &Question, mut tell: impl FnMut(usize, usize)) {
        let phases = &self.phases;
        let ends = (0..phases.len()).filter(|s| phases[*s] == question.senders[*s].interval);
        for end in ends {
            for begin in (0..phases.len()).filter(|sender| phases[*sender] == 0) {
                tell(end, begin);
            }
        }
        for group in &self.groups {
            for cluster in &group.clusters {
                let mut start = 0;
                for kind in &group.kinds {
                    for pair in cluster[start..start + kind.count].windows(2) {
                        if phases[pair[0]] == phases[pair[1]] {
                            tell(pair[0], pair[1]);
                        }
                    }
                    start += kind.count;
                }
            }
            for pair in group.clusters.windows(2) {
                if pair[0].iter().zip(&pair[1]).all(|(a, b)| phases[*a] == phases[*b]) {
                    tell(pair[0][0], pair[1][0]);
                }
            }
        }
    }
}

/// The first phase that a sender can have.
pub(super) fn least_phase(kind: Kind) -> u64 {
    u64::from(kind == Kind::Loss)
}

/// The next phases of one cluster's senders, each kind's in ascending order; false, and all of
/// them the least again, where these were the last.
fn advance_cluster(
    kinds: &[SenderKind],
    senders: &[usize],
    least: u64,
    phases: &mut [u64],
) -> bool {
    let mut start = 0;
    for kind in kinds {
        let of_kind = &senders[start..start + kind.count];
        start += kind.count;
        if let Some(at) = of_kind.iter().rposition(|sender| phases[*sender] < kind.interval) {
            let next = phases[of_kind[at]] + 1;
            for sender in &of_kind[at..] {
                phases[*sender] = next;
            }
            return true;
        }
        for sender in of_kind {
            phases[*sender] = least;
        }
    }
    false
}

/// Ways to give `members` that are alike one of `states` each.
fn multisets(states: u128, members: usize) -> u128 {
    let mut ways: u128 = 1;
    for member in 1..=members as u128 {
        let Some(product) = states.checked_add(member - 1).and_then(|n| ways.checked_mul(n)) else {
            return u128::MAX;
        };
        ways = product / member;
    }
    ways
}
