"""``olaf schedule``: what a person reads and mistypes."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from olaf.cli.main import olaf, run
from olaf.cli.schedule import COMMANDS
from olaf.errors.outcome import Exit
from olaf.schedule import words

OURS = [name for name, (where, _) in COMMANDS.items() if "serve" in where or "_jobs" in where]


@pytest.mark.parametrize("command", OURS)
def test_every_command_teaches_with_an_example(command: str) -> None:
    result = CliRunner().invoke(olaf, ["schedule", command, "--help"])
    assert result.exit_code == 0
    assert "Examples:" in result.output
    assert f"olaf schedule {command}" in result.output


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["serve", "--store", "s.db"], "give --topology too"),
        (["serve", "--store", "s.db", "--trees", "mina"], "--trees is for a new store"),
        (["serve", "--store", "s.db", "--topology", "fat-tree:7"], "even"),
        (["serve", "--store", "s.db", "--topology", "fat-tree:4", "--capacity", "x"], "capacity"),
        (["serve", "--store", "s.db", "--topology", "fat-tree:4", "--listen", "x"], "HOST:PORT"),
        (["serve", "--store", "s.db", "--topology", "none.toml"], "none.toml"),
        (
            [
                *("serve", "--store", "s.db", "--topology", "fat-tree:4"),
                *("--trees", "mina", "--join", "several"),
            ],
            "join one sharing group at most",
        ),
        (["serve", "--store", "s.db", "--join", "one"], "--join is for a new store"),
        (["serve", "--store", "s.db", "--topology", "fat-tree:4", "--bandwidth", "x"], "rate"),
        (["list", "--url", "ftp://x"], "http://"),
        (["list", "--token-file", "none"], "--token-file none"),
        (["explain", "zero"], "zero"),
        (["sumbit"], "did you mean `submit`?"),
    ],
)
def test_a_mistake_is_said(
    argv: list[str],
    says: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["schedule", *argv]) == Exit.USAGE
    assert says in capsys.readouterr().err
    assert not (tmp_path / "s.db").exists()


def test_reasons_of_a_newer_core_are_shown_word_for_word() -> None:
    assert words.tree({"kind": "by_moonlight", "phase": 3}) == "by moonlight (phase 3)"
    assert words.event({"event": "sung", "job": 3}) == "event=sung job=3"
