//! Random loss, repetition, reordering and restarts: no message is taken twice or changed, and
//! messages flow again once the network is well.

use super::*;
use alloc::collections::BTreeSet;
use proptest::prelude::*;

/// What happens next.
#[derive(Clone, Copy, Debug)]
enum Step {
    SayUp,
    SayDown,
    /// The datagram at this place on its way arrives.
    Deliver(u16),
    Repeat(u16),
    Lose(u16),
    Wait(u16),
    RestartSwitch,
    RestartWorker,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => Just(Step::SayUp),
        2 => Just(Step::SayDown),
        8 => any::<u16>().prop_map(Step::Deliver),
        1 => any::<u16>().prop_map(Step::Repeat),
        1 => any::<u16>().prop_map(Step::Lose),
        3 => (1..1500_u16).prop_map(Step::Wait),
        1 => prop_oneof![6 => Just(Step::Wait(1)), 1 => Just(Step::RestartSwitch), 1 => Just(Step::RestartWorker)],
    ];
    proptest::collection::vec(step, 1..150)
}

proptest! {
    #[test]
    fn every_message_comes_at_most_once_and_the_last_one_comes(steps in steps()) {
        let mut pair = Pair::new();
        let mut way: Vec<Sent> = Vec::new();
        let mut said = BTreeSet::new();
        let mut number = 0_u32;
        for step in steps {
            number += 1;
            let message = [&[1][..], &number.to_be_bytes(), &[7; 90]].concat();
            match step {
                Step::SayUp => {
                    pair.say_up(&message);
                    said.insert(message);
                }
                Step::SayDown => {
                    pair.say_down(&message);
                    said.insert(message);
                }
                Step::Deliver(at) if !way.is_empty() => {
                    let sent = way.remove(usize::from(at) % way.len());
                    pair.deliver(&sent);
                }
                Step::Repeat(at) if !pair.seen.is_empty() => {
                    let sent = pair.seen[usize::from(at) % pair.seen.len()].clone();
                    pair.deliver(&sent);
                }
                Step::Lose(at) if !way.is_empty() => drop(way.remove(usize::from(at) % way.len())),
                Step::Wait(ms) => pair.wait(Duration::from_millis(ms.into())),
                Step::RestartSwitch => pair.restart_switch(),
                Step::RestartWorker => pair.restart_worker(),
                Step::Deliver(_) | Step::Repeat(_) | Step::Lose(_) => {}
            }
            way.extend(pair.drain());
            for engine in [&pair.worker, &pair.switch] {
                let came: Vec<_> = engine.came.iter().map(|(_, bytes)| bytes).collect();
                let once: BTreeSet<_> = came.iter().collect();
                prop_assert_eq!(came.len(), once.len(), "a message came twice to one life");
                prop_assert!(came.iter().all(|bytes| said.contains(*bytes)));
                prop_assert!(adds_up(engine.counters().unwrap()));
            }
        }
        // The network is well: a message of each direction arrives within a few seconds.
        for _ in 0..6 {
            pair.wait(Duration::from_millis(700));
            pair.say_up(&[&[1][..], &[9; 99]].concat());
            pair.settle();
        }
        let before = (pair.at_switch().len(), pair.at_worker().len());
        pair.say_up(b"\x01the last up");
        pair.settle();
        pair.say_down(b"\x01the last down");
        pair.settle();
        prop_assert_eq!(pair.at_switch().len(), before.0 + 1);
        prop_assert_eq!(pair.at_worker().len(), before.1 + 1);
    }
}
