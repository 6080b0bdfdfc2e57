"""Small plots of the learners' numbers and of the episodes, against environment steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from olaf.drawing.inline import draw, thinned
from olaf.drawing.style import INK, SERIES
from olaf.jobs.instruments import SUCCESS
from olaf.report.plots import SMALL, STEPS, running_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = Sequence[tuple[float, float]]

SMOOTHED = 40
"""Number of windows in a run. The line is the mean of the samples in a window around it."""

MOST_NUMBERS = 3
"""Plots of the environment's own numbers, besides its success."""

LEAST = -1.0
"""The explained variance of a young value head is far below 0: the plot ends here."""


class Small(NamedTuple):
    """One small plot: its title, its samples, and where its axis must begin."""

    title: str
    points: Points
    colour: int = 0
    bottom: float | None = None
    zero_line: bool = False
    shows: tuple[float, float] | None = None
    """Values that the axis reaches at least."""


def learning_plots(record: Mapping[str, Any]) -> list[str]:
    """A plot of each number that was reported; none for a record of an earlier version."""
    return [_drawn(small) for small in _smalls(record) if len(small.points) > 1]


def _smalls(record: Mapping[str, Any]) -> list[Small]:
    history = record["history"]

    def losses(key: str, factor: float = 1.0) -> Points:
        return _points(history, lambda s: s.get("losses", {}).get(key), factor)

    def numbers(name: str, factor: float = 1.0) -> Points:
        return _points(history, lambda s: s.get("episode_numbers", {}).get(name), factor)

    explained = [(x, max(y, LEAST)) for x, y in losses("explained_variance")]
    known = (record["result"].get("learning") or {}).get("episode_numbers", {})
    own = [name for name in known if name != SUCCESS][:MOST_NUMBERS]
    rates = losses("learning_rate")
    return [
        Small("Episode length, steps", _lengths(record), 0, 0.0),
        Small("Success, %", numbers(SUCCESS, 100), 2, 0.0),
        Small("Policy loss", losses("policy"), 1, zero_line=True),
        Small("Value loss", losses("value"), 1, 0.0),
        Small("Explained variance", explained, 2, zero_line=True, shows=(-0.1, 0.5)),
        Small("Entropy, nats", losses("entropy"), 3),
        Small("KL divergence", losses("kl"), 6, 0.0),
        Small("Clipped steps, %", losses("clipped", 100), 6, 0.0),
        Small("Gradient norm", losses("gradient_norm"), 5, 0.0),
        Small("Learning rate", rates if len({y for _, y in rates}) > 1 else [], 5, 0.0),
        *(Small(name[:40].replace("$", r"\$"), numbers(name), 0) for name in own),
    ]


def _points(
    history: Sequence[Mapping[str, Any]],
    value: Callable[[Mapping[str, Any]], float | None],
    factor: float,
) -> Points:
    found = [(sample["steps"] / 1e3, value(sample)) for sample in history]
    return [(x, y * factor) for x, y in found if y is not None]


def _lengths(record: Mapping[str, Any]) -> Points:
    rows = [row for row in record["episodes"] if len(row) > 4 and row[4] is not None]
    return [(row[3] / 1e3, float(row[4])) for row in rows]


def _drawn(small: Small) -> str:
    points = small.points
    window = max(1, len(points) // SMOOTHED)
    line = running_mean([(x, 0, y) for x, y in points], window)

    def fill(axes: Axes) -> None:
        colour = SERIES[small.colour]
        single = thinned(points, 300)
        xs, ys = [x for x, _ in single], [y for _, y in single]
        axes.scatter(xs, ys, s=3, alpha=0.3, color=colour, linewidths=0)
        axes.plot(*zip(*thinned(line, 200), strict=True), color=colour, linewidth=1.4)
        if small.zero_line:
            axes.axhline(0, color=INK, linewidth=0.8, linestyle="--", alpha=0.5)
        axes.set_xlim(left=0)
        if small.bottom is not None:
            axes.set_ylim(bottom=small.bottom)
        if small.shows is not None:
            low, high = axes.get_ylim()
            axes.set_ylim(min(low, small.shows[0]), max(high, small.shows[1]))
        axes.set(title=small.title, xlabel=STEPS)

    return draw(fill, width=SMALL[0], height=SMALL[1])
