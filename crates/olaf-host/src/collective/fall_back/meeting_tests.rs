//! Workers that meet agree on the same results, whatever each of them has.

use super::*;

type Found = Result<Agreement, NoWay>;

/// The result of an operation; some ended with an error.
fn outcome(operation: u64) -> Outcome {
    let bytes = 4 * operation as usize + 2;
    let kind = Kind { lane_type: LaneType::F16, reduction: Reduction::Mean, bytes };
    let sum = Sum { contributors: 3, expected: 4, not_finite: operation.is_multiple_of(2) };
    if operation % 5 == 4 {
        return Outcome { kind, end: End::Partial(3, 4), lanes: Vec::new() };
    }
    Outcome { kind, end: End::Well(sum), lanes: vec![operation as u8; words(bytes)] }
}

/// A worker that has begun `begun` operations. Those in `open` have not ended. It has not kept the results in `lost`.
fn worker(rank: u32, begun: u64, open: &[u64], lost: &[u64]) -> (Standing, Kept) {
    let mut kept = Kept::default();
    for operation in (0..begun).filter(|at| !open.contains(at) && !lost.contains(at)) {
        kept.add(operation, outcome(operation), || None);
    }
    (Standing { rank, run: 7, begun, open: open.iter().copied().collect() }, kept)
}

/// What the second switch makes of the workers' operations. All must have begun the same.
fn summed(operations: &[Operation]) -> Vec<u8> {
    let alike = |a: &Operation, b: &Operation| {
        let bytes = |of: &Operation| of.buffer.bytes().len();
        (a.lane_type, a.reduction, bytes(a)) == (b.lane_type, b.reduction, bytes(b))
    };
    assert!(operations.iter().all(|one| alike(one, &operations[0])), "{operations:?}");
    match operations[0].reduction {
        Reduction::Broadcast { root } => operations[root as usize].buffer.bytes().to_vec(),
        Reduction::Min => {
            let all: Vec<_> = operations.iter().map(|one| numbers(one.buffer.bytes())).collect();
            let smallest = |at: usize| all.iter().map(|numbers| numbers[at]).min().expect("some");
            integers(&(0..all[0].len()).map(smallest).collect::<Vec<_>>())
        }
        other => panic!("a meeting has no {other:?}"),
    }
}

/// What each worker finds. Each third operation is cut by a deadline, and comes again.
fn meet(workers: Vec<(Standing, Kept)>) -> Vec<Found> {
    let mut meetings: Vec<(Meeting, Kept)> =
        workers.into_iter().map(|(mine, kept)| (Meeting::new(mine), kept)).collect();
    for turn in 1.. {
        let operations: Vec<_> =
            meetings.iter().map(|(meeting, kept)| meeting.operation(kept)).collect();
        let result = summed(&operations);
        if turn % 3 == 0 {
            continue;
        }
        let found: Vec<_> =
            meetings.iter_mut().map(|(meeting, kept)| meeting.take(&result, kept)).collect();
        let is_over = |one: &Result<Option<Agreement>, NoWay>| !matches!(one, Ok(None));
        if found.iter().any(is_over) {
            assert!(found.iter().all(is_over), "all end at the same step");
            return found
                .into_iter()
                .map(|one| one.map(|found| found.expect("it is over")))
                .collect();
        }
    }
    unreachable!("each step ends")
}

struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn some(&mut self, of: core::ops::Range<u64>, percent: u64) -> Vec<u64> {
        of.filter(|_| self.below(100) < percent).collect()
    }
}

#[test]
fn every_worker_gets_what_it_lacks_and_begins_the_rest_again() {
    let (mut without, mut with) = (0, 0);
    for seed in 0..400 {
        let draws = &mut Draws(seed);
        let (count, done) = (2 + draws.below(4) as u32, draws.below(4));
        let workers: Vec<_> = (0..count)
            .map(|rank| {
                let begun = done + draws.below(6);
                // Operations need not end in their order.
                let open = draws.some(done..begun, 50);
                let mut lost = draws.some(0..done, 50);
                if draws.below(10) == 0 {
                    lost.extend(draws.some(0..begun, 30));
                }
                worker(rank, begun, &open, &lost)
            })
            .collect();
        let standings: Vec<Standing> = workers.iter().map(|(mine, _)| mine.clone()).collect();
        let somewhere = |at| standings.iter().any(|mine| mine.has_ended(at));
        let kept = |at| workers.iter().any(|(_, kept)| kept.of(at).is_some());
        let low = standings.iter().map(Standing::first_open).min().expect("some");
        let missing = (low..12).find(|at| somewhere(*at) && !kept(*at));
        let to_give = (low..12).filter(|at| kept(*at)).count() as u64;
        let found = meet(workers);
        if let Some(missing) = missing {
            without += 1;
            let all_alike = |one: &Found| matches!(one, Err(NoWay::NotKept(at)) if *at == missing);
            assert!(found.iter().all(all_alike), "seed {seed}: {found:?}");
            continue;
        }
        let given: u64 = found.iter().flatten().map(|found| found.given).sum();
        assert_eq!(given, to_give, "seed {seed}: each result is given once");
        for (mine, found) in standings.iter().zip(&found) {
            let Ok(Agreement { goes_on_at, taken, .. }) = found else {
                panic!("seed {seed}: {found:?}")
            };
            let lacked: Vec<u64> =
                (0..12).filter(|at| somewhere(*at) && !mine.has_ended(*at)).collect();
            assert!(taken.keys().copied().eq(lacked), "seed {seed}");
            assert!(taken.iter().all(|(at, its)| *its == outcome(*at)), "seed {seed}");
            assert!(!somewhere(*goes_on_at), "seed {seed}: it begins again");
            with += taken.len();
        }
    }
    assert!(without > 10 && with > 400, "{without}, {with}: this tests little");
}

#[test]
fn workers_of_different_generations_do_not_go_on() {
    let mut other = worker(1, 1, &[0], &[]);
    other.0.run = 8;
    let found = meet(vec![worker(0, 5, &[4], &[]), other]);
    assert!(found.iter().all(|one| matches!(one, Err(NoWay::Replaced))), "{found:?}");
}

#[test]
fn another_program_at_the_second_switch_is_found() {
    let (mine, kept) = worker(0, 1, &[], &[]);
    let mut meeting = Meeting::new(mine);
    let sum = summed(&[meeting.operation(&kept), smallest(&[5; 6])]);
    assert!(matches!(meeting.take(&sum, &kept), Err(NoWay::OtherProgram)));
}

#[test]
fn workers_that_are_absurdly_far_apart_do_not_go_on() {
    let far = Standing { rank: 1, run: 7, begun: 1 << 40, open: BTreeSet::new() };
    let found = meet(vec![worker(0, 0, &[], &[]), (far, Kept::default())]);
    let all_alike = |one: &Found| matches!(one, Err(NoWay::Apart(apart)) if *apart == 1 << 40);
    assert!(found.iter().all(all_alike), "{found:?}");
}

/// Another worker says what the result is. It may lie, and has no more than an error for it.
#[test]
fn a_description_that_cannot_be_is_an_error() {
    let good = description(3, &outcome(3));
    assert_eq!(described(3, &good), Ok((outcome(3).kind, outcome(3).end)));
    assert_eq!(described(2, &good), Err(NoWay::Unusable(2)), "of another operation");
    for (at, wrong) in [(0, -1), (1, 5), (1, -1), (2, 7), (4, 0), (4, -2), (4, 15), (5, -1), (8, 3)]
    {
        let mut said = good;
        said[at] = wrong;
        assert_eq!(described(3, &said), Err(NoWay::Unusable(3)), "{at}: {wrong}");
    }
    assert_eq!(described(3, &good[1..]), Err(NoWay::Unusable(3)));
    // More memory than there is.
    let (mine, kept) = worker(0, 1, &[0], &[]);
    let mut meeting = Meeting::new(mine);
    (meeting.givers, meeting.step) = (vec![(0, 1)], Step::Describe);
    let mut said = description(0, &outcome(0));
    said[4] = i64::MAX - 1;
    assert_eq!(meeting.take(&integers(&said), &kept).err(), Some(NoWay::Unusable(0)));
}
