"""Plots as SVG that takes its colours from the page: one drawing for light and for dark.

matplotlib draws with marker colours, which are then replaced by the page's CSS variables; what
could make a browser fetch anything (document type, namespaces, metadata) is left out.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from olaf.drawing.style import INK, SERIES, STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MOST_POINTS = 800


def draw(fill: Callable[[Axes], None], *, width: float = 4.6, height: float = 2.4) -> str:
    """One plot as an ``<svg>`` element; ``fill`` draws on its axes.

    Sizes are in inches. They are small, because a plot is 350 px wide on a phone and its text must
    be readable there.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        fill(figure.add_subplot())
        text = io.StringIO()
        nothing: dict[str, Any] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(text, format="svg", transparent=True, metadata=nothing)
    return _to_css(text.getvalue())


def _to_css(svg: str) -> str:
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", svg)
    svg = svg.replace("xlink:href", "href")
    svg = re.sub(r'(<svg[^>]*?)\swidth="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?)\sheight="[^"]*"', r'\1 role="img"', svg, count=1)
    svg = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font: \1px system-ui, sans-serif", svg)
    svg = re.sub(
        r"font: (bold|700) ([\d.]+)px [^;\"]*", r"font: 700 \2px system-ui, sans-serif", svg
    )
    svg = svg.replace(INK, "currentColor")
    for index, colour in enumerate(SERIES):
        svg = svg.replace(colour, f"var(--s{index})")
    return svg.strip()


T = TypeVar("T")


def thinned(points: Sequence[T], most: int = MOST_POINTS) -> Sequence[T]:
    """At most this many of the points, including the first and the last."""
    if len(points) <= most:
        return points
    step = (len(points) - 1) / (most - 1)
    return [points[round(index * step)] for index in range(most)]
