"""The result of `olaf simulate sums`, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from rich.table import Table

from olaf.scenarios.sums.outcome import Job, Link, Outcome

JOB_COLUMNS = (
    "job", "engine", "iteration, ms", "low .. high", "compute", "wait", "sum", "update", "Gbit/s",
    "packets", "again", "partial", "at server",
)  # fmt: skip
LINK_COLUMNS = (
    "link", "Gbit/s", "MB", "busy", "frames", "lost", "dropped", "marked", "wait, us",
)  # fmt: skip
MOST_LINKS = 8
NS_PER_MS = 1e6
NONE = ("", "0", "0.000")


def jobs(outcomes: Sequence[Outcome]) -> Table:
    """A row for each job: means over the seeds, and the lowest and highest iteration time.

    ``again`` counts packets that were sent again, ``partial`` sums without some workers, and
    ``at server`` packets that ATP's server added.
    """
    return _table(
        JOB_COLUMNS,
        [_job(runs) for runs in zip(*(outcome.jobs for outcome in outcomes), strict=True)],
    )


def links(outcome: Outcome) -> tuple[str, Table]:
    """The busiest links of one seed, and how many there are."""
    busiest = sorted(outcome.links, key=lambda link: -link.busy)
    left = len(busiest) - MOST_LINKS
    rest = f", the busiest of {len(busiest)}" if left > 0 else ""
    title = f"Links, each direction{rest}, seed {outcome.seed}"
    return title, _table(LINK_COLUMNS, [_link(link) for link in busiest[:MOST_LINKS]])


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Without the columns in which nothing happened."""
    shown = [at for at in range(len(names)) if at < 2 or any(row[at] not in NONE for row in rows)]
    made = Table(box=None, padding=(0, 2, 0, 0))
    for at in shown:
        made.add_column(names[at], justify="left" if at == 0 else "right", no_wrap=True)
    for row in rows:
        made.add_row(*(row[at] for at in shown))
    return made


def _job(runs: Sequence[Job]) -> list[str]:
    first = runs[0]
    times = [run.iteration_ns / NS_PER_MS for run in runs]
    goodputs = [run.goodput_bps for run in runs if run.goodput_bps is not None]
    parts = [
        fmean(getattr(run, f"{part}_ns") for run in runs) / NS_PER_MS
        for part in ("compute", "wait", "aggregation", "update")
    ]
    counts = [
        fmean(getattr(run, name) for run in runs) for name in ("packets", "resent", "degraded")
    ]
    return [
        first.name,
        first.engine,
        f"{fmean(times):.3f}",
        f"{min(times):.3f} .. {max(times):.3f}" if len(runs) > 1 else "",
        *(f"{part:.3f}" for part in parts),
        f"{fmean(goodputs) / 1e9:.3f}" if goodputs else "",
        *(f"{count:,.0f}" for count in counts),
        f"{fmean(run.at_server for run in runs):,.0f}" if first.engine == "atp" else "",
    ]


def _link(link: Link) -> list[str]:
    return [
        link.name,
        f"{link.rate_bps / 1e9:g}",
        f"{link.bytes / 1e6:,.1f}",
        f"{100 * link.busy:.1f} %",
        *(f"{count:,}" for count in (link.offered, link.lost, link.dropped, link.marked)),
        f"{link.longest_wait_ns / 1e3:,.1f}",
    ]
