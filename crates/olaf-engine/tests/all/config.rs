//! A switch's configuration as serde reads and writes it.

use core::time::Duration;
use olaf_engine::link::Shares;
use olaf_engine::switch::native::{Admission, AnswerTo, Config, Pacing, QueueKind, Ruling};
use olaf_engine::{BitsPerSecond, JobId};
use serde_json::{Value, json};

fn read(value: Value) -> Result<Config, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

#[test]
fn an_empty_table_is_the_default_and_a_written_one_reads_back() {
    assert_eq!(read(json!({})), Ok(Config::default()));
    let config = Config::default()
        .paced(Pacing::Credits { credits: 3, timeout: Duration::from_millis(70) })
        .asking(Admission { unanswered: Ruling::Admit, ..Admission::default() });
    let shares = Shares::default().with(JobId(3), 7);
    let config = Config { shares, ..config };
    assert_eq!(read(serde_json::to_value(&config).unwrap()), Ok(config));
}

#[test]
fn keys_say_their_unit_and_choices_their_name() {
    let config = read(json!({
        "queue": "fifo", "uplink_bps": 400_000, "answer_to": "cluster", "active_ms": 250,
        "admission_timeout_ms": 800, "admission_unanswered": "admit", "downlink_bps": 9_000,
        "downlink_limit_datagrams": 7, "uplink_ecn_depth_datagrams": 3,
        "downlink_ecn_depth_datagrams": 4,
    }));
    let config = config.unwrap();
    assert_eq!((config.queue, config.answer_to), (QueueKind::Fifo, AnswerTo::Cluster));
    assert_eq!(config.active, Duration::from_millis(250));
    assert_eq!(config.pacing(), Pacing::Rate(BitsPerSecond::new(400_000).unwrap()));
    assert_eq!((config.downlink_rate, config.downlink_limit), (BitsPerSecond::new(9_000), 7));
    assert_eq!((config.uplink_ecn_depth, config.downlink_ecn_depth), (Some(3), Some(4)));
    let timeout = Duration::from_millis(800);
    let asking = Admission { timeout, unanswered: Ruling::Admit, ..Admission::default() };
    assert_eq!(config.admission(), Some(asking));
}

#[test]
fn what_cannot_be_read_says_what_may_stand_there() {
    for (value, told) in [
        (json!({"queue": "lifo"}), "must be olaf, fifo or freshest"),
        (json!({"answer_to": "all"}), "must be shared or cluster"),
        (json!({"admission_unanswered": "ask"}), "must be admit or refuse"),
        (json!({"uplink_bps": 0}), "must be from 1 to 10000000000000"),
        (json!({"downlink_bps": 0}), "must be from 1 to 10000000000000"),
        (json!({"shares": {"first": 2}}), "must name jobs by their numbers"),
        (json!({"active_ms": "soon"}), "invalid type: string"),
    ] {
        let error = read(value).expect_err(told);
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn a_check_names_the_key_and_what_it_may_be() {
    for (value, told) in [
        (json!({"slots": 0}), "slots: must be from 1 to 1048576"),
        (json!({"gate": -1.0}), "gate: must be a number of at least 0, or off"),
        (json!({"uplink_bps": 1, "credits": 1}), "uplink_bps and credits: give at most one"),
        (json!({"shares": {"1": 0}}), "shares: each share must be from 1 to 1000"),
        (json!({"credits": 0}), "credits: must be above 0"),
        (json!({"credits": 1, "credit_timeout_ms": 0}), "credit_timeout: must be above 0"),
        (json!({"admission_timeout_ms": 0}), "admission_timeout: must be above 0"),
        (json!({"active_ms": 0}), "active: must be above 0"),
        (json!({"silent_after_ms": 0}), "silent_after: must be above 0"),
        (json!({"max_hops": 0}), "max_hops: must be above 0"),
        (json!({"downlink_limit_datagrams": 0}), "downlink_limit_datagrams: must be above 0"),
        (
            json!({"uplink_ecn_depth_datagrams": 0}),
            "uplink_ecn_depth_datagrams: must be at least 1, or off",
        ),
        (
            json!({"downlink_ecn_depth_datagrams": 0}),
            "downlink_ecn_depth_datagrams: must be at least 1, or off",
        ),
    ] {
        let error = read(value).unwrap().check().expect_err(told).to_string();
        assert!(error.starts_with(told), "{error}");
    }
}

#[test]
fn limits_that_guard_the_memory_are_no_keys() {
    let written = serde_json::to_value(Config::default()).unwrap();
    let keys: Vec<_> = written.as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 24, "{keys:?}");
    assert!(written.get("max_jobs").is_none());
    assert_eq!(written["silent_after_ms"], 2000);
}
