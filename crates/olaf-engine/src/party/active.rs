//! Which clusters count as active, and how long a round of them takes (OLAF §5: N).

use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

/// A cluster that sends once a round is heard once a round: it stays active for this number of
/// rounds.
const ROUNDS: u32 = 3;
/// A cluster that was not heard for this time is not active, however long a round is.
const LONGEST: Duration = Duration::from_secs(600);

/// The active clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Clusters.
    pub clusters: usize,
    /// Time in which the link sends one update of each of them, all its segments; zero where the
    /// time of one is not known.
    pub round: Duration,
    /// Heard within this time means active.
    pub window: Duration,
}

/// Looks at when each cluster was last heard, and how many segments its model has. A cluster is
/// active when heard within `window`, or within three rounds where those are longer: senders that
/// send once a round would otherwise count themselves out, and find the round too short.
#[must_use]
pub fn activity(
    heard: impl Iterator<Item = (Instant, u32)> + Clone,
    now: Instant,
    window: Duration,
    service: Duration,
) -> Activity {
    let heard_since = |since| {
        let within = heard.clone().filter(|(at, _)| *at >= since);
        within.fold(Tally::default(), |tally, (_, segments)| Tally {
            clusters: tally.clusters + 1,
            segments: tally.segments + u64::from(segments),
        })
    };
    activity_by(heard_since, now, window, service)
}

/// The same, where the clusters that were heard since an instant are counted already.
#[must_use]
pub fn activity_by(
    heard_since: impl Fn(Instant) -> Tally,
    now: Instant,
    window: Duration,
    service: Duration,
) -> Activity {
    // From above: the longest window at which it explains itself.
    let mut tried = LONGEST.max(window);
    loop {
        let since = Instant(now.0.saturating_sub(nanos(tried)));
        let Tally { clusters, segments } = heard_since(since);
        let departures = u32::try_from(segments).unwrap_or(u32::MAX);
        let round = service.saturating_mul(departures);
        let wanted = round.saturating_mul(ROUNDS).max(window);
        if wanted >= tried {
            return Activity { clusters: clusters as usize, round, window: tried };
        }
        tried = wanted;
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Clusters, and the segments of their models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Clusters.
    pub clusters: u64,
    /// Segments of all their models.
    pub segments: u64,
}

/// When each cluster was heard last, kept so that those heard since an instant are counted without looking
/// at each.
///
/// Places are in the order of hearing. A cluster that is heard again leaves its place and takes the last
/// one. A tree of partial sums (Fenwick) counts the taken places behind any of them: hearing and counting
/// take logarithmic time. When half of the places are empty they are closed up.
#[derive(Clone, Debug)]
pub struct Hearings<K> {
    places: Vec<Place<K>>,
    of: BTreeMap<K, usize>,
    sums: Vec<Tally>,
}

#[derive(Clone, Copy, Debug)]
struct Place<K> {
    at: Instant,
    /// None: its cluster was heard again, or is forgotten.
    of: Option<K>,
    segments: u32,
}

impl<K> Default for Hearings<K> {
    fn default() -> Self {
        Self { places: Vec::new(), of: BTreeMap::new(), sums: Vec::new() }
    }
}

impl<K: Copy + Ord> Hearings<K> {
    /// A cluster whose model has that number of segments is heard. Time does not go back.
    pub fn note(&mut self, of: K, now: Instant, segments: u32) {
        let last = self.places.last_mut();
        if let Some(last) = last.filter(|last| last.of == Some(of) && last.segments == segments) {
            last.at = last.at.max(now);
            return;
        }
        self.forget(&of);
        if self.places.len() >= 16 && self.places.len() >= 2 * self.of.len() {
            self.close_up();
        }
        let at = self.places.last().map_or(now, |last| last.at.max(now));
        self.of.insert(of, self.places.len());
        self.append(Place { at, of: Some(of), segments });
    }

    /// A cluster is not here any more.
    pub fn forget(&mut self, of: &K) {
        if let Some(at) = self.of.remove(of) {
            self.places[at].of = None;
            let segments = u64::from(self.places[at].segments);
            // In this tree node `i` sums the places from where its lowest bit is cleared up to `i`.
            let mut node = at + 1;
            while node <= self.sums.len() {
                let sum = &mut self.sums[node - 1];
                (sum.clusters, sum.segments) = (sum.clusters - 1, sum.segments - segments);
                node += node & node.wrapping_neg();
            }
        }
    }

    /// Forgets the others.
    pub fn keep(&mut self, mut is_here: impl FnMut(&K) -> bool) {
        let gone: Vec<K> = self.of.keys().filter(|of| !is_here(of)).copied().collect();
        gone.iter().for_each(|of| self.forget(of));
    }

    /// Clusters whose last hearing was at that instant or later.
    #[must_use]
    pub fn since(&self, since: Instant) -> Tally {
        let before = self.places.partition_point(|place| place.at < since);
        let (all, early) = (self.first(self.places.len()), self.first(before));
        Tally { clusters: all.clusters - early.clusters, segments: all.segments - early.segments }
    }

    /// Of the first `count` places.
    fn first(&self, count: usize) -> Tally {
        let (mut node, mut tally) = (count, Tally::default());
        while node > 0 {
            let sum = self.sums[node - 1];
            tally.clusters += sum.clusters;
            tally.segments += sum.segments;
            node -= node & node.wrapping_neg();
        }
        tally
    }

    fn append(&mut self, place: Place<K>) {
        let node = self.places.len() + 1;
        let covers = node & node.wrapping_neg();
        let (before, from) = (self.first(node - 1), self.first(node - covers));
        self.sums.push(Tally {
            clusters: before.clusters - from.clusters + 1,
            segments: before.segments - from.segments + u64::from(place.segments),
        });
        self.places.push(place);
    }

    fn close_up(&mut self) {
        let places = core::mem::take(&mut self.places);
        self.sums.clear();
        for place in places {
            if let Some(of) = place.of {
                self.of.insert(of, self.places.len());
                self.append(place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(ms: u64) -> Instant {
        Instant(ms * 1_000_000)
    }

    #[test]
    fn without_a_service_time_the_window_alone_counts() {
        let heard = [(at(0), 1), (at(4_000), 1), (at(4_500), 1)];
        let seen = activity(heard.into_iter(), at(5_000), 1_000 * MS, Duration::ZERO);
        assert_eq!((seen.clusters, seen.round), (2, Duration::ZERO));
    }

    #[test]
    fn who_sends_once_a_round_counts_however_long_the_round_is() {
        // Ten clusters, 500 ms each: a round is 5 s, and the oldest was heard 4.5 s ago.
        let heard = (0..10).map(|k| (at(k * 500), 1));
        let seen = activity(heard.clone(), at(4_500), 1_000 * MS, 500 * MS);
        assert_eq!((seen.clusters, seen.round), (10, 5_000 * MS));
        // Long after: of those heard in the last second there are none.
        let seen = activity(heard, at(60_000), 1_000 * MS, 500 * MS);
        assert_eq!((seen.clusters, seen.round), (0, Duration::ZERO));
    }

    #[test]
    fn who_is_gone_lengthens_the_round_of_the_others_for_three_of_them_at_most() {
        let gone = (0..5).map(|_| (at(0), 1));
        let here = |now| (0..5).map(move |_| (at(now - 10), 1));
        let clusters = |now| {
            let heard = gone.clone().chain(here(now));
            activity(heard, at(now), 100 * MS, 100 * MS).clusters
        };
        assert_eq!([clusters(2_900), clusters(3_100)], [10, 5]);
    }

    #[test]
    fn each_segment_takes_its_time() {
        let seen = activity([(at(0), 3), (at(0), 4)].into_iter(), at(1), 10 * MS, 2 * MS);
        assert_eq!((seen.clusters, seen.round), (2, 14 * MS));
    }

    #[test]
    fn the_places_of_clusters_that_come_and_go_do_not_grow() {
        let mut hearings = Hearings::default();
        for number in 0..100_000u64 {
            hearings.note(number % 7, at(number), 1);
            if number % 3 == 0 {
                hearings.forget(&(number % 5));
            }
        }
        assert!(hearings.places.len() <= 16 && hearings.of.len() <= 7);
    }

    proptest! {
        #[test]
        fn the_running_count_is_what_looking_at_each_counts(
            steps in prop::collection::vec((0u8..20, 0u8..6, 0u64..3_000, 1u32..9), 1..300),
            window_ms in 1u64..2_000, service_us in 0u64..50_000,
        ) {
            let mut hearings = Hearings::default();
            let mut reference: BTreeMap<u8, (Instant, u32)> = BTreeMap::new();
            let mut now = at(700_000);
            for (of, verb, passed_ms, segments) in steps {
                now = now + MS * u32::try_from(passed_ms).expect("small");
                match verb {
                    0 => {
                        hearings.forget(&of);
                        reference.remove(&of);
                    }
                    1 => {
                        hearings.keep(|other| other % 4 != of % 4);
                        reference.retain(|other, _| other % 4 != of % 4);
                    }
                    _ => {
                        hearings.note(of, now, segments);
                        reference.insert(of, (now, segments));
                    }
                }
                // The reference model looks at each cluster.
                let heard = reference.values().copied();
                let (window, service) =
                    (Duration::from_millis(window_ms), Duration::from_micros(service_us));
                prop_assert_eq!(
                    activity_by(|since| hearings.since(since), now, window, service),
                    activity(heard.clone(), now, window, service)
                );
                // Without a service time the window alone counts, of any length.
                let longer = Duration::from_secs(601) + window;
                prop_assert_eq!(
                    activity_by(|since| hearings.since(since), now, longer, Duration::ZERO),
                    activity(heard, now, longer, Duration::ZERO)
                );
            }
        }
    }
}
