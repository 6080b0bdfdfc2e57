//! Any file as a trace: it is replayed with every arrival accounted for, or refused in words.
#![no_main]

use libfuzzer_sys::fuzz_target;
use olaf_engine::BitsPerSecond;
use olaf_engine::switch::native::QueueKind;
use olaf_sim::study::replay::{Head, Parameters, replay};

fuzz_target!(|input: (u8, u16, u64, Option<i8>, &[u8])| {
    let (engine, slots, rate, gate, bytes) = input;
    let Some(rate) = BitsPerSecond::new(rate) else { return };
    let parameters = Parameters {
        engine: QueueKind::ALL[usize::from(engine) % QueueKind::ALL.len()].1,
        slots: usize::from(slots),
        rate,
        gate: gate.map(f64::from),
        head: Head::ALL[usize::from(engine / 16) % Head::ALL.len()].1,
        full: true,
    };
    // Most inputs would die at the header.
    let with_header = [b"t_ns,cluster,worker,seq,reward,bytes\n", bytes].concat();
    for trace in [bytes, &with_header] {
        match replay(trace, &parameters) {
            Ok(done) => {
                let summary = done.summary();
                assert_eq!(summary.arrivals, done.fates().count() as u64);
                let by_cluster: u64 = summary.clusters.iter().map(|c| c.counts.sum()).sum();
                assert_eq!(summary.arrivals, by_cluster);
                serde_json::to_string(&done).expect("a replay is JSON");
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
