"""OLAF §7, §8.1, §12.1: the queue of ``rtl/``, verilated and synthesised."""

from __future__ import annotations

from pydantic import Field

from olaf import experiments
from olaf.experiments import Column, Result, Table, Task
from olaf.experiments.hardware import XCU55C, Cells, counts, program
from olaf.experiments.olaf import rtl_bursts
from olaf.experiments.olaf.bursts import Traffic

SLOTS = 8
"""Slots of the builds: those of the paper (OLAF §8.1)."""
MODULES = ("olaf_", "fp32_lanes LANES=16", "fp_add EXPONENT=11", "axil_counters")
"""Builds that the queue consists of, by the beginnings of their names."""


class Parameters(experiments.Parameters):
    """The traffic and the link."""

    traffic: Traffic
    """Traffic of all workers."""
    rates: list[str] = Field(min_length=1)
    """Bandwidths of the uplink."""


def run(task: Task[Parameters]) -> Result:
    """Simulate each seed's traffic; read the cell counts."""
    given = task.parameters
    cells = counts()
    task.say("building the simulation of the hardware")
    built = program("bursts")
    found = rtl_bursts.measure(task, built, given.traffic, SLOTS, given.rates)
    return Result(
        rows=rtl_bursts.rows(found, task.paper),
        tables=[*rtl_bursts.tables(found, task.paper), cell_table(cells)],
        charts=rtl_bursts.charts(found),
        notes=[
            f"{len(found.cycles)} simulations of {min(found.cycles):,} to {max(found.cycles):,} "
            "cycles of 4 ns. The decisions are those of the module `olaf_queue_control`; the "
            "bench plays the memory of the frames and the link."
        ],
    )


def cell_table(cells: dict[str, Cells]) -> Table:
    """Cells of each module of the queue, and the share of the device."""
    found = {name: of for name, of in cells.items() if name.startswith(MODULES)}
    return Table(
        title="Cells of the modules, and their share of an XCU55C",
        columns=[
            Column(name="module"),
            Column(name="LUT", digits=0),
            Column(name="LUT, %", digits=2),
            Column(name="FF", digits=0),
            Column(name="FF, %", digits=2),
            Column(name="F7 to F9, %", digits=2),
            Column(name="BRAM36", digits=0),
            Column(name="DSP", digits=0),
        ],
        rows=[
            [
                name,
                of.lut,
                100 * of.lut / XCU55C.lut,
                of.ff,
                100 * of.ff / XCU55C.ff,
                100 * of.mux / XCU55C.mux,
                of.bram36,
                of.dsp,
            ]
            for name, of in found.items()
        ],
        note="After synthesis by Yosys, without place and route. The paper's prototype takes "
        "3.52 % of the LUTs, 1.5 % of the flip-flops and 1 % of the multiplexers.",
    )
