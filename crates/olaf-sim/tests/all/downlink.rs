//! The way down has a link as well: what a storm of answers does to a paced one.

use crate::common::*;
use olaf_engine::{BitsPerSecond, Engine, Instant, PeerId, Switch};
use olaf_sim::Lot;
use olaf_wire::{Answer, Packet};
use std::collections::BTreeMap;

/// 8 Mbit/s: a byte takes a microsecond.
const RATE: u64 = 8_000_000;

/// Twelve workers in one cluster. Each gets every answer to an update that it contributed to, so
/// the answers take more of the downlink than the updates take of the uplink.
fn storm(ports: u16, rate: Option<u64>, limit: usize) -> Job {
    let setting = Setting { workers: 12, clusters: 1, ..Setting::default() };
    let mut tree = Tree::single(&setting);
    tree.hops[0].down = Down { ports, rate: rate.and_then(BitsPerSecond::new), limit };
    let mut job = Job::in_tree(setting, tree);
    job.train_for(ms(300));
    job
}

/// What the switch sent down, with the time of each last bit.
fn sent_down(job: &Job) -> Vec<(Instant, PeerId, Vec<u8>)> {
    let records = job.net.trace().iter().filter(|r| r.lot == Lot::Sent && r.from == SWITCH);
    let down = records.filter(|r| r.to != SERVER);
    down.map(|r| (r.at, r.to, r.bytes.to_vec())).collect()
}

fn link_full(job: &Job) -> u64 {
    let switch = job.net.node::<Switch>(SWITCH).unwrap();
    switch.statistics(job.net.now()).refused.get("link_full").copied().unwrap_or(0)
}

#[test]
fn a_storm_of_answers_waits_for_the_downlink_and_keeps_its_order() {
    let mut job = storm(1, Some(RATE), 65_536);
    let sent = sent_down(&job);
    assert!(sent.len() > 100, "{}", sent.len());
    // No two share the link: the next one's last bit comes at least its own bytes later.
    for pair in sent.windows(2) {
        let (before, (at, _, bytes)) = (pair[0].0, &pair[1]);
        assert!(at.0 - before.0 >= bytes.len() as u64 * 1000 - 1, "{before:?}, then {at:?}");
    }
    let switch = job.net.node::<Switch>(SWITCH).unwrap();
    assert!(switch.poll_timeout().unwrap().0 > job.net.now());
    // Each worker gets ever newer models.
    let mut newest: BTreeMap<PeerId, u32> = BTreeMap::new();
    for (_, to, bytes) in &sent {
        let Ok(answer) = Answer::parse(&Packet::new_checked(bytes).unwrap()) else { continue };
        let newest = newest.entry(*to).or_default();
        assert!(answer.model_version >= *newest || answer.model_version == 0, "{to:?}");
        *newest = answer.model_version.max(*newest);
    }
    assert_eq!(link_full(&job), 0, "there was room for all of them");
    job.settle();
    everything_is_accounted_for(&job);
    everyone_learns(&job, 2);
}

#[test]
fn a_downlink_with_little_room_drops_and_counts() {
    // The answers to one update fit, and hardly more.
    let mut job = storm(1, Some(RATE), 16);
    assert!(link_full(&job) > 10, "{}", link_full(&job));
    job.settle();
    everything_is_accounted_for(&job);
    everyone_learns(&job, 2);
    job.no_model_is_torn();
}

#[test]
fn a_rate_that_is_never_reached_changes_when_answers_leave_and_not_which() {
    let (free, paced) = (storm(1, None, 65_536), storm(1, Some(1 << 40), 65_536));
    let told = |job: &Job| sent_down(job).into_iter().map(|(_, to, _)| to).collect::<Vec<_>>();
    assert_eq!(told(&free), told(&paced));
    assert!(sent_down(&free).iter().zip(sent_down(&paced)).all(|(a, b)| b.0 >= a.0));
}

#[test]
fn each_way_down_has_a_link_of_its_own() {
    let models = |job: &Job| sent_down(job).iter().filter(|(.., bytes)| bytes.len() > 1000).count();
    let (one, three) = (storm(1, Some(RATE), 65_536), storm(3, Some(RATE), 65_536));
    assert!(models(&three) > models(&one) * 3 / 2, "{} and {}", models(&one), models(&three));
    let down = three.tree.hops[0].down;
    for port in 0..3 {
        let behind = |to: &PeerId| down.port_of(to.0) == down.port_of(port);
        let sent: Vec<_> = sent_down(&three).into_iter().filter(|(_, to, _)| behind(to)).collect();
        assert!(sent.len() > 20, "port {port}: {}", sent.len());
        for pair in sent.windows(2) {
            assert!(pair[1].0.0 - pair[0].0.0 >= pair[1].2.len() as u64 * 1000 - 1, "port {port}");
        }
    }
}
