"""The protocols in which a worker sums through a switch (``connect_sum(.., protocol=..)``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Protocol:
    """What a worker must know of a protocol before it connects."""

    engine: str = "reduce"
    """The engine of `olaf switch --engines` that speaks it."""
    beside: tuple[str, ...] = ()
    """Further engines that it needs somewhere in the network."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of `olaf.connect_sum` that it sets; the caller may change single values."""
    sums_floats: bool = False
    """It has nothing but sums and means of float32, of a fixed number of workers."""
    broadcasts: bool = True
    """A root can send its array to all."""
    largest_job: int = 2**32 - 1
    """Largest job number."""
    own: frozenset[str] = frozenset()
    """Options of `olaf.connect_sum` that it alone has."""

    def configuration(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The configuration of a connection, as the core takes it."""
        own = {key: value for key, value in given.items() if key in self.own}
        shared = {key: value for key, value in given.items() if key not in self.own}
        whole = {"protocol": self.engine, **self.options, **shared}
        return whole | ({self.engine: own} if own else {})


PROTOCOLS: dict[str, Protocol] = {
    "reduce": Protocol(),
    # ATP §4 and §5.2.3: 32 values in a packet, i32 by one scale, a timer of 1 ms alone. The window
    # is SwitchML's own choice for 10 Gbit/s. differs: ATP's packets have 180 bytes, and ours 234,
    # for our header is longer.
    "switchml-atp": Protocol(
        options={
            "block_bytes": 128,
            "window_blocks": 128,
            "scale": 1e8,
            "recovery": "timer",
            "timer_ms": 1,
            "ecn": False,
        }
    ),
    # Trio-ML §6.1: 256 values in a packet, a pool of 512, nothing is sent again.
    "switchml-trio": Protocol(
        options={
            "block_bytes": 1024,
            "window_blocks": 512,
            "scale": 1e8,
            "recovery": "off",
            "ecn": False,
        }
    ),
    "iswitch": Protocol(
        engine="iswitch", sums_floats=True, own=frozenset(("packet_floats", "threshold"))
    ),
    "trio": Protocol(
        engine="trio",
        sums_floats=True,
        broadcasts=False,
        largest_job=255,
        own=frozenset(("gradients", "window", "non_finite")),
    ),
    "atp": Protocol(
        engine="atp",
        beside=("atp_server",),
        sums_floats=True,
        broadcasts=False,
        largest_job=0xFFFF,
        own=frozenset(
            (
                *("values", "servers", "first_packets", "threshold_packets", "most_packets"),
                *("time_out_ms", "overflow", "factor", "allocation", "parts", "part"),
                "congestion",
            )
        ),
    ),
}
"""By name. SwitchML is the baseline of two papers."""


def protocol(name: str) -> Protocol:
    """The protocol of that name. Raises ValueError."""
    if name not in PROTOCOLS:
        raise ValueError(f"protocol = {name!r}: must be one of {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name]
