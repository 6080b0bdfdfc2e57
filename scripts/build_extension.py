#!/usr/bin/env python3
"""Builds Olaf's extension with maturin, and shows one line of progress.

    scripts/build_extension.py [MATURIN OPTION..]

On a terminal the line is drawn again in place; elsewhere a line comes every 15 seconds. What is no
progress, such as a warning or an error, is printed whole at the end. The exit code is maturin's.
"""

from __future__ import annotations

import math
import os
import re
import selectors
import shutil
import subprocess
import sys
import time
from typing import TextIO

ABOUT = "about 3 minutes on two cores"
"""A fresh clone on an idle machine: cargo fetches the crates and compiles all of them."""
ABOUT_S = 165.0
CPU_S = {
    "aws-lc-sys(build)": 34.0,
    "tokio": 7.0,
    "pyo3": 7.0,
    "rustix": 6.0,
    "olaf-engine": 42.0,
    "olaf-host": 35.0,
    "olaf-sched": 19.0,
    "olaf-sim": 13.0,
    "olaf-net": 53.0,
    "olaf-bindings": 24.0,
}
"""CPU seconds of the largest steps of a release build, as cargo's bar names them. A step is no
measure by itself: ten of them take more than two thirds of the time."""
REST_CPU_S = 80.0
"""CPU seconds of all the other steps together."""
WHOLE_CPU_S = sum(CPU_S.values()) + REST_CPU_S
KNOWN_S = 20.0
"""The expected speed counts as much as this number of seconds of the build itself."""
EVERY_S = 15.0
"""Seconds between two lines where nothing can be drawn again."""
REDRAW_S = 0.5

BAR = re.compile(r"Building \[[=> ]*\] (\d+)/(\d+)(?:: (.*))?")
DOWNLOADS = re.compile(r"^ *(Downloading|Downloaded|Updating|Locking|Adding)\b")
WAITS = re.compile(r"^ *Blocking waiting for file lock")
# Cargo right-aligns what it does in twelve columns. The others are lines of maturin and of uv.
QUIET = re.compile(
    r"^(?=.{12} ) *(Downloading|Downloaded|Updating|Locking|Adding|Compiling|Checking|Building"
    r"|Finished|Fresh|Dirty|Blocking|Removing) "
    r"|^[\U0001f300-\U0001faff\u2600-\u26ff\u270f](?<![💥⚠])"
    r"|^(Audited|Built|Checked|Installed|Prepared|Resolved|Uninstalled|Using) "
    r"|^ [-+~] "
)


class Progress:
    """Reads what cargo and maturin print, and says how far they are."""

    def __init__(self, about: str = "") -> None:
        self._about = about
        self.done = self.total = 0
        self.whole = False
        """All crates are compiled, not only some that changed."""
        self.kept: list[str] = []
        """The lines that are no progress."""
        self._compiling: dict[str, float | None] = {}
        """The crates of `CPU_S` that are being compiled, and when a line first said so."""
        self._compiled: set[str] = set()
        self._part, self._phase = "", "starting cargo"

    def feed(self, text: str) -> None:
        """Take in more of the output, in pieces of any size."""
        *lines, self._part = re.split(r"\r\n|[\r\n]", self._part + text)
        for line in lines:
            self._take(line.rstrip())

    def end(self) -> None:
        """Take in a last line without an end."""
        if self._part:
            self.feed("\n")

    def _take(self, line: str) -> None:
        if bar := BAR.search(line):
            done, total = int(bar[1]), int(bar[2])
            if not self.total:
                self.whole = 2 * done < total
            self.done, self.total, self._phase = done, total, ""
            self._notice(bar[3] or "")
        elif WAITS.match(line):
            self._phase = "waiting for another cargo in this folder"
        elif DOWNLOADS.match(line):
            self._phase = "fetching crates"
        if not QUIET.match(line) and (line or self.kept):
            self.kept.append(line)

    def _notice(self, compiling: str) -> None:
        """Take in which crates cargo compiles now."""
        now = set(compiling.split(", "))
        for crate in CPU_S.keys() & now:
            self._compiling.setdefault(crate, None)
        if not compiling.endswith("..."):  # otherwise cargo has left some out
            for crate in self._compiling.keys() - now:
                del self._compiling[crate]
                self._compiled.add(crate)

    def _done_cpu_s(self, elapsed_s: float) -> tuple[float, float]:
        """CPU seconds of the work that is done, and those that are done in a second."""
        others = max(self.total - len(CPU_S), 1)
        rest = min(max(self.done - len(self._compiled), 0) / others, 1.0) * REST_CPU_S
        done = rest + sum(CPU_S[crate] for crate in self._compiled)
        usual = WHOLE_CPU_S / ABOUT_S
        speed = (done + usual * KNOWN_S) / (elapsed_s + KNOWN_S)
        for crate, began_s in self._compiling.items():
            since_s = elapsed_s if began_s is None else began_s
            self._compiling[crate] = since_s
            # On one of two cores. It is nearly done until it is known to be done.
            done += min(0.9 * CPU_S[crate], (elapsed_s - since_s) * speed / 2)
        return done, (done + usual * KNOWN_S) / (elapsed_s + KNOWN_S)

    def line(self, elapsed_s: float) -> str:
        """One line that says how far the build is."""
        phase, about = self._phase, ""
        if self._about and (self.whole or not self.total):
            done, speed = self._done_cpu_s(elapsed_s)
            phase = phase or f"{int(100 * min(done / WHOLE_CPU_S, 0.99))} %"
            whole_s = elapsed_s + max(WHOLE_CPU_S - done, 0.0) / speed
            usual = abs(whole_s / ABOUT_S - 1) < 0.25
            about = f" of {self._about}" if usual else f" of about {minutes(whole_s)}"
        phase = phase or f"{self.done} of {self.total} steps"
        return f"building the extension: {phase}, {clock(elapsed_s)}{about}"


class Screen:
    """Shows the newest line: in place on a terminal, elsewhere now and then."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._in_place = out, out.isatty()
        self._drawn_s = 0.0

    def show(self, line: str, elapsed_s: float) -> None:
        """Draw the line if it is time."""
        if elapsed_s - self._drawn_s < (REDRAW_S if self._in_place else EVERY_S):
            return
        self._drawn_s = elapsed_s
        if self._in_place:
            columns = shutil.get_terminal_size().columns
            self._out.write(f"\r\x1b[K{line[: columns - 1]}")
        else:
            self._out.write(f"{line}\n")
        self._out.flush()

    def last(self, text: str) -> None:
        """Replace the line by what remains on the screen."""
        self._out.write(("\r\x1b[K" if self._in_place else "") + text + "\n")
        self._out.flush()


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def minutes(seconds: float) -> str:
    """A number of minutes for people, in halves and then in wholes, rounded up."""
    halves = max(1, math.ceil(seconds / 30))
    if halves > 6:
        halves += halves % 2
    number = f"{halves / 2:.1f}".removesuffix(".0")
    return f"{number} minute{'' if halves == 2 else 's'}"


def build(argv: list[str], out: TextIO) -> int:
    """Run the command with its progress on ``out``; its exit code."""
    progress = Progress(ABOUT if "release" in argv else "")
    screen, began = Screen(out), time.monotonic()
    environment = {
        **os.environ,
        # Cargo prints its bar, which holds the counts, into a pipe only when told so.
        "CARGO_TERM_PROGRESS_WHEN": "always",
        "CARGO_TERM_PROGRESS_WIDTH": "200",
        "CARGO_TERM_QUIET": "false",
    }
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
    ) as process:
        assert process.stdout is not None
        ready = selectors.DefaultSelector()
        ready.register(process.stdout, selectors.EVENT_READ)
        while True:
            if ready.select(timeout=REDRAW_S):
                piece = os.read(process.stdout.fileno(), 1 << 16)
                if not piece:
                    break
                progress.feed(piece.decode("utf-8", "replace"))
            elapsed_s = time.monotonic() - began
            screen.show(progress.line(elapsed_s), elapsed_s)
    progress.end()
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    took = clock(time.monotonic() - began)
    for line in progress.kept:
        screen.last(line)
    screen.last(
        f"built the extension in {took}"
        if code == 0
        else f"building the extension failed after {took} (exit code {code}); the error is above"
    )
    return code


def main() -> None:
    """Build in the environment of the checkout."""
    maturin = os.path.join(os.path.dirname(sys.executable), "maturin")
    try:
        code = build([maturin, "develop", *sys.argv[1:]], sys.stderr)
    except KeyboardInterrupt:
        # The terminal has told cargo, too, which keeps what it has compiled.
        print("\nstopped; the next build goes on from here", file=sys.stderr)
        code = 130
    raise SystemExit(code)


if __name__ == "__main__":
    main()
