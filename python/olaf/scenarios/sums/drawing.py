"""Draws the parts of an iteration, a set of bars for each job."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from olaf.drawing.charts import Chart, Series, draw
from olaf.scenarios.sums.outcome import Outcome

PARTS = ("compute", "wait", "aggregation", "update")


def chart(outcomes: Sequence[Outcome], title: str) -> Chart:
    """Means over the seeds."""
    runs = list(zip(*(outcome.jobs for outcome in outcomes), strict=True))
    series = [
        Series(
            name=part,
            points=[
                (float(at), round(fmean(getattr(run, f"{part}_ns") for run in jobs) / 1e6, 4))
                for at, jobs in enumerate(runs)
            ],
        )
        for part in PARTS
    ]
    return Chart(
        title=title,
        x="job",
        y="time of an iteration, ms",
        kind="bars",
        series=series,
        ticks=[jobs[0].name for jobs in runs],
        from_zero=True,
    )


def draw_parts(outcomes: Sequence[Outcome], title: str, file: Path) -> None:
    """Write the chart to a file, as SVG or PNG by its ending."""
    draw(chart(outcomes, title), file)
