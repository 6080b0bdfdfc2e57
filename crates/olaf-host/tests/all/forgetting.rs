//! Jobs that nobody works on make room; what an operator wants to keep stays.

use olaf_engine::party::{Tenant, Tenants};
use olaf_engine::{DropReason, Engine, Event, Instant, PeerId, Source, Verdict};
use olaf_host::{Refused, Server, ServerConfig};
use olaf_wire::{Fetch, JobId, Join, Leave, WelcomeCode};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);
const MINUTE: Duration = Duration::from_secs(60);
const FULL: Result<(), Refused> = Err(Refused::TurnedAway(WelcomeCode::Full));

/// A server, and strangers that have one job each, whose number is also their address's.
struct Net {
    now: Instant,
    server: Server,
    sent: u32,
}

impl Net {
    fn new(config: ServerConfig) -> Self {
        Self { now: Instant(1_000_000_000), server: Server::new(config, 9).unwrap(), sent: 0 }
    }

    fn gives(&mut self, from: u32, emit: impl FnOnce(&mut [u8]) -> usize) -> Result<(), Refused> {
        let mut buf = [0; 512];
        let len = emit(&mut buf);
        match self.server.handle_packet(self.now, Source::end(PeerId(from)), &buf[..len]) {
            Verdict::Drop(DropReason::End(refused)) => Err(refused),
            _ => Ok(()),
        }
    }

    fn joins(&mut self, job: u32) -> Result<(), Refused> {
        let join = olaf_samples::join(olaf_samples::address(job, 0, 1), 1, 2208);
        self.gives(job, |buf| join.emit(buf))
    }

    /// A worker joins, offers a model and pushes once.
    fn trains(&mut self, job: u32) -> Result<(), Refused> {
        self.offers(job)?;
        self.pushes(job)
    }

    /// A worker joins, and offers a model.
    fn offers(&mut self, job: u32) -> Result<(), Refused> {
        self.joins(job)?;
        let address = olaf_samples::address(job, 0, 1);
        self.gives(job, |buf| olaf_samples::offer(address, 1).emit(&[1.0], buf))
    }

    fn pushes(&mut self, job: u32) -> Result<(), Refused> {
        self.sent += 1;
        let mut update = olaf_samples::update(olaf_samples::address(job, 0, 1), self.sent);
        update.hop_sequence = self.sent;
        self.gives(job, |buf| update.emit(&[1.0], buf))
    }

    fn leaves(&mut self, job: u32) {
        let leave = Leave { address: olaf_samples::address(job, 0, 1) };
        self.gives(job, |buf| leave.emit(buf)).unwrap();
    }

    /// Time passes, in steps.
    fn waits(&mut self, time: Duration, step: Duration) {
        let until = self.now + time;
        while self.now < until {
            self.now = (self.now + step).min(until);
            self.server.handle_timeout(self.now);
        }
    }

    fn jobs(&self) -> Vec<u32> {
        self.server.statistics(self.now).jobs.iter().map(|job| job.job).collect()
    }

    fn told(&mut self) -> Vec<Event> {
        let events = std::iter::from_fn(|| self.server.poll_event());
        events.filter(|event| matches!(event, Event::JobForgotten { .. })).collect()
    }
}

#[test]
fn who_fills_the_server_with_trained_jobs_and_goes_keeps_others_out_for_a_day_at_most() {
    let mut net = Net::new(ServerConfig::default());
    for job in 0..1_024 {
        net.trains(job).unwrap();
        // Some leave, and the others fall silent.
        if job % 2 == 0 {
            net.leaves(job);
        }
    }
    assert_eq!(net.trains(2_000), FULL);
    net.waits(DAY - MINUTE, MINUTE);
    assert_eq!((net.trains(2_000), net.jobs().len()), (FULL, 1_024), "a pause overnight");
    assert_eq!(net.server.statistics(net.now).refused["full"], 2);
    // Who fell silent counts as gone a minute later.
    assert!(!net.server.statistics(net.now).arrivals.hops.is_empty());
    net.waits(3 * MINUTE, MINUTE / 4);
    assert_eq!(net.jobs(), Vec::<u32>::new());
    let senders = &net.server.statistics(net.now).arrivals.hops;
    assert!(senders.is_empty(), "the numbers of {} senders", senders.len());
    let told = net.told();
    let (mut jobs, mut idle) = (Vec::new(), Vec::new());
    for event in told {
        let Event::JobForgotten { job, version, idle: time } = event else { unreachable!() };
        assert_eq!(version, 2, "the model and one update");
        jobs.push(job.0);
        idle.push(time);
    }
    jobs.sort_unstable();
    assert_eq!(jobs, Vec::from_iter(0..1_024));
    assert!(idle.iter().all(|time| (DAY..DAY + MINUTE).contains(time)));
    for job in 2_000..3_024 {
        net.trains(job).unwrap();
    }
    assert_eq!(net.trains(1), FULL);
}

#[test]
fn a_job_with_a_worker_stays_and_so_does_one_whose_worker_came_back_in_time() {
    let config = ServerConfig { forget_jobs_after: Some(10 * MINUTE), ..ServerConfig::default() };
    let mut net = Net::new(config);
    for job in 1..4 {
        net.trains(job).unwrap();
    }
    net.leaves(2);
    net.leaves(3);
    for minute in 0..30 {
        net.joins(1).unwrap();
        if minute == 9 {
            // Its time begins anew when it leaves again.
            net.joins(2).unwrap();
            net.leaves(2);
        }
        net.waits(MINUTE / 2, MINUTE / 4);
        net.joins(1).unwrap();
        net.waits(MINUTE / 2, MINUTE / 4);
        let here: &[u32] = match minute {
            0..=9 => &[1, 2, 3],
            11..=18 => &[1, 2],
            20.. => &[1],
            _ => continue,
        };
        assert_eq!(net.jobs(), here, "after {} minutes", minute + 1);
    }
}

#[test]
fn the_jobs_of_an_operator_s_list_stay_and_with_off_all_do() {
    let tenants = Tenants::only([(JobId(1), Tenant::default()), (JobId(2), Tenant::default())]);
    let listed = ServerConfig { tenants, ..ServerConfig::default() };
    let off = ServerConfig { forget_jobs_after: None, ..ServerConfig::default() };
    for config in [listed, off] {
        let mut net = Net::new(config);
        for job in [1, 2] {
            net.trains(job).unwrap();
            net.leaves(job);
        }
        net.waits(DAY * 3, DAY / 24);
        assert_eq!((net.jobs(), net.told()), (vec![1, 2], Vec::new()));
    }
}

#[test]
fn where_checkpoints_are_written_a_job_stays_until_its_last_state_is_on_the_disk() {
    let config = ServerConfig { forget_jobs_after: Some(10 * MINUTE), ..ServerConfig::default() };
    let mut net = Net::new(config);
    net.server.forget_saved_jobs_only();
    for job in [1, 2] {
        net.trains(job).unwrap();
    }
    let revision = |net: &Net| net.server.revisions().next().unwrap().1;
    let early = revision(&net);
    net.pushes(1).unwrap();
    net.leaves(1);
    net.leaves(2);
    net.server.note_saved(JobId(1), early);
    net.server.note_not_kept(JobId(2));
    net.waits(11 * MINUTE, MINUTE);
    assert_eq!(net.jobs(), [1], "no file was to be written of job 2");
    net.waits(60 * MINUTE, MINUTE);
    assert_eq!(net.jobs(), [1], "the file has an older state");
    net.server.note_saved(JobId(1), revision(&net));
    net.waits(MINUTE, MINUTE);
    assert_eq!((net.jobs(), net.server.forgotten()), (vec![], vec![JobId(2), JobId(1)]));
}

#[test]
fn a_version_that_follows_a_worker_s_claim_has_to_be_on_the_disk_too() {
    let config = ServerConfig { forget_jobs_after: Some(10 * MINUTE), ..ServerConfig::default() };
    let mut net = Net::new(config);
    net.server.forget_saved_jobs_only();
    net.trains(1).unwrap();
    let revision = |net: &Net| net.server.revisions().next().unwrap().1;
    net.server.note_saved(JobId(1), revision(&net));
    let join = olaf_samples::join(olaf_samples::address(1, 0, 1), 1, 2208);
    net.gives(1, |buf| Join { have_version: 50, ..join }.emit(buf)).unwrap();
    net.leaves(1);
    net.waits(11 * MINUTE, MINUTE);
    assert_eq!(net.jobs(), [1], "without it the job's next life would give the numbers again");
    net.server.note_saved(JobId(1), revision(&net));
    net.waits(MINUTE, MINUTE);
    assert_eq!(net.jobs(), Vec::<u32>::new());
}

#[test]
fn a_cluster_stays_as_long_as_one_of_its_workers_is_heard() {
    let mut net = Net::new(ServerConfig::default());
    net.trains(1).unwrap();
    let clusters = |net: &Net| net.server.statistics(net.now).jobs[0].clusters.len();
    let address = olaf_samples::address(1, 0, 1);
    let fetch = Fetch { address, version: 0, first: 0, mask: 1, have_version: 0 };
    for _ in 0..70 {
        net.gives(1, |buf| fetch.emit(buf)).unwrap();
        net.waits(Duration::from_secs(1), Duration::from_secs(1));
        assert_eq!(clusters(&net), 1);
    }
    net.waits(2 * MINUTE, Duration::from_secs(1));
    assert_eq!(clusters(&net), 0);
}

#[test]
fn a_time_of_nothing_is_refused() {
    let config =
        ServerConfig { forget_jobs_after: Some(Duration::ZERO), ..ServerConfig::default() };
    assert_eq!(config.check().expect_err("no time").key, "forget_jobs_after_ms");
}

/// Nothing is lost with such a job. One that somebody pushed to, or is heard of, stays.
#[test]
fn a_job_that_has_no_more_than_an_offered_model_makes_room_when_its_workers_are_gone() {
    let config = ServerConfig { max_jobs: 3, ..ServerConfig::default() };
    let silent_after = config.silent_after;
    let mut net = Net::new(config);
    net.trains(1).unwrap();
    net.offers(2).unwrap();
    net.offers(3).unwrap();
    assert_eq!(net.joins(4), FULL, "the workers are here");
    net.waits(silent_after / 2, silent_after / 4);
    net.joins(2).unwrap();
    net.waits(silent_after / 2, silent_after / 4);
    assert_eq!(net.offers(4), Ok(()));
    assert_eq!((net.joins(5), net.jobs()), (FULL, vec![1, 2, 4]));
}
