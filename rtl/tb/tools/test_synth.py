"""`tools/synth.py`: what forces a build to be made again."""

from __future__ import annotations

from pathlib import Path

import pytest
import record
import synth

BUILD: synth.Build = ("adder", {"WIDTH": 8})
ROWS = {synth.COUNTS: ["adder WIDTH=8", "7"], synth.PATHS: ["adder WIDTH=8", "120"]}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder in ("rtl", "tools"):
        (tmp_path / folder).mkdir()
    (tmp_path / "rtl" / "adder.v").write_text("half #(8) low (a, b);")
    (tmp_path / "rtl" / "half.v").write_text("sum = a ^ b;")
    (tmp_path / "rtl" / "other.v").write_text("")
    (tmp_path / "tools" / "longest_path.py").write_text("")
    monkeypatch.setattr(synth, "RTL", tmp_path)
    return tmp_path


@pytest.mark.parametrize("file", ["rtl/adder.v", "rtl/half.v", "tools/longest_path.py"])
def test_a_change_of_what_is_read(made: Path, file: str) -> None:
    before = synth.inputs(BUILD, ROWS)
    (made / "rtl" / "other.v").write_text("a module that is not inside")
    assert synth.inputs(BUILD, ROWS) == before
    (made / file).write_text((made / file).read_text() + "\n")
    assert synth.inputs(BUILD, ROWS) != before


def test_another_row_of_a_table(made: Path) -> None:
    del made
    before = synth.inputs(BUILD, ROWS)
    for table in synth.COLUMNS:
        assert synth.inputs(BUILD, {**ROWS, table: ["adder WIDTH=8", "8"]}) != before
        assert (
            synth.inputs(BUILD, {other: ROWS[other] for other in ROWS if other != table}) != before
        )


def test_other_parameters_another_way_to_count_and_another_version(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del made
    before = synth.inputs(BUILD, ROWS)
    assert synth.inputs(("adder", {"WIDTH": 9}), ROWS) != before
    with monkeypatch.context() as patch:
        patch.setattr(synth, "synthesise", lambda *_: "counts other cells")
        assert synth.inputs(BUILD, ROWS) != before
    assert synth.inputs(BUILD, ROWS) == before
    monkeypatch.setattr(record, "version", lambda _: "99")
    assert synth.inputs(BUILD, ROWS) != before


def test_a_changed_build_is_made_and_an_unchanged_one_is_named(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    builds: list[synth.Build] = [("adder", {"WIDTH": width}) for width in range(8, 12)]
    table = record.Record(made / "synthesised.csv")
    monkeypatch.setattr(synth, "committed", lambda _: {})
    for build in builds:
        table.passed(synth.name(*build), synth.inputs(build, {}), 15.0)
    [drawn] = synth.changed(builds, table)
    left = [build for build in builds if build != drawn]
    said = capsys.readouterr().out
    assert f"left: {', '.join(synth.name(*build) for build in left)}\n" in said
    # A row that somebody wrote by hand is compared with what is made.
    [_, by_hand, *_] = left
    row = {synth.name(*by_hand): [synth.name(*by_hand), "1"]}
    monkeypatch.setattr(synth, "committed", lambda _: row)
    assert by_hand in synth.changed(builds, table)
