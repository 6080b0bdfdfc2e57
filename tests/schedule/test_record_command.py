"""`olaf schedule record`: what it refuses, with torch or without; and the patterns that we ship."""

import json
from importlib.resources import files
from pathlib import Path

import pytest

from olaf.cli.main import run as olaf
from olaf.schedule.shapes import SHAPES


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give either --model NAME or --all"),
        (["--model", "mlp", "--all"], "give either --model NAME or --all"),
        (["--model", "vgg"], "'mlp', 'cnn', 'transformer', 'resnet18'"),
        (["--model", "mlp", "--warmup", "1"], "x>=2"),
        (["--model", "mlp", "--clock", "cpu"], "add --threads 1"),
    ],
)
def test_what_cannot_be_recorded_is_refused_at_once(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert olaf(["schedule", "record", *arguments, "--out", str(tmp_path / "p.json")]) == 2
    assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_folder_is_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert olaf(["schedule", "record", "--model", "mlp", "--out", str(tmp_path)]) == 2
    assert "is a folder; name a file" in capsys.readouterr().err


@pytest.mark.parametrize("name", SHAPES)
def test_what_we_ship_is_what_the_command_writes(name: str) -> None:
    told = json.loads((files("olaf.schedule") / "patterns" / f"{name}.json").read_text())
    recorded = told["recorded"]
    assert recorded["model"] == name
    assert recorded["steps"] >= 20
    assert sum(each["size"] for each in told["allreduces"]) == 4 * recorded["parameters"]
    starts = [each["start"] for each in told["allreduces"]]
    assert starts == sorted(starts)
    assert 0 < starts[0] <= starts[-1] <= told["duration"]
    spread = recorded["spread"]["duration"]
    assert spread["least"] <= told["duration"] <= spread["most"]
