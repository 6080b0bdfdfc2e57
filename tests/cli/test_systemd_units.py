"""The units in deploy/ start as systemd would start them, with their configuration and key."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from olaf import _olaf

DEPLOY = Path(__file__).parents[2] / "deploy"
ROLES = {
    "server": "olaf-server.service",
    "switch": "olaf-switch.service",
    "worker": "olaf-worker@.service",
}
KEYS = {"server": "job.key", "switch": "switch.key", "worker": "job.key"}
"""The key file of /etc/olaf that each role is given: see deploy/README.md."""


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def lines(unit: str, key: str) -> list[str]:
    """The values of a key of a unit."""
    text = (DEPLOY / unit).read_text(encoding="utf-8")
    return re.findall(rf"^{key}=(.*)$", text, re.MULTILINE)


@dataclass
class Machine:
    """A folder that stands for /etc/olaf, the credentials and the state of units."""

    folder: Path
    stack: ExitStack

    def __post_init__(self) -> None:
        _olaf.new_key(self.folder / "job.key")
        _olaf.switch_key(self.folder / "job.key", self.folder / "switch.key")

    def start(self, role: str, *more: str, key: bool = True) -> subprocess.Popen[str]:
        """The process of a unit. ``more``: further options; ``key``: whether it gets its key."""
        unit = ROLES[role]
        credentials = self.folder / f"credentials-{role}"
        credentials.mkdir()
        for line in lines(unit, "LoadCredential"):
            name, _, source = line.partition(":")
            copy = credentials / name
            copy.write_bytes((self.folder / Path(source).name).read_bytes())
            copy.chmod(0o400)
        credentials.chmod(0o500)
        self.stack.callback(credentials.chmod, 0o700)
        (command,) = lines(unit, "ExecStart")
        program, *options = shlex.split(self._here(command))
        assert program == "/opt/olaf/bin/olaf"
        given = shlex.split(" ".join(lines(unit, "Environment")).replace("%d", str(credentials)))
        environment = dict(pair.split("=", 1) for pair in given)
        if not key:
            del environment["OLAF_KEY_FILE"]
        process = subprocess.Popen(
            [sys.executable, "-m", "olaf", *options, *more],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.stack.callback(process.communicate)
        self.stack.callback(process.kill)
        return process

    def _here(self, command: str) -> str:
        command = command.replace("%i", "3").replace("/etc/olaf", str(DEPLOY))
        return command.replace("/var/lib/olaf", str(self.folder))


def address(process: subprocess.Popen[str]) -> str:
    """Where a role listens."""
    assert process.stdout is not None
    told = json.loads(process.stdout.readline())
    assert told["event"] == "listening"
    return str(told["address"])


@pytest.mark.parametrize("role", ROLES)
def test_a_unit_gets_the_key_that_its_role_needs(role: str) -> None:
    (credential,) = lines(ROLES[role], "LoadCredential")
    name, _, source = credential.partition(":")
    assert source == f"/etc/olaf/{KEYS[role]}"
    assert f"OLAF_KEY_FILE=%d/{name}" in lines(ROLES[role], "Environment")


def test_a_server_that_starts_again_goes_on_from_its_checkpoint() -> None:
    (command,) = lines(ROLES["server"], "ExecStart")
    words = shlex.split(command)
    file = Path(words[words.index("--checkpoint") + 1])
    (state,) = lines(ROLES["server"], "StateDirectory")
    assert file.parent == Path("/var/lib") / state, "the unit may write there"


def test_the_units_train_behind_their_key_on_all_addresses(
    tmp_path: Path, stack: ExitStack
) -> None:
    machine = Machine(tmp_path, stack)
    server = address(machine.start("server", "--listen", "0.0.0.0:0"))
    assert server.startswith("0.0.0.0:"), "beyond loopback: the key was found"
    upstream = server.replace("0.0.0.0", "127.0.0.1")
    switch = address(machine.start("switch", "--listen", "0.0.0.0:0", "--upstream", upstream))
    worker = machine.start(
        "worker",
        *("--switch", switch.replace("0.0.0.0", "127.0.0.1"), "--env", "CartPole-v1"),
        *("--updates", "1", "--set", "learner.environments=2"),
    )
    said, trouble = worker.communicate(timeout=120)
    assert worker.returncode == 0, trouble
    events = [json.loads(line) for line in said.splitlines()]
    joined = next(event for event in events if event["event"] == "joined")
    assert joined["worker"] == 3, "the instance is the worker's id"
    last = events[-1]
    assert last["event"] == "stopped"
    assert last["stats"]["keys"]["opened"] > 0
    assert last["stats"]["signatures"]["checks"], "a worker has the job's key, not a switch's"


@pytest.mark.parametrize("role", ["server", "switch"])
def test_without_its_credential_a_unit_ends_for_good(
    role: str, tmp_path: Path, stack: ExitStack
) -> None:
    process = Machine(tmp_path, stack).start(role, key=False)
    _, trouble = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "has no key" in trouble
    (prevented,) = lines(ROLES[role], "RestartPreventExitStatus")
    assert "2" in prevented.split()
