"""Gradient vectors through the verilated ``iswitch_accelerator`` of ``rtl/``."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from olaf.errors.outcome import RunError
from olaf.experiments import hardware

TOP = "iswitch_accelerator"


class Vectors(NamedTuple):
    """One iteration: a vector of each worker, and their sum. Cycles of the hardware's clock."""

    packets: int
    """Packets of all workers."""
    beats: int
    cycles_in: int
    """From the first beat in to the last one."""
    cycles: int
    """From the first beat in to the last one of the sum out."""
    waits: int
    """Cycles in which a beat waited at the input."""
    latency_least: int
    """From the last beat in of a packet's sum to the first beat out: the least of all packets."""
    latency_most: int
    wrong: int
    """Sums whose bits are not those of the processor's additions in the order of arrival."""


def missing() -> list[str]:
    """The tools that this simulation needs and this machine does not have."""
    return [tool for tool in ("verilator", "g++", "make") if shutil.which(tool) is None]


def program(scratch: Path) -> Path:
    """Build the simulation in ``scratch`` and return its path.

    Raises RunError, which says what to install, if it cannot be built here.
    """
    rtl = hardware.CHECKOUT / "rtl"
    bench = rtl / "tb" / "iswitch_vectors" / "vectors.cpp"
    if not bench.is_file():
        raise RunError(f"{bench}: not there. {hardware.needs_checkout()}")
    if missing():
        raise RunError(
            f"{', '.join(missing())}: not installed. `rtl/env` in the checkout installs "
            "Verilator and g++ (on Debian: apt-get install verilator g++ make)"
        )
    folder = scratch / "verilated"
    command = [
        *("verilator", "--cc", "--exe", "--build", "-O3", "--x-assign", "unique"),
        *("--x-initial", "unique", "--default-language", "1364-2005", f"-I{rtl / 'rtl'}"),
        *("--Mdir", str(folder), "--top-module", TOP, "-CFLAGS", "-O2"),
        *(str(rtl / "rtl" / f"{TOP}.v"), str(bench)),
    ]
    done = _within(hardware.BUILD_S, command)
    if done.returncode != 0:
        raise RunError(f"verilator {TOP}: exit {done.returncode}\n{done.stderr}")
    return folder / f"V{TOP}"


def through(
    built: Path, *, workers: int, floats: int, packet_floats: int, gap_cycles: float, seed: int
) -> Vectors:
    """Send a vector of ``floats`` from each worker; return the cycles.

    gap_cycles: between the first beats of two packets, at least; 0: back to back. Raises RunError
    if a sum is wrong or the program fails.
    """
    numbers = [workers, floats, packet_floats, round(100 * gap_cycles), seed]
    done = _within(hardware.RUN_S, [str(built), *(str(number) for number in numbers)])
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise RunError(f"{built.name}: exit {done.returncode}: {said}")
    return Vectors(**json.loads(done.stdout))


def _within(seconds: int, command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise RunError(f"{command[0]}: not done within {seconds} s") from error
