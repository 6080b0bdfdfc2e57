//! Which clusters count as active, and how long a round of them takes (OLAF §5: N).

use crate::time::Instant;
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
    // From above: the longest window at which it explains itself.
    let mut tried = LONGEST.max(window);
    loop {
        let within = heard.clone().filter(|(at, _)| now.since(*at) <= tried);
        let (clusters, departures) =
            within.fold((0, 0u32), |(n, sum), (_, segments)| (n + 1, sum.saturating_add(segments)));
        let round = service.saturating_mul(departures);
        let wanted = round.saturating_mul(ROUNDS).max(window);
        if wanted >= tried {
            return Activity { clusters, round, window: tried };
        }
        tried = wanted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
