"""Rows, tables and sentences shared by Tables 2 and 3 of OLAF §8.3."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import TypeAlias

from olaf.experiments import Baseline, Column, Row, Spread, Table
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
    Variant,
    View,
    age_ms,
    fairness,
    measure,
    paper_variants,
    peak_ms,
    percent,
    worker_ms,
)
from olaf.scenarios import Outcome
from olaf.scenarios.outcome import Cluster
from olaf.scenarios.summary import NS_PER_MS

FITTED = "rate of the last link"
"""The paper prints no rates. SW3's was chosen so that FIFO loses 88 % in Table 2. Table 3 has the
same link, which is saturated: its rate alone then decides FIFO's loss there, too."""
Cells: TypeAlias = list[list[Spread | float | str | None]]


def paper_rows(
    paper: dict[str, float], measured: dict[View, Measured], shown: dict[str, Variant]
) -> list[Row]:
    """The paper's numbers beside ours, by view; FIFO is the baseline of the other variants."""
    rows = []
    for view, by_variant in measured.items():
        known = dict(by_variant)
        fifo = values(known[FIFO])
        for key, variant in shown.items():
            for name, (quantity, unit, ours) in values(known[variant]).items():
                base = Baseline(name="FIFO", paper=paper[f"{name}_fifo"], ours=fifo[name][2])
                rows.append(
                    Row(
                        quantity=quantity,
                        where=f"{variant.name}, {view} view",
                        unit=unit,
                        paper=paper[f"{name}_{key}"],
                        ours=ours,
                        baseline=None if variant is FIFO else base,
                        headline=view == "ns-3",
                        fitted=FITTED if name == "loss" and variant is FIFO else "",
                    )
                )
    return rows


def values(outcomes: Sequence[Outcome]) -> dict[str, tuple[str, str, Spread]]:
    """Quantity, unit and our values of a row, by the name of the paper's column."""
    return {
        "loss": ("update loss, by packets", "%", percent(outcomes, lambda o: o.loss_packets)),
        "s1": ("AoM of a cluster of S1", "ms", age_ms(outcomes, "S1")),
        "s2": ("AoM of a cluster of S2", "ms", age_ms(outcomes, "S2")),
        "fairness": ("fairness", "", fairness(outcomes)),
    }  # fmt: skip


def all_tables(measured: dict[View, Measured], duration_s: float) -> list[Table]:
    """All variants: ages, loss and fairness; and each cluster of the main variants."""
    made = []
    for view, by_variant in measured.items():
        made += [age_table(view, by_variant), loss_table(view, by_variant, duration_s)]
    # One reading of the paper's control is enough here: they hardly differ.
    beside = paper_variants()[1:]
    main = [(variant, runs) for variant, runs in measured["ns-3"] if variant not in beside]
    return [*made, cluster_table("ns-3", main)]


def age_table(view: View, measured: Measured) -> Table:
    """Ages by variant."""
    columns = [Column(name="")]
    for group in GROUPS:
        columns += [
            Column(name=f"AoM {group}, ms"),
            Column(name=f"mean peak {group}, ms"),
            Column(name=f"each worker's own {group}, ms"),
        ]
    rows: Cells = []
    for variant, outcomes in measured:
        row: list[Spread | float | str | None] = [variant.name]
        for group in GROUPS:
            row += [age_ms(outcomes, group), peak_ms(outcomes, group), worker_ms(outcomes, group)]
        rows.append(row)
    return Table(title=f"Ages: {VIEWS[view]}", columns=columns, rows=rows)


def loss_table(view: View, measured: Measured, duration_s: float) -> Table:
    """Loss, fates and fairness by variant."""
    return Table(
        title=f"Loss and fairness: {VIEWS[view]}",
        columns=[
            Column(name=""),
            Column(name="loss by packets, %"),
            Column(name="loss by contributions, %"),
            Column(name="contributions delivered, % of generated"),
            Column(name="packets delivered per second"),
            Column(name="mean probability of sending", digits=3),
            Column(name="fairness", digits=4),
        ],
        rows=[
            [
                variant.name,
                percent(outcomes, lambda o: o.loss_packets),
                percent(outcomes, lambda o: o.loss_contributions),
                percent(outcomes, lambda o: o.fates.delivered / o.fates.generated),
                Spread.of([o.packets_delivered / duration_s for o in outcomes]),
                Spread.of([o.probability_mean for o in outcomes]),
                fairness(outcomes),
            ]
            for variant, outcomes in measured
        ],
    )


def cluster_table(view: View, measured: Measured) -> Table:
    """Each cluster's average age and mean peak, over the seeds."""
    clusters = measured[0][1][0].clusters
    rows: Cells = []
    for variant, outcomes in measured:
        for name, of in (
            ("average", lambda c: c.age_mean_ns),
            ("mean peak", lambda c: c.age_peak_mean_ns),
        ):
            rows.append([f"{variant.name}: {name}", *_by_cluster(outcomes, of)])
    return Table(
        title=f"AoM of each cluster, ms, mean over the seeds: {VIEWS[view]}",
        columns=[Column(name=""), *(Column(name=f"C{c.cluster + 1}") for c in clusters)],
        rows=rows,
    )


def _by_cluster(
    outcomes: Sequence[Outcome], of: Callable[[Cluster], float | None]
) -> list[float | None]:
    means: list[float | None] = []
    for same in zip(*(outcome.clusters for outcome in outcomes), strict=True):
        known = [value for value in map(of, same) if value is not None]
        means.append(statistics.fmean(known) / NS_PER_MS if known else None)
    return means


def locked_clocks(seeds: Sequence[int], network: Network, apart: Sequence[Outcome]) -> str:
    """FIFO's result if SW1 and SW2 have exactly the same clock; `apart` is without."""
    alike = network.model_copy(update={"sw2_bps": network.sw1_bps})
    locked = measure(seeds, alike, FIFO, "ns-3")
    one_takes_all = sum(_is_locked(outcome) for outcome in locked)
    return (
        "With SW1 and SW2 at exactly the same rate, FIFO's mean over the seeds is "
        f"{_groups(locked)}: one group is more than three times older than the other in "
        f"{one_takes_all} of {len(locked)} seeds. With their clocks 0.1 % apart it is "
        f"{_groups(apart)}: in {sum(map(_is_locked, apart))} of {len(apart)} seeds. The first "
        "result is an artefact of two perfect clocks, and the seed decides which group wins. All "
        "other numbers here use clocks that are apart."
    )


def _is_locked(outcome: Outcome) -> bool:
    first, second = (age_ms([outcome], group).mean for group in GROUPS)
    return max(first, second) > 3 * min(first, second)


def _groups(outcomes: Sequence[Outcome]) -> str:
    first, second = (age_ms(outcomes, group).mean for group in GROUPS)
    return f"{first:,.0f} ms for S1 and {second:,.0f} ms for S2"


def fifo_ages(network: Network, paper: dict[str, float], fifo: Sequence[Outcome]) -> str:
    """The ages that follow from the paper's FIFO loss, beside its printed ages; ns-3's view."""
    kept = 1 - paper["loss_fifo"] / 100
    # One datagram is on each wire, besides those in the queue's slots.
    longest_ms = sum(
        (slots + 1) * network.service_ms(rate)
        for slots, rate in (
            (network.edge_slots, network.sw1_bps), (network.core_slots, network.sw3_bps),
        )
    )  # fmt: skip
    interval_ms = {"S1": network.s1_interval_ms, "S2": network.s2_interval_ms}
    worker_every_ms = [interval_ms[group] / kept for group in GROUPS]
    cluster_every_ms = [every / network.workers for every in worker_every_ms]

    def both(values: Sequence[float]) -> str:
        return " and ".join(f"{value:,.0f}" for value in values)

    return (
        f"Ages that follow from the paper's FIFO loss of {paper['loss_fifo']:g} %, if it were the "
        f"same for all (S1 and S2 in this order): an update of a cluster arrives every "
        f"{both(cluster_every_ms)} ms, one of a given worker every {both(worker_every_ms)} ms. "
        f"Full queues and wires delay it by at most {longest_ms:.0f} ms at our rates. At random "
        f"times this gives ages of about {both([t + longest_ms for t in cluster_every_ms])} ms "
        f"for a cluster and {both([t + longest_ms for t in worker_every_ms])} ms for each worker "
        f"alone. We measure {both([age_ms(fifo, g).mean for g in GROUPS])} ms for a cluster "
        f"and {both([worker_ms(fifo, g).mean for g in GROUPS])} ms for each worker. The paper "
        f"prints {both([paper['s1_fifo'], paper['s2_fifo']])} ms, and gives too few details to "
        "explain the difference."
    )


def olaf_ages(paper: dict[str, float], olaf: Sequence[Outcome]) -> str:
    """OLAF's ages beside the paper's; ns-3's view."""
    ours = [age_ms(olaf, group).mean for group in GROUPS]
    printed = [paper["s1_olaf"], paper["s2_olaf"]]
    shares = [mine / theirs for mine, theirs in zip(ours, printed, strict=True)]
    return (
        f"OLAF's AoM is {ours[0]:.0f} and {ours[1]:.0f} ms, {shares[0]:.2f} and {shares[1]:.2f} of "
        f"the paper's {printed[0]:.0f} and {printed[1]:.0f} ms, although the loss by packets is "
        f"{percent(olaf, lambda o: o.loss_packets).mean:.1f} % and the paper's is "
        f"{paper['loss_olaf']:g} %. The rates of its links would settle it, but it does not print "
        "them."
    )


def per_worker_twice(
    paper: dict[str, float], fifo: Sequence[Outcome], olaf: Sequence[Outcome]
) -> str:
    """How close twice each worker's own age is to the paper's printed ages; ns-3's view."""
    cells, off = [], []
    for name, key, outcomes in (("FIFO", "fifo", fifo), ("OLAF", "olaf", olaf)):
        for group, printed in zip(GROUPS, (paper[f"s1_{key}"], paper[f"s2_{key}"]), strict=True):
            twice = 2 * worker_ms(outcomes, group).mean
            off.append(abs(twice / printed - 1))
            cells.append(
                f"{name} {group} {twice:,.0f} ms for {printed:,.0f} ms ({twice / printed - 1:+.1%})"
            )
    return (
        "One reading brings both rows close to the paper: twice each worker's own AoM, instead "
        f"of the AoM of a cluster. That is {', '.join(cells)}: within {max(off):.0%} of all four "
        "numbers. The paper does not say why an age would double, so no row here is judged by this "
        "reading."
    )


def two_simulators(network: Network) -> list[tuple[str, Network, Variant, View]]:
    """The variants that also run in ns-3: the main ones as ns-3 sees them, and OLAF as hardware."""
    variants = [FIFO, OLAF, PAPER, FAIR, FRESHEST]
    cases: list[tuple[str, Network, Variant, View]] = [
        (variant.name, network, variant, "ns-3") for variant in variants
    ]
    return [*cases, (OLAF.name, network, OLAF, "hardware")]
