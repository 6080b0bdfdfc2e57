//! Which generations may divide their operations among the cores of the switch.

use super::*;

/// The cores of each welcome that lets a worker in, by rank.
fn welcomes(trace: &mut Trace) -> Vec<u32> {
    let sent = trace.sent().into_iter().filter_map(|(_, out)| match out {
        Out::Welcome(welcome) if welcome.code == WelcomeCode::Welcome => Some(welcome.cores),
        _ => None,
    });
    sent.collect()
}

/// A worker with another session than the one that had the rank before.
fn joins_anew(trace: &mut Trace, rank: u32, workers: u32, session: u32) {
    trace.joins_as(rank, join_of(JOB.0, rank, workers, session));
}

#[test]
fn only_a_generation_of_new_workers_has_several_cores() {
    let config = Config { cores: 4, ..Config::default() };
    let mut trace = Trace::new(config.clone());
    (0..2).for_each(|rank| {
        trace.joins(rank, 2);
    });
    assert_eq!(welcomes(&mut trace), [4, 4]);
    // Worker 1 begins another life. Worker 0 stays: it has operations behind it.
    trace.wait(Duration::from_secs(3));
    joins_anew(&mut trace, 1, 2, 50);
    trace.joins(0, 2);
    assert_eq!(welcomes(&mut trace), [1, 1]);
    // Another run of the job: both are new.
    trace.wait(Duration::from_secs(3));
    joins_anew(&mut trace, 0, 2, 60);
    joins_anew(&mut trace, 1, 2, 61);
    assert_eq!(welcomes(&mut trace), [4, 4]);
    // Workers that come and go.
    let mut elastic = Trace::new(config);
    elastic.joins(0, 0);
    assert_eq!(welcomes(&mut elastic), [1]);
}
