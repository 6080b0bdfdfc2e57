"""The first command shows one line of progress, and keeps what a failed build says."""

from __future__ import annotations

import importlib.util
import io
import itertools
import os
import pty
import re
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
    assert re.fullmatch(
        r"building the extension: \d+ %, 0:20 of about 3 minutes", progress.line(20)
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


def percent(line: str) -> int:
    """How far the line says that the build is."""
    found = re.search(r" (\d+) %,", line)
    assert found, line
    return int(found[1])


def replay(slowness: float) -> list[tuple[float, str]]:
    """The lines of a build whose largest crates take their CPU seconds, times `slowness`, in the
    order of the table on two cores, with all the small steps before them."""
    progress = build_extension.Progress("about 2 minutes")
    lines, now_s = [], 0.0
    small = 212 - len(build_extension.CPU_S)
    for done in range(small):
        progress.feed(bar(done, "libc(build.rs), serde_core"))
        now_s += build_extension.REST_CPU_S / 2 / small * slowness
        lines.append((now_s, progress.line(now_s)))
    ends: list[tuple[float, str]] = []
    waiting, done = list(build_extension.CPU_S.items()), small
    while waiting or ends:
        while waiting and len(ends) < 2:
            crate, cpu_s = waiting.pop(0)
            ends.append((now_s + cpu_s * slowness, crate))
        ends.sort()
        progress.feed(bar(done, ", ".join(crate for _, crate in ends)))
        while now_s < ends[0][0]:
            lines.append((now_s, progress.line(now_s)))
            now_s = min(now_s + 1, ends[0][0])
        del ends[0]
        done += 1
    return lines


def test_the_line_says_how_much_of_the_work_is_done() -> None:
    lines = replay(slowness=1.0)
    whole_s = lines[-1][0]
    for now_s, line in lines:
        assert abs(percent(line) - 100 * now_s / whole_s) < 12, line
    # The last two of 212 steps are no 99 % of the work: they take a tenth of the time and more.
    assert min(percent(line) for now_s, line in lines if now_s > whole_s * 0.9) < 95


def test_the_percentage_never_falls() -> None:
    parts = [percent(line) for _, line in replay(slowness=4.0)]
    assert all(later >= earlier for earlier, later in itertools.pairwise(parts))
    assert parts[-1] > 80


def test_the_estimate_follows_the_speed_of_this_machine() -> None:
    lines = replay(slowness=4.0)
    whole_s = lines[-1][0]
    assert lines[0][1].endswith(" of about 2 minutes")
    said = [line.rpartition("about ")[2] for now_s, line in lines if now_s > whole_s / 2]
    found = [float(text.split()[0]) * 60 / whole_s for text in said]
    assert 0.7 < min(found) <= max(found) < 1.4, found
    assert len(set(said)) < 8, "it does not flicker"


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
