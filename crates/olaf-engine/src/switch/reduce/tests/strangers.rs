//! What a stranger or a faulty member cannot do to the others.

use super::*;

/// Draws that look nothing like each other.
fn chance() -> Chance {
    let mut last = 40u32;
    alloc::boxed::Box::new(move || {
        last = last.wrapping_add(0x9e37_79b9);
        last
    })
}

impl Trace {
    /// The newest answer to a join.
    fn answer(&mut self) -> Welcome {
        let welcome = self.sent().into_iter().rev().find_map(|(_, out)| match out {
            Out::Welcome(welcome) => Some(welcome),
            _ => None,
        });
        welcome.expect("each join is answered")
    }

    /// Joins, and proves the address.
    fn joins_with_proof(&mut self, peer: u32, join: Join) -> Welcome {
        self.joins_as(peer, join);
        let nonce = self.answer().nonce;
        assert_ne!(nonce, 0);
        assert_eq!(self.joins_as(peer, Join { nonce, ..join }), Verdict::Absorb);
        self.answer()
    }

    fn says_closed(&mut self, rank: u32, culprit: u32) -> Verdict {
        let address = self.address(rank);
        let closed = Closed { address, operation: 0, culprit, reason: Reason::Dead, clash: None };
        let mut buf = [0; 64];
        let len = closed.emit(&mut buf);
        self.recv(rank, &buf[..len])
    }
}

#[test]
fn a_seat_stays_at_its_address_while_that_is_heard() {
    let silence = CONTESTED;
    let mut trace = Trace::with(2, Config::default());
    let same = join_of(1, 1, 2, 2);
    assert_eq!(trace.joins_as(7, same), Verdict::Absorb);
    assert_eq!(trace.answer().code, WelcomeCode::Waiting);
    assert_eq!(trace.asks(1, 0, 0, 0), Verdict::Absorb, "the member is where it was");
    trace.wait(silence - Duration::from_millis(100));
    trace.joins_as(7, same);
    assert_eq!(trace.answer().code, WelcomeCode::Waiting);
    trace.wait(Duration::from_millis(100));
    trace.joins_as(7, same);
    assert_eq!(trace.answer().code, WelcomeCode::Welcome, "the old address is silent");
    assert_eq!(dropped(trace.asks(1, 0, 0, 0)), "wrong_sender");
}

#[test]
fn a_place_in_the_lobby_stays_at_its_address_while_that_is_heard() {
    let silence = CONTESTED;
    let mut trace = Trace::new(Config::default());
    trace.joins(0, 2);
    assert_eq!(trace.joins_as(7, join_of(1, 0, 2, 1)), Verdict::Absorb);
    trace.joins(1, 2);
    let peers = |trace: &Trace| -> Vec<u32> {
        let current = trace.switch.jobs[&JOB].current.as_ref().expect("all are here");
        current.members.iter().map(|member| member.peer.0).collect()
    };
    assert_eq!(peers(&trace), [0, 1]);
    // The same once the generation has ended: the next one has a place for the session.
    trace.generation = trace.answer().address.generation;
    trace.leaves(1, 0);
    trace.joins_as(7, join_of(1, 0, 2, 1));
    trace.joins(0, 2);
    trace.joins(1, 2);
    assert_eq!(peers(&trace), [0, 1]);
    // A worker whose address changes gets in when the old one is silent.
    trace.generation = trace.answer().address.generation;
    trace.leaves(1, 0);
    trace.wait(silence);
    trace.joins_as(7, join_of(1, 0, 2, 1));
    trace.joins(1, 2);
    assert_eq!(peers(&trace), [7, 1]);
}

#[test]
fn the_name_of_a_lower_switch_above_says_nothing_of_another_jobs() {
    let mut trace = Trace::new(Config::default());
    trace.switch.set_upstream(PeerId(99), 9000);
    trace.switch.demand_proofs(chance());
    let mut sessions = Vec::new();
    for job in 1..=3 {
        trace.joins_with_proof(job, join_of(job, 0, 1, 5));
        let mut buf = [0; MAX_DATAGRAM];
        let up = trace.switch.poll_transmit(trace.now, PortId::UPLINK, &mut buf);
        let packet = ReducePacket::new_checked(&buf[..up.expect("a join goes up").len]);
        sessions.push(packet.expect("a good message").address().session.0);
    }
    // 100 is this life's number in `Trace::new`.
    assert!(sessions.iter().all(|session| session.abs_diff(100) > 1 << 16), "{sessions:?}");
    assert!(sessions.is_sorted_by(|a, b| a.abs_diff(*b) > 1 << 16), "{sessions:?}");
}

#[test]
fn the_number_of_a_generation_says_nothing_of_another_jobs() {
    let mut trace = Trace::new(Config::default());
    trace.switch.demand_proofs(chance());
    let victim = trace.joins_with_proof(1, join_of(1, 0, 1, 5)).address;
    let own = trace.joins_with_proof(2, join_of(2, 0, 1, 5)).address;
    let apart = own.generation.abs_diff(victim.generation);
    assert!(apart > 1 << 16 && victim.generation.abs_diff(100) > 1 << 16, "{own:?}, {victim:?}");
    // The numbers of one job go up, so that a worker knows a later generation.
    let leave = Leave { address: victim, operation: 0 };
    let mut buf = [0; 64];
    let len = leave.emit(&mut buf);
    trace.recv(1, &buf[..len]);
    let later = trace.joins_with_proof(1, join_of(1, 0, 1, 5)).address;
    let step = later.generation.wrapping_sub(victim.generation);
    assert!((2..=1 << 24).contains(&step), "{step}");
}

#[test]
fn an_old_operation_has_no_block_that_has_not_begun() {
    let mut trace = Trace::with(2, Config::default());
    for operation in 0..3 {
        for rank in 0..2 {
            trace.piece_of(rank, (operation, operation, 1), operation, 1.0);
        }
    }
    (0..2).for_each(|rank| {
        trace.asks(rank, 0, 0, 3);
    });
    trace.piece_of(0, (3, 3, 1), 3, 1.0);
    trace.sent();
    for first in [3, 4] {
        assert_eq!(dropped(trace.piece_of(1, (0, first, 1), first, 9.0)), "bad_field");
    }
    // An old piece that the network repeats is known.
    assert_eq!(trace.piece_of(1, (0, 0, 1), 0, 1.0), Verdict::Absorb);
    trace.piece_of(1, (3, 3, 1), 3, 2.0);
    trace.piece_of(0, (4, 4, 1), 4, 1.0);
    trace.piece_of(1, (4, 4, 1), 4, 3.0);
    let both = alloc::vec![0, 1];
    assert_eq!(trace.results(), [(both.clone(), 3, 3.0, 2), (both, 4, 4.0, 2)]);
    trace.adds_up();
}

#[test]
fn a_worker_ends_a_generation_in_its_own_name_alone() {
    for workers in [3, 0] {
        let mut trace = Trace::new(Config::default());
        for rank in [0, 1, 2, 0, 1] {
            trace.joins(rank, workers);
            trace.generation = trace.answer().address.generation;
        }
        let current = trace.switch.jobs[&JOB].current.as_ref().expect("all are in");
        trace.generation = current.number;
        assert_eq!(current.members.len(), 3);
        for culprit in [0, 1, 7, ALL] {
            assert_eq!(dropped(trace.says_closed(2, culprit)), "bad_field");
        }
        assert_eq!(trace.sent(), [], "{workers} workers");
        assert_eq!(trace.says_closed(2, 2), Verdict::Absorb);
        let closed = Out::Closed { operation: 0, culprit: 2, reason: Reason::Dead };
        assert_eq!(trace.sent(), [(alloc::vec![0, 1, 2], closed)]);
    }
}

#[test]
fn a_lower_switch_names_nobody_who_is_not_behind_it() {
    for (workers, named, told) in [(3, 2, ALL), (3, 1, 1), (3, ALL, ALL), (0, 1, 0), (0, ALL, ALL)]
    {
        let mut trace = Trace::new(Config::default());
        let switch = Join { contributors: 2, ..join_of(1, ALL, workers, 1) };
        let worker = join_of(1, 2, workers, 2);
        for (peer, join) in [(0, switch), (1, worker), (0, switch)] {
            trace.joins_as(peer, join);
        }
        let current = trace.switch.jobs[&JOB].current.as_ref().expect("all are in");
        trace.generation = current.number;
        let rank = current.rank_of(Session(1)).expect("the switch is in");
        assert_eq!((current.members.len(), rank), (2, 0));
        trace.sent();
        assert_eq!(trace.says_closed(0, named), Verdict::Absorb);
        let closed = Out::Closed { operation: 0, culprit: told, reason: Reason::Dead };
        assert_eq!(trace.sent(), [(alloc::vec![0, 1], closed)], "{workers} workers, {named}");
    }
}

#[test]
fn the_deadline_of_a_job_is_that_of_its_first_worker() {
    let hurried = |rank, workers, session| {
        let join = join_of(1, rank, workers, session);
        Join { deadline_us: 1, ..join }
    };
    let second = Duration::from_secs(1);
    // A fixed job: the others are refused.
    let mut trace = Trace::new(Config::default());
    trace.joins(0, 2);
    assert_eq!(dropped(trace.joins_as(7, hurried(1, 2, 50))), "refused");
    trace.joins(1, 2);
    trace.generation = trace.answer().address.generation;
    trace.piece(0, 0, 1, 1.0);
    trace.wait(second);
    assert_eq!(trace.sent(), [], "the block waits for worker 1");
    // Its next run may have another one.
    trace.wait(second);
    assert_eq!(trace.joins_as(7, hurried(0, 2, 50)), Verdict::Absorb);
    // An elastic job: the first one's counts, until all have gone.
    let mut trace = Trace::new(Config::default());
    trace.joins(0, 0);
    trace.joins_as(1, hurried(1, 0, 2));
    trace.joins(0, 0);
    trace.generation = trace.answer().address.generation;
    let deadline = |trace: &Trace| {
        let current = trace.switch.jobs[&JOB].current.as_ref().expect("it goes on");
        (current.members.len(), current.deadline)
    };
    assert_eq!(deadline(&trace), (2, None));
    (0..2).for_each(|rank| {
        trace.leaves(rank, 0);
    });
    trace.joins_as(7, hurried(0, 0, 60));
    assert_eq!(deadline(&trace), (1, Some(Duration::from_micros(1))));
}

#[test]
fn a_cookie_outlives_the_number_of_its_address() {
    let mut trace = Trace::new(Config::default());
    trace.switch.demand_proofs(chance());
    let join = join_of(1, 0, 1, 5);
    let mut buf = [0; 64];
    trace.switch.comes_from([7; 18]);
    trace.joins_as(7, join);
    let nonce = trace.answer().nonce;
    let len = Join { nonce, ..join }.emit(&mut buf);
    let mut driven = crate::seal::Sealed::clear(trace.switch);
    driven.comes_from([8; 18]);
    let verdict = driven.handle_packet(trace.now, Trace::source(7), &buf[..len]);
    assert_eq!(dropped(verdict), "not_proven", "another address has the number");
    driven.comes_from([7; 18]);
    let verdict = driven.handle_packet(trace.now, Trace::source(9), &buf[..len]);
    assert_eq!(verdict, Verdict::Absorb);
}

#[test]
fn jobs_that_never_began_give_way_to_those_of_an_address_with_fewer() {
    let mut trace = Trace::new(Config { jobs: 4, ..Config::default() });
    let half = |job| join_of(job, ALL, 2, job);
    for job in 100..104 {
        assert_eq!(trace.joins_as(50, half(job)), Verdict::Absorb);
    }
    assert_eq!(dropped(trace.joins_as(50, half(104))), "full", "it has all of them");
    // Another address gets a place, and keeps it.
    assert_eq!(trace.joins_as(0, join_of(1, 0, 2, 1)), Verdict::Absorb);
    for job in 100..108 {
        trace.joins_as(50, half(job));
    }
    let names = |trace: &Trace| trace.switch.jobs.keys().map(|id| id.0).collect::<Vec<_>>();
    assert_eq!(names(&trace), [1, 100, 101, 102], "the last one gave way");
    trace.joins_as(1, join_of(1, 1, 2, 2));
    assert!(trace.switch.jobs[&JOB].current.is_some());
    // So do others, and what has begun stays.
    for job in 2..5 {
        assert_eq!(trace.joins_as(job, join_of(job, 0, 1, 1)), Verdict::Absorb);
    }
    assert_eq!(names(&trace), [1, 2, 3, 4]);
    assert_eq!(dropped(trace.joins_as(5, half(5))), "full");
}
