"""OLAF §7 and §12.1: cycles of an update in the verilated hardware, and bits in a cycle."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from olaf.experiments import Column, Goal, Row, Spread, Table, Task
from olaf.experiments.hardware import CLOCK_HZ, simulated

NS = 1e9 / CLOCK_HZ["olaf"]
"""Length of a cycle of the paper's board, which turns the paper's nanoseconds into cycles."""
BEAT_BITS = 512

Cycles = dict[int, list[dict[str, float]]]
"""By bytes of an update; what the program prints, for each seed."""


def measure(task: Task[Any], built: Path, sizes: Sequence[int], updates: int) -> Cycles:
    """Send updates of each size through the queue, alone and back to back."""
    found: Cycles = {size: [] for size in sizes}
    for seed in task.seeds:
        for size in sizes:
            asked = {"bytes": size, "updates": updates, "seed": seed}
            found[size].append(simulated(built, {"updates": asked}))
    return found


def rows(cycles: Cycles, updates: int, paper: dict[str, Any]) -> list[Row]:
    """Both readings of the paper's time, the added latency, and the rate of short updates."""
    made = []
    for size, seen in cycles.items():
        theirs = paper.get(f"ns_{size}")
        where = f"{size:,} bytes"
        added = Spread.of([one["last_in_to_first_out"] for one in seen])
        if theirs is not None:
            through = [one["one_flow"] / updates for one in seen]
            stored = [one["stored_and_sent"] for one in seen]
            made += [
                _cycles("cycles per update, one behind the other", where, theirs, through),
                _cycles("cycles of an update alone, stored and then sent", where, theirs, stored),
                Row(
                    quantity="cycles from its last beat in to its first beat out",
                    where=where,
                    ours=added,
                    goal=Goal(at_most=12),
                ),
            ]
        else:
            made.append(
                Row(
                    quantity="bits a cycle of updates of one flow, back to back",
                    where=where,
                    unit="bits",
                    paper=paper["rate_gbit"] * NS,
                    ours=Spread.of([_bits(one, updates) for one in seen]),
                    goal=Goal(at_least=BEAT_BITS),
                    note=f"the paper: {paper['rate_gbit']:g} Gbit/s at 250 MHz",
                )
            )
    return made


def _cycles(quantity: str, where: str, ns: float, ours: list[float]) -> Row:
    return Row(
        quantity=quantity,
        where=where,
        unit="cycles",
        paper=ns / NS,
        ours=Spread.of(ours),
        note=f"the paper: {ns:,g} ns at 250 MHz",
    )


def _bits(one: dict[str, float], updates: int) -> float:
    """Bits of whole beats in a cycle, as the interface moves them."""
    return one["beats"] * updates * BEAT_BITS / one["one_flow"]


def table(cycles: Cycles, updates: int) -> Table:
    """Every size."""
    return Table(
        title="Cycles, by size of the update",
        columns=[
            Column(name="bytes"),
            Column(name="beats", digits=0),
            Column(name="last beat in to first beat out", digits=0),
            Column(name="stored and sent", digits=0),
            Column(name="cut through, computed", digits=0),
            Column(name="per update, one flow", digits=2),
            Column(name="per update, many flows", digits=2),
            Column(name="between departures of merged entries", digits=0),
        ],
        rows=[
            [
                f"{size:,}",
                seen[0]["beats"],
                *(_of(seen, name) for name in ("last_in_to_first_out", "stored_and_sent")),
                _cut_through(seen),
                *(_of(seen, name, updates) for name in ("one_flow", "many_flows")),
                _of(seen, "merged_departure"),
            ]
            for size, seen in cycles.items()
        ],
        note="The queue stores and forwards: an update leaves after its last beat came. A queue "
        "that cut through would wait for the first beat only, and could not refuse a value that is "
        "not finite: its cycles, the beats and those to the first beat out, are computed. Updates "
        "of one flow come from different workers, so that they merge. The last column is a full "
        "queue of merged entries behind which the link is always free, and the longest time "
        "between two of them: a short entry waits for the division of its mean reward.",
    )


def _cut_through(seen: Sequence[dict[str, float]]) -> Spread:
    """Cycles of an update alone if its first beat left before its last one came."""
    return Spread.of([one["beats"] + one["last_in_to_first_out"] for one in seen])


def _of(seen: Sequence[dict[str, float]], name: str, by: int = 1) -> Spread:
    return Spread.of([one[name] / by for one in seen])
