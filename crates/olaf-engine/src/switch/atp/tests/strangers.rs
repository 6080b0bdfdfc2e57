//! What the server has not let in takes no part, and nobody speaks for another worker.

use super::*;

const NOT_A_MEMBER: Verdict = Verdict::Drop(DropReason::NotAMember);
const WRONG_SENDER: Verdict = Verdict::Drop(DropReason::WrongSender);
const STRANGER: u32 = 66;

fn demanding(trace: &mut Trace) {
    trace.switch.demand_proofs(alloc::boxed::Box::new(|| 40));
}

/// The peer's join, with the cookie that the switch asks for.
fn proved(trace: &mut Trace, number: u32, join: &Join) -> Verdict {
    let nonce = trace.switch.cookies.asked(trace.now, worker(number));
    trace.say(number, &Join { nonce, ..*join })
}

fn answer(session: u32, code: WelcomeCode) -> Welcome {
    Welcome { workers: 2, ..Welcome::without_place(&join(session, 0), code) }
}

/// Who gets a result.
fn results_go_to(trace: &mut Trace, sequence: u16) -> Vec<PeerId> {
    trace.leaves(PortId::DOWNLINK);
    assert_eq!(trace.recv_above(&written(&parameters(sequence), 1)), Verdict::Absorb);
    trace.leaves(PortId::DOWNLINK).into_iter().flat_map(|(to, _)| to).collect()
}

#[test]
fn who_is_not_let_in_gets_no_results_and_changes_no_sum() {
    for code in [WelcomeCode::Waiting, WelcomeCode::Full, WelcomeCode::Refused] {
        let mut trace = Trace::new(16, 2);
        demanding(&mut trace);
        for _ in 0..3 {
            assert_eq!(proved(&mut trace, STRANGER, &join(666, 2)), Verdict::Absorb);
            // Before the server answers, and after.
            for _ in 0..2 {
                for number in [0, 1] {
                    let forged = Header { resend: true, ..piece(5, number, 2) };
                    let verdict = trace.recv_below(worker(STRANGER), &written(&forged, 99));
                    assert_eq!(verdict, NOT_A_MEMBER);
                }
                assert_eq!(results_go_to(&mut trace, 4), [0, 1].map(worker));
                trace.recv_below(worker(STRANGER), &[]);
                let answered = trace.switch.jobs[&(1, 0)].peer_of(Session(666));
                if answered.is_some() {
                    trace.welcome(&answer(666, code));
                    let told = trace.leaves(PortId::DOWNLINK);
                    assert_eq!(told[0].0, [worker(STRANGER)], "it learns what the server says");
                }
            }
        }
        trace.up();
        trace.send(piece(5, 0, 2), 1);
        trace.send(piece(5, 1, 2), 2);
        assert_eq!(trace.up(), [(Header { bitmap0: 3, edge: true, ..piece(5, 1, 2) }, 3)]);
    }
}

#[test]
fn a_member_speaks_for_itself_alone() {
    let mut trace = Trace::new(16, 3);
    let own = piece(5, 2, 3);
    for forged in [
        piece(5, 0, 3),
        Header { resend: true, ..piece(5, 1, 3) },
        Header { bitmap0: 7, resend: true, ..own },
        Header { overflow: true, ..piece(5, 0, 3) },
        // A worker has no sum of groups, and its group is no smaller than the server says.
        Header { bitmap0: 0, bitmap1: 3, fan_in1: 2, edge: true, ..own },
        Header { fan_in0: 1, fan_in1: 2, edge: true, ..own },
    ] {
        let verdict = trace.recv_below(worker(2), &written(&forged, 99));
        assert_eq!(verdict, WRONG_SENDER, "{forged:?}");
    }
    trace.up();
    assert_eq!(trace.switch.statistics().refused["wrong_sender"], 6);
    (0..3).for_each(|number| trace.send(piece(5, number, 3), 1));
    assert_eq!(trace.up()[0].1, 3);
    // Where addresses are proved, bits of nobody that is known here go no further.
    demanding(&mut trace);
    for unknown in [piece(6, 9, 3), Header { bitmap1: 2, ..piece(6, 2, 3) }] {
        let verdict = trace.recv_below(worker(2), &written(&unknown, 99));
        assert_eq!(verdict, NOT_A_MEMBER);
    }
}

#[test]
fn a_lower_switch_speaks_for_the_workers_behind_it_alone() {
    let group = |number: u32| Header {
        bitmap0: 3,
        bitmap1: 1 << number,
        fan_in0: 2,
        fan_in1: 2,
        edge: true,
        ..piece(5, 0, 2)
    };
    let mut trace = Trace::new(16, 0);
    [0, 1].iter().for_each(|number| trace.is_a_switch(*number, &group(*number)));
    for forged in [group(1), Header { bitmap0: 0, bitmap1: 3, ..group(0) }] {
        assert_eq!(trace.recv_below(worker(0), &written(&forged, 9)), WRONG_SENDER);
    }
    for number in [0, 1] {
        let verdict = trace.recv_below(worker(number), &written(&group(number), 1));
        assert_eq!(verdict, Verdict::Absorb);
    }
    assert_eq!(trace.up()[0].1, 2);
}

#[test]
fn seats_of_two_generations_are_known_in_whatever_order_their_welcomes_come() {
    let mut trace = Trace::new(16, 2);
    demanding(&mut trace);
    let of = |generation| Key::new(generation, 0, 0);
    // In the fourth generation the two have each other's bit. A welcome of the third one is late.
    for (generation, numbers) in [(4, [1, 0]), (3, [0, 1])] {
        for (session, number) in [100, 101].into_iter().zip(numbers) {
            let seat = welcome(session, &piece(0, number, 2));
            trace.welcome(&Welcome { generation, ..seat });
        }
    }
    for (peer, bit, generation, verdict) in [
        (0, 1, 4, Verdict::Absorb),
        (0, 0, 4, WRONG_SENDER),
        (1, 1, 4, WRONG_SENDER),
        (1, 0, 4, Verdict::Absorb),
        (0, 1, 3, WRONG_SENDER),
        (0, 0, 3, Verdict::Absorb),
        (0, 0, 5, NOT_A_MEMBER),
    ] {
        let header = Header { key: of(generation), ..piece(5, bit, 2) };
        let got = trace.recv_below(worker(peer), &written(&header, 1));
        assert_eq!(got, verdict, "{peer} {bit} {generation}");
    }
}

#[test]
fn a_member_moves_when_the_server_has_answered_and_keeps_its_seat() {
    let mut trace = Trace::new(16, 2);
    demanding(&mut trace);
    // While the member is heard at its own address, another one waits, and the server hears nothing of it.
    assert_eq!(proved(&mut trace, 7, &join(101, 1)), Verdict::Absorb);
    assert_eq!(trace.leaves(PortId::UPLINK), []);
    trace.now = trace.now + Duration::from_millis(1500);
    assert_eq!(proved(&mut trace, 7, &join(101, 1)), Verdict::Absorb);
    let bytes = written(&piece(5, 1, 2), 2);
    assert_eq!(trace.recv_below(worker(7), &bytes), NOT_A_MEMBER);
    assert_eq!(results_go_to(&mut trace, 4), [0, 1].map(worker));
    trace.welcome(&welcome(101, &piece(0, 1, 2)));
    assert_eq!(trace.leaves(PortId::DOWNLINK)[0].0, [worker(7)]);
    assert_eq!(results_go_to(&mut trace, 4), [0, 7].map(worker));
    assert_eq!(trace.recv_below(worker(1), &bytes), NOT_A_MEMBER, "it is elsewhere");
    trace.up();
    assert_eq!(trace.recv_below(worker(7), &bytes), Verdict::Absorb);
    trace.send(piece(5, 0, 2), 1);
    assert_eq!(trace.up()[0].1, 3);
}

#[test]
fn a_candidate_leaves_for_itself_alone() {
    let mut trace = Trace::new(16, 2);
    let mut buf = [0; 64];
    let leave = |session| Leave {
        job: 1,
        server: 0,
        session: Session(session),
        life: 3,
        reason: Reason::Left,
    };
    for (session, verdict) in [(101, WRONG_SENDER), (102, Verdict::Absorb)] {
        trace.say(7, &join(session, 1));
        trace.up();
        let len = leave(session).emit(&mut buf);
        assert_eq!(trace.recv_below(worker(7), &buf[..len]), verdict);
        let went_up = trace.leaves(PortId::UPLINK).len();
        assert_eq!(went_up, usize::from(verdict == Verdict::Absorb));
    }
}

#[test]
fn who_has_lost_its_place_to_another_is_no_member_any_more() {
    let mut trace = Trace::new(16, 2);
    let anew =
        |session, number| Welcome { generation: 4, ..welcome(session, &piece(0, number, 2)) };
    // The old generation has ended, and worker 1 waits for the next one: it is still told of the old one.
    trace.welcome(&answer(101, WelcomeCode::Waiting));
    assert_eq!(results_go_to(&mut trace, 4), [0, 1].map(worker));
    trace.welcome(&anew(100, 0));
    trace.join(2);
    trace.welcome(&anew(102, 1));
    trace.welcome(&answer(101, WelcomeCode::Waiting));
    assert_eq!(results_go_to(&mut trace, 4), [0, 2].map(worker));
    // It is a candidate, and gets its place back.
    trace.welcome(&anew(101, 1));
    assert_eq!(results_go_to(&mut trace, 4), [0, 1, 2].map(worker));
}

#[test]
fn a_candidate_hears_of_the_end_of_its_generation_once_for_a_join() {
    let mut trace = Trace::new(16, 1);
    let closed = Closed {
        job: 1,
        server: 0,
        life: 3,
        reason: Reason::Unknown,
        tensor: 0,
        culprit: 1,
        sides: Sides::default(),
    };
    let mut buf = [0; 64];
    let len = closed.emit(&mut buf);
    for (number, generation) in [(7, 3), (8, 0)] {
        trace.say(number, &Join { generation, ..join(100 + number, 0) });
    }
    for to in [[0, 7].map(worker).to_vec(), vec![worker(0)]] {
        assert_eq!(trace.recv_above(&buf[..len]), Verdict::Absorb);
        assert_eq!(trace.leaves(PortId::DOWNLINK)[0].0, to);
    }
}

#[test]
fn candidates_are_bounded_by_address_and_time_out() {
    let mut trace = Trace::new(16, 2);
    trace.welcome(&Welcome { workers: 2, ..answer(100, WelcomeCode::Waiting) });
    let full = Verdict::Drop(DropReason::SumJoinRefused(WelcomeCode::Full));
    // An address has one worker: the newest.
    for session in 700..750 {
        assert_eq!(trace.say(STRANGER + 9, &join(session, 0)), Verdict::Absorb);
        let up = trace.leaves(PortId::UPLINK).len();
        assert!(up <= 3, "a join brings {up} datagrams up");
    }
    assert_eq!(trace.switch.jobs[&(1, 0)].candidates().count(), 1);
    // One that says it is a switch has more.
    let switches = [ID + 1, 0, 0, 0];
    let stranger = |session| Join { workers: 30_000, switches, ..join(session, 0) };
    let taken = (0..50).filter(|at| {
        let verdict = trace.say(STRANGER, &stranger(500 + at));
        assert!(verdict == Verdict::Absorb || verdict == full);
        verdict == Verdict::Absorb
    });
    assert_eq!(taken.count(), 4, "twice the workers of the job");
    assert_eq!(trace.say(5, &join(105, 0)), Verdict::Absorb, "others are not concerned");
    trace.now = trace.now + Duration::from_secs(2);
    trace.switch.handle_timeout(trace.now);
    assert_eq!(trace.say(STRANGER, &stranger(900)), Verdict::Absorb);
    let mut peers = vec![];
    trace.switch.peers(&mut |peer| peers.push(peer));
    assert_eq!(peers, [worker(STRANGER), SERVER], "its address is kept for the answer");
}

#[test]
fn joins_for_many_jobs_keep_no_new_job_out() {
    let mut trace = Trace::new(16, 2);
    let full = Verdict::Drop(DropReason::SumJoinRefused(WelcomeCode::Full));
    let of_job = |job, session| Join { job, ..join(session, 0) };
    let bring = |trace: &mut Trace, number: u32, jobs: core::ops::Range<u16>| {
        let verdicts = jobs.map(|job| trace.say(number, &of_job(job, 500)));
        verdicts.filter(|verdict| *verdict != full).count()
    };
    assert_eq!(bring(&mut trace, STRANGER, 100..200), 63);
    // Five addresses take all places, and each of two others gets one all the same.
    for other in 1..5 {
        let first = 1000 * other;
        let taken = bring(&mut trace, STRANGER + u32::from(other), first..first + 100);
        assert!(taken >= 12, "{taken}");
    }
    let jobs = |trace: &Trace| trace.switch.statistics().jobs.len();
    assert_eq!((bring(&mut trace, 5, 20..21), bring(&mut trace, 6, 21..22)), (1, 1));
    assert_eq!(jobs(&trace), 64);
    let has = |trace: &Trace, job| trace.switch.jobs.contains_key(&(job, 0));
    assert!([1, 20, 21].iter().all(|job| has(&trace, *job)), "the confirmed one stays, too");
    // Of an address that has brought as many, none gives way to it.
    assert!(bring(&mut trace, STRANGER, 300..400) <= 1);
    assert!([1, 20, 21].iter().all(|job| has(&trace, *job)));
    // They are forgotten.
    trace.now = trace.now + Duration::from_secs(2);
    trace.switch.handle_timeout(trace.now);
    assert_eq!(jobs(&trace), 0);
}
