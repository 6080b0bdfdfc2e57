//! An engine that echoes, in a driver, in a thread.

use super::*;
use crate::error::AskError;
use crate::io::peers::Peers;
use crate::io::socket::Socket;
use crate::keys::{Key, KeySet};
use olaf_engine::Transmit;
use olaf_engine::{Event, Report, Why};
use serde_json::{Value, json};
use std::net::UdpSocket;

/// An answer takes less than this.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends back what it gets; breaks on "break".
#[derive(Default)]
struct Echo(Vec<(PeerId, Vec<u8>)>);

impl Engine for Echo {
    fn handle_packet(&mut self, _: Instant, from: Source, bytes: &[u8]) -> Verdict {
        assert_ne!(bytes, b"break", "told to");
        self.0.push((from.peer, bytes.to_vec()));
        Verdict::Absorb
    }
    fn poll_transmit(&mut self, _: Instant, _: PortId, buf: &mut [u8]) -> Option<Transmit> {
        let (peer, bytes) = self.0.pop()?;
        buf[..bytes.len()].copy_from_slice(&bytes);
        Some(Transmit::to(peer, bytes.len()))
    }
    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        None
    }
    fn handle_timeout(&mut self, _: Instant) {}
    fn poll_event(&mut self) -> Option<Event> {
        None
    }
    fn peers(&self, _: &mut dyn FnMut(PeerId)) {}
    fn report(&self, _: Instant, _: &mut dyn Report) {}
}

fn driver_of(socket: Socket) -> Driver<Echo> {
    Driver::new("echo", Echo::default(), Wiring::end(), Peers::new(), socket)
}

fn echo() -> (Running<Echo>, UdpSocket) {
    let socket = Socket::bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let running = Running::new(driver_of(socket), None);
    let plain = UdpSocket::bind("127.0.0.1:0").expect("a port");
    plain.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    plain.connect(running.address()).expect("loopback");
    (running, plain)
}

#[test]
fn it_answers_before_while_and_after_it_runs() {
    let (running, plain) = echo();
    let role = |running: &Running<Echo>| {
        let text = running.ask(Driver::statistics).expect("an answer");
        let all: Value = serde_json::from_str(&text).expect("JSON");
        (all["role"].clone(), all["io"]["received_datagrams"].as_u64())
    };
    assert_eq!(role(&running), ("echo".into(), Some(0)));
    running.start().expect("a thread");
    running.start().expect("it runs already");
    plain.send(b"hello").expect("loopback");
    let mut buf = [0; 10];
    assert_eq!(plain.recv(&mut buf).expect("an echo"), 5);
    assert_eq!(role(&running), ("echo".into(), Some(1)));
    running.stop().expect("it stops");
    running.stop().expect("it has stopped");
    assert_eq!(role(&running), ("echo".into(), Some(1)));
    assert!(running.start().is_err_and(|error| error.to_string().contains("make a new one")));
    UdpSocket::bind(running.address()).expect("its port is free");
}

#[test]
fn a_panic_of_its_thread_is_told_to_whoever_asks() {
    let (running, plain) = echo();
    running.start().expect("a thread");
    plain.send(b"break").expect("loopback");
    let began = std::time::Instant::now();
    let died = loop {
        match running.ask(Driver::statistics) {
            Ok(_) if began.elapsed() > PATIENCE => panic!("its thread lives on"),
            Ok(_) => std::thread::yield_now(),
            Err(error) => break error,
        }
    };
    assert!(matches!(&died, AskError::Died(why) if why.contains("told to")), "{died}");
    assert!(matches!(running.stop(), Err(AskError::Died(_))));
}

#[test]
fn an_engine_behind_keys_hears_only_who_has_one() {
    let socket = Socket::bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let key = Key::generate(None);
    let keys =
        |key: &Key| Some(Box::new(KeySet::new(std::slice::from_ref(key))) as Box<dyn Secrets>);
    let running = Running::new(driver_of(socket).behind(keys(&key.for_switch())), None);
    running.start().expect("a thread");
    let plain = UdpSocket::bind("127.0.0.1:0").expect("a port");
    plain.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    plain.connect(running.address()).expect("loopback");
    plain.send(b"break").expect("loopback");
    plain.send(&[b'x'; 200]).expect("loopback");
    let echo = PeerId(0);
    let mut end = Sealed::with_keys(Echo::default(), keys(&key).expect("a key"));
    end.set_above(echo);
    end.0.push((echo, b"hello".to_vec()));
    let mut buf = vec![0; 1 << 16];
    loop {
        while let Some(sent) = end.poll_transmit(clock::now(), PortId(0), &mut buf) {
            plain.send(&buf[..sent.len]).expect("loopback");
        }
        let len = plain.recv(&mut buf).expect("an answer");
        end.handle_packet(clock::now(), Source::end(echo), &buf[..len]);
        if !end.0.is_empty() {
            break;
        }
    }
    assert_eq!(end.0[0].1, b"hello");
    let text = running.ask(Driver::statistics).expect("an answer");
    let all: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(all["keys"]["opened"], 1, "{all}");
    // The longer one also got the hint that no such association is known.
    assert_eq!(all["keys"]["refused"], json!({"no_seal": 1, "unknown_association": 1}), "{all}");
}

#[test]
fn an_engine_among_known_peers_hears_no_stranger() {
    let socket = Socket::bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let to = socket.local();
    let [known, stranger] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a port"));
    known.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut peers = Peers::new();
    peers.fix(known.local_addr().expect("it is bound"));
    let shared = shared::Shared::among(socket, peers, Echo::default(), None, &[]).expect("a waker");
    std::thread::scope(|scope| {
        scope.spawn(|| shared.run());
        for _ in 0..100 {
            stranger.send_to(b"break", to).expect("loopback");
        }
        known.send_to(b"hello", to).expect("loopback");
        let mut buf = [0; 10];
        let heard = known.recv_from(&mut buf);
        shared.stop();
        assert_eq!(heard.expect("an echo"), (5, to));
    });
    let io = shared.io_statistics();
    assert_eq!((io.received_datagrams, io.not_opened), (101, 100), "{io:?}");
}

#[test]
fn what_is_lent_leaves_before_the_call_ends_and_only_where_nobody_else_sends() {
    let socket = Socket::bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let plain = UdpSocket::bind("127.0.0.1:0").expect("a port");
    plain.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut peers = Peers::new();
    let peer = peers.fix(plain.local_addr().expect("it is bound"));
    let shared = shared::Shared::among(socket, peers, Echo::default(), None, &[]).expect("a waker");
    let lent = b"lent".to_vec();
    let lend = || {
        shared.send_lent(
            |echo| {
                echo.0.push((peer, b"its own".to_vec()));
                Ok::<_, ()>(lent.as_slice())
            },
            |echo, lent, now, buf| {
                let own = echo.poll_transmit(now, PortId(0), buf)?;
                buf[own.len..own.len + lent.len()].copy_from_slice(lent);
                Some(Transmit::to(peer, own.len + lent.len()))
            },
            |echo, lent| echo.0.push((peer, lent.to_vec())),
        )
    };
    assert_eq!(lend(), Some(Ok(lent.as_slice())));
    let mut buf = [0; 20];
    let mut next = || plain.recv(&mut buf).map(|len| buf[..len].to_vec()).expect("a datagram");
    assert_eq!((next(), next()), (b"its ownlent".to_vec(), b"lent".to_vec()));
    shared.while_sending(|| assert_eq!(lend(), None));
    assert!(shared.with(|echo| echo.0.is_empty()), "nothing was done");
    let failed = shared.send_lent(|_| Err::<(), _>("no"), |_, (), _, _| None, |_, ()| ());
    assert_eq!(failed, Some(Err("no")));
    assert_eq!(lend(), Some(Ok(lent.as_slice())), "a failure holds nothing");
}
