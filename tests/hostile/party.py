"""A switch or a server as a process: `python party.py switch|server JSON`.

The first line out is its address. Each line in (`stats`, `events`, `addresses` of its engines, or
`metrics`, the address that serves them) is answered by a line of JSON.
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
        print(answer(role, line.strip()), flush=True)


def answer(role: _olaf.Switch | _olaf.Server, wanted: str) -> str:
    """What the line asks for, as JSON."""
    if wanted == "stats":
        return role.stats()
    if wanted == "events":
        return json.dumps([*map(json.loads, role.events())])
    if wanted == "metrics":
        return json.dumps(role.metrics_address)
    assert isinstance(role, _olaf.Switch), "a server has one address"
    return json.dumps(role.addresses)


if __name__ == "__main__":
    main()
