//! Switches in a row: the next takes in what the one before has merged.

use crate::common::*;
use olaf_engine::switch::native::Pacing;
use olaf_engine::{BitsPerSecond, Event, PeerId, Switch, WorkerEvent};
use olaf_host::Worker;

use olaf_wire::WelcomeCode;

fn rate(bits_per_second: u64) -> Pacing {
    Pacing::Rate(BitsPerSecond::new(bits_per_second).unwrap())
}

/// A row of switches that gets slower and slower towards the server.
fn narrowing(length: usize, setting: Setting) -> Job {
    let mut tree = Tree::chain(&setting, length);
    for (at, hop) in tree.hops.iter_mut().enumerate() {
        hop.pacing = rate(8_000_000 >> at);
    }
    Job::in_tree(setting, tree)
}

#[test]
fn merges_are_merged_on_by_every_next_switch_and_every_worker_hears_the_answer() {
    for length in [2, 3] {
        let mut job = narrowing(length, Setting { workers: 8, clusters: 2, ..Setting::default() });
        job.train_for(ms(600));
        job.settle();
        everything_is_accounted_for(&job);
        everyone_learns(&job, 10);
        job.no_model_is_torn();
        // Over faultless links what a switch sent is what the next received, to the last one.
        let mut handed = job.sent();
        for at in 0..length {
            let fates = job.fates_at(at);
            assert_eq!(fates.received, handed, "switch {at} of {length}");
            assert_eq!(fates.rejected_sum(), 0, "switch {at} of {length}: {fates:?}");
            handed = fates.sent_alone + fates.merged;
        }
        assert_eq!(job.applied(), handed);
        assert!(job.fates_at(length - 1).merged > 20, "{:?}", job.fates_at(length - 1));
        for id in job.workers() {
            let statistics = job.net.node::<Worker>(id).unwrap().statistics(job.net.now());
            assert!(statistics.acknowledged > 5, "{id:?}: {statistics:?}");
            assert_eq!(usize::from(statistics.queue.switches), length);
        }
    }
}

#[test]
fn what_is_a_merge_already_is_never_replaced_further_on() {
    let setting = Setting { workers: 4, clusters: 1, every: ms(3), ..Setting::default() };
    let mut job = narrowing(3, setting);
    job.train_for(ms(300));
    job.settle();
    everything_is_accounted_for(&job);
    // One worker's unmerged update may be replaced by its next wherever it waits; of merges the
    // second and third switch saw many, and all that came of them went on.
    for at in 1..3 {
        let merges: u32 = job.departures_of(at - 1).into_iter().filter(|n| *n > 1).sum();
        let fates = job.fates_at(at);
        assert!(merges > 30, "{merges}");
        assert!(fates.merged >= u64::from(merges), "switch {at}: {fates:?} of {merges}");
    }
}

#[test]
fn the_most_crowded_queue_of_the_path_is_told_wherever_it_is() {
    // As many clusters are active at each; the fewest slots are the most crowded.
    for slots in [[4, 16, 8], [16, 4, 8], [8, 16, 4], [4, 8, 16], [8, 4, 16], [16, 8, 4]] {
        let setting = Setting::default();
        let mut tree = Tree::chain(&setting, 3);
        for (hop, slots) in tree.hops.iter_mut().zip(slots) {
            hop.slots = slots;
        }
        let mut job = Job::in_tree(setting, tree);
        job.train_for(ms(200));
        for id in job.workers() {
            let queue = job.net.node::<Worker>(id).unwrap().statistics(job.net.now()).queue;
            assert_eq!((queue.slots, queue.switches), (4, 3), "{slots:?}: {queue:?}");
            assert_eq!(queue.active_clusters, 3);
        }
    }
}

#[test]
fn updates_pushed_just_before_leaving_count_although_the_leave_overtakes_them() {
    // The last uplink is so slow that the merges wait there long after everyone has left.
    let setting = Setting { workers: 6, clusters: 3, ..Setting::default() };
    let mut tree = Tree::chain(&setting, 2);
    tree.hops[0].pacing = rate(400_000);
    tree.hops[1].pacing = rate(300_000);
    let mut job = Job::in_tree(setting, tree);
    job.train_for(ms(400));
    assert!(job.pushed > 12, "{}", job.pushed);
    for id in job.workers() {
        job.net.with(id, |worker: &mut Worker, _| worker.leave());
    }
    job.quiet = true;
    job.train_for(ms(4000));
    everything_is_accounted_for(&job);
    for at in 0..2 {
        assert_eq!(job.fates_at(at).rejected_sum(), 0, "switch {at}: {:?}", job.fates_at(at));
    }
    let gone: u64 = (0..2).map(|at| job.fates_at(at)).map(|f| f.replaced + f.dropped).sum();
    assert_eq!(job.applied() + gone, job.sent());
}

/// Switches of a chain whose last has that one above itself instead of the server.
fn circle(length: usize, back_to: usize) -> Job {
    let setting = Setting { workers: 2, clusters: 1, ..Setting::default() };
    let mut tree = Tree::chain(&setting, length);
    tree.hops[length - 1].above = Some(back_to);
    Job::in_tree(setting, tree)
}

#[test]
fn switches_that_send_in_a_circle_refuse_it_and_name_each_other() {
    for (length, back_to) in [(2, 0), (3, 0), (3, 1), (4, 0), (4, 1)] {
        let mut job = circle(length, back_to);
        job.train_for(ms(1500));
        let told: Vec<PeerId> = job
            .net
            .events()
            .iter()
            .filter(|(_, _, notice)| matches!(notice, olaf_engine::Event::Loop(..)))
            .map(|(_, who, _)| *who)
            .collect();
        assert!(!told.is_empty(), "{length} back to {back_to}: nobody said so");
        let refused: u64 = (0..length)
            .map(|at| job.net.node::<Switch>(switch(at)).unwrap())
            .map(|middle| middle.statistics(job.net.now()).refused)
            .map(|refused| refused.get("loop").copied().unwrap_or(0))
            .sum();
        assert!(refused > 0, "{length} back to {back_to}: {refused}");
        for id in job.workers() {
            let away = |notice: &Event| {
                matches!(notice, Event::Worker(_, _, WorkerEvent::TurnedAway(WelcomeCode::Loop)))
            };
            let heard = job.net.events().iter().any(|(_, who, n)| *who == id && away(n));
            assert!(heard, "{length} back to {back_to}: {id:?} was not told");
        }
        // Nothing goes round and round: a handful of datagrams for each join that was made.
        let sent = job.net.trace().len();
        assert!(sent < 200 * length, "{length} back to {back_to}: {sent} datagrams");
    }
}
