"""How long a sum takes through the switch, and by gloo: predicted from the links' rates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from olaf.doctor.machine import link_of
from olaf.doctor.prediction import Job, steps
from olaf.values import numbers

BUCKET_BYTES = 25 * 2**20
"""A bucket of DDP, if the program asks for no other size."""
NAME = "25 MiB (a bucket of DDP)"


def expected(stats: Mapping[str, Any], size: int) -> str:
    """A sentence for the program's user. stats: of the first rank's connection."""
    link = link_of(stats["address"])
    if link is None or link.bits_per_s is None:
        where = "this machine's link" if link is None else f"the interface {link.name}"
        return (
            f"how long {NAME} take is not known, for the rate of {where} is not: `olaf doctor "
            f"--model-bytes 25MiB --workers {size} --link RATE` predicts it"
        )
    round_trip_s = (stats.get("round_trip_ns") or 0) / 1e9
    step = steps(
        Job(
            model_bytes=BUCKET_BYTES,
            workers=size,
            compute_s=0.0,
            link_bps=link.bits_per_s,
            switch_bps=link.bits_per_s * size,
            uplink_bps=link.bits_per_s,
            round_trip_s=round_trip_s,
        )
    )
    return (
        f"{NAME} take about {numbers.duration(step.switch_s)} through the switch and "
        f"{numbers.duration(step.ring_s)} by gloo, if the links are the limit (each rank and each "
        f"port of the switch as fast as {link.name}, {numbers.rate(link.bits_per_s / 8)})"
    )
