//! What a run gives, against closed forms and against itself.

use super::{Engine, Outcome, Scenario, run};
use serde_json::{Value, json};

/// 1 Gbit/s and 5 us a link, one switch.
fn scenario(workers: u32, racks: &[u32], job: Value) -> Scenario {
    let mut job = job;
    let defaults = json!({
        "name": "job", "workers": workers, "model_bytes": 400_000, "iterations": 3,
        "compute_ns": 1_000_000, "update_ns": 100_000,
    });
    for (key, value) in defaults.as_object().expect("a table") {
        job.as_object_mut().expect("a table").entry(key).or_insert(value.clone());
    }
    let network = json!({
        "racks": racks, "rate_bps": 1_000_000_000_u64, "delay_ns": 5_000,
        "trunk_rate_bps": 4_000_000_000_u64,
    });
    serde_json::from_value(json!({ "seed": 1, "network": network, "jobs": [job] }))
        .expect("the scenario is well-formed")
}

fn ran(scenario: &Scenario) -> Outcome {
    let outcome = run(scenario, &mut |_| {}).expect("the scenario can be");
    for job in &outcome.jobs {
        assert_eq!(job.failed, None, "{}", job.engine);
        assert_eq!(job.iterations.len(), 3);
        let parts = job.compute_ns + job.wait_ns + job.aggregation_ns + job.update_ns;
        assert!((job.iteration_ns - parts).abs() < 1.0);
        assert_eq!(job.exact + job.degraded, 3 * u64::from(job.workers), "{}", job.engine);
    }
    for link in &outcome.links {
        assert_eq!(link.offered, link.delivered + link.lost + link.dropped + link.on_the_way);
    }
    outcome
}

const ENGINES: [&str; 7] = ["reduce", "iswitch", "atp", "trio", "ps", "ring", "ideal"];

#[test]
fn every_engine_sums_exactly_in_one_rack_and_in_three() {
    for racks in [&[4][..], &[2, 1, 1]] {
        for engine in ENGINES {
            let outcome = ran(&scenario(4, racks, json!({ "engine": engine })));
            assert_eq!(outcome.jobs[0].degraded, 0, "{engine}");
        }
    }
}

#[test]
fn an_ideal_network_takes_bytes_over_bandwidth() {
    let outcome = ran(&scenario(4, &[4], json!({ "engine": "ideal" })));
    // 400,000 bytes at 1 Gbit/s.
    assert_eq!(outcome.jobs[0].aggregation_ns, 3_200_000.0);
    assert_eq!(outcome.jobs[0].iteration_ns, 4_300_000.0);
}

/// Time of the bytes of a message on a link of 1 Gbit/s, headers of all its datagrams included.
fn line_ns(bytes: f64) -> f64 {
    let datagrams = (bytes / 1448.0).ceil();
    (bytes + datagrams * (24.0 + 66.0)) * 8.0
}

#[test]
fn a_ring_takes_twice_the_bytes_but_a_share() {
    for workers in [2, 4, 8] {
        let window = json!({ "engine": "ring", "window": 1000 });
        let outcome = ran(&scenario(workers, &[8], window));
        let n = f64::from(workers);
        let least = 2.0 * (n - 1.0) * line_ns(400_000.0 / n);
        let took = outcome.jobs[0].aggregation_ns;
        // Each of the 2(n - 1) steps also takes two links' delay, a datagram's time, and some acknowledgements.
        let steps = 2.0 * (n - 1.0) * (10_000.0 + 12_304.0);
        assert!(took >= least && took <= 1.03 * (least + steps), "{workers}: {took} {least}");
    }
}

#[test]
fn a_parameter_server_takes_every_vector_in_and_out() {
    for (servers, shares) in [(1, 1.0), (2, 2.0)] {
        let job = json!({ "engine": "ps", "window": 1000, "servers": servers });
        let outcome = ran(&scenario(4, &[4], job));
        // Into the server's link and out of it, four vectors each; with two servers each has a half.
        let least = 2.0 * 4.0 * line_ns(400_000.0 / shares);
        // Two servers together send into a worker's link what the worker could take at twice the rate.
        let took = outcome.jobs[0].aggregation_ns;
        assert!(took >= 0.99 * least && took <= 1.03 * least + 100_000.0, "{took} {least}");
    }
}

/// A queue that grows is no loss, and windows fill the links.
#[test]
fn baselines_are_as_fast_as_their_links_where_nothing_is_lost() {
    for (engine, vectors) in [("ring", 1.5), ("ps", 8.0)] {
        let job = json!({
            "engine": engine, "model_bytes": 6_410_000, "iterations": 5, "compute_ns": 10_700_000,
            "compute_spread": 0.05,
        });
        let mut fast = scenario(4, &[4], job);
        fast.network.rate_bps = 10_000_000_000;
        fast.seed = 2;
        let outcome = run(&fast, &mut |_| {}).expect("the scenario can be");
        let job = &outcome.jobs[0];
        // A probe now and then, where a queue grows faster than the usual round trip.
        assert!(job.resent * 1000 < job.packets, "{engine}: {} of {}", job.resent, job.packets);
        let least = vectors * line_ns(6_410_000.0) / 10.0;
        assert!(job.aggregation_ns < 1.05 * least, "{engine}: {} {least}", job.aggregation_ns);
    }
}

#[test]
fn a_protocol_in_the_network_takes_the_vector_once() {
    // Its sum leaves the switch while it comes in.
    for (engine, payload, headers) in [("reduce", 1400.0, 138.0), ("iswitch", 1464.0, 74.0)] {
        let job = json!({ "engine": engine, "window": 64, "model_bytes": 4_000_000 });
        let outcome = ran(&scenario(4, &[4], job));
        let least = 4_000_000.0 * 8.0 * (payload + headers) / payload;
        let took = outcome.jobs[0].aggregation_ns;
        assert!(took > 0.9 * least && took < 1.1 * least, "{engine}: {took} {least}");
    }
}

#[test]
fn nothing_is_sent_again_where_links_are_slower_than_hosts() {
    // A piece always waits for the link. A vector has 17 windows of 16 packets.
    for engine in ["reduce", "iswitch", "trio"] {
        for window in [2, 3, 5, 16, 64] {
            let job = json!({ "engine": engine, "window": window });
            let outcome = ran(&scenario(4, &[4], job));
            assert_eq!(outcome.jobs[0].resent, 0, "{engine}, {window}");
            let (took, line) = (outcome.jobs[0].aggregation_ns, line_ns(400_000.0));
            assert!(window < 5 || took < 1.1 * line, "{engine}, {window}: {took} {line}");
        }
    }
}

#[test]
fn a_seed_gives_the_same_run_and_another_seed_another_one() {
    let job = json!({ "engine": "iswitch", "compute_spread": 0.2 });
    let mut first = scenario(4, &[2, 2], job);
    first.network.loss = 0.001;
    let again = ran(&first);
    assert_eq!(ran(&first), again);
    assert!(again.jobs[0].resent > 0, "{:?}", again.jobs[0]);
    let other = Scenario { seed: 2, ..first };
    assert_ne!(ran(&other).jobs[0].iteration_ns, again.jobs[0].iteration_ns);
}

#[test]
fn losses_and_full_queues_cost_time_and_no_sum() {
    for engine in ["reduce", "iswitch", "atp", "trio", "ps", "ring"] {
        let mut lossy = scenario(4, &[2, 2], json!({ "engine": engine }));
        lossy.network.loss = 0.005;
        lossy.network.queue_bytes = Some(30_000);
        lossy.network.ecn_bytes = Some(15_000);
        let outcome = ran(&lossy);
        assert!(outcome.links.iter().any(|link| link.lost > 0), "{engine}");
        assert!(outcome.jobs[0].resent > 0, "{engine}");
        assert_eq!(outcome.jobs[0].degraded, 0, "{engine}");
    }
}

/// Without questions, as SwitchML: a worker repeats its piece, and each switch on the way repeats what it knows.
#[test]
fn workers_that_only_repeat_their_pieces_get_every_sum_in_a_tree() {
    for racks in [&[4][..], &[2, 2], &[2, 1, 1]] {
        for seed in 1..4 {
            let job = json!({ "engine": "reduce", "options": { "recovery": "timer" } });
            let mut lossy = scenario(4, racks, job);
            (lossy.seed, lossy.network.loss) = (seed, 0.01);
            let outcome = ran(&lossy);
            assert!(outcome.links.iter().any(|link| link.lost > 0));
            assert_eq!(outcome.jobs[0].degraded, 0, "{racks:?}");
        }
    }
}

#[test]
fn tensors_that_are_ready_early_are_summed_meanwhile() {
    let job = |overlap: f64| {
        let job = json!({
            "engine": "iswitch", "tensors": 8, "overlap": overlap, "compute_ns": 4_000_000,
        });
        ran_tensors(&scenario(4, &[4], job))
    };
    let (after, during) = (job(0.0), job(1.0));
    // 3.4 ms of bytes; an eighth of them is left when the computation ends.
    assert!(after - during > 2_500_000.0, "{after} {during}");
}

/// Time of an iteration of a job with eight tensors.
fn ran_tensors(scenario: &Scenario) -> f64 {
    let outcome = run(scenario, &mut |_| {}).expect("the scenario can be");
    assert_eq!((outcome.jobs[0].exact, &outcome.jobs[0].failed), (3 * 4 * 8, &None));
    outcome.jobs[0].iteration_ns
}

#[test]
fn jobs_of_several_engines_share_the_links() {
    let mut both = scenario(4, &[4], json!({ "engine": "iswitch" }));
    let alone = ran(&both).jobs[0].aggregation_ns;
    let mut second = both.jobs[0].clone();
    (second.name, second.engine) = ("second".into(), Engine::Ring);
    both.jobs.push(second);
    let outcome = ran(&both);
    assert!(outcome.jobs[0].aggregation_ns > 1.2 * alone, "{:?} {alone}", outcome.jobs[0]);
}

#[test]
fn a_deadline_goes_on_without_the_straggler() {
    let straggler = json!({ "probability": 1.0, "typical_ns": 100_000_000, "points": 1 });
    let deadline = json!({ "deadline_ms": 10 });
    let job = |options| {
        let job = json!({ "engine": "trio", "straggler": straggler, "options": options });
        ran(&scenario(4, &[4], job)).jobs.remove(0)
    };
    let (waits, goes_on) = (job(json!({})), job(deadline));
    assert_eq!(waits.degraded, 0);
    assert!(goes_on.degraded > 0, "{goes_on:?}");
    assert!(goes_on.end_ns < waits.end_ns, "{} {}", goes_on.end_ns, waits.end_ns);
}

#[test]
fn what_cannot_be_names_its_key() {
    let good = json!({
        "network": { "racks": [2, 2], "rate_bps": 1000, "trunk_rate_bps": 1000, "lossy_hosts": null },
        "jobs": [{ "name": "a", "engine": "reduce", "workers": 4, "model_bytes": 4, "iterations": 1,
            "compute_ns": 0 }],
    });
    for (path, value, key) in [
        ("/network/racks", json!([]), "network.racks"),
        ("/network/racks", json!([2, 0]), "network.racks"),
        ("/network/rate_bps", json!(0), "network.rate"),
        ("/network/trunk_rate_bps", Value::Null, "network.trunk_rate"),
        ("/network/lossy_hosts", json!([4]), "network.lossy_hosts"),
        ("/network/lossy_hosts", json!([1]), "network.lossy_hosts"),
        ("/jobs/0/model_bytes", json!(0), "jobs[0].model"),
        ("/jobs/0/workers", json!(5), "jobs[0].workers"),
        ("/jobs/0/iterations", json!(0), "jobs[0].iterations"),
        ("/jobs/0/compute_ns", Value::Null, "jobs[0].compute"),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(path).expect("it is there") = value;
        let bad: Scenario = serde_json::from_value(bad).expect("it is well-formed");
        let error = bad.check().expect_err(path).to_string();
        assert!(error.starts_with(&format!("{key}: ")), "{error}");
    }
    for (name, value, key) in [
        ("window", json!(0), "jobs[0].window"),
        ("hosts", json!([0, 1, 2, 2]), "jobs[0].hosts"),
        ("options", json!({ "dead_line": 1 }), "jobs[0].options.dead_line"),
        ("options", json!({ "timer_ms": -1 }), "jobs[0].options.timer_ms"),
        ("protocol", json!({ "values": 1 }), "jobs[0].protocol"),
        ("servers", json!(1), "jobs[0].servers"),
        ("overlap", json!(2), "jobs[0].overlap"),
    ] {
        let mut bad = good.clone();
        bad["jobs"][0][name] = value;
        let bad: Scenario = serde_json::from_value(bad).expect("it is well-formed");
        let error = bad.check().expect_err(name).to_string();
        assert!(error.starts_with(&format!("{key}: ")), "{error}");
    }
}

/// Two jobs of ATP on hosts of their own share few aggregators.
fn two_of_atp(protocol: impl Fn(u16) -> Value) -> Scenario {
    let mut both = scenario(2, &[4], json!({ "engine": "atp", "compute_ns": 0 }));
    both.switch.atp = json!({ "aggregators": 64 }).as_object().expect("a table").clone();
    let mut second = both.jobs[0].clone();
    (second.name, second.hosts) = ("second".into(), Some(vec![2, 3]));
    both.jobs.push(second);
    for (at, job) in (0..).zip(&mut both.jobs) {
        job.protocol = protocol(at).as_object().expect("a table").clone();
    }
    both
}

#[test]
fn every_allocation_of_aggregators_gives_every_sum() {
    for loss in [0.0, 0.005] {
        for allocation in ["window", "hashed", "linear", "static"] {
            let mut both = two_of_atp(|part| match allocation {
                "static" => json!({ "allocation": "static", "parts": 2, "part": part }),
                _ => json!({ "allocation": allocation }),
            });
            both.network.loss = loss;
            let outcome = ran(&both);
            assert!(outcome.jobs.iter().all(|job| job.degraded == 0), "{allocation}");
            let collides = outcome.jobs[0].collisions > 0;
            // A packet that is sent again may find the next fragment in its place.
            let is_known = allocation != "static" || loss == 0.0;
            assert!(!is_known || collides == (allocation != "static"), "{allocation}, {loss}");
        }
    }
}

#[test]
fn without_control_a_full_queue_drops_more() {
    let dropped = |congestion| {
        let mut both = two_of_atp(|_| json!({ "congestion": congestion }));
        both.network.queue_bytes = Some(60_000);
        both.network.ecn_bytes = Some(20_000);
        ran(&both).links.iter().map(|link| link.dropped).sum::<u64>()
    };
    let (controlled, halved, free) = (dropped("queue"), dropped("halve"), dropped("off"));
    assert!(free > 4 * controlled.max(halved), "{controlled} {halved} {free}");
}

#[test]
fn in_racks_alone_the_server_gets_a_sum_of_each_rack() {
    let frames = |rack_scale: bool| {
        let mut racks = scenario(6, &[2, 2, 2], json!({ "engine": "atp" }));
        let of_server = json!({ "rack_scale": rack_scale });
        racks.switch.atp_server = of_server.as_object().expect("a table").clone();
        let outcome = ran(&racks);
        assert_eq!(outcome.jobs[0].degraded, 0);
        let link = outcome.links.iter().find(|link| link.name == "top to server0");
        link.expect("the server has a link").offered as f64
    };
    let (levels, racks) = (frames(false), frames(true));
    assert!((2.9..3.1).contains(&(racks / levels)), "{levels} {racks}");
}

#[test]
fn links_of_lossy_hosts_alone_lose_frames() {
    let mut lossy = scenario(4, &[2, 2], json!({ "engine": "atp" }));
    (lossy.network.loss, lossy.network.lossy_hosts) = (0.05, Some(vec![2]));
    let outcome = ran(&lossy);
    for link in &outcome.links {
        let is_its = link.name == "host2 to rack1" || link.name == "rack1 to host2";
        assert_eq!(link.lost > 0, is_its, "{}: {}", link.name, link.lost);
    }
}
