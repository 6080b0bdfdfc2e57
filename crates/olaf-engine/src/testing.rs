//! For tests alone: updates in few words, traces of a queue that read as sentences, and random
//! steps that drive two queues side by side.
#![allow(clippy::unwrap_used)]

use crate::contribution::Contribution;
use crate::ids::{ClusterId, Flow, JobId, WorkerId};
use crate::lanes::length;
use crate::queue::discipline::{Arrival, Discipline, Entry, EntryId, Outcome, Rejection};
use crate::table::Hint;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use proptest::prelude::*;

/// An arrival that owns its lanes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sent {
    pub(crate) flow: Flow,
    pub(crate) worker: u32,
    pub(crate) sequence: u32,
    pub(crate) contributors: u32,
    pub(crate) weight: f64,
    pub(crate) reward: f64,
    pub(crate) generated_ns: (u64, u64),
    pub(crate) versions: (u32, u32),
    pub(crate) hops: u8,
    pub(crate) bytes: u32,
    pub(crate) lanes: Vec<f32>,
}

/// One worker's update with a weight of 1 and a reward of 0.
pub(crate) fn update(cluster: u32, worker: u32, lanes: &[f32]) -> Sent {
    Sent {
        flow: Flow { job: JobId(1), cluster: ClusterId(cluster), segment: 0 },
        worker,
        sequence: 0,
        contributors: 1,
        weight: 1.0,
        reward: 0.0,
        generated_ns: (0, 0),
        versions: (0, 0),
        hops: 0,
        bytes: 100,
        lanes: lanes.to_vec(),
    }
}

impl Sent {
    pub(crate) fn reward(self, reward: f64) -> Self {
        Self { reward, ..self }
    }

    pub(crate) fn weight(self, weight: f64) -> Self {
        Self { weight, ..self }
    }

    pub(crate) fn contributors(self, contributors: u32) -> Self {
        Self { contributors, ..self }
    }

    pub(crate) fn arrive(&self, queue: &mut dyn Discipline) -> Outcome {
        self.arrival(|arrival| queue.arrive(arrival))
    }

    /// As a link does it: the lanes are summed before the outcome is known. `uses` says whether the sum is
    /// used, and the hint is that of any flow.
    fn arrive_prepared(
        &self,
        queue: &mut dyn Discipline,
        hint: &mut Hint,
        uses: bool,
    ) -> Result<Outcome, TestCaseError> {
        self.arrival(|arrival| {
            let ready = queue.prepare(arrival, hint);
            if let Some(ready) = &ready {
                prop_assert_eq!(ready.length().to_bits(), length(arrival.lanes).to_bits());
            }
            let ready = ready.filter(|_| uses);
            let met = queue.meet(arrival, ready, hint);
            Ok(met.unwrap_or_else(|| queue.join(arrival, ready)))
        })
    }

    pub(crate) fn arrival<T>(&self, arrives: impl FnOnce(&Arrival<'_>) -> T) -> T {
        let lanes: Vec<u8> = self.lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect();
        let contribution = Contribution {
            flow: self.flow,
            worker: WorkerId(self.worker),
            sequence: self.sequence,
            segments: 8,
            contributors: self.contributors,
            weight: self.weight,
            reward: self.reward,
            generated_ns: self.generated_ns,
            versions: self.versions,
            hops: self.hops,
            bytes: self.bytes,
        };
        arrives(&Arrival { contribution, lanes: &lanes })
    }
}

/// A queue under test. Each method is one line of a trace.
pub(crate) struct Trace(pub(crate) Box<dyn Discipline>);

impl Trace {
    #[track_caller]
    fn takes(&mut self, sent: &Sent, expected: &str) {
        let outcome = sent.arrive(&mut *self.0);
        assert_eq!(name(outcome), expected, "{sent:?}: {outcome:?}");
    }

    #[track_caller]
    pub(crate) fn appends(&mut self, sent: Sent) {
        self.takes(&sent, "appended");
    }

    #[track_caller]
    pub(crate) fn merges(&mut self, sent: Sent) {
        self.takes(&sent, "merged");
    }

    #[track_caller]
    pub(crate) fn replaces(&mut self, sent: Sent) {
        self.takes(&sent, "replaced");
    }

    #[track_caller]
    pub(crate) fn filters(&mut self, sent: Sent) {
        self.takes(&sent, "filtered");
    }

    #[track_caller]
    pub(crate) fn drops(&mut self, sent: Sent) {
        self.takes(&sent, "dropped");
    }

    /// Takes it in by evicting an entry of `cluster` that holds `contributors` contributions.
    #[track_caller]
    pub(crate) fn evicts(&mut self, sent: Sent, cluster: u32, contributors: u32) {
        match sent.arrive(&mut *self.0) {
            Outcome::Evicted { flow, dropped, .. } => {
                assert_eq!((flow.cluster.0, dropped), (cluster, contributors), "{sent:?}");
            }
            other => panic!("{sent:?}: {other:?}"),
        }
    }

    /// Turns it away for that reason, and holds what it held.
    #[track_caller]
    pub(crate) fn rejects(&mut self, sent: Sent, reason: Rejection) {
        let before: Vec<Entry> = self.0.entries().into_iter().cloned().collect();
        self.takes(&sent, reason.name());
        let after: Vec<Entry> = self.0.entries().into_iter().cloned().collect();
        assert_eq!(
            alloc::format!("{before:?}"),
            alloc::format!("{after:?}"),
            "{sent:?} left a trace"
        );
    }

    /// Starts to send, and locks, that sum.
    #[track_caller]
    pub(crate) fn locks(&mut self, lanes: &[f32]) {
        let entry = self.0.begin_departure().expect("something waits");
        assert_eq!(*entry.lanes, *lanes);
    }

    /// The locked entry has left.
    #[track_caller]
    pub(crate) fn frees(&mut self) {
        assert!(self.0.end_departure().is_some(), "nothing was on the wire");
    }

    /// Next it sends this sum of `contributors` contributions.
    #[track_caller]
    pub(crate) fn sends(&mut self, lanes: &[f32], contributors: u32) -> Entry {
        let entry = self.0.begin_departure().expect("something waits").clone();
        assert_eq!((&entry.lanes[..], entry.contribution.contributors), (lanes, contributors));
        self.frees();
        entry
    }

    #[track_caller]
    pub(crate) fn is_empty(&mut self) {
        assert!(self.0.begin_departure().is_none(), "something waits");
        assert_eq!(self.0.used(), 0);
    }
}

pub(crate) fn name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Appended(_) => "appended",
        Outcome::Merged(_) => "merged",
        Outcome::Replaced { .. } => "replaced",
        Outcome::Filtered(_) => "filtered",
        Outcome::Dropped => "dropped",
        Outcome::Evicted { .. } => "evicted",
        Outcome::Rejected(rejection) => rejection.name(),
    }
}

/// One step of a random run.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Arrive(Sent),
    Begin,
    End,
    /// The link begins to send an update that still takes others in.
    Choose,
    /// A slot goes to another queue.
    GiveUp,
    /// The queue may fill that many slots more than it has filled.
    Share(usize),
}

fn lane() -> impl Strategy<Value = f32> {
    prop_oneof![
        40 => (-8i8..8).prop_map(f32::from),
        1 => prop_oneof![Just(f32::NAN), Just(f32::INFINITY), Just(f32::MAX), Just(f32::MIN)],
    ]
}

fn sent() -> impl Strategy<Value = Sent> {
    let who = (0u32..4, 0u32..2, 0u32..3, 0u32..1000);
    let what = (
        prop_oneof![6 => Just(1u32), 1 => 2u32..4, 1 => Just(u32::MAX)],
        prop_oneof![20 => (1u8..4).prop_map(f64::from), 1 => Just(f64::MAX)],
        prop_oneof![20 => (-4i8..4).prop_map(f64::from), 1 => Just(f64::NAN), 1 => Just(f64::INFINITY)],
        // Two and a half strides of the kernels, and a few of another size.
        prop_oneof![
            12 => prop::collection::vec(lane(), 3),
            1 => prop::collection::vec(lane(), 0..3),
            1 => prop::collection::vec(lane(), 80),
        ],
    );
    let when = (0u64..100, 0u64..100, 0u32..100, 0u32..100, 0u8..5, 1u32..200);
    (who, what, when).prop_map(|(who, what, when)| Sent {
        flow: Flow { job: JobId(1), cluster: ClusterId(who.0), segment: who.1 },
        worker: who.2,
        sequence: who.3,
        contributors: what.0,
        weight: what.1,
        reward: what.2,
        lanes: what.3,
        generated_ns: (when.0, when.0 + when.1),
        versions: (when.2, when.2 + when.3),
        hops: when.4,
        bytes: when.5,
    })
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![8 => sent().prop_map(Step::Arrive), 2 => Just(Step::Begin), 2 => Just(Step::End), 1 => Just(Step::Choose), 1 => Just(Step::GiveUp), 1 => (0usize..4).prop_map(Step::Share)];
    prop::collection::vec(step, 0..120)
}

/// A gate at which no mean of whole rewards by whole weights stands exactly.
pub(crate) fn gates() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![Just(None), Just(Some(0.0371)), Just(Some(1.437)), Just(Some(3.119))]
}

/// Drives two queues through the same steps and compares all that can be seen of them.
pub(crate) fn drive(
    steps: &[Step],
    queue: &mut dyn Discipline,
    reference: &mut dyn Discipline,
) -> Result<(), TestCaseError> {
    let mut account = Account::default();
    let mut next_name = 0;
    let mut hint = Hint::default();
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Arrive(sent) => {
                let outcome = match at % 4 {
                    0 | 1 => sent.arrive(queue),
                    way => sent.arrive_prepared(queue, &mut hint, way == 2)?,
                };
                prop_assert_eq!(outcome, sent.arrive(reference), "step {}: {:?}", at, sent);
                account.count(sent.contributors, outcome);
            }
            Step::Begin => {
                let began = queue.begin_departure().map(|entry| entry.id);
                prop_assert_eq!(
                    began,
                    reference.begin_departure().map(|entry| entry.id),
                    "step {}",
                    at
                );
            }
            Step::End => {
                let contributors =
                    queue.departing().map_or(0, |entry| entry.contribution.contributors);
                let ended = queue.end_departure();
                prop_assert_eq!(ended, reference.end_departure(), "step {}", at);
                account.left += u64::from(contributors);
            }
            Step::Choose => {
                let chosen = queue.choose().map(|entry| entry.id);
                prop_assert_eq!(chosen, reference.choose().map(|entry| entry.id), "step {}", at);
            }
            Step::GiveUp => {
                let gone = queue.give_up();
                prop_assert_eq!(gone, reference.give_up(), "step {}", at);
                account.turned_away += gone.map_or(0, |gone| u64::from(gone.contributors));
            }
            Step::Share(more) => {
                let slots = queue.used() + more;
                // Names of other queues come between this one's own.
                next_name += 1000;
                queue.share(slots, EntryId(next_name));
                reference.share(slots, EntryId(next_name));
            }
        }
        compare(queue, reference)
            .map_err(|why| TestCaseError::fail(alloc::format!("step {at}: {why}")))?;
        let waiting: u64 =
            queue.entries().iter().map(|entry| u64::from(entry.contribution.contributors)).sum();
        prop_assert_eq!(account.received, account.settled() + waiting, "step {}", at);
        prop_assert!(queue.used() <= queue.slots());
    }
    Ok(())
}

#[derive(Default)]
struct Account {
    received: u64,
    left: u64,
    replaced: u64,
    turned_away: u64,
}

impl Account {
    fn count(&mut self, contributors: u32, outcome: Outcome) {
        self.received += u64::from(contributors);
        match outcome {
            Outcome::Appended(_) | Outcome::Merged(_) => {}
            Outcome::Replaced { displaced, .. } => self.replaced += u64::from(displaced),
            Outcome::Evicted { dropped, .. } => self.turned_away += u64::from(dropped),
            _ => self.turned_away += u64::from(contributors),
        }
    }

    fn settled(&self) -> u64 {
        self.left + self.replaced + self.turned_away
    }
}

fn compare(queue: &dyn Discipline, reference: &dyn Discipline) -> Result<(), String> {
    let seen = |of: &dyn Discipline| (of.slots(), of.used(), of.departing().map(|entry| entry.id));
    if seen(queue) != seen(reference) {
        return Err(alloc::format!("{:?} against {:?}", seen(queue), seen(reference)));
    }
    let (entries, others) = (queue.entries(), reference.entries());
    if entries.len() != others.len() {
        return Err(alloc::format!("{} entries against {}", entries.len(), others.len()));
    }
    for (entry, other) in entries.into_iter().zip(others) {
        let (reward, expected) = (entry.contribution.reward, other.contribution.reward);
        let near = (reward - expected).abs() <= 1e-9 * expected.abs().max(1.0);
        // All else must be the same to the bit.
        let contribution = Contribution { reward: expected, ..entry.contribution };
        let same = Entry { contribution, ..entry.clone() };
        if !near || alloc::format!("{same:?}") != alloc::format!("{other:?}") {
            return Err(alloc::format!("{entry:?}\nagainst {other:?}"));
        }
    }
    Ok(())
}
