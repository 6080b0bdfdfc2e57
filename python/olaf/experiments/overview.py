"""experiments/README.md: a scoreboard of the papers, and one table over all figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from olaf.experiments.rendering import (
    line,
    paper_text,
    rule_text,
    spread_text,
    summary,
    verdict_text,
)
from olaf.experiments.result import Record
from olaf.experiments.scoreboard import scoreboard
from olaf.values.numbers import duration

WHERE = """This folder holds the results. Parameters and code of a figure are in the package:

| what | where |
|---|---|
| parameters, and the paper's numbers | `python/olaf/experiments/<paper>/<figure>.toml` |
| code | `python/olaf/experiments/<paper>/<figure>.py` |
| results, one per line | `<paper>/<figure>/results.json` |
| page and plots, rendered from the results | `<paper>/<figure>/README.md`, `plot*.svg` |
"""


def overview_page(records: Sequence[Record], out: Path) -> str:
    """experiments/README.md: one table over all figures."""
    lines = [
        "| figure | quantity | where | paper | ours | verdict |",
        "|---|---|---|--:|--:|---|",
    ]
    for record in records:
        shown = [row for row in record.rows if row.headline] or record.rows
        for index, row in enumerate(shown):
            name = f"[{record.figure}]({record.figure}/)" if index == 0 else ""
            lines.append(
                line(
                    [
                        name,
                        row.quantity,
                        row.where,
                        paper_text(row),
                        spread_text(row.ours, row.unit, row.digits),
                        verdict_text(row),
                    ]
                )
            )
    runs = [
        "| figure | source | measured | seeds | took | all rows |",
        "|---|---|---|--:|--:|---|",
        *(
            line(
                [
                    f"[{r.figure}]({r.figure}/)" + (" (quick)" if r.quick else ""),
                    r.source,
                    f"{r.written_at.partition('T')[0]} {r.commit}".strip(),
                    str(len(r.seeds)),
                    duration(r.run_s),
                    summary(r.rows),
                ]
            )
            for r in records
        ),
    ]
    training = ""
    if (out / "training" / "README.md").exists():
        training = (
            "[training/](training/) holds our own measurements without a figure in a paper: "
            "how each choice of training options learns.\n"
        )
    parts = [
        "# Experiments: the papers' numbers and ours\n",
        scoreboard(records),
        WHERE,
        "Rendered by `make experiments` from the results.json of each figure; `olaf reproduce "
        "--render --out experiments` renders it again without measuring. Each figure has a page "
        "with its plots, its parameters and its numbered differences from the paper.\n",
        "\n".join(lines) + "\n",
        rule_text(),
        "\n".join(runs) + "\n",
        training,
    ]
    return "\n".join(part for part in parts if part).rstrip() + "\n"
