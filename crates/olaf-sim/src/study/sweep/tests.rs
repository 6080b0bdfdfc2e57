//! Against brute force: every phase, every order of ranks.

use super::run::{Counts, Delivered, Runner};
use super::value::{Ratio, Values};
use super::{Kind, Question, Sender, Sweep};
use crate::study::replay::{Head, Parameters, replay};
use olaf_engine::BitsPerSecond;
use olaf_engine::switch::native::QueueKind;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fmt::Write;

const KINDS: [Kind; 6] =
    [Kind::FairPeak, Kind::FairAge, Kind::WorstPeak, Kind::Starvation, Kind::Loss, Kind::NoAverage];

/// Small questions; clusters may have several senders, or none.
fn questions() -> impl Strategy<Value = Question> {
    let senders = prop::collection::vec((0..4_usize, 1..=4_u64), 1..=4);
    (senders, 1..=3_u64, 1..=4_usize, 4..16_u64, 0..KINDS.len()).prop_map(
        |(senders, service, slots, horizon, kind)| Question {
            service,
            slots,
            horizon,
            senders: senders
                .into_iter()
                .map(|(cluster, interval)| Sender { cluster, interval })
                .collect(),
            alike: vec![0; 4],
            kind: KINDS[kind],
            about: vec![0, 1, 2],
            hyperperiods: 0,
        },
    )
}

/// All phases, in all orders of ranks that they can have.
fn every_run(question: &Question, mut run: impl FnMut(&[u64], &[u8])) {
    let senders = question.senders.len();
    let least = super::classes::least_phase(question.kind);
    let mut phases = vec![least; senders];
    loop {
        let order: Vec<u8> = (0..u8::try_from(senders).unwrap_or(u8::MAX)).collect();
        permute(order, 0, &mut |order| {
            if can_be(question, &phases, order) {
                run(&phases, order);
            }
        });
        let intervals = question.senders.iter().map(|sender| sender.interval);
        let Some(at) = phases.iter().zip(intervals).position(|(phase, most)| *phase < most) else {
            return;
        };
        phases[at] += 1;
        phases[..at].fill(least);
    }
}

/// What is hardly below its interval is before what is 0, within the tick.
fn can_be(question: &Question, phases: &[u64], order: &[u8]) -> bool {
    let mut of_order = order.iter().map(|sender| usize::from(*sender));
    let is_end = |sender: usize| phases[sender] == question.senders[sender].interval;
    !of_order.clone().skip_while(|sender| phases[*sender] != 0).any(is_end)
        || of_order.all(|sender| phases[sender] != 0)
}

fn permute(mut order: Vec<u8>, from: usize, with: &mut impl FnMut(&[u8])) {
    if from == order.len() {
        return with(&order);
    }
    for other in from..order.len() {
        order.swap(from, other);
        permute(order.clone(), from + 1, with);
    }
}

/// The visible part of a run if time is in ticks.
fn seen(runner: &Runner, horizon: u64) -> (Vec<(usize, u64, u64)>, u64, u64) {
    let deliveries = runner.deliveries.iter().filter(|delivered| delivered.end <= horizon);
    let rows = deliveries.map(|delivered| (delivered.cluster, delivered.end, delivered.newest));
    (rows.collect(), runner.counts.sent, runner.counts.dropped)
}

fn finish(sweep: &mut Sweep) {
    while !sweep.step(1000).finished {}
}

proptest! {
    #![proptest_config(ProptestConfig { cases: olaf_samples::cases(48), ..ProptestConfig::default() })]

    #[test]
    fn every_run_that_can_be_is_seen(mut question in questions()) {
        // No cluster like another: every run is its own. Equal senders of one cluster change
        // places all the same, which nobody can see.
        question.alike = vec![0, 1, 2, 3];
        let mut expected = BTreeSet::new();
        let mut runner = Runner::new(&question);
        every_run(&question, |phases, order| {
            runner.run(phases, order, false);
            expected.insert(seen(&runner, question.horizon));
        });
        let mut sweep = Sweep::new(&question, 0, 1).expect("a question");
        let mut found = BTreeSet::new();
        while !sweep.progress().finished {
            sweep.step(1);
            found.insert(seen(&sweep.runner, question.horizon));
        }
        prop_assert!(found == expected, "{} runs seen, {} are there", found.len(), expected.len());
        prop_assert_eq!(u128::from(sweep.progress().done), sweep.progress().classes);
    }

    #[test]
    fn the_largest_value_is_found(mut question in questions(), chunks in 1..4_u64) {
        question.hyperperiods = 12;
        let mut runner = Runner::new(&question);
        let mut values = Values::new(&question);
        let (mut largest, mut for_ever, mut repeats) = (None, None, true);
        every_run(&question, |phases, order| {
            runner.run(phases, order, true);
            for last_counts in [true, !runner.may_miss_last] {
                let value = values.until_horizon(&runner.deliveries, runner.counts, last_counts);
                largest = largest.max(value);
            }
            match &runner.cycle {
                Some(cycle) => for_ever = for_ever.max(values.for_ever(&runner.deliveries, cycle)),
                None => repeats = false,
            }
        });
        let (mut found, mut found_for_ever, mut found_repeats) = (None, None, true);
        let mut done = 0;
        for chunk in 0..chunks {
            let mut sweep = Sweep::new(&question, chunk, chunks).expect("a question");
            finish(&mut sweep);
            let progress = sweep.progress();
            done += u128::from(progress.done);
            found = found.max(progress.largest.as_ref().map(|found| found.value));
            found_for_ever =
                found_for_ever.max(progress.for_ever.as_ref().map(|found| found.value));
            found_repeats &= progress.repeats;
        }
        prop_assert_eq!(done, Sweep::new(&question, 0, 1).expect("a question").progress().classes);
        prop_assert_eq!(found, largest);
        prop_assert_eq!(found_repeats, repeats);
        if repeats {
            prop_assert_eq!(found_for_ever, for_ever);
        }
    }

    #[test]
    fn a_run_is_what_replay_says((question, run) in questions().prop_flat_map(one_run)) {
        let (phases, order) = run;
        let mut runner = Runner::new(&question);
        // Twice: the second begins where the first has left the engine.
        runner.run(&phases, &order, false);
        runner.run(&phases, &order, false);
        prop_assert_eq!(seen(&runner, question.horizon), replayed(&question, &phases, &order));
    }

    #[test]
    fn what_repeats_itself_does((mut question, run) in questions().prop_flat_map(one_run)) {
        question.hyperperiods = 12;
        let (phases, order) = run;
        let mut runner = Runner::new(&question);
        runner.run(&phases, &order, true);
        let Some(cycle) = runner.cycle else { return Ok(()) };
        let mut values = KINDS.map(|kind| Values::new(&Question { kind, ..question.clone() }));
        let for_ever = values.each_mut().map(|v| v.for_ever(&runner.deliveries, &cycle));
        // Long after, where only the cycle counts, by adding up tick after tick.
        let after = cycle.from + 4 * cycle.period;
        question.horizon = after + cycle.period - 1;
        let mut long = Runner::new(&question);
        long.run(&phases, &order, false);
        let expected = KINDS.map(|kind| long_run(kind, &question, &long.deliveries, after));
        for (kind, (found, expected)) in KINDS.iter().zip(for_ever.iter().zip(&expected)) {
            if *kind != Kind::Loss {
                prop_assert_eq!(found, expected, "{:?}", kind);
            }
        }
        question.horizon = after - 1;
        let mut shorter = Runner::new(&question);
        shorter.run(&phases, &order, false);
        prop_assert_eq!(cycle.counts, Counts {
            sent: long.counts.sent - shorter.counts.sent,
            dropped: long.counts.dropped - shorter.counts.dropped,
        });
    }
}

/// One run of a question, any.
fn one_run(question: Question) -> impl Strategy<Value = (Question, (Vec<u64>, Vec<u8>))> {
    let phases: Vec<_> = question.senders.iter().map(|sender| 0..=sender.interval).collect();
    let order: Vec<u8> = (0..u8::try_from(phases.len()).unwrap_or(u8::MAX)).collect();
    (Just(question), (phases, Just(order).prop_shuffle()))
}

/// The same through `olaf replay`.
fn replayed(
    question: &Question,
    phases: &[u64],
    order: &[u8],
) -> (Vec<(usize, u64, u64)>, u64, u64) {
    const TICK: u64 = 1000;
    let mut trace = String::from("t_ns,cluster,worker,seq,reward,bytes\n");
    for tick in 0..=question.horizon {
        for (rank, sender) in order.iter().enumerate() {
            let Sender { cluster, interval } = question.senders[usize::from(*sender)];
            let phase = phases[usize::from(*sender)];
            if tick >= phase && (tick - phase).is_multiple_of(interval) {
                let at = tick * TICK + rank as u64;
                let size = question.service;
                writeln!(trace, "{at},{cluster},{sender},{tick},0,{size}").expect("a string");
            }
        }
    }
    let parameters = Parameters {
        engine: QueueKind::Merging,
        slots: question.slots,
        rate: BitsPerSecond::new(8_000_000).expect("a rate"),
        gate: None,
        head: Head::Locked,
        full: true,
    };
    let replay = replay(trace.as_bytes(), &parameters).expect("a trace");
    let json = serde_json::to_value(&replay).expect("plain data");
    let rows = |key: &str| json[key].as_array().expect("a list").clone();
    let cluster = |row: &serde_json::Value| {
        let name = row["cluster"].to_string();
        name.trim_matches('"').parse::<usize>().expect("a number")
    };
    let tick = |row: &serde_json::Value, key: &str| row[key].as_u64().expect("a time") / TICK;
    let deliveries = rows("departures")
        .iter()
        .map(|row| (cluster(row), tick(row, "end_ns"), tick(row, "newest_ns")))
        .filter(|(_, end, _)| *end <= question.horizon)
        .collect();
    let fates: Vec<_> = rows("fates").into_iter().filter(|row| cluster(row) < 3).collect();
    let dropped = fates.iter().filter(|row| row["fate"] == "dropped").count();
    (deliveries, fates.len() as u64, dropped as u64)
}

/// The result of a long run from `after` to its horizon; a largest value counts from the beginning.
fn long_run(kind: Kind, question: &Question, all: &[Delivered], after: u64) -> Option<Ratio> {
    let end = question.horizon + 1;
    let ratio = |numerator: u64, denominator: u64| Ratio {
        numerator: numerator.into(),
        denominator: denominator.into(),
    };
    let of = |cluster: usize| all.iter().filter(move |delivered| delivered.cluster == cluster);
    let mute = |cluster: usize| of(cluster).all(|delivered| delivered.end < after);
    let peaks = |cluster: usize| {
        of(cluster).zip(of(cluster).skip(1)).map(|(a, b)| (b.end, b.end - a.newest))
    };
    let age = |cluster: usize, at: u64| {
        Some(at - of(cluster).take_while(|delivered| delivered.end <= at).last()?.newest)
    };
    let widest = |means: Vec<Ratio>| {
        let (least, most) = (*means.iter().min()?, *means.iter().max()?);
        (means.len() > 1).then_some(Ratio {
            numerator: most.numerator * least.denominator - least.numerator * most.denominator,
            denominator: most.denominator * least.denominator,
        })
    };
    let heard: Vec<usize> = question.about.iter().copied().filter(|c| !mute(*c)).collect();
    match kind {
        Kind::FairPeak => widest(
            heard
                .iter()
                .map(|cluster| {
                    let late: Vec<u64> = peaks(*cluster)
                        .filter(|(at, _)| *at >= after)
                        .map(|(_, age)| age)
                        .collect();
                    ratio(late.iter().sum(), late.len() as u64)
                })
                .collect(),
        ),
        Kind::FairAge => widest(
            heard
                .iter()
                .map(|cluster| {
                    // A tick's mean age is its first one and a half tick.
                    let twice = (after..end).map(|at| 2 * age(*cluster, at).unwrap_or(0) + 1).sum();
                    ratio(twice, 2 * (end - after))
                })
                .collect(),
        ),
        Kind::WorstPeak => {
            let endless = |c: &&usize| mute(**c) && of(**c).next().is_some();
            if question.about.iter().any(|cluster| endless(&cluster)) {
                return Some(ratio(1, 0));
            }
            let ages = heard.iter().flat_map(|cluster| peaks(*cluster)).map(|(_, age)| age);
            ages.max().map(|age| ratio(age, 1))
        }
        Kind::Starvation => {
            if heard.len() < question.about.len() {
                return Some(ratio(1, 0));
            }
            let gaps = |cluster: &usize| {
                let ends: Vec<u64> =
                    core::iter::once(0).chain(of(*cluster).map(|d| d.end)).collect();
                ends.windows(2).map(|pair| pair[1] - pair[0]).max()
            };
            heard.iter().filter_map(gaps).max().map(|gap| ratio(gap, 1))
        }
        Kind::NoAverage => Some(ratio((question.about.len() - heard.len()) as u64, 1)),
        Kind::Loss => None,
    }
}
