"""`olaf simulate network`: what it prints, what it leaves, what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest

from olaf.cli.main import run as olaf
from olaf.scenarios import Outcome, read, summarize, with_overrides
from olaf.scenarios.running import run, watched

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "scenarios").glob("*.toml"))
SHORT = ["--set", "duration_ns=2_000_000_000"]

SMALL = """
seed = 3
duration_ns = 500_000_000
[[switches]]
name = "A"
queue = "olaf"
slots = 4
rate_bps = 300_000
[[groups]]
name = "G"
switch = "A"
clusters = 2
workers = 3
interval_ns = 20_000_000
late_ns = 5_000_000
packet_bytes = 250
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    return file


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_every_example_runs_and_accounts_for_every_update(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert olaf(["simulate", "network", str(file), "--seeds", "2", *SHORT, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["outcomes"]) == 2
    summary = told["summary"]
    fates = summary["fates"]
    assert fates.pop("generated") == sum(fates.values()) > 0
    assert summary["fates_match"] is True
    for group in summary["groups"]:
        assert 0 < group["age_mean_ms"]["mean"] <= group["worst_age_mean_ms"]["mean"]


def test_the_tables_tell_ages_loss_fairness_and_sums(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert olaf(["simulate", "network", str(small)]) == 0
    text = capsys.readouterr().out
    for words in (
        "6 workers in 2 clusters", "A olaf", "0.5 s, seeds 3 to 7", "mean peak", "worst cluster",
        "fairness", "loss by packets", "loss by contributions", "on the way", "the sums match",
        "sent alone",
    ):  # fmt: skip
        assert words in text
    again = olaf(["simulate", "network", str(small)])
    assert (again, capsys.readouterr().out) == (0, text), "a seed is a seed"


def test_what_is_left_behind_can_be_run_again_to_the_same_end(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "deep" / "out"
    arguments = ["--seed", "9", "--set", "control.kind=fair", "--set", "switches.A.slots=2"]
    assert olaf(["simulate", "network", str(small), *arguments, "--out", str(out)]) == 0
    first = json.loads((out / "results.json").read_text())
    assert first["scenario"]["seed"] == 9
    assert first["scenario"]["switches"][0]["slots"] == 2
    capsys.readouterr()
    copy = str(out / "scenario.toml")
    assert olaf(["simulate", "network", copy, "--seed", "9", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == first


def test_overrides_find_tables_by_name_or_number_and_change_a_copy(small: Path) -> None:
    scenario = read(small)
    changed = with_overrides(
        scenario, ["groups.G.workers=7", "switches.0.queue=fifo", "answers.to=cluster"]
    )
    assert changed["groups"][0]["workers"] == 7
    assert changed["switches"][0]["queue"] == "fifo"
    assert changed["answers"] == {"to": "cluster"}
    assert scenario == read(small)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--set", "groups.G.workrs=1"], "small.toml: groups[0].workrs: unknown field"),
        (["--set", "switches.A.queue=lifo"], 'small.toml: switch "A": queue "lifo" must be olaf'),
        (["--set", "switches.B.queue=olaf"], "no `B` there; use one of A"),
        (["--set", "switches.0=1"], "switches is not a table; write switches.A.KEY=VALUE"),
        (["--set", "seed.a=1"], "seed is not a table"),
        (["--set", "seed=-1"], "`seed` = -1 is invalid"),
        (["--set", "seed=many"], "`seed` = 'many' is invalid"),
        (["--set", "groups.G.interval_ns=0"], 'group "G": interval_ns must be above 0'),
        (["--set", "duration_ns=2026-01-01"], "date"),
        (["--set", "duration_ns"], "--set duration_ns: write it"),
        (
            ["--seed", "1", "--seeds", "2"],
            "give --seed for one seed or --seeds for several, not both",
        ),
        (["--seeds", "0"], "0"),
    ],
)
def test_what_cannot_be_is_named_with_file_and_key(
    small: Path, arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert olaf(["simulate", "network", str(small), *arguments]) == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "No such file"),
        (b"seed = \xff", "not UTF-8"),
        (b"seed 1", "not TOML"),
        (b"", "`seed` is missing"),
        (b"seed = 1\nduration_ns = 1\nswitches = 3\ngroups = []", "switches: invalid type"),
        (b"seed = 1\nduration_ns = 1\nswitches = []\ngroups = []", "0 updates planned"),
    ],
)
def test_a_broken_file_is_named(
    content: bytes | None, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "broken.toml"
    if content is not None:
        file.write_bytes(content)
    assert olaf(["simulate", "network", str(file)]) == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert str(file) in said


def test_a_folder_that_cannot_be_written_is_named(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert olaf(["simulate", "network", str(small), "--out", str(small / "below")]) == 2
    assert "--out" in capsys.readouterr().err


def test_where_nothing_was_delivered_there_is_no_age(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # A datagram takes 80 s: nothing is delivered, and that is what is said.
    dumb = [*("--set", "switches.A.rate_bps=25"), "--seeds", "2"]
    assert olaf(["simulate", "network", str(small), *dumb]) == 0
    text = capsys.readouterr().out
    assert "never heard: 4 of 4 clusters" in text
    assert "- (nothing was delivered)" in text


def test_seeds_are_put_together_by_group() -> None:
    def outcome(ages: list[float | None]) -> Outcome:
        cluster: dict[str, Any] = {
            "age_peak_mean_ns": 4e6, "age_peak_max_ns": 9_000_000, "worker_age_mean_ns": None,
            "workers_unheard": 0, "packets": 1, "contributions": 1,
        }  # fmt: skip
        names = ["generated", "delivered", "replaced", "filtered", "dropped", "rejected",
                 "discarded", "held", "on_the_way"]  # fmt: skip
        return Outcome.model_validate({
            "fates": dict.fromkeys(names, 1),
            "packets_sent": 1, "packets_dropped": 0, "packets_delivered": 1, "packets_merged": 0,
            "loss_packets": 0.5, "loss_contributions": 0.25, "fairness": 0.9,
            "clusters": [
                {"group": "G", "cluster": number, "age_mean_ns": age, **cluster}
                for number, age in enumerate(ages)
            ],
            "switches": [], "probability_mean": 1.0, "fan_in": [],
        })  # fmt: skip

    summary = summarize([1, 2], [outcome([1e6, 3e6]), outcome([5e6, None])])
    (group,) = summary.groups
    assert group.age_mean_ms is not None
    assert group.worst_age_mean_ms is not None
    assert group.age_mean_ms.values == [2.0, 5.0]
    assert group.worst_age_mean_ms.values == [3.0, 5.0]
    assert group.worst_cluster == 0
    assert group.worker_age_mean_ms is None
    assert summary.fates.generated == 2
    assert not summary.fates_match, "generated is 2 where the others sum to 16"


def test_long_work_is_told_of_and_its_errors_come_through(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    monkeypatch.setattr("olaf.scenarios.running.QUIET_S", 0.01)
    told = threading.Event()

    def say(_elapsed_s: float) -> None:
        told.set()

    # The work ends only once it was told of, or fails at a deadline.
    assert watched(lambda: told.wait(30), say) is True

    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        watched(fail, say)


def test_the_core_runs_a_scenario_with_the_seed_it_is_told(small: Path) -> None:
    scenario = read(small)
    assert run(scenario) == run(scenario, 3)
    assert run(scenario) != run(scenario, 4)
