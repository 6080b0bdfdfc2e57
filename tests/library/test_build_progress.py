"""The first command shows one line of progress, and keeps what a failed build says."""

from __future__ import annotations

import importlib.util
import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
_SPEC = importlib.util.spec_from_file_location("build_extension", SCRIPTS / "build_extension.py")
assert _SPEC is not None
assert _SPEC.loader is not None
build_extension = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(build_extension)

BUILD = (
    "\N{TROPICAL DRINK} Building a mixed python/rust project\n"
    "    Updating crates.io index\n"
    " Downloading crates ...\n"
    "  Downloaded libc v0.2.170\n"
    "Checked 47 packages in 49ms\n"
    "   Compiling libc v0.2.170\n"
    "    Building [                             ] 0/212: libc(build.rs)          \r"
    "    Building [==================>          ] 143/212: pyo3, ring(build)     \r"
)
ERROR = (
    "error[E0308]: mismatched types\n"
    " --> src/main.rs:1:56\n"
    "  |\n"
    '1 | fn main() { let y: u8 = "s"; }\n'
    "error: could not compile `a`\n"
    "\N{COLLISION SYMBOL} maturin failed\n"
    "  Caused by: Failed to build a native library through cargo\n"
)


def test_cargos_bar_becomes_one_line() -> None:
    progress = build_extension.Progress("about 3 minutes")
    assert progress.line(0) == "building the extension: starting cargo, 0:00 of about 3 minutes"
    for letter in BUILD:  # pieces of any size
        progress.feed(letter)
    assert progress.line(42) == (
        "building the extension: 143 of 212 steps, 0:42 of about 3 minutes"
    )
    assert progress.kept == []


def test_fetching_and_waiting_are_named() -> None:
    progress = build_extension.Progress()
    progress.feed("  Downloaded libc v0.2.170\n")
    assert progress.line(1) == "building the extension: fetching crates, 0:01"
    progress.feed("    Blocking waiting for file lock on build directory\n")
    assert "waiting for another cargo" in progress.line(1)


def test_a_build_of_few_crates_promises_no_minutes() -> None:
    progress = build_extension.Progress("about 3 minutes")
    progress.feed("    Building [========================>   ] 208/212: olaf-py   \r")
    assert progress.line(2) == "building the extension: 208 of 212 steps, 0:02"


def bar(done: int, compiling: str) -> str:
    """Cargo's bar while it compiles these crates."""
    return f"    Building [=========>      ] {done}/212: {compiling}     \r"


def test_the_estimate_follows_what_the_build_has_taken() -> None:
    progress = build_extension.Progress("about 2 minutes")
    progress.feed(bar(0, "libc(build.rs)"))
    assert progress.line(46).endswith("0:46 of about 2 minutes")
    progress.feed(bar(90, "olaf-engine, syn(build)"))
    # It is not over at 39 %: so all of it takes more than 60 s / 0.39.
    assert progress.line(60).endswith("1:00 of about 3 minutes")
    progress.feed(bar(150, "olaf-host, olaf-engine(test)"))
    assert progress.line(156).endswith("2:36 of about 7 minutes")
    # The estimate stands until the next crate ends, or should have ended.
    assert progress.line(260).endswith("4:20 of about 7 minutes")
    assert progress.line(300).endswith("5:00 of about 8 minutes")
    progress.feed(bar(208, "olaf-net"))
    assert progress.line(310).endswith("5:10 of about 8 minutes")
    progress.feed(bar(211, "olaf-py"))
    assert progress.line(420).endswith("7:00 of about 8 minutes")
    assert progress.line(490).endswith("8:10 of about 9 minutes")


def test_minutes_are_rounded_up() -> None:
    said = [build_extension.minutes(seconds) for seconds in (1, 31, 61, 120, 170, 181, 700)]
    assert said == [
        "0.5 minutes",
        "1 minute",
        "1.5 minutes",
        "2 minutes",
        "3 minutes",
        "4 minutes",
        "12 minutes",
    ]


def test_warnings_and_errors_are_kept_whole() -> None:
    progress = build_extension.Progress()
    progress.feed(BUILD + ERROR)
    progress.end()
    assert progress.kept == ERROR.splitlines()


def fake(folder: Path, output: str, code: int) -> list[str]:
    """A maturin that prints this and ends so."""
    file = folder / "maturin"
    file.write_text(
        f"#!{sys.executable}\nimport sys\nsys.stderr.write({output!r})\nsys.exit({code})\n",
        encoding="utf-8",
    )
    file.chmod(0o755)
    return [str(file), "release"]


@pytest.mark.parametrize("code", [1, 101])
def test_a_failed_build_shows_its_error_and_keeps_the_code(tmp_path: Path, code: int) -> None:
    out = io.StringIO()
    assert build_extension.build(fake(tmp_path, BUILD + ERROR, code), out) == code
    assert ERROR in out.getvalue()
    assert f"(exit code {code})" in out.getvalue().splitlines()[-1]
    assert "Compiling" not in out.getvalue()


def test_a_build_without_a_fault_leaves_one_line(tmp_path: Path) -> None:
    out = io.StringIO()
    assert build_extension.build(fake(tmp_path, BUILD, 0), out) == 0
    assert out.getvalue() == "built the extension in 0:00\n"


def test_a_terminal_draws_the_line_again_in_place(tmp_path: Path) -> None:
    outer, inner = pty.openpty()
    screen = build_extension.Screen(os.fdopen(inner, "w"))
    screen.show("building: 1 of 2", 1.0)
    screen.show("too soon", 1.1)
    screen.show("building: 2 of 2", 2.0)
    screen.last("built")
    drawn = ""
    while not drawn.endswith("built\r\n"):  # a terminal gives what it has so far
        drawn += os.read(outer, 1000).decode()
    assert drawn == "\r\x1b[Kbuilding: 1 of 2\r\x1b[Kbuilding: 2 of 2\r\x1b[Kbuilt\r\n"


def test_elsewhere_a_line_comes_every_quarter_of_a_minute() -> None:
    out = io.StringIO()
    screen = build_extension.Screen(out)
    for second in range(40):
        screen.show(f"line at {second}", float(second))
    assert out.getvalue() == "line at 15\nline at 30\n"


def test_the_set_up_builds_with_progress() -> None:
    script = (SCRIPTS / "env").read_text(encoding="utf-8")
    assert "scripts/build_extension.py --profile" in script
    assert build_extension.ABOUT in script
    subprocess.run(["bash", "-n", str(SCRIPTS / "env")], check=True)
