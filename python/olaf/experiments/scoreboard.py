"""The scoreboard: what of each paper was measured again, and how that came out.

``papers.toml`` has each paper's tables and figures with data, and its headline numbers. All other
numbers come from the records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import resources

from pydantic import BaseModel, ConfigDict, Field

from olaf.experiments.rendering import line, paper_text, spread_text, verdict_text
from olaf.experiments.result import Record, Row
from olaf.experiments.verdicts import Verdict
from olaf.values.parsed import toml_of

VERDICTS: tuple[Verdict, ...] = (
    "matches",
    "same direction",
    "differs",
    "undecided",
    "fitted",
    "not comparable",
)
MISSING = "missing"


class Place(BaseModel):
    """A row of a figure."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    figure: str
    quantity: str
    where: str

    def row(self, records: Mapping[str, Record]) -> Row | None:
        """The row; None if its figure is not there, or was measured with other settings."""
        for row in records[self.figure].rows if self.figure in records else ():
            if (row.quantity, row.where) == (self.quantity, self.where):
                return row
        return None


class Headline(BaseModel):
    """What a paper says of itself first."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    says: str
    rows: list[Place] = []
    """Our rows beside it; none as long as nobody measures it."""


class Paper(BaseModel):
    """A paper."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    folder: str
    shows: list[str] = Field(min_length=1)
    """Names of its tables and figures that have data: ``fig7``."""
    headlines: list[Headline] = Field(min_length=1)

    def records(self, records: Sequence[Record]) -> list[Record]:
        """Those of this paper. A quick run measures nothing."""
        return [
            record
            for record in records
            if record.figure.startswith(f"{self.folder}/") and not record.quick
        ]


def papers() -> list[Paper]:
    """The papers, as ``papers.toml`` has them."""
    text = resources.files("olaf.experiments").joinpath("papers.toml").read_text(encoding="utf-8")
    return [Paper.model_validate(paper) for paper in toml_of(text)["papers"]]


def scoreboard(records: Sequence[Record]) -> str:
    """Two tables: verdicts by paper, and headlines beside ours."""
    known = papers()
    verdicts = [
        line(["paper", "tables and figures", "rows", *VERDICTS, MISSING]),
        "|---|--:|--:" + "|--:" * len(VERDICTS) + "|---|",
        *(line(_counts(paper, paper.records(records))) for paper in known),
    ]
    headlines = [
        line(["paper", "its headline", "row", "paper", "ours", "verdict"]),
        "|---|---|---|--:|--:|---|",
    ]
    by_name = {record.figure: record for record in records if not record.quick}
    for paper in known:
        cells = [beside for one in paper.headlines for beside in _beside(one, by_name)]
        names = [paper.name] + [""] * (len(cells) - 1)
        headlines += [line([name, *beside]) for name, beside in zip(names, cells, strict=True)]
    return "\n".join(
        [
            "## Scoreboard\n",
            "A *row* is a number or a direction that the paper gives. *Tables and figures* are "
            "those with data. *Missing* are those that nobody has measured here.\n",
            *verdicts,
            "",
            *headlines,
            "",
        ]
    )


def _counts(paper: Paper, records: Sequence[Record]) -> list[str]:
    names = {record.figure.partition("/")[2] for record in records}
    lacking = [name for name in paper.shows if name not in names]
    counts = Counter(row.verdict for record in records for row in record.rows)
    total = len(paper.shows)
    missing = f"{len(lacking)} of {total}" + (f": {', '.join(lacking)}" if lacking else "")
    return [
        paper.name,
        f"{total - len(lacking)} of {total}",
        str(counts.total() - counts["paper prints no number"]),
        *(str(counts[verdict]) for verdict in VERDICTS),
        missing,
    ]


def _beside(headline: Headline, records: Mapping[str, Record]) -> list[list[str]]:
    made = []
    for place in headline.rows:
        if (row := place.row(records)) is not None:
            names = "; ".join(name for name in (place.quantity, place.where) if name)
            shown = f"[{place.figure}]({place.figure}/): {names}"
            ours = spread_text(row.ours, row.unit, row.digits)
            made.append([shown, paper_text(row), ours, verdict_text(row)])
    made = made or [["", "", MISSING, ""]]
    return [[headline.says if at == 0 else "", *cells] for at, cells in enumerate(made)]
