//! What members and strangers say of others, and of themselves.

use super::*;

/// The count of operations that a generation begins with, after a join with the count of its sender. The
/// generation before had two workers; worker 1 joins from `peer` as `session`.
fn operations_after(trace: &mut Trace, peer: u32, session: u32, operations: u32) -> u32 {
    let leave = Leave { generation: 77, job: JOB, session: Session(2) };
    trace.says(1, Control::Leave(leave));
    trace.sent();
    let known = Join { generation: 77, operations: 3, ..Trace::join(JOB, 0, 2) };
    trace.says(0, Control::Join(known));
    let session = Session(session);
    let claim = Join { generation: 77, operations, session, ..Trace::join(JOB, 1, 2) };
    trace.says(peer, Control::Join(claim));
    let welcomed = |(outcome, of): (Outcome, Admission)| {
        (outcome == Outcome::Success && of.session == Session(1)).then_some(of.operations)
    };
    let sent = trace.sent();
    let told = sent.iter().find_map(|(_, out)| welcomed(admission_of(out)?));
    told.expect("a generation begins")
}

#[test]
fn only_a_member_says_how_many_operations_the_last_generation_had() {
    let claim = |peer, session, operations| {
        operations_after(&mut Trace::with(2), peer, session, operations)
    };
    assert_eq!(claim(1, 2, 5), 5, "a worker that was in");
    assert_eq!(claim(66, 2, 5), 5, "its address changed");
    assert_eq!(claim(66, 50, 5), 3, "a newcomer");
    assert_eq!(claim(1, 2, 1_000_000_000), 1024, "no packets of these came");
    assert_eq!(claim(1, 2, 2_000_000_000), 3, "it is behind where the generation began");
    let mut trace = Trace::with(2);
    for index in 0..3 {
        let seg = Seg { last: true, ..trace.seg(index) };
        trace.packet(PortId::DOWNLINK, 0, seg, &[1.0]);
        trace.packet(PortId::DOWNLINK, 1, seg, &[1.0]);
        trace.packet(PortId::DOWNLINK, 1, seg, &[1.0]);
    }
    assert_eq!(operations_after(&mut trace, 1, 2, 1_000_000_000), 1024 + 3);
}

/// The count with which the next generation of two workers begins. `counts`: the last generation and the count of each.
fn count_after(trace: &mut Trace, counts: [(u8, u32); 2]) -> u32 {
    let number =
        trace.switch.jobs.get(&JOB).and_then(|job| job.current.as_ref()).map(|of| of.number);
    for (worker, (generation, operations)) in (0..).zip(counts) {
        let join = Join { generation, operations, ..Trace::join(JOB, worker, 2) };
        trace.says(worker, Control::Join(join));
    }
    trace.sent();
    let current = trace.switch.jobs[&JOB].current.as_ref().expect("a generation begins");
    assert_ne!(Some(current.number), number, "the next one");
    current.operations
}

#[test]
fn a_worker_that_never_heard_of_a_generation_is_behind_by_what_began_in_it() {
    let mut trace = Trace::with(2);
    assert_eq!(count_after(&mut trace, [(77, 5), (77, 4)]), 5);
    // Worker 1 is still where it was two generations before.
    assert_eq!(count_after(&mut trace, [(78, 9), (77, 4)]), 9);
    assert_eq!(count_after(&mut trace, [(79, 9), (77, 4)]), 9);
}

#[test]
fn a_switch_that_restarts_believes_those_near_the_worker_in_the_middle() {
    let begins_with = |counts: &[u32]| {
        let mut trace = Trace::new();
        for (worker, operations) in (0..).zip(counts) {
            let join = Trace::join(JOB, worker, counts.len() as u32);
            trace.says(worker, Control::Join(Join { operations: *operations, ..join }));
        }
        trace.switch.jobs[&JOB].current.as_ref().expect("a generation begins").operations
    };
    assert_eq!(begins_with(&[57, 55]), 57);
    assert_eq!(begins_with(&[57, ANY, ANY]), 57, "newcomers");
    assert_eq!(begins_with(&[ANY, ANY]), 0);
    assert_eq!(begins_with(&[57, 55, 1_000_000]), 57);
}

#[test]
fn a_session_from_another_address_moves_no_member_and_ends_nothing() {
    let mut trace = Trace::with(2);
    let forged = Join { generation: 77, operations: 3, ..Trace::join(JOB, 1, 2) };
    trace.says(66, Control::Join(forged));
    let answers: Vec<_> = trace.sent();
    let outcomes: Vec<_> =
        answers.iter().filter_map(|(to, out)| Some((to[0], admission_of(out)?.0))).collect();
    assert_eq!(outcomes, [(66, Outcome::Waiting)]);
    // Worker 1 is where it was.
    trace.sends(0, 0, 1.0);
    trace.sends(1, 0, 2.0);
    assert_eq!(trace.sent(), [(vec![0, 1], Out::Data(trace.seg(0), vec![3.0, 2.0]))]);
}

/// Peer 9 says that it is a switch with `behind` workers. Workers 0 and 1 are here themselves.
fn with_a_switch(behind: u32) -> Trace {
    let mut trace = Trace::new();
    trace.joins(JOB, 0, 2 + behind);
    trace.joins(JOB, 1, 2 + behind);
    let join = Join { contributors: behind, ..Trace::join(JOB, 9, 2 + behind) };
    trace.says(9, Control::Join(Join { sender: Sender::Switch, rank: ANY, ..join }));
    trace.sent();
    trace
}

#[test]
fn a_switch_names_workers_behind_it_alone() {
    let is_named = |behind, culprit| {
        let mut trace = with_a_switch(behind);
        let halt = Halt { generation: 77, reason: Reason::Dead, culprit, index: 0, calls: 0 };
        let verdict = trace.says(9, Control::Halt(halt));
        let halted = |culprit| {
            let halt = trace.halt(Reason::Dead, culprit, 0);
            move |(_, out): &(Vec<u32>, Out)| *out == halt
        };
        let (named, nobody) = (halted(culprit), halted(ANY));
        let sent = trace.sent();
        let is_named = sent.iter().any(named);
        assert!(is_named || sent.iter().any(nobody), "the generation ends: {sent:?}");
        let refused = trace.switch.statistics(trace.now).refused;
        assert_eq!(refused.contains_key("wrong_sender"), verdict != Verdict::Absorb);
        assert_eq!(verdict == Verdict::Absorb, is_named);
        is_named
    };
    assert!(is_named(2, 3), "it has two workers");
    assert!(!is_named(2, 0), "worker 0 is here itself");
    assert!(is_named(1, 2) && !is_named(1, 1), "the same with one worker");
}

#[test]
fn one_address_keeps_no_place_from_a_new_job() {
    let mut trace = Trace::set_up(Config { jobs: 3, ..Config::default() });
    let join = |trace: &mut Trace, job: u32, peer: u32, workers| {
        trace.says(peer, Control::Join(Trace::join(JobId(job), peer, workers)))
    };
    let full = Verdict::Drop(DropReason::SumJoinRefused(Outcome::Full.of_join()));
    for job in 100..103 {
        assert_eq!(
            trace.says(66, Control::Join(Join { rank: 0, ..Trace::join(JobId(job), 66, 2) })),
            Verdict::Absorb
        );
    }
    assert_eq!(join(&mut trace, 1, 0, 2), Verdict::Absorb);
    for job in 100..103 {
        trace.says(66, Control::Join(Join { rank: 0, ..Trace::join(JobId(job), 66, 2) }));
    }
    assert!(trace.switch.jobs.contains_key(&JOB), "the stranger has more jobs than it");
    assert_eq!(join(&mut trace, 1, 1, 2), Verdict::Absorb);
    assert!(trace.switch.jobs[&JOB].is_open());
    // One that has begun gives way to nobody.
    assert_eq!(join(&mut trace, 2, 2, 1), Verdict::Absorb);
    assert_eq!(join(&mut trace, 3, 3, 1), Verdict::Absorb);
    assert_eq!(join(&mut trace, 4, 4, 1), full);
    assert_eq!(trace.switch.jobs.len(), 3);
}
