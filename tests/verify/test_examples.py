"""The examples: each verdict as its file says, by the real provers side by side."""

import json
from pathlib import Path
from typing import Any

import pytest

from olaf.cli.main import run as olaf

EXAMPLES = Path(__file__).parents[2] / "examples" / "verify"
ANSWERS = {
    "paper-100-100": ["holds"],
    "paper-100-300": ["violated"],
    "enough-slots": ["holds"] * 4,
    "too-few-slots": ["violated"] * 4,
    "jitter": ["holds"] * 2,
    "control": ["holds"] * 2,
    "running": ["holds"] * 2,
    "policy": ["holds"] * 2,
}
Capture = pytest.CaptureFixture[str]


def test_all_of_them_are_here() -> None:
    assert {file.stem for file in EXAMPLES.glob("*.toml")} == {*ANSWERS, "new"}


SLOW = {"control", "enough-slots", "jitter"}
NAMES = [pytest.param(name, marks=pytest.mark.slow if name in SLOW else []) for name in ANSWERS]


@pytest.mark.parametrize("name", NAMES)
def test_an_example(name: str, capsys: Capture) -> None:
    code = olaf(["verify", str(EXAMPLES / f"{name}.toml"), "--json", "--timeout", "100s"])
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert [verdict["answer"] for verdict in told["verdicts"]] == ANSWERS[name]
    assert code == (0 if set(ANSWERS[name]) == {"holds"} else 1)
    for verdict in told["verdicts"]:
        assert verdict["run"] is not None
        if verdict["answer"] == "holds":
            assert verdict["value"] <= verdict["at_most"] <= verdict["limit"]
            assert verdict["forever"] or name in ("jitter", "control")


def test_the_newcomer_is_told_an_interval(capsys: Capture) -> None:
    new, running = EXAMPLES / "new.toml", EXAMPLES / "running.toml"
    assert olaf(["admit", "--cluster", str(new), "--to", str(running), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["running_holds"] is True
    assert told["suggestion"]["key"] == "cluster.interval_ms"
    assert told["suggestion"]["value"] == 4
