//! Bursts through `olaf_queue_control` alone: the decisions of the hardware, at the cycle in which the
//! last beat of an update has come in. The bench plays the data path and the link.

use super::link::Link;
use super::tally::Tally;
use super::{Bursts, CYCLE_NS, Outcome, Update};
use crate::control::{EIGHT_SLOTS, In};
use crate::design::Design;

/// Slots of the build (OLAF §8.1).
const SLOTS: usize = 8;

/// Runs until everything has left.
///
/// # Errors
/// If the hardware contradicts itself.
pub fn through_control(bursts: &Bursts) -> Result<Outcome, String> {
    let mut design = Design::new(&EIGHT_SLOTS, bursts.seed);
    design.settle(&In { rst: true, ..In::default() });
    design.tick();
    let mut tally = Tally::new(bursts);
    let mut link = Link::new(bursts.rate_bps);
    // What each slot holds: the newest of its contributions.
    let mut held: [Option<Update>; SLOTS] = [None; SLOTS];
    let mut coming = bursts.updates().peekable();
    let mut cycle = 0;
    loop {
        let now_ns = cycle * CYCLE_NS;
        let whole = |update: &Update| update.at_ns + bursts.beats() * CYCLE_NS <= now_ns;
        let update = coming.next_if(whole);
        let mut pins = In { begin_departure: true, ..In::default() };
        if let Some(update) = &update {
            pins.offer_one(update.flow, update.worker);
        }
        let before = design.settle(&pins);
        pins.end_departure = before.departing && link.is_free(now_ns as f64);
        let out = design.settle(&pins);
        if pins.end_departure {
            let slot = usize::from(out.departing_slot);
            let gone = held[slot].take().ok_or_else(|| format!("slot {slot} departs empty"))?;
            tally.departed(now_ns, gone.cluster, out.departing_contributors, gone.at_ns);
        }
        // An entry that waits is locked now, and its first byte leaves.
        if pins.end_departure && out.used > 1 {
            link.follow(bursts.bytes);
        } else if !before.departing && out.used > 0 {
            link.begin(now_ns as f64, bursts.bytes);
        }
        if let Some(update) = update {
            let slot = usize::from(out.slot);
            match (out.appended || out.replaced || out.merged, out.dropped) {
                (true, false) => held[slot] = Some(update),
                (false, true) => tally.dropped(),
                _ => return Err(format!("cycle {cycle}: an update without a fate: {out:?}")),
            }
        }
        if coming.peek().is_none() && update.is_none() && out.used == 0 {
            return Ok(tally.outcome(cycle));
        }
        design.tick();
        cycle += 1;
    }
}
