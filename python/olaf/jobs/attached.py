"""The processes beside the workers that run the user's code: ``python -m olaf.jobs.attached``.

`olaf train` starts them. The first line of stdin is their configuration: see
`olaf.processes.lines`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from olaf.processes.lines import Control, Reporter
from olaf.processes.serving import Role, run_attached


def command(role: str) -> Sequence[str]:
    """The argv that starts a role of this module."""
    return [sys.executable, "-m", "olaf.jobs.attached", role]


def _rehearsal(told: Mapping[str, Any], reporter: Reporter, control: Control) -> None:
    from olaf.jobs.rehearsing import run_rehearsal

    run_rehearsal(told, reporter)


def _alone(told: Mapping[str, Any], reporter: Reporter, control: Control) -> None:
    from olaf.jobs.learning_alone import run_alone

    run_alone(told, reporter, control)


ROLES: Mapping[str, Role] = {"rehearsal": _rehearsal, "alone": _alone}


def main(argv: Sequence[str]) -> int:
    """Run the role that ``argv`` names to its end; return the exit code."""
    return run(ROLES.get(argv[0]) if len(argv) == 1 else None)


def run(role: Role | None) -> int:
    """Run a role with a learner in it to its end; return the exit code."""
    from olaf.rl import process_environment

    for name, value in process_environment().items():
        os.environ.setdefault(name, value)
    return run_attached(role)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
