//! What each refusal and each limit costs, to the number: a fetch by segments, a line a second, a version that
//! nobody has.

use crate::hostile::{JOB, Pair, plain, taken};
use olaf_engine::party::{Clip, Limits};
use olaf_engine::{Engine, Event, Instant, PeerId, PortId, Source};
use olaf_host::{Refused, Server, ServerConfig};
use olaf_wire::{Answer, Fetch, Packet, Update};
use std::time::Duration;

const SEGMENTS: u32 = 100;

/// A server with a job of a hundred segments, and its one worker.
fn of_a_hundred() -> (Server, impl Fn(&mut Server, &Fetch) -> Result<(), Refused>) {
    let now = Instant(1_000_000_000);
    let address = olaf_samples::address(2, 0, 1);
    let source = Source::end(PeerId(1));
    let mut server = Server::new(ServerConfig::default(), 9).unwrap();
    let mut buf = [0; 512];
    let len = olaf_samples::join(address, SEGMENTS, 1).emit(&mut buf);
    taken(server.handle_packet(now, source, &buf[..len])).unwrap();
    for segment in 0..SEGMENTS {
        let offer = olaf_samples::offer(address, SEGMENTS);
        let offer = Answer { segment, segments: SEGMENTS, ..offer };
        let len = offer.emit(&[1.0], &mut buf);
        taken(server.handle_packet(now, source, &buf[..len])).unwrap();
    }
    let says = move |server: &mut Server, fetch: &Fetch| {
        let mut buf = [0; 512];
        let len = fetch.emit(&mut buf);
        taken(server.handle_packet(now, source, &buf[..len]))
    };
    (server, says)
}

#[test]
fn a_fetch_of_a_version_that_is_kept_costs_the_segments_that_it_asks_for() {
    // Four models and 256 segments at once.
    let most = 4 * SEGMENTS + 256;
    for (mask, segments) in [(1, 1), (0b1111, 4), (u64::MAX, 64)] {
        let (mut server, says) = of_a_hundred();
        let (version, _) = server.model(olaf_wire::JobId(2)).unwrap();
        let address = olaf_samples::address(2, 0, 1);
        let wish = Fetch { address, version, first: 0, mask, have_version: version };
        let answered = (0..2_000).take_while(|_| says(&mut server, &wish).is_ok()).count();
        assert_eq!(answered as u32, most / segments, "{segments} segments for each");
    }
}

#[test]
fn a_clipped_contribution_counts_each_time_and_is_told_once_a_second() {
    let mut pair = Pair::joined(plain(Limits { max_rate: Clip::Off, ..Limits::default() }));
    for worker in 20..24 {
        pair.enters(worker);
        pair.sends(worker, 1.0, |_| ()).unwrap();
    }
    let told = |pair: &mut Pair| {
        let events = std::iter::from_fn(|| pair.server.poll_event());
        events.filter(|event| matches!(event, Event::ContributionClipped(..))).count()
    };
    told(&mut pair);
    for (wait_ms, lines) in [(0, 1), (999, 0), (1, 1)] {
        pair.now = pair.now + Duration::from_millis(wait_ms);
        for _ in 0..10 {
            pair.sends(20, 1e30, |_| ()).unwrap();
        }
        assert_eq!(told(&mut pair), lines, "after {wait_ms} ms");
    }
    assert_eq!(pair.server.statistics(pair.now).jobs[0].clipped.norm, 30);
}

#[test]
fn what_was_computed_on_a_forged_version_names_a_version_that_the_server_has() {
    let mut pair = Pair::joined(plain(Limits::default()));
    pair.goes_on();
    let forged = pair.forged(|answer| answer.model_version = u32::MAX);
    pair.gives_worker(|buf| forged.emit(&[5.0], buf)).unwrap();
    assert_eq!(pair.worker.model().map(|model| model.version), Some(u32::MAX));
    // The learner computes on it; meanwhile the answer to a join says that there is no such version.
    pair.worker.taken(u32::MAX);
    pair.run(1_100);
    pair.worker.push(pair.now, &[&[1.0]], 0.0, 1.0).unwrap();
    let mut buf = [0; 512];
    let sent = pair.worker.poll_transmit(pair.now, PortId(0), &mut buf).unwrap();
    let update = Update::parse(&Packet::new_checked(&buf[..sent.len]).unwrap()).unwrap();
    let (version, _) = pair.server.model(JOB).unwrap();
    assert!(update.version_newest <= version, "{} of {version}", update.version_newest);
    assert_eq!(update.version_oldest, update.version_newest);
}

#[test]
fn a_leave_from_another_address_or_session_is_refused() {
    let mut pair = Pair::joined(plain(Limits::default()));
    pair.enters(8);
    let leave = olaf_wire::Leave { address: olaf_samples::address(JOB.0, 0, 8) };
    assert_eq!(pair.gives_server(9, |buf| leave.emit(buf)), Err(Refused::UnknownPeer));
    let mut other = leave;
    other.address.session.0 ^= 1;
    assert_eq!(pair.gives_server(8, |buf| other.emit(buf)), Err(Refused::UnknownPeer));
    pair.sends(8, 1.0, |_| ()).unwrap();
    pair.gives_server(8, |buf| leave.emit(buf)).unwrap();
    assert!(pair.sends(8, 1.0, |_| ()).is_err(), "it is gone");
}
