//! Two programs have one job number, or two workers one rank: nobody sums what does not belong together, and who is
//! turned away hears why.

use super::Protocol;
use super::job::{Job, MS, SILENCE, Setting, Task, peer};
use super::protocol::{TOP, lower};
use core::time::Duration;
use olaf_engine::sums::SETTLE;
use olaf_engine::{JobId, PeerId};
use olaf_host::collective::{Config, Options, Standing};
use olaf_wire::Session;
use olaf_wire::reduce::WelcomeCode;

super::for_all_protocols!(
    two_programs_that_start_together_are_kept_apart,
    a_program_that_starts_anew_has_its_job_again,
    a_worker_without_a_program_is_not_of_one,
    a_lower_switch_passes_the_program_on,
    two_programs_without_names_are_both_turned_away,
    workers_of_two_programs_that_start_at_any_times_all_hear_what_becomes_of_them,
    a_program_without_a_name_begins_after_a_moment,
    a_worker_that_starts_anew_before_its_job_begins_contests_nothing,
    a_rank_that_is_taken_is_refused_and_one_whose_worker_died_is_not,
);

const FIRST: u64 = 0x1111_2222_3333_4444;
const SECOND: u64 = 0x1111_2222_3333_4445;

/// The worker of that rank in another program of two workers.
fn other(rank: u32) -> PeerId {
    PeerId(700 + rank)
}

fn setting<P: Protocol>(program: u64) -> Setting<P> {
    let options = Options { program, ..Options::default() };
    Setting { workers: 2, settle: SETTLE, options, ..Setting::default() }
}

/// Places a worker of job 1 there.
fn place<P: Protocol>(job: &mut Job<P>, at: PeerId, rank: u32, program: u64, switch: PeerId) {
    let options = Options { program, ..Options::default() };
    let own = Config::new(JobId(1), Session(20_000 + at.0), switch);
    job.place_as(at, Config { workers: 2, rank: Some(rank), options, ..own });
}

fn refused<P: Protocol>(job: &Job<P>, at: PeerId) -> Option<WelcomeCode> {
    match job.standing_at(at) {
        Some(Standing::Refused(code)) => Some(code),
        _ => None,
    }
}

#[track_caller]
fn all_are_refused<P: Protocol>(job: &mut Job<P>, all: &[PeerId], code: WelcomeCode, by: Duration) {
    let is_so = |job: &Job<P>| all.iter().all(|at| refused(job, *at) == Some(code));
    let is_told = job.runs_until(by, is_so);
    let standings: Vec<_> = all.iter().map(|at| job.standing_at(*at)).collect();
    assert!(is_told, "{standings:?}\n{}", job.state());
}

/// The first worker of each program is there first, so a job of one of both is there.
fn two_programs_that_start_together_are_kept_apart<P: Protocol>() {
    let mut job = Job::<P>::new(setting(FIRST));
    job.run_for(MS);
    [1, 0].into_iter().for_each(|rank| place(&mut job, other(rank), rank, SECOND, TOP));
    job.begin_all(Task::sum(500, 0));
    all_are_refused(&mut job, &[other(0), other(1)], WelcomeCode::OtherProgram, 1500 * MS);
    job.sums(Task::sum(500, 1), 1000 * MS);
    job.all_are_right(&[Task::sum(500, 0), Task::sum(500, 1)]);
    job.accounts();
}

/// A launcher kills what is left of a program, and starts it anew at once, with another identity.
fn a_program_that_starts_anew_has_its_job_again<P: Protocol>() {
    let mut job = Job::<P>::met(setting(FIRST));
    job.sums(Task::sum(500, 0), 1000 * MS);
    [0, 1].into_iter().for_each(|rank| job.kill(peer(rank)));
    job.run_for(10 * MS);
    [0, 1].into_iter().for_each(|rank| place(&mut job, other(rank), rank, SECOND, TOP));
    let is_in = |job: &Job<P>, at| matches!(job.standing_at(at), Some(Standing::In { .. }));
    let are_in = |job: &Job<P>| is_in(job, other(0)) && is_in(job, other(1));
    assert!(job.runs_until(SILENCE * 3 / 2, are_in), "{:?}", job.standing_at(other(0)));
}

fn a_worker_without_a_program_is_not_of_one<P: Protocol>() {
    for (program, stranger) in [(FIRST, 0), (0, FIRST)] {
        let mut job = Job::<P>::met(setting(program));
        place(&mut job, other(0), 0, stranger, TOP);
        all_are_refused(&mut job, &[other(0)], WelcomeCode::OtherProgram, 1500 * MS);
        job.sums(Task::sum(500, 0), 1000 * MS);
    }
}

fn a_lower_switch_passes_the_program_on<P: Protocol>() {
    let tree = Setting { lower: vec![1, 0], ..setting::<P>(FIRST) };
    let mut job = Job::<P>::met(tree);
    place(&mut job, other(0), 0, SECOND, lower(1));
    place(&mut job, other(1), 1, SECOND, TOP);
    all_are_refused(&mut job, &[other(0), other(1)], WelcomeCode::OtherProgram, 2000 * MS);
    job.sums(Task::sum(500, 0), 1000 * MS);
}

fn two_programs_without_names_are_both_turned_away<P: Protocol>() {
    // Before the first generation, and just after it has begun.
    for later in [1, 100, 400, 1500] {
        let mut job = Job::<P>::new(setting(0));
        job.run_for(MS * later);
        [1, 0].into_iter().for_each(|rank| place(&mut job, other(rank), rank, 0, TOP));
        all_are_refused(&mut job, &[peer(0), peer(1)], WelcomeCode::Contested, 2000 * MS);
        let told = [other(0), other(1)].map(|at| refused(&job, at));
        let all = [WelcomeCode::Contested; 2].map(Some);
        // Once a generation has begun, the first of the others hears of its rank alone.
        let first_alone = |first| [[Some(first), all[1]], [all[0], Some(first)]].contains(&told);
        let has_begun = MS * later > SETTLE;
        assert!(told == all || has_begun && first_alone(WelcomeCode::RankTaken), "{told:?}");
        // One that starts more slowly does not wait alone.
        job.run_for(1000 * MS);
        place(&mut job, other(2), 0, 0, TOP);
        all_are_refused(&mut job, &[other(2)], WelcomeCode::Contested, 50 * MS);
    }
    // One alone ends nothing: a stranger could be it.
    let mut job = Job::<P>::met(setting(0));
    place(&mut job, other(0), 0, 0, TOP);
    all_are_refused(&mut job, &[other(0)], WelcomeCode::RankTaken, 1500 * MS);
    job.sums(Task::sum(500, 0), 1000 * MS);
    // Later it is a mistake of the newcomers alone.
    let mut job = Job::<P>::met(setting(0));
    job.run_for(2000 * MS);
    place(&mut job, other(0), 0, 0, TOP);
    all_are_refused(&mut job, &[other(0)], WelcomeCode::RankTaken, 1500 * MS);
    job.sums(Task::sum(500, 0), 1000 * MS);
}

fn workers_of_two_programs_that_start_at_any_times_all_hear_what_becomes_of_them<P: Protocol>() {
    let mut chance = fastrand::Rng::with_seed(7);
    for names in [[0, 0], [FIRST, SECOND]] {
        for _ in 0..8 {
            let mut job = Job::<P>::new(setting(names[0]));
            let all = [peer(0), peer(1), other(0), other(1)];
            let starts: Vec<u64> = all.iter().map(|_| chance.u64(0..1200)).collect();
            [0, 1].into_iter().for_each(|rank| job.kill(peer(rank)));
            let begin = job.net.now();
            for (at, ms) in all.iter().zip(&starts).take(2) {
                job.net.start_at(begin + MS * *ms as u32, *at);
            }
            for rank in [0, 1] {
                let at = other(rank);
                place(&mut job, at, rank, names[1], TOP);
                job.kill(at);
                job.net.start_at(begin + MS * starts[2 + rank as usize] as u32, at);
            }
            let is_told = |of: Option<Standing>| {
                matches!(of, Some(Standing::In { .. } | Standing::Refused(_)))
            };
            let are_told = |job: &Job<P>| all.iter().all(|at| is_told(job.standing_at(*at)));
            job.run_for(1300 * MS);
            let are_told = job.runs_until(2500 * MS, are_told);
            let standings: Vec<_> = all.iter().map(|at| job.standing_at(*at)).collect();
            assert!(are_told, "{names:?}, {starts:?}: {standings:?}\n{}", job.state());
            let is_in = |at: &PeerId| matches!(job.standing_at(*at), Some(Standing::In { .. }));
            let (first, second) = (all[..2].iter().any(is_in), all[2..].iter().any(is_in));
            assert!(names[0] == 0 || !(first && second), "{starts:?}: {standings:?}");
        }
    }
}

fn a_program_without_a_name_begins_after_a_moment<P: Protocol>() {
    for (program, least, most) in [(0, SETTLE, SETTLE * 5 / 2), (FIRST, Duration::ZERO, 10 * MS)] {
        let mut job = Job::<P>::new(setting(program));
        let began = job.net.now();
        let are_in = |job: &Job<P>| job.is_in(0) && job.is_in(1);
        assert!(job.runs_until(1000 * MS, are_in), "{}", job.state());
        let took = job.net.now().since(began);
        // The first joins find no wire.
        assert!(least <= took && took <= most + 25 * MS, "{program}: {took:?}");
    }
}

fn a_worker_that_starts_anew_before_its_job_begins_contests_nothing<P: Protocol>() {
    let mut job = Job::<P>::new(setting(0));
    job.kill(peer(1));
    job.run_for(50 * MS);
    place(&mut job, other(1), 1, 0, TOP);
    job.run_for(SILENCE * 2);
    let standings = [peer(0), other(1)].map(|at| job.standing_at(at));
    let are_in = standings.iter().all(|of| matches!(of, Some(Standing::In { .. })));
    assert!(are_in, "{standings:?}\n{}", job.state());
}

fn a_rank_that_is_taken_is_refused_and_one_whose_worker_died_is_not<P: Protocol>() {
    let mut job = Job::<P>::met(setting(FIRST));
    place(&mut job, other(0), 0, FIRST, TOP);
    all_are_refused(&mut job, &[other(0)], WelcomeCode::RankTaken, 1500 * MS);
    job.sums(Task::sum(500, 0), 1000 * MS);
    job.kill(peer(1));
    job.run_for(20 * MS);
    place(&mut job, other(1), 1, FIRST, TOP);
    // The one that waits for the dead worker hears so, and joins again.
    job.starts(0, Task::sum(500, 1));
    let is_in = |job: &Job<P>| matches!(job.standing_at(other(1)), Some(Standing::In { .. }));
    assert!(job.runs_until(SILENCE * 2, is_in), "{:?}\n{}", job.standing_at(other(1)), job.state());
    assert!(refused(&job, peer(0)).is_none());
}
