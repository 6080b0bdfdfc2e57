//! Many workers, a tree of queues, one server, in virtual time (OLAF §8.3).
//!
//! The queues, the pacers, the senders' control and the ages are those of the real switch and the
//! real hosts. What is left out is what such a study does not ask for: joins, models, lost
//! datagrams. `tests/scenario_agrees.rs` runs one setting with whole hosts and switches and
//! compares. [`End`]s are a scenario's ends as engines, so that another simulator's links can stand
//! between them.

mod ends;
mod hop;
mod outcome;
mod run;
mod sender;
mod server;
mod shelf;
mod spec;
mod worker;

pub use ends::{Contributor, End, Notices, ServerEnd, WorkerEnd};
pub use hop::HopFates;
pub use outcome::{ClusterOutcome, Fates, Outcome, SwitchOutcome};
pub use spec::{AnswerSpec, ControlSpec, GroupSpec, Scenario, SpecError, SwitchSpec};

use olaf_engine::Instant;
use run::Run;

/// One update that a worker has ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ready {
    /// When.
    pub at_ns: u64,
    /// Whose, counted through all groups.
    pub worker: u32,
}

/// Every update that becomes ready in the scenario, in order of time: they depend on the seed and
/// the groups alone, so that other simulators can be given the same.
///
/// # Errors
/// What cannot be in the scenario.
pub fn ready_times(scenario: &Scenario) -> Result<Vec<Ready>, SpecError> {
    scenario.check()?;
    let mut all = Vec::new();
    for place in scenario.clusters()? {
        let group = &scenario.groups[place.group];
        for worker in place.workers {
            let ready = scenario.ready_of(group, worker);
            all.extend(ready.into_iter().map(|at_ns| Ready { at_ns, worker }));
        }
    }
    all.sort_unstable();
    Ok(all)
}

/// Runs a scenario to its end.
///
/// # Errors
/// What cannot be in it.
pub fn run(scenario: &Scenario) -> Result<Outcome, SpecError> {
    let ready = ready_times(scenario)?;
    let mut run = Run::new(scenario)?;
    let mut ready = ready.into_iter().peekable();
    loop {
        // At one instant what was under way comes before what is new, as at a real switch.
        let next = ready.peek().map(|r| Instant(r.at_ns));
        if run.carry_out_next(next.unwrap_or(Instant(scenario.duration_ns - 1))) {
            continue;
        }
        match ready.next() {
            Some(Ready { at_ns, worker }) => run.generate(Instant(at_ns), worker),
            None => return Ok(run.finish()),
        }
    }
}
