"""A switch and its workers, each in a network namespace of its own, joined by shaped links.

Each worker has one `veth` to the switch's namespace. There a bridge joins them, and the switch
listens on the bridge's address. So gloo's workers reach each other over the same links, and each
port of the switch has the full rate, as a port of a hardware switch has.
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
    """The places of the switch and of the workers."""

    switch: Place
    workers: list[Place]


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
    return Network(place, [place] * workers)


@contextlib.contextmanager
def shaped(workers: int, link: Link) -> Iterator[Network]:
    """Namespaces with shaped links. They are gone at the end, and the links with them."""
    prefix = f"olaf-{os.getpid()}"
    switch = Place(f"{prefix}-s", f"{SUBNET}.254", BRIDGE)
    places = [Place(f"{prefix}-{at}", f"{SUBNET}.{at + 1}", UPLINK) for at in range(workers)]
    made: list[str] = []
    try:
        for place in (switch, *places):
            _run("ip", "netns", "add", str(place.namespace))
            made.append(str(place.namespace))
            _in(place, "ip", "link", "set", "lo", "up")
        _in(switch, "ip", "link", "add", BRIDGE, "type", "bridge")
        _in(switch, "ip", "link", "set", BRIDGE, "mtu", str(link.mtu), "up")
        _in(switch, "ip", "address", "add", f"{switch.address}/24", "dev", BRIDGE)
        for at, place in enumerate(places):
            _join(switch, f"port{at}", place, link)
        yield Network(switch, places)
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def _join(switch: Place, port: str, worker: Place, link: Link) -> None:
    peer = ("peer", "name", UPLINK, "netns", str(worker.namespace))
    _in(switch, "ip", "link", "add", port, "mtu", str(link.mtu), "type", "veth", *peer)
    _in(switch, "ip", "link", "set", port, "master", BRIDGE, "up")
    _in(worker, "ip", "link", "set", UPLINK, "mtu", str(link.mtu), "up")
    _in(worker, "ip", "address", "add", f"{worker.address}/24", "dev", UPLINK)
    _shape(str(switch.namespace), port, link)
    _shape(str(worker.namespace), UPLINK, link)


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
