"""Switches and workers, each in a network namespace of its own, joined by shaped links.

Each worker has one `veth` to the switch's namespace. There a bridge joins them, and the switch
listens on the bridge's address. So gloo's workers reach each other over the same links, and each
port of the switch has the full rate, as a port of a hardware switch has. In a tree each lower
switch has one more `veth`, to the bridge of the upper switch.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

SUBNET = "10.77.0"
BRIDGE = "br0"
UPLINK = "up0"
"""The worker's end of its link. Gloo takes the interface of this name."""


@dataclass(frozen=True)
class Link:
    """What every link is like, in both directions."""

    rate_bits_per_s: float
    burst_bytes: int
    mtu: int


@dataclass(frozen=True)
class Place:
    """Where a process runs: a namespace (None: the machine's own), its address, its interface."""

    namespace: str | None
    address: str
    interface: str

    def command(self, *argv: str) -> list[str]:
        """The command that runs argv there."""
        return [*(_into(self.namespace) if self.namespace else []), *argv]


@dataclass(frozen=True)
class Network:
    """The places of the switches and of the workers."""

    switches: list[Place]
    """The uppermost first. All others send their sums to it."""
    workers: list[Place]
    switch_of: list[int]
    """Which of the switches each worker is at."""


def allowed() -> str | None:
    """None if this user may make namespaces and shape links; otherwise the reason."""
    name = f"olaf-{os.getpid()}-try"
    try:
        _run("ip", "netns", "add", name)
        try:
            _run(*_into(name), "ip", "link", "add", "name", "here", "type", "veth")
            _shape(name, "here", Link(1e9, 10_000, 1500))
        finally:
            _run("ip", "netns", "del", name)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", "") or str(error)
        return str(said).strip().splitlines()[-1]
    return None


def loopback(workers: int) -> Network:
    """Everything on the loopback of this machine, unshaped."""
    place = Place(None, "127.0.0.1", "lo")
    return Network([place], [place] * workers, [0] * workers)


@contextlib.contextmanager
def shaped(workers: int, link: Link, *, leaves: int = 0) -> Iterator[Network]:
    """Namespaces with shaped links. They are gone at the end, and the links with them.

    leaves: lower switches, with an equal share of the workers each; 0: one switch has them all.
    """
    prefix = f"olaf-{os.getpid()}"
    switches = [
        Place(f"{prefix}-s{at}", f"{SUBNET}.{254 - at}", BRIDGE) for at in range(1 + leaves)
    ]
    places = [Place(f"{prefix}-{at}", f"{SUBNET}.{at + 1}", UPLINK) for at in range(workers)]
    switch_of = [1 + at * leaves // workers if leaves else 0 for at in range(workers)]
    made: list[str] = []
    try:
        for place in (*switches, *places):
            _run("ip", "netns", "add", str(place.namespace))
            made.append(str(place.namespace))
            _in(place, "ip", "link", "set", "lo", "up")
        for switch in switches:
            _in(switch, "ip", "link", "add", BRIDGE, "type", "bridge")
            _in(switch, "ip", "link", "set", BRIDGE, "mtu", str(link.mtu), "up")
            _in(switch, "ip", "address", "add", f"{switch.address}/24", "dev", BRIDGE)
        for at, switch in enumerate(switches[1:]):
            _join(switches[0], f"leaf{at}", switch, link)
            _in(switch, "ip", "link", "set", UPLINK, "master", BRIDGE)
        for at, place in enumerate(places):
            _join(switches[switch_of[at]], f"port{at}", place, link)
            _in(place, "ip", "address", "add", f"{place.address}/24", "dev", UPLINK)
        yield Network(switches, places, switch_of)
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def _join(switch: Place, port: str, lower: Place, link: Link) -> None:
    """Lay a link from a port of a switch to a worker, or to a lower switch."""
    peer = ("peer", "name", UPLINK, "netns", str(lower.namespace))
    _in(switch, "ip", "link", "add", port, "mtu", str(link.mtu), "type", "veth", *peer)
    _in(switch, "ip", "link", "set", port, "master", BRIDGE, "up")
    _in(lower, "ip", "link", "set", UPLINK, "mtu", str(link.mtu), "up")
    _shape(str(switch.namespace), port, link)
    _shape(str(lower.namespace), UPLINK, link)


def _shape(namespace: str, interface: str, link: Link) -> None:
    tc = (*_into(namespace), "tc")
    _run(*tc, "qdisc", "add", "dev", interface, "root", "handle", "1:", "htb", "default", "1")
    # quantum: otherwise tc warns, because it would derive one from the rate.
    _run(
        *(*tc, "class", "add", "dev", interface, "parent", "1:", "classid", "1:1", "htb"),
        *("rate", f"{link.rate_bits_per_s:.0f}bit", "ceil", f"{link.rate_bits_per_s:.0f}bit"),
        *("burst", str(link.burst_bytes), "cburst", str(link.burst_bytes), "quantum", "60000"),
    )


def _into(namespace: str) -> list[str]:
    return ["ip", "netns", "exec", namespace]


def _in(place: Place, *argv: str) -> None:
    _run(*place.command(*argv))


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True, text=True)
