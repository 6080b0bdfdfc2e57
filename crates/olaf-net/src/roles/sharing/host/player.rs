//! The execution thread of a host: launches the job's all-reduces in their recorded times.

use super::engine::HostEngine;
use super::played::Played;
use crate::clock;
use crate::driver::shared::Shared;
use crate::roles::sharing::log::{Cost, Log};
use crate::roles::sharing::waiting;
use olaf_sched::protocol::{Launch, NotNow};
use olaf_sched::{JobId, Steps};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Between two sayings that it is there, and between two looks at a lock.
const AGAIN: Duration = Duration::from_millis(2);
/// The time in which a host that is done still answers other hosts.
const LINGER: Duration = Duration::from_millis(300);
/// Between two looks whether a host that is done may end.
const LOOK: Duration = Duration::from_millis(50);
/// The first all-reduce waits for hosts that are still starting.
const START_NS: u64 = 60_000_000_000;
const STOPPED: &str = "the host was told to stop";

/// The execution thread.
pub(super) struct Player {
    pub(super) shared: Arc<Shared<HostEngine>>,
    /// Ends the play.
    pub(super) stop: Arc<AtomicBool>,
    pub(super) job: JobId,
    pub(super) rank: u16,
    pub(super) steps: Steps,
    pub(super) count: u64,
    pub(super) patience_ns: u64,
    pub(super) log: Log,
    pub(super) played: Arc<Played>,
}

impl Player {
    /// All steps, one all-reduce at a time, each no earlier than recorded.
    pub(super) fn play(&mut self) -> Result<String, String> {
        let mut began = clock::machine_ns();
        let mut step_begin = began;
        for _ in 0..self.count {
            let mut free = step_begin;
            for operation in 0..self.steps.len() {
                self.sleep_until(free.max(step_begin + self.steps.start_ns[operation]))?;
                let (gathered, end) = self.all_reduce(step_begin, operation)?;
                free = end;
                if self.played.lock().total.launches == 1 {
                    // Other hosts may have started later: the job begins when all are there.
                    step_begin = gathered.saturating_sub(self.steps.start_ns[operation]);
                    began = step_begin;
                }
            }
            let compute = step_begin + self.steps.compute_ns;
            self.sleep_until(compute)?;
            step_begin = compute.max(free);
        }
        let mut said = self.summary(clock::machine_ns() - began);
        self.log.ended(&said).map_err(|error| format!("log: {error}"))?;
        said["dismissed"] = self.send_leave().into();
        Ok(said.to_string())
    }

    /// Returns true if the controller has heard it.
    fn send_leave(&self) -> bool {
        let linger = Instant::now() + LINGER;
        self.tell(|host| host.leave(clock::now()));
        // An error means that this host is told to stop: it waits no more.
        let mut goes_on = Ok(());
        while goes_on.is_ok() && self.shared.with(|host| host.takes_leave()) {
            goes_on = self.wait_until(LOOK, |host| !host.takes_leave());
        }
        if goes_on.is_ok() {
            let rest = linger.saturating_duration_since(Instant::now());
            let _told_to_stop = self.wait_until(rest, |_| false);
        }
        self.shared.with(|host| host.dismissed())
    }

    /// Launches the next one, and returns when all hosts had and when it ended.
    fn all_reduce(&mut self, step_begin: u64, operation: usize) -> Result<(u64, u64), String> {
        let (launch, cost) = self.launch()?;
        let begin = clock::machine_ns();
        let lost = |error: std::io::Error| format!("log: {error}");
        self.log.launched(begin, launch, cost).map_err(lost)?;
        self.played.lock().total.add(launch, cost);
        self.gather(launch)?;
        let durations =
            if launch.in_network { &self.steps.with_ns } else { &self.steps.without_ns };
        let (gathered, duration) = (clock::machine_ns(), durations[operation]);
        self.began(launch, gathered, step_begin, operation);
        self.sleep_until(gathered + duration)?;
        // Logged before the protocol learns of it, so that the logged time covers the operation.
        let end = clock::machine_ns();
        self.log.done(end, launch.index).map_err(lost)?;
        self.tell(|host| host.done(launch.index));
        Ok((gathered, end))
    }

    /// The controller hears how far the job is.
    fn began(&self, launch: Launch, gathered: u64, step_begin: u64, operation: usize) {
        // Of the first the recorded time: other hosts may have started later.
        let recorded = self.steps.start_ns[operation];
        let age = if launch.index == 0 { recorded } else { gathered.saturating_sub(step_begin) };
        self.tell(|host| host.began(age));
    }

    fn launch(&self) -> Result<(Launch, Cost), String> {
        let mut cost = Cost::default();
        let asked = clock::machine_ns();
        loop {
            let begin = clock::machine_ns();
            match self.shared.with(HostEngine::launch) {
                Ok(launch) => {
                    cost.decide_ns = clock::machine_ns() - asked - cost.locked_ns;
                    return Ok((launch, cost));
                }
                // The synchronisation thread ends this in bounded time, one way or the other.
                Err(NotNow::Locked) => self.wait_until(AGAIN, |host| !host.locked())?,
                Err(error) => return Err(error.to_string()),
            }
            cost.locked_ns += clock::machine_ns() - begin;
        }
    }

    /// Until all hosts have launched it.
    fn gather(&self, launch: Launch) -> Result<(), String> {
        let patience = if launch.index == 0 { START_NS } else { self.patience_ns };
        let late = clock::machine_ns() + patience;
        while let Some(missing) = self.shared.with(|host| host.missing(launch.index)) {
            if let Some(gone) = self.shared.with(|host| host.failed()) {
                return Err(NotNow::Failed(gone).to_string());
            }
            if clock::machine_ns() >= late {
                let (index, s) = (launch.index, patience / 1_000_000_000);
                return Err(format!("host {missing} has not launched operation {index} for {s} s"));
            }
            self.tell(HostEngine::say_here);
            self.wait_until(AGAIN, |host| {
                host.failed().is_some() || host.missing(launch.index).is_none()
            })?;
        }
        Ok(())
    }

    /// Changes something at the host, and sends what follows from it, from this thread.
    fn tell(&self, work: impl FnOnce(&mut HostEngine)) {
        self.shared.with(work);
        self.shared.transmit();
    }

    /// Waits until the condition holds, at most for that time; the caller looks again.
    fn wait_until(
        &self,
        time: Duration,
        condition: impl Fn(&HostEngine) -> bool,
    ) -> Result<(), String> {
        let look = |host: &mut HostEngine| (self.stopped() || condition(host)).then_some(());
        self.shared.wait_until(Instant::now() + time, look);
        if self.stopped() { Err(STOPPED.into()) } else { Ok(()) }
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    fn sleep_until(&mut self, at: u64) -> Result<(), String> {
        let slept = clock::machine_ns() < at;
        loop {
            if self.stopped() {
                return Err(STOPPED.into());
            }
            let now = clock::machine_ns();
            if now >= at {
                if slept {
                    self.played.lock().lateness.add(now - at);
                }
                return Ok(());
            }
            waiting::sleep_until(at, 50_000_000);
        }
    }

    fn summary(&self, took_ns: u64) -> Value {
        let steps = &self.steps;
        let mixed = self.shared.with(|host| host.mixed());
        let played = self.played.lock();
        let (total, lateness) = (played.total, &played.lateness);
        json!({
            "job": self.job, "host": self.rank, "took_ns": took_ns,
            "none_ns": steps.none_ns * self.count, "all_ns": steps.all_ns * self.count,
            "launches": total.launches, "in_network": total.in_network, "mixed": mixed,
            "locked": total.locked, "locked_ns": total.locked_ns,
            "longest_locked_ns": total.longest_locked_ns,
            "decide_ns": total.decide_ns, "longest_decide_ns": total.longest_decide_ns,
            "late_us_p50": lateness.quantile_us(500),
            "late_us_p99": lateness.quantile_us(990),
        })
    }
}
