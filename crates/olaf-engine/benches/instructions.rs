//! What `make budgets` counts: the work of the switches, piece by piece, for callgrind.
//!
//! Each piece runs inside [`measured`], and callgrind collects there alone. The program prints how often it did the
//! work of each piece. Its argument is the name of a piece; without one it runs all. `scripts/budgets` runs it.

#![allow(clippy::print_stdout, reason = "a benchmark says what it measured")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a benchmark has arguments and prints"
)]

#[allow(dead_code, reason = "another benchmark compares with it")]
mod blocks;
mod forwarding;
#[allow(dead_code, reason = "another benchmark compares with it")]
mod fragments;
mod merging;

use blocks::Whole;
use forwarding::{BATCH, Forwarding};
use fragments::Run;
use merging::Packets;
use olaf_engine::party::Limits;
use std::hint::black_box;

/// Updates that merge: a multiple of all numbers of workers.
const MERGES: u32 = 6400;
const BLOCKS: u32 = 400;
const FRAGMENTS: u32 = 400;

fn main() {
    for bytes in [64, 1472, 8960] {
        for workers in [4, 64] {
            piece(&format!("merge {bytes} bytes, {workers} workers"), MERGES, || {
                let mut packets = Packets::new(Limits::default(), bytes / 4, workers);
                (0..MERGES).for_each(|_| packets.call());
                measured(&mut || (0..MERGES).for_each(|_| packets.call()));
                packets.check();
            });
        }
    }
    for bytes in [64, 1376] {
        piece(&format!("forward {bytes} bytes"), BATCH as u32, || {
            let mut forwarding = Forwarding::new(bytes / 4, 1);
            (0..4).for_each(|_| forwarding.batch(|departures| departures()));
            forwarding.batch(|departures| measured(departures));
            forwarding.check(5);
        });
    }
    piece("reduce 8960 bytes, a piece of 4 workers", BLOCKS * blocks::WORKERS, || {
        let mut whole = Whole::new(64);
        (0..BLOCKS).for_each(|_| whole.block());
        measured(&mut || (0..BLOCKS).for_each(|_| whole.block()));
    });
    piece("atp, a fragment of 4 workers", FRAGMENTS, || {
        let mut run = Run::new(false);
        (0..FRAGMENTS).for_each(|_| run.fragment());
        measured(&mut || (0..FRAGMENTS).for_each(|_| run.fragment()));
    });
}

/// Runs a piece, if it is the one of the command line or if there is none.
fn piece(name: &str, times: u32, run: impl FnOnce()) {
    let only = std::env::args().nth(1).filter(|argument| !argument.starts_with("--"));
    if only.is_none_or(|only| only == name) {
        run();
        println!("{times}\t{name}");
    }
}

/// Here callgrind counts.
#[inline(never)]
fn measured(work: &mut dyn FnMut()) {
    work();
    // The call above is no jump, so that this function has an end.
    black_box(());
}
