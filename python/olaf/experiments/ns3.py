"""The same scenarios in ns-3, if its program has been built (``make ns3``)."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from olaf.errors.outcome import RunError
from olaf.experiments import Column, Goal, Row, Spread, Table
from olaf.experiments.multihop import (
    GROUPS,
    VIEWS,
    Network,
    Variant,
    View,
    age_ms,
    measure,
    scenario_of,
)
from olaf.scenarios import Outcome, Scenario

NOT_BUILT = "ns-3 is not built (`make ns3`): there are only olaf-sim's numbers."

AGREE_PERCENT = 1.0
"""Allowed difference between the simulators in updates received and merged."""

TIMEOUT_S = 300.0

SEEDS = 5
"""Number of seeds: ns-3 takes seconds for a run that takes olaf-sim milliseconds."""


def program() -> Path | None:
    """``olaf-multihop``: from the environment variable ``OLAF_NS3``, or the checkout's own."""
    told = os.environ.get("OLAF_NS3")
    if told:
        if not Path(told).is_file():
            raise RunError(f"OLAF_NS3={told}: no such file; name the olaf-multihop of `make ns3`")
        return Path(told)
    checkout = Path(__file__).parents[3]
    target = Path(os.environ.get("CARGO_TARGET_DIR", checkout / "target"))
    built = target / "ns3" / "olaf-multihop"
    return built if built.is_file() else None


def run(olaf_multihop: Path, scenario: Scenario, seed: int) -> Outcome:
    """Run a scenario in ns-3. Raises RunError with the program's message if it fails."""
    told = json.dumps({**scenario, "seed": seed})
    try:
        done = subprocess.run(
            [olaf_multihop, "--scenario=-"],
            input=told,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RunError(f"{olaf_multihop}: no outcome within {TIMEOUT_S:g} s") from None
    if done.returncode != 0:
        raise RunError(f"{olaf_multihop}: exit {done.returncode}: {done.stderr.strip()}")
    outcome = json.loads(done.stdout)
    outcome.pop("simulator", None)
    return Outcome.model_validate(outcome)


Case = tuple[str, Network, Variant, View]
"""A comparison: a name, the network, the variant, the view."""


def beside(
    cases: Sequence[Case], seeds: Sequence[int], say: Callable[[str], None]
) -> tuple[list[Row], list[Table], list[str]]:
    """Rows, a table and notes that compare ns-3 with olaf-sim; only a note if it is not built."""
    built = program()
    if built is None:
        return [], [], [NOT_BUILT]
    seeds = seeds[:SEEDS]
    rows: list[Row] = []
    cells: list[list[Spread | float | str | None]] = []
    for name, network, variant, view in cases:
        say(f"ns-3: {name}, {view} view")
        scenario = scenario_of(network, variant, view)
        theirs = [run(built, scenario, seed) for seed in seeds]
        ours = measure(seeds, network, variant, view)
        apart = {key: _apart(theirs, ours, of) for key, of in COUNTS.items()}
        cells.append([
            name, view,
            *(cell for key, of in COUNTS.items() for cell in (
                _mean(of(o) for o in theirs), _mean(of(o) for o in ours), apart[key],
            )),
            *(age_ms(runs, group).mean for group in GROUPS for runs in (theirs, ours)),
        ])  # fmt: skip
        if variant.queue != "fifo":
            rows += [
                Row(
                    quantity=f"packets {key}, ns-3 off olaf-sim",
                    where=f"{name}, {view} view",
                    unit="%",
                    ours=spread,
                    goal=Goal(at_most=AGREE_PERCENT),
                    headline=False,
                    note=f"of {_mean(map(COUNTS[key], ours)):,.0f}",
                )
                for key, spread in apart.items()
            ]
    columns = [Column(name=""), Column(name="view")]
    for key in COUNTS:
        columns += [
            Column(name=f"{key}, ns-3", digits=0), Column(name=f"{key}, olaf-sim", digits=0),
            Column(name="off, %", digits=2),
        ]  # fmt: skip
    for group in GROUPS:
        columns += [Column(name=f"AoM {group}, ns-3, ms"), Column(name=f"{group}, olaf-sim, ms")]
    table = Table(
        title="ns-3 and olaf-sim: the same scenario, the same seeds, the same engine in the queue",
        columns=columns,
        rows=cells,
        note="Packets that the server received, and packets that were merged on the way: means "
        f"over the first {len(seeds)} seeds, and the larger of the two differences, seed by seed. "
        + "; ".join(f"*{view}*: {words}" for view, words in VIEWS.items())
        + ".",
    )
    return rows, [table], []


COUNTS: dict[str, Callable[[Outcome], int]] = {
    "received": lambda outcome: outcome.packets_delivered,
    "merged": lambda outcome: outcome.packets_merged,
}


def _apart(
    theirs: Sequence[Outcome], ours: Sequence[Outcome], of: Callable[[Outcome], int]
) -> Spread:
    pairs = zip(map(of, theirs), map(of, ours), strict=True)
    return Spread.of([abs(a - b) / max(b, 1) * 100 for a, b in pairs])


def _mean(values: Iterable[int]) -> float:
    return Spread.of(list(values)).mean
