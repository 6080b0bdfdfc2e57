//! The handshakes of keys, and the notice of the version: `vectors/wire/keys/messages.json`.

use super::{bytes_of, hex, messages, u64_of, unhex};
use olaf_wire::Refusal;
use olaf_wire::sealed::offsets::{handshake, trailer};
use olaf_wire::sealed::{Handshake, Kind, Sealed, Tag, VERSION, put_tag};
use serde_json::Value;
use std::collections::BTreeSet;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/wire/keys/messages.json");

fn array<const N: usize>(message: &Value, field: &str) -> [u8; N] {
    let text = message[field].as_str().unwrap_or_else(|| panic!("{field} of {message}"));
    unhex(text).try_into().unwrap()
}

fn is_notice(message: &Value) -> bool {
    message["kind"] == "version_notice"
}

fn handshake(message: &Value) -> Handshake {
    let kind = match message["kind"].as_str().unwrap() {
        "hello" => Kind::Hello,
        "cookie" => Kind::Cookie,
        "open" => Kind::Open,
        "opened" => Kind::Opened,
        "unknown" => Kind::Unknown,
        "no_key" => Kind::NoKey,
        kind => panic!("no kind {kind}"),
    };
    Handshake {
        kind,
        association: u64_of(message, "association").try_into().unwrap(),
        key_name: array(message, "key_name"),
        initiator: array(message, "initiator"),
        responder: array(message, "responder"),
        cookie_ns: u64_of(message, "cookie_ns"),
        cookie: array(message, "cookie"),
    }
}

fn written(message: &Value) -> Vec<u8> {
    if is_notice(message) {
        return Handshake::version_notice().to_vec();
    }
    let mut buf = vec![0xff; handshake::LEN];
    let signed = handshake(message).emit(&mut buf);
    let len = put_tag(&mut buf, signed, &array::<16>(message, "tag"));
    assert_eq!(len, buf.len());
    buf
}

#[test]
fn each_message_has_these_bytes_and_these_bytes_are_that_message() {
    let messages = messages(FILE, written);
    for message in messages.iter().filter(|message| !is_notice(message)) {
        let bytes = bytes_of(message);
        assert_eq!(hex(&written(message)), hex(&bytes), "{message}");
        let sealed = Sealed::parse(&bytes).unwrap();
        assert_eq!((sealed.association, sealed.class, sealed.counter), (0, 0, 0), "{message}");
        assert_eq!(sealed.tag, array::<16>(message, "tag") as Tag, "{message}");
        assert_eq!(Handshake::parse(sealed.message), Ok(handshake(message)), "{message}");
    }
    let kinds: BTreeSet<u8> = messages.iter().map(|it| bytes_of(it)[handshake::KIND]).collect();
    assert_eq!(kinds, (0..=6).collect(), "a vector of each kind, and of the notice");
}

#[test]
fn a_notice_has_these_bytes_and_a_party_of_another_version_reads_them() {
    let messages = messages(FILE, written);
    let notices: Vec<_> = messages.iter().filter(|message| is_notice(message)).collect();
    assert_eq!(notices.len(), 1);
    let mut bytes = bytes_of(notices[0]);
    assert_eq!(u64_of(notices[0], "version"), u64::from(VERSION));
    assert_eq!(hex(&Handshake::version_notice()), hex(&bytes));
    assert_eq!(bytes.len(), handshake::NOTICE_BODY + trailer::LEN);
    // As a party reads it whose own version is another one: here the notice's is.
    bytes[handshake::VERSION] = VERSION + 1;
    let sealed = Sealed::parse(&bytes).unwrap();
    assert_eq!(sealed.association, 0, "it is read as a handshake");
    let read = Handshake::parse(sealed.message);
    assert_eq!(read, Err(Refusal::WrongVersion { have: VERSION + 1, speaks: VERSION }));
}
