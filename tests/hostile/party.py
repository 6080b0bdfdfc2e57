"""A switch or a server as a process: `python party.py switch|server JSON`.

The first line out is its address. Each line in, `stats` or `events`, is answered by a line of JSON.
"""

from __future__ import annotations

import json
import sys

from olaf import _olaf


def main() -> None:
    """Answer until the input ends."""
    kind, config = sys.argv[1:]
    role = _olaf.Switch(config) if kind == "switch" else _olaf.Server(config)
    role.start()
    print(role.address, flush=True)
    for line in sys.stdin:
        wanted = line.strip()
        answer = (
            role.stats() if wanted == "stats" else json.dumps([*map(json.loads, role.events())])
        )
        print(answer, flush=True)


if __name__ == "__main__":
    main()
