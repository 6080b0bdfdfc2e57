//! Replays the queue traces of `vectors/queue` through the C ABI: every field goes in and comes
//! out where it belongs.
#![allow(unsafe_code, clippy::unwrap_used, missing_docs)]

use olaf::*;
use serde_json::{Value, json};
use std::ffi::{CStr, CString};
use std::mem::{MaybeUninit, zeroed};

/// A number that JSON may not have: "nan" and "inf" are texts.
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| value.as_str().unwrap().parse().unwrap())
}

fn integer<T: TryFrom<u64, Error: std::fmt::Debug>>(value: &Value) -> T {
    value.as_u64().unwrap().try_into().unwrap()
}

fn arrive(queue: *mut olaf_queue, step: &Value) -> (String, Value) {
    let lanes = step["lanes"].as_array().unwrap().iter();
    let lanes: Vec<u8> = lanes.flat_map(|lane| (number(lane) as f32).to_le_bytes()).collect();
    let arrival = olaf_arrival {
        update: olaf_update {
            job: integer(&step["job"]),
            cluster: integer(&step["cluster"]),
            worker: integer(&step["worker"]),
            session: 77,
            sequence: integer(&step["sequence"]),
            hop_sequence: 88,
            segment: integer(&step["segment"]),
            segments: step["segments"]
                .as_u64()
                .map_or(integer::<u32>(&step["segment"]) + 1, |n| n.try_into().unwrap()),
            generated_oldest_ns: integer(&step["generated_ns"][0]),
            generated_newest_ns: integer(&step["generated_ns"][1]),
            version_oldest: integer(&step["versions"][0]),
            version_newest: integer(&step["versions"][1]),
            contributors: integer(&step["contributors"]),
            hops: integer(&step["hops"]),
            weight: number(&step["weight"]),
            reward: number(&step["reward"]),
            flow_sequence: 0,
            reserved: 0,
        },
        bytes: integer(&step["bytes"]),
        contributors: std::ptr::null(),
        contributor_count: 0,
        lanes: lanes.as_ptr(),
        lane_count: lanes.len() / 4,
    };
    let mut outcome = MaybeUninit::uninit();
    // SAFETY: the pointers are to what stands above.
    let result = unsafe { olaf_queue_arrive(queue, 0, &arrival, outcome.as_mut_ptr()) };
    assert_eq!(result, olaf_result::OLAF_RESULT_OK);
    // SAFETY: written, since the call says so.
    let outcome: olaf_outcome = unsafe { outcome.assume_init() };
    let name = match outcome.fate {
        olaf_fate::OLAF_FATE_APPENDED => "appended",
        olaf_fate::OLAF_FATE_MERGED => "merged",
        olaf_fate::OLAF_FATE_REPLACED => "replaced",
        olaf_fate::OLAF_FATE_FILTERED => "filtered",
        olaf_fate::OLAF_FATE_EVICTED => "evicted",
        olaf_fate::OLAF_FATE_DROPPED => return ("dropped".into(), Value::Null),
        olaf_fate::OLAF_FATE_REJECTED => {
            // SAFETY: a constant string, or null, which would fail the test.
            let name = unsafe { CStr::from_ptr(olaf_rejection_name(outcome.rejection)) };
            return (name.to_str().unwrap().into(), Value::Null);
        }
    };
    (name.into(), json!(outcome.entry))
}

/// An entry in the vectors' words.
fn told(entry: &olaf_entry) -> Value {
    let lanes = if entry.lane_count == 0 {
        &[]
    } else {
        // SAFETY: `lane_count` lanes, valid until the queue changes.
        unsafe { std::slice::from_raw_parts(entry.lanes, entry.lane_count) }
    };
    let update = &entry.update;
    json!({
        "entry": entry.id,
        "job": update.job,
        "cluster": update.cluster,
        "segment": update.segment,
        "worker": update.worker,
        "sequence": update.sequence,
        "contributors": update.contributors,
        "weight": update.weight,
        "reward": update.reward,
        "generated_ns": [update.generated_oldest_ns, update.generated_newest_ns],
        "versions": [update.version_oldest, update.version_newest],
        // The header is the next hop's to read.
        "hops": update.hops - 1,
        "bytes": entry.bytes,
        "replaceable": entry.replaceable != 0,
        "lanes": lanes,
    })
}

fn same(found: &Value, expected: &Value) -> bool {
    let (a, b) = (number(&found["reward"]), number(&expected["reward"]));
    let mut found = found.clone();
    found["reward"] = expected["reward"].clone();
    found == *expected && (a - b).abs() <= 1e-9 * b.abs().max(1.0)
}

#[test]
fn the_abi_replays_every_vector() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/queue");
    let mut replayed = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap().path();
        let vector: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let kind = CString::new(vector["discipline"].as_str().unwrap()).unwrap();
        // SAFETY: plain data, all of which is written next.
        let mut options: olaf_queue_options = unsafe { zeroed() };
        let mut queue = std::ptr::null_mut();
        // SAFETY: the pointers are to what stands above, and `kind` outlives the call.
        unsafe {
            olaf_queue_options_default(&mut options);
            options.kind = kind.as_ptr();
            options.slots = integer(&vector["slots"]);
            options.gate = vector["gate"].as_f64().unwrap_or(f64::NAN);
            assert_eq!(olaf_queue_new(&options, &mut queue), olaf_result::OLAF_RESULT_OK);
        }
        for (at, step) in vector["steps"].as_array().unwrap().iter().enumerate() {
            let place = format!("{}, step {at}", file.display());
            let mut entry = MaybeUninit::uninit();
            if step["arrive"].is_object() {
                let (name, met) = arrive(queue, &step["arrive"]);
                assert_eq!(
                    (json!(name), met),
                    (step["outcome"].clone(), step["entry"].clone()),
                    "{place}"
                );
            } else if step["begin"] == json!(true) {
                // SAFETY: the pointers are to what stands above.
                let begun = unsafe { olaf_queue_begin(queue, 0, entry.as_mut_ptr()) };
                assert_eq!(
                    begun == olaf_result::OLAF_RESULT_OK,
                    !step["entry"].is_null(),
                    "{place}"
                );
            } else {
                // SAFETY: as above.
                let ended = unsafe { olaf_queue_end(queue) };
                assert_eq!(
                    ended == olaf_result::OLAF_RESULT_OK,
                    !step["entry"].is_null(),
                    "{place}"
                );
            }
            // Whom the ABI shows: the departing entry, and the one that comes next.
            let waiting = step["queue"].as_array().unwrap();
            let (locked, next) = if step["locked"] == json!(true) {
                (waiting.first(), waiting.get(1))
            } else {
                (None, waiting.first())
            };
            for (shown, look) in [
                (locked, olaf_queue_departing as unsafe extern "C" fn(_, _) -> _),
                (next, olaf_queue_peek),
            ] {
                // SAFETY: as above.
                match unsafe { look(queue, entry.as_mut_ptr()) } {
                    olaf_result::OLAF_RESULT_OK => {
                        // SAFETY: written, since the call says so.
                        let found = told(unsafe { entry.assume_init_ref() });
                        let expected = shown.unwrap_or(&Value::Null);
                        assert!(
                            same(&found, expected),
                            "{place}: {found}\nwhere belongs\n{expected}"
                        );
                    }
                    result => {
                        assert_eq!(result, olaf_result::OLAF_RESULT_NOTHING, "{place}");
                        assert!(shown.is_none(), "{place}");
                    }
                }
            }
            replayed += 1;
        }
        // SAFETY: made above, freed once.
        unsafe { olaf_queue_free(queue) };
    }
    assert!(replayed > 50, "only {replayed} steps");
}
