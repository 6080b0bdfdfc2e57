//! Runs meet a wire that notes what it was given, and says no when told to.

use super::*;
use olaf_engine::TrafficClass;
use std::cell::{Cell, RefCell};

#[derive(Default)]
struct Noted {
    segments: usize,
    /// Sends to accept before the wire is full.
    room: Cell<Option<usize>>,
    errors: RefCell<Vec<Errno>>,
    sends: RefCell<Vec<(u16, Vec<u8>, usize)>>,
    /// The traffic class of each send.
    classes: RefCell<Vec<TrafficClass>>,
}

impl BatchSender for Noted {
    fn segments_per_send(&self) -> usize {
        self.segments
    }

    fn send(&self, batch: &Batch<'_>) -> io::Result<()> {
        if let Some(error) = self.errors.borrow_mut().pop() {
            return Err(error.into());
        }
        match self.room.get() {
            Some(0) => return Err(io::ErrorKind::WouldBlock.into()),
            Some(room) => self.room.set(Some(room - 1)),
            None => {}
        }
        let Batch { to, contents, segment, class, .. } = *batch;
        self.sends.borrow_mut().push((to.port(), contents.to_vec(), segment));
        self.classes.borrow_mut().push(class);
        Ok(())
    }
}

struct Bench {
    wire: Noted,
    out: Outgoing,
    peers: Peers,
    statistics: IoStatistics,
}

impl Bench {
    fn new(segments: usize) -> Self {
        let mut peers = Peers::new();
        for port in 0..40 {
            peers.id(SocketAddr::from(([127, 0, 0, 1], port)), None);
        }
        let wire = Noted { segments, ..Noted::default() };
        Self { wire, out: Outgoing::new(), peers, statistics: IoStatistics::default() }
    }

    fn take(&mut self, peer: u32, fill: u8, len: usize) -> bool {
        self.take_in(TrafficClass::NONE, peer, fill, len)
    }

    fn take_in(&mut self, class: TrafficClass, peer: u32, fill: u8, len: usize) -> bool {
        self.out.take(&self.wire, &self.peers, &mut self.statistics, |buf| {
            buf[..len].fill(fill);
            Some(Transmit { class, ..Transmit::to(PeerId(peer), len) })
        })
    }

    fn flush(&mut self) -> bool {
        self.out.flush(&self.wire, &mut self.statistics)
    }

    /// What each peer got: the first byte and length of each datagram, in order.
    fn got(&self, peer: u16) -> Vec<(u8, usize)> {
        let sends = self.wire.sends.borrow();
        let to_peer = sends.iter().filter(|(port, ..)| *port == peer);
        to_peer
            .flat_map(|(_, bytes, segment)| bytes.chunks(*segment).map(|d| (d[0], d.len())))
            .collect()
    }

    fn calls(&self) -> usize {
        self.wire.sends.borrow().len()
    }
}

#[test]
fn equal_datagrams_to_one_peer_leave_in_one_send() {
    let mut bench = Bench::new(64);
    for fill in 0..6 {
        assert!(bench.take(1, fill, 8960));
    }
    // A shorter one may be the last.
    assert!(bench.take(1, 6, 100));
    assert!(bench.flush());
    assert_eq!(bench.calls(), 1);
    assert_eq!(bench.got(1).len(), 7);
    assert_eq!(bench.statistics.sent_datagrams, 7);
    assert!(bench.out.is_empty());
}

#[test]
fn a_probe_leaves_by_itself() {
    let mut bench = Bench::new(64);
    let join = olaf_samples::join(olaf_samples::address(1, 0, 7), 1, 10);
    for filled_up_to in [1472, 0, 0] {
        assert!(bench.out.take(&bench.wire, &bench.peers, &mut bench.statistics, |buf| {
            let len = join.emit(buf);
            buf[len..].fill(0);
            Some(Transmit::to(PeerId(1), len.max(filled_up_to)))
        }));
    }
    assert!(bench.flush());
    let sends: Vec<usize> =
        bench.wire.sends.borrow().iter().map(|(_, bytes, _)| bytes.len()).collect();
    assert_eq!(sends[0], 1472);
    assert_eq!(sends.len(), 2, "joins that are no probes leave together");
}

#[test]
fn a_send_is_never_larger_than_a_datagram_may_be() {
    let mut bench = Bench::new(64);
    for fill in 0..100 {
        assert!(bench.take(1, fill, 8960));
    }
    assert!(bench.flush());
    assert!(bench.wire.sends.borrow().iter().all(|(_, bytes, _)| bytes.len() <= MAX_DATAGRAM));
    assert_eq!(bench.got(1), (0..100).map(|fill| (fill, 8960)).collect::<Vec<_>>());
    assert_eq!(bench.calls(), 15);
}

#[test]
fn segments_are_limited_in_number() {
    let mut bench = Bench::new(1000);
    for _ in 0..130 {
        assert!(bench.take(1, 0, 10));
    }
    assert!(bench.flush());
    assert_eq!(bench.calls(), 3);
}

#[test]
fn without_offload_each_datagram_leaves_by_itself() {
    let mut bench = Bench::new(1);
    for fill in 0..5 {
        assert!(bench.take(1, fill, 50));
    }
    assert!(bench.flush());
    assert_eq!(bench.calls(), 5);
}

#[test]
fn what_fans_out_to_many_peers_is_collected_for_each() {
    let mut bench = Bench::new(64);
    for fill in 0..6 {
        for peer in 0..16 {
            assert!(bench.take(peer, fill, 8000));
        }
    }
    assert!(bench.flush());
    assert_eq!(bench.calls(), 16);
    for peer in 0..16 {
        assert_eq!(bench.got(peer), (0..6).map(|fill| (fill, 8000)).collect::<Vec<_>>());
    }
}

#[test]
fn datagrams_of_different_classes_never_share_a_send_and_stay_in_order() {
    let mut bench = Bench::new(64);
    let class = |fill: u8| TrafficClass(4 * (fill / 3));
    for fill in 0..12 {
        for peer in 0..3 {
            assert!(bench.take_in(class(fill), peer, fill, 500));
        }
    }
    assert!(bench.flush());
    assert_eq!(bench.calls(), 12, "one send for each peer and class");
    for peer in 0..3 {
        assert_eq!(bench.got(peer), (0..12).map(|fill| (fill, 500)).collect::<Vec<_>>());
    }
    let (sends, classes) = (bench.wire.sends.borrow(), bench.wire.classes.borrow());
    for ((_, bytes, _), sent_in) in sends.iter().zip(classes.iter()) {
        assert!(bytes.iter().all(|fill| class(*fill) == *sent_in));
    }
}

#[test]
fn a_group_gets_its_datagram_in_its_class() {
    let mut bench = Bench::new(64);
    let class = TrafficClass(0xb9);
    let to = Receivers::Many((1..=3).map(PeerId).collect());
    let mut written = Some(Transmit { to, len: 80, class });
    let Bench { wire, out, peers, statistics } = &mut bench;
    while out.take(wire, peers, statistics, |_| written.take()) {}
    assert!(bench.flush());
    assert_eq!(*bench.wire.classes.borrow(), [class; 3]);
}

#[test]
fn more_peers_than_runs_all_get_theirs_in_order() {
    let mut bench = Bench::new(64);
    for fill in 0..5 {
        for peer in 0..40 {
            assert!(bench.take(peer, fill, 100 + usize::from(fill)));
        }
    }
    assert!(bench.flush());
    for peer in 0..40 {
        let expected: Vec<_> = (0..5).map(|fill| (fill, 100 + usize::from(fill))).collect();
        assert_eq!(bench.got(peer), expected, "peer {peer}");
    }
}

#[test]
fn nothing_is_lost_when_the_socket_is_full_at_any_point() {
    for room in 0..12 {
        let mut bench = Bench::new(64);
        bench.wire.room.set(Some(room));
        let mut taken: Vec<Vec<(u8, usize)>> = vec![Vec::new(); 40];
        for step in 0..120u8 {
            let peer = u32::from(step) * 7 % 20;
            let len = 3000 + usize::from(step % 5) * 4000;
            if !bench.take(peer, step, len) {
                assert!(bench.out.is_blocked());
                assert!(!bench.flush(), "still full");
                bench.wire.room.set(Some(room + 3));
                while !bench.flush() {
                    bench.wire.room.set(Some(1));
                }
                assert!(bench.take(peer, step, len));
            }
            taken[peer as usize].push((step, len));
        }
        bench.wire.room.set(None);
        assert!(bench.flush());
        for (peer, expected) in taken.iter().enumerate() {
            let got = bench.got(u16::try_from(peer).expect("few peers"));
            assert_eq!(&got, expected, "room {room}, peer {peer}");
        }
        assert_eq!(bench.statistics.sent_datagrams, 120);
    }
}

#[test]
fn where_offload_fails_each_datagram_is_tried_and_the_failing_ones_are_counted() {
    let mut bench = Bench::new(64);
    for fill in 0..3 {
        assert!(bench.take(1, fill, 9000));
    }
    // Popped from the end: the whole run, then the first datagram, fail.
    bench.wire.errors.replace(vec![Errno::MSGSIZE, Errno::MSGSIZE]);
    assert!(bench.flush());
    assert_eq!(bench.got(1), [(1, 9000), (2, 9000)]);
    assert_eq!((bench.statistics.send_errors, bench.statistics.too_large), (1, 1));
    let trouble = bench.out.poll_trouble().expect("told");
    assert!(trouble.advice().contains("mtu_bytes") && trouble.bytes == 9000);
}

#[test]
fn what_a_router_says_of_a_longer_datagram_costs_the_next_one_nothing() {
    let mut bench = Bench::new(64);
    assert!(bench.take(1, 1, 72));
    // The answer to a longer one that left before.
    bench.wire.errors.replace(vec![Errno::MSGSIZE]);
    assert!(bench.flush());
    assert_eq!(bench.got(1), [(1, 72)]);
    assert_eq!((bench.statistics.send_errors, bench.statistics.too_large), (0, 0));
    assert!(bench.out.poll_trouble().is_none());
    // What is too long itself is so a second time.
    assert!(bench.take(1, 2, 72));
    bench.wire.errors.replace(vec![Errno::MSGSIZE, Errno::MSGSIZE]);
    assert!(bench.flush());
    assert_eq!((bench.statistics.send_errors, bench.statistics.too_large), (1, 1));
    assert!(bench.out.poll_trouble().is_some());
}

#[test]
fn a_dead_peer_costs_nothing_but_a_count() {
    let mut bench = Bench::new(64);
    assert!(bench.take(1, 1, 10));
    bench.wire.errors.replace(vec![Errno::CONNREFUSED]);
    assert!(bench.flush());
    assert_eq!(bench.got(1), [(1, 10)]);
    assert_eq!(bench.statistics.connection_refused, 1);
}

#[test]
fn a_peer_that_was_forgotten_is_counted() {
    let mut bench = Bench::new(64);
    assert!(bench.take(1000, 1, 10));
    assert!(bench.take(1, 2, 10));
    assert!(bench.flush());
    assert_eq!((bench.statistics.unroutable, bench.got(1)), (1, vec![(2, 10)]));
}

#[test]
fn a_datagram_for_a_group_reaches_each_receiver_though_the_socket_is_full_meanwhile() {
    let mut bench = Bench::new(64);
    let group: Vec<PeerId> = (1..=30).map(PeerId).collect();
    let mut written =
        Some(Transmit { to: Receivers::Many(group.into()), len: 700, class: TrafficClass::NONE });
    bench.wire.room.set(Some(3));
    let mut write = |buf: &mut [u8]| {
        buf[..700].fill(9);
        written.take()
    };
    let Bench { wire, out, peers, statistics } = &mut bench;
    while out.take(wire, peers, statistics, &mut write) {}
    assert!(out.is_blocked() && !out.is_empty(), "more receivers than runs, and no room");
    wire.room.set(None);
    while !out.is_empty() {
        out.flush(wire, statistics);
        while out.take(wire, peers, statistics, &mut write) {}
    }
    assert!((1..=30).all(|peer| bench.got(peer) == [(9, 700)]));
    assert_eq!(bench.statistics.sent_datagrams, 30);
}

#[test]
fn a_message_that_comes_while_a_group_is_on_its_way_is_taken_too() {
    let mut bench = Bench::new(64);
    let group: Vec<PeerId> = (1..=5).map(PeerId).collect();
    let to_all =
        Transmit { to: Receivers::Many(group.into()), len: 700, class: TrafficClass::NONE };
    let Bench { wire, out, peers, statistics } = &mut bench;
    assert!(out.take(wire, peers, statistics, |buf| {
        buf[..700].fill(9);
        Some(to_all)
    }));
    assert!(out.take(wire, peers, statistics, |buf| {
        buf[..10].fill(7);
        Some(Transmit::to(PeerId(6), 10))
    }));
    assert!(bench.flush());
    assert!((1..=5).all(|peer| bench.got(peer) == [(9, 700)]));
    assert_eq!(bench.got(6), [(7, 10)]);
}

#[test]
fn a_long_datagram_for_a_group_leaves_at_once_and_goes_on_when_the_socket_has_room() {
    let mut bench = Bench::new(64);
    let to: Vec<PeerId> = (1..=4).map(PeerId).collect();
    let to_all = |fill: u8| {
        let to = Receivers::Many(to.clone().into());
        move |buf: &mut [u8]| {
            buf[..60_000].fill(fill);
            Some(Transmit { to, len: 60_000, class: TrafficClass::NONE })
        }
    };
    let Bench { wire, out, peers, statistics } = &mut bench;
    assert!(out.take(wire, peers, statistics, to_all(1)));
    assert!(out.is_empty(), "it left");
    wire.room.set(Some(1));
    assert!(out.take(wire, peers, statistics, to_all(2)));
    assert!(out.is_blocked() && !out.is_empty());
    wire.room.set(None);
    while !out.is_empty() {
        out.flush(wire, statistics);
        out.take(wire, peers, statistics, |_| None);
    }
    assert!((1..=4).all(|peer| bench.got(peer) == [(1, 60_000), (2, 60_000)]));
    assert_eq!(bench.calls(), 8);
    assert_eq!(bench.statistics.sent_datagrams, 8);
}
