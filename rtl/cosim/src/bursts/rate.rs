//! How long an update takes through an empty `olaf_queue`, and how many of one flow it takes in.

use super::datagram::{Sent, frame};
use crate::Shim;
use crate::design::Design;
use crate::frames::{EIGHT_SLOTS, Frame, In, JUMBO, Out};
use serde::{Deserialize, Serialize};

/// Updates of one length.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Updates {
    /// Bytes of an update: 100 to 9,036, a multiple of 4.
    pub bytes: usize,
    /// Updates that come back to back.
    pub updates: u32,
    /// Begins the registers that have no value.
    pub seed: u64,
}

/// Slots of both builds.
const SLOTS: u32 = 8;

/// Cycles that the hardware takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cycles {
    /// Beats of an update.
    pub beats: u64,
    /// One update alone: from its last beat in to its first beat out.
    pub last_in_to_first_out: u64,
    /// One update alone: from its first beat in to its last beat out, both counted.
    pub stored_and_sent: u64,
    /// Updates of one flow back to back, each by another worker: cycles from the first beat taken to the
    /// last one, both counted.
    pub one_flow: u64,
    /// The updates that left of them.
    pub one_flow_left: u64,
    /// The same with updates that cannot merge, each a flow of its own.
    pub many_flows: u64,
    /// A full queue of merged entries, and a link that is always free: most cycles from one first beat to the
    /// next.
    pub merged_departure: u64,
}

/// # Errors
/// If there can be no such update, or the hardware hangs.
pub fn measure(of: Updates) -> Result<Cycles, String> {
    if of.bytes < 100 || of.bytes > 9036 || !of.bytes.is_multiple_of(4) || of.updates == 0 {
        return Err("bytes: a multiple of 4, 100 to 9,036; updates: above 0".into());
    }
    let (shim, longest) = if of.bytes <= 256 { (&EIGHT_SLOTS, 256) } else { (&JUMBO, 9036) };
    let frame =
        |segment, worker| frame(Sent { segment, worker, ..Sent::default() }, of.bytes, longest);
    let alone = run(shim, of.seed, &[frame(0, 0)], 0)?;
    let one: Vec<Frame> = (0..of.updates).map(|worker| frame(0, worker)).collect();
    let many: Vec<Frame> = (0..of.updates).map(|segment| frame(segment, 0)).collect();
    let (one, many) = (run(shim, of.seed, &one, 0)?, run(shim, of.seed, &many, 0)?);
    // The first entry departs before its second update is in: it does not count.
    let full: Vec<Frame> =
        [0, 1].iter().flat_map(|worker| (0..SLOTS).map(|flow| frame(flow, *worker))).collect();
    let blocked = 40 * full.len() as u64 * full[0].beats.len() as u64 + 400;
    let full = run(shim, of.seed, &full, blocked)?;
    Ok(Cycles {
        beats: of.bytes.div_ceil(64) as u64,
        last_in_to_first_out: alone.first_out - alone.last_in,
        stored_and_sent: alone.last_out - alone.first_in + 1,
        one_flow: one.last_in - one.first_in + 1,
        one_flow_left: one.left,
        many_flows: many.last_in - many.first_in + 1,
        merged_departure: full.longest_gap,
    })
}

/// Cycles of a run.
#[derive(Default)]
struct Seen {
    first_in: u64,
    last_in: u64,
    first_out: u64,
    /// First beat of the last frame.
    last_first_out: u64,
    /// Most cycles between two first beats, the first frame's aside.
    longest_gap: u64,
    last_out: u64,
    left: u64,
}

/// Offers the frames without a gap to a queue whose sink is always ready, but for the first cycles.
fn run(
    shim: &'static Shim<In, Out>,
    seed: u64,
    frames: &[Frame],
    blocked: u64,
) -> Result<Seen, String> {
    let mut design = Design::new(shim, seed);
    design.settle(&In { rst: true, ..In::default() });
    design.tick();
    let beats = || {
        frames.iter().flat_map(|frame| frame.beats.iter().enumerate().map(move |at| (frame, at)))
    };
    let total = beats().count() as u64;
    let mut coming = beats().peekable();
    let mut seen = Seen::default();
    let (mut first, mut starts) = (true, true);
    let (mut decided, mut appended) = (0, 0);
    // Each beat takes a few cycles in and out at worst, and each entry waits for a division.
    for cycle in 0..blocked + 8 * total + 200 * frames.len() as u64 + 1000 {
        let mut pins = In { tready: cycle >= blocked, ..In::default() };
        if let Some((frame, (at, beat))) = coming.peek() {
            pins.offer(beat, at + 1 == frame.beats.len());
        }
        let out = design.settle(&pins);
        decided += usize::from(out.fate != 0);
        appended += u64::from(out.fate == 1);
        if pins.tvalid && out.s_tready {
            if first {
                (seen.first_in, first) = (cycle, false);
            }
            seen.last_in = cycle;
            coming.next();
        }
        if out.tvalid && pins.tready {
            match (starts, seen.left) {
                (true, 0) => seen.first_out = cycle,
                (true, 2..) => {
                    seen.longest_gap = seen.longest_gap.max(cycle - seen.last_first_out);
                }
                _ => {}
            }
            if starts {
                seen.last_first_out = cycle;
            }
            starts = out.tlast;
            seen.last_out = cycle;
            seen.left += u64::from(out.tlast);
        }
        if decided == frames.len() && seen.left == appended {
            return Ok(seen);
        }
        design.tick();
    }
    Err(format!("{} frames: not all of them left", frames.len()))
}
