//! What a stranger may send to the server of ATP: without a proof of its address nobody becomes a member.

use olaf_engine::{DropReason, Engine, Instant, PeerId, PortId, Source, Verdict};
use olaf_host::Refused;
use olaf_host::collective::atp::{AtpServer, ServerConfig};
use olaf_wire::Refusal;
use olaf_wire::Session;
use olaf_wire::atp::{ANY, AtpPacket, Closed, Header, Join, Key, Leave, Left, Welcome};
use olaf_wire::reduce::{Reason, WelcomeCode};

const NOW: Instant = Instant(1 << 40);
const PEER: PeerId = PeerId(1);

fn demanding() -> AtpServer {
    let mut server = AtpServer::new(ServerConfig::default(), 5).unwrap();
    let mut drawn = 40;
    server.demand_proofs(Box::new(move || {
        drawn += 1;
        drawn
    }));
    server
}

fn join(nonce: u32) -> Join {
    Join {
        job: 1,
        server: 0,
        session: Session(7),
        rank: 0,
        workers: 2,
        generation: 0,
        closed: 0,
        values: 62,
        aggregators: 0,
        switches: [0; 4],
        sent_at_us: 1,
        scale: 1e8,
        servers: 1,
        window: 200,
        nonce,
        operations: ANY,
        program: 0,
    }
}

fn gives(server: &mut AtpServer, emit: impl FnOnce(&mut [u8]) -> usize) -> Result<(), Refused> {
    let mut buf = [0; 512];
    let len = emit(&mut buf);
    match server.handle_packet(NOW, Source::end(PEER), &buf[..len]) {
        Verdict::Absorb => Ok(()),
        Verdict::Drop(DropReason::End(refused)) => Err(refused),
        other => panic!("an end neither passes on nor screens: {other:?}"),
    }
}

/// The header of a worker's first gradient, with the seat that its last welcome gave.
fn gradient_of(welcomes: &[Welcome], rank: u32) -> Header {
    let mut seated = welcomes.iter().rev();
    let seat = seated.find(|one| one.session == Session(7 + rank)).expect("it is in");
    Header {
        job: 1,
        bitmap0: seat.bitmap0,
        bitmap1: seat.bitmap1,
        fan_in0: seat.fan_in0,
        fan_in1: seat.fan_in1,
        tensor_length: 62,
        key: Key::new(5, 0, 0),
        ..Header::default()
    }
}

/// The number in the one answer that the server sends, and its length.
fn answer(server: &mut AtpServer) -> (u32, usize) {
    let mut buf = [0; 512];
    let sent = server.poll_transmit(NOW, PortId(0), &mut buf).expect("an answer");
    let packet = AtpPacket::new_checked(&buf[..sent.len]).unwrap();
    let nonce = Welcome::parse(&packet).unwrap().nonce;
    assert_eq!(sent.to.one(), Some(PEER));
    assert!(server.poll_transmit(NOW, PortId(0), &mut buf).is_none());
    (nonce, sent.len)
}

#[test]
fn without_a_proof_of_its_address_nobody_becomes_a_member() {
    let mut server = demanding();
    let mut buf = [0; 512];
    let asked = join(0).emit(&mut buf);
    assert_eq!(gives(&mut server, |buf| join(0).emit(buf)), Ok(()));
    let (nonce, len) = answer(&mut server);
    assert!(nonce != 0 && len <= 2 * asked, "{len} bytes for {asked}");
    assert_eq!(gives(&mut server, |buf| join(nonce ^ 1).emit(buf)), Err(Refused::NotProven));
    assert_eq!(answer(&mut server).0, nonce, "it is asked again");
    assert_eq!(server.statistics().jobs.len(), 0, "nobody is a member yet");
    assert_eq!(gives(&mut server, |buf| join(nonce).emit(buf)), Ok(()));
    assert_eq!(answer(&mut server).0, 0, "nothing is left to prove");
    assert_eq!(server.statistics().jobs.len(), 1);
}

#[test]
fn gradients_for_a_job_that_is_not_here_or_has_not_begun_are_refused() {
    let mut server = AtpServer::new(ServerConfig::default(), 5).unwrap();
    let header = Header {
        job: 1,
        bitmap0: 1,
        bitmap1: 1,
        fan_in0: 2,
        fan_in1: 1,
        tensor_length: 62,
        ..Header::default()
    };
    let gradient = |buf: &mut [u8]| {
        header.emit(&[0; 248], buf);
        header.datagram_len(62)
    };
    assert_eq!(gives(&mut server, gradient), Err(Refused::UnknownJob));
    assert_eq!(gives(&mut server, |buf| join(0).emit(buf)), Ok(()));
    assert_eq!(gives(&mut server, gradient), Err(Refused::OtherGeneration));
}

/// What a worker of a job of two may not send: each is refused by its reason, and neither adds to the sum.
#[test]
fn a_gradient_counts_from_its_own_address_with_a_seat_that_was_given_and_in_its_size() {
    let mut server = AtpServer::new(ServerConfig::default(), 5).unwrap();
    let mut buf = [0; 1024];
    let from = |server: &mut AtpServer, peer: u32, len: usize, buf: &[u8]| match server
        .handle_packet(NOW, Source::end(PeerId(peer)), &buf[..len])
    {
        Verdict::Drop(DropReason::End(refused)) => Err(refused),
        Verdict::Absorb => Ok(()),
        other => panic!("an end neither passes on nor screens: {other:?}"),
    };
    for (rank, peer) in [(0, 1), (1, 2)] {
        let len = Join { session: Session(7 + rank), rank, ..join(0) }.emit(&mut buf);
        from(&mut server, peer, len, &buf).unwrap();
    }
    let mut welcomes = Vec::new();
    let mut out = [0; 512];
    while let Some(datagram) = server.poll_transmit(NOW, PortId(0), &mut out) {
        welcomes.extend(Welcome::parse(&AtpPacket::new_checked(&out[..datagram.len]).unwrap()));
    }
    let sound = gradient_of(&welcomes, 0);
    for (peer, header, values, why) in [
        (3, sound, 62, Refused::UnknownPeer),
        // A member that speaks for the other one, and for both.
        (2, sound, 62, Refused::UnknownPeer),
        (2, Header { bitmap0: 3, ..sound }, 62, Refused::UnknownPeer),
        (1, Header { bitmap0: 1 << 9, ..sound }, 62, Refused::UnknownWorker),
        (1, Header { key: Key::new(6, 0, 0), ..sound }, 62, Refused::OtherGeneration),
        (1, Header { tensor_length: 63, ..sound }, 63, Refused::WrongSize),
    ] {
        header.emit(&vec![0; values * 4], &mut buf);
        let len = header.datagram_len(values);
        assert_eq!(from(&mut server, peer, len, &buf), Err(why));
    }
    for (peer, session, why) in [(2, 7, Refused::UnknownPeer), (1, 9, Refused::UnknownWorker)] {
        let len =
            Leave { job: 1, server: 0, session: Session(session), life: 5, reason: Reason::Left }
                .emit(&mut buf);
        assert_eq!(from(&mut server, peer, len, &buf), Err(why));
    }
    let fates = server.statistics().gradients;
    assert_eq!((fates.received, fates.refused, fates.singles), (6, 6, 0));
    let len = sound.datagram_len(62);
    sound.emit(&[0; 248], &mut buf);
    from(&mut server, 1, len, &buf).unwrap();
    assert_eq!(server.statistics().gradients.singles, 1);
}

/// A worker of a job of two says again and again that it lacks a result: it goes to both each time.
#[test]
fn a_flood_of_packets_that_come_again_is_answered_in_part() {
    const MS: u64 = 1_000_000;
    let mut server = AtpServer::new(ServerConfig::default(), 5).unwrap();
    let mut buf = [0; 512];
    let mut welcomes: Vec<Welcome> = Vec::new();
    let says = |server: &mut AtpServer,
                welcomes: &mut Vec<Welcome>,
                at_ms: u64,
                peer: u32,
                len: usize,
                buf: &[u8]| {
        let now = Instant(NOW.0 + at_ms * MS);
        let verdict = server.handle_packet(now, Source::end(PeerId(peer)), &buf[..len]);
        let mut out = [0; 512];
        let mut sent = 0;
        while let Some(datagram) = server.poll_transmit(now, PortId(0), &mut out) {
            sent += usize::from(datagram.len > 200) * datagram.to.as_slice().len();
            let packet = AtpPacket::new_checked(&out[..datagram.len]).unwrap();
            welcomes.extend(Welcome::parse(&packet));
        }
        (verdict, sent)
    };
    for (rank, peer) in [(0, 1), (1, 2)] {
        let len = Join { session: Session(7 + rank), rank, ..join(0) }.emit(&mut buf);
        assert_eq!(says(&mut server, &mut welcomes, 0, peer, len, &buf).0, Verdict::Absorb);
    }
    let seats = welcomes.clone();
    let gradient = |rank: u32, buf: &mut [u8]| {
        let header = Header { resend: true, ..gradient_of(&seats, rank) };
        header.emit(&[0; 248], buf);
        header.datagram_len(62)
    };
    for (rank, peer) in [(0, 1), (1, 2)] {
        let len = gradient(rank, &mut buf);
        assert_eq!(says(&mut server, &mut welcomes, 1, peer, len, &buf).0, Verdict::Absorb);
    }
    assert_eq!(server.statistics().fragments, 1);
    let len = gradient(0, &mut buf);
    let drawn: usize =
        (0..10_000).map(|at| says(&mut server, &mut welcomes, 100 + at, 1, len, &buf).1).sum();
    // 256 at once, and 66 in each of ten seconds; each goes to both.
    assert!((512..=2 * (262 + 661)).contains(&drawn), "{drawn} results");
    let of = server.statistics();
    assert!(of.refused["too_often"] > 9_000, "{of:?}");
    let fates = of.gradients;
    assert_eq!(fates.received, fates.singles + fates.sums + fates.late + fates.refused);
}

#[test]
fn one_address_keeps_no_place_from_a_new_job() {
    let config = ServerConfig { jobs: 3, ..ServerConfig::default() };
    let mut server = AtpServer::new(config, 5).unwrap();
    let mut joins = |job, rank, peer| {
        let mut buf = [0; 512];
        let session = Session(100 * peer + 10 * u32::from(job) + rank);
        let len = Join { job, session, rank, ..join(0) }.emit(&mut buf);
        let verdict = server.handle_packet(NOW, Source::end(PeerId(peer)), &buf[..len]);
        let jobs = server.statistics().jobs;
        (verdict, jobs.iter().any(|of| of.job == job && of.generation.is_some()))
    };
    let full = Verdict::Drop(DropReason::End(Refused::NotAdmitted(WelcomeCode::Full)));
    for job in 100..103 {
        assert_eq!(joins(job, 0, 66), (Verdict::Absorb, false));
    }
    assert_eq!(joins(103, 0, 66), (full, false), "the stranger itself has the most");
    assert_eq!(joins(1, 0, 1), (Verdict::Absorb, false));
    for job in 100..103 {
        joins(job, 0, 66);
    }
    assert_eq!(joins(1, 1, 2), (Verdict::Absorb, true), "its first worker has waited");
    // One that has begun gives way to nobody.
    for (job, peer) in [(2, 3), (3, 5)] {
        joins(job, 0, peer);
        assert_eq!(joins(job, 1, peer + 1), (Verdict::Absorb, true));
    }
    assert_eq!(joins(4, 0, 7), (full, false));
}

#[test]
fn a_worker_of_another_version_is_told_so() {
    let mut server = AtpServer::new(ServerConfig::default(), 5).unwrap();
    let of_another = |buf: &mut [u8]| {
        let len = join(0).emit(buf);
        buf[9] = 1;
        len
    };
    let refused = Refused::Malformed(Refusal::WrongVersion { have: 1, speaks: 4 });
    assert_eq!(gives(&mut server, of_another), Err(refused));
    let mut buf = [0; 512];
    let sent = server.poll_transmit(NOW, PortId(0), &mut buf).expect("an answer");
    let answer = Welcome::parse(&AtpPacket::new_checked(&buf[..sent.len]).unwrap()).unwrap();
    assert_eq!((answer.code, answer.session), (WelcomeCode::OtherVersion, Session(7)));
    assert_eq!(server.statistics().jobs.len(), 0);
}

/// The reason of the end, and whether a leave was confirmed, in what the server sends now.
fn told(server: &mut AtpServer) -> (Option<Reason>, bool) {
    let (mut buf, mut reason, mut confirmed) = ([0; 512], None, false);
    while let Some(sent) = server.poll_transmit(NOW, PortId(0), &mut buf) {
        let packet = AtpPacket::new_checked(&buf[..sent.len]).unwrap();
        reason = Closed::parse(&packet).map_or(reason, |closed| Some(closed.reason));
        confirmed |= Left::parse(&packet).is_ok();
    }
    (reason, confirmed)
}

#[test]
fn a_leave_is_confirmed_each_time_and_a_late_copy_ends_nothing() {
    let mut server = AtpServer::new(ServerConfig::default(), 5).unwrap();
    let alone = Join { workers: 1, ..join(0) };
    let leave = Leave { job: 1, server: 0, session: Session(7), life: 5, reason: Reason::Left };
    assert_eq!(gives(&mut server, |buf| alone.emit(buf)), Ok(()));
    told(&mut server);
    assert_eq!(gives(&mut server, |buf| leave.emit(buf)), Ok(()));
    assert_eq!(told(&mut server), (Some(Reason::Left), true));
    assert_eq!(gives(&mut server, |buf| leave.emit(buf)), Ok(()));
    assert_eq!(told(&mut server), (None, true), "the first answer was lost");
    assert_eq!(server.statistics().leaves, 1);
    // The worker joins again, for a job of two: it waits in the lobby, and a late copy of its leave comes.
    let mut server = AtpServer::new(ServerConfig::default(), 5).unwrap();
    let again = Join { closed: 5, ..join(0) };
    assert_eq!(gives(&mut server, |buf| again.emit(buf)), Ok(()));
    assert_eq!(gives(&mut server, |buf| leave.emit(buf)), Ok(()));
    assert_eq!(server.statistics().jobs[0].waiting_workers, 1);
    let now = Leave { life: 0, ..leave };
    assert_eq!(gives(&mut server, |buf| now.emit(buf)), Ok(()));
    assert_eq!(server.statistics().jobs[0].waiting_workers, 0);
}

#[test]
fn a_worker_at_whose_address_another_session_joins_is_dead() {
    let mut server = AtpServer::new(ServerConfig::default(), 5).unwrap();
    let alone = Join { workers: 1, ..join(0) };
    assert_eq!(gives(&mut server, |buf| alone.emit(buf)), Ok(()));
    told(&mut server);
    // Behind a switch there are many workers.
    let behind = Join { session: Session(8), switches: [9, 0, 0, 0], ..alone };
    let _ = gives(&mut server, |buf| behind.emit(buf));
    assert_eq!(told(&mut server).0, None);
    let successor = Join { session: Session(9), ..alone };
    assert_eq!(gives(&mut server, |buf| successor.emit(buf)), Ok(()));
    assert_eq!(told(&mut server).0, Some(Reason::Dead));
}
