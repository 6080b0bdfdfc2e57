"""Charts as data, and their drawing as files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator

from olaf import extras
from olaf.drawing.inline import thinned
from olaf.drawing.style import COLOURS, PAGE, PAGE_INK
from olaf.statistics.spread import Data

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MANY = 2
"""Sets of bars leave no room for a legend among them if there are more."""
METADATA = {".svg": ("Creator", "Date", "Format", "Type"), ".png": ("Software",)}
"""Metadata to leave out, by the file's ending, so that the same chart gives the same file."""
APART = 0.08
"""Between the arrows of two lines."""


class Series(Data):
    """One line, or one set of bars, of a chart."""

    name: str
    points: list[tuple[float, float]]
    low: list[float] | None = None
    """Lowest over the seeds at each point; drawn as a band together with ``high``."""
    high: list[float] | None = None
    of: Literal["ours", "paper"] = "ours"
    """The paper's are drawn dashed."""
    right: bool = False
    """By the axis on the right."""
    marks: bool = False
    """Single points, whatever the chart's kind."""
    beyond: list[tuple[float, float]] = Field(default=[])
    """Points with only a lower bound, such as a timeout: drawn as an arrow upwards."""

    @model_validator(mode="after")
    def _band_fits(self) -> Self:
        bands = [band for band in (self.low, self.high) if band is not None]
        if len(bands) == 1 or any(len(band) != len(self.points) for band in bands):
            raise ValueError("low and high go together and have a value for each point")
        return self


class Chart(Data):
    """A plot as data. The first of a figure is written to plot.svg, others to plot-NAME.svg."""

    name: str = ""
    title: str
    x: str
    """Label of the axis, with its unit: ``environment steps, thousands``."""
    y: str
    right: str = ""
    """Label of the axis on the right, if a series is drawn by it."""
    kind: Literal["line", "step", "points", "bars", "map"] = "line"
    """A map is a row of coloured cells for each series, from the top, at x = 0, 1, 2 .."""
    series: list[Series]
    x_scale: Literal["linear", "log"] = "linear"
    y_scale: Literal["linear", "log"] = "linear"
    ticks: list[str] | None = None
    """Names of x = 0, 1, 2 .. (for bars and maps)."""
    from_zero: bool = False
    """Whether the y axis begins at 0."""
    marked: bool = False
    """Whether each point of a line is marked: where there are few."""


def draw(chart: Chart, *files: Path) -> None:
    """Write the chart to each file, as SVG or PNG by its ending."""
    extras.need("train", "matplotlib", what="a plot")
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(PAGE):
        figure = Figure(figsize=_size(chart), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        if chart.kind == "map":
            _map(axes, chart)
        else:
            _fill(axes, chart)
        for file in files:
            figure.savefig(file, dpi=120, metadata=dict.fromkeys(METADATA[file.suffix]))


def _size(chart: Chart) -> tuple[float, float]:
    """Inches."""
    return (7.2, 1.2 + 0.5 * len(chart.series)) if chart.kind == "map" else (7.2, 3.8)


def _map(axes: Axes, chart: Chart) -> None:
    cells = {(x, y): value for y, row in enumerate(chart.series) for x, value in row.points}
    columns = 1 + max(int(x) for x, _ in cells)
    grid = [[cells.get((x, y), math.nan) for x in range(columns)] for y in range(len(chart.series))]
    low, high = min(cells.values()), max(cells.values())
    axes.imshow(grid, cmap="Blues", vmin=low - 0.2 * (high - low), vmax=high, aspect="auto")
    for (x, y), value in cells.items():
        dark = high > low and value - low > 0.4 * (high - low)
        axes.text(
            x, y, f"{value:.2f}", ha="center", va="center", fontsize="small",
            color="white" if dark else PAGE_INK,
        )  # fmt: skip
    axes.set(title=chart.title, xlabel=chart.x, ylabel=chart.y)
    axes.set_xticks(range(columns), chart.ticks or [str(x) for x in range(columns)])
    axes.set_yticks(range(len(chart.series)), [row.name for row in chart.series])
    axes.tick_params(axis="x", labelrotation=20)
    axes.grid(visible=False)


def _fill(axes: Axes, chart: Chart) -> None:
    other = _right(axes, chart) if any(series.right for series in chart.series) else axes
    for index, series in enumerate(chart.series):
        if series.points or series.beyond:
            _one(other if series.right else axes, chart, series, index)
    axes.set(title=chart.title, xlabel=chart.x, ylabel=chart.y)
    axes.set_xscale(chart.x_scale)
    axes.set_yscale(chart.y_scale)
    if chart.ticks is not None:
        axes.set_xticks(range(len(chart.ticks)), chart.ticks)
    if chart.from_zero:
        axes.set_ylim(bottom=0)
    if any(series.points or series.beyond for series in chart.series):
        _legend(axes, other, chart)


def _right(axes: Axes, chart: Chart) -> Axes:
    other: Axes = axes.twinx()
    other.set_ylabel(chart.right)
    other.spines["right"].set_visible(True)
    other.grid(visible=False)
    return other


def _legend(axes: Axes, other: Axes, chart: Chart) -> None:
    if other is not axes:
        both = [own.get_legend_handles_labels() for own in (axes, other)]
        handles, names = [[*first, *second] for first, second in zip(*both, strict=True)]
        axes.figure.legend(handles, names, fontsize="small", loc="outside lower center", ncols=4)
    elif chart.kind == "bars" and len(chart.series) > MANY:
        axes.figure.legend(fontsize="small", loc="outside lower center", ncols=len(chart.series))
    elif chart.marked and chart.kind == "points":
        axes.figure.legend(fontsize="small", loc="outside lower center", ncols=2)
    elif chart.marked:
        axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    else:
        axes.legend()


def _one(axes: Axes, chart: Chart, series: Series, index: int) -> None:
    colour = COLOURS[index % len(COLOURS)]
    band: list[tuple[float, float]] = []
    if series.low is not None and series.high is not None:
        band = list(zip(series.low, series.high, strict=True))
    paper = series.of == "paper"
    if chart.kind == "bars":
        width = 0.8 / len(chart.series)
        xs = [x + (index - (len(chart.series) - 1) / 2) * width for x, _ in series.points]
        ys = [y for _, y in series.points]
        errors = None
        if band:
            pairs = list(zip(ys, band, strict=True))
            # A mean of equal values may be off by its rounding.
            errors = [
                [max(y - low, 0.0) for y, (low, _) in pairs],
                [max(high - y, 0.0) for y, (_, high) in pairs],
            ]
        axes.bar(
            xs, ys, width, color=colour, alpha=0.45 if paper else 0.9, yerr=errors,
            ecolor=PAGE_INK, capsize=2, label=series.name,
        )  # fmt: skip
        return
    together = list(zip(series.points, band or [(y, y) for _, y in series.points], strict=True))
    together = list(thinned(together))
    xs, ys = [x for (x, _), _ in together], [y for (_, y), _ in together]
    style: dict[str, Any] = {"color": colour, "label": series.name}
    if chart.marked:
        style |= {"marker": "o", "markersize": 4}
    if series.marks:
        style |= {"marker": "D", "linestyle": "none", "markersize": 5, "color": PAGE_INK}
    elif chart.kind == "points":
        style |= {"marker": "s" if paper else "o", "linestyle": "none", "markersize": 5}
    elif paper:
        style |= {"linestyle": "--"}
    if chart.kind == "step":
        style["drawstyle"] = "steps-post"
    axes.plot(xs, ys, **style)
    if series.beyond:
        # Side by side, for several lines may end at the same bound.
        aside = APART * (index - (len(chart.series) - 1) / 2)
        across = [x + aside for x, _ in series.beyond]
        axes.plot(
            across, [y for _, y in series.beyond], color=colour, marker="^", markersize=8,
            markerfacecolor="none", linestyle="none",
        )  # fmt: skip
    if band:
        lows, highs = [low for _, (low, _) in together], [high for _, (_, high) in together]
        if chart.kind == "points":
            axes.vlines(xs, lows, highs, color=colour, linewidth=1.0)
        else:
            shade: dict[str, Any] = {"step": "post"} if chart.kind == "step" else {}
            axes.fill_between(xs, lows, highs, color=colour, alpha=0.16, linewidth=0, **shade)
