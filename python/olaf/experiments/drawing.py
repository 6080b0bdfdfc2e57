"""Charts of a record as SVG and PNG files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from olaf.experiments.result import Chart, Series
from olaf.report.plots import COLOURS, PAGE, PAGE_INK, thinned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

APART = 0.08
"""Between the arrows of two lines."""


def draw(chart: Chart, stem: Path) -> None:
    """Write ``stem``.svg and ``stem``.png."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(PAGE):
        figure = Figure(figsize=(7.2, 3.8), layout="constrained")
        FigureCanvasAgg(figure)
        _fill(figure.add_subplot(), chart)
        nothing: dict[str, Any] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(stem.with_suffix(".svg"), metadata=nothing)
        figure.savefig(stem.with_suffix(".png"), dpi=120, metadata={"Software": None})


def _fill(axes: Axes, chart: Chart) -> None:
    for index, series in enumerate(chart.series):
        if series.points or series.beyond:
            _one(axes, chart, series, index)
    axes.set(title=chart.title, xlabel=chart.x, ylabel=chart.y)
    axes.set_xscale(chart.x_scale)
    axes.set_yscale(chart.y_scale)
    if chart.ticks is not None:
        axes.set_xticks(range(len(chart.ticks)), chart.ticks)
    if chart.from_zero:
        axes.set_ylim(bottom=0)
    if any(series.points or series.beyond for series in chart.series):
        if chart.marked:
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
            errors = [[y - low for y, (low, _) in pairs], [high - y for y, (_, high) in pairs]]
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
    if chart.kind == "points":
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
