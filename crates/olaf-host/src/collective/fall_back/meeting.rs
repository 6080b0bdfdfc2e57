//! How workers agree where to go on when their switch has failed (`docs/design/029-second-switch.md`).
//!
//! Each worker numbers its operations from 0, in the order in which it begins them. Some workers may have the result of an
//! operation that others lack. They must not compute it again: a sum of floats depends on the order of its terms. So a
//! worker that has the result gives it to all.
//!
//! All of this needs two small operations alone: the smallest of some integers, and a broadcast.

use super::super::{Label, Operation, Reduction, Sum};
use super::NoWay;
use super::kept::{End, Kept, Kind, Outcome, words};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;
use olaf_wire::reduce::LaneType;

/// Every worker of a meeting says this number. A program that calls something else does not.
const MARK: i64 = 0x4F4C_4146_4D45_4554;
/// Larger than every rank.
const NOBODY: i64 = 1 << 32;
/// The largest distance between the operations of two workers. No program has more operations open.
const MOST_OPERATIONS: i64 = 1 << 16;
/// Integers that describe a result.
const DESCRIPTION: usize = 9;

/// Where a worker stands.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    pub(super) rank: u32,
    /// The generation in which the operations were numbered: it began for all workers at once.
    pub(super) run: u32,
    /// Operations that have begun.
    pub(super) begun: u64,
    /// Those that have not ended.
    pub(super) open: BTreeSet<u64>,
}

impl Standing {
    /// The first operation that has not ended.
    pub(super) fn first_open(&self) -> u64 {
        self.open.first().copied().unwrap_or(self.begun)
    }

    /// One after the last operation that has ended.
    fn last_ended(&self) -> u64 {
        let mut ended = self.begun;
        while ended > 0 && self.open.contains(&(ended - 1)) {
            ended -= 1;
        }
        ended
    }

    /// Returns true if that operation has ended here.
    fn has_ended(&self, operation: u64) -> bool {
        operation < self.begun && !self.open.contains(&operation)
    }
}

/// What the workers do together next. All do the same in the same order.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The smallest of six integers: between which operations the workers are, and whether they belong together.
    Compare,
    /// The smallest of two integers for each of these operations: who gives the result, and whether it has ended anywhere.
    Choose { low: u64, high: u64 },
    /// What the result of an operation is.
    Describe,
    /// Its lanes.
    Give,
}

/// The meeting of one worker with all others. Operations come out, and their results go in.
#[derive(Debug)]
pub(super) struct Meeting {
    mine: Standing,
    step: Step,
    /// The rank that gives the result, for each operation that has ended somewhere and not everywhere.
    givers: Vec<(u64, u32)>,
    /// Those that have been given.
    next: usize,
    /// The result whose lanes come now.
    described: Option<(Kind, End)>,
    taken: BTreeMap<u64, Outcome>,
}

/// What all have agreed on.
#[derive(Debug)]
pub(super) struct Agreement {
    /// The first operation that does not end with the result of a worker that had it.
    pub(super) goes_on_at: u64,
    /// Results that this worker lacked.
    pub(super) taken: BTreeMap<u64, Outcome>,
    /// Results that this worker gave.
    pub(super) given: u64,
}

impl Meeting {
    pub(super) const fn new(mine: Standing) -> Self {
        Self {
            mine,
            step: Step::Compare,
            givers: Vec::new(),
            next: 0,
            described: None,
            taken: BTreeMap::new(),
        }
    }

    /// The operation that comes next. It is asked for again where a deadline of blocks cut it: all workers see that.
    pub(super) fn operation(&self, kept: &Kept) -> Operation {
        match self.step {
            Step::Compare => {
                let Standing { run, .. } = self.mine;
                let (low, high) = (signed(self.mine.first_open()), signed(self.mine.last_ended()));
                let run = i64::from(run);
                smallest(&[low, -high, run, -run, MARK, -MARK])
            }
            Step::Choose { low, high } => {
                let mine = i64::from(self.mine.rank);
                let giver = |at| if kept.of(at).is_some() { mine } else { NOBODY };
                let ended = |at| -i64::from(self.mine.has_ended(at));
                let numbers: Vec<i64> =
                    (low..high).map(giver).chain((low..high).map(ended)).collect();
                smallest(&numbers)
            }
            Step::Describe => {
                let own = self.own(kept).map(|own| description(self.number(), own));
                self.copy(own.map_or_else(|| vec![0; 8 * DESCRIPTION], |own| integers(&own)))
            }
            Step::Give => {
                let own = self.own(kept).map(|own| own.lanes.clone());
                let bytes = self.described.map_or(0, |(kind, _)| words(kind.bytes));
                self.copy(own.unwrap_or_else(|| vec![0; bytes]))
            }
        }
    }

    /// Takes the result of the operation. Returns what all have agreed on, after the last one.
    ///
    /// # Errors
    /// The workers cannot go on together; all of them find the same.
    pub(super) fn take(&mut self, result: &[u8], kept: &Kept) -> Result<Option<Agreement>, NoWay> {
        match self.step {
            Step::Compare => self.compare(&numbers(result))?,
            Step::Choose { low, high } => self.choose(low, high, &numbers(result))?,
            Step::Describe => {
                let (kind, end) = described(self.number(), &numbers(result))?;
                self.described = Some((kind, end));
                if matches!(end, End::Well(_)) {
                    // The result is in the giver's memory. The other workers may lack the memory for it.
                    let is_own = self.own(kept).is_some();
                    if !is_own && Vec::<u8>::new().try_reserve_exact(words(kind.bytes)).is_err() {
                        return Err(NoWay::Unusable(self.number()));
                    }
                    self.step = Step::Give;
                } else {
                    self.given(Vec::new());
                }
            }
            Step::Give => self.given(result.to_vec()),
        }
        let is_over = matches!(self.step, Step::Describe) && self.next == self.givers.len();
        Ok(is_over.then(|| self.agreement()))
    }

    fn compare(&mut self, said: &[i64]) -> Result<(), NoWay> {
        let &[low, high, run, minus_run, mark, minus_mark] = said else {
            return Err(NoWay::OtherProgram);
        };
        if (mark, minus_mark) != (MARK, -MARK) {
            return Err(NoWay::OtherProgram);
        }
        if run.checked_neg() != Some(minus_run) {
            return Err(NoWay::Replaced);
        }
        let high = high.checked_neg().unwrap_or(i64::MAX);
        if low < 0 || high.saturating_sub(low) > MOST_OPERATIONS {
            return Err(NoWay::Apart(high.abs_diff(low)));
        }
        self.step = match (u64::try_from(low), u64::try_from(high)) {
            (Ok(low), Ok(high)) if low < high => Step::Choose { low, high },
            _ => Step::Describe,
        };
        Ok(())
    }

    fn choose(&mut self, low: u64, high: u64, said: &[i64]) -> Result<(), NoWay> {
        let (givers, ended) = said.split_at(said.len() / 2);
        for ((operation, giver), ended) in (low..high).zip(givers).zip(ended) {
            match u32::try_from(*giver) {
                Ok(giver) => self.givers.push((operation, giver)),
                Err(_) if *ended != 0 => return Err(NoWay::NotKept(operation)),
                // It begins again.
                Err(_) => {}
            }
        }
        self.step = Step::Describe;
        Ok(())
    }

    /// A result was given to all.
    fn given(&mut self, lanes: Vec<u8>) {
        let operation = self.number();
        if let Some((kind, end)) = self.described.take()
            && !self.mine.has_ended(operation)
        {
            self.taken.insert(operation, Outcome { kind, end, lanes });
        }
        self.next += 1;
        self.step = Step::Describe;
    }

    fn agreement(&mut self) -> Agreement {
        let mut goes_on_at = self.mine.first_open();
        while self.givers.iter().any(|(operation, _)| *operation == goes_on_at) {
            goes_on_at += 1;
        }
        let own = self.givers.iter().filter(|(_, giver)| *giver == self.mine.rank);
        let taken = core::mem::take(&mut self.taken);
        Agreement { goes_on_at, taken, given: own.count() as u64 }
    }

    /// The operation whose result is given now, and who gives it.
    fn current(&self) -> (u64, u32) {
        self.givers.get(self.next).copied().expect("take() ends the meeting after the last one")
    }

    fn number(&self) -> u64 {
        self.current().0
    }

    /// The result, where this worker gives it.
    fn own<'a>(&self, kept: &'a Kept) -> Option<&'a Outcome> {
        let (operation, giver) = self.current();
        kept.of(operation).filter(|_| giver == self.mine.rank)
    }

    /// The words of the worker that gives the result.
    fn copy(&self, words: Vec<u8>) -> Operation {
        let reduction = Reduction::Broadcast { root: self.current().1 };
        let buffer = Box::new(words);
        let label = Label::default();
        Operation { lane_type: LaneType::I64, reduction, buffer, accepts_partial: false, label }
    }
}

/// The smallest of each number over all workers.
fn smallest(numbers: &[i64]) -> Operation {
    Operation {
        lane_type: LaneType::I64,
        reduction: Reduction::Min,
        buffer: Box::new(integers(numbers)),
        accepts_partial: false,
        label: Label::default(),
    }
}

fn integers(numbers: &[i64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn numbers(bytes: &[u8]) -> Vec<i64> {
    bytes.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect()
}

/// Far fewer operations are ever begun.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn description(operation: u64, of: &Outcome) -> [i64; DESCRIPTION] {
    let Kind { lane_type, reduction, bytes } = of.kind;
    let lanes = LaneType::EACH.iter().position(|known| *known == lane_type);
    let (reduction, root) = match reduction {
        Reduction::Sum => (0, 0),
        Reduction::Mean => (1, 0),
        Reduction::ExactSum => (2, 0),
        Reduction::ExactMean => (3, 0),
        Reduction::Min => (4, 0),
        Reduction::Max => (5, 0),
        Reduction::Broadcast { root } => (6, root),
        Reduction::Pipelined { .. } => unreachable!("an end of `reduce` refuses it"),
    };
    let (contributors, expected, not_finite, end) = match of.end {
        End::Well(sum) => (sum.contributors, sum.expected, sum.not_finite, 0),
        End::Partial(contributors, expected) => (contributors, expected, false, 1),
        End::NotFinite => (0, 0, true, 2),
    };
    [
        signed(operation),
        lanes.map_or(-1, |at| at as i64),
        reduction,
        root.into(),
        signed(bytes as u64),
        contributors.into(),
        expected.into(),
        not_finite.into(),
        end,
    ]
}

/// Reads what [`description`] wrote. Another worker wrote it, so nothing in it may be believed.
fn described(operation: u64, said: &[i64]) -> Result<(Kind, End), NoWay> {
    let &[its, lanes, reduction, root, bytes, contributors, expected, not_finite, end] = said
    else {
        return Err(NoWay::Unusable(operation));
    };
    let parsed = || {
        let lane_type = LaneType::EACH.get(usize::try_from(lanes).ok()?).copied()?;
        let reduction = match reduction {
            0 => Reduction::Sum,
            1 => Reduction::Mean,
            2 => Reduction::ExactSum,
            3 => Reduction::ExactMean,
            4 => Reduction::Min,
            5 => Reduction::Max,
            6 => Reduction::Broadcast { root: u32::try_from(root).ok()? },
            _ => return None,
        };
        let bytes = usize::try_from(bytes).ok()?;
        let (contributors, expected) =
            (u32::try_from(contributors).ok()?, u32::try_from(expected).ok()?);
        let end = match end {
            0 => End::Well(Sum { contributors, expected, not_finite: not_finite != 0 }),
            1 => End::Partial(contributors, expected),
            2 => End::NotFinite,
            _ => return None,
        };
        let is_whole = bytes > 0 && bytes.is_multiple_of(lane_type.bytes());
        is_whole.then_some((Kind { lane_type, reduction, bytes }, end))
    };
    let is_it = its == signed(operation);
    parsed().filter(|_| is_it).ok_or(NoWay::Unusable(operation))
}

#[cfg(test)]
#[path = "meeting_tests.rs"]
mod tests;
