"""The processes beside the workers that run the user's code: ``python -m olaf.jobs.attached``.

`olaf train` starts them. The first line of stdin is their configuration, see `olaf.lines`.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from olaf.lines import Control, Reporter, apart, orders_apart
from olaf.outcome import failure_of

Run = Callable[[Mapping[str, Any], Reporter, Control], None]


def command(role: str) -> Sequence[str]:
    """The argv that starts a role of this module."""
    return [sys.executable, "-m", "olaf.jobs.attached", role]


def _rehearsal(told: Mapping[str, Any], reporter: Reporter, control: Control) -> None:
    from olaf.jobs.rehearsing import run_rehearsal

    run_rehearsal(told, reporter)


def _alone(told: Mapping[str, Any], reporter: Reporter, control: Control) -> None:
    from olaf.jobs.learning_alone import run_alone

    run_alone(told, reporter, control)


ROLES: Mapping[str, Run] = {"rehearsal": _rehearsal, "alone": _alone}


def main(argv: Sequence[str]) -> int:
    """Run the role that ``argv`` names to its end; return the exit code."""
    return serve(ROLES.get(argv[0]) if len(argv) == 1 else None)


def serve(run: Run | None) -> int:
    """Read the configuration from the first line, run a role to its end; return the exit code."""
    from olaf.rl import process_environment

    for name, value in process_environment().items():
        os.environ.setdefault(name, value)
    control = Control().catch_signals()
    faulthandler.enable()
    orders = orders_apart()
    told = json.loads(orders.readline() or "null")
    control.watch(orders)
    if told is None or run is None:
        print("this process is started by `olaf train`", file=sys.stderr)
        return 2
    try:
        with contextlib.closing(control), apart() as messages:
            run(told, Reporter(as_json=True, out=messages, human=str), control)
    except Exception as error:
        failure = failure_of(error)
        if failure is None:
            raise
        print(f"olaf: {failure}", file=sys.stderr)
        return int(failure.code)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
