"""Benchmarks of the crates, which a figure runs through cargo in a checkout of Olaf."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from olaf.errors.outcome import RunError

CHECKOUT = Path(__file__).parents[3]
BUILD_S = 1800
"""Time limit for a build in release mode."""
RUN_S = 300
"""Time limit for a run."""


def program(crate: str, bench: str) -> Path | None:
    """Build a benchmark of a crate and return its path; None without a checkout or cargo."""
    cargo = shutil.which("cargo")
    source = CHECKOUT / "crates" / crate / "benches" / f"{bench}.rs"
    if cargo is None or not source.is_file():
        return None
    command = [cargo, "bench", "--no-run", "--quiet", "--package", crate, "--bench", bench]
    done = _within(BUILD_S, [*command, "--message-format", "json-render-diagnostics"])
    if done.returncode != 0:
        raise RunError(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr.strip()}")
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    built = [message["executable"] for message in messages if message.get("executable")]
    return Path(built[-1])


def measured(built: Path, settings: Mapping[str, int]) -> Any:
    """Run a benchmark with these settings, and return what it prints as JSON."""
    done = _within(RUN_S, [str(built), "--json", json.dumps(settings)])
    if done.returncode != 0:
        raise RunError(f"{built.name}: exit {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def _within(seconds: int, command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=seconds
        )
    except subprocess.TimeoutExpired as error:
        raise RunError(f"{' '.join(command)}: not done within {seconds} s") from error
