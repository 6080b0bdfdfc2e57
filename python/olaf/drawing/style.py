"""The style of plots, in a page with the page's colours, and in separate files."""

from __future__ import annotations

from typing import Any

INK = "#fe00fe"


SERIES = tuple(f"#fe00{index:02x}" for index in range(8))
"""Marker colours; `_to_css` turns them into ``currentColor`` and ``var(--s0)`` .. ``var(--s7)``."""


STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "olaf",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": INK,
    "grid.alpha": 0.12,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.6,
}


PAGE_INK = "#44444c"


COLOURS = ("#3465a4", "#c4622d", "#3d8b4f", "#8a5fa8", "#b8860b", "#2a8c8c", "#b0455a", "#6b6b6b")
"""Colours that colour-blind readers can distinguish; the same figure always looks the same."""


PAGE: Any = {
    **STYLE,
    "svg.fonttype": "path",
    "savefig.facecolor": "white",
    "text.color": PAGE_INK,
    "axes.edgecolor": PAGE_INK,
    "axes.labelcolor": PAGE_INK,
    "axes.titlecolor": PAGE_INK,
    "grid.color": PAGE_INK,
    "xtick.color": PAGE_INK,
    "ytick.color": PAGE_INK,
}
"""For pictures in files of their own, which are white."""
