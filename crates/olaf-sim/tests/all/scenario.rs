//! Scenarios: nothing is lost silently, a seed is a seed, and a small one by hand.

use olaf_sim::study::scenario::{Fates, Outcome, Scenario, ready_times, run};
use proptest::prelude::*;
use serde_json::json;

const MS: u64 = 1_000_000;

fn scenario(value: serde_json::Value) -> Scenario {
    serde_json::from_value(value).unwrap()
}

fn assert_all_accounted_for(outcome: &Outcome) {
    let Fates { generated, delivered, replaced, filtered, dropped, rejected, .. } = outcome.fates;
    let Fates { discarded, held, on_the_way, .. } = outcome.fates;
    let settled = delivered + replaced + filtered + dropped + rejected + discarded;
    assert_eq!(generated, settled + held + on_the_way, "{:?}", outcome.fates);
    for switch in &outcome.switches {
        let f = switch.fates;
        let gone = f.sent_alone + f.merged + f.replaced + f.filtered + f.dropped + f.rejected;
        assert_eq!(f.received, gone + f.waiting, "{}: {f:?}", switch.name);
    }
}

fn tree(seed: u64, queue: &str, control: &str, unsent: &str, late_ms: u64) -> Scenario {
    let switch = |name: &str, rate_bps: u64, slots: usize, upstream: Option<&str>| {
        json!({"name": name, "queue": queue, "slots": slots, "rate_bps": rate_bps,
               "upstream": upstream, "delay_ns": if upstream.is_some() { MS } else { 0 }})
    };
    let group = |name: &str, switch: &str, interval_ms: u64| {
        json!({"name": name, "switch": switch, "clusters": 5, "workers": 10,
               "interval_ns": interval_ms * MS, "late_ns": late_ms * MS, "packet_bytes": 1030})
    };
    scenario(json!({
        "seed": seed, "duration_ns": 4_000 * MS,
        "switches": [switch("SW1", 1_900_000, 5, Some("SW3")),
                     switch("SW2", 1_898_100, 5, Some("SW3")), switch("SW3", 1_000_000, 8, None)],
        "groups": [group("S1", "SW1", 100), group("S2", "SW2", 300)],
        "control": {"kind": control, "unsent": unsent},
    }))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: olaf_samples::cases(48), ..ProptestConfig::default() })]

    #[test]
    fn every_update_has_one_fate(
        seed: u64,
        queue in prop::sample::select(vec!["olaf", "fifo", "freshest"]),
        control in prop::sample::select(vec!["off", "paper", "fair"]),
        unsent in prop::sample::select(vec!["carry", "discard", "retry"]),
        late_ms in 0u64..150,
        keeps in any::<bool>(),
        to in prop::sample::select(vec!["shared", "cluster"]),
    ) {
        let mut scenario = tree(seed, queue, control, unsent, late_ms);
        scenario.head_keeps_slot = keeps;
        scenario.answers.to = to.into();
        let outcome = run(&scenario).unwrap();
        assert_all_accounted_for(&outcome);
        assert_eq!(outcome.fates.generated, ready_times(&scenario).unwrap().len() as u64);
        let by_fan_in: u64 = (0..).zip(&outcome.fan_in).map(|(n, count): (u64, _)| n * count).sum();
        assert_eq!(by_fan_in, outcome.fates.delivered);
        // The same again is the same to the bit.
        let again = serde_json::to_string(&run(&scenario).unwrap()).unwrap();
        assert_eq!(serde_json::to_string(&outcome).unwrap(), again);
    }
}

#[test]
fn two_updates_of_a_cluster_meet_behind_one_that_leaves() {
    // Three workers in step: 1 ms each on the link. The first is on the wire at once, the second
    // waits, the third merges into it.
    let outcome = run(&scenario(json!({
        "seed": 1, "duration_ns": 10 * MS,
        "switches": [{"name": "A", "queue": "olaf", "slots": 2, "rate_bps": 1_000_000}],
        "groups": [{"name": "G", "switch": "A", "clusters": 1, "workers": 3, "in_step": true,
                    "interval_ns": 100 * MS, "packet_bytes": 125}],
    })))
    .unwrap();
    assert_all_accounted_for(&outcome);
    assert_eq!((outcome.packets_sent, outcome.packets_delivered), (3, 2));
    assert_eq!(outcome.fan_in, [0, 1, 1]);
    // All were generated at 0: the age at 10 ms is 10 ms, and its mean from 1 ms on is 5.5 ms.
    assert_eq!(outcome.clusters[0].age_mean_ns, Some(5.5e6));
}

#[test]
fn a_link_without_a_slot_for_what_is_on_it_holds_one_more() {
    let with = |keeps: bool| {
        run(&scenario(json!({
            "seed": 1, "duration_ns": 10 * MS, "head_keeps_slot": keeps,
            "switches": [{"name": "A", "queue": "fifo", "slots": 2, "rate_bps": 1_000_000}],
            "groups": [{"name": "G", "switch": "A", "clusters": 1, "workers": 4, "in_step": true,
                        "interval_ns": 100 * MS, "packet_bytes": 125}],
        })))
        .unwrap()
    };
    assert_eq!((with(true).packets_dropped, with(false).packets_dropped), (2, 1));
    assert_all_accounted_for(&with(false));
}

#[test]
fn a_cluster_that_starves_grows_old_and_the_scenario_is_not_fair() {
    // In step: the first cluster's update is on the wire when the second's meets the full queue.
    let outcome = run(&scenario(json!({
        "seed": 1, "duration_ns": 101 * MS, "head_keeps_slot": true,
        "switches": [{"name": "A", "queue": "fifo", "slots": 1, "rate_bps": 1_000_000}],
        "groups": [{"name": "G", "switch": "A", "clusters": 2, "workers": 1, "in_step": true,
                    "interval_ns": 10 * MS, "packet_bytes": 125}],
    })))
    .unwrap();
    let packets: Vec<u64> = outcome.clusters.iter().map(|cluster| cluster.packets).collect();
    assert_eq!((packets[0] > 9, packets[1]), (true, 0));
    // From the first delivery at 1 ms the one climbs from 1 to 11 ms again and again.
    assert_eq!(outcome.clusters[0].age_mean_ns, Some(6e6));
    assert_eq!(outcome.clusters[1].age_mean_ns, Some(50e6));
    assert_eq!(outcome.clusters[1].worker_age_mean_ns, Some(50e6));
    assert_eq!(outcome.clusters[1].workers_unheard, 1);
    let fairness = outcome.fairness.unwrap();
    assert!((fairness - 56.0 * 56.0 / (2.0 * (36.0 + 2_500.0))).abs() < 1e-9, "{fairness}");
}

#[test]
fn what_is_not_sent_is_carried_or_counted() {
    let carried = run(&tree(3, "olaf", "fair", "carry", 100)).unwrap();
    assert_eq!(carried.fates.discarded, 0);
    assert!(carried.packets_sent < carried.fates.generated / 4);
    let discarded = run(&tree(3, "olaf", "fair", "discard", 100)).unwrap();
    assert!(discarded.fates.discarded > discarded.fates.generated / 2);
    assert_eq!(discarded.fates.held, 0);
}

#[test]
fn what_cannot_be_is_named() {
    let refused = |path: &[&str], value: serde_json::Value| {
        let mut spec = json!({
            "seed": 1, "duration_ns": 10,
            "switches": [{"name": "A", "queue": "olaf", "slots": 2, "rate_bps": 1, "upstream": null}],
            "groups": [{"name": "G", "switch": "A", "clusters": 1, "workers": 1,
                        "interval_ns": 1, "packet_bytes": 1}],
            "control": {}, "answers": {},
        });
        let mut at = &mut spec;
        for key in path {
            at = match key.parse::<usize>() {
                Ok(index) => &mut at[index],
                Err(_) => &mut at[*key],
            };
        }
        *at = value;
        run(&scenario(spec)).unwrap_err().to_string()
    };
    let message = refused(&["switches", "0", "queue"], json!("lifo"));
    assert!(message.contains("\"A\"") && message.contains("olaf"), "{message}");
    assert!(refused(&["switches", "0", "upstream"], json!("A")).contains("ring"));
    assert!(refused(&["switches", "0", "upstream"], json!("B")).contains("\"B\""));
    assert!(refused(&["switches", "0", "rate_bps"], json!(0)).contains("rate_bps"));
    assert!(refused(&["groups", "0", "switch"], json!("C")).contains("\"C\""));
    assert!(refused(&["groups", "0", "interval_ns"], json!(0)).contains("interval_ns"));
    assert!(refused(&["groups", "0", "workers"], json!(1u64 << 40)).contains("planned"));
    assert!(refused(&["control", "kind"], json!("tcp")).contains("tcp"));
    assert!(refused(&["control", "slope"], json!("steep")).contains("urgency"));
    assert!(refused(&["control", "unsent"], json!("forget")).contains("carry"));
    assert!(refused(&["answers", "to"], json!("all")).contains("cluster"));
}
