//! What members and strangers say of others, and of themselves.

use super::*;

impl Trace {
    /// What worker 1 of two says to join, once worker 0 has sent a piece.
    fn claim(&self, newest: u16) -> Hello {
        Hello {
            job: JOB,
            term: self.term,
            source: 1,
            sources: 1,
            newest,
            session: Session(2),
            workers: 2,
            gradients: 4,
            timeout_ms: 0,
            window: 8,
            sent_at_us: 3,
            nonce: 0,
            program: 0,
        }
    }

    fn says_hello(&mut self, peer: u8, hello: &Hello) -> Verdict {
        self.recv(peer, |buf| hello.emit(buf))
    }

    /// How far worker 0 is behind, as its next welcome says.
    fn behind(&mut self, own: u16) -> u16 {
        self.worker_is_behind(0, own)
    }

    fn worker_is_behind(&mut self, worker: u32, own: u16) -> u16 {
        let sent = self.sent();
        let newest = sent.iter().find_map(|(to, out)| match out {
            Out::Welcome(welcome) if to[0] == worker && welcome.code == WelcomeCode::Welcome => {
                Some(welcome.newest)
            }
            _ => None,
        });
        newest.expect("a term begins").wrapping_sub(own)
    }
}

/// Worker 1 leaves, and `peer` joins as `session`. It claims to have begun `ahead` generations more than worker 0.
fn behind_after(peer: u8, session: u32, ahead: u16) -> u16 {
    let mut trace = Trace::with(2, 0);
    let (source, session_of_1) = (1, Session(2));
    let leave =
        Leave { job: JOB, term: trace.term, source, session: session_of_1, reason: Reason::Left };
    trace.recv(1, |buf| leave.emit(buf));
    trace.sent();
    let own = trace.first;
    let known = Hello { source: 0, session: Session(1), ..trace.claim(own) };
    trace.says_hello(0, &known);
    let claim = Hello { session: Session(session), ..trace.claim(own.wrapping_add(ahead)) };
    trace.says_hello(peer, &claim);
    trace.behind(own)
}

#[test]
fn only_a_worker_of_the_term_says_how_far_it_is_ahead() {
    assert_eq!(behind_after(1, 2, 5), 5, "a worker that was in");
    assert_eq!(behind_after(66, 2, 5), 5, "its address changed");
    assert_eq!(behind_after(66, 50, 5), 0, "a newcomer");
    assert_eq!(behind_after(1, 2, 30_000), 1024, "no pieces of these came");
}

#[test]
fn a_worker_that_never_heard_of_a_term_is_behind_by_what_began_in_it() {
    let mut trace = Trace::with(2, 0);
    let leaves = |trace: &mut Trace| {
        let (term, session) = (trace.term, Session(1));
        let leave = Leave { job: JOB, term, source: 0, session, reason: Reason::Left };
        trace.recv(0, |buf| leave.emit(buf));
        trace.sent();
    };
    let begun =
        |trace: &Trace, newest| Hello { source: 0, session: Session(1), ..trace.claim(newest) };
    leaves(&mut trace);
    // Worker 0 has begun three operations more than worker 1.
    let own = trace.first.wrapping_add(1);
    let of_first_term = trace.claim(own);
    let known = begun(&trace, own.wrapping_add(3));
    trace.says_hello(0, &known);
    trace.says_hello(1, &of_first_term);
    assert_eq!(trace.worker_is_behind(1, own), 3);
    // Worker 1 does not hear of the next term. Worker 0 begins two operations in it.
    let first = trace.first;
    leaves(&mut trace);
    let known = begun(&trace, first.wrapping_add(1));
    trace.says_hello(0, &known);
    trace.says_hello(1, &of_first_term);
    assert_eq!(trace.worker_is_behind(1, own), 5);
}

#[test]
fn a_switch_that_was_restarted_believes_a_little() {
    let claims = |ahead| {
        let mut trace = Trace::new();
        trace.term = 3;
        let known = Hello { source: 0, session: Session(1), ..trace.claim(500) };
        trace.says_hello(0, &known);
        let claim = trace.claim(500u16.wrapping_add(ahead));
        trace.says_hello(1, &claim);
        trace.behind(500)
    };
    assert_eq!([5, 30_000].map(claims), [5, 1024]);
}

#[test]
fn a_seat_does_not_move_while_its_address_is_heard() {
    let mut trace = Trace::with(2, 20);
    let moves = |trace: &mut Trace, term| {
        let hello = Hello { term, timeout_ms: 20, ..trace.claim(0) };
        trace.says_hello(66, &hello);
        trace.sent()
    };
    let waits = [(66, WelcomeCode::Waiting, 2)];
    assert_eq!(welcomes(&moves(&mut trace, 0)), waits);
    let term = trace.term;
    let sent = moves(&mut trace, term);
    assert_eq!((welcomes(&sent), sent.len()), (waits.to_vec(), 1), "the term goes on");
    trace.sends(0, 0, 1);
    trace.sends(1, 0, 2);
    assert_eq!(trace.sent(), [(vec![0, 1], trace.result(0, 2, 3))]);
    trace.after(trace.switch.config.silence - MS);
    trace.asks(0, 0, 0, 0);
    trace.after(MS);
    trace.sent();
    assert_eq!(welcomes(&moves(&mut trace, 0)), [(66, WelcomeCode::Welcome, 2)]);
}

/// The session of the first hello that goes up.
fn session_above(chance: Option<u32>) -> u32 {
    let mut trace = Trace::new();
    trace.switch.set_upstream(PeerId(99));
    if let Some(chance) = chance {
        trace.switch.demand_proofs(alloc::boxed::Box::new(move || chance));
    }
    trace.hello(0, 2, 0);
    let nonce = trace.sent().iter().find_map(|(_, out)| match out {
        Out::Welcome(welcome) => Some(welcome.nonce),
        _ => None,
    });
    let hello = Hello { source: 0, nonce: nonce.unwrap_or(0), ..trace.claim(0) };
    trace.says_hello(0, &hello);
    let mut buf = vec![0; MAX_DATAGRAM];
    let sent = trace.switch.poll_transmit(trace.now, PortId::UPLINK, &mut buf).expect("a hello");
    let packet = TrioPacket::new_checked(&buf[..sent.len]).expect("a whole message");
    Hello::parse(&packet).expect("a hello").session.0
}

#[test]
fn the_session_above_does_not_follow_from_the_term() {
    assert_eq!(session_above(None), 7, "as the first term");
    assert_eq!(session_above(Some(1000)), 1007);
}

#[test]
fn a_worker_does_not_set_the_time_out_of_the_others() {
    let mut trace = Trace::new();
    trace.hello(0, 3, 0);
    trace.hello(1, 3, 0);
    trace.sent();
    let refused = Verdict::Drop(DropReason::SumJoinRefused(WelcomeCode::Refused));
    assert_eq!(trace.hello(2, 3, 1), refused);
    assert_eq!(welcomes(&trace.sent()), [(2, WelcomeCode::Refused, 0)]);
    assert_eq!(trace.hello(2, 3, 0), Verdict::Absorb);
    assert_eq!(trace.switch.jobs[&JOB].term.as_ref().map(|term| term.visits), Some(0));
    trace.sent();
    assert_eq!(trace.hello(3, 3, 20), refused, "while the term lasts, too");
    // The job begins anew with another time-out.
    trace.after(2 * trace.switch.config.silence);
    trace.sent();
    (0..3).for_each(|source| assert_eq!(trace.hello(source, 3, 20), Verdict::Absorb));
    assert_eq!(trace.switch.jobs[&JOB].term.as_ref().map(|term| term.visits), Some(2));
}

#[test]
fn a_lower_switch_asks_for_twice_the_time_out() {
    let config = Config { deadline: Some(15 * MS), ..Config::default() };
    for (one, other, agree) in [
        (20, 20, true),
        (20, 15, true),
        (15, 30, true),
        (15, 120, true),
        (15, 31, false),
        (20, 1, false),
        (0, 15, true),
        (0, 30, true),
        (0, 1, false),
    ] {
        assert_eq!(config.agree(one, other), agree, "{one} {other}");
        assert_eq!(config.agree(other, one), agree, "{other} {one}");
    }
    assert!(!Config::default().agree(0, 1));
}

#[test]
fn one_address_keeps_no_place_from_a_new_job() {
    let mut trace = Trace::new();
    let (jobs, full) = (8, Verdict::Drop(DropReason::SumJoinRefused(WelcomeCode::Full)));
    let floods = |trace: &mut Trace| {
        for job in 100..100 + jobs {
            let hello = Hello { job, ..trace.claim(0) };
            trace.says_hello(66, &hello);
        }
    };
    floods(&mut trace);
    assert_eq!(trace.hello(0, 2, 0), Verdict::Absorb);
    floods(&mut trace);
    assert!(trace.switch.jobs.contains_key(&JOB), "the stranger has more jobs than it");
    assert_eq!(trace.hello(1, 2, 0), Verdict::Absorb);
    assert!(trace.switch.jobs[&JOB].has_open_term());
    for job in 200..199 + jobs {
        let hello = Hello { job, workers: 1, source: 0, ..trace.claim(0) };
        assert_eq!(trace.says_hello(job, &hello), Verdict::Absorb);
    }
    let hello = Hello { job: 66, workers: 1, source: 0, ..trace.claim(0) };
    assert_eq!(trace.says_hello(67, &hello), full, "all jobs have begun");
}
