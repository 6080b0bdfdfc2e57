//! A server with a file that says where each worker is (ATP §3.2).

use super::job::*;
use core::time::Duration;
use olaf_engine::{Event, SumEvent};
use olaf_host::collective::atp::Worker;
use olaf_sim::Wire;

const TEXT: &str = r#"{
    "switches": {"rack0": "top", "rack1": "top", "top": null},
    "workers": {"rack0": ["0-1", 3], "rack1": [2], "top": [4]}
}"#;

fn misplaced(jobs: &Jobs) -> Vec<u32> {
    let told = jobs.net.events().iter().filter_map(|(_, _, event)| match event {
        Event::Sum(_, SumEvent::WorkerMisplaced { rank, .. }) => Some(*rank),
        _ => None,
    });
    told.collect()
}

#[test]
fn a_worker_that_is_elsewhere_than_the_file_says_is_named_and_added_where_it_is() {
    // Worker 3 is at the second rack, with worker 2.
    let setting = Setting { racks: vec![2, 2, 1], topology: Some(TEXT), ..Setting::default() };
    let setting = Setting { keeps_records: true, ..setting };
    let mut jobs = Jobs::new(setting);
    let task = Task::sum(62 * 100, 0);
    jobs.begin_all(0, task);
    jobs.run_until_done(2000 * MS);
    jobs.all_are_right(0, &[task]);
    assert_eq!(misplaced(&jobs), [3]);
    let of = jobs.server(0).statistics();
    assert_eq!((of.misplaced, of.gradients.received), (1, 100), "one sum a fragment");
    let [only] = of.jobs[0].misplaced.as_slice() else { panic!("{:?}", of.jobs[0].misplaced) };
    assert_eq!((only.rank, &only.planned[..]), (3, &["rack0".into(), "top".into()][..]));
    assert_eq!(only.found, ["rack1", "top"]);
    // It moves to where it should be: nothing is wrong then, and nothing is told twice.
    let wire = Wire { delay: Duration::from_micros(100), ..Wire::default() };
    jobs.net.join(worker(0, 3), rack(0), wire);
    jobs.net.with(worker(0, 3), |worker: &mut Worker, now| worker.set_switch(now, rack(0)));
    jobs.run_for(1000 * MS);
    let of = jobs.server(0).statistics();
    assert_eq!((of.seated_anew, of.misplaced, of.jobs[0].misplaced.len()), (1, 1, 0));
    assert_eq!(misplaced(&jobs), [3]);
}

#[test]
fn workers_without_a_wish_get_a_rank_that_the_file_has_where_they_are() {
    let setting = Setting { racks: vec![3, 1, 1], topology: Some(TEXT), ..Setting::default() };
    let setting = Setting { keeps_records: true, ..setting };
    let mut jobs = Jobs::new(Setting { without_wishes: true, ..setting });
    jobs.run_for(100 * MS);
    let members = jobs.server(0).statistics().jobs[0].members.clone();
    let at: Vec<u32> = members.iter().map(|member| member.first_switch).collect();
    let [first, second] = [rack(0), rack(1)].map(number_of);
    assert_eq!(at, [first, first, second, first, number_of(TOP)]);
    assert!(misplaced(&jobs).is_empty());
}
