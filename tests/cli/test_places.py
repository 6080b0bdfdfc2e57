"""Where a job runs: this machine costs nothing more, and another place says what it lacks."""

import subprocess
import sys
from pathlib import Path

import pytest
from cli_doubles import Watcher, fake_command

from olaf.cli.main import run
from olaf.errors.outcome import Exit, RunError
from olaf.jobs.places import open_place
from olaf.jobs.reading import read_settings
from olaf.jobs.supervisor import Supervisor
from olaf.jobs.training import Training
from olaf.processes.lines import Control


def test_this_machine_is_the_default_and_imports_nothing_of_the_others() -> None:
    code = """
import sys
from olaf.jobs.places import open_place
from olaf.jobs.reading import read_settings
with open_place(read_settings()) as place:
    print(type(place).__name__, "ray" in sys.modules, "olaf.jobs.places.slurm_place" in sys.modules)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["Supervisor", "False", "False"]


def test_without_ray_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", None)
    assert run(["train", "--on", "ray", "--env", "CartPole-v1"]) == Exit.USAGE
    said = capsys.readouterr().err
    assert "olaf train --on ray needs ray, which is not installed" in said
    assert "ray`" in said.partition("run `")[2]
    assert not list(tmp_path.rglob("history.jsonl"))  # nothing was begun


def test_one_process_is_not_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "--local", "--on", "ray"]) == Exit.USAGE
    assert "local and on = 'ray' are both set" in capsys.readouterr().err


def test_a_batch_job_is_no_place_to_run_in() -> None:
    with pytest.raises(RunError, match="only the command `olaf train` can submit a job") as error:
        open_place(read_settings(overrides=["train.on=slurm"]))
    assert error.value.code == Exit.USAGE


class Elsewhere(Supervisor):
    def __init__(self) -> None:
        super().__init__(host="127.0.0.3")


@pytest.mark.parametrize(
    ("listen", "found"),
    [
        ("", "127.0.0.3"),  # nobody said: the machine's own
        ("127.0.0.1:0", "127.0.0.3"),  # as `olaf config` prints it; no other machine can reach it
        ("0.0.0.0:0", "0.0.0.0"),
        ("127.0.0.4:0", "127.0.0.4"),
    ],
)
def test_elsewhere_a_switch_listens_where_others_can_reach_it(
    tmp_path: Path, listen: str, found: str
) -> None:
    settings = read_settings(
        overrides=[
            f"train.out='{tmp_path}'",
            "train.on=ray:auto",
            "train.workers=2",
            "train.updates=20",
            "train.until_reward=off",
            "train.every_s=0.05",
            *([f"switch.listen='{listen}'"] if listen else []),
        ]
    )
    training = Training(settings, Watcher(), Control(), fake_command, place=Elsewhere())
    outcome = training.run()
    assert outcome.code == Exit.OK
    assert outcome.progress.addresses["switch"].rpartition(":")[0] == found
    assert outcome.progress.addresses["server"].startswith("127.0.0.3:")
    # What listens everywhere is looked for at the address of its machine.
    home = training._homes["switch"].rpartition(":")[0]
    assert home == ("127.0.0.3" if found == "0.0.0.0" else found)
