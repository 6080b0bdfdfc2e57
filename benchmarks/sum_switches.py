"""The switches of `benchmarks/sum.py`, each a process at its place."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sum_network import Network

PROGRAM = Path(__file__).with_name("sum_switch.py")


@dataclass
class Switches:
    """Switches that run, or ran."""

    addresses: list[str] = field(default_factory=list)
    counted: list[dict[str, Any]] = field(default_factory=list)
    """What each of them counted; known at the end."""


@contextlib.contextmanager
def started(network: Network, config: dict[str, Any], *, show: bool) -> Iterator[Switches]:
    """Switches with one engine: the uppermost first, then those below it.

    config: keys of the switch's JSON, with the list `engines`. show: print what the switches
    counted, at the end.
    """
    switches = Switches()
    processes: list[subprocess.Popen[str]] = []
    try:
        for place in network.switches:
            # Only the workers of the benchmark reach these addresses, so no key is needed.
            own: dict[str, Any] = {"listen": f"{place.address}:0", "insecure": True, **config}
            if switches.addresses:
                engine = own["engines"][0]
                own[engine] = own.get(engine, {}) | {"upstream": switches.addresses[0]}
            process = subprocess.Popen(
                place.command(sys.executable, str(PROGRAM), json.dumps(own)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            processes.append(process)
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            switches.addresses.append(address or sys.exit("the switch ended without listening"))
        yield switches
    finally:
        for process in processes:
            out, _ = process.communicate(timeout=10)
            if show:
                print(out.strip(), file=sys.stderr)
            if out.strip():
                switches.counted.append(json.loads(out)[config["engines"][0]])
