import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from olaf.cli.main import run as olaf
from olaf.errors.outcome import RunError
from olaf.errors.usage import ConfigurationError
from olaf.experiments import (
    Bound,
    Chart,
    Column,
    Figure,
    Goal,
    Record,
    Row,
    Series,
    Spread,
    Table,
)
from olaf.experiments.catalog import Plan, figures, find, plan
from olaf.experiments.overview import overview_page
from olaf.experiments.rendering import figure_page, spread_text, summary
from olaf.experiments.result import Machine
from olaf.experiments.running import overview, records, render, run, write
from olaf.experiments.writing import record_text
from olaf.values.numbers import short

LATENCY = "olaf/latency"


def row(ours: list[float], paper: float | None, **more: Any) -> Row:
    return Row(quantity="loss", unit="%", paper=paper, ours=Spread.of(ours), **more)


def record(**more: Any) -> Record:
    told: dict[str, Any] = {
        "figure": "olaf/made-up",
        "title": "a table that never was",
        "source": "OLAF §0",
        "shows": "Nothing.",
        "olaf": "0.0.0",
        "written_at": "2026-01-01T00:00:00+00:00",
        "quick": False,
        "seeds": [0, 1],
        "run_s": 1.5,
        "expected_s": 2.0,
        "machine": Machine(processor="an abacus", cores=2, load_before=0.0, load_after=1.0),
        "parameters": {"rates": [1, 2], "limit": None},
        "paper": {"loss": 50.0},
        "rows": [row([50.3, 50.7], 50.0, where="FIFO | narrow"), row([1.0, 2.0], None)],
        "charts": [
            Chart(
                title="Loss", x="rate, bit/s", y="%",
                series=[
                    Series(name="ours", points=[(1, 2), (2, 3)], low=[1, 2], high=[3, 4]),
                    Series(name="paper", of="paper", points=[(1, 2.5)]),
                ],
            ),
            Chart(
                name="map", title="Map", x="a", y="b", kind="map", ticks=["a", "b"],
                series=[
                    Series(name="a", points=[(0, 0.5), (1, 1.0)]),
                    Series(name="b", points=[(1, 0.7)]),
                ],
            ),
            Chart(
                name="two", title="Two axes", x="a", y="b", right="c",
                series=[
                    Series(name="left", points=[(0, 1), (1, 2)]),
                    Series(name="right", points=[(0, 100), (1, 200)], right=True),
                    Series(name="mark", points=[(0.5, 1.5)], marks=True),
                ],
            ),
            Chart(
                name="bars", title="Bars", x="", y="%", kind="bars", ticks=["a", "b"],
                series=[Series(name="ours", points=[(0, 2), (1, 3)], low=[1, 2], high=[3, 4])],
            ),
        ],
        "differences": ["We have no FPGA.", "Nor a cluster."],
        "notes": ["It rained."],
        "bounds": [Bound(quantity="loss", value=40.0, unit="%", why="The link is too narrow.")],
    }  # fmt: skip
    return Record(**{**told, **more})


def test_a_spread_is_of_finite_values_one_a_seed() -> None:
    spread = Spread.of([1, 2, 3])
    assert (spread.mean, spread.sd, spread.low, spread.high) == (2.0, 1.0, 1.0, 3.0)
    assert Spread.of([4]).sd == 0.0
    for values in ([], [float("nan")], [float("inf"), 1.0]):
        with pytest.raises(ValueError, match="spread"):
            Spread.of(values)


def test_a_band_has_a_value_for_each_point() -> None:
    with pytest.raises(ValidationError, match="go together"):
        Series(name="a", points=[(1, 1)], low=[1])
    with pytest.raises(ValidationError, match="for each point"):
        Series(name="a", points=[(1, 1)], low=[1, 2], high=[1, 2])


def test_numbers_have_the_digits_that_tell() -> None:
    values = [1152.4, 100.0, 44.12, 1.234, 0.03141, 3.0, -0.5, 0.0]
    assert [short(value) for value in values] == [
        "1,152", "100", "44.1", "1.23", "0.0314", "3", "-0.5", "0",
    ]  # fmt: skip
    assert spread_text(Spread.of([43.8, 44.4]), "ms") == "44.1 ± 3.8 ms (43.8 .. 44.4)"
    assert spread_text(Spread.of([5, 5]), "") == "5"


def test_a_record_comes_back_from_json_as_it_was_and_refuses_what_it_does_not_know() -> None:
    one = record()
    text = one.model_dump_json()
    assert json.loads(text)["rows"][0]["verdict"] == "matches"
    assert Record.model_validate_json(text) == one
    assert "verdict" in json.dumps(Record.model_json_schema(mode="serialization"))
    with pytest.raises(ValidationError, match="extra"):
        Record.model_validate({**json.loads(text), "colour": "blue"})


def test_a_verdict_in_a_file_is_not_believed() -> None:
    stored = json.loads(record().model_dump_json())
    stored["rows"][0] |= {"verdict": "matches", "paper": 5.0}
    assert Record.model_validate(stored).rows[0].verdict == "differs"


def test_the_page_of_a_figure_has_table_plots_numbered_differences_and_parameters() -> None:
    page = figure_page(record())
    assert "| loss | FIFO \\| narrow | 50 % | 50.5 ± 2.5 % (50.3 .. 50.7) | matches |" in page
    assert "![Loss](plot.svg)" in page
    assert "![Bars](plot-bars.svg)" in page
    assert "1. We have no FPGA.\n2. Nor a cluster." in page
    assert "**loss: 40 %.** The link is too narrow." in page
    assert 'rates = [1, 2]\nlimit = "off"' in page
    assert "an abacus" in page
    assert "quick" not in page
    assert "seeds 0, 1. Ours" in page
    assert "seeds 3 to 12. Ours" in figure_page(record(seeds=list(range(3, 13))))
    assert "**A quick run" in figure_page(record(quick=True))


def test_a_row_of_other_inputs_is_shown_beside_the_papers_and_not_judged() -> None:
    other = row([50.0], 50.0, comparable=False)
    assert other.verdict == "not comparable"
    assert summary([other]) == "1 not comparable"
    page = figure_page(record(rows=[other], data="a made-up list"))
    assert "| 50 % | 50 % | not comparable |" in page
    assert "**Measured with:** a made-up list" in page
    assert "Measured with" not in figure_page(record())


def test_a_row_whose_setting_was_fitted_to_its_number_is_no_match() -> None:
    fitted = row([50.0] * 2, 50.0, fitted="rate of the link")
    assert fitted.verdict == "fitted"
    assert row([50.0] * 2, None, fitted="rate").verdict == "paper prints no number"
    assert row([50.0] * 2, 50.0, fitted="rate", comparable=False).verdict == "not comparable"
    assert summary([fitted]) == "1 fitted"
    assert "| fitted: rate of the link |" in figure_page(record(rows=[fitted]))


def test_a_page_names_the_commit_that_was_measured() -> None:
    assert "at commit 0123456789+changes on 2026-01-01 took" in figure_page(
        record(commit="0123456789+changes")
    )
    assert "at a commit of 2026-01-01 took" in figure_page(record())


def test_a_row_has_as_many_decimals_as_it_is_told() -> None:
    close = row([0.99896, 0.99904], 0.9998, digits=4)
    assert "| 0.9998 % | 0.9990 ± 0.0005 % (0.9990 .. 0.9990) |" in figure_page(
        record(rows=[close])
    )


def test_a_table_has_a_cell_for_each_column_and_its_digits() -> None:
    columns = [Column(name="queue"), Column(name="Jain", digits=4), Column(name="AoM, ms")]
    table = Table(
        title="By queue", columns=columns, note="So it is.",
        rows=[["a|b", Spread.of([0.9912, 0.9996]), 70.26], ["c", None, Spread.of([5, 7])]],
    )  # fmt: skip
    one = record(tables=[table])
    assert Record.model_validate_json(one.model_dump_json()) == one
    page = figure_page(one)
    assert "**By queue**\n\n| queue | Jain | AoM, ms |\n|---|--:|--:|\n" in page
    assert "| a\\|b | 0.9954 (0.9912 .. 0.9996) | 70.3 |" in page
    assert "| c | - | 6 (5 .. 7) |\n\nSo it is." in page
    with pytest.raises(ValidationError, match="a row of 1 under 3 columns"):
        Table(title="By queue", columns=columns, rows=[["a"]])


def test_the_table_over_all_shows_headlines_and_counts_every_row() -> None:
    rows = [row([50.0] * 2, 50.0), row([1.0] * 2, 50.0, headline=False, goal=Goal(at_most=2.0))]
    page = overview_page([record(rows=rows)], Path("nowhere"))
    assert "| [olaf/made-up](olaf/made-up/) | loss |  | 50 % | 50 % | matches |" in page
    assert "| differs |" not in page.partition("| figure |")[2]
    assert "1 match, 1 differ; goals: 1 of 1 met" in page
    assert summary(rows) == "1 match, 1 differ; goals: 1 of 1 met"


def test_a_record_has_one_result_a_line() -> None:
    one = record()
    text = record_text(one)
    assert Record.model_validate_json(text) == one
    assert json.loads(text) == json.loads(one.model_dump_json())
    lines = text.splitlines()
    for result in ('"quantity": "loss", "where": "FIFO | narrow"', '"name": "left"'):
        (line,) = (line for line in lines if result in line)
        json.loads(line.strip().removesuffix(","))
    # Another number is another line, and no more.
    rows = [row([50.3, 51.7], 50.0, where="FIFO | narrow"), one.rows[1]]
    other = record_text(record(rows=rows)).splitlines()
    assert sum(a != b for a, b in zip(lines, other, strict=True)) == 1


def test_a_record_is_written_rendered_and_found_again(tmp_path: Path) -> None:
    one = record()
    folder = write(one, tmp_path)
    assert folder == tmp_path / "olaf" / "made-up"
    names = {file.name for file in folder.iterdir()}
    assert names == {
        "results.json", "README.md", "plot.svg", "plot-bars.svg", "plot-map.svg", "plot-two.svg",
    }  # fmt: skip
    assert (folder / "plot.svg").read_text().startswith("<?xml")
    assert list(records(tmp_path)) == [(folder, one)]
    pictures = {name: (folder / name).read_bytes() for name in names}
    render(one, folder)
    assert pictures == {name: (folder / name).read_bytes() for name in names}
    assert "olaf/made-up" in overview(tmp_path).read_text()
    (folder / "results.json").write_text("{}")
    with pytest.raises(RunError, match=r"results\.json: not a record"):
        list(records(tmp_path))


@pytest.mark.parametrize("figure", figures(), ids=lambda figure: figure.name)
def test_every_figure_can_be_planned_and_says_what_a_reader_needs(figure: Figure) -> None:
    assert figure.source.startswith(("OLAF §", "MINA §", "iSwitch §", "ATP §", "Trio-ML §"))
    assert figure.seeds >= 5
    for quick in (False, True):
        planned = plan(figure, quick=quick)
        assert len(planned.seeds) == (figure.quick_seeds if quick else figure.seeds)
        # Parameters come from the file alone: a default in the code would be out of sight.
        for name, field in type(planned.parameters).model_fields.items():
            assert field.is_required(), name
            assert field.description, name


def test_an_unknown_figure_is_sent_to_the_near_one() -> None:
    with pytest.raises(
        RunError, match=r"no figure `olaf/latncy`; did you mean `olaf/latency`"
    ) as e:
        find("olaf/latncy")
    assert e.value.code == 2


@pytest.mark.parametrize(
    ("override", "complaint"),
    [
        ("bathces=3", "has no parameter `bathces`; did you mean `batches`?"),
        ("batches=0", "--set batches=0: `batches` = 0: input should be greater than or equal to 1"),
        ("batches=few", "--set batches=few: `batches` = 'few': input should be a valid integer"),
        ("batches.a=1", "--set batches.a=1: `batches` is a value, not a table"),
        ("packet_bytes=[]", "`packet_bytes` = []: list should have at least 1 item"),
        ("batches", "--set batches: write it"),
    ],
)
def test_a_wrong_parameter_is_quoted(override: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        plan(find(LATENCY), overrides=[override])
    assert complaint in str(error.value)
    assert error.value.code == 2


def test_overrides_and_seeds_reach_the_run_and_the_record() -> None:
    planned: Plan = plan(find("mina/fig5"), seeds=[4, 9], overrides=["points=3", "ratio=4"])
    said: list[tuple[str, float | None]] = []
    made = run(planned, lambda text, share=None: said.append((text, share)))
    assert made.seeds == [4, 9]
    assert (made.parameters["points"], made.parameters["ratio"]) == (3, 4.0)
    assert max(len(series.points) for series in made.charts[0].series) == 3
    assert all(len(one.ours.values) == 2 for one in made.rows)
    assert [share for text, share in said if text in ("seed 4", "seed 9")] == [0.0, 0.5]
    assert re.fullmatch(r"[0-9a-f]{10}(\+changes)?", made.commit), "this is a checkout"


def test_the_list_says_name_source_and_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert olaf(["reproduce", "--list"]) == 0
    text = capsys.readouterr().out
    assert LATENCY in text
    assert "OLAF §12.1" in text
    assert olaf(["reproduce", "--list", "--json"]) == 0
    (first, *_) = [f for f in json.loads(capsys.readouterr().out) if f["name"] == LATENCY]
    assert first["seeds"] == 5
    assert first["expected_s"] > 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "name a figure, or --all"),
        ([LATENCY, "--all"], "name a figure, or --all"),
        (["--all", "--set", "a=1"], "--set changes one figure"),
        ([LATENCY, "--seeds", "none"], "write a number of seeds (5) or a list (3,7,8)"),
        ([LATENCY, "--seeds", "0"], "at least one seed"),
        ([LATENCY, "--seeds", "1,1"], "each once"),
        (["olaf/nothing"], "no figure `olaf/nothing`"),
        ([LATENCY, "--set", "nothing=1"], "has no parameter `nothing`"),
        (["--render", "--out", "no-such-folder"], "no results.json below it"),
    ],
)
def test_a_command_line_that_cannot_be_measures_nothing(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert olaf(["reproduce", *arguments]) == 2
    assert complaint in capsys.readouterr().err


def test_rendering_again_measures_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(record(), tmp_path)
    (folder / "README.md").unlink()
    assert olaf(["reproduce", "--render", "--out", str(tmp_path)]) == 0
    assert (folder / "README.md").exists()
    assert "olaf/made-up" in (tmp_path / "README.md").read_text()
    assert "wrote" in capsys.readouterr().out
