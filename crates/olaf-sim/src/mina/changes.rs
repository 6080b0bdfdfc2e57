//! Phase 2 of an instant: jobs leave and arrive, trees change, and the jobs that go alone are found
//! anew.

use super::course::Course;
use super::outcome::{JobLine, JobOutcome};
use super::running::{Held, Mode, Running, wants};
use super::setting::Ties;
use super::sharers::JobIndex;
use super::simulation::{Clock, Simulation};
use olaf_sched::JobId;
use olaf_sched::placement::NoRoom;
use olaf_sched::sharing::Scope;
use olaf_sched::trees::{Arrival, Change};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Simulation {
    pub(super) fn change(&mut self, clock: Clock<'_>) {
        let ended = std::mem::take(&mut self.ended);
        let each = |jobs: Vec<JobIndex>| jobs.into_iter().map(|job| vec![job]).collect();
        let turns: Vec<Vec<JobIndex>> = match self.checked.setting.ties {
            _ if self.now_ns == 0 => vec![Vec::new()],
            _ if ended.is_empty() => Vec::new(),
            Ties::Together => vec![ended],
            Ties::Forwards => each(ended),
            Ties::Backwards => each(ended.into_iter().rev().collect()),
        };
        // What counts is what a job has in the end.
        let mut changes = BTreeMap::new();
        for turn in turns {
            for change in self.turn(turn, clock) {
                changes.insert(change.job, change);
            }
        }
        for change in changes.values() {
            self.take(change);
        }
        self.settle();
    }

    /// These leave, and those at the head of the line arrive.
    fn turn(&mut self, ended: Vec<JobIndex>, clock: Clock<'_>) -> Vec<Change> {
        let mut changes = Vec::new();
        for job in ended {
            let begin = clock();
            changes.extend(self.leave(job));
            self.costs.leave_ns.push(clock() - begin);
        }
        let arrivals = self.place(clock);
        if !arrivals.is_empty() {
            let begin = clock();
            changes.extend(match &mut self.solver {
                Some(solver) => self.forest.arrive_with(arrivals, solver.as_mut()),
                None => self.forest.arrive(arrivals),
            });
            self.costs.trees_ns.push(clock() - begin);
            self.outcome.rebuilds += 1;
        }
        changes
    }

    fn leave(&mut self, job: JobIndex) -> Vec<Change> {
        let running = self.running[job as usize].take().expect("it ended just now");
        self.count -= 1;
        self.unsettled.remove(&job);
        self.unsettled.extend(&running.rivals);
        if let Some(held) = running.held.as_ref()
            && wants(self.checked.setting.sharing, &running.course.steps)
        {
            self.sharers.leave(job, &held.judged);
        }
        self.placer.release(&running.hosts);
        let (outcome, line) = running.finish(self.now_ns);
        self.outcome.jobs[job as usize] = outcome;
        if line.is_some() {
            self.lines[job as usize] = line;
        }
        self.forest.leave(JobId(job.into()))
    }

    /// Those at the head of the line for which there is room.
    fn place(&mut self, clock: Clock<'_>) -> Vec<Arrival> {
        let mut arrivals = Vec::new();
        while self.head < self.checked.setting.jobs.len() {
            let job = self.checked.setting.jobs[self.head];
            let begin = clock();
            let placement = match self.placer.place(job.hosts) {
                Ok(placement) => placement,
                Err(NoRoom::Busy { .. }) => break,
                Err(error) => unreachable!("the setting was checked: {error}"),
            };
            self.costs.placement_ns.push(clock() - begin);
            let steps = Arc::clone(&self.checked.steps[self.head]);
            let saved_ns = u128::from(steps.gain_ns()) * u128::from(job.hosts);
            let gain = saved_ns * 1_000_000_000 / u128::from(steps.none_ns);
            let index = u32::try_from(self.head).expect("fewer than 2^32 jobs, checked");
            arrivals.push(Arrival {
                job: JobId(index.into()),
                hosts: placement.hosts.clone(),
                units: 1,
                gain: u64::try_from(gain).unwrap_or(u64::MAX),
            });
            let outcome = JobOutcome {
                queued_ns: self.head_since_ns,
                start_ns: self.now_ns,
                none_ns: steps.none_ns * job.steps,
                all_ns: steps.all_ns * job.steps,
                ..JobOutcome::default()
            };
            let line = self.window.map(|_| JobLine {
                hosts: placement.hosts.iter().map(|host| host.0).collect(),
                placement: Some(placement.reason),
                ..JobLine::default()
            });
            let course = Course::new(steps, job.steps, self.now_ns);
            let running = Running::new(placement.hosts, course, outcome, line);
            self.running[self.head] = Some(Box::new(running));
            self.unsettled.insert(index);
            self.count += 1;
            self.outcome.most_running = self.outcome.most_running.max(self.count);
            self.head += 1;
            self.head_since_ns = self.now_ns;
        }
        arrivals
    }

    /// A job's tree is another one.
    fn take(&mut self, change: &Change) {
        let job = u32::try_from(change.job.0).expect("it is an index");
        let setting = &self.checked.setting;
        // One that ended at this instant may have been given a tree by another's end.
        let Some(running) = self.running[job as usize].as_deref() else { return };
        let same = running.held.as_ref().map(|held| &held.tree) == change.to.as_ref();
        if same && running.line.as_ref().is_none_or(|line| !line.trees.is_empty()) {
            return;
        }
        let wants = wants(setting.sharing, &running.course.steps);
        self.awaken(job);
        let held = change.to.as_ref().map(|tree| Held {
            tree: Arc::clone(tree),
            resources: tree.resources(self.checked.setting.capacity).into(),
            judged: tree.resources(self.judge).into(),
        });
        let migration_ns = self.checked.setting.migration_ns;
        let running = self.running[job as usize].as_deref_mut().expect("looked at before");
        if let Some(before) = running.held.as_ref().filter(|_| wants) {
            self.sharers.leave(job, &before.judged);
            self.sharers.add_holders(&before.judged, &mut self.unsettled);
        }
        if let Some(held) = held.as_ref().filter(|_| wants) {
            self.sharers.add_holders(&held.judged, &mut self.unsettled);
            self.sharers.join(job, &held.judged);
        }
        self.unsettled.insert(job);
        if running.outcome.start_ns < self.now_ns {
            running.usable_ns = self.now_ns + migration_ns;
        }
        running.take(held, &change.reason, self.now_ns);
        let usable_ns = running.usable_ns;
        if let Some(using) = running.using.as_ref().filter(|_| !running.stale) {
            running.stale = true;
            for &resource in &*using.resources {
                self.stale[resource as usize] += 1;
            }
        } else if usable_ns > self.now_ns {
            self.change_at(usable_ns);
        }
    }

    /// Finds anew the rivals of each job whose surroundings changed, and whether it can go alone.
    fn settle(&mut self) {
        let unsettled = std::mem::take(&mut self.unsettled);
        let mut regrouped = Vec::new();
        for &job in &unsettled {
            let Some(running) = self.running[job as usize].as_deref() else { continue };
            let wants = wants(self.checked.setting.sharing, &running.course.steps);
            let rivals = match &running.held {
                Some(held) if wants => self.sharers.rivals(job, &held.judged),
                _ => Vec::new(),
            };
            if rivals != running.rivals {
                self.awaken(job);
                let running = self.running[job as usize].as_deref_mut().expect("it runs");
                running.share(rivals, self.now_ns);
                regrouped.push(job);
            }
        }
        if self.checked.setting.sharing.scope() == Scope::Group {
            self.regroup(&regrouped);
        }
        for job in unsettled {
            if self.running[job as usize].is_some() {
                self.settle_one(job);
            }
        }
    }

    /// Sharing groups of all that these can reach.
    fn regroup(&mut self, jobs: &[JobIndex]) {
        let mut seen = BTreeSet::new();
        for &job in jobs {
            if seen.contains(&job) {
                continue;
            }
            let mut group = BTreeSet::from([job]);
            let mut open = vec![job];
            while let Some(job) = open.pop() {
                let running = self.running[job as usize].as_deref().expect("a rival runs");
                open.extend(running.rivals.iter().filter(|&&rival| group.insert(rival)));
            }
            for &member in &group {
                let others = group.iter().copied().filter(|&other| other != member).collect();
                self.running[member as usize].as_deref_mut().expect("it runs").group = others;
            }
            seen.extend(group);
        }
    }

    fn settle_one(&mut self, job: JobIndex) {
        let sharing = self.checked.setting.sharing;
        let running = self.running[job as usize].as_deref().expect("looked at before");
        let wants = wants(sharing, &running.course.steps);
        let mode = match &running.held {
            _ if running.stale => Mode::Among,
            Some(held) if wants => {
                let waits = running.usable_ns > self.now_ns
                    || held.resources.iter().any(|&resource| self.stale[resource as usize] > 0);
                if waits || !running.rivals.is_empty() {
                    Mode::Among
                } else {
                    Mode::Alone { in_network: true }
                }
            }
            _ => Mode::Alone { in_network: false },
        };
        if mode == running.mode && running.stamp > 0 {
            return;
        }
        self.awaken(job);
        if mode != Mode::Among
            && self.running[job as usize].as_deref().is_some_and(|running| running.using.is_some())
        {
            self.release(job);
        }
        self.running[job as usize].as_deref_mut().expect("it runs").mode = mode;
        self.schedule(job);
    }
}
