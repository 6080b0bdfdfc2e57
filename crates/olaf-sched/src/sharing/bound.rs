//! What no policy can exceed: where a target is out of reach, and why.

use crate::Steps;

/// An upper bound of the [`score`](super::group::score) that a group can have over a long time,
/// weighted by hosts if `weighted`. 1 if no job could gain.
///
/// A step without the switches takes `none`. Each nanosecond of an operation in the network moves
/// its end by `rho = (without - with) / with` at most, of the job's best operation, and down to
/// `all` at the most (an operation that ends earlier moves nothing after it by more than that). So a
/// job that ends `u` steps a second uses the switches for `(none u - 1) / rho` of it at least. All
/// jobs together use them for a second a second at most: one tree serves one at a time. The score
/// is a ratio of sums linear in the `u`; the largest ratio for which a choice of the `u` remains is
/// found by bisection, and each choice is a knapsack that may be cut.
///
/// It knows nothing of when operations are ready, nor that one which runs among the hosts cannot
/// change over: policies stay below it by more, the coarser the operations.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "a bound for people: 53 bits are plenty")]
pub fn score_bound(jobs: &[(&Steps, u32)], weighted: bool) -> f64 {
    let items: Vec<Item> = jobs
        .iter()
        .filter(|(steps, _)| steps.gain_ns() > 0)
        .map(|(steps, hosts)| {
            let each = steps.without_ns.iter().zip(&steps.with_ns);
            let rho = each.map(|(without, with)| (without - with) as f64 / (*with).max(1) as f64);
            Item {
                weight: if weighted { f64::from(*hosts) } else { 1.0 },
                none: steps.none_ns as f64,
                all: steps.all_ns as f64,
                rho: rho.fold(f64::MIN_POSITIVE, f64::max),
            }
        })
        .collect();
    let (mut reached, mut beyond) = (0.0, 1.0);
    if items.is_empty() || attainable(&items, beyond) {
        return 1.0;
    }
    for _ in 0..50 {
        let middle = f64::midpoint(reached, beyond);
        *(if attainable(&items, middle) { &mut reached } else { &mut beyond }) = middle;
    }
    beyond
}

struct Item {
    weight: f64,
    none: f64,
    all: f64,
    rho: f64,
}

/// Returns true if the gain can be `score` times the largest possible gain: `sum of weight x ((none
/// u - 1) - score x (none - all) u)` is not negative for some rates `u`.
fn attainable(items: &[Item], score: f64) -> bool {
    // Of each: its part of the sum per unit of u, the switches' time per unit of u, and how much u
    // can grow from its least, 1 / none, where it uses no time.
    let mut choices: Vec<(f64, f64, f64)> = Vec::with_capacity(items.len());
    let mut sum = 0.0;
    for item in items {
        let slope = item.weight * (item.none - score * (item.none - item.all));
        sum += slope / item.none - item.weight;
        choices.push((slope, item.none / item.rho, 1.0 / item.all - 1.0 / item.none));
    }
    choices.sort_by(|a, b| (b.0 / b.1).total_cmp(&(a.0 / a.1)));
    let mut time = 1.0;
    for (slope, cost, room) in choices {
        let more = room.min(time / cost);
        sum += slope * more;
        time -= cost * more;
    }
    // Whole nanoseconds are rounded: a hair more is granted.
    sum >= -1e-9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AllReduceSpeed, Operation, Pattern};

    fn steps(compute_ns: u64, bytes: u64) -> Steps {
        let network =
            AllReduceSpeed { bytes_per_second: 1_000_000_000, speedup_millis: 2000, latency_ns: 0 };
        let operations = vec![Operation { start_ns: 0, bytes }];
        Steps::new(&Pattern { name: "p".into(), compute_ns, operations }, &network, 2)
    }

    #[test]
    fn two_that_only_communicate_share_the_gain() {
        // 100 without, 50 with. Alone each ends a step in 50; the switches' time allows for
        // 100 u - 1 <= 1 in sum, so u1 + u2 <= 3/100: gained 1 of 3/100 x 50.
        let one = steps(1, 100);
        assert!((score_bound(&[(&one, 1)], true) - 1.0).abs() < 1e-6);
        assert!((score_bound(&[(&one, 1), (&one, 1)], true) - 2.0 / 3.0).abs() < 1e-6);
    }

    #[test]
    fn two_that_mostly_compute_are_not_in_each_others_way() {
        // 100 without, 90 with: a ninth of the time is enough.
        let one = steps(90, 100);
        assert!((score_bound(&[(&one, 1), (&one, 3)], true) - 1.0).abs() < 1e-6);
        assert!((score_bound(&[(&steps(200, 100), 1)], true) - 1.0).abs() < 1e-6);
    }
}
