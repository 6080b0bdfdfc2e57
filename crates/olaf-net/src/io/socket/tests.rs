//! Sockets of both kinds on loopback.

use super::*;
use crate::io::statistics::IoStatistics;
use olaf_engine::TrafficClass;

#[test]
fn a_port_in_use_says_what_to_do() {
    let first = Socket::bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
    let error = Socket::bind(first.local()).expect_err("the port is taken");
    let text = error.to_string();
    assert!(text.contains(&first.local().to_string()) && text.contains("another port"), "{text}");
}

#[test]
fn a_wildcard_is_at_every_address_of_this_machine_and_no_other() {
    let socket = Socket::bind("0.0.0.0:0".parse().expect("an address")).expect("a free port");
    let port = socket.local().port();
    let at = |ip: &str, port| socket.is_at((ip.parse::<IpAddr>().expect("an IP"), port).into());
    assert!(at("127.0.0.1", port) && at("0.0.0.0", port));
    assert!(!at("127.0.0.1", port ^ 1));
    assert!(!at("192.0.2.1", port), "of the addresses for documentation");
    let socket = Socket::bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
    assert!(socket.is_at(socket.local()));
}

/// The address of this machine that reaches the first peer may not reach the second.
#[test]
fn a_socket_that_turns_to_another_peer_leaves_from_the_right_address() {
    let listen = |at: &str| {
        let peer = UdpSocket::bind((at, 0)).expect("a free port");
        peer.set_read_timeout(Some(core::time::Duration::from_secs(5))).expect("a time limit");
        let address = peer.local_addr().expect("an address");
        (peer, address)
    };
    let ((first, one), (second, other)) = (listen("::1"), listen("127.0.0.2"));
    for (from, to) in [(one, other), (other, one)] {
        let text = |address: SocketAddr| address.to_string();
        let both = Socket::towards_both(&text(from), &text(to), Socket::bind);
        let (socket, addresses, _) = both.expect("loopback has both families");
        assert_eq!(addresses, [from, to]);
        for peer in [from, to, from] {
            socket.turn_to(peer).expect("loopback");
            let here = socket.socket.local_addr().map(canonical).expect("an address");
            assert_eq!(here.is_ipv6(), peer.is_ipv6());
            let to = mapped(peer, socket.v6);
            socket.socket.send_to(b"here", to).expect("the peer is there");
            let listener = if peer == one { &first } else { &second };
            let (bytes, came_from) = listener.recv_from(&mut [0; 8]).expect("it comes");
            assert_eq!((bytes, canonical(came_from)), (4, here));
            listener.send_to(b"there", came_from).expect("the worker is there");
            let mut buf = [0; 8];
            let answer = (0..5000).find_map(|_| {
                let read = socket.socket.recv_from(&mut buf).ok();
                if read.is_none() {
                    std::thread::sleep(core::time::Duration::from_millis(1));
                }
                read
            });
            assert_eq!(answer.map(|(bytes, from)| (bytes, canonical(from))), Some((5, peer)));
        }
    }
}

fn socket(address: &str) -> Socket {
    Socket::bind(address.parse().expect("an address")).expect("a free port")
}

/// Sends eight datagrams in one call, the last of them shorter, and receives them.
fn passes(from: &Socket, to: &Socket, address: SocketAddr, class: TrafficClass) {
    let contents: Vec<u8> = (0..760u32).map(|at| (at / 100) as u8).collect();
    let batch = Batch { to: address, from: None, class, contents: &contents, segment: 100 };
    from.send(&batch).expect("a send");
    let mut lengths = Vec::new();
    let mut inbox = Inbox::new();
    while lengths.len() < 8 {
        received(to, &mut inbox);
        for burst in inbox.bursts() {
            assert_eq!(burst.class, class, "to {address}");
            assert_eq!(canonical(burst.from).port(), from.local().port());
            lengths.extend(burst.datagrams().map(|datagram| (datagram[0], datagram.len())));
        }
    }
    let expected: Vec<_> = (0..8).map(|at| (at, if at == 7 { 60 } else { 100 })).collect();
    assert_eq!(lengths, expected);
}

fn received(socket: &Socket, inbox: &mut Inbox) {
    let began = std::time::Instant::now();
    while let Err(error) = socket.receive(inbox) {
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(began.elapsed().as_secs() < 10, "nothing arrives");
        std::thread::yield_now();
    }
}

/// Pairs of a sender's address, a receiver's address, and the address that the sender writes: IPv4,
/// IPv6, and IPv4 by sockets that take both.
const PATHS: [(&str, &str, &str); 4] = [
    ("127.0.0.1:0", "127.0.0.1:0", "127.0.0.1"),
    ("[::1]:0", "[::1]:0", "::1"),
    ("[::]:0", "127.0.0.1:0", "127.0.0.1"),
    ("127.0.0.1:0", "[::]:0", "127.0.0.1"),
];

#[test]
fn every_socket_carries_the_two_bits_of_ecn() {
    for (from, to, ip) in PATHS {
        let (from, to) = (socket(from), socket(to));
        let address = SocketAddr::new(ip.parse().expect("an IP"), to.local().port());
        for ecn in 0..4 {
            passes(&from, &to, address, TrafficClass(ecn));
        }
    }
}

#[test]
fn what_a_socket_loses_on_purpose_is_the_same_for_the_same_seed() {
    let arrived = |seed| {
        let loss = Some(ReceiveLoss { probability: 0.3, seed });
        let (from, to) = (socket("127.0.0.1:0"), socket("127.0.0.1:0"));
        let to = to.losing(loss).expect("a share");
        let (mut inbox, mut statistics) = (Inbox::new(), IoStatistics::default());
        let mut arrived = Vec::new();
        for first in (0..240).step_by(8) {
            let contents: Vec<u8> = (first..first + 8).flat_map(|number| [number; 50]).collect();
            let class = TrafficClass::NONE;
            let batch =
                Batch { to: to.local(), from: None, class, contents: &contents, segment: 50 };
            from.send(&batch).expect("a send");
            let seen = |io: &IoStatistics| io.received_datagrams + io.lost_on_purpose;
            while seen(&statistics) < u64::from(first) + 8 {
                received(&to, &mut inbox);
                inbox.count(&mut statistics);
                arrived.extend(inbox.bursts().flat_map(|b| b.datagrams()).map(|d| d[0]));
            }
        }
        assert_eq!(statistics.received_datagrams, arrived.len() as u64);
        arrived
    };
    let (first, again, other) = (arrived(1), arrived(1), arrived(2));
    assert_eq!(first, again);
    assert_ne!(first, other);
    assert!((130..200).contains(&first.len()), "{} of 240 arrived", first.len());
}

#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod whole {
    use super::*;

    fn whole(address: &str) -> Socket {
        let address = address.parse().expect("an address");
        Socket::bind_whole_class(address).expect("a free port")
    }

    #[test]
    fn a_whole_class_socket_carries_all_256_classes() {
        for (from, to, ip) in PATHS {
            let (from, to) = (whole(from), whole(to));
            let address = SocketAddr::new(ip.parse().expect("an IP"), to.local().port());
            for class in 0..=255 {
                passes(&from, &to, address, TrafficClass(class));
            }
        }
    }

    #[test]
    fn the_two_kinds_of_socket_understand_each_other() {
        let (ecn, whole) = (socket("127.0.0.1:0"), whole("127.0.0.1:0"));
        passes(&ecn, &whole, whole.local(), TrafficClass(2));
        passes(&whole, &ecn, ecn.local(), TrafficClass(1));
    }

    #[test]
    fn classes_that_alternate_are_told_apart() {
        let (from, to) = (whole("127.0.0.1:0"), whole("127.0.0.1:0"));
        for class in 0..40 {
            let class = TrafficClass(class * 4);
            let contents = [class.0; 30];
            let batch =
                Batch { to: to.local(), from: None, class, contents: &contents, segment: 10 };
            from.send(&batch).expect("a send");
        }
        let (mut inbox, mut seen) = (Inbox::new(), Vec::new());
        while seen.len() < 120 {
            received(&to, &mut inbox);
            for burst in inbox.bursts() {
                for datagram in burst.datagrams() {
                    assert_eq!(datagram, [burst.class.0; 10]);
                    seen.push(burst.class.0);
                }
            }
        }
        assert_eq!(seen, (0..120).map(|at| at / 3 * 4).collect::<Vec<u8>>());
    }

    #[test]
    fn an_answer_leaves_from_the_address_that_was_asked() {
        for wildcard in ["0.0.0.0:0", "[::]:0"] {
            let (asker, answerer) = (whole("127.0.0.1:0"), whole(wildcard));
            let asked: SocketAddr = ([127, 0, 0, 5], answerer.local().port()).into();
            let class = TrafficClass(0x2e << 2);
            let mut batch =
                Batch { to: asked, from: None, class, contents: b"question", segment: 8 };
            asker.send(&batch).expect("a send");
            let mut inbox = Inbox::new();
            received(&answerer, &mut inbox);
            let question = inbox.bursts().next().expect("the question");
            batch.to = question.from;
            batch.from = answerer.reply_from(question.came_to);
            answerer.send(&batch).expect("an answer");
            received(&asker, &mut inbox);
            let answer = inbox.bursts().next().expect("the answer");
            assert_eq!((answer.from, answer.class), (asked, class), "{wildcard}");
        }
    }

    #[test]
    fn what_a_buffer_is_too_small_for_is_counted_and_not_taken_in() {
        let (from, to) = (whole("127.0.0.1:0"), whole("127.0.0.1:0"));
        let send = |contents: &[u8]| {
            let (to, class) = (to.local(), TrafficClass(3));
            let batch = Batch { to, from: None, class, contents, segment: contents.len() };
            from.send(&batch).expect("a send");
        };
        send(&[1; 65]);
        send(&[2; 64]);
        let (mut inbox, mut statistics) = (Inbox::with_buffers(64), IoStatistics::default());
        while statistics.received_datagrams == 0 {
            received(&to, &mut inbox);
            inbox.count(&mut statistics);
            assert!(inbox.bursts().flat_map(|b| b.datagrams()).all(|d| d == [2; 64]));
        }
        assert_eq!((statistics.truncated, statistics.ecn_marked), (1, 1));
    }

    #[test]
    fn an_empty_datagram_arrives_and_a_dead_port_is_told() {
        let (mut from, to) = (whole("127.0.0.1:0"), whole("127.0.0.1:0"));
        let class = TrafficClass(0xfe);
        let batch = Batch { to: to.local(), from: None, class, contents: b"", segment: 0 };
        from.send(&batch).expect("a send");
        let mut inbox = Inbox::new();
        received(&to, &mut inbox);
        let burst = inbox.bursts().next().expect("a datagram");
        assert_eq!((burst.datagrams().count(), burst.class), (1, class));
        let address = to.local();
        drop(to);
        from.connect(address).expect("a way");
        from.send(&batch).expect("a send");
        let began = std::time::Instant::now();
        let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        while !from.receive(&mut inbox).is_err_and(refused) {
            assert!(began.elapsed().as_secs() < 10, "nobody says that the port is dead");
        }
    }

    #[test]
    fn a_datagram_that_is_too_long_is_refused() {
        let (from, to) = (whole("127.0.0.1:0"), whole("127.0.0.1:0"));
        let contents = [0; 65_508];
        let class = TrafficClass::NONE;
        let batch =
            Batch { to: to.local(), from: None, class, contents: &contents, segment: 65_508 };
        let error = from.send(&batch).expect_err("an IPv4 packet has 65,535 bytes");
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::MSGSIZE.raw_os_error()));
    }
}

#[cfg(any(not(target_os = "linux"), feature = "portable"))]
#[test]
fn where_no_socket_carries_the_whole_class_the_error_says_so() {
    let address = "127.0.0.1:0".parse().expect("an address");
    let error = Socket::bind_whole_class(address).expect_err("only Linux has it");
    assert!(error.to_string().contains("run this role on Linux"), "{error}");
}
