"""`olaf simulate sums`: what it prints, what it leaves, what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest

from olaf.cli.main import run as olaf
from olaf.scenarios.sums import plain, run

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "sums").glob("*.toml"))

SMALL = """
seed = 3
[network]
racks = [2, 2]
rate = "1gbit"
trunk_rate = "4gbit"
delay = "5us"
loss = 0.002

[[jobs]]
name = "A"
engine = "iswitch"
workers = 4
model = "100kB"
iterations = 4
compute = "2ms"
compute_spread = 0.1
update = "100us"

[[jobs]]
name = "B"
engine = "ring"
workers = 3
hosts = [0, 2, 3]
model = "60kB"
iterations = 3
compute_list = ["1ms", "2ms"]
[jobs.straggler]
probability = 0.5
typical = "2ms"
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    return file


def _json(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_every_example_runs(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert olaf(["simulate", "sums", str(file), "--json"]) == 0
    (outcome,) = _json(capsys)["outcomes"]
    by_engine = {job["engine"]: job for job in outcome["jobs"]}
    for job in outcome["jobs"]:
        assert job["failed"] is None
        assert job["exact"] == job["workers"] * len(job["iterations"])
    # What the example shows: the switch sums in the time of one vector.
    assert by_engine["iswitch"]["aggregation_ns"] < 1.1 * by_engine["ideal"]["aggregation_ns"]
    assert by_engine["iswitch"]["aggregation_ns"] < by_engine["ring"]["aggregation_ns"]
    assert by_engine["ring"]["aggregation_ns"] < by_engine["ps"]["aggregation_ns"]


def test_a_seed_gives_the_same_text_twice(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert olaf(["simulate", "sums", str(small), "--json"]) == 0
    first = capsys.readouterr().out
    assert olaf(["simulate", "sums", str(small), "--json"]) == 0
    assert capsys.readouterr().out == first
    assert olaf(["simulate", "sums", str(small), "--seed", "4", "--json"]) == 0
    assert capsys.readouterr().out != first


def test_every_frame_has_one_fate_and_the_parts_add_up(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert olaf(["simulate", "sums", str(small), "--seeds", "3", "--json"]) == 0
    told = _json(capsys)
    assert [outcome["seed"] for outcome in told["outcomes"]] == [3, 4, 5]
    for outcome in told["outcomes"]:
        assert sum(link["lost"] for link in outcome["links"]) > 0
        for link in outcome["links"]:
            fates = ("delivered", "lost", "dropped", "on_the_way")
            assert link["offered"] == sum(link[fate] for fate in fates)
        for job in outcome["jobs"]:
            parts = ("compute_ns", "wait_ns", "aggregation_ns", "update_ns")
            assert job["iteration_ns"] == pytest.approx(sum(job[part] for part in parts))
            assert job["exact"] == job["workers"] * len(job["iterations"])


def test_the_tables_tell_the_parts_and_the_links(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plot = tmp_path / "parts.svg"
    assert olaf(["simulate", "sums", str(small), "--plot", str(plot)]) == 0
    text = capsys.readouterr().out
    for word in ("2 jobs, 7 workers", "iswitch", "ring", "sum", "lost"):
        assert word in text
    assert "host0 to rack0" in text
    assert plot.read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("was", "becomes", "says"),
    [
        ('engine = "ring"', 'engine = "rang"', ":22: jobs[1].engine: unknown variant `rang`"),
        ('trunk_rate = "4gbit"', "", ":3: network.trunk_rate: several racks need trunks"),
        ('rate = "1gbit"', 'rate = "-1gbit"', ":5: network.rate: "),
        ('rate = "1gbit"', "rate = 5", ":5: network.rate: "),
        ('model = "60kB"', 'model = "0B"', ":25: jobs[1].model: must be above 0B"),
        ('compute = "2ms"', "compute = nan", ":16: jobs[0].compute: nan is no number"),
        ('["1ms", "2ms"]', '["1ms", nan]', ":27: jobs[1].compute_list[1]: nan is no number"),
        ('["1ms", "2ms"]', '["1ms", 3]', ":27: jobs[1].compute_list[1]: "),
        ("loss = 0.002", "loss = 1.5", ":8: network.loss: must be from 0 to below 1"),
        ("hosts = [0, 2, 3]", "window = 0", ":24: jobs[1].window: must be at least 1"),
        ("hosts = [0, 2, 3]", "hosts = [0, 2, 9]", ":24: jobs[1].hosts: must be below 4"),
        ("probability = 0.5", "probability = 2", ":29: jobs[1].straggler.probability: must be"),
        ("iterations = 4", "", ":10: jobs[0]: missing field `iterations`"),
        ("seed = 3", "seed = -3", ":2: seed: -3 is no whole number"),
        ("seed = 3", "sede = 3", "sede: unknown field"),
        ('workers = 4', 'workers = 5', ":13: jobs[0].workers: must be at most 4"),
    ],
)  # fmt: skip
def test_a_scenario_that_cannot_be_names_its_line_and_key(
    was: str, becomes: str, says: str, small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert was in SMALL
    small.write_text(SMALL.replace(was, becomes, 1))
    assert olaf(["simulate", "sums", str(small)]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert f"{small}" in error
    assert says in error


def test_a_key_that_is_set_names_itself(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["simulate", "sums", str(small), "--set"]
    assert olaf([*command, "jobs.B.workers=0"]) == 2
    assert "--set jobs.B.workers=0: jobs[1].workers: must be at least 1" in capsys.readouterr().err
    assert olaf([*command, "network.loss=0", "--json"]) == 0
    assert sum(link["lost"] for link in _json(capsys)["outcomes"][0]["links"]) == 0


def test_a_job_that_does_not_end_fails(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert olaf(["simulate", "sums", str(small), "--set", "limit=3ms"]) == 1
    assert "job 'A', seed 3: it had not ended at the scenario's limit" in capsys.readouterr().err


def test_a_plot_needs_an_ending(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert olaf(["simulate", "sums", str(small), "--plot", "parts.txt"]) == 2
    assert ".svg or .png" in capsys.readouterr().err


def test_progress_counts_iterations() -> None:
    job = {
        "name": "A", "engine": "ideal", "workers": 2, "model": "4B", "iterations": 3,
        "compute": "1ms",
    }  # fmt: skip
    told: list[int] = []
    run(plain({"network": {"racks": [2], "rate": "1gbit"}, "jobs": [job]}), told=told.append)
    assert told == [1, 2, 3, 4, 5, 6]
