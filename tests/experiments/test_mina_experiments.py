"""What MINA's figures share: their data, and what they compute beyond the simulator."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from olaf.cli.main import run as olaf
from olaf.errors.usage import ConfigurationError
from olaf.experiments import Record
from olaf.experiments.catalog import find, plan
from olaf.experiments.mina import data as mina_data
from olaf.experiments.mina.data import VARIABLE, choose
from olaf.experiments.mina.fig2 import fragments_of
from olaf.experiments.mina.fig5 import turning_gbit
from olaf.experiments.mina.measuring import Bench, Case
from olaf.schedule.mixes import Mix

# A step of 10 ms; gradients ready at 4, 6 and 8 ms; 10 MB each: at 100 Gbit/s 0.8 ms and 50 us.
STEP: dict[str, Any] = {
    "duration": 0.010,
    "allreduces": [{"start": 0.002 * at, "size": 10_000_000} for at in (2, 3, 4)],
}
# One that has to wait for the network: 10 times as many bytes.
SLOW: dict[str, Any] = {
    "duration": 0.010,
    "allreduces": [{"start": 0.002 * at, "size": 100_000_000} for at in (2, 3, 4)],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "step.json").write_text(json.dumps(STEP))
    (tmp_path / "traces" / "slow.json").write_text(json.dumps(SLOW))
    lines = [f"{'slow' if at % 2 else 'step'} {1 + at % 9} {10 + at % 3}\n" for at in range(60)]
    (tmp_path / "jobs-mix1-seed42.txt").write_text("".join(lines))
    return tmp_path


def test_without_a_folder_the_figures_use_our_own_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    ours = choose("auto")
    assert ours == choose("own")
    assert ours.name == "own"
    assert not ours.comparable
    assert "mlp" in ours.pattern_names()
    jobs = ours.given("mix1-seed42", Mix.parse("2:1"), 3)
    assert [job.hosts for job in jobs] == [2, 2, 2]
    assert "drawn by seed 0" in ours.whence("mix1-seed42")


def test_a_folder_is_taken_for_what_is_in_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(folder))
    given = choose("auto")
    assert given == choose(str(folder))
    assert not given.comparable
    assert given.name in given.words
    assert str(folder) not in given.words
    assert len(given.given("mix1-seed42", Mix.parse("2:1"), 7)) == 7
    assert choose("own").name == "own"
    # The name is of the content: the same elsewhere, another with another byte.
    (folder / "traces" / "step.json").write_text(json.dumps(STEP, indent=2))
    assert choose("auto").name == given.name
    (folder / "jobs-mix1-seed42.txt").write_text("step 1 1\n")
    assert choose("auto").name != given.name


def test_only_the_authors_data_is_compared_with_the_paper(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(folder))
    with pytest.raises(ValueError, match="does not name the authors' data"):
        choose("authors")
    monkeypatch.setattr(mina_data, "AUTHORS", digest(folder))
    assert choose("authors").comparable
    assert choose("auto").name == "authors"
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(ValueError, match=f"set {VARIABLE}"):
        choose("authors")


def digest(folder: Path) -> str:
    given = choose(str(folder))
    return mina_data.digest(given.patterns, given.lists)


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda at: (at / "traces").rename(at / "old"), "no folder traces/"),
        (lambda at: (at / "traces" / "step.json").write_text("{"), "not JSON"),
        (lambda at: (at / "traces" / "step.json").unlink(), "no pattern step"),
        (lambda at: (at / "jobs-mix1-seed42.txt").write_text("a b\n"), "2 words"),
    ],
)
def test_a_broken_folder_is_an_error_before_anything_runs(
    spoil: Any, complaint: str, folder: Path
) -> None:
    spoil(folder)
    with pytest.raises(ConfigurationError) as error:
        plan(find("mina/table1"), overrides=[f"data={folder}"])
    assert complaint in str(error.value)


def test_a_page_names_the_data_and_no_path(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    asked = ["reproduce", "mina/table1", "--quick", "--seeds", "1", "--json", "--out", str(out)]
    assert olaf([*asked, "--set", f"data={folder}"]) == 0
    record = Record.model_validate_json(capsys.readouterr().out)
    assert record.parameters["data"] == choose(str(folder)).name
    page = (out / "mina" / "table1" / "README.md").read_text()
    assert "**Measured with:** other data than the paper's" in page
    assert str(folder) not in page + (out / "mina" / "table1" / "results.json").read_text()
    printed = [row for row in record.rows if row.paper is not None]
    assert printed
    assert {row.verdict for row in printed} == {"not comparable"}
    assert all(row.goal is None for row in record.rows)


def test_the_paper_stands_beside_what_was_measured_with_its_own_data(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.setattr(mina_data, "AUTHORS", digest(folder))
    asked = ["reproduce", "mina/table1", "--quick", "--seeds", "1", "--json"]
    assert olaf([*asked, "--out", str(tmp_path), "--set", f"data={folder}"]) == 0
    record = Record.model_validate_json(capsys.readouterr().out)
    assert record.parameters["data"] == "authors"
    assert "not comparable" not in {row.verdict for row in record.rows}
    assert any(row.goal is not None for row in record.rows)


def test_fragments_are_the_fewest_whole_pods_racks_and_hosts() -> None:
    pods = np.zeros((2, 2, 2), dtype=bool)
    assert fragments_of(pods) == 0
    pods[0, 0, 0] = pods[1, 1, 1] = True
    assert fragments_of(pods) == 2
    pods[0, 0, 1] = True  # a whole rack and a host
    assert fragments_of(pods) == 2
    pods[0, 1] = True  # a whole pod and a host
    assert fragments_of(pods) == 2
    assert fragments_of(~pods) == 2  # a rack, and half of one
    pods[:] = True
    assert fragments_of(pods) == 1


def test_the_turning_point_is_where_bytes_and_computation_take_as_long(folder: Path) -> None:
    given = plan(find("mina/fig5"), overrides=[f"data={folder}"]).parameters
    slow, step = given.data.patterns  # type: ignore[attr-defined]
    # From the first gradient on there are 10 - 4 - 3 x 0.05 ms for all bytes, whatever follows.
    assert turning_gbit(given, given.data, step) == pytest.approx(30e6 * 8 / 5.85e-3 / 1e9)  # type: ignore[arg-type, attr-defined]
    # With ten times the bytes, two thirds of them against 4 ms less two latencies come later.
    assert turning_gbit(given, given.data, slow) == pytest.approx(  # type: ignore[arg-type, attr-defined]
        min(300e6 * 8 / 5.85e-3, 200e6 * 8 / 3.9e-3) / 1e9
    )


def test_a_bench_runs_equal_cases_once_and_answers_by_seed(folder: Path) -> None:
    given = choose(str(folder))
    said: list[str] = []
    bench = Bench(given, [3, 5], lambda text, share=None: said.append(text))
    jobs = given.given("mix1-seed42", Mix.parse("2:1"), 20)
    base = plan(find("mina/table1"), overrides=[f"data={folder}"]).parameters
    fixed: Case = base.case("first-fit", "first", "greedy")  # type: ignore[attr-defined]
    drawn: Case = base.case("random", "first", "greedy")  # type: ignore[attr-defined]
    bench.want_given(fixed, "all", jobs)
    bench.want_given(drawn, "all", jobs)
    bench.run()
    assert len(said) == 3
    assert len(bench.of_given(fixed, "all")) == 2
    first, second = bench.of_given(fixed, "all")
    assert first is second
    assert 0 <= first.score <= 1
    assert first.cpu_s > 0
