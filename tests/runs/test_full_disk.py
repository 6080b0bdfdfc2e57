"""A run whose disk is full trains on, and says what is not written."""

import errno
import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from olaf.files.writing import in_one_step, write_text
from olaf.jobs.progress import Happening, Progress
from olaf.jobs.settings import Settings
from olaf.runs.session import Everyone

ROOM_BYTES = 24_000
"""The model needs some ten thousand bytes, the curves of some seconds need more."""


def no_room() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM_BYTES, hard))


def train(*options: str, full: bool) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "olaf", "train", *options],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        preexec_fn=no_room if full else None,
    )


@pytest.mark.slow
def test_a_run_on_a_full_disk_lasts_as_long_as_it_should_and_can_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    options = ["--env", "CartPole-v1", "--workers", "2", "--until-reward", "off", "--seed", "1"]
    ended = train(*options, "--out", str(folder), "--time-limit", "12s", full=True)
    assert ended.returncode == 1, ended.stderr
    assert f"{folder}/history.jsonl cannot be written (File too large); the run goes on" in (
        ended.stdout + ended.stderr
    )
    *_, last = ended.stderr.splitlines()
    assert "the run has ended (12 s of training are over), and its record is not complete" in last
    assert not list(folder.glob("*.part")), "no half a file stays"
    lines = (folder / "history.jsonl").read_text().splitlines()
    assert all(json.loads(line) for line in lines), "every line is whole"
    # With room the run goes on.
    again = train("--resume", str(folder), "--time-limit", "14s", full=False)
    assert again.returncode == 0, again.stderr
    assert json.loads((folder / "run.json").read_text())["result"]["session"]["number"] == 2


class Watcher:
    """Remembers what it was told; fails while it has no room."""

    written_to = "file"

    def __init__(self) -> None:
        self.has_room = True
        self.heard: list[str] = []
        self.stood = 0

    def happened(self, happening: Happening) -> None:
        self.heard.append(happening.text)

    def stands(self, progress: Progress, phase: str) -> None:
        if not self.has_room:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.stood += 1


def test_others_hear_once_that_one_cannot_write_and_once_that_it_can_again() -> None:
    one, other = Watcher(), Watcher()
    everyone, progress = Everyone([one, other]), Progress(Settings())
    for has_room in (True, False, False, True, True):
        one.has_room = has_room
        everyone.stands(progress, "training")
    assert (one.stood, other.stood) == (3, 5)
    assert one.heard == []
    assert other.heard == [
        "file cannot be written (No space left on device); the run goes on",
        "file is written again",
    ]
    assert list(everyone.unwritten()) == []
    one.has_room = False
    everyone.stands(progress, "ended")
    assert list(everyone.unwritten()) == [("file", "No space left on device")]


def fill(file: Path) -> None:
    with in_one_step(file) as half:
        half.write_text("ne")
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_file_stays_as_it_was_where_the_new_one_cannot_be_written(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    write_text(file, "old")
    with pytest.raises(OSError, match=f"No space left on device: '{file}'"):
        fill(file)
    assert file.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["run.json"]
