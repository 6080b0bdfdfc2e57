"""The scoreboard, and that the committed pages are those of the committed results."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_framework import record, row

from olaf.experiments import Record
from olaf.experiments.overview import overview_page
from olaf.experiments.rendering import figure_page
from olaf.experiments.running import records
from olaf.experiments.scoreboard import Place, papers, scoreboard

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
AGAIN = "`olaf reproduce --render --out experiments` writes it again"


@pytest.fixture(name="known", scope="module")
def _known() -> dict[str, Record]:
    return {made.figure: made for _, made in records(EXPERIMENTS)}


def test_the_committed_overview_is_that_of_the_committed_results(known: dict[str, Record]) -> None:
    page = (EXPERIMENTS / "README.md").read_text(encoding="utf-8")
    assert page == overview_page(list(known.values()), EXPERIMENTS), AGAIN


def test_the_committed_pages_are_those_of_the_committed_results(known: dict[str, Record]) -> None:
    for name, made in known.items():
        page = (EXPERIMENTS / name / "README.md").read_text(encoding="utf-8")
        assert page == figure_page(made), f"{name}: {AGAIN}"
        assert not made.quick, name


def test_every_headline_names_a_row_that_is_there(known: dict[str, Record]) -> None:
    for paper in papers():
        for headline in paper.headlines:
            for place in headline.rows:
                assert place.row(known) is not None, place
    assert Place(figure="olaf/table1", quantity="loss", where="nowhere").row(known) is None


def cells(text: str, name: str) -> list[str]:
    """The cells of the first line of that paper."""
    line = next(line for line in text.splitlines() if line.startswith(f"| {name} |"))
    return line.strip("| ").split(" | ")[1:]


def test_verdicts_are_counted_by_paper_and_missing_figures_named() -> None:
    rows = [
        row([50.0] * 2, 50.0),
        row([50.0] * 2, 50.0, fitted="rate"),
        row([10.0] * 2, 50.0),
        row([10.0] * 2, None),
    ]
    made = record(figure="trio/fig14", rows=rows)
    board = scoreboard([made, record(figure="trio/ours", rows=[row([1.0] * 2, 1.0)])])
    four = ["fig12", "fig13", "fig15", "fig16"]
    assert cells(board, "Trio-ML") == [
        "1 of 5", "4", "2", "0", "1", "0", "1", "0", f"4 of 5: {', '.join(four)}",
    ]  # fmt: skip
    assert cells(board, "iSwitch")[-1].startswith("9 of 9: table1, fig4")
    quick = scoreboard([record(figure="trio/fig14", rows=rows, quick=True)])
    assert cells(quick, "Trio-ML")[:2] == ["0 of 5", "0"], "a quick run measures nothing"


def test_a_headline_stands_beside_our_row_or_is_missing() -> None:
    ours = row([3.0, 3.0], 11.0).model_copy(
        update={"quantity": "update loss", "where": "OLAF, 40 Gbit/s"}
    )
    other = ours.model_copy(update={"where": "OLAF, 20 Gbit/s"})
    less = [
        one.model_copy(update={"quantity": "average AoM below FIFO's"}) for one in (ours, other)
    ]
    board = scoreboard([record(figure="olaf/table1", rows=[ours, other, *less])])
    assert "update loss; OLAF, 40 Gbit/s | 11 % | 3 % | differs |" in board
    assert "82 and 86.5 % more reward than FIFO on narrow uplinks |  |  | missing |" in board
    beside = (
        "updates lost at 40 and 20 Gbit/s: OLAF 11 and 11.5 %, FIFO 55.8 and 74.3 % |  |  | missing"
    )
    other_settings = record(figure="olaf/table1", rows=[row([3.0, 3.0], 11.0)])
    assert beside in scoreboard([other_settings])
    assert beside in scoreboard([record(figure="olaf/table1", rows=[ours, other], quick=True)])
