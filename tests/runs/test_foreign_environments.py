"""Runs with environments as strangers write them: they start programs, print, fail, are slow."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from small_runs import Olaf, apart
from waiting import is_gone, until

from olaf import checkpoint

ENVIRONMENTS = """
import atexit, json, os, subprocess, sys, time
import gymnasium as gym
import numpy as np

def note(line):
    with open(os.path.join(HERE, "notes.txt"), "a") as file:
        file.write(line + "\\\\n")

HERE = os.getcwd()

class Base(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (3,))
    action_space = gym.spaces.Discrete(2)
    played = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.n = 0
        return np.zeros(3, np.float32), {}

    def step(self, action):
        self.n += 1
        Base.played += 1
        seen = self.np_random.uniform(-1, 1, 3).astype(np.float32)
        return seen, float(action), self.n >= 20, False, {}

class Starts(Base):
    def __init__(self):
        note(f"pid {subprocess.Popen(['sleep', '4242']).pid}")

class Fails(Base):
    def step(self, action):
        if Base.played > 1500:
            raise KeyError("no such part")
        return super().step(action)

class StartsAndFails(Starts, Fails):
    pass

class Closes(Base):
    def __init__(self):
        note("made")
    def close(self):
        note("closed")

class ClosesAndFails(Closes, Fails):
    pass

class Prints(Base):
    def __init__(self):
        print(json.dumps({"level": "info"}))
        subprocess.run(["echo", json.dumps({"event": "update"})])
    def step(self, action):
        print("a line a step")
        return super().step(action)

class Wanders(Base):
    def __init__(self):
        os.chdir("/")

class GoesWrong(Base):
    def step(self, action):
        seen, *more = super().step(action)
        if Base.played > 1500:
            seen[1] = np.nan
        return seen, *more

class Slow(Base):
    def step(self, action):
        time.sleep(0.02)
        return super().step(action)

class Quits(Base):
    def step(self, action):
        if Base.played > 1500:
            sys.exit(0)
        return super().step(action)

class Vanishes(Base):
    def step(self, action):
        if Base.played > 1500:
            os._exit(0)
        return super().step(action)

class NeedsAFile(Base):
    def step(self, action):
        if Base.played > 1500:
            open("no-such-scene.xml")
        return super().step(action)

class PrintsLast(Base):
    def __init__(self):
        atexit.register(print, json.dumps({"event": "update"}))

class Hangs(Base):
    def step(self, action):
        if Base.played > 1500:
            note("hangs")
            time.sleep(4242)
        return super().step(action)
""".replace("\\\\n", "\\n")

LOCAL = ("--local",)
NETWORK = ("--workers=2",)
WAYS = pytest.mark.parametrize("way", [LOCAL, NETWORK], ids=["local", "network"])


@pytest.fixture
def olaf(olaf: Olaf) -> Iterator[Olaf]:
    (olaf.folder / "strange.py").write_text(ENVIRONMENTS)
    yield olaf
    for pid in pids(olaf.folder):
        if not is_gone(pid):
            os.kill(pid, signal.SIGKILL)


def train(name: str, *more: str) -> tuple[str, ...]:
    quick = ("--set=learner.steps_per_update=200", "--until-reward=off", "--updates=8")
    return ("train", f"--env=strange:{name}", *quick, *more)


def notes(folder: Path) -> list[str]:
    file = folder / "notes.txt"
    return file.read_text().splitlines() if file.exists() else []


def pids(folder: Path) -> list[int]:
    return [int(line.removeprefix("pid ")) for line in notes(folder) if line.startswith("pid ")]


def none_is_left(folder: Path) -> None:
    started = pids(folder)
    assert started
    until(lambda: all(map(is_gone, started)), what="the environments' programs to end")


def began(folder: Path, *argv: str) -> "subprocess.Popen[bytes]":
    """A run in a process of its own, once it trains."""
    log = (folder / "log.txt").open("wb")
    process = subprocess.Popen(
        [sys.executable, "-m", "olaf", *argv], cwd=folder, stdout=log, stderr=log
    )
    text = folder / "log.txt"
    until(lambda: " s  training" in text.read_text(), what="the training to begin")
    return process


@WAYS
def test_programs_that_an_environment_starts_end_with_the_run(
    olaf: Olaf, way: tuple[str, ...]
) -> None:
    olaf(*train("Starts", *way))
    none_is_left(olaf.folder)


@WAYS
def test_programs_of_an_environment_that_fails_end_too(olaf: Olaf, way: tuple[str, ...]) -> None:
    olaf(*train("StartsAndFails", *way, "--updates=off"), code=1)
    none_is_left(olaf.folder)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_a_run_that_is_stopped_or_killed(
    olaf: Olaf, number: signal.Signals
) -> None:
    process = began(olaf.folder, *train("Starts", *NETWORK, "--updates=off"))
    process.send_signal(number)
    assert process.wait(60) == (130 if number == signal.SIGINT else -number)
    none_is_left(olaf.folder)


@WAYS
@pytest.mark.parametrize("name", ["Closes", "ClosesAndFails"])
def test_environments_are_closed_at_the_end_and_after_an_error(
    olaf: Olaf, way: tuple[str, ...], name: str
) -> None:
    fails = name.endswith("Fails")
    olaf(*train(name, *way, f"--updates={'off' if fails else '8'}"), code=1 if fails else 0)
    said = notes(olaf.folder)
    # The last of several workers that fail may be ended by the end of the run.
    assert said.count("closed") >= said.count("made") - (4 if fails else 0) > 0
    assert said.count("closed") > 4


def test_environments_are_closed_after_ctrl_c(olaf: Olaf) -> None:
    process = began(olaf.folder, *train("Closes", *NETWORK, "--updates=off"))
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    said = notes(olaf.folder)
    assert said.count("closed") == said.count("made") >= 4 * 3  # two workers and the rehearsal


@WAYS
def test_printed_lines_are_shown_and_never_parsed(olaf: Olaf, way: tuple[str, ...]) -> None:
    done = apart(olaf.folder, *train("Prints", *way, "--json", "--out=run"))
    assert json.loads(done.stdout)["updates"] == 8
    # What all workers print is shown once, from the first of them.
    for line in ('{"level": "info"}', '{"event": "update"}'):
        assert re.search(r"worker \d: " + re.escape(line), done.stderr)
    assert done.stderr.count("a line a step") < 10
    assert "more lines, see run/output/worker-0.txt" in done.stderr
    printed = (olaf.folder / "run" / "output" / "worker-0.txt").read_text()
    assert printed.count("a line a step") >= 200
    assert (olaf.folder / "run" / "history.jsonl").stat().st_size < 100_000


@WAYS
def test_an_environment_that_changes_the_folder_moves_no_run(
    olaf: Olaf, way: tuple[str, ...]
) -> None:
    olaf(*train("Wanders", *way))
    assert (olaf.folder / "runs" / "latest" / "report.html").exists()
    assert (olaf.folder / "runs" / "latest" / "model.npz").exists()


@WAYS
def test_an_error_of_the_users_code_is_shown_once_with_the_users_frames(
    olaf: Olaf, way: tuple[str, ...]
) -> None:
    began_s = time.monotonic()
    done = olaf(*train("StartsAndFails", *way, "--updates=off", "--json"), code=1)
    assert time.monotonic() - began_s < 20
    assert done.stderr.count('raise KeyError("no such part")') == 1
    assert "olaf/" not in done.stderr.split("KeyError", 1)[1].split("outcome")[0].split("report")[0]
    reason = json.loads(done.stdout)["reason"]
    assert "KeyError: 'no such part'" in reason
    assert "strange.py:" in reason
    if way == NETWORK:
        assert reason.startswith("the same error 3 times")


@WAYS
@pytest.mark.parametrize(
    ("name", "said"),
    [("Quits", "SystemExit: 0 ("), ("NeedsAFile", "'no-such-scene.xml' (")],
)
def test_no_error_of_the_users_code_passes_for_another(
    olaf: Olaf, way: tuple[str, ...], name: str, said: str
) -> None:
    """Not for the end of the work, and not for an error of the network."""
    done = olaf(*train(name, *way, "--updates=off", "--json"), code=1)
    reason = json.loads(done.stdout)["reason"]
    assert said in reason
    assert "strange.py:" in reason


@WAYS
def test_a_process_that_ends_in_the_middle_of_its_work_has_not_done_it(
    olaf: Olaf, way: tuple[str, ...]
) -> None:
    restarts = "--set=train.restarts=1"
    more = () if way == LOCAL else (restarts,)
    done = olaf(*train("Vanishes", *way, *more, "--updates=1000", "--json"), code=1)
    assert "exited with 0 in the middle of its work" in done.stderr
    assert json.loads(done.stdout)["outcome"] == "failed"


@WAYS
def test_what_is_printed_when_python_ends_is_no_message(olaf: Olaf, way: tuple[str, ...]) -> None:
    done = apart(olaf.folder, *train("PrintsLast", *way, "--json", "--out=run"))
    assert json.loads(done.stdout)["updates"] == 8
    done = apart(olaf.folder, "evaluate", "run", "--episodes=1", "--json")
    assert json.loads(done.stdout)["episodes"] == 1


@WAYS
def test_what_is_not_finite_is_refused_at_its_source(olaf: Olaf, way: tuple[str, ...]) -> None:
    done = olaf(*train("GoesWrong", *way, "--updates=off", "--out=run", "--json"), code=1)
    text = "environment 'strange:GoesWrong', step 376: observation[1] is nan"
    assert text in json.loads(done.stdout)["reason"]
    assert f": {text}" in done.stderr
    assert "worker " in done.stderr.split(text)[0].splitlines()[-1]
    assert np.isfinite(checkpoint.load(olaf.folder / "run" / "model.npz").parameters).all()


@pytest.mark.slow
@WAYS
def test_steps_are_signs_of_life(olaf: Olaf, way: tuple[str, ...]) -> None:
    """Two turns of 5 s in a run that waits three: alive."""
    slow = ("--set=train.stall_timeout=3s", "--set=learner.steps_per_update=250", "--updates=8")
    done = olaf(*train("Slow", *way, *slow, "--json"))
    assert json.loads(done.stdout)["updates"] == 8


def test_a_slow_environment_is_stopped_in_the_middle_of_a_turn(olaf: Olaf) -> None:
    long = "--set=learner.steps_per_update=20000"  # 400 s
    argv = train("Slow", "--local", long, "--updates=off")
    process = began(olaf.folder, *argv)
    process.send_signal(signal.SIGINT)
    began_s = time.monotonic()
    assert process.wait(60) == 130
    assert time.monotonic() - began_s < 10  # the time limit of a worker that is asked to stop


@WAYS
def test_a_step_that_never_returns_holds_up_no_stop(olaf: Olaf, way: tuple[str, ...]) -> None:
    argv = train("Hangs", *way, "--updates=off", "--set=train.stop_timeout=1s")
    process = began(olaf.folder, *argv)
    until(lambda: "hangs" in notes(olaf.folder), what="the step that hangs")
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130


def test_evaluate_and_export_keep_their_result_apart_from_what_is_printed(olaf: Olaf) -> None:
    olaf(*train("Prints", *LOCAL, "--out=run"))
    for argv in (("evaluate", "run", "--episodes=2"), ("export", "run", "--to=npz")):
        done = apart(olaf.folder, *argv, "--json")
        assert json.loads(done.stdout)["model"] == "run/model.npz"
        assert '{"level": "info"}' in done.stderr


def test_evaluate_and_export_leave_the_folder_that_an_environment_went_to(olaf: Olaf) -> None:
    olaf(*train("Wanders", *LOCAL, "--out=run"))
    apart(olaf.folder, "evaluate", "run", "--episodes=2")
    apart(olaf.folder, "export", "run", "--to=npz", "--out=policy.npz")
    assert (olaf.folder / "policy.npz").exists()


def test_evaluate_and_export_end_the_programs_of_an_environment_that_does_not(olaf: Olaf) -> None:
    olaf(*train("Starts", *LOCAL, "--out=run"))
    (olaf.folder / "notes.txt").unlink()
    apart(olaf.folder, "evaluate", "run", "--episodes=2")
    none_is_left(olaf.folder)
    apart(olaf.folder, "export", "run", "--to=npz")
    none_is_left(olaf.folder)
