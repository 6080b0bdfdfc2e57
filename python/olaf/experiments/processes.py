"""A switch and a server as separate processes, for figures that measure them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from olaf.errors.outcome import Exit, RunError
from olaf.jobs.supervisor import Ended, Printed, Program, Said, Supervisor
from olaf.jobs.training import olaf_command
from olaf.rl import process_environment

START_TIMEOUT_S = 30.0


class Roles:
    """Processes of ``olaf server`` and ``olaf switch`` on separate ports, until the block ends.

    ``with Roles() as roles: server = roles.start("server", listen="127.0.0.1:0")``
    """

    def __init__(self, command: Callable[[str], Sequence[str]] = olaf_command) -> None:
        self._command = command
        self._supervisor = Supervisor(restarts=0)

    def __enter__(self) -> Self:
        self._supervisor.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._supervisor.__exit__(*error)

    def start(self, role: str, **core: Any) -> str:
        """Start a role with keys of its core's configuration; return the address it listens on.

        Raises RunError, which names the role, if it ends or does not listen within 30 s.
        """
        told: Mapping[str, Any] = {
            "core": json.dumps({"listen": "127.0.0.1:0", **core}),
            "every_s": 3600.0,
            **({"model_file": None, "job": 1} if role == "server" else {}),
        }
        command = self._command(role)
        program = Program(role, command, json.dumps(told), process_environment())
        self._supervisor.start(program)
        deadline = time.monotonic() + START_TIMEOUT_S
        said = ""
        while time.monotonic() < deadline:
            for occurrence in self._supervisor.poll(0.1):
                if isinstance(occurrence, Said) and occurrence.message["event"] == "listening":
                    return str(occurrence.message["address"])
                if isinstance(occurrence, Printed):
                    said = occurrence.text
                if isinstance(occurrence, Ended):
                    raise RunError(f"the {role} could not start: {said or occurrence.how}")
        raise RunError(f"the {role} did not listen within {START_TIMEOUT_S:g} s", Exit.UNREACHABLE)

    def statistics(self, role: str) -> dict[str, Any]:
        """A role's counters so far, as in ``docs/reference/statistics.md``.

        Raises RunError, which names the role, if it has ended or does not answer within 30 s.
        """
        self._supervisor.tell(role, "stats")
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            for occurrence in self._supervisor.poll(0.1):
                if occurrence.name != role:
                    continue
                if isinstance(occurrence, Said) and occurrence.message["event"] == "stats":
                    stats: dict[str, Any] = occurrence.message["stats"]
                    return stats
                if isinstance(occurrence, Ended):
                    raise RunError(f"the {role} {occurrence.how} before it sent its counters")
        raise RunError(f"the {role} sent nothing within {START_TIMEOUT_S:g} s", Exit.UNREACHABLE)
