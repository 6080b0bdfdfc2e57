//! Verilates the modules of `rtl/rtl` and compiles each with its shim. A broken build of a module has
//! one planted mistake: the tests show that the comparison finds it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// One verilated module.
struct Build {
    /// Names the build: `NAME_new`, `NAME_free` .. are its functions.
    name: &'static str,
    /// Top module, and the name of its shim.
    top: &'static str,
    parameters: &'static [(&'static str, u32)],
    /// A file, a text in it, and the mistake in its place.
    mistake: Option<(&'static str, &'static str, &'static str)>,
    /// The features that it is built with: one of them is enough.
    features: &'static [&'static str],
}

/// What every test compares with.
const COMPARE: &[&str] = &["COMPARE"];
/// What a figure measures, too.
const BOTH: &[&str] = &["COMPARE", "FIGURES"];
/// What a figure and the long run have.
const FIGURES: &[&str] = &["FIGURES", "LONG"];
const LONG: &[&str] = &["LONG"];

const BUILDS: &[Build] = &[
    Build {
        name: "control_8",
        top: "olaf_queue_control",
        parameters: &[("SLOTS", 8)],
        mistake: None,
        features: COMPARE,
    },
    Build {
        name: "control_3",
        top: "olaf_queue_control",
        parameters: &[("SLOTS", 3)],
        mistake: None,
        features: COMPARE,
    },
    Build {
        // A merge of an earlier switch could be replaced by a worker's update.
        name: "control_broken",
        top: "olaf_queue_control",
        parameters: &[("SLOTS", 8)],
        mistake: Some((
            "olaf_queue_control.v",
            "replaceable_reg[slot] <= single;",
            "replaceable_reg[slot] <= 1'b1;",
        )),
        features: LONG,
    },
    Build {
        name: "queue_8",
        top: "olaf_queue",
        parameters: &[("SLOTS", 8), ("FRAME", 256)],
        mistake: None,
        features: BOTH,
    },
    Build {
        // Frames that are no multiple of a beat or of a lane; a number of slots that is no power of two.
        name: "queue_3",
        top: "olaf_queue",
        parameters: &[("SLOTS", 3), ("FRAME", 413), ("BLOCK", 1), ("GATE", 0)],
        mistake: None,
        features: COMPARE,
    },
    Build {
        name: "queue_jumbo",
        top: "olaf_queue",
        parameters: &[("SLOTS", 8), ("FRAME", 9036), ("BLOCK", 1), ("GATE", 0)],
        mistake: None,
        features: FIGURES,
    },
    Build {
        // An update that comes right behind another one of its flow is added to the sum before.
        name: "queue_broken",
        top: "olaf_queue",
        parameters: &[("SLOTS", 8), ("FRAME", 256)],
        mistake: Some(("olaf_sums.v", "from_4 ? sum_4_reg : stored", "stored")),
        features: LONG,
    },
    Build {
        name: "accelerator_4",
        top: "iswitch_accelerator",
        parameters: &[("PORTS", 4), ("SLOTS", 4), ("LANES", 8), ("BEATS", 4)],
        mistake: None,
        features: COMPARE,
    },
    Build {
        // A number of ports that is no power of two; beats of 512 bit.
        name: "accelerator_3",
        top: "iswitch_accelerator",
        parameters: &[("PORTS", 3), ("SLOTS", 2), ("LANES", 16), ("BEATS", 3)],
        mistake: None,
        features: COMPARE,
    },
    Build {
        // A packet that comes right behind another one of its sum is added to the sum before.
        name: "accelerator_broken",
        top: "iswitch_accelerator",
        parameters: &[("PORTS", 4), ("SLOTS", 4), ("LANES", 8), ("BEATS", 4)],
        mistake: Some((
            "iswitch_sum.v",
            "stores_4 && address_4 == address_1 ? data_4 : read_reg;",
            "read_reg;",
        )),
        features: LONG,
    },
];

fn main() {
    // Clippy links nothing, and has a build script of its own: it need not compile all of this again.
    if env::var_os("CLIPPY_ARGS").is_some() {
        return;
    }
    let sources = Path::new("../rtl");
    println!("cargo:rerun-if-changed=shim");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let runtime = runtime();
    let has = |feature: &&str| env::var_os(format!("CARGO_FEATURE_{feature}")).is_some();
    for build in BUILDS.iter().filter(|build| build.features.iter().any(has)) {
        let verilog = planted(sources, build, &out);
        let generated = verilate(build, &verilog, &out);
        watch(build, &generated, sources);
        let mut library = library(&runtime);
        library.include(&generated);
        library.define("NAME", build.name).define("MODEL", &*format!("V{}", build.name));
        library.define("HEADER", &*format!("\"V{}.h\"", build.name));
        let (once, often): (Vec<_>, Vec<_>) =
            files(&generated, "cpp").into_iter().partition(|file| runs_once(file));
        let (once, often) =
            (as_one(&generated, "once", &once), as_one(&generated, "often", &often));
        let once = library.clone().opt_level(0).file(once).compile_intermediates();
        library.objects(once).file(often).file(format!("shim/{}.cpp", build.top));
        // The mistake shows soon: what runs a little while need not be fast.
        library.opt_level(if build.mistake.is_some() { 0 } else { 1 });
        library.compile(build.name);
    }
    let mut library = library(&runtime);
    library.file(runtime.join("verilated.cpp")).file(runtime.join("verilated_threads.cpp"));
    library.compile("verilated");
}

/// Code that sets a model up: Verilator names it so, and compiles it without optimization, too.
fn runs_once(file: &Path) -> bool {
    file.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("Slow"))
}

/// A file that includes the others, as Verilator's own make file has it: each includes the same headers, and to read
/// them takes most of the compiler's time.
fn as_one(folder: &Path, name: &str, files: &[PathBuf]) -> PathBuf {
    let one = folder.join(format!("{name}.cpp"));
    let lines = files.iter().map(|file| format!("#include \"{}\"\n", file.display()));
    fs::write(&one, lines.collect::<String>()).expect("OUT_DIR can be written");
    one
}

/// The folder of Verilator's own C++ files.
fn runtime() -> PathBuf {
    let mut command = Command::new("verilator");
    let printed = command.args(["--getenv", "VERILATOR_ROOT"]).output().unwrap_or_else(|error| {
        panic!(
            "verilator does not start ({error}): `rtl/env` installs it, or `apt install verilator`"
        )
    });
    let root = String::from_utf8(printed.stdout).expect("a path");
    Path::new(root.trim()).join("include")
}

fn library(runtime: &Path) -> cc::Build {
    let mut library = cc::Build::new();
    // To compile with `-O2` and with debug information takes twice as long.
    library.cpp(true).std("c++17").opt_level(1).debug(false).warnings(false);
    library.include(runtime).include(runtime.join("vltstd")).include("shim");
    library.define("VL_TIME_CONTEXT", None);
    library
}

/// A copy of the sources, with the mistake of a broken build.
fn planted(sources: &Path, build: &Build, out: &Path) -> PathBuf {
    let folder = out.join(build.name).join("verilog");
    // A module that was renamed must not stay behind.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("OUT_DIR can be written");
    let mut mistakes = 0;
    for file in files(sources, "v") {
        let name = file.file_name().expect("a file has a name");
        let mut text = fs::read_to_string(&file).expect("a source can be read");
        if let Some((_, was, is)) = build.mistake.filter(|(of, ..)| file.ends_with(of)) {
            assert_eq!(text.matches(was).count(), 1, "{}: `{was}` once in {file:?}", build.name);
            text = text.replace(was, is);
            mistakes += 1;
        }
        fs::write(folder.join(name), text).expect("OUT_DIR can be written");
    }
    assert_eq!(mistakes, usize::from(build.mistake.is_some()), "{}: its file is there", build.name);
    folder
}

/// Makes C++ of a build; returns its folder.
fn verilate(build: &Build, verilog: &Path, out: &Path) -> PathBuf {
    let folder = out.join(build.name).join("verilated");
    let _ = fs::remove_dir_all(&folder);
    let mut command = Command::new("verilator");
    command.args(["--cc", "--language", "1364-2005", "-O3", "--no-timing"]);
    // `rtl/run lint` reads the warnings.
    command.arg("-Wno-lint");
    // Registers without a value in the source begin with random bits, not with 0.
    command.args(["--x-assign", "unique", "--x-initial", "unique"]);
    command.arg("--prefix").arg(format!("V{}", build.name)).arg("--Mdir").arg(&folder);
    command.arg("--top-module").arg(build.top).arg("-y").arg(verilog);
    for (name, value) in build.parameters {
        command.arg(format!("-G{name}={value}"));
    }
    command.arg(verilog.join(format!("{}.v", build.top)));
    let done = command.output().expect("verilator has been started before");
    assert!(done.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&done.stderr));
    folder
}

/// The build is repeated if a file changes that it was made of; the list is Verilator's.
fn watch(build: &Build, generated: &Path, sources: &Path) {
    let list = generated.join(format!("V{}__ver.d", build.name));
    let text = fs::read_to_string(list).expect("verilator writes a list of its inputs");
    for input in text.split_whitespace().map(Path::new) {
        if input.extension().is_some_and(|is| is == "v") {
            let name = input.file_name().expect("a file has a name");
            println!("cargo:rerun-if-changed={}", sources.join(name).display());
        }
    }
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    let mut found: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|is| is == extension)).collect();
    found.sort();
    found
}
