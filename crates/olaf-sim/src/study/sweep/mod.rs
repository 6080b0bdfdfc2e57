//! Every run that deterministic senders can bring about, through the engine: the largest value of
//! an objective, and a run that has it.
//!
//! What may differ from run to run is the phase of each sender: a whole tick, and within it a
//! *rank* (`docs/design/010-verifier.md`, continuous ties). Phases are tried one by one, equal
//! clusters not in every order; ranks only where a run depended on them: after each run the orders
//! that disagree with it in a comparison that mattered are taken up, and no others. The queue and
//! the pacer are those of the real switch; nothing here says what they do.
//!
//! A run whose queue is in the same state at two multiples of the hyperperiod repeats itself: its
//! value holds for ever.
//!
//! What it is not: it knows no lateness, no transmission control and no chance.

mod classes;
mod order;
mod question;
mod run;
#[cfg(test)]
mod tests;
mod tick;
mod value;

pub use question::{Kind, MOST_SENDERS, MOST_TICKS, Question, Sender};
pub use value::Ratio;

use crate::study::scenario::SpecError;
use classes::Classes;
use order::{Open, Set};
use run::Runner;
use serde::Serialize;
use value::Values;

/// A sweep under way, or one of several that share the work.
pub struct Sweep {
    classes: Classes,
    /// One class in every `stride` classes is this sweep's.
    stride: u64,
    /// Whether the class at which `classes` stands has been begun.
    begun: bool,
    open: Open,
    runner: Runner,
    values: Values,
    /// Whether runs are followed until they repeat themselves.
    look: bool,
    order: Vec<Set>,
    ranked: Vec<u8>,
    progress: Progress,
}

/// How far a sweep is, and what it has found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Progress {
    /// Classes of phases in all, other sweeps' included.
    pub classes: u128,
    /// Of this sweep's, those that are done.
    pub done: u64,
    /// Runs made.
    pub runs: u64,
    /// Whether all is done.
    pub finished: bool,
    /// The run with the largest value up to the horizon; none: no run so far has a value.
    pub largest: Option<Found>,
    /// Whether every run so far repeats itself, within the hyperperiods asked for.
    pub repeats: bool,
    /// The run with the largest value for ever; of interest while `repeats`.
    pub for_ever: Option<Found>,
}

/// A run and its value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// Ticks, or a share, or a count; a denominator of 0: infinite.
    pub value: Ratio,
    /// First update of each sender, ticks.
    pub phases: Vec<u64>,
    /// Of each sender its place among those of one tick, from 0.
    pub ranks: Vec<u8>,
    /// Whether a departure at the horizon is observed; if not, it is hardly after it.
    pub last_counts: bool,
    /// From which tick on, and after how many ticks, the run repeats itself; where that was asked.
    pub cycle: Option<(u64, u64)>,
}

impl Sweep {
    /// Part `chunk` of `chunks` of the classes of a question; part 0 of 1 is all of it.
    ///
    /// # Errors
    /// What is wrong with the question, and what to do about it.
    pub fn new(question: &Question, chunk: u64, chunks: u64) -> Result<Self, SpecError> {
        question.check()?;
        if chunk >= chunks {
            return Err(SpecError(format!("chunk {chunk}: must be below chunks, {chunks}")));
        }
        let senders = question.senders.len();
        let mut classes = Classes::new(question);
        let look = question.hyperperiods > 0 && question.hyperperiod().is_some();
        let mut progress = Progress {
            classes: classes.count(),
            done: 0,
            runs: 0,
            finished: false,
            largest: None,
            repeats: look,
            for_ever: None,
        };
        progress.finished = !(0..chunk).all(|_| classes.advance());
        Ok(Self {
            classes,
            stride: chunks,
            begun: false,
            open: Open::new(senders),
            runner: Runner::new(question),
            values: Values::new(question),
            look,
            order: vec![0; senders],
            ranked: vec![0; senders],
            progress,
        })
    }

    /// Makes at most `runs` runs.
    pub fn step(&mut self, runs: u64) -> &Progress {
        for _ in 0..runs {
            if !self.begun && !self.progress.finished {
                let order = self.open.push_any();
                self.classes.known(self.runner.question(), |earlier, later| {
                    order::add(order, earlier, later)
                });
                self.begun = true;
            }
            if !self.open.pop(&mut self.order) {
                break;
            }
            self.run();
            self.open.branch(&mut self.order, &self.runner.needed);
            if self.open.is_empty() {
                self.begun = false;
                self.progress.done += 1;
                self.progress.finished = !(0..self.stride).all(|_| self.classes.advance());
            }
        }
        &self.progress
    }

    /// From here on nothing is asked beyond the horizon: runs are shorter.
    pub fn to_horizon_only(&mut self) {
        (self.look, self.progress.repeats, self.progress.for_ever) = (false, false, None);
    }

    /// How far it is.
    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    fn run(&mut self) {
        order::extend(&self.order, &mut self.ranked);
        let runner = &mut self.runner;
        runner.run(self.classes.phases(), &self.ranked, self.look);
        self.progress.runs += 1;
        let cycle = runner.cycle.map(|cycle| (cycle.from, cycle.period));
        let found = |value, last_counts| Found {
            value,
            phases: self.classes.phases().to_vec(),
            ranks: ranks(&self.ranked),
            last_counts,
            cycle,
        };
        let above = |best: &Option<Found>, value: &Ratio| {
            best.as_ref().is_none_or(|best| *value > best.value)
        };
        for last_counts in [true, false] {
            if !last_counts && !runner.may_miss_last {
                continue;
            }
            let value = self.values.until_horizon(&runner.deliveries, runner.counts, last_counts);
            if let Some(value) = value.filter(|value| above(&self.progress.largest, value)) {
                self.progress.largest = Some(found(value, last_counts));
            }
        }
        if !self.look {
            return;
        }
        let Some(cycle) = &runner.cycle else {
            // One run that does not repeat itself, and nothing is known for ever.
            self.to_horizon_only();
            return;
        };
        let value = self.values.for_ever(&runner.deliveries, cycle);
        if let Some(value) = value.filter(|value| above(&self.progress.for_ever, value)) {
            self.progress.for_ever = Some(found(value, true));
        }
    }
}

/// Of each sender its place in an order.
fn ranks(order: &[u8]) -> Vec<u8> {
    let mut ranks = vec![0; order.len()];
    for (rank, sender) in (0..).zip(order) {
        ranks[usize::from(*sender)] = rank;
    }
    ranks
}
