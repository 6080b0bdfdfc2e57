//! Any steps: each queue and its slow reference model do the same, and every contribution has one fate.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use olaf_engine::switch::native::QueueKind;
use olaf_engine::{
    Arrival, ClusterId, Contribution, Discipline, Entry, Flow, JobId, Outcome, WorkerId,
    queue::fifo, queue::freshest, queue::merging,
};

#[derive(Arbitrary, Debug)]
enum Step {
    Arrive {
        cluster: u8,
        worker: u8,
        contributors: u8,
        weight: u8,
        reward: i8,
        odd: u8,
        lanes: [i8; 3],
    },
    Begin,
    End,
}

fn arrive(step: &Step, queue: &mut dyn Discipline) -> Option<(u32, Outcome)> {
    let Step::Arrive { cluster, worker, contributors, weight, reward, odd, lanes } = step else {
        return None;
    };
    let mut lanes: Vec<f32> = lanes.iter().map(|lane| f32::from(*lane)).collect();
    // Now and then a lane, a size or a reward that cannot be.
    match odd % 32 {
        1 => lanes[2] = f32::NAN,
        2 => lanes[1] = f32::MAX,
        3 => lanes[0] = f32::NEG_INFINITY,
        4 => lanes.truncate(2),
        _ => {}
    }
    let reward = if *odd == 200 { f64::NAN } else { f64::from(*reward) };
    let contributors = if *odd == 201 { u32::MAX } else { u32::from(contributors % 4).max(1) };
    let weight = if *odd == 202 { f64::MAX } else { f64::from(weight % 8) + 1.0 };
    let bytes: Vec<u8> = lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect();
    let (cluster, segment) = (ClusterId(u32::from(cluster % 4)), u32::from(cluster >> 7));
    let contribution = Contribution {
        flow: Flow { job: JobId(0), cluster, segment },
        worker: WorkerId(u32::from(worker % 4)),
        sequence: 0,
        segments: 2,
        contributors,
        weight,
        reward,
        generated_ns: (u64::from(*odd), u64::from(*odd) + 1),
        versions: (0, u32::from(*odd)),
        hops: *odd,
        bytes: u32::from(*odd) + 1,
    };
    let outcome = queue.arrive(&Arrival { contribution, lanes: &bytes });
    Some((contributors, outcome))
}

fn same(a: &Entry, b: &Entry) -> bool {
    let (reward, expected) = (a.contribution.reward, b.contribution.reward);
    let near = (reward - expected).abs() <= 1e-9 * expected.abs().max(1.0);
    let contribution = Contribution { reward: expected, ..a.contribution };
    near && format!("{:?}", Entry { contribution, ..a.clone() }) == format!("{b:?}")
}

fuzz_target!(|input: (u8, u8, Option<u8>, Vec<Step>)| {
    let (kind, slots, gate, steps) = input;
    let slots = usize::from(slots % 6) + 1;
    // Off the grid of mean rewards, where the last bit would decide.
    let gate = gate.map(|gate| f64::from(gate % 16) + 0.003_71);
    let kind = QueueKind::ALL[usize::from(kind) % QueueKind::ALL.len()].1;
    let mut queue = kind.queue(slots, gate);
    let mut reference: Box<dyn Discipline> = match kind {
        QueueKind::Merging => Box::new(merging::reference::Reference::new(slots, gate)),
        QueueKind::Fifo => Box::new(fifo::reference::Reference::new(slots)),
        QueueKind::Freshest => Box::new(freshest::reference::Reference::new(slots, gate)),
    };
    let (mut received, mut settled) = (0u64, 0u64);
    for step in &steps {
        match step {
            Step::Begin => {
                let begun = queue.begin_departure().map(|entry| entry.id);
                assert_eq!(begun, reference.begin_departure().map(|entry| entry.id));
            }
            Step::End => {
                settled +=
                    queue.departing().map_or(0, |entry| u64::from(entry.contribution.contributors));
                assert_eq!(queue.end_departure(), reference.end_departure());
            }
            Step::Arrive { .. } => {
                let (contributors, outcome) = arrive(step, &mut *queue).expect("it arrives");
                assert_eq!(
                    Some((contributors, outcome)),
                    arrive(step, &mut *reference),
                    "{step:?}"
                );
                received += u64::from(contributors);
                settled += match outcome {
                    Outcome::Appended(_) | Outcome::Merged(_) => 0,
                    Outcome::Replaced { displaced, .. } => u64::from(displaced),
                    Outcome::Evicted { dropped, .. } => u64::from(dropped),
                    _ => u64::from(contributors),
                };
            }
        }
        let (entries, others) = (queue.entries(), reference.entries());
        assert_eq!(entries.len(), others.len());
        assert!(entries.iter().zip(&others).all(|(a, b)| same(a, b)), "{entries:?}\n{others:?}");
        let waiting: u64 =
            entries.iter().map(|entry| u64::from(entry.contribution.contributors)).sum();
        assert_eq!(received, settled + waiting);
    }
});
