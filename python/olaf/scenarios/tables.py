"""The result of a scenario, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from olaf.values.numbers import counted, percent, short

if TYPE_CHECKING:
    from olaf.scenarios.summary import GroupSummary, Summary
    from olaf.statistics.spread import Spread


def tables(summary: Summary) -> Iterator[tuple[str, Table]]:
    """Ages by group, overall measures, fates, and fates by switch, each with a title."""
    seeds = len(summary.seeds)
    over = f", summed over {seeds} seeds" if seeds > 1 else ""
    spread = ": mean over the seeds, lowest .. highest" if seeds > 1 else ""
    yield f"Age-of-Model at the server, ms{spread}", _ages(summary)
    yield "", _measures(summary)
    yield f"Where every update has ended{over}", _fates(summary)
    yield f"Contributions by switch{over}", _switches(summary)


def _ages(summary: Summary) -> Table:
    table = Table(box=None)
    table.add_column("group")
    for name in ("mean", "mean peak", "highest peak", "worst cluster", "each worker's own"):
        table.add_column(name, justify="right", overflow="fold")
    for group in summary.groups:
        worst = _text(group.worst_age_mean_ms)
        if group.worst_cluster is not None and group.clusters > 1:
            worst = f"cluster {group.worst_cluster}: {worst}"
        table.add_row(
            f"{group.name}{_unheard(group, len(summary.seeds))}",
            _text(group.age_mean_ms),
            _text(group.age_peak_mean_ms),
            _text(group.age_peak_max_ms),
            worst,
            _text(group.worker_age_mean_ms),
        )
    return table


def _unheard(group: GroupSummary, seeds: int) -> str:
    if group.clusters_unheard:
        every = counted(group.clusters * seeds, "cluster")
        return f"\nnever heard: {group.clusters_unheard} of {every}"
    return (
        f"\nnever heard: {counted(group.workers_unheard, 'worker')}"
        if group.workers_unheard
        else ""
    )


def _measures(summary: Summary) -> Table:
    table = Table(box=None, show_header=False)
    fairness = "- (nothing was delivered)"
    if summary.fairness is not None:
        fairness = _digits(summary.fairness)
    table.add_row("fairness (Jain's index of the clusters' mean AoM)", fairness)
    table.add_row("loss by packets", _share(summary.loss_packets))
    table.add_row("loss by contributions", _share(summary.loss_contributions))
    table.add_row("mean probability of sending", _digits(summary.probability_mean))
    table.add_row(
        "packets",
        f"{summary.packets_sent:,} sent, {summary.packets_merged:,} merged into others, "
        f"{summary.packets_dropped:,} dropped, {summary.packets_delivered:,} delivered",
    )
    return table


def _fates(summary: Summary) -> Table:
    table = Table(box=None)
    table.add_column("fate")
    table.add_column("contributions", justify="right")
    table.add_column("share", justify="right")
    counts = summary.fates.model_dump()
    generated = counts.pop("generated")
    for name, count in counts.items():
        share = percent(count / generated) if generated else "-"
        table.add_row(name.replace("_", " "), f"{count:,}", share)
    total = sum(counts.values())
    table.add_row("sum", f"{total:,}", "", style="bold")
    verdict = Text("the sums match", style="green")
    if not summary.fates_match:
        verdict = Text("the sums do NOT match", style="bold red")
    table.add_row("generated", f"{generated:,}", verdict)
    return table


def _switches(summary: Summary) -> Table:
    table = Table(box=None)
    table.add_column("switch")
    names = ("received", "sent_alone", "merged", "replaced", "filtered", "dropped", "rejected",
             "waiting")  # fmt: skip
    for name in names:
        table.add_column(name.replace("_", " "), justify="right")
    table.add_column("packets in", justify="right")
    table.add_column("packets out", justify="right")
    for switch in summary.switches:
        counts = switch.model_dump()
        row = [f"{counts[name]:,}" for name in names]
        packets = (f"{switch.packets_received:,}", f"{switch.packets_sent:,}")
        table.add_row(switch.name, *row, *packets)
    return table


def _text(spread: Spread | None) -> str:
    if spread is None:
        return "-"
    if spread.low == spread.high:
        return short(spread.mean)
    return f"{short(spread.mean)}\n{short(spread.low)} .. {short(spread.high)}"


def _share(spread: Spread) -> str:
    low, high = percent(spread.low), percent(spread.high)
    return percent(spread.mean) if low == high else f"{percent(spread.mean)} ({low} .. {high})"


def _digits(spread: Spread) -> str:
    if spread.low == spread.high:
        return f"{spread.mean:.4f}"
    return f"{spread.mean:.4f} ({spread.low:.4f} .. {spread.high:.4f})"
