//! The vectors of every protocol as a capture: pcap, IPv4, UDP. Packets are one second apart, and
//! the destination port says where a packet is from.

use olaf_wire::iswitch::{CONTROL_CLASS, DATA_CLASS};
use olaf_wire::sealed::{put_counter, put_tag};
use std::path::Path;

/// The folder of `vectors/wire`, and the port that its messages go to.
const FOLDERS: [(&str, u16); 7] = [
    ("native", 5555),
    ("reduce", 5560),
    ("iswitch", 5561),
    ("trio", olaf_wire::trio::DEFAULT_PORT),
    ("atp", 5562),
    ("mina", 5563),
    ("keys", 5565),
];
/// A keyed native message.
const SEALED_PORT: u16 = 5564;
const RAW_IP: u32 = 101;

pub(crate) fn of_all_vectors() -> Vec<u8> {
    let mut all = Vec::new();
    // pcap's magic with microseconds, version 2.4, no time zone, the longest packet, the link.
    for number in [0xa1b2_c3d4_u32, 0x0002_0004, 0, 0, 65_535, RAW_IP] {
        all.extend(number.to_be_bytes());
    }
    let mut seconds = 0;
    let mut put = |class: u8, port: u16, payload: &[u8]| {
        let packet = ip(class, port, payload);
        let len = u32::try_from(packet.len()).expect("a packet is short");
        for number in [seconds, 0, len, len] {
            all.extend(number.to_be_bytes());
        }
        all.extend(packet);
        seconds += 1;
    };
    for (folder, port) in FOLDERS {
        for (kind, payload) in messages(folder) {
            let class = match (folder, &*kind) {
                ("iswitch", "data") => DATA_CLASS,
                ("iswitch", _) => CONTROL_CLASS,
                _ => 0,
            };
            put(class, port, &payload);
        }
    }
    let mut buf = [0; 2048];
    let (_, native) = &messages("native")[0];
    buf[..native.len()].copy_from_slice(native);
    let signed = put_counter(&mut buf, native.len(), 258, 35, 772);
    let len = put_tag(&mut buf, signed, &[0xab; 16]);
    put(0, SEALED_PORT, &buf[..len]);
    all
}

/// Kind and bytes of each message of a folder.
fn messages(folder: &str) -> Vec<(String, Vec<u8>)> {
    let path = format!("../../vectors/wire/{folder}/messages.json");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = std::fs::read_to_string(path).expect("the vectors are there");
    let all: Vec<serde_json::Value> = serde_json::from_str(&text).expect("vectors are JSON");
    let text = |one: &serde_json::Value, key: &str| one[key].as_str().expect("text").to_owned();
    all.iter().map(|one| (text(one, "kind"), bytes(&text(one, "hex")))).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
    (0..hex.len()).step_by(2).map(byte).collect()
}

/// A packet from 10.0.0.1 to 10.0.0.2.
fn ip(class: u8, port: u16, payload: &[u8]) -> Vec<u8> {
    let len = |more: usize| u16::try_from(payload.len() + more).expect("a packet is short");
    let mut header = vec![0x45, class << 2];
    header.extend(len(28).to_be_bytes());
    // No fragments; 64 hops at most; UDP; the checksum follows.
    header.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    let pairs = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let sum: u32 = pairs.sum();
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    for number in [40_000, port, len(8), 0] {
        header.extend(number.to_be_bytes());
    }
    header.extend(payload);
    header
}
