//! What becomes of updates that are pushed.

use super::*;

const SHAPE: Shape = Shape { parameters: 3, segment_lanes: 2 };

fn of_one(generated_ns: u64, basis: u32, weight: f64, reward: f64) -> Contribution {
    let worker = olaf_wire::WorkerId(0);
    let one = Contribution::of_one(olaf_engine::Flow::default(), worker, generated_ns, 0);
    Contribution { versions: (basis, basis), weight, reward, ..one }
}

fn sent(outbox: &mut Outbox) -> Vec<(Update, Vec<f32>)> {
    let (mut buf, mut out) = (alloc::vec![0; 200], Vec::new());
    while let Some(len) = outbox.emit(Instant(9), Address::default(), None, &mut buf) {
        let packet = olaf_wire::Packet::new_checked(&buf[..len]).expect("just written");
        let mut lanes = alloc::vec![0.0; packet.lanes().len() / 4];
        olaf_wire::update::read_lanes(packet.lanes(), &mut lanes);
        out.push((Update::parse(&packet).expect("just written"), lanes));
    }
    let c = outbox.counts;
    let gone = c.sent + c.replaced_unsent + c.discarded;
    assert_eq!(c.contributions, gone + outbox.unsent() + outbox.held());
    out
}

#[test]
fn what_is_carried_joins_the_next_one() {
    let mut outbox = Outbox::default();
    let mut push = |at, lanes: &[f32], weight, reward, send| {
        let meta = of_one(at, at as u32, weight, reward);
        outbox.push(SHAPE, &[lanes], meta, send, Unsent::Carry).expect("fine lanes");
    };
    push(10, &[1.0, 2.0, 3.0], 1.0, 8.0, false);
    push(20, &[1.0, 1.0, 1.0], 1.0, 8.0, false);
    push(30, &[0.5, 0.0, 1.0], 2.0, 4.0, true);
    let out = sent(&mut outbox);
    let (update, lanes) = &out[0];
    assert_eq!(lanes, &[3.0, 3.0]);
    assert_eq!((update.contributors, update.weight, update.reward), (3, 4.0, 6.0));
    assert_eq!((update.generated_oldest_ns, update.generated_newest_ns), (10, 30));
    assert_eq!((update.version_oldest, update.version_newest), (10, 30));
    assert_eq!((update.sequence, out[1].1.as_slice()), (2, &[6.0][..]));
    assert_eq!((outbox.counts.sent, outbox.counts.datagrams, outbox.counts.carried), (6, 2, 6));
}

#[test]
fn what_is_carried_does_not_grow_beyond_what_a_switch_takes() {
    let mut outbox = Outbox::default();
    for at in 0..u64::from(CARRIED) + 7 {
        let meta = of_one(at, 0, 1.0, 0.0);
        outbox.push(SHAPE, &[&[1.0; 3]], meta, false, Unsent::Carry).expect("fine lanes");
    }
    assert_eq!(sent(&mut outbox)[0].0.contributors, CARRIED);
    assert_eq!(outbox.held(), 2 * 7);
}

#[test]
fn what_has_no_sum_with_what_is_held_stands_alone() {
    let mut outbox = Outbox::default();
    let big = [f32::MAX; 3];
    for send in [false, true] {
        let meta = of_one(1, 1, 1.0, 0.0);
        outbox.push(SHAPE, &[&big], meta, send, Unsent::Carry).expect("fine lanes");
    }
    assert_eq!(sent(&mut outbox)[0].0.contributors, 1);
    assert_eq!(outbox.counts.discarded, 2);
}

#[test]
fn what_is_carried_has_a_mean_reward_however_large_the_numbers_are() {
    let mut outbox = Outbox::default();
    // Lanes are 32 bits wide, so that no weight can be larger.
    let weight = f64::from(f32::MAX) / 4.0;
    for (reward, send) in [(f64::MAX, false), (f64::MAX / 2.0, true)] {
        let one = of_one(1, 1, weight, reward);
        outbox.push(SHAPE, &[&[1.0; 3]], one, send, Unsent::Carry).expect("fine lanes");
    }
    assert_eq!(outbox.counts.discarded, 0);
    let (update, _) = &sent(&mut outbox)[0];
    assert_eq!((update.contributors, update.weight), (2, 2.0 * weight));
    assert_eq!(update.reward, f64::MAX * 0.75);
}

#[test]
fn what_is_held_for_another_try_gives_way_to_a_newer_one_and_bad_values_change_nothing() {
    let mut outbox = Outbox::default();
    let retry = Unsent::Retry(Duration::from_millis(1));
    let meta = |at| of_one(at, 0, 1.0, 0.0);
    outbox.push(SHAPE, &[&[1.0; 3]], meta(1), false, retry).expect("fine lanes");
    let bad = outbox.push(SHAPE, &[&[1.0, f32::NAN, 1.0]], meta(2), false, retry);
    assert_eq!(bad, Err(PushError::NonFinite { index: 1 }));
    assert_eq!(outbox.held_newest_ns(), Some(1));
    outbox.push(SHAPE, &[&[2.0; 3]], meta(3), false, retry).expect("fine lanes");
    assert_eq!((outbox.counts.discarded, sent(&mut outbox).len()), (2, 0));
    outbox.release();
    assert_eq!(sent(&mut outbox)[0].1, [2.0, 2.0]);
    outbox.push(SHAPE, &[&[2.0; 3]], meta(4), false, Unsent::Discard).expect("fine lanes");
    assert_eq!((outbox.counts.discarded, sent(&mut outbox).len()), (4, 0));
}

#[test]
fn only_what_is_named_has_an_end_and_numbers_go_on_after_the_largest() {
    let mut outbox = Outbox::default();
    let shape = Shape { parameters: 1, segment_lanes: 1 };
    let mut buf = [0; 200];
    let mut numbers = Vec::new();
    for _ in 0..5 {
        let meta = of_one(0, 0, 1.0, 0.0);
        outbox.push(shape, &[&[1.0]], meta, true, Unsent::Carry).expect("a good update");
        let len = outbox.emit(Instant(0), Address::default(), None, &mut buf).expect("it waits");
        let packet = olaf_wire::Packet::new_checked(&buf[..len]).expect("just written");
        numbers.push(Update::parse(&packet).expect("just written").flow_sequence);
        if numbers.len() == 1 {
            outbox.flows[0].newest = u32::MAX - 2;
        }
    }
    assert_eq!(numbers[1..], [u32::MAX - 1, u32::MAX, 1, 2]);
    // Of the five the second and the last arrived, the third was replaced: of the first and the
    // fourth nothing is known, although a later one arrived. 0 is no number: 2 - 1 - MAX.
    assert!(outbox.awaits_newest());
    outbox.note_ends(0, &Ends { newest: 2, delivered: 1 | 1 << 4, ended: 1 << 3 });
    // The first and the fourth may be lost: the worker does not wait for them.
    assert!(!outbox.awaits_newest());
    let counts = outbox.counts;
    assert_eq!((counts.acknowledged, counts.not_delivered, counts.awaited), (2, 1, 2));
    outbox.note_ends(0, &Ends { newest: 2, delivered: 1 | 1 << 4, ended: 1 << 3 });
    outbox.note_ends(7, &Ends { newest: 2, delivered: u64::MAX, ended: 0 });
    assert_eq!(outbox.counts.acknowledged, 2, "nothing counts twice, and no other segment");
    outbox.give_up();
    let counts = outbox.counts;
    assert_eq!((counts.unconfirmed, counts.awaited, counts.sent), (2, 0, 5));
}

#[test]
fn what_is_not_finite_is_found_wherever_it_is() {
    let fine = alloc::vec![f32::MAX; 3000];
    for at in [0, 15, 16, 2047, 2048, 2999] {
        let mut bad = alloc::vec![1.0; 3000];
        bad[at] = f32::NAN;
        let (parts, mut lanes) = ([fine.as_slice(), &bad], Vec::new());
        assert_eq!(first_bad(&parts, 1.0), Some(3000 + at));
        assert_eq!(take_in(&mut lanes, &parts, 1.0), Some(3000 + at));
        assert_eq!(take_in(&mut lanes, &parts, 2.0), Some(0), "twice the largest is too much");
    }
    let mut lanes = Vec::new();
    assert_eq!((first_bad(&[&fine], 1.0), take_in(&mut lanes, &[&fine, &fine], 0.5)), (None, None));
    assert_eq!(lanes, alloc::vec![f32::MAX / 2.0; 6000]);
}

/// Pushes the parts of a model of 7 lanes in segments of 3, lent.
fn lend<'a>(outbox: &mut Outbox, parts: &'a [&'a [f32]], weight: f64) -> Lent<'a> {
    let shape = Shape { parameters: 7, segment_lanes: 3 };
    let meta = of_one(5, 5, weight, 2.0);
    let sequence = outbox.lend(shape, parts, meta, true, Unsent::Carry).expect("fine lanes");
    Lent::new(sequence, parts)
}

/// All datagrams that leave now.
fn datagrams(outbox: &mut Outbox, lent: Option<&Lent<'_>>) -> Vec<Vec<u8>> {
    let mut buf = alloc::vec![0; 200];
    let mut next = || {
        let len = outbox.emit(Instant(9), Address::default(), lent, &mut buf)?;
        Some(buf[..len].to_vec())
    };
    core::iter::from_fn(&mut next).collect()
}

#[test]
fn a_lent_update_leaves_as_a_copied_one_does_wherever_its_parts_end() {
    let all = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
    let mut copied = Outbox::default();
    let shape = Shape { parameters: 7, segment_lanes: 3 };
    copied.push(shape, &[&all], of_one(5, 5, 1.0, 2.0), true, Unsent::Carry).expect("fine lanes");
    let copied = datagrams(&mut copied, None);
    assert_eq!(copied.len(), 3);
    for first in 0..=7 {
        for second in first..=7 {
            let parts = [&all[..first], &[], &all[first..second], &all[second..]];
            let mut outbox = Outbox::default();
            let lent = lend(&mut outbox, &parts, 1.0);
            assert_eq!(datagrams(&mut outbox, Some(&lent)), copied, "{first} {second}");
            assert!(!outbox.has_unsent());
            outbox.keep(&lent);
            assert!(!outbox.has_unsent() && outbox.lanes.is_empty(), "nothing is left to copy");
        }
    }
}

#[test]
fn what_has_not_left_of_a_lent_update_is_copied_at_the_end_of_the_loan() {
    let mut outbox = Outbox::default();
    let parts: [&[f32]; 2] = [&[1.0, 2.0], &[3.0, 4.0, 5.0, 6.0, 7.0]];
    let lent = lend(&mut outbox, &parts, 1.0);
    let mut buf = [0; 200];
    outbox.emit(Instant(9), Address::default(), Some(&lent), &mut buf).expect("one has room");
    // Another thread has no lanes, and must not send older ones.
    assert!(sent(&mut outbox).is_empty());
    outbox.keep(&lent);
    drop(lent);
    let rest = sent(&mut outbox);
    assert_eq!((rest[0].0.segment, rest[0].1.as_slice()), (1, &[4.0, 5.0, 6.0][..]));
    assert_eq!((rest[1].0.segment, rest[1].1.as_slice()), (2, &[7.0][..]));
    assert_eq!(outbox.counts.sent, 3);
}

#[test]
fn an_update_that_replaces_a_lent_one_has_its_own_lanes() {
    let mut outbox = Outbox::default();
    let lent = lend(&mut outbox, &[&[1.0; 7]], 1.0);
    let shape = Shape { parameters: 7, segment_lanes: 3 };
    let newer = of_one(6, 6, 1.0, 2.0);
    outbox.push(shape, &[&[2.0; 7]], newer, true, Unsent::Carry).expect("fine lanes");
    let with_the_loan = datagrams(&mut outbox, Some(&lent));
    outbox.keep(&lent);
    let packet = olaf_wire::Packet::new_checked(&with_the_loan[0]).expect("just written");
    let mut lanes = [0.0; 3];
    olaf_wire::update::read_lanes(packet.lanes(), &mut lanes);
    assert_eq!((with_the_loan.len(), lanes), (3, [2.0; 3]));
    assert_eq!((outbox.counts.replaced_unsent, outbox.unsent()), (3, 0));
}

#[test]
fn lanes_that_are_changed_or_held_are_copied_and_bad_ones_are_refused() {
    let mut outbox = Outbox::default();
    let lent = lend(&mut outbox, &[&[1.0; 7]], 2.0);
    assert_eq!(sent(&mut outbox)[0].1, [2.0; 3], "weighted lanes are no loan");
    outbox.keep(&lent);
    let shape = Shape { parameters: 7, segment_lanes: 3 };
    let parts: [&[f32]; 1] = [&[1.0; 7]];
    outbox.lend(shape, &parts, of_one(1, 1, 1.0, 2.0), false, Unsent::Carry).expect("fine lanes");
    assert_eq!(outbox.held(), 3);
    lend(&mut outbox, &[&[1.0; 7]], 1.0);
    assert_eq!(sent(&mut outbox)[0].1, [2.0; 3], "the held one joined it");
    let bad: [&[f32]; 2] = [&[1.0; 5], &[1.0, f32::NAN]];
    let before = outbox.counts.updates;
    let refused = outbox.lend(shape, &bad, of_one(1, 1, 1.0, 2.0), true, Unsent::Carry);
    assert_eq!(refused, Err(PushError::NonFinite { index: 6 }));
    let short = outbox.lend(shape, &bad[..1], of_one(1, 1, 1.0, 2.0), true, Unsent::Carry);
    assert_eq!(short, Err(PushError::WrongSize { have: 5, need: 7 }));
    assert_eq!((outbox.counts.updates, sent(&mut outbox).len()), (before, 0));
}
