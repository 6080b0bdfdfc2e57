"""The hardware in ``rtl/``: its cell counts and longest paths, and programs that simulate it.

Figures of both hardware designs use this module: ``olaf/hardware`` and ``iswitch/hardware``.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from olaf.errors.outcome import RunError
from olaf.experiments import Column, Goal, Row, Spread, Table

CHECKOUT = Path(__file__).parents[3]
BUILD_S = 1800
"""Time limit for a build: Verilator, a C++ compiler and cargo."""
RUN_S = 900
"""Time limit for a run."""
CLOCK_HZ = {"olaf": 250e6, "iswitch": 200e6}
"""Clocks of the papers' boards (OLAF §7, iSwitch §3.5). Ours is not placed: it claims none, and is
compared in cycles."""
COMMITTED = "committed, not measured by this run"


class Cells(NamedTuple):
    """Cells of a module after synthesis, or of a whole device. ``mux``: F7, F8 and F9."""

    lut: int
    ff: int
    carry: int
    mux: int
    bram36: int
    dsp: int


XCU55C = Cells(1_303_680, 2_607_360, 162_960, 1_140_720, 2_016, 9_024)
"""The device of the Alveo U55C. Each of its 162,960 CLBs has 8 LUTs, 16 flip-flops, a CARRY8 and 7
multiplexers."""
XC7V690T = Cells(433_200, 866_400, 108_300, 324_900, 1_470, 3_600)
"""The device of the NetFPGA-SUME. Each of its 108,300 slices has 4 LUTs, 8 flip-flops, a CARRY4 and
3 multiplexers."""
SHARE = ", %"
TITLES = {"lut": "LUT", "ff": "FF", "mux": "F7 to F9", "bram36": "BRAM36", "dsp": "DSP"}
"""Headings of columns, by field of Cells."""


def counts() -> dict[str, Cells]:
    """The committed counts by build, ``olaf_queue_control SLOTS=8``; ``make rtl`` checks them.

    Raises RunError without a checkout.
    """
    table = CHECKOUT / "rtl" / "syn" / "counts.csv"
    if not table.is_file():
        raise RunError(f"{table}: not there. {needs_checkout()}")
    with table.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {row["build"]: Cells(*(int(row[name]) for name in Cells._fields)) for row in rows}


def path_rows(builds: Sequence[str], paper: str, seeds: int) -> list[Row]:
    """The longest path of each build beside the period of the paper's clock.

    The numbers are the committed ones of ``rtl/syn/paths.csv``; ``make rtl`` checks them.
    """
    table = CHECKOUT / "rtl" / "syn" / "paths.csv"
    with table.open(newline="", encoding="utf-8") as file:
        ps = {row["build"]: float(row["ps"]) for row in csv.DictReader(file)}
    return [
        Row(
            quantity="longest path, sum of its cells' delays",
            where=build,
            unit="ns",
            # Nothing random is in it.
            ours=Spread.of([ps[build] / 1000] * seeds),
            goal=Goal(at_most=1e9 / CLOCK_HZ[paper]),
            note=f"rtl/syn/paths.csv: {COMMITTED}. The goal is the period of the paper's clock. "
            "Wires count as nothing, and the cells are those of Artix-7",
        )
        for build in builds
        if build in ps
    ]


def percent(of: Cells, device: Cells, kind: str) -> float:
    """The share of a device's cells of one kind, a field of Cells, that a module takes."""
    return float(100 * getattr(of, kind) / getattr(device, kind))


def cell_table(
    what: str,
    found: Mapping[str, Cells],
    device: tuple[str, Cells],
    kinds: Sequence[str],
    paper: str,
) -> Table:
    """Cells of builds by name, and their shares of a device, which has a name.

    what: ``modules``, for the title. kinds: the columns: fields of Cells; with ``, %`` behind it,
    the share. paper: what the paper says, a sentence.
    """
    device_name, cells = device

    def shown(of: Cells, kind: str) -> float:
        field = kind.removesuffix(SHARE)
        return getattr(of, field) if field == kind else percent(of, cells, field)

    def heading(kind: str) -> str:
        field = kind.removesuffix(SHARE)
        return TITLES[field] if field == kind else TITLES[field] + SHARE

    return Table(
        title=f"Cells of the {what}, and their share of an {device_name}",
        columns=[
            Column(name="build"),
            *(Column(name=heading(kind), digits=2 if SHARE in kind else 0) for kind in kinds),
        ],
        rows=[[name, *(shown(of, kind) for kind in kinds)] for name, of in found.items()],
        note=f"After synthesis by Yosys, without place and route. {paper}",
    )


def needs_checkout() -> str:
    """The sentence for an Olaf without its repository."""
    return "The hardware is in a checkout of Olaf: clone the repository and run `olaf` from it"


def missing() -> list[str]:
    """The tools that a simulation needs and this machine does not have."""
    return [tool for tool in ("cargo", "verilator", "g++", "make") if shutil.which(tool) is None]


def program(name: str, quick: bool = False) -> Path:
    """Build a program of ``rtl/cosim`` and return its path.

    quick: it is to run for seconds, so its compiler does not optimize.

    Raises RunError, which says what to install, if it cannot be built here.
    """
    folder = CHECKOUT / "rtl" / "cosim"
    if not (folder / "Cargo.toml").is_file():
        raise RunError(f"{folder}: not there. {needs_checkout()}")
    if missing():
        raise RunError(
            f"{', '.join(missing())}: not installed. `rtl/env` in the checkout installs "
            "Verilator and g++ (on Debian: apt-get install verilator g++ make); cargo comes from "
            "https://rustup.rs"
        )
    profile = "quick" if quick else "dev"
    command = ["cargo", "build", "--quiet", "--profile", profile, "--bin", name]
    # Without the builds of the comparing tests, which no figure reads.
    command += ["--no-default-features", "--features", "figures"]
    done = _within(BUILD_S, command, folder)
    if done.returncode != 0:
        raise RunError(f"{' '.join(command)} in {folder}: exit {done.returncode}\n{done.stderr}")
    target = Path(os.environ.get("CARGO_TARGET_DIR", folder / "target"))
    return target / ("quick" if quick else "debug") / name


def simulated(built: Path, settings: Mapping[str, Any]) -> Any:
    """Run a program with these settings as JSON on its standard input; return what it prints.

    Raises RunError with the program's message if it fails.
    """
    done = _within(RUN_S, [str(built)], CHECKOUT, json.dumps(settings))
    if done.returncode != 0:
        raise RunError(f"{built.name}: exit {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def _within(
    seconds: int, command: list[str], folder: Path, told: str | None = None
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            cwd=folder,
            input=told,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired as error:
        raise RunError(f"{' '.join(command)}: not done within {seconds} s") from error
