import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from commands import olaf as invoked

from olaf.cli.main import COMMANDS, olaf, run
from olaf.errors.outcome import Exit
from olaf.jobs.words import status_of_server


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_teaches_with_an_example(command: str) -> None:
    result = CliRunner().invoke(olaf, [command, "--help"])
    assert result.exit_code == 0
    assert "Examples:" in result.output
    assert f"olaf {command}" in result.output


def test_help_lists_every_command_and_every_exit_code() -> None:
    result = invoked("--help")
    assert result.returncode == 0
    for command in COMMANDS:
        assert f"  {command} " in result.stdout
    for code in Exit:
        assert str(int(code)) in result.stdout


def test_help_imports_nothing_heavy() -> None:
    heavy = ["numpy", "pydantic", "gymnasium", "rich", "matplotlib", "torch", "olaf._olaf"]
    code = (
        "import sys; from olaf.cli.main import run; run(['--help']);"
        f"print([m for m in {heavy!r} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_mistyped_command_is_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trian"]) == Exit.USAGE
    assert "no command `trian`; did you mean `train`?" in capsys.readouterr().err


def test_a_mistyped_option_is_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "--worker", "3"]) == Exit.USAGE
    assert "--workers" in capsys.readouterr().err


def test_a_wrong_value_names_the_option_it_came_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "--workers", "0"]) == Exit.USAGE
    assert "olaf: --workers: `train.workers` = 0" in capsys.readouterr().err


def test_a_wrong_key_in_a_file_is_a_usage_error(tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text("[server]\nlearning_rat = 1\n")
    result = invoked("train", "--config", str(file))
    assert result.returncode == Exit.USAGE
    assert f"{file}:2: unknown key `server.learning_rat`; did you mean" in result.stderr
    assert "Traceback" not in result.stderr


def test_printing_the_configuration_shows_what_was_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "--workers", "3", "--set", "learner.epochs=7", "--print-config"]) == 0
    printed = capsys.readouterr().out
    assert "workers = 3" in printed
    assert "epochs = 7" in printed


def test_config_prints_a_file_that_config_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["config"]) == 0
    file = tmp_path / "all.toml"
    file.write_text(capsys.readouterr().out)
    assert run(["config", "--config", str(file)]) == 0
    assert capsys.readouterr().out == file.read_text()


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["switch", "--listen", "127.0.0.1:0", "--upstream", "nohost.invalid:5"], "nohost.invalid"),
        (["worker", "--id", "99999999999999"], "4294967294"),
        (
            ["train", "--env", "CartPole-v1", "--out", "/proc/nowhere"],
            "name a folder that you can write to",
        ),
    ],
)
def test_what_cannot_be_is_said_at_once_without_a_traceback(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(argv) == 2
    assert said in capsys.readouterr().err


def test_refused_datagrams_are_told_in_the_status_line_with_their_reasons() -> None:
    stats = {"jobs": [], "refused": {"truncated": 2, "wrong_version": 1, "oversized": 0}}
    line = status_of_server(stats)
    assert (
        "refused datagrams 3 (truncated 2, wrong version 1: run the same olaf everywhere)" in line
    )
