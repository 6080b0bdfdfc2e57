//! The server's signatures pass a switch untouched: to those that get the model, or to the worker that
//! asked.

use crate::common::*;
use olaf_engine::drop::DropReason;
use olaf_engine::engine::{Source, Verdict};
use olaf_engine::switch::native::{AnswerTo, Config};
use olaf_engine::{Engine, PeerId, PortId};
use olaf_wire::{Address, AskSignature, Refusal, Session, Signature, WorkerId};

fn signature(cluster: u32, version: u32) -> Signature {
    Signature {
        address: answer(cluster, 0).address,
        version,
        parameters: PARAMETERS,
        segment_lanes: LANES,
        epoch: SERVER_EPOCH,
        oldest: version,
        question: 0,
        hash: [version as u8; 32],
        tag: [9; 16],
    }
}

fn bytes_of(signature: &Signature) -> Vec<u8> {
    let mut bytes = vec![0; 128];
    let len = signature.emit(&mut bytes);
    bytes.truncate(len);
    bytes
}

fn signs(sw: &mut Bench, signature: &Signature) -> Verdict {
    sw.recv(Source::new(PortId::UPLINK, SERVER), &bytes_of(signature))
}

/// Who gets which bytes below.
fn told(sw: &mut Bench) -> Vec<(u32, Vec<u8>)> {
    let mut buf = vec![0; 65_507];
    let mut told = Vec::new();
    while let Some(sent) = sw.switch.poll_transmit(sw.now, PortId::DOWNLINK, &mut buf) {
        let bytes = buf[..sent.len].to_vec();
        told.extend(sent.to.as_slice().iter().map(|peer| (peer.0, bytes.clone())));
    }
    told
}

#[test]
fn it_goes_to_the_receivers_of_its_model_and_to_no_others() {
    let mut sw = Bench::with(Config::default(), &[W1, W2, W3, V1]);
    sw.sends(W1, 0, &[1.0, 1.0]);
    let (_, Out::Update(first, _)) = sw.next_up().unwrap() else { panic!("an update") };
    assert_eq!(sw.answers(answer(W1.cluster, first.hop_sequence), &[1.0, 2.0]), Verdict::Absorb);
    assert_eq!(told(&mut sw).len(), 1, "the model goes to W1");
    let of_it = signature(W1.cluster, 2);
    assert_eq!(signs(&mut sw, &of_it), Verdict::Absorb);
    assert_eq!(told(&mut sw), [(W1.peer, bytes_of(&of_it))], "as it came");
    // Of a version whose receivers the switch does not know: to the whole cluster, each once.
    let other = signature(W1.cluster, 3);
    assert_eq!(signs(&mut sw, &other), Verdict::Absorb);
    let all = [W1, W2, W3].map(|who| (who.peer, bytes_of(&other)));
    assert_eq!(told(&mut sw), all);
}

#[test]
fn where_answers_go_to_the_cluster_signatures_do() {
    let config = Config { answer_to: AnswerTo::Cluster, ..Config::default() };
    let mut sw = Bench::with(config, &[W1, W2, V1]);
    sw.sends(W1, 0, &[1.0, 1.0]);
    sw.up();
    sw.answers(answer(W1.cluster, 1), &[1.0, 2.0]);
    assert_eq!(told(&mut sw).len(), 2);
    signs(&mut sw, &signature(W1.cluster, 2));
    assert_eq!(told(&mut sw).len(), 2);
}

#[test]
fn a_switch_below_gets_one_copy_for_all_its_workers() {
    let mut sw = Bench::new(Config::default());
    let behind = |worker: W| W { peer: 50, ..worker };
    sw.enters_behind(behind(W1));
    sw.enters_behind(behind(W2));
    sw.enters(W3);
    signs(&mut sw, &signature(W1.cluster, 2));
    let mut peers: Vec<u32> = told(&mut sw).into_iter().map(|(peer, _)| peer).collect();
    peers.sort_unstable();
    assert_eq!(peers, [W3.peer, 50]);
}

#[test]
fn the_answer_to_a_question_goes_to_that_life_of_the_worker_that_asked() {
    let mut sw = Bench::with(Config::default(), &[W1, W2]);
    let ask = AskSignature { address: W1.address(), version: 2, question: 77 };
    let mut bytes = vec![0; 128];
    let len = ask.emit(&mut bytes);
    assert_eq!(sw.recv(W1.source(), &bytes[..len]), Verdict::Absorb);
    assert_eq!(sw.up(), [(SERVER, Out::Other(bytes[..len].to_vec()))]);
    let answer = Signature { address: W1.address(), question: 77, ..signature(W1.cluster, 2) };
    assert_eq!(signs(&mut sw, &answer), Verdict::Absorb);
    assert_eq!(told(&mut sw), [(W1.peer, bytes_of(&answer))]);
    let unknown = Verdict::Drop(DropReason::UnknownReceiver);
    let before = Address { session: Session(1), ..W1.address() };
    assert_eq!(signs(&mut sw, &Signature { address: before, ..answer }), unknown);
    let nobody = Address { worker: WorkerId(4711), ..W1.address() };
    assert_eq!(signs(&mut sw, &Signature { address: nobody, ..answer }), unknown);
    assert_eq!(told(&mut sw), []);
    // One cannot ask for another, nor without having joined.
    let (from, unheard) = (W2.source(), Verdict::Drop(DropReason::UnknownReceiver));
    assert_eq!(sw.recv(from, &bytes[..len]), unheard);
    assert_eq!(sw.up(), []);
}

#[test]
fn what_does_not_come_from_the_jobs_server_is_not_passed_on() {
    let mut sw = Bench::with(Config::default(), &[W1, W2]);
    let good = signature(W1.cluster, 2);
    let from = Source::new(PortId::UPLINK, PeerId(4711));
    assert_eq!(sw.recv(from, &bytes_of(&good)), Verdict::Drop(DropReason::NotTheServer));
    let wrong_way = Verdict::Drop(DropReason::WrongDirection);
    assert_eq!(sw.recv(W1.source(), &bytes_of(&good)), wrong_way);
    let other_life = Signature { epoch: SERVER_EPOCH + 1, ..good };
    assert_eq!(signs(&mut sw, &other_life), Verdict::Drop(DropReason::UnknownEpoch));
    let malformed = Signature { epoch: 0, ..good };
    let refusal = Refusal::BadField("epoch");
    assert_eq!(signs(&mut sw, &malformed), Verdict::Drop(DropReason::Malformed(refusal)));
    let elsewhere = signature(4711, 2);
    assert_eq!(signs(&mut sw, &elsewhere), Verdict::Drop(DropReason::UnknownReceiver));
    let passed_on =
        told(&mut sw).into_iter().filter(|(_, bytes)| bytes.starts_with(&bytes_of(&good)[..6]));
    assert_eq!(passed_on.count(), 0);
}
