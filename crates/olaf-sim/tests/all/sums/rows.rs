//! The rows of `docs/design/041-one-membership.md`: each of them is observed, and is what the note decides, or what
//! [`TODAY`] says of a protocol that does not keep it yet.

use super::Protocol;
use super::job::{Job, MS, SILENCE, SWITCH_SILENCE, Setting, Task, guest, peer};
use core::time::Duration;
use olaf_engine::{JobId, PeerId};
use olaf_host::collective::{Collective, Failure, OperationId, Standing};
use olaf_sim::Wire;
use std::collections::BTreeSet;

super::for_all_protocols!(
    a_worker_restarts_at_the_same_address,
    a_session_joins_from_another_address,
    a_worker_is_silent_while_nobody_waits_for_it,
    a_job_whose_workers_vanished_frees_its_place,
    a_job_that_all_have_left_frees_its_place,
    a_full_switch_evicts,
    generations_have_numbers,
    a_leave_is_repeated,
    a_worker_dies_behind_another_switch,
    a_worker_is_behind_when_the_authority_restarts,
    an_operation_is_given_up_just_before_a_generation_begins,
);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    Restart,
    Elsewhere,
    Silence,
    Place,
    AllLeft,
    Eviction,
    Numbers,
    Leaves,
    Tree,
    Behind,
    GivenUp,
}

/// What a protocol does today instead of what is decided. The shared roster is to empty this table.
const TODAY: &[(&str, Row, &str)] = &[("trio", Row::Tree, "told without a name")];

/// What the note decides.
fn decided<P: Protocol>(row: Row) -> &'static str {
    match row {
        Row::Restart => "at once, dead, by name",
        Row::Elsewhere => "waits while the member lives, then takes its place",
        Row::Silence => "goes on, and the first who waits is told at once",
        Row::Place => "after 30 x silence",
        Row::AllLeft => "within 1 x silence",
        Row::Eviction => "deserted, unbegun, none",
        // A field of 8 or 16 bits is too short for draws: they would repeat sooner than a count.
        Row::Numbers if matches!(P::NAME, "iswitch" | "atp") => "counted for all jobs",
        Row::Numbers => "drawn for each job",
        Row::Leaves => "is heard though half of all datagrams are lost",
        Row::Tree => "told by name",
        Row::Behind => "fails what the others have failed",
        Row::GivenUp => "fails at the others, too",
    }
}

#[track_caller]
fn observed<P: Protocol>(row: Row, what: &str) {
    let today = TODAY.iter().find(|(name, of, _)| *name == P::NAME && *of == row);
    if today.is_some() {
        assert_ne!(what, decided::<P>(row), "{} keeps {row:?} now: take it out of TODAY", P::NAME);
    }
    assert_eq!(what, today.map_or(decided::<P>(row), |(_, _, what)| what), "{}, {row:?}", P::NAME);
}

fn a_worker_restarts_at_the_same_address<P: Protocol>() {
    let mut job = Job::<P>::met(Setting::default());
    [0, 1].into_iter().for_each(|end| job.starts(end, Task::sum(5000, 0)));
    job.run_for(MS);
    job.kill(peer(2));
    job.start(peer(2));
    job.run_for(MS);
    let began = job.net.now();
    let has_ended = |job: &Job<P>| [0, 1].iter().all(|end| job.open_at(*end) == Some(0));
    assert!(job.runs_until(SILENCE * 2, has_ended), "{}", job.state());
    let when = if job.net.now().since(began) < SILENCE / 4 { "at once" } else { "when silent" };
    let (first, second) = (job.outcome(0, 0).outcome, job.outcome(1, 0).outcome);
    assert_eq!(first, second);
    let Err(Failure::Closed { reason, culprit }) = first else { panic!("{first:?}") };
    let name = if culprit == Some(2) { "by name" } else { "without a name" };
    // Whatever ended it, the job goes on.
    job.run_for(SILENCE * 2);
    job.sums(Task::sum(5000, 1), 1000 * MS);
    job.accounts();
    observed::<P>(Row::Restart, &format!("{when}, {}, {name}", reason.name()));
}

fn a_session_joins_from_another_address<P: Protocol>() {
    const ELSEWHERE: PeerId = PeerId(900);
    let mut job = Job::<P>::met(Setting::default());
    let before = job.generation_at(peer(0));
    // The session of worker 1.
    job.place_at(ELSEWHERE, JobId(1), 1, 3, 2);
    let mut is_disturbed = false;
    for number in 0..6 {
        job.begin_all(Task::sum(5000, number));
        is_disturbed |= !job.ends_within(SILENCE) || job.standing_at(ELSEWHERE).is_none();
        job.run_for(SILENCE / 2);
    }
    let is_right = |end| job.outcomes(end).iter().all(Result::is_ok);
    is_disturbed |= !(0..3).all(is_right) || job.generation_at(peer(0)) != before;
    let waits = matches!(job.standing_at(ELSEWHERE), Some(Standing::Joining { .. }));
    let first = match (is_disturbed, waits) {
        (false, true) => "waits while the member lives",
        (false, false) => "is let in while the member lives",
        (true, _) => "disturbs the member",
    };
    job.kill(peer(1));
    job.run_for(SILENCE * 5);
    let is_in = matches!(job.standing_at(ELSEWHERE), Some(Standing::In { .. }));
    let then = if is_in { "then takes its place" } else { "then waits on" };
    observed::<P>(Row::Elsewhere, &format!("{first}, {then}"));
}

fn a_worker_is_silent_while_nobody_waits_for_it<P: Protocol>() {
    let mut job = Job::<P>::met(Setting::default());
    let (wire, switch) = (job.setting.wire, job.setting.switch_of(2));
    let before = job.generation_at(peer(0));
    job.net.join(peer(2), switch, Wire { loss: 1.0, ..wire });
    // Shorter than the worker itself waits for a silent switch.
    job.run_for(SILENCE * 2);
    job.net.join(peer(2), switch, wire);
    job.run_for(SILENCE / 2);
    job.begin_all(Task::sum(5000, 0));
    job.run_until_done(1000 * MS);
    let is_over = job.generation_at(peer(0)) != before || job.outcome(0, 0).outcome.is_err();
    if is_over {
        return observed::<P>(Row::Silence, "ends when silent");
    }
    let died = job.net.now();
    job.kill(peer(2));
    let has_ended = |job: &Job<P>| job.generation_at(peer(0)) != before;
    if job.runs_until(SILENCE * 10, has_ended) {
        let took = job.net.now().since(died).as_secs_f64() / SILENCE.as_secs_f64();
        // The last heartbeat came up to a third of it earlier; looks are some time apart.
        return observed::<P>(Row::Silence, &format!("ends after {} x silence", took.round()));
    }
    [0, 1].into_iter().for_each(|end| job.starts(end, Task::sum(5000, 1)));
    let is_told =
        job.runs_until(SILENCE / 2, |job| [0, 1].iter().all(|end| job.open_at(*end) == Some(0)));
    let when = if is_told { "at once" } else { "late" };
    observed::<P>(Row::Silence, &format!("goes on, and the first who waits is told {when}"));
}

fn a_job_whose_workers_vanished_frees_its_place<P: Protocol>() {
    let mut job = Job::<P>::met(Setting::default());
    let died = job.net.now();
    (0..3).for_each(|end| job.kill(peer(end)));
    let is_free = |job: &Job<P>| P::known(&job.net).jobs.is_empty();
    assert!(!is_free(&job));
    while !is_free(&job) && job.net.now().since(died) < SILENCE * 40 {
        job.run_for(SILENCE / 10);
    }
    let took = job.net.now().since(died).as_secs_f64() / SILENCE.as_secs_f64();
    observed::<P>(Row::Place, &format!("after {} x silence", took.round()));
}

fn a_job_that_all_have_left_frees_its_place<P: Protocol>() {
    let mut job = Job::<P>::met(Setting::default());
    (0..3).for_each(|end| job.with(end, |worker, now| worker.leave(now)));
    let left = job.net.now();
    let is_free = |job: &Job<P>| P::known(&job.net).jobs.is_empty();
    while !is_free(&job) && job.net.now().since(left) < SILENCE * 40 {
        job.run_for(SILENCE / 10);
    }
    let took = job.net.now().since(left).as_secs_f64() / SILENCE.as_secs_f64();
    let what = match took {
        ..1.2 => "within 1 x silence".to_owned(),
        _ => format!("after {} x silence", took.round()),
    };
    observed::<P>(Row::AllLeft, &what);
}

/// Three jobs have all places: the job of the others runs, the workers of the second one are gone, and the third one
/// waits for a worker. Jobs of one worker come, one after the other, and each begins at once if it is let in.
fn a_full_switch_evicts<P: Protocol>() {
    let mut job = Job::<P>::met(Setting { config: P::config(3), ..Setting::default() });
    job.place_guest(2, 0, 1);
    job.run_for(500 * MS);
    assert!(matches!(job.standing_at(guest(2, 0)), Some(Standing::In { .. })), "{}", job.state());
    job.kill(guest(2, 0));
    job.place_guest(3, 0, 2);
    job.run_for(SILENCE * 4 / 3);
    let known = |job: &Job<P>| P::known(&job.net).jobs.into_iter().collect::<BTreeSet<u32>>();
    let mut evicted = Vec::new();
    for new in 4..7 {
        let before = known(&job);
        job.place_guest(new, 0, 1);
        job.run_for(50 * MS);
        let gone: Vec<u32> = before.difference(&known(&job)).copied().collect();
        evicted.push(match gone[..] {
            [] => "none",
            [2] => "deserted",
            [3] => "unbegun",
            _ => "running",
        });
        let is_in = matches!(job.standing_at(guest(new, 0)), Some(Standing::In { .. }));
        assert!(is_in || gone.is_empty(), "the new job has the place\n{}", job.state());
    }
    // The job that ran meanwhile goes on.
    job.sums(Task::sum(5000, 0), 1000 * MS);
    observed::<P>(Row::Eviction, &evicted.join(", "));
}

/// Two jobs end and begin again all the time. No two generations have the same number, of the whole switch; and who
/// knows the numbers of one job does not know those of the other.
fn generations_have_numbers<P: Protocol>() {
    let mut job = Job::<P>::met(Setting { seed: 2, ..Setting::default() });
    job.place_guest(2, 0, 1);
    let mut numbers = Vec::new();
    for number in 0..12 {
        job.run_for(500 * MS);
        numbers.push(job.generation_at(peer(0)).expect("it is in"));
        numbers.push(job.generation_at(guest(2, 0)).expect("it is in"));
        for at in [peer(0), guest(2, 0)] {
            job.kill(at);
            job.start(at);
        }
        // Some workers hear of the end only when they wait for something.
        [1, 2].into_iter().for_each(|end| job.starts(end, Task::sum(10, number)));
        job.run_for(SILENCE * 3);
    }
    let distinct: BTreeSet<u32> = numbers.iter().copied().collect();
    assert_eq!(distinct.len(), numbers.len(), "an old packet fits a new generation: {numbers:?}");
    let is_near = numbers.windows(2).filter(|two| two[0].abs_diff(two[1]) < 16).count();
    let how = match is_near {
        0 => "drawn for each job",
        _ if is_near > numbers.len() / 2 => "counted for all jobs",
        _ => "something else",
    };
    observed::<P>(Row::Numbers, how);
}

fn a_leave_is_repeated<P: Protocol>() {
    let mut heard = 0;
    for seed in 0..20 {
        let mut job = Job::<P>::met(Setting { seed, ..Setting::default() });
        [0, 1].into_iter().for_each(|end| job.starts(end, Task::sum(100, 0)));
        job.run_for(10 * MS);
        let lossy = Wire { loss: 0.5, ..job.setting.wire };
        job.net.join(peer(2), job.setting.switch_of(2), lossy);
        job.with(2, |worker, now| worker.leave(now));
        job.run_until_done(Duration::from_secs(3));
        let outcome = job.outcome(0, 0).outcome;
        let is_left = |reason: olaf_wire::reduce::Reason| reason.name() == "left";
        let is_heard =
            matches!(outcome, Err(Failure::Closed { reason, culprit: Some(2) }) if is_left(reason));
        heard += u32::from(is_heard);
    }
    let what = if heard >= 18 { "is heard" } else { "is lost now and then" };
    observed::<P>(Row::Leaves, &format!("{what} though half of all datagrams are lost"));
}

fn a_worker_dies_behind_another_switch<P: Protocol>() {
    let mut job = Job::<P>::met(Setting { workers: 5, lower: vec![2, 2], ..Setting::default() });
    job.kill(peer(3));
    job.run_for(MS);
    job.begin_all(Task::sum(5000, 0));
    job.run_until_done(SILENCE * 3 / 2);
    let names = |end| match job.outcome(end, 0).outcome {
        Err(Failure::Closed { culprit, .. }) => culprit,
        other => panic!("{end}: {other:?}"),
    };
    let all: Vec<Option<u32>> = [0, 1, 2, 4].map(names).to_vec();
    let is_named = all.iter().all(|culprit| *culprit == Some(3));
    observed::<P>(Row::Tree, if is_named { "told by name" } else { "told without a name" });
}

/// Two workers have begun five operations when the authority restarts, and the third one has begun two. It must not sum
/// its third one with the others' sixth one.
fn a_worker_is_behind_when_the_authority_restarts<P: Protocol>() {
    let mut job = Job::<P>::met(Setting::slow());
    job.begin_all(Task::sum(P::LONG, 0));
    job.begin_all(Task::sum(1000, 1));
    for number in 2..5 {
        [0, 1].into_iter().for_each(|end| job.starts(end, Task::sum(1000, number)));
    }
    job.run_for(2 * MS);
    job.kill(P::AUTHORITY);
    job.net.start_at(job.net.now() + 20 * MS, P::AUTHORITY);
    job.run_for(2000 * MS);
    (2..5).for_each(|number| job.starts(2, Task::sum(1000, number)));
    job.begin_all(Task::sum(1000, 5));
    job.ends_within(Duration::from_secs(3));
    let is_wrong = |end: u32, id: u64| {
        let ended = job.ended.get(&peer(end)).and_then(|ended| ended.get(&OperationId(id)));
        let task = Task::sum(1000, id as u32);
        ended.is_some_and(|of| of.outcome.is_ok() && of.lanes != task.expected::<P>(&[0, 1, 2]))
    };
    let is_wrong = (0..3).any(|end| (1..6).any(|id| is_wrong(end, id)));
    if is_wrong {
        return observed::<P>(Row::Behind, "gets a wrong sum");
    }
    let is_failed = (2..5).all(|id| job.outcome(2, id).outcome.is_err());
    let is_met = (0..3).all(|end| job.outcome(end, 5).outcome.is_ok());
    let what = if is_failed && is_met { "fails what the others have failed" } else { "waits" };
    observed::<P>(Row::Behind, what);
}

/// A worker gives an operation up while it waits for one that is cut off, about when that one comes back.
fn an_operation_is_given_up_just_before_a_generation_begins<P: Protocol>() {
    let mut is_wrong = false;
    for ms in (0..600).step_by(15) {
        let mut job = Job::<P>::met(Setting::default());
        let (wire, switch) = (job.setting.wire, job.setting.switch_of(2));
        job.sums(Task::sum(300, 0), 1000 * MS);
        job.net.join(peer(2), switch, Wire { loss: 1.0, ..wire });
        [0, 1].into_iter().for_each(|end| job.starts(end, Task::sum(300, 1)));
        job.run_for(SILENCE * 2);
        job.starts(0, Task::sum(300, 2));
        job.run_for(SWITCH_SILENCE);
        job.net.join(peer(2), switch, wire);
        job.run_for(MS * ms);
        job.give_up(0, 2);
        job.starts(1, Task::sum(300, 2));
        [1, 2].into_iter().for_each(|number| job.starts(2, Task::sum(300, number)));
        job.run_for(2000 * MS);
        job.begin_all(Task::sum(300, 3));
        job.ends_within(Duration::from_secs(2));
        for end in 0..3 {
            for (id, ended) in &job.ended[&peer(end)] {
                let expected = Task::sum(300, id.0 as u32).expected::<P>(&[0, 1, 2]);
                is_wrong |= ended.outcome.is_ok() && ended.lanes != expected;
            }
        }
        let meets =
            (0..3).all(|end| job.outcomes(end).len() == 4 && job.outcome(end, 3).outcome.is_ok());
        assert!(is_wrong || meets, "{ms} ms\n{}", job.state());
    }
    let what = if is_wrong { "is summed with a later one" } else { "fails at the others, too" };
    observed::<P>(Row::GivenUp, what);
}
