//! `olaf replay`, case by case: small traces whose outcome was computed by hand.

use olaf_engine::BitsPerSecond;
use olaf_engine::switch::native::QueueKind;
use olaf_sim::study::replay::{Head, Parameters, replay};
use serde_json::{Value, json};

const HEADER: &str = "t_ns,cluster,worker,seq,reward,bytes";

/// At 8 Gbit/s a byte takes a nanosecond.
fn olaf(slots: usize) -> Parameters {
    let rate = BitsPerSecond::parse("8gbit").unwrap();
    Parameters {
        engine: QueueKind::Merging,
        slots,
        rate,
        gate: None,
        head: Head::Locked,
        full: true,
    }
}

fn fifo(slots: usize) -> Parameters {
    Parameters { engine: QueueKind::Fifo, ..olaf(slots) }
}

fn run(parameters: &Parameters, lines: &[&str]) -> Value {
    let trace = format!("{HEADER}\n{}\n", lines.join("\n"));
    serde_json::to_value(replay(trace.as_bytes(), parameters).unwrap()).unwrap()
}

fn fates(result: &Value) -> Vec<&str> {
    result["fates"].as_array().unwrap().iter().map(|f| f["fate"].as_str().unwrap()).collect()
}

/// Start, end and contributors of every departure.
fn departures(result: &Value) -> Vec<(u64, u64, Vec<&str>)> {
    let departures = result["departures"].as_array().unwrap();
    departures
        .iter()
        .map(|d| {
            let names = d["contributors"].as_array().unwrap();
            let names = names.iter().map(|name| name.as_str().unwrap()).collect();
            (d["start_ns"].as_u64().unwrap(), d["end_ns"].as_u64().unwrap(), names)
        })
        .collect()
}

#[test]
fn an_update_that_waits_behind_its_locked_predecessor_merges_with_the_next() {
    let result =
        run(&olaf(4), &["0,0,1,0,10,100", "10,0,2,0,20,100", "20,0,3,0,30,100", "30,0,1,1,40,100"]);
    assert_eq!(departures(&result), [(0, 100, vec!["1:0"]), (100, 200, vec!["1:1", "2:0", "3:0"])]);
    assert_eq!(fates(&result), ["delivered", "merged", "merged", "merged"]);
    let merged = &result["departures"][1];
    assert_eq!(merged["weight"], json!(3.0));
    assert!((merged["reward"].as_f64().unwrap() - 30.0).abs() < 1e-9);
    assert_eq!((&merged["oldest_ns"], &merged["newest_ns"]), (&json!(10), &json!(30)));
}

#[test]
fn the_three_heads_side_by_side() {
    let lines = ["0,0,1,0,10,100", "10,0,2,0,20,100", "20,0,3,0,30,100", "30,1,4,0,1,100"];
    let through = |head| run(&Parameters { head, ..olaf(2) }, &lines);
    let (first, rest) = ((0, 100, vec!["1:0"]), (100, 200, vec!["2:0", "3:0"]));
    // Locked, the update on the wire and the one behind it have both slots.
    let locked = through(Head::Locked);
    assert_eq!(departures(&locked), [first.clone(), rest.clone()]);
    assert_eq!(fates(&locked)[3], "dropped");
    // Gone, it leaves its slot to the other cluster.
    let gone = through(Head::Gone);
    assert_eq!(departures(&gone), [first, rest, (200, 300, vec!["4:0"])]);
    // Open, it takes its own cluster's updates in until its last bit has left.
    let open = through(Head::Open);
    assert_eq!(departures(&open), [(0, 100, vec!["1:0", "2:0", "3:0"]), (100, 200, vec!["4:0"])]);
}

#[test]
fn a_workers_newer_update_replaces_its_waiting_one() {
    let result = run(&olaf(4), &["0,0,1,0,1,100", "10,0,2,0,1,100", "20,0,2,1,1,100"]);
    assert_eq!(departures(&result), [(0, 100, vec!["1:0"]), (100, 200, vec!["2:1"])]);
    assert_eq!(fates(&result), ["delivered", "replaced", "delivered"]);
}

#[test]
fn all_that_had_merged_is_replaced_when_a_far_better_one_comes() {
    let gated = Parameters { gate: Some(5.0), ..olaf(4) };
    let result = run(
        &gated,
        &["0,9,9,0,0,100", "1,0,1,0,10,100", "2,0,2,0,14,100", "3,0,3,0,20,100", "4,0,4,0,2,100"],
    );
    assert_eq!(fates(&result), ["delivered", "replaced", "replaced", "delivered", "filtered"]);
    assert_eq!(departures(&result)[1], (100, 200, vec!["3:0"]));
}

#[test]
fn an_arrival_at_the_instant_a_departure_ends_comes_after_it() {
    // One slot, in use until 100: an arrival at 99 finds it full, one at 100 finds it free.
    let result = run(&olaf(1), &["0,0,1,0,1,100", "99,1,1,0,1,100", "100,2,1,0,1,100"]);
    assert_eq!(fates(&result), ["delivered", "dropped", "delivered"]);
    assert_eq!(departures(&result), [(0, 100, vec!["1:0"]), (100, 200, vec!["1:0"])]);
}

#[test]
fn at_that_instant_the_next_departure_has_already_locked_its_entry() {
    // 2:0 waits until 100; what comes at 100 can no longer merge into it.
    let result = run(&olaf(4), &["0,0,1,0,1,100", "50,1,2,0,1,100", "100,1,3,0,1,100"]);
    assert_eq!(fates(&result), ["delivered", "delivered", "delivered"]);
    assert_eq!(departures(&result)[1..], [(100, 200, vec!["2:0"]), (200, 300, vec!["3:0"])]);
}

#[test]
fn ties_keep_the_order_of_the_file() {
    let result = run(&olaf(2), &["5,0,1,0,1,10", "5,1,1,0,1,10", "5,2,1,0,1,10", "5,1,2,0,1,10"]);
    assert_eq!(fates(&result), ["delivered", "merged", "dropped", "merged"]);
    assert_eq!(departures(&result), [(5, 15, vec!["1:0"]), (15, 25, vec!["1:0", "2:0"])]);
}

#[test]
fn fifo_merges_nothing_and_drops_what_finds_no_slot() {
    let result = run(&fifo(2), &["0,0,1,0,1,10", "1,0,1,1,1,10", "2,0,2,0,1,10"]);
    assert_eq!(fates(&result), ["delivered", "delivered", "dropped"]);
    assert_eq!(departures(&result), [(0, 10, vec!["1:0"]), (10, 20, vec!["1:1"])]);
}

#[test]
fn a_reward_that_is_no_finite_number_is_rejected_and_nothing_else_suffers() {
    let result =
        run(&olaf(4), &["0,0,1,0,nan,10", "1,0,1,1,inf,10", "2,0,1,2,-inf,10", "3,0,1,3,1,10"]);
    assert_eq!(fates(&result), ["rejected", "rejected", "rejected", "delivered"]);
    assert_eq!(departures(&result), [(3, 13, vec!["1:3"])]);
}

#[test]
fn a_merge_takes_as_long_as_its_largest_contribution() {
    let result = run(&olaf(4), &["0,9,9,0,1,100", "1,0,1,0,1,10", "2,0,2,0,1,30", "3,0,3,0,1,20"]);
    assert_eq!(departures(&result)[1], (100, 130, vec!["1:0", "2:0", "3:0"]));
}

#[test]
fn ages_are_the_area_of_the_sawtooth_up_to_the_last_departure() {
    // Cluster 0 is delivered at 100 (generated 0) and 300 (generated 150), cluster 1 at 200
    // (generated 50); the last departure ends at 300.
    let result = run(&fifo(8), &["0,0,1,0,1,100", "50,1,1,0,1,100", "150,0,1,1,1,100"]);
    assert_eq!(
        departures(&result).iter().map(|d| (d.0, d.1)).collect::<Vec<_>>(),
        [(0, 100), (100, 200), (200, 300)]
    );
    let clusters = &result["summary"]["clusters"];
    // From 100 to 300 the age of cluster 0 climbs from 100 to 300.
    assert_eq!(clusters[0]["aom_mean_ns"], json!(200.0));
    assert_eq!(clusters[0]["aom_peak_mean_ns"], json!(300.0));
    // That of cluster 1 from 0 to 100 until its delivery at 200, and then from 150 to 250.
    assert_eq!(clusters[1]["aom_mean_ns"], json!(125.0));
    assert_eq!(clusters[1]["aom_peak_mean_ns"], Value::Null);
    let fairness = 325.0 * 325.0 / (2.0 * (200.0 * 200.0 + 125.0 * 125.0));
    assert_eq!(result["summary"]["fairness"], json!(fairness));
    assert_eq!(result["summary"]["end_ns"], json!(300));
}

#[test]
fn a_cluster_whose_only_delivery_is_the_last_departure_has_no_average() {
    let result = run(&olaf(8), &["0,0,1,0,1,100"]);
    let cluster = &result["summary"]["clusters"][0];
    assert_eq!(cluster["aom_mean_ns"], Value::Null);
    assert_eq!(cluster["loss"], json!(0.0));
    assert_eq!(result["summary"]["fairness"], Value::Null);
}

#[test]
fn a_cluster_that_lost_everything_is_in_the_summary_too() {
    let result = run(&olaf(1), &["0,0,1,0,1,100", "1,7,1,0,1,100", "2,7,2,0,1,100"]);
    let lost = &result["summary"]["clusters"][1];
    assert_eq!((&lost["cluster"], &lost["dropped"]), (&json!(7), &json!(2)));
    assert_eq!((&lost["loss"], &lost["aom_mean_ns"]), (&json!(1.0), &Value::Null));
    assert!((result["summary"]["loss"].as_f64().unwrap() - 2.0 / 3.0).abs() < 1e-12);
}

#[test]
fn a_cluster_that_starves_grows_old_and_the_queue_is_not_fair() {
    // Cluster 0 takes the only slot each time; of cluster 7 nothing ever departs.
    let mut lines = Vec::new();
    for at in (0..2_000).step_by(100) {
        lines.push(format!("{at},0,1,{at},1,100"));
        lines.push(format!("{},7,1,{at},1,100", at + 1));
    }
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let result = run(&fifo(1), &lines);
    let clusters = &result["summary"]["clusters"];
    assert_eq!((&clusters[0]["loss"], &clusters[1]["loss"]), (&json!(0.0), &json!(1.0)));
    // From the first departure's end at 100 to the last one's at 2,000.
    assert_eq!(clusters[0]["aom_mean_ns"], json!(150.0));
    assert_eq!(clusters[1]["aom_mean_ns"], json!(950.0));
    let fairness = result["summary"]["fairness"].as_f64().unwrap();
    assert!((fairness - 1_100.0 * 1_100.0 / (2.0 * 925_000.0)).abs() < 1e-12, "{fairness}");
}

#[test]
fn integers_stay_integers_and_names_stay_names() {
    let result = run(&olaf(4), &["0,12,w1,3,1,10", "100,left,007,4,1,10", "200,-5,8,5,1,10"]);
    let fates = &result["fates"];
    assert_eq!(fates[0], json!({"cluster": 12, "worker": "w1", "seq": 3, "fate": "delivered"}));
    assert_eq!(
        fates[1],
        json!({"cluster": "left", "worker": "007", "seq": 4, "fate": "delivered"})
    );
    assert_eq!(fates[2], json!({"cluster": -5, "worker": 8, "seq": 5, "fate": "delivered"}));
    let names = result["summary"]["clusters"].as_array().unwrap();
    let names: Vec<&Value> = names.iter().map(|cluster| &cluster["cluster"]).collect();
    assert_eq!(names, [&json!(-5), &json!(12), &json!("left")]);
}

#[test]
fn contributors_are_sorted_as_texts() {
    let lines = ["0,9,9,0,1,100", "1,0,9,0,1,10", "2,0,10,0,1,10", "3,0,10,1,1,10"];
    let result = run(&olaf(4), &lines);
    assert_eq!(departures(&result)[1].2, ["10:0", "10:1", "9:0"]);
}

#[test]
fn without_full_only_the_summary_is_written() {
    let result = run(&Parameters { full: false, ..olaf(4) }, &["0,0,1,0,1,100"]);
    assert_eq!(result.as_object().unwrap().keys().collect::<Vec<_>>(), ["summary"]);
    assert_eq!(result["summary"]["delivered"], json!(1));
}

#[test]
fn an_empty_trace_is_a_trace() {
    let result = run(&olaf(4), &[]);
    assert_eq!(result["departures"], json!([]));
    assert_eq!(result["summary"]["loss"], Value::Null);
    assert_eq!(result["summary"]["arrivals"], json!(0));
}

#[test]
fn a_rate_that_does_not_divide_loses_no_time_on_a_busy_link_and_gains_none_on_an_idle_one() {
    // 256 bytes at 40 Gbit/s take 51.2 ns.
    let forty = Parameters { rate: BitsPerSecond::parse("40gbit").unwrap(), ..fifo(8) };
    let result =
        run(&forty, &["0,0,1,0,1,256", "0,0,1,1,1,256", "103,0,1,2,1,256", "1000,0,1,3,1,256"]);
    let times: Vec<_> = departures(&result).iter().map(|d| (d.0, d.1)).collect();
    // The third comes at 103, when the link has been free since 102.4.
    assert_eq!(times, [(0, 52), (52, 103), (103, 155), (1000, 1052)]);
}

#[test]
fn times_near_the_end_of_counting_do_not_overflow() {
    let last = u64::MAX;
    let lines = [format!("{last},0,1,0,1,4294967295"), format!("{last},1,1,1,1,1")];
    let result = run(&olaf(4), &[&lines[0], &lines[1]]);
    assert_eq!(fates(&result), ["delivered", "delivered"]);
}
