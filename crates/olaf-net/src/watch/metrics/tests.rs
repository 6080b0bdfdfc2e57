//! The table itself, without a role.

use super::table::{KEYS, Kind, OWN, ROLES, Row};
use super::*;
use serde_json::json;
use std::collections::BTreeMap;

fn rows() -> impl Iterator<Item = &'static Row> {
    ROLES.iter().flat_map(|(_, rows)| *rows).chain(OWN).chain(KEYS)
}

#[test]
fn a_name_has_one_type_and_within_a_role_one_help() {
    let mut kinds = BTreeMap::new();
    for (role, rows) in ROLES {
        let mut helps = BTreeMap::new();
        let rows = rows.iter().chain(OWN).chain(KEYS).filter(|row| !matches!(row.kind, Kind::Left));
        for row in rows {
            let kind = std::mem::discriminant(&row.kind);
            assert_eq!(*kinds.entry(row.name).or_insert(kind), kind, "{}", row.name);
            assert_eq!(*helps.entry(row.name).or_insert(row.help), row.help, "{role} {}", row.name);
        }
    }
}

#[test]
fn names_follow_the_conventions() {
    for row in rows() {
        if let Kind::Left = row.kind {
            assert!(row.name.is_empty() && !row.help.is_empty(), "{}", row.path);
            continue;
        }
        let is_plain = row.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        assert!(row.name.starts_with("olaf_") && is_plain, "{}", row.name);
        assert!(!row.name.ends_with("_total") && !row.name.ends_with("_info"), "{}", row.name);
        assert!(row.help.ends_with('.'), "{}", row.help);
        let last = row.path.rsplit('.').next().unwrap_or_default();
        let last = last.trim_end_matches('}');
        let is_time = ["_ns", "_us", "_ms", "_s"].iter().any(|unit| last.ends_with(unit));
        assert_eq!(is_time, row.name.ends_with("_seconds"), "{} is {}", row.path, row.name);
        assert_eq!(
            last.ends_with("_bytes"),
            row.name.ends_with("_bytes"),
            "{} is {}",
            row.path,
            row.name
        );
    }
}

#[test]
fn what_the_table_does_not_know_is_found() {
    let status =
        json!({"role": "switch", "epoch": 1, "news": 5, "queue": {"slots": 8, "colour": 1}});
    assert_eq!(unmapped(&status), ["news", "queue.colour"]);
}

#[test]
fn units_become_base_units() {
    let status = json!({
        "role": "worker", "round_trip_ns": 2_500_000, "queue": {"round_us": 1500},
        "switch_silent_ns": 3_000_000_000u64, "server_alive": false, "clock_offset_ns": null,
    });
    let text = metrics(&status);
    for line in [
        "olaf_round_trip_seconds 0.0025",
        "olaf_queue_round_seconds 0.0015",
        "olaf_switch_silent_seconds 3.0",
        "olaf_peer_up{peer=\"server\"} 0.0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
    assert!(!text.contains("clock_offset"), "what is not known is no sample");
}

#[test]
fn a_label_says_what_is_known() {
    let closed = json!({"dead": 2});
    let jobs = json!([{"job": 1, "slots": 4}, {"job": 2, "core": 1, "slots": 5}]);
    let status = json!({"role": "switch", "reduce": {"closed_generations": closed, "jobs": jobs}});
    let text = metrics(&status);
    for line in [
        "olaf_sum_slots{engine=\"reduce\",job_id=\"1\"} 4.0",
        "olaf_sum_slots{engine=\"reduce\",job_id=\"2\",core=\"1\"} 5.0",
        "olaf_sum_closed_generations_total{engine=\"reduce\",closed=\"generations\",reason=\"dead\"} 2.0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
}

#[test]
fn a_text_from_the_network_cannot_break_a_line() {
    let status = json!({"role": "switch", "refused": {"a\"b\n\\": 1}});
    let text = metrics(&status);
    assert!(text.contains(r#"olaf_refused_datagrams_total{reason="a\"b\n\\"} 1.0"#), "{text}");
}

#[test]
fn what_keys_kept_out_is_counted_at_the_role_and_at_each_engine() {
    let keys = json!({
        "received": 9, "opened": 4, "handshakes": 3, "reclassified": 2, "sealed": 5,
        "refused": {"no_seal": 1, "full": 1}, "associations": 1, "associations_begun": 2, "waiting": 0,
        "with_old_key": 3,
    });
    let status = json!({"role": "switch", "keys": keys, "iswitch": {"keys": keys}});
    assert_eq!(unmapped(&status), Vec::<String>::new());
    let text = metrics(&status);
    for (name, labels, value) in [
        ("reclassified_datagrams_total", "", 2.0),
        ("refused_datagrams_total", "reason=\"full\"", 1.0),
        ("received_datagrams_total", "", 9.0),
        ("datagrams_total", "fate=\"opened\"", 4.0),
        ("sent_datagrams_total", "fate=\"sealed\"", 5.0),
        ("associations", "", 1.0),
        ("old_key_associations", "", 3.0),
    ] {
        for engine in ["", "engine=\"iswitch\""] {
            let all: Vec<_> = [engine, labels].into_iter().filter(|one| !one.is_empty()).collect();
            let all = if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) };
            let line = format!("olaf_keys_{name}{all} {value:.1}");
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }
}

#[test]
fn a_long_list_is_cut() {
    let clusters: Vec<_> =
        (0..5000).map(|at| json!({"job": 1, "cluster": at, "waiting": 1})).collect();
    let text = metrics(&json!({"role": "switch", "clusters": clusters}));
    let found = text.lines().filter(|line| line.starts_with("olaf_cluster_waiting")).count();
    assert_eq!(found, MOST_OF_A_LIST);
}

#[test]
fn every_metric_is_in_the_catalogue() {
    let names: Vec<_> = catalogue().into_iter().map(|(name, ..)| name).collect();
    for name in ["olaf_updates_total", "olaf_queue_used_slots", "olaf_build_info"] {
        assert!(names.contains(&name.to_owned()), "{name}");
    }
}
