//! The switch, and datagrams that are right but for one field: the address that is not proved, the session that
//! is another one, the size that is none.

use crate::common::*;
use olaf_engine::drop::DropReason;
use olaf_engine::engine::{Source, Verdict};
use olaf_engine::switch::native::{AnswerTo, Config};
use olaf_engine::{Engine, PortId};
use olaf_wire::{
    Address, AskSignature, ClusterId, Fetch, Join, Session, Signature, Welcome, WelcomeCode,
};

/// A switch that demands proofs. W1 and W2 are in; W1 alone has echoed what it was asked for.
fn demanding(config: Config) -> Bench {
    let mut sw = Bench::new(config);
    let mut last = 40;
    sw.switch.demand_proofs(Box::new(move || {
        last += 1;
        last
    }));
    for who in [W1, W2] {
        joins(&mut sw, who, 0);
        sw.up();
        sw.welcomes(welcome(who, WelcomeCode::Welcome));
    }
    let asked = sw.down().into_iter().find_map(|(peer, out)| match out {
        Out::Welcome(welcome) if peer.0 == W1.peer => Some(welcome.nonce),
        _ => None,
    });
    joins(&mut sw, W1, asked.expect("the welcome asks for a proof"));
    sw.up();
    sw.welcomes(welcome(W1, WelcomeCode::Welcome));
    sw.down();
    sw.events();
    sw
}

fn joins(sw: &mut Bench, who: W, nonce: u32) {
    let join = Join { nonce, wants_notices: true, ..join(who, PARAMETERS) };
    let mut buf = [0; 256];
    let len = join.emit(&mut buf);
    assert_eq!(sw.recv(who.source(), &buf[..len]), Verdict::Absorb);
}

fn says(sw: &mut Bench, from: Source, emit: impl FnOnce(&mut [u8]) -> usize) -> Verdict {
    let mut buf = [0; 512];
    let len = emit(&mut buf);
    sw.recv(from, &buf[..len])
}

fn fetch(address: Address) -> Fetch {
    Fetch { address, version: 2, first: 0, mask: 1, have_version: 0 }
}

#[test]
fn wishes_and_questions_of_an_unproved_address_do_not_go_up() {
    let mut sw = demanding(Config::default());
    let not_proven = Verdict::Drop(DropReason::NotProven);
    let asks = |who: W| AskSignature { address: who.address(), version: 2, question: 7 };
    assert_eq!(says(&mut sw, W2.source(), |buf| fetch(W2.address()).emit(buf)), not_proven);
    assert_eq!(says(&mut sw, W2.source(), |buf| asks(W2).emit(buf)), not_proven);
    assert!(sw.up().is_empty());
    assert_eq!(says(&mut sw, W1.source(), |buf| fetch(W1.address()).emit(buf)), Verdict::Absorb);
    assert_eq!(says(&mut sw, W1.source(), |buf| asks(W1).emit(buf)), Verdict::Absorb);
    assert_eq!(sw.up().len(), 2);
}

#[test]
fn a_wish_in_another_session_or_from_elsewhere_does_not_go_up() {
    let mut sw = default();
    let other = Address { session: Session(9), ..W1.address() };
    let unknown = Verdict::Drop(DropReason::UnknownReceiver);
    assert_eq!(says(&mut sw, W1.source(), |buf| fetch(other).emit(buf)), unknown);
    assert_eq!(says(&mut sw, W2.source(), |buf| fetch(W1.address()).emit(buf)), unknown);
    assert!(sw.up().is_empty());
}

#[test]
fn models_signatures_and_notices_go_to_proved_addresses_alone() {
    let mut sw = demanding(Config { answer_to: AnswerTo::Cluster, ..Config::default() });
    let receivers = |sw: &mut Bench| {
        let mut buf = vec![0; 2048];
        let mut all = Vec::new();
        while let Some(sent) = sw.switch.poll_transmit(sw.now, PortId::DOWNLINK, &mut buf) {
            all.extend(sent.to.as_slice().iter().map(|peer| peer.0));
        }
        all
    };
    assert_eq!(sw.sends(W1, 0, &[1.0, 1.0]), Verdict::Absorb);
    assert_eq!(receivers(&mut sw), [W1.peer], "a notice");
    let (sent, _) = one_update(sw.up());
    assert_eq!(sw.answers(answer(0, sent.hop_sequence), &[2.0, 2.0]), Verdict::Absorb);
    assert_eq!(receivers(&mut sw), [W1.peer], "a model");
    let signature = Signature {
        address: answer(0, 0).address,
        version: 3,
        parameters: PARAMETERS,
        segment_lanes: LANES,
        epoch: SERVER_EPOCH,
        oldest: 1,
        question: 0,
        hash: [0; 32],
        tag: [0; 16],
    };
    let above = Source::new(PortId::UPLINK, SERVER);
    assert_eq!(says(&mut sw, above, |buf| signature.emit(buf)), Verdict::Absorb);
    assert_eq!(receivers(&mut sw), [W1.peer], "a signature");
    assert!(sw.refused("not_proven") >= 2);
}

#[test]
fn a_new_life_of_the_server_is_not_believed_of_a_welcome_for_another_session() {
    let mut sw = default();
    let address = Address { session: Session(9), ..W1.address() };
    let forged = Welcome { address, epoch: 666, ..welcome(W1, WelcomeCode::Welcome) };
    assert_eq!(sw.welcomes(forged), Verdict::Drop(DropReason::UnknownEpoch));
    assert!(sw.events().is_empty());
}

#[test]
fn a_welcome_without_a_size_takes_no_size_away() {
    let mut sw = default();
    sw.joins(W1);
    let said = Welcome { parameters: 0, segment_lanes: 0, ..welcome(W1, WelcomeCode::Welcome) };
    assert_eq!(sw.welcomes(said), Verdict::Absorb);
    assert_eq!(sw.sends(W1, 0, &[1.0, 1.0]), Verdict::Absorb);
}

#[test]
fn a_join_that_is_late_does_not_move_its_worker_back() {
    let mut sw = default();
    let joins = |sw: &mut Bench, cluster, sent_at_ns| {
        let join = Join { sent_at_ns, ..join(W { cluster, ..W1 }, PARAMETERS) };
        says(sw, W1.source(), |buf| join.emit(buf))
    };
    assert_eq!(joins(&mut sw, 7, 900), Verdict::Absorb);
    let late = dropped(olaf_engine::Rejection::Superseded);
    assert_eq!(joins(&mut sw, 0, 800), late);
    let here = sw.switch.running();
    assert!(here.contains(&(olaf_engine::JobId(JOB), ClusterId(7))));
    assert_eq!(sw.sends(W { cluster: 7, ..W1 }, 0, &[1.0, 1.0]), Verdict::Absorb);
}

/// A join without a proof, from another address each time, as whoever forges addresses sends them.
fn forged(sw: &mut Bench, number: u32) -> Verdict {
    let who = W { peer: 1_000 + number, worker: 1_000 + number, ..W1 };
    let mut buf = [0; 256];
    let len = join(who, PARAMETERS).emit(&mut buf);
    sw.recv(who.source(), &buf[..len])
}

fn nonce_to(sw: &mut Bench, who: W) -> Option<(WelcomeCode, u32)> {
    sw.down().into_iter().rev().find_map(|(peer, out)| match out {
        Out::Welcome(welcome) if peer.0 == who.peer => Some((welcome.code, welcome.nonce)),
        _ => None,
    })
}

#[test]
fn forged_addresses_take_few_places_and_a_newcomer_that_proves_its_own_is_let_in() {
    let mut sw = demanding(Config::default());
    let mut passed_up = 0;
    for number in 0..17_000 {
        let verdict = forged(&mut sw, number);
        let asked = Verdict::Drop(DropReason::NotProven);
        assert!(verdict == Verdict::Absorb || verdict == asked, "{verdict:?}");
        passed_up += usize::from(verdict == Verdict::Absorb);
        sw.up();
        sw.down();
    }
    assert!(passed_up <= 320, "{passed_up} joins went up to the server");
    assert!(sw.switch.statistics(sw.now).workers.len() <= 322);
    assert!(sw.events().len() < 100, "few lines");
    let newcomer = W { peer: 77, worker: 77, ..W1 };
    let mut buf = [0; 256];
    let len = join(newcomer, PARAMETERS).emit(&mut buf);
    assert_eq!(sw.recv(newcomer.source(), &buf[..len]), Verdict::Drop(DropReason::NotProven));
    assert!(sw.up().is_empty());
    let (code, nonce) = nonce_to(&mut sw, newcomer).expect("an answer");
    assert_eq!(code, WelcomeCode::JoinAgain);
    // Another address has no use for the cookie.
    let thief = W { peer: 78, worker: 78, ..W1 };
    let len = Join { nonce, ..join(thief, PARAMETERS) }.emit(&mut buf);
    assert_eq!(sw.recv(thief.source(), &buf[..len]), Verdict::Drop(DropReason::NotProven));
    joins(&mut sw, newcomer, nonce);
    assert_eq!(sw.up().len(), 1, "its join goes up");
    sw.welcomes(welcome(newcomer, WelcomeCode::Welcome));
    assert_eq!(sw.sends(newcomer, 0, &[1.0, 1.0]), Verdict::Absorb);
    // The others came to nothing, and joins are as they were.
    sw.until(sw.now + core::time::Duration::from_secs(3));
    assert!(sw.switch.statistics(sw.now).workers.len() <= 3);
    assert_eq!(forged(&mut sw, 20_000), Verdict::Absorb);
}

#[test]
fn forged_addresses_open_few_jobs_and_a_new_job_begins_beside_them() {
    let mut sw = demanding(Config::default());
    for number in 0..300 {
        let who = W { job: 1_000 + number, peer: 1_000 + number, ..W1 };
        let mut buf = [0; 256];
        let len = join(who, PARAMETERS).emit(&mut buf);
        sw.recv(who.source(), &buf[..len]);
        sw.up();
        sw.welcomes(welcome(who, WelcomeCode::Welcome));
        sw.down();
    }
    assert!(sw.switch.statistics(sw.now).servers.len() <= 33);
    let honest = W { job: 7, peer: 77, ..W1 };
    let mut buf = [0; 256];
    let len = join(honest, PARAMETERS).emit(&mut buf);
    assert_eq!(sw.recv(honest.source(), &buf[..len]), Verdict::Drop(DropReason::NotProven));
    let (_, nonce) = nonce_to(&mut sw, honest).expect("an answer");
    joins(&mut sw, honest, nonce);
    assert_eq!(sw.up().len(), 1);
    sw.welcomes(welcome(honest, WelcomeCode::Welcome));
    assert_eq!(sw.sends(honest, 0, &[1.0, 1.0]), Verdict::Absorb);
    sw.until(sw.now + core::time::Duration::from_secs(15));
    assert!(sw.switch.statistics(sw.now).servers.len() <= 2, "the others came to nothing");
}
