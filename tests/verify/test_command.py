"""`olaf verify`: what it prints, what it leaves, how it ends."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from specs import FAIR, OLD, SMALL, UNFAIR, written

from olaf.cli.main import run as olaf
from olaf.values import units
from olaf.verify import portfolio
from olaf.verify.spec import Spec

EXAMPLES = Path(__file__).parents[2] / "examples" / "verify"
REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "verify.md"


@pytest.fixture
def brute(monkeypatch: pytest.MonkeyPatch) -> None:
    """The provers are one: the brute."""
    monkeypatch.setattr(portfolio, "PROVERS", {"brute": "brute:Brute"})


pytestmark = pytest.mark.usefixtures("brute")
Capture = pytest.CaptureFixture[str]


def test_what_holds_ends_with_0_and_says_what_was_assumed(tmp_path: Path, capsys: Capture) -> None:
    assert olaf(["verify", str(written(tmp_path, SMALL + FAIR))]) == 0
    said = capsys.readouterr().out
    assert "HOLDS      mean peak ages of any two clusters differ by at most 5 ms" in said
    assert "proved up to 24 ms by brute" in said
    assert "2.667 ms is the smallest limit that holds: a run reaches it" in said
    for assumed in ("one OLAF queue of 2 slots", "any phase", "the queue empty", "P_s = 1", "mean"):
        assert assumed in said


def test_what_is_violated_ends_with_1_and_shows_the_run(tmp_path: Path, capsys: Capture) -> None:
    file = written(tmp_path, SMALL + UNFAIR)
    plot, trace = tmp_path / "o.png", tmp_path / "o.csv"
    assert olaf(["verify", str(file), "--plot", str(plot), "--trace", str(trace)]) == 1
    said = capsys.readouterr().out
    assert "VIOLATED   mean peak ages of any two clusters differ by at most 1 ms" in said
    assert len([line for line in said.splitlines() if line.endswith("<-- ")]) == 2
    assert "⠀" in said
    assert plot.read_bytes().startswith(b"\x89PNG")
    command = re.search(r"olaf (replay .*)", said)
    assert command is not None
    assert command[1] == f"replay {trace} --rate 8mbit --slots 2"
    assert olaf([*command[1].split(), "--json"]) == 0


def test_the_trace_replays_to_the_run_of_the_verdict(tmp_path: Path, capsys: Capture) -> None:
    file, trace = written(tmp_path, SMALL + UNFAIR), tmp_path / "o.csv"
    assert olaf(["verify", str(file), "--trace", str(trace), "--json"]) == 1
    run = json.loads(capsys.readouterr().out)["verdicts"][0]["run"]
    assert olaf(["replay", str(trace), "--rate", "8mbit", "--slots", "2", "--json"]) == 0
    replayed = json.loads(capsys.readouterr().out)
    for cluster in run["clusters"]:
        told = [each["end_ms"] for each in cluster["deliveries"]]
        left = [
            each["end_ns"] // 1_000_000
            for each in replayed["departures"]
            if each["cluster"] == cluster["name"] and each["end_ns"] < 25_000_000
        ]
        assert told == left
    assert len(run["sends"]) == len(replayed["fates"])


def test_violated_counts_before_holds_and_each_has_its_files(
    tmp_path: Path, capsys: Capture
) -> None:
    file = written(tmp_path, SMALL + FAIR + OLD)
    assert olaf(["verify", str(file), "--plot", str(tmp_path / "o.svg")]) == 1
    assert "HOLDS" in capsys.readouterr().out
    names = sorted(file.name for file in tmp_path.glob("o*"))
    assert names == ["o-1-fair_peak.svg", "o-2-worst_peak.svg"]


def test_objectives_of_the_command_line_and_the_horizon(tmp_path: Path, capsys: Capture) -> None:
    file = written(tmp_path, SMALL + FAIR + OLD)
    wanted = ["worst_peak=9ms", "starvation", "loss=0.5%", "fair_age=0.02s", "fair_peak"]
    options = [part for text in wanted for part in ("--objective", text)]
    assert olaf(["verify", str(file), *options, "--horizon", "0.03s", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["model"]["horizon_ms"] == 30
    assert [(v["kind"], v["limit"]) for v in told["verdicts"]] == [
        ("worst_peak", 9),
        ("starvation", 29.999999),
        ("loss", 0.005),
        ("fair_age", 20),
        ("fair_peak", 5),
    ]


def test_json_is_as_the_reference_says(tmp_path: Path, capsys: Capture) -> None:
    file = written(tmp_path, SMALL + FAIR + UNFAIR)
    assert olaf(["verify", str(file), "--json", "--tightest"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == 1
    assert told["answer"] == "violated"
    holds, violated = told["verdicts"]
    assert (holds["answer"], violated["answer"]) == ("holds", "violated")
    assert holds["tight"]
    assert violated["tight"]
    assert holds["value"] == holds["at_most"] == violated["at_most"] == pytest.approx(8 / 3)
    assert violated["run"]["pair"] == ["a", "b"]
    means = [cluster["mean_peak_ms"] for cluster in violated["run"]["clusters"]]
    assert abs(means[0] - means[1]) == pytest.approx(violated["value"])
    documented = set(re.findall(r"`(\w+)`", REFERENCE.read_text(encoding="utf-8")))
    assert _keys(told) - documented == set()


def _keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {key for each in value.values() for key in _keys(each)}
    if isinstance(value, list):
        return {key for each in value for key in _keys(each)}
    return set()


BAD = {
    "no file": ("", ["/nowhere.toml"], "No such file"),
    "not TOML": ("[queue", [], "not TOML"),
    "zero interval": (SMALL.replace("= 4", "= 0") + FAIR, [], "cluster.1.interval_ms"),
    "one table": (SMALL.split("[[")[0] + "[cluster]\nname = 'a'", [], "write [[cluster]]"),
    "jitter": (
        SMALL.replace("interval_ms = 4", "interval_ms = 4\njitter_ms = 4") + FAIR,
        [],
        "jitter, 4 ms, must be below interval, 4 ms",
    ),
    "unknown key": (SMALL.replace("slots", "slot") + FAIR, [], "did you mean slots?"),
    "ticks": (SMALL.replace("= 24", "= 900_000") + FAIR, [], "shorten time.horizon_ms"),
    "horizon": (SMALL + FAIR, ["--horizon", "900s"], "shorten time.horizon_ms"),
    "no objective": (SMALL, [], "has no [[objective]]"),
    "unknown cluster": (SMALL + FAIR + 'clusters = ["c"]', [], "names c; the clusters are a, b"),
    "one cluster": (SMALL + FAIR + 'clusters = ["a"]', [], "needs two clusters"),
    "objective": (SMALL, ["--objective", "speed=3ms"], "'speed' is not one of fair_peak"),
    "kind": (SMALL + FAIR.replace("fair_peak", "fair_peek"), [], "loss; did you mean fair_peak?"),
    "kind of its own": (
        SMALL + FAIR.replace("fair_peak", "no_average"),
        [],
        "must be one of fair_peak, fair_age, worst_peak, starvation, loss",
    ),
    "kind that is a list": (SMALL + FAIR.replace('"fair_peak"', "[1]"), [], "must be one of"),
    "no limit": (SMALL, ["--objective", "worst_peak"], "give its limit"),
    "limit": (SMALL, ["--objective", "worst_peak=9"], "'9' is not a time"),
    "share": (SMALL, ["--objective", "loss=200%"], "less than or equal to 1"),
    "timeout": (SMALL + FAIR, ["--timeout", "0s"], "above 0"),
    "plot": (SMALL + FAIR, ["--plot", "o.gif"], "a plot ends with"),
    "folder": (SMALL + FAIR, ["--trace", "/nowhere/o.csv"], "there is no folder /nowhere"),
    "taken": (SMALL + UNFAIR, ["--trace", f"{'o' * 300}.csv"], "name a file that you can write"),
    "a yes for a number": (SMALL.replace("slots = 2", "slots = true") + FAIR, [], "queue.slots"),
    "escape": (SMALL.replace('"a"', '"\\u001b[31m"') + FAIR, [], "cluster.1.name"),
    "usage": (SMALL + FAIR, ["--speed"], "No such option"),
    "prover": (SMALL + FAIR, ["--prover", "luck"], "luck"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_ends_with_3_and_says_what_to_change(
    name: str, tmp_path: Path, capsys: Capture
) -> None:
    text, options, what = BAD[name]
    file = [str(written(tmp_path, text))] if text else []
    assert olaf(["verify", *file, *options]) == 3
    assert what in capsys.readouterr().err


def test_a_name_is_no_markup_and_no_formula(tmp_path: Path, capsys: Capture) -> None:
    named = SMALL.replace('"a"', '"[/red]$\\\\frac$"').replace('"b"', '"b[bold]"')
    (tmp_path / "[b]").mkdir()
    file = written(tmp_path / "[b]", named + UNFAIR)
    assert olaf(["verify", str(file), "--plot", str(tmp_path / "o.svg")]) == 1
    said = capsys.readouterr().out
    assert f"{file}: 2 workers" in said
    assert re.search(r"^ b\[bold\] ", said, re.M)
    assert re.search(r"^ \[/red\]\$", said, re.M)


def test_a_bug_is_no_answer(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portfolio, "PROVERS", {"liar": "brute:Liar"})
    assert olaf(["verify", str(written(tmp_path, SMALL + FAIR))]) == 70
    assert "a bug in Olaf" in capsys.readouterr().err


SLOW = (
    "import olaf.verify.portfolio as p; p.PROVERS.clear(); p.PROVERS['slow'] = 'brute:Slow';"
    "from olaf.cli.main import main; main()"
)


def _real(tmp_path: Path, *options: str) -> subprocess.Popen[str]:
    """A process of its own, whose prover never answers."""
    file = written(tmp_path, SMALL + FAIR + '[[objective]]\nkind = "starvation"\n')
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    return subprocess.Popen(
        [sys.executable, "-c", SLOW, "verify", str(file), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
        start_new_session=True,
    )


def test_ctrl_c_answers_with_what_is_known(tmp_path: Path) -> None:
    with _real(tmp_path, "--timeout", "110s") as process:
        assert process.stderr is not None
        # Said once it takes long: by then it waits for the prover.
        assert "a cluster without a mean? slow" in process.stderr.readline()
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 2, err
    assert out.count("UNDECIDED") == 2
    assert "interrupted" in out
    assert "a run reaches" in out


@pytest.mark.slow
def test_provers_end_with_who_asked_them(tmp_path: Path) -> None:
    with _real(tmp_path, "--timeout", "110s") as process:
        assert process.stderr is not None
        process.stderr.readline()
        provers = _children_of(process.pid)
        assert len(provers) == 1
        os.killpg(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in provers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{pid}").exists() for pid in provers)


def _children_of(pid: int) -> list[str]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    return children.read_text(encoding="ascii").split()


def test_out_of_time_it_ends_with_2(tmp_path: Path) -> None:
    begin = time.monotonic()
    with _real(tmp_path, "--timeout", "1s", "--json") as process:
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert time.monotonic() - begin < 40
    told = json.loads(out)
    assert told["answer"] == "undecided"
    assert {verdict["answer"] for verdict in told["verdicts"]} == {"undecided"}


def test_the_reference_names_every_key_of_a_spec() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    for section, field in Spec.model_fields.items():
        tables = [field.annotation, *getattr(field.annotation, "__args__", ())]
        for table in (each for each in tables if hasattr(each, "model_fields")):
            for key in table.model_fields:
                named = units.key_of(key)
                assert f"`{named}`" in text or f"`{section}.{named}`" in text, (section, named)
