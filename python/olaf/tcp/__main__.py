"""The relay's process, as `olaf train --transport tcp` starts it: ``python -m olaf.tcp``."""

from __future__ import annotations

import json
import sys

from olaf.lines import Control, Reporter
from olaf.outcome import failure_of
from olaf.tcp.roles import run_relay


def main() -> int:
    """Read the configuration from the first line, serve until told to stop; return exit code."""
    control = Control().catch_signals()
    told = json.loads(sys.stdin.readline() or "null")
    if told is None:
        print("olaf.tcp is started by `olaf train --transport tcp`", file=sys.stderr)
        return 2
    control.watch(sys.stdin)
    try:
        run_relay(told, Reporter(as_json=True, human=str), control)
    except Exception as error:
        failure = failure_of(error)
        if failure is None:
            raise
        print(f"olaf: {failure}", file=sys.stderr)
        return int(failure.code)
    return 0


if __name__ == "__main__":
    sys.exit(main())
