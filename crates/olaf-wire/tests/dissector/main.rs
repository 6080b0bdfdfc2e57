//! The Wireshark dissector and the capture that it is tested with are what this crate says.
//!
//! `OLAF_WRITE_DISSECTOR=1 cargo test -p olaf-wire --test dissector` writes both anew.
#![allow(clippy::disallowed_methods, missing_docs)]

mod capture;
mod lua;
mod own;
mod papers;
mod protocol;

use std::path::Path;

/// Writes the file if that is asked for; fails if it is not what was made.
fn is_up_to_date(file: &str, made: &[u8]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    if std::env::var_os("OLAF_WRITE_DISSECTOR").is_some() {
        std::fs::write(&path, made).expect("the file can be written");
    }
    assert!(
        std::fs::read(&path).unwrap_or_default() == made,
        "{file} is not what the crate says: run `make dissector`"
    );
}

#[test]
fn the_dissector_is_what_the_crate_says() {
    let all = [own::all(), papers::all()].concat();
    is_up_to_date("wireshark/olaf.lua", lua::written(&all).as_bytes());
}

#[test]
fn the_capture_is_what_the_vectors_say() {
    is_up_to_date("vectors/wire/olaf.pcap", &capture::of_all_vectors());
}
