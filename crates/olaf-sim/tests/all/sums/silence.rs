//! How long a worker may be silent by default (`docs/design/041-one-membership.md`): long, where nothing but a sum waits for it, and short,
//! where another worker asks for what it has.

use super::Protocol;
use super::job::{Job, MS, Setting, Task, closed, guest, peer};
use core::time::Duration;
use olaf_engine::JobId;
use olaf_engine::sums::{CONTESTED, SILENCE};
use olaf_host::collective::{Config, Options, Standing};
use olaf_sim::Wire;
use olaf_wire::Session;
use olaf_wire::reduce::Reason;

super::for_all_protocols!(
    a_worker_that_is_stopped_for_some_seconds_costs_time_alone,
    a_worker_that_has_died_is_named_after_the_silence,
    a_program_that_was_killed_has_its_job_again_long_before_the_silence,
    a_worker_that_was_killed_and_started_elsewhere_has_its_rank_long_before_the_silence,
);

/// What people get who set nothing.
fn setting<P: Protocol>() -> Setting<P> {
    let options = Options { silence: SILENCE * 2, ..Options::default() };
    Setting { config: P::config_with(8, SILENCE), options, ..Setting::default() }
}

fn cut<P: Protocol>(job: &mut Job<P>, end: u32, loss: f64) {
    let (switch, wire) = (job.setting.switch_of(end), job.setting.wire);
    job.net.join(peer(end), switch, Wire { loss, ..wire });
}

/// A debugger, a garbage collector, a file server that does not answer: nothing comes from the worker, and no time-out is near.
fn a_worker_that_is_stopped_for_some_seconds_costs_time_alone<P: Protocol>() {
    for seconds in [2, 4] {
        let mut job = Job::<P>::met(setting());
        job.sums(Task::sum(50, 0), 100 * MS);
        cut(&mut job, 1, 1.0);
        job.begin_all(Task::sum(50, 1));
        job.run_for(Duration::from_secs(seconds));
        cut(&mut job, 1, 0.0);
        job.run_until_done(2000 * MS);
        job.all_are_right(&[Task::sum(50, 0), Task::sum(50, 1)]);
    }
}

fn a_worker_that_has_died_is_named_after_the_silence<P: Protocol>() {
    let mut job = Job::<P>::met(setting());
    job.kill(peer(1));
    job.run_for(10 * MS);
    job.begin_all(Task::sum(50, 0));
    assert!(!job.ends_within(SILENCE - 600 * MS), "three heartbeats are no proof");
    job.run_until_done(1500 * MS);
    for end in [0, 2] {
        assert_eq!(job.outcomes(end), [Err(closed(Reason::Dead, 1))]);
    }
}

fn is_in<P: Protocol>(job: &Job<P>, ends: &[u32]) -> bool {
    let standings = ends.iter().map(|end| job.standing_at(peer(*end)));
    standings.into_iter().all(|standing| matches!(standing, Some(Standing::In { .. })))
}

/// All workers come back at other addresses, as processes do, and say another program.
fn a_program_that_was_killed_has_its_job_again_long_before_the_silence<P: Protocol>() {
    let named = |program| Options { program, ..setting::<P>().options };
    let mut job = Job::<P>::met(Setting { options: named(1), ..setting() });
    job.sums(Task::sum(50, 0), 100 * MS);
    (0..3).for_each(|end| job.kill(peer(end)));
    job.run_for(10 * MS);
    for end in 0..3 {
        let at = guest(1, end);
        let switch = job.setting.switch_of(end);
        let own = Config::new(JobId(1), Session(20_000 + end), switch);
        let (rank, options) = (Some(end), named(2));
        job.place_as(at, Config { workers: 3, rank, options, ..own });
    }
    let are_in = |job: &Job<P>| {
        let standing = |end| job.standing_at(guest(1, end));
        (0..3).all(|end| matches!(standing(end), Some(Standing::In { .. })))
    };
    assert!(job.runs_until(CONTESTED + 750 * MS, are_in), "{}", job.state());
}

/// The others wait in a sum meanwhile, and are told its name.
fn a_worker_that_was_killed_and_started_elsewhere_has_its_rank_long_before_the_silence<
    P: Protocol,
>() {
    let mut job = Job::<P>::met(setting());
    job.kill(peer(1));
    job.run_for(10 * MS);
    job.begin_all(Task::sum(50, 0));
    job.run_for(10 * MS);
    let switch = job.setting.switch_of(1);
    let own = Config::new(JobId(1), Session(20_000), switch);
    let (rank, options) = (Some(1), job.setting.options.clone());
    let at = guest(1, 1);
    job.place_as(at, Config { workers: 3, rank, options, ..own });
    let are_in = |job: &Job<P>| {
        is_in(job, &[0, 2]) && matches!(job.standing_at(at), Some(Standing::In { .. }))
    };
    assert!(job.runs_until(CONTESTED + 1250 * MS, |job| job.open() == 0 && are_in(job)));
    for end in [0, 2] {
        assert_eq!(job.outcomes(end), [Err(closed(Reason::Dead, 1))]);
    }
}
