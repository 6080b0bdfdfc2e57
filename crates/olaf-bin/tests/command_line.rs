//! What the programs say when they are asked, and when they are told what cannot be.

use std::process::{Command, Output};

const SWITCH: &str = env!("CARGO_BIN_EXE_olaf-switch");
const SERVER: &str = env!("CARGO_BIN_EXE_olaf-server");

fn ran(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().expect("the program was built")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

#[test]
fn help_names_every_option_and_every_discipline() {
    for (program, own) in [(SWITCH, "--uplink"), (SERVER, "--rule")] {
        let ended = ran(program, &["--help"]);
        let help = text(&ended.stdout);
        assert!(ended.status.success());
        for word in [
            own,
            "--listen",
            "--config",
            "--set",
            "--metrics",
            "--stats-every",
            "--json",
            "Exit codes",
        ] {
            assert!(help.contains(word), "{word} in {help}");
        }
    }
    let help = text(&ran(SWITCH, &["--help"]).stdout);
    for (name, kind) in olaf_engine::switch::native::QueueKind::ALL {
        assert!(help.contains(&format!("{name} {}", kind.about())), "{name} in {help}");
    }
}

#[test]
fn what_cannot_be_names_the_key_and_ends_with_2() {
    for (program, arguments, told) in [
        (SWITCH, vec!["--slots", "0"], "slots"),
        (SWITCH, vec!["--queue", "lifo"], "queue = \"lifo\": must be olaf"),
        (SWITCH, vec!["--uplink", "fast"], "uplink = \"fast\": a rate ends in bit"),
        (SWITCH, vec!["--gate", "high"], "gate"),
        (SWITCH, vec!["--set", "slot=4"], "unknown field `slot`"),
        (SWITCH, vec!["--set", "admission=spec.toml"], "run `olaf switch`"),
        (SWITCH, vec!["--listen", "here"], "listen"),
        (SWITCH, vec!["--listen", "0.0.0.0:0"], "listen = \"0.0.0.0:0\": other machines can"),
        (SERVER, vec!["--listen", "[::]:0"], "and the server has no key"),
        (
            SWITCH,
            vec!["--engines", "queue,reduce", "--listen", "reduce=0.0.0.0:0"],
            "listen_at.reduce = \"0.0.0.0:0\"",
        ),
        (SWITCH, vec!["--metrics", "0.0.0.0:0"], "metrics = \"0.0.0.0:0\": other machines"),
        (SERVER, vec!["--metrics", "0.0.0.0:0"], "give metrics_token_file"),
        (SWITCH, vec!["--engines", "sharp"], "unknown variant `sharp`, expected one of `queue`"),
        (SWITCH, vec!["--upstream", "sharp=a:1"], "--upstream sharp=a:1: there is no engine sharp"),
        (SWITCH, vec!["--listen", "sharp=a:1"], "there is no engine sharp; engines: queue, reduce"),
        (SWITCH, vec!["--listen", "reduce=a:1"], "does not run the engine reduce"),
        (SWITCH, vec!["--engines", "reduce", "--set", "reduce.slots=0"], "reduce.slots = 0"),
        (SWITCH, vec!["--stats-every", "soon"], "a time is a number and its unit"),
        (SWITCH, vec!["--config", "/nowhere/switch.toml"], "/nowhere/switch.toml"),
        (SERVER, vec!["--rule", "none"], "rule = \"none\": must be delta or paper-literal"),
        (SERVER, vec!["--set", "silent_after=2"], "silent_after = 2: a time needs its unit"),
        (SERVER, vec!["--unknown"], "--unknown"),
        (SERVER, vec!["--log-level", "loud"], "must be one of debug, info, warning, error"),
    ] {
        let ended = ran(program, &arguments);
        let told_by = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}: {told_by}");
        assert!(told_by.contains(told), "{arguments:?}: {told_by}");
    }
}

#[test]
fn the_version_names_those_of_the_messages() {
    for program in [SWITCH, SERVER] {
        let told = text(&ran(program, &["--version"]).stdout);
        let (name, version) = olaf_net::wire_versions()[0];
        assert!(told.contains(&format!("{name} {version}")), "{told}");
        assert!(told.contains(env!("CARGO_PKG_VERSION")), "{told}");
    }
}

#[test]
fn a_port_in_use_ends_with_4() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("bound").to_string();
    for program in [SWITCH, SERVER] {
        let ended = ran(program, &["--listen", &address]);
        assert_eq!(ended.status.code(), Some(4), "{}", text(&ended.stderr));
        assert!(text(&ended.stderr).contains(&address));
    }
}

#[test]
fn the_configuration_that_is_printed_reads_back() {
    let folder = std::env::temp_dir().join(format!("olaf-bin-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for program in [SWITCH, SERVER] {
        let told = ["--set", "silent_after=1500ms", "--print-config"];
        let printed = ran(program, &told);
        assert!(printed.status.success(), "{}", text(&printed.stderr));
        let file = folder.join("printed.toml");
        std::fs::write(&file, &printed.stdout).expect("a file");
        let file = file.to_str().expect("UTF-8");
        let again = ran(program, &["--config", file, "--print-config"]);
        assert_eq!(text(&again.stdout), text(&printed.stdout), "{}", text(&again.stderr));
        assert!(text(&again.stdout).contains("silent_after = \"1500ms\""));
    }
    std::fs::remove_dir_all(folder).expect("ours");
}
