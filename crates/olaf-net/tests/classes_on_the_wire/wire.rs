//! The processes of the test.

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, socket};
use olaf_engine::TrafficClass;
use olaf_net::{Batch, Inbox, Socket, StartError};
use std::io::{BufRead, BufReader, Write, stdin};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Which process of the test this one is.
pub(super) const ROLE: &str = "OLAF_CLASSES_ROLE";
const REQUIRED: &str = "OLAF_REQUIRE_NAMESPACES";

type Bind = fn(SocketAddr) -> Result<Socket, StartError>;

/// The receiver's sockets; whether they carry the whole class.
const RECEIVERS: [(&str, bool); 4] =
    [("[::]:7001", true), ("0.0.0.0:7002", true), ("[::]:7003", false), ("0.0.0.0:7004", false)];

/// The sender's address, the receiver's address, the version of the IP header. The middle one is
/// IPv4 out of an IPv6 socket.
const PATHS: [(&str, &str, u8); 3] =
    [("0.0.0.0:0", "10.78.0.2", 4), ("[::]:0", "10.78.0.2", 4), ("[::]:0", "fd78::2", 6)];

/// Class alone, ECN alone, both, and the ends of the range.
const CLASSES: [u8; 12] = [0, 1, 2, 3, 4, 0x28, 0xb8, 0xb9, 0xba, 0xbb, 0xfc, 0xff];

/// Bytes of a datagram.
const BYTES: usize = 200;
const UDP: u8 = 17;

/// Starts the sender in namespaces of its own.
pub(super) fn start() -> ExitCode {
    let possible = Command::new("unshare").args(["-rn", "ip", "link"]).output();
    let reason = match possible {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Some(format!("unshare: {error}")),
    };
    if let Some(reason) = reason {
        let required = std::env::var_os(REQUIRED).is_some();
        let word = if required { "FAILED" } else { "SKIPPED" };
        eprintln!(
            "classes_on_the_wire: {word}: this machine makes no network namespaces for us: {reason}"
        );
        return ExitCode::from(u8::from(required));
    }
    let own = std::env::current_exe().expect("this program has a path");
    let status = Command::new("unshare").arg("-rn").arg(own).env(ROLE, "sender").status();
    if status.expect("unshare was just there").success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Sends each case, and compares what the receiver says.
pub(super) fn send() {
    let own = std::env::current_exe().expect("this program has a path");
    let mut receiver = Command::new("unshare")
        .arg("-n")
        .arg(own)
        .env(ROLE, "receiver")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("unshare was just there");
    let mut tell = receiver.stdin.take().expect("piped");
    let mut answers = BufReader::new(receiver.stdout.take().expect("piped")).lines();
    let mut answer = move || answers.next().expect("the receiver lives").expect("text");
    assert_eq!(answer(), "there");
    let id = receiver.id().to_string();
    ip(&["link", "add", "left", "type", "veth", "peer", "name", "right", "netns", &id]);
    set_up("left", "10.78.0.1/24", "fd78::1/64");
    writeln!(tell, "go").expect("the receiver lives");
    assert_eq!(answer(), "ready");
    let mut case = 0u32;
    for splits in [false, true] {
        if splits {
            // The device takes one segment at a time: the kernel splits what is sent in one call,
            // and the capture sees each header.
            ip(&["link", "set", "left", "gso_max_segs", "1"]);
        }
        for (bind, whole) in [(Socket::bind as Bind, false), (Socket::bind_whole_class, true)] {
            for (local, remote, version) in PATHS {
                let socket = bind(local.parse().expect("an address")).expect("a free port");
                for (at, (listens, hears_all)) in RECEIVERS.iter().enumerate() {
                    if version == 6 && listens.starts_with('0') {
                        continue;
                    }
                    for class in CLASSES {
                        for count in [1, 5] {
                            case += 1;
                            let port = 7001 + u16::try_from(at).expect("few receivers");
                            let to = SocketAddr::new(remote.parse().expect("an IP"), port);
                            writeln!(tell, "{case} {count} {at}").expect("the receiver lives");
                            send_case(&socket, to, class, case, count);
                            let on_wire = if whole { class } else { class & 3 };
                            let heard = if *hears_all { on_wire } else { on_wire & 3 };
                            let packets = if splits { count } else { 1 };
                            assert_eq!(
                                answer(),
                                Seen { version, on_wire, packets, heard, count }.to_string(),
                                "from {local} to {to}, class {class:#04x}, {count} datagrams, \
                                 whole class: {whole}, split by the kernel: {splits}"
                            );
                        }
                    }
                }
            }
        }
    }
    drop(tell);
    assert!(receiver.wait().expect("it ends").success());
    println!("classes_on_the_wire: {case} cases, all as sent");
}

fn send_case(socket: &Socket, to: SocketAddr, class: u8, case: u32, count: usize) {
    let mut contents = vec![0; count * BYTES];
    for datagram in contents.chunks_mut(BYTES) {
        datagram[..4].copy_from_slice(&case.to_be_bytes());
    }
    let class = TrafficClass(class);
    let batch = Batch { to, from: None, class, contents: &contents, segment: BYTES };
    socket.send(&batch).expect("a send");
}

/// What the receiver saw of a case.
#[derive(Default)]
struct Seen {
    version: u8,
    on_wire: u8,
    packets: usize,
    heard: u8,
    count: usize,
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { version, on_wire, packets, heard, count } = self;
        write!(
            f,
            "IPv{version}, on the wire {on_wire:#04x} in {packets} packets, received {heard:#04x} \
             in {count} datagrams"
        )
    }
}

/// Captures and receives each case that a line of the standard input announces.
pub(super) fn receive() {
    println!("there");
    let mut lines = stdin().lines();
    lines.next().expect("the sender lives").expect("text");
    set_up("right", "10.78.0.2/24", "fd78::2/64");
    let capture = socket(
        AddressFamily::Packet,
        SockType::Datagram,
        SockFlag::SOCK_NONBLOCK,
        SockProtocol::EthAll,
    )
    .expect("a packet socket in a namespace of our own");
    let sockets = RECEIVERS.map(|(listens, whole)| {
        let bind = if whole { Socket::bind_whole_class } else { Socket::bind };
        bind(listens.parse().expect("an address")).expect("a free port")
    });
    println!("ready");
    for line in lines {
        let line = line.expect("text");
        let numbers: Vec<usize> =
            line.split(' ').map(|number| number.parse().expect("a number")).collect();
        let [case, count, at] = numbers[..] else { panic!("{line:?}: three numbers") };
        println!("{}", look(&capture, &sockets[at], u32::try_from(case).expect("small"), count));
    }
}

/// Waits for a case's datagrams, on the wire and in the socket.
fn look(capture: &OwnedFd, socket: &Socket, case: u32, count: usize) -> Seen {
    let mut seen = Seen::default();
    let mut captured = 0;
    let mut inbox = Inbox::new();
    let began = Instant::now();
    let is_of_case = |payload: &[u8]| payload.starts_with(&case.to_be_bytes());
    while (captured < count || seen.count < count) && began.elapsed() < Duration::from_secs(5) {
        if let Some((version, class, payload)) = packet(capture)
            && is_of_case(&payload)
        {
            (seen.version, seen.on_wire) = (version, class);
            seen.packets += 1;
            captured += payload.len() / BYTES;
        }
        if socket.receive(&mut inbox).is_ok() {
            for burst in inbox.bursts() {
                seen.heard = burst.class.0;
                seen.count += burst.datagrams().filter(|datagram| is_of_case(datagram)).count();
            }
        }
    }
    seen
}

/// The next UDP packet on the wire: IP version, traffic class, payload.
fn packet(capture: &OwnedFd) -> Option<(u8, u8, Vec<u8>)> {
    let mut buf = vec![0; 1 << 16];
    let len = match recv(capture.as_raw_fd(), &mut buf, MsgFlags::empty()) {
        Ok(len) => len,
        Err(Errno::EAGAIN) => return None,
        Err(error) => panic!("the capture fails: {error}"),
    };
    let bytes = &buf[..len];
    let (class, protocol, header) = match bytes.first()? >> 4 {
        4 => (bytes[1], bytes[9], usize::from(bytes[0] & 0xf) * 4),
        6 => (bytes[0] << 4 | bytes[1] >> 4, bytes[6], 40),
        _ => return None,
    };
    (protocol == UDP).then(|| (bytes[0] >> 4, class, bytes[header + 8..].to_vec()))
}

fn set_up(device: &str, v4: &str, v6: &str) {
    ip(&["link", "set", "lo", "up"]);
    ip(&["addr", "add", v4, "dev", device]);
    ip(&["addr", "add", v6, "dev", device, "nodad"]);
    ip(&["link", "set", device, "up"]);
}

fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().expect("ip was just there");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {}: {error}", arguments.join(" "));
}
