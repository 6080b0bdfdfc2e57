//! The header that users compile against is what the crate says.

use std::path::Path;

#[test]
fn the_header_is_what_the_crate_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("a good config");
    let bindings = cbindgen::generate_with_config(root, config).expect("the crate is readable");
    let mut made = Vec::new();
    bindings.write(&mut made);
    let made = String::from_utf8(made).expect("a header is text");

    let path = root.join("include/olaf.h");
    if std::env::var_os("OLAF_WRITE_HEADER").is_some() {
        std::fs::write(&path, &made).expect("the header can be written");
    }
    let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        checked_in == made,
        "include/olaf.h is not what the crate says: run\n  \
         OLAF_WRITE_HEADER=1 cargo test -p olaf-ffi --features header --test header"
    );
}
