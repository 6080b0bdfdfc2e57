"""Draws reward over virtual time, a line for each number of machines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from olaf.drawing.charts import Chart, Series, draw
from olaf.virtual.running import Run, named

POINTS = 120


def draw_rewards(runs: Sequence[Run], title: str, mark: float, stem: Path) -> None:
    """Write ``stem``.svg and ``stem``.png: means over the seeds, lowest and highest as bands.

    A line ends where the first of its seeds has ended.
    """
    counts = dict.fromkeys(run.machines for run in runs)
    series = [_line(count, [run for run in runs if run.machines == count]) for count in counts]
    end = max(run.time_s for run in runs)
    reached = Series(name=f"mark {mark:g}", points=[(0.0, mark), (end, mark)])
    chart = Chart(
        title=title,
        x="virtual time, s",
        y="mean reward, last 100 episodes",
        series=[*series, reached],
    )
    draw(chart, stem.with_suffix(".svg"), stem.with_suffix(".png"))


def _line(count: int, runs: Sequence[Run]) -> Series:
    columns = [np.array([(time_s, reward) for _, time_s, reward in run.curve]) for run in runs]
    begin = max(float(curve[0, 0]) for curve in columns)
    grid = np.linspace(begin, min(float(curve[-1, 0]) for curve in columns), POINTS)
    rewards = np.array([np.interp(grid, curve[:, 0], curve[:, 1]) for curve in columns])
    means = rewards.mean(axis=0)
    return Series(
        name=named(count),
        points=[(round(float(x), 3), round(float(y), 3)) for x, y in zip(grid, means, strict=True)],
        low=[round(float(low), 3) for low in rewards.min(axis=0)],
        high=[round(float(high), 3) for high in rewards.max(axis=0)],
    )
