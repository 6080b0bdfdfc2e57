//! A probe against a server, over a path whose delay, loss and size the test sets.

use super::*;
use crate::push_pull::{Server, ServerConfig};
use alloc::vec;
use olaf_wire::{ClusterId, JobId, Session, WorkerId};

const SERVER: PeerId = PeerId(1);
const PROBE: PeerId = PeerId(2);
/// The server's clock is this far ahead of the probe's.
const AHEAD: u64 = 7_000_000_000;

struct Path {
    one_way: Duration,
    /// This much longer for all but the first datagrams.
    later: Duration,
    /// Bytes of the longest datagram, up and down.
    longest: (usize, usize),
    /// Each datagram with a multiple of this number is lost; 0: none is lost.
    loses_one_of: usize,
    sent: usize,
}

impl Path {
    fn new(one_way_ms: u64) -> Self {
        let one_way = Duration::from_millis(one_way_ms);
        let later = Duration::ZERO;
        Self { one_way, later, longest: (70_000, 70_000), loses_one_of: 0, sent: 0 }
    }

    fn takes(&self) -> Duration {
        self.one_way + if self.sent > 10 { self.later } else { Duration::ZERO }
    }

    fn passes(&mut self, len: usize, longest: usize) -> bool {
        self.sent += 1;
        len <= longest && (self.loses_one_of == 0 || !self.sent.is_multiple_of(self.loses_one_of))
    }
}

fn config(questions: u32) -> ProbeConfig {
    let address =
        Address { job: JobId(1), cluster: ClusterId(0), worker: WorkerId(9), session: Session(5) };
    ProbeConfig {
        address,
        peer: SERVER,
        parameters: 1000,
        questions,
        every: Duration::from_millis(10),
        patience: Duration::from_secs(3),
        largest: MAX_DATAGRAM as u32,
        headers: 28,
    }
}

/// Lets the probe ask until it is done; what it found, and the server.
fn measured(config: ProbeConfig, path: &mut Path) -> (Findings, Server) {
    let mut server = Server::new(ServerConfig::default(), 77).expect("a server");
    let mut probe = Probe::new(config);
    let mut buf = vec![0; MAX_DATAGRAM];
    // Datagrams on the way: when they arrive, whether up, their order, their bytes.
    let mut agenda: BTreeMap<(u64, bool, usize), Vec<u8>> = BTreeMap::new();
    let (mut now, mut order) = (Instant(1_000_000_000), 0);
    probe.begin(now);
    for _ in 0..100_000 {
        while let Some(out) = probe.poll_transmit(now, PortId(0), &mut buf) {
            order += 1;
            if path.passes(out.len, path.longest.0) {
                let at = (now + path.takes()).0;
                agenda.insert((at, true, order), buf[..out.len].to_vec());
            }
        }
        if probe.is_done() && agenda.is_empty() {
            return (probe.findings(), server);
        }
        let arrives = agenda.keys().next().map(|(at, ..)| *at);
        let timer = probe.poll_timeout().map(|(at, _)| at.0);
        let Some(next) = arrives.into_iter().chain(timer).min() else { break };
        now = Instant(next.max(now.0));
        if arrives == Some(next) {
            let ((_, up, _), bytes) = agenda.pop_first().expect("it has a first");
            if !up {
                probe.handle_packet(now, Source::end(SERVER), &bytes);
                continue;
            }
            let theirs = Instant(now.0 + AHEAD);
            server.handle_packet(theirs, Source::end(PROBE), &bytes);
            while let Some(out) = server.poll_transmit(theirs, PortId(0), &mut buf) {
                order += 1;
                if path.passes(out.len, path.longest.1) {
                    let at = (now + path.takes()).0;
                    agenda.insert((at, false, order), buf[..out.len].to_vec());
                }
            }
        } else {
            probe.handle_timeout(now);
        }
    }
    panic!("the probe never ends: {:?}", probe.findings());
}

#[test]
fn round_trip_and_clock_are_those_of_the_path() {
    let (found, _) = measured(config(20), &mut Path::new(50));
    assert_eq!((found.asked, found.answered, found.duplicates), (20, 20, 0));
    assert_eq!(found.round_trip_min_ns, Some(100_000_000));
    assert_eq!(found.round_trip_max_ns, Some(100_000_000));
    assert_eq!(found.clock_offset_ns, 7_000_000_000);
    assert_eq!(found.clock_error_ns, Some(50_000_000));
    assert_eq!(found.wire_version, Some(offsets::VERSION));
}

#[test]
fn the_clock_is_that_of_the_shortest_round_trip_also_if_it_was_long_ago() {
    let mut path = Path { later: Duration::from_secs(1), ..Path::new(5) };
    let (found, _) = measured(config(100), &mut path);
    assert_eq!(found.round_trip_max_ns, Some(2_010_000_000));
    assert_eq!(found.clock_error_ns, Some(5_000_000));
}

#[test]
fn the_size_is_that_of_the_narrower_direction() {
    for (up, down, mtu) in [(1472, 9000, 1500), (9000, 1372, 1400), (1460, 1460, 1450)] {
        let (found, _) = measured(config(5), &mut Path { longest: (up, down), ..Path::new(1) });
        assert_eq!(found.mtu_bytes, Some(mtu), "{up} up, {down} down");
    }
    let (found, _) = measured(config(5), &mut Path::new(1));
    assert_eq!(found.mtu_bytes, Some(found.system_mtu_bytes));
}

#[test]
fn loss_is_counted_and_is_not_taken_for_a_size() {
    let mut path = Path { loses_one_of: 10, longest: (1472, 1472), ..Path::new(20) };
    let (found, _) = measured(config(500), &mut path);
    let lost = found.asked - found.answered;
    // A question and its answer are lost independently: 1 - 0.9 * 0.9 would be 95.
    assert!((80..=105).contains(&lost), "{lost} of 500");
    assert_eq!(found.mtu_bytes, Some(1500));
}

#[test]
fn nobody_is_let_in_and_no_job_begins() {
    let (_, server) = measured(config(20), &mut Path::new(1));
    let told = crate::json::of(&|_| "peer".into(), |to| {
        server.report(Instant(AHEAD + 2_000_000_000), to);
    });
    assert_eq!(told["jobs"].as_array().map(Vec::len), Some(0), "{told}");
}

#[test]
fn without_an_answer_it_ends_in_time_and_does_not_leave() {
    let mut path = Path { longest: (0, 0), ..Path::new(1) };
    let (found, _) = measured(config(20), &mut path);
    assert_eq!((found.asked, found.wire_version, found.mtu_bytes), (0, None, None));
    assert!(path.sent < 12, "{} datagrams", path.sent);
}

#[test]
fn an_answer_that_was_not_asked_for_is_refused() {
    let mut probe = Probe::new(config(1));
    probe.begin(Instant(1));
    probe.handle_timeout(Instant(1));
    let mut buf = vec![0; 2000];
    probe.poll_transmit(Instant(1), PortId(0), &mut buf).expect("a question");
    let (_, mut server) = measured(config(1), &mut Path::new(1));
    let packet = Packet::new_checked(&buf[..offsets::join::LEN]).expect("a packet");
    let join = Join { sent_at_ns: 99, ..Join::parse(&packet).expect("a join") };
    let len = join.emit(&mut buf);
    server.handle_packet(Instant(5), Source::end(PROBE), &buf[..len]);
    let out = server.poll_transmit(Instant(5), PortId(0), &mut buf).expect("an answer");
    let verdict = probe.handle_packet(Instant(6), Source::end(SERVER), &buf[..out.len]);
    assert_eq!(verdict, Verdict::refused(Refused::NotAsked));
    let stranger = probe.handle_packet(Instant(6), Source::end(PROBE), &buf[..out.len]);
    assert_eq!(stranger, Verdict::refused(Refused::UnknownPeer));
}
