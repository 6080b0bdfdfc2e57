"""What the tests of run folders share: the command in a folder of its own, and small runs."""

import contextlib
import io
import json
import os
import signal
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from commands import olaf

from olaf.cli.main import run


@dataclass
class Done:
    """What a command left on its outputs."""

    stdout: str
    stderr: str


class Olaf:
    """The command in a folder of its own: in this process, which spares the imports."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *argv: str, code: int = 0, **environment: str) -> Done:
        out, err = io.StringIO(), io.StringIO()
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        before = {name: os.environ.get(name) for name in environment}
        try:
            os.environ.update(environment)
            with contextlib.chdir(self.folder), redirect_stdout(out), redirect_stderr(err):
                given = run(argv)
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
            for number, handler in handlers.items():
                signal.signal(number, handler)
        assert given == code, (given, out.getvalue(), err.getvalue())
        return Done(out.getvalue(), err.getvalue())

    def json(self, *argv: str, code: int = 0, **environment: str) -> Any:
        """What the command prints with --json."""
        return json.loads(self(*argv, "--json", code=code, **environment).stdout)


def apart(folder: Path, *argv: str, code: int = 0, **environment: str) -> Done:
    """Run the command in a process of its own."""
    done = olaf(*argv, folder=folder, environment={**os.environ, **environment}, timeout_s=110)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return Done(done.stdout, done.stderr)


LOCAL = (
    "train",
    "--local",
    "--env=CartPole-v1",
    "--until-reward=off",
    "--set=learner.environments=2",
    "--set=learner.steps_per_update=200",
    "--set=worker.push_every=turn",
    "--set=worker.push_every=turn",
    "--set=train.every_s=0.05",
)


def observations(count: int, size: int) -> "np.ndarray[Any, np.dtype[np.float32]]":
    return np.random.default_rng(5).standard_normal((count, size), np.float32)
