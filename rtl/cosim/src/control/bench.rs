//! Drives the hardware's decisions and the engine's queue with the same updates.
//!
//! The bench plays the data path around `olaf_queue_control`: it keeps the sum that each slot of the
//! hardware holds, and says of an arrival whether it is better, worse, or without a sum. The engine's
//! queue keeps sums of its own. So both the decisions and what they lead to are compared.

use crate::Shim;
use crate::control::pins::{In, Out, words};
use crate::control::traffic::{Cycle, Traffic};
use crate::design::Design;
use crate::mismatch::{Mismatch, Run, same};
use olaf_engine::queue::merging::{Gated, gate};
use olaf_engine::queue::{Gate, Merging};
use olaf_engine::{Arrival, Contribution, Discipline, EntryId, Outcome};

/// Contributions by fate, and how often the rare instants occurred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Updates in slots of their own.
    pub appended: u64,
    /// Updates that were added.
    pub merged: u64,
    /// Updates that took an entry's place.
    pub replaced: u64,
    /// Contributions that were in the replaced entries.
    pub displaced: u64,
    /// Updates that the gate refused.
    pub filtered: u64,
    /// Updates that found no slot.
    pub dropped: u64,
    /// Updates without a sum.
    pub rejected: u64,
    /// Entries that left.
    pub departed: u64,
    /// Arrivals that took the slot that a departure left in the same cycle.
    pub appended_at_an_end: u64,
    /// Arrivals that were appended behind the locked head of their own flow.
    pub behind_the_head: u64,
    /// Cycles with an end, a lock and an arrival.
    pub ties: u64,
}

/// What a slot of the hardware holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    contribution: Contribution,
    /// Rewards times weights, summed.
    products: f64,
    lane: f32,
    /// The engine's name of the entry.
    id: EntryId,
}

impl Held {
    fn new(contribution: &Contribution, lane: f32, id: EntryId) -> Self {
        let products = contribution.reward * contribution.weight;
        Self { contribution: *contribution, products, lane, id }
    }

    /// The sum of the two, or nothing if one of its numbers is not finite (docs/queue.md, rule 7). The
    /// number of contributors is not looked at: the hardware does that.
    fn with(&self, contribution: &Contribution, lane: f32) -> Option<Self> {
        // The rewards are summed below, as the data path does.
        let of = |one: &Contribution| Contribution { reward: 0.0, contributors: 1, ..*one };
        let mut sum = of(&self.contribution).with(&of(contribution)).ok()?;
        let products = self.products + contribution.reward * contribution.weight;
        sum.reward = products / sum.weight;
        sum.contributors = self.contribution.contributors.wrapping_add(contribution.contributors);
        let lane = self.lane + lane;
        let finite = sum.reward.is_finite() && lane.is_finite();
        finite.then_some(Self { contribution: sum, products, lane, id: self.id })
    }
}

/// Runs both and compares them in every cycle.
///
/// # Errors
/// The first difference.
pub fn compare(
    shim: &'static Shim<In, Out>,
    slots: u8,
    gate: Gate,
    run: Run,
) -> Result<Counts, Mismatch> {
    let mut bench = Bench {
        design: Design::new(shim, run.seed),
        engine: Merging::new(slots.into(), gate),
        slots,
        gate,
        held: vec![None; slots.into()],
        counts: Counts::default(),
    };
    let mut traffic = Traffic::new(run.seed, slots.into());
    for cycle in 0..run.cycles {
        bench.cycle(&traffic.draw(cycle)).map_err(|what| Mismatch { run, cycle, what })?;
    }
    Ok(bench.counts)
}

struct Bench {
    design: Design<In, Out>,
    engine: Merging,
    slots: u8,
    gate: Gate,
    held: Vec<Option<Held>>,
    counts: Counts,
}

impl Bench {
    fn cycle(&mut self, drawn: &Cycle) -> Result<(), String> {
        let mut pins = In {
            rst: drawn.reset,
            begin_departure: drawn.begins,
            end_departure: drawn.ends,
            ..In::default()
        };
        if let Some((contribution, lane)) = &drawn.arrival {
            pins.offer(contribution);
            // The entry that it meets follows from the flow and the departures alone.
            let met = self.design.settle(&pins);
            let product = contribution.reward * contribution.weight;
            pins.not_finite = !product.is_finite() || !lane.is_finite();
            if met.meets {
                let entry = self.held[usize::from(met.slot)]
                    .ok_or_else(|| format!("it meets slot {}, which is empty", met.slot))?;
                self.judge(&mut pins, &entry, contribution, *lane);
            }
        }
        let out = self.design.settle(&pins);
        self.departures(drawn, &out)?;
        match &drawn.arrival {
            Some((contribution, lane)) => self.arrival(drawn, &out, contribution, *lane)?,
            None => same("fates without an arrival", fates(&out), [false; 6])?,
        }
        if drawn.reset {
            self.engine = Merging::new(self.slots.into(), self.gate);
            self.held.fill(None);
        }
        self.design.tick();
        Ok(())
    }

    /// What the data path says about the arrival and the entry that it meets.
    fn judge(&self, pins: &mut In, entry: &Held, contribution: &Contribution, lane: f32) {
        let gated = gate(self.gate, entry.contribution.reward, contribution.reward);
        pins.better = gated == Gated::Replace;
        pins.worse = gated == Gated::Filter;
        pins.no_sum = entry.with(contribution, lane).is_none();
    }

    /// Before the arrival: the entry that departs, and the slots in use.
    fn departures(&mut self, drawn: &Cycle, out: &Out) -> Result<(), String> {
        same("slots in use", usize::from(out.used), self.engine.used())?;
        let leaving = self.engine.departing();
        same("an entry departs", out.departing, leaving.is_some())?;
        if let Some(entry) = leaving {
            let slot = usize::from(out.departing_slot);
            let held = self.held[slot].ok_or_else(|| format!("slot {slot} departs empty"))?;
            same("the entry that departs", held.id, entry.id)?;
            same("its flow", out.departing_flow, words(entry.contribution.flow))?;
            let contributors = entry.contribution.contributors;
            same("its contributors", out.departing_contributors, contributors)?;
            same("its sum", bits(&held.contribution), bits(&entry.contribution))?;
            let lane = entry.lanes[0].to_bits();
            same("its lane", held.lane.to_bits(), lane)?;
        }
        // The engine's order for events of one instant: end, lock, arrival.
        if drawn.ends && self.engine.end_departure().is_some() {
            self.held[usize::from(out.departing_slot)] = None;
            self.counts.departed += 1;
        }
        if drawn.begins {
            self.engine.begin_departure();
        }
        Ok(())
    }

    fn arrival(
        &mut self,
        drawn: &Cycle,
        out: &Out,
        contribution: &Contribution,
        lane: f32,
    ) -> Result<(), String> {
        let full = usize::from(out.used) == self.engine.slots();
        let outcome = self
            .engine
            .arrive(&Arrival { contribution: *contribution, lanes: &lane.to_le_bytes() });
        let counts = &mut self.counts;
        counts.ties += u64::from(drawn.ends && drawn.begins && out.departing);
        let slot = usize::from(out.slot);
        match outcome {
            Outcome::Appended(id) => {
                same("fate", fates(out), [true, false, false, false, false, false])?;
                counts.appended += 1;
                counts.appended_at_an_end += u64::from(full);
                let head = self.engine.departing();
                counts.behind_the_head +=
                    u64::from(head.is_some_and(|head| head.contribution.flow == contribution.flow));
                same("the new entry's slot is in use", self.held[slot].is_some(), false)?;
                self.held[slot] = Some(Held::new(contribution, lane, id));
            }
            Outcome::Merged(id) => {
                same("fate", fates(out), [false, true, false, false, false, false])?;
                counts.merged += 1;
                let held = named(&mut self.held[slot], id)?;
                *held = held.with(contribution, lane).ok_or("merged without a sum")?;
            }
            Outcome::Replaced { entry, displaced } => {
                same("fate", fates(out), [false, false, true, false, false, false])?;
                same("contributors that are gone", out.displaced, displaced)?;
                counts.replaced += 1;
                counts.displaced += u64::from(displaced);
                *named(&mut self.held[slot], entry)? = Held::new(contribution, lane, entry);
            }
            Outcome::Filtered(id) => {
                same("fate", fates(out), [false, false, false, true, false, false])?;
                counts.filtered += 1;
                named(&mut self.held[slot], id)?;
            }
            Outcome::Dropped => {
                same("fate", fates(out), [false, false, false, false, true, false])?;
                counts.dropped += 1;
            }
            Outcome::Rejected(_) => {
                same("fate", fates(out), [false, false, false, false, false, true])?;
                counts.rejected += 1;
            }
            Outcome::Evicted { .. } => return Err(format!("the engine's queue says {outcome:?}")),
        }
        Ok(())
    }
}

/// In the order of the outcomes: appended, merged, replaced, filtered, dropped, rejected.
fn fates(out: &Out) -> [bool; 6] {
    [out.appended, out.merged, out.replaced, out.filtered, out.dropped, out.rejected]
}

/// What is in the slot that the hardware names, if it is the entry that the engine names.
fn named(held: &mut Option<Held>, id: EntryId) -> Result<&mut Held, String> {
    let held = held.as_mut().ok_or("the hardware names an empty slot")?;
    same("the entry that the arrival meets", held.id, id)?;
    Ok(held)
}

/// Everything that a departure carries, with the bits of its numbers.
fn bits(contribution: &Contribution) -> (Contribution, u64, u64) {
    let weight = contribution.weight.to_bits();
    let reward = contribution.reward.to_bits();
    (Contribution { weight: 0.0, reward: 0.0, ..*contribution }, weight, reward)
}
