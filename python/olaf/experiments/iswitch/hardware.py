"""iSwitch §3.3, §3.5: the accelerator of ``rtl/``, verilated and synthesised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from olaf import experiments
from olaf.experiments import Column, Goal, Result, Row, Spread, Table, Task
from olaf.experiments.hardware import (
    CLOCK_HZ,
    COMMITTED,
    XC7V690T,
    Cells,
    cell_table,
    counts,
    path_rows,
    percent,
)
from olaf.experiments.iswitch.rtl_vectors import Vectors, program, through

HEADERS_BYTES = 8 + 20 + 14 + 4 + 20
"""Of a packet on the wire: UDP, IPv4, Ethernet with its check, preamble and gap."""
SEG_BYTES = 8
BUILD = "iswitch_accelerator"
KINDS = ("LUT", "FF", "BRAM36", "DSP")


class Parameters(experiments.Parameters):
    """The workers and their gradient vectors."""

    workers: int = Field(ge=1, le=4)
    """One at each port of the board."""
    packet_floats: int = Field(ge=1, le=366)
    """Values in a full data packet."""
    line_gbit: float = Field(gt=0)
    """Rate of a port."""
    models: dict[str, int] = Field(min_length=1)
    """Bytes of each model (iSwitch Table 1)."""


def run(task: Task[Parameters]) -> Result:
    """Simulate an iteration of each model, back to back and at the ports' rate; read the cells."""
    cells = counts()
    task.say("building the simulation of the hardware")
    built = program(task.scratch)
    given = task.parameters
    gap = line_gap_cycles(given)
    fast: dict[str, list[Vectors]] = {model: [] for model in given.models}
    lines: dict[str, list[Vectors]] = {model: [] for model in given.models}
    for seed in task.each_seed():
        for model, size in given.models.items():
            task.say(f"seed {seed}: {model}, {size:,} bytes")
            fast[model].append(iteration(built, given, size, 0, seed))
            lines[model].append(iteration(built, given, size, gap, seed))
    return Result(
        rows=[
            *rows(fast, lines),
            *path_rows(list(builds(cells)), "iswitch", len(task.seeds)),
            *cell_rows(cells, task.paper, len(task.seeds)),
        ],
        tables=[cycle_table(fast, lines), cells_of(cells, task.paper)],
        notes=[
            f"{given.workers} workers, packets of {given.packet_floats} floats. A packet of "
            f"{wire_bytes(given)} bytes on the wire comes every {gap:.2f} cycles of 5 ns where all "
            f"{given.workers} ports are busy."
        ],
    )


def iteration(built: Path, given: Parameters, size: int, gap_cycles: float, seed: int) -> Vectors:
    """One vector of each worker."""
    return through(
        built,
        workers=given.workers,
        floats=max(1, size // 4),
        packet_floats=given.packet_floats,
        gap_cycles=gap_cycles,
        seed=seed,
    )


def wire_bytes(given: Parameters) -> int:
    """Bytes of a full packet on the wire."""
    return 4 * given.packet_floats + SEG_BYTES + HEADERS_BYTES


def line_gap_cycles(given: Parameters) -> float:
    """Cycles between two packets of all ports together."""
    seconds = wire_bytes(given) * 8 / (given.line_gbit * 1e9)
    return seconds * CLOCK_HZ["iswitch"] / given.workers


def rows(fast: dict[str, list[Vectors]], lines: dict[str, list[Vectors]]) -> list[Row]:
    """Speed and exactness."""
    every = [*fast.values(), *lines.values()]
    made = [
        Row(
            quantity="beats a cycle",
            where=f"{model}, packets back to back",
            ours=Spread.of([of.beats / of.cycles_in for of in found]),
            goal=Goal(at_least=1),
        )
        for model, found in fast.items()
    ]
    latency = "last beat of a sum in to first beat out"
    seeds = list(zip(*every, strict=True))
    made += [
        Row(
            quantity=f"{latency}, least",
            where="all models",
            unit="cycles",
            ours=Spread.of([min(of.latency_least for of in seed) for seed in seeds]),
        ),
        Row(
            quantity=f"{latency}, most",
            where="all models",
            unit="cycles",
            ours=Spread.of([max(of.latency_most for of in seed) for seed in seeds]),
            note="the last, short packet of a vector: the result before it still leaves",
        ),
    ]
    made.append(
        Row(
            quantity="sums with other bits than the processor's",
            where="all models",
            ours=Spread.of([sum(of.wrong for of in seed) for seed in seeds]),
            goal=Goal(at_most=0),
        )
    )
    return made


def cycle_table(fast: dict[str, list[Vectors]], lines: dict[str, list[Vectors]]) -> Table:
    """Cycles of an iteration."""
    ms = 1e3 / CLOCK_HZ["iswitch"]
    return Table(
        title="An iteration through the accelerator",
        columns=[
            Column(name="model"),
            Column(name="packets", digits=0),
            Column(name="beats", digits=0),
            Column(name="cycles, back to back", digits=0),
            Column(name="ms at 200 MHz", digits=3),
            Column(name="cycles, ports' rate", digits=0),
            Column(name="ms at 200 MHz, ports' rate", digits=3),
            Column(name="cycles after the last beat in", digits=0),
        ],
        rows=[
            [
                model,
                found[0].packets,
                found[0].beats,
                found[0].cycles,
                found[0].cycles * ms,
                lines[model][0].cycles,
                lines[model][0].cycles * ms,
                lines[model][0].cycles - lines[model][0].cycles_in,
            ]
            for model, found in fast.items()
        ],
        note="The paper prints no cycles and no latency of its accelerator.",
    )


def builds(cells: dict[str, Cells]) -> dict[str, Cells]:
    """The builds of the accelerator."""
    return {name: of for name, of in cells.items() if name.startswith(f"{BUILD} ")}


def shares(of: Cells) -> list[float]:
    """LUT, FF, BRAM36 in percent of the device, and the number of DSP slices."""
    return [*(percent(of, XC7V690T, kind) for kind in ("lut", "ff", "bram36")), of.dsp]


def cell_rows(cells: dict[str, Cells], paper: dict[str, Any], seeds: int) -> list[Row]:
    """Our shares of the device beside the paper's percentages, which have another base."""
    return [
        Row(
            quantity=kind,
            where=name,
            unit="slices" if kind == "DSP" else "%",
            paper=paper[kind.lower()],
            # Nothing random is in it.
            ours=Spread.of([share] * seeds),
            note=f"rtl/syn/counts.csv, by Yosys: {COMMITTED}",
            comparable=False,
            headline=False,
        )
        for name, of in builds(cells).items()
        for kind, share in zip(KINDS, shares(of), strict=True)
    ]


def cells_of(cells: dict[str, Cells], paper: dict[str, Any]) -> Table:
    """Cells of each build of the accelerator."""
    return cell_table(
        "accelerator",
        builds(cells),
        ("XC7V690T", XC7V690T),
        ("lut", "lut, %", "ff", "ff, %", "bram36", "bram36, %", "dsp"),
        f"The paper's accelerator takes {paper['lut']} % more LUTs, {paper['ff']} % more "
        f"flip-flops, {paper['bram36']} % more block RAM than the reference switch, and "
        f"{paper['dsp']} DSP slices.",
    )
