//! C programs, compiled against the header, linked with each of the two libraries and run.

use std::path::{Path, PathBuf};
use std::process::Command;

const QUEUE_SAYS: &str = "6 checks of olaf.h from C: ok\n";
const SCENARIO_SAYS: &str = "a scenario's ends from C: ok\n";
const ENGINE_SAYS: &str = "whole engines from C: ok\n";

/// Where cargo put `libolaf.a` and `libolaf.so`: beside this test.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it is");
    test.parent().expect("it is in a folder").to_path_buf()
}

/// Compiles `tests/c/SOURCE.c`; returns the program.
fn compile(source: &str, name: &str, arguments: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let done = Command::new(&compiler)
        .args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o"])
        .arg(&program)
        .arg(root.join(format!("tests/c/{source}.c")))
        .arg("-I")
        .arg(root.join("include"))
        .args(arguments)
        .arg("-lm")
        .output()
        .expect("a C compiler is there: rustc links with it");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    program
}

fn run(program: &Path, says: &str) {
    // Cargo's own search path comes before the program's, and may hold an older library.
    let done = Command::new(program).env_remove("LD_LIBRARY_PATH").output();
    let done = done.expect("what was compiled can be run");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{}: {said}", program.display());
    assert_eq!(String::from_utf8_lossy(&done.stdout), says);
}

#[test]
fn a_c_program_links_the_static_library() {
    let library = libraries().join("libolaf.a");
    let library = library.to_str().expect("cargo's paths are text");
    // What the README tells users to link beside it.
    let with = [library, "-lpthread", "-ldl"];
    run(&compile("queue", "queue-static", &with), QUEUE_SAYS);
    run(&compile("engine", "engine-static", &with), ENGINE_SAYS);
    run(&compile("scenario", "scenario-static", &with), SCENARIO_SAYS);
}

#[test]
fn a_c_program_links_the_shared_library() {
    let folder = libraries();
    let folder = folder.to_str().expect("cargo's paths are text");
    let with = ["-L", folder, "-lolaf", &format!("-Wl,-rpath,{folder}")];
    run(&compile("queue", "queue-shared", &with), QUEUE_SAYS);
    run(&compile("engine", "engine-shared", &with), ENGINE_SAYS);
    run(&compile("scenario", "scenario-shared", &with), SCENARIO_SAYS);
}

#[test]
fn the_header_is_also_cpp() {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/olaf.h");
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let done = Command::new(&compiler)
        .args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++"])
        .arg(&header)
        .output();
    match done {
        Ok(done) => assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr)),
        Err(error) => panic!("no C++ compiler ({error}): set CXX"),
    }
}
