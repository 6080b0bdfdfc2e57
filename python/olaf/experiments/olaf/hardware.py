"""OLAF §7, §8.1, §12.1: the queue of ``rtl/``, verilated and synthesised."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from olaf import experiments
from olaf.experiments import Goal, Result, Row, Spread, Task
from olaf.experiments.hardware import (
    COMMITTED,
    XCU55C,
    Cells,
    cell_table,
    counts,
    path_rows,
    percent,
    program,
)
from olaf.experiments.olaf import rtl_bursts, rtl_time
from olaf.experiments.olaf.bursts import Traffic

SLOTS = 8
"""Slots of the builds: those of the paper (OLAF §8.1)."""
WHOLE = "olaf_queue "
"""The beginning of the names of the whole queue's builds."""
MODULES = (
    "olaf_",
    "fp32_lanes LANES=16",
    "fp_add EXPONENT=11",
    "fp_mul",
    "fp_div",
    "axil_counters",
)
"""Builds of the queue and of its modules, by the beginnings of their names."""


class Parameters(experiments.Parameters):
    """The traffic and the link."""

    traffic: Traffic
    """Traffic of all workers."""
    rates: list[str] = Field(min_length=1)
    """Bandwidths of the uplink."""
    update_bytes: list[int] = Field(min_length=1)
    """Sizes of updates whose cycles are counted."""
    updates: int = Field(ge=2)
    """Updates of one size that come back to back."""


def run(task: Task[Parameters]) -> Result:
    """Simulate each seed's traffic; read the cell counts."""
    given = task.parameters
    cells = counts()
    task.say("building the simulation of the hardware")
    built = program("figures", task.quick)
    cycles = rtl_time.measure(task, built, given.update_bytes, given.updates)
    found = rtl_bursts.measure(task, built, given.traffic, SLOTS, given.rates)
    return Result(
        rows=[
            *rtl_time.rows(cycles, given.updates, task.paper),
            *path_rows([name for name in cells if name.startswith(WHOLE)], "olaf", len(task.seeds)),
            *cell_rows(cells, task.paper, len(task.seeds)),
            *rtl_bursts.rows(found, task.paper),
        ],
        tables=[
            rtl_time.table(cycles, given.updates),
            *rtl_bursts.tables(found, task.paper),
            cell_table(
                "modules",
                {name: of for name, of in cells.items() if name.startswith(MODULES)},
                ("XCU55C", XCU55C),
                ("lut", "lut, %", "ff", "ff, %", "mux, %", "bram36", "dsp"),
                "The paper's prototype takes 3.52 % of the LUTs, 1.5 % of the flip-flops and 1 % "
                "of the multiplexers.",
            ),
        ],
        charts=rtl_bursts.charts(found),
        notes=[
            f"{len(found.cycles)} simulations of {min(found.cycles):,} to {max(found.cycles):,} "
            "cycles, each of whole frames through the module `olaf_queue`."
        ],
    )


def cell_rows(cells: dict[str, Cells], paper: dict[str, Any], seeds: int) -> list[Row]:
    """Shares of the device that the builds of the whole queue take; none without such a build."""
    made = []
    for name, of in cells.items():
        if not name.startswith(WHOLE):
            continue
        shares = {
            "LUT": ("lut", paper["lut"], Goal(at_most=1.0)),
            "flip-flops": ("ff", paper["ff"], None),
            "multiplexers": ("mux", paper["mux"], None),
            "block RAM": ("bram36", None, None),
        }
        for quantity, (kind, theirs, goal) in shares.items():
            made.append(
                Row(
                    quantity=f"{quantity}, of an XCU55C",
                    where=name,
                    unit="%",
                    paper=theirs,
                    comparable=theirs is None,
                    note=f"rtl/syn/counts.csv, by Yosys: {COMMITTED}",
                    # Nothing random is in it.
                    ours=Spread.of([percent(of, XCU55C, kind)] * seeds),
                    goal=goal if "BLOCK=1" in name else None,
                )
            )
    return made
