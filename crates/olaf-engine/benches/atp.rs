//! What a fragment of ATP costs the switch, against adding and copying the same numbers and nothing else.
//!
//! `cargo bench -p olaf-engine --bench atp`. Four workers send a packet of 62 values each; the sum goes up,
//! and the parameter packet down to all. Alone: the four packets go up as they came. One run measures all,
//! in turns; the ratios are what counts. The server's welcomes say beforehand which worker has which bit.

#![allow(clippy::print_stdout, reason = "a benchmark says what it measured")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a benchmark has a clock"
)]

mod fragments;

use fragments::{Run, WORKERS};
use olaf_samples::rounds;
use olaf_wire::atp::VALUES;
use std::hint::black_box;
use std::time::Duration;

const FRAGMENTS: u32 = 2000;
const BYTES: usize = VALUES as usize * 4;

fn main() {
    let rounds = rounds(50);
    let (mut sums, mut alone) = (Run::new(false), Run::new(true));
    let (mut sum, values, mut copy) = ([0i32; BYTES / 4], [7u8; BYTES], [0u8; BYTES]);
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        times[0].push(took(|| {
            for _ in 0..WORKERS {
                let lanes = black_box(&values).as_chunks::<4>().0;
                let added = black_box(&mut sum).iter_mut().zip(lanes);
                added.for_each(|(sum, lane)| *sum = sum.wrapping_add(i32::from_be_bytes(*lane)));
            }
            black_box(&mut copy).copy_from_slice(black_box(&values));
        }));
        times[1].push(took(|| sums.fragment()));
        times[2].push(took(|| alone.fragment()));
    }
    let [base, sums, alone] = times.map(|mut each| {
        each.sort_unstable();
        each[rounds / 2].as_secs_f64() * 1e9 / f64::from(FRAGMENTS)
    });
    println!("{WORKERS} packets of {VALUES} values, {rounds} rounds of {FRAGMENTS} fragments");
    println!("  plain adds and a copy (baseline)       {base:6.0} ns a fragment");
    println!("  a sum up and its parameter packet down {sums:6.0} ns, ratio {:.1}", sums / base);
    println!("  four packets that go on alone          {alone:6.0} ns, ratio {:.1}", alone / base);
}

fn took(mut fragment: impl FnMut()) -> Duration {
    let begun = std::time::Instant::now();
    (0..FRAGMENTS).for_each(|_| fragment());
    begun.elapsed()
}
