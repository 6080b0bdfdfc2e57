//! Looks whether the compiler has AVX-512 (Rust 1.89), which the oldest one supported has not.

#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "cargo is talked to so")]

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(has_avx512)");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output();
    let version = version.map(|out| String::from_utf8_lossy(&out.stdout).into_owned());
    if version.is_ok_and(|text| minor(&text) >= Some(89)) {
        println!("cargo::rustc-cfg=has_avx512");
    }
}

/// 88 of "rustc 1.88.0 (6b00bc388 2025-06-23)".
fn minor(text: &str) -> Option<u32> {
    text.strip_prefix("rustc 1.")?.split('.').next()?.parse().ok()
}
