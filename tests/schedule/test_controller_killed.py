"""Killed between any two steps, nothing that was accepted is lost, and nothing is done twice."""

import json
import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest
from services import SPEC

from olaf.schedule import controller as module
from olaf.schedule.controller import Controller, RefusedError
from olaf.schedule.store import Store

STEPS = ("applied", "written", "told", "answered", "restored", "compacted")

Command = dict[str, Any]


def script(seed: int, length: int = 25) -> list[Command]:
    """Commands that hang together, most of them."""
    rng = random.Random(seed)
    submitted, commands = 0, []
    for number in range(length):
        job = rng.randint(1, max(1, submitted))
        kind = rng.choice(
            ["submit"] * 4
            + ["acquired"] * 3
            + ["released", "finish", "finish", "fail", "cancel"]
            + ["drain_switch", "undrain_switch", "drain_host", "undrain_host", "host_lost"]
        )
        match kind:
            case "submit":
                submitted += 1
                commands.append({"do": kind, "name": f"j{number}", "hosts": rng.randint(1, 8)})
            case "acquired" | "released":
                commands.append({"do": kind, "job": job, "generation": 1})
            case "fail":
                commands.append({"do": kind, "job": job, "reason": "dead"})
            case "finish" | "cancel":
                commands.append({"do": kind, "job": job})
            case "drain_switch" | "undrain_switch":
                commands.append({"do": kind, "switch": f"agg0.{rng.randint(0, 1)}"})
            case _:
                commands.append({"do": kind, "host": f"h{rng.randint(0, 15)}"})
    return commands


def tell(controller: Controller, command: Command, key: str) -> str:
    """Tell it, and say what came of it: the job's number, ``done`` or ``refused``."""
    try:
        if command["do"] == "submit":
            request = {"name": command["name"], "hosts": command["hosts"], "units": 1}
            job = controller.submit(request, 0, key).result(30).job
            assert job is not None
            return str(job["job"])
        controller.command(command).result(30)
    except RefusedError:
        return "refused"
    return "done"


def state(file: Path) -> Any:
    """All that the store's controller knows."""
    controller = Controller(Store(file, None))
    found: str = controller.read(lambda core: core.snapshot()).result(30)
    controller.close()
    return forgetting_times(json.loads(found))


def forgetting_times(found: Any) -> Any:
    """When is the one thing that differs."""
    for job in found["jobs"].values():
        for when in ("submitted_ms", "started_ms", "ended_ms"):
            job[when] = job[when] is not None
    return found


def lived(
    file: Path, commands: list[Command], kill: tuple[str, int] | None = None, begin: int = 0
) -> list[str]:
    """A process that works through the commands; what it said before it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        code = 1
        try:
            _live(file, commands, begin, kill, writing)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as said:
        answers = said.read().splitlines()
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0
    return answers


def _live(
    file: Path, commands: list[Command], begin: int, kill: tuple[str, int] | None, writing: int
) -> None:
    left = 0 if kill is None else kill[1]

    def at(step: str) -> None:
        nonlocal left
        if kill is not None and step == kill[0]:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    controller = Controller(Store(file, SPEC), at=at)
    for number, command in enumerate(commands[begin:], start=begin):
        answer = tell(controller, command, key=f"key-{number}")
        os.write(writing, f"{answer}\n".encode())
    controller.close()


@pytest.fixture(autouse=True)
def _snapshots_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SNAPSHOT_EVERY", 4)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("seed", range(3))
def test_killed_at_every_step(tmp_path: Path, step: str, seed: int) -> None:
    commands = script(seed)
    uninterrupted_run = lived(tmp_path / "uninterrupted_run.db", commands)
    assert len(uninterrupted_run) == len(commands)
    file, kills = tmp_path / "killed.db", 0
    answers: list[str] = []
    for nth in (1, 2, 3, 5):
        # A process is killed; the next asks again for what had no answer, under the same key.
        answers += lived(file, commands, (step, nth), len(answers))
        kills += len(answers) < len(commands)
    answers += lived(file, commands, None, len(answers))
    assert len(answers) == len(commands)
    assert kills > 0
    for number, (mine, uninterrupted) in enumerate(zip(answers, uninterrupted_run, strict=True)):
        # What was asked twice may have been done the first time: refused then, for it is done.
        if mine != uninterrupted:
            assert (mine, uninterrupted) == ("refused", "done"), commands[number]
    assert state(file) == state(tmp_path / "uninterrupted_run.db")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20, 26))
def test_killed_at_any_time(tmp_path: Path, seed: int) -> None:
    commands, rng = script(seed, 60), random.Random(seed)
    uninterrupted_run = lived(tmp_path / "uninterrupted_run.db", commands)
    file = tmp_path / "killed.db"
    answers: list[str] = []
    while len(answers) < len(commands):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            try:
                _live(file, commands, len(answers), None, writing)
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as said:
            # After this number of answers, at any point: in a transaction, in a snapshot.
            for _ in range(rng.randint(1, 12)):
                if line := said.readline():
                    answers.append(line.strip())
            os.kill(child, signal.SIGKILL)
            answers += [line.strip() for line in said if line.endswith("\n")]
        os.waitpid(child, 0)
    for mine, uninterrupted in zip(answers, uninterrupted_run, strict=True):
        assert mine == uninterrupted or (mine, uninterrupted) == ("refused", "done")
    assert state(file) == state(tmp_path / "uninterrupted_run.db")
