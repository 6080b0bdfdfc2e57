//! A stranger knows everything that workers write, and sends it from an address of its own.

use super::Protocol;
use super::job::{Job, MS, Setting, Task, peer};
use olaf_engine::{PeerId, Verdict};
use olaf_sim::Lot;

super::for_all_protocols!(
    leaves_of_a_stranger_end_nothing,
    what_workers_have_sent_changes_nothing_when_a_stranger_repeats_it,
);

const STRANGER: PeerId = PeerId(66);

/// The switches of all workers, and the authority.
fn parties<P: Protocol>(setting: &Setting<P>) -> Vec<PeerId> {
    let mut parties = setting.switches();
    parties.push(P::AUTHORITY);
    parties.sort_unstable();
    parties.dedup();
    parties
}

/// Lets the stranger act all the time while operations run. They end well, and nothing else ends.
fn nothing_changes<P: Protocol>(mut job: Job<P>, act: impl Fn(&mut Job<P>)) {
    let before: Vec<_> = (0..3).map(|end| job.generation_at(peer(end))).collect();
    act(&mut job);
    job.run_for(200 * MS);
    let tasks = [Task::sum(20_000, 1), Task::sum(64_000, 2)];
    job.ended.clear();
    tasks.iter().for_each(|task| job.begin_all(*task));
    let mut acted = 0;
    while job.open() > 0 && acted < 1000 {
        act(&mut job);
        acted += 1;
        job.run_for(MS / 4);
    }
    assert!(acted > 2, "in the middle of the operations");
    job.run_until_done(1000 * MS);
    job.all_are_right(&tasks);
    job.accounts();
    let after: Vec<_> = (0..3).map(|end| job.generation_at(peer(end))).collect();
    assert_eq!(before, after, "no generation has ended\n{}", job.state());
}

fn leaves_of_a_stranger_end_nothing<P: Protocol>() {
    for lower in [vec![], vec![2, 1]] {
        let job = Job::<P>::met(Setting { seed: 2, lower, ..Setting::default() });
        let act = |job: &mut Job<P>| {
            for end in 0..3 {
                let leave = P::leave_of(&job.net, peer(end));
                for at in parties(&job.setting) {
                    let verdict = P::inject(&mut job.net, at, STRANGER, &leave);
                    assert!(matches!(verdict, Some(Verdict::Drop(_))), "{at:?}: {verdict:?}");
                }
            }
        };
        nothing_changes(job, act);
    }
}

fn what_workers_have_sent_changes_nothing_when_a_stranger_repeats_it<P: Protocol>() {
    let mut job = Job::<P>::recorded(Setting { seed: 2, ..Setting::default() });
    job.run_for(500 * MS);
    let first = Task::sum(5000, 0);
    job.sums(first, 1000 * MS);
    let is_workers = |from: PeerId| (0..3).any(|end| peer(end) == from);
    let sent = job.net.trace().iter().filter(|of| of.lot == Lot::Sent && is_workers(of.from));
    let sent: Vec<Vec<u8>> = sent.map(|of| of.bytes.to_vec()).collect();
    assert!(sent.len() > 20, "joins, pieces and heartbeats");
    let act = move |job: &mut Job<P>| {
        for bytes in &sent {
            for at in parties(&job.setting) {
                P::inject(&mut job.net, at, STRANGER, bytes);
            }
        }
    };
    nothing_changes(job, act);
}
