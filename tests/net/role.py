"""A switch or a server as a process that can be killed: `python role.py switch|server JSON`."""

from __future__ import annotations

import sys
import time

from olaf import _olaf


def main() -> None:
    """Run until killed; the first line out is the address."""
    kind, config = sys.argv[1:]
    role = _olaf.Switch(config) if kind == "switch" else _olaf.Server(config)
    role.start()
    print(role.address, flush=True)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
