//! Notices about updates taken in go to the cluster's workers that asked for them, and to no
//! others.

use crate::common::*;
use olaf_engine::drop::DropReason;
use olaf_engine::engine::{Source, Verdict};
use olaf_engine::ids::PortId;
use olaf_engine::switch::native::{Config, QueueKind};
use olaf_wire::{Join, Notice, Update};

fn wants(sw: &mut Bench, who: W, wants_notices: bool) {
    let mut bytes = vec![0; 128];
    let len = Join { wants_notices, ..join(who, PARAMETERS) }.emit(&mut bytes);
    assert_eq!(sw.recv(who.source(), &bytes[..len]), Verdict::Absorb);
    sw.up();
}

fn told(sw: &mut Bench) -> Vec<(u32, Notice)> {
    let down = sw.down().into_iter();
    down.map(|(peer, out)| match out {
        Out::Notice(notice) => (peer.0, notice),
        other => panic!("no notice: {other:?}"),
    })
    .collect()
}

#[test]
fn those_of_the_cluster_that_asked_are_told_and_until_they_ask_no_more() {
    let mut sw = Bench::with(Config::default(), &[W1, W2, W3, V1]);
    for who in [W1, W2, V1] {
        wants(&mut sw, who, true);
    }
    sw.sends(W3, 4, &[1.0, 1.0]);
    let heard = told(&mut sw);
    let newest = update(W3, 4).generated_newest_ns;
    assert_eq!(heard.len(), 2, "W1 and W2 asked; V1 is of another cluster");
    for ((peer, notice), who) in heard.iter().zip([W1, W2]) {
        assert_eq!(
            (*peer, notice.address, notice.taken_newest_ns),
            (who.peer, who.address(), newest)
        );
    }
    wants(&mut sw, W1, false);
    sw.leaves(W2);
    sw.up();
    sw.sends(W3, 5, &[1.0, 1.0]);
    assert_eq!(told(&mut sw), []);
}

#[test]
fn nothing_is_told_of_what_was_not_taken_in_or_is_a_switchs() {
    let mut sw =
        Bench::with(Config { slots: 1, queue: QueueKind::Fifo, ..Config::default() }, &[W1, W2]);
    wants(&mut sw, W1, true);
    sw.sends(W1, 0, &[1.0, 1.0]);
    assert_eq!(told(&mut sw).len(), 1);
    assert_eq!(sw.sends(W2, 0, &[1.0, 1.0]), Verdict::Drop(DropReason::QueueFull));
    assert_eq!(told(&mut sw), []);
    assert_eq!(
        sw.sends(W1, 0, &[1.0, 1.0]),
        Verdict::Drop(DropReason::Contribution(olaf_engine::Rejection::Duplicate))
    );
    assert_eq!(told(&mut sw), []);
    sw.up();
    sw.sends_update(
        W1.source(),
        &Update { hops: 1, contributors: 2, ..update(W1, 1) },
        &[1.0, 1.0],
    );
    assert_eq!(told(&mut sw), []);
}

#[test]
fn a_notice_travels_down_only_and_not_through_a_switch() {
    let mut sw = Bench::with(Config::default(), &[W1]);
    let mut bytes = vec![0; 128];
    let len = Notice { address: W1.address(), taken_newest_ns: 7 }.emit(&mut bytes);
    let wrong = Verdict::Drop(DropReason::WrongDirection);
    assert_eq!(sw.recv(W1.source(), &bytes[..len]), wrong);
    assert_eq!(sw.recv(Source::new(PortId::UPLINK, SERVER), &bytes[..len]), wrong);
}
