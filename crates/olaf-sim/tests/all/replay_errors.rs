//! What is no trace: each case names its line and says what to do.

use olaf_engine::BitsPerSecond;
use olaf_engine::switch::native::QueueKind;
use olaf_sim::study::replay::{Head, Parameters, ReplayError, replay};
use proptest::prelude::*;

const HEADER: &str = "t_ns,cluster,worker,seq,reward,bytes";

fn parameters() -> Parameters {
    let rate = BitsPerSecond::parse("8gbit").unwrap();
    Parameters {
        engine: QueueKind::Merging,
        slots: 2,
        rate,
        gate: None,
        head: Head::Locked,
        full: true,
    }
}

fn error_of(bytes: &[u8]) -> ReplayError {
    match replay(bytes, &parameters()) {
        Ok(_) => panic!("replayed {:?}", String::from_utf8_lossy(bytes)),
        Err(error) => error,
    }
}

fn says(trace: &str, words: &str) {
    let said = error_of(trace.as_bytes()).to_string();
    assert!(said.contains(words), "{trace:?} gives {said:?}, which lacks {words:?}");
}

#[test]
fn a_missing_column_is_named_and_the_header_shown() {
    says("", "line 1: no column t_ns: the first line must be t_ns,cluster,worker,seq,reward,bytes");
    says("t_ns,cluster,worker,seq,reward\n", "no column bytes");
    says("0,0,1,0,1,100\n", "no column t_ns");
    says("time_ns,cluster,worker,seq,reward,bytes\n0,0,1,0,1,1\n", "no column t_ns");
}

#[test]
fn a_column_there_twice_is_named() {
    says("t_ns,cluster,worker,seq,reward,bytes,bytes\n", "column bytes occurs more than once");
}

#[test]
fn a_line_of_another_width_is_named() {
    says(&format!("{HEADER}\n0,0,1,0,1,1\n1,0,1,1,1\n"), "line 3: 5 fields; the header has 6");
    says(&format!("{HEADER}\n0,0,1,0,1,1,9\n"), "line 2: 7 fields; the header has 6");
}

#[test]
fn an_arrival_before_its_predecessor_is_named_with_it() {
    let trace = format!("{HEADER}\n5,0,1,0,1,1\n\n4,0,1,1,1,1\n");
    says(&trace, "line 4: t_ns 4 is before line 2's 5: sort the trace by t_ns");
}

#[test]
fn lines_are_counted_as_an_editor_counts_them() {
    let trace =
        format!("\u{feff}\r\n{HEADER}\r\n\r\n5,0,1,0,1,1\r\n6,\"a\nb\",1,0,1,1\r\n4,0,1,1,1,1");
    says(&trace, "line 7: t_ns 4 is before line 5's 6");
}

#[test]
fn a_bad_number_is_quoted_with_its_column_and_what_belongs_there() {
    for (line, words) in [
        ("x,0,1,0,1,1", "line 2: t_ns is \"x\": it must be a whole number of nanoseconds"),
        ("-1,0,1,0,1,1", "t_ns is \"-1\""),
        ("1.5,0,1,0,1,1", "t_ns is \"1.5\""),
        ("99999999999999999999,0,1,0,1,1", "t_ns is \"99999999999999999999\""),
        ("0,,1,0,1,1", "cluster is \"\": it must be a number or a name"),
        ("0,0,,0,1,1", "worker is \"\""),
        ("0,0,1,-1,1,1", "seq is \"-1\": it must be a whole number"),
        ("0,0,1,0,,1", "reward is \"\": it must be a number"),
        ("0,0,1,0,high,1", "reward is \"high\""),
        ("0,0,1,0,1,0", "bytes is \"0\": it must be a whole number of bytes, 1 to 4294967295"),
        ("0,0,1,0,1,4294967296", "bytes is \"4294967296\""),
    ] {
        says(&format!("{HEADER}\n{line}\n"), words);
    }
}

#[test]
fn what_is_no_text_is_named() {
    let mut trace = format!("{HEADER}\n0,0,1,0,1,1\n").into_bytes();
    trace.extend(b"1,\xff\xfe,1,0,1,1\n");
    assert_eq!(error_of(&trace), ReplayError::NotUtf8 { line: 3 });
}

#[test]
fn a_very_long_field_is_cut() {
    let said = error_of(format!("{HEADER}\n{},0,1,0,1,1\n", "x".repeat(100_000)).as_bytes());
    assert!(said.to_string().len() < 300);
}

#[test]
fn slots_and_gate_are_checked() {
    let refused = |parameters| replay(HEADER.as_bytes(), &parameters).err();
    for slots in [0, usize::MAX] {
        assert_eq!(refused(Parameters { slots, ..parameters() }), Some(ReplayError::Slots));
    }
    for gate in [-1.0, f64::NAN, f64::INFINITY] {
        let gate = Some(gate);
        assert_eq!(refused(Parameters { gate, ..parameters() }), Some(ReplayError::Gate));
    }
}

#[test]
fn columns_may_stand_in_any_order_with_others_beside_them_and_spaces_around() {
    let trace = "bytes, note ,reward,seq,worker,cluster,t_ns\r\n 10 ,hello, 1 ,0,1,0, 5\r\n";
    let result = serde_json::to_value(replay(trace.as_bytes(), &parameters()).unwrap()).unwrap();
    assert_eq!(result["departures"][0]["start_ns"], 5);
    assert_eq!(result["departures"][0]["end_ns"], 15);
}

#[test]
fn a_byte_order_mark_and_a_missing_last_newline_do_no_harm() {
    let trace = format!("\u{feff}{HEADER}\n0,0,1,0,1,1");
    assert_eq!(replay(trace.as_bytes(), &parameters()).unwrap().summary().arrivals, 1);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = replay(&bytes[..], &parameters());
        let _ = replay(&[HEADER.as_bytes(), b"\n", &bytes].concat()[..], &parameters());
    }

    #[test]
    fn no_line_makes_it_panic(lines in prop::collection::vec("[0-9naif.,\"x-]{0,24}", 0..8)) {
        let trace = format!("{HEADER}\n{}", lines.join("\n"));
        let _ = replay(trace.as_bytes(), &parameters());
    }
}
