"""OLAF §8.3, Table 3: as Table 2, with a group that has updates three times more rarely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pydantic import Field

from olaf.experiments import Bound, Column, Result, Spread, Table, Task, ns3
from olaf.experiments.multihop import (
    FAIR,
    FIFO,
    FRESHEST,
    GROUPS,
    OLAF,
    PAPER,
    VIEWS,
    Measured,
    Network,
    View,
    age_ms,
    fairness,
    jain_of_groups,
    measure,
    measure_all,
    paper_variants,
)
from olaf.experiments.multihop_pages import (
    all_tables,
    fifo_ages,
    olaf_ages,
    paper_rows,
    two_simulators,
)


class Parameters(Network):
    """The network, and which thresholds of the paper's control are tried."""

    thresholds_ms: list[float] = Field(min_length=1)
    """Thresholds beyond which feedback is obsolete."""


def run(task: Task[Parameters]) -> Result:
    """Measure every variant in both views."""
    network = task.parameters
    # The paper does not say which reading of its control it printed: the first is set beside it.
    readings = paper_variants()
    variants = [FIFO, OLAF, *readings, FAIR, FRESHEST]
    measured = measure_all(task.each_seed(), network, variants)
    shown = {"fifo": FIFO, "olaf": OLAF, "tc": readings[0]}
    ns3_rows, ns3_tables, notes = ns3.beside(two_simulators(network), task.seeds, task.say)
    return Result(
        rows=[*paper_rows(task.paper, measured, shown), *ns3_rows],
        tables=[
            *all_tables(measured, network.duration_s),
            thresholds(task.parameters, task.seeds, measured["ns-3"]),
            *ns3_tables,
        ],
        notes=notes,
        differences=[
            fifo_ages(network, task.paper, dict(measured["ns-3"])[FIFO]),
            olaf_ages(task.paper, dict(measured["ns-3"])[OLAF]),
            control(measured),
        ],
        bounds=[bound(task.paper, key, name) for key, name in NAMES.items()],
    )


def control(measured: dict[View, Measured]) -> str:
    """The effect of the paper's control on fairness here."""
    parts = []
    for view, runs in measured.items():
        known = {variant: fairness(outcomes).mean for variant, outcomes in runs}
        readings = [known[variant] for variant in paper_variants()]
        parts.append(
            f"in the {view} view the fairness of OLAF alone is {known[OLAF]:.4f}, with the "
            f"paper's control {min(readings):.4f} to {max(readings):.4f} by how it is read, with "
            f"our fair control {known[FAIR]:.4f}"
        )
    return (
        f"The control as written makes fairness worse here, where the paper sees it rise: "
        f"{'; '.join(parts)}. Nearly all feedback is younger than the threshold, so that both "
        "groups are thinned by Qmax / N alike, whether they send often or rarely. That a fairness "
        "is within 10 % of the paper's says little near 1; its direction says more."
    )


def thresholds(given: Parameters, seeds: Sequence[int], measured: Measured) -> Table:
    """The paper's control by its threshold, urgency, for both audiences of an answer."""
    rows: list[list[Spread | float | str | None]] = []
    plain = dict(measured)[OLAF]
    hears = {PAPER: "contributors", replace(PAPER, answers_to="cluster"): "the cluster"}
    for variant, name in hears.items():
        for threshold_ms in given.thresholds_ms:
            network = given.model_copy(update={"threshold_ms": threshold_ms})
            outcomes = measure(seeds, network, variant, "ns-3")
            ages = [age_ms(outcomes, group) for group in GROUPS]
            rows.append([name, threshold_ms, *ages, fairness(outcomes)])
    return Table(
        title=f"The paper's control, urgency, by its threshold: {VIEWS['ns-3']}",
        columns=[
            Column(name="answers go to"),
            Column(name="threshold, ms"),
            Column(name="AoM S1, ms"),
            Column(name="AoM S2, ms"),
            Column(name="fairness", digits=4),
        ],
        rows=rows,
        note=f"Without any control the fairness is {fairness(plain).mean:.4f}.",
    )


NAMES = {"fifo": "FIFO", "olaf": "OLAF", "tc": "OLAF with the paper's control"}


def bound(paper: dict[str, float], key: str, name: str) -> Bound:
    """The fairness that the paper's own group means allow."""
    first, second = paper[f"s1_{key}"], paper[f"s2_{key}"]
    most = jain_of_groups(first, second)
    printed = paper[f"fairness_{key}"]
    verdict = "cannot be" if printed > most else "can be"
    return Bound(
        quantity=f"fairness of {name} with the paper's group means, at most",
        value=round(most, 4),
        why=f"Five clusters with {first:,.0f} ms and five with {second:,.0f} ms in the mean are "
        "fairest when the five are alike; any difference among them lowers Jain's index. The "
        f"paper prints {printed:g} beside these means, which {verdict}.",
    )
