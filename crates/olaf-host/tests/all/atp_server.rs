//! What a stranger may send to the server of ATP: without a proof of its address nobody becomes a member.

use olaf_engine::{DropReason, Engine, Instant, PeerId, PortId, Source, Verdict};
use olaf_host::Refused;
use olaf_host::collective::atp::{AtpServer, ServerConfig};
use olaf_wire::Session;
use olaf_wire::atp::{AtpPacket, Header, Join, Welcome};

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
