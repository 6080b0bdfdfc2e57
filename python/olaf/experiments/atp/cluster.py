"""What ATP's figures share: the testbed, and a training job in virtual time."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from olaf import experiments
from olaf.errors.outcome import RunError
from olaf.scenarios.sums import Job, Outcome, plain
from olaf.scenarios.sums import run as simulate

VALUES = 62
"""Values in a packet of ATP (§3.6: 248 bytes of gradient)."""
VALUE_BYTES = 4
PACKET_BYTES = VALUES * VALUE_BYTES
FRAME_BYTES = 278 + 66
"""Bytes of our packet on a link: the datagram, then UDP, IP, Ethernet, preamble and gap."""
HOPS = 4
"""Links from a worker to the server and back."""


class Testbed(experiments.Parameters):
    """The links and the aggregators (ATP §5.1, §5.4)."""

    rate_gbit: float = Field(gt=0)
    """Rate of each link."""
    aggregators: int = Field(ge=1, le=65_536)
    """Aggregators that fill the link to the server: the paper's PTA."""
    queue_kilobytes: int = Field(ge=1)
    """Bytes that may wait at a port of the switch."""
    ecn_kilobytes: int = Field(ge=1)
    """Bytes from which on a port marks packets."""
    first_packets: int = Field(ge=1)
    """The first window of a worker."""
    threshold_packets: int = Field(ge=1)
    """The window up to which it grows fast."""
    windows_over: float = Field(ge=1)
    """What aggregators, queues and windows are divided by."""

    def share_of(self, number: float) -> int:
        """A number of packets or bytes, divided."""
        return max(1, round(number / self.windows_over))

    def delay_ns(self, scale: float = 1) -> float:
        """Delay of a link with which just as many packets in a round trip fill the link."""
        frame_ns = FRAME_BYTES * 8 / self.rate_gbit * scale
        return self.share_of(self.aggregators) * frame_ns / HOPS

    def network(self, hosts: int, scale: float = 1) -> dict[str, Any]:
        """One rack, with the rate divided by ``scale``."""
        return {
            "racks": [hosts],
            "rate_bps": round(self.rate_gbit * 1e9 / scale),
            "delay_ns": round(self.delay_ns(scale)),
            "queue_bytes": self.share_of(self.queue_kilobytes * 1000),
            "ecn_bytes": self.share_of(self.ecn_kilobytes * 1000),
        }

    def protocol(self, allocation: str, job: int, jobs: int) -> dict[str, Any]:
        """The options of a job's workers for one way to allocate aggregators.

        The largest window of each job is its part of the aggregators that fill the link. With a
        static part it is that part, and full at once.
        """
        static = {"parts": jobs, "part": job, "congestion": "off"}
        return {
            "allocation": allocation,
            "first_packets": self.share_of(self.first_packets),
            "threshold_packets": self.share_of(self.threshold_packets),
            "most_packets": self.share_of(self.aggregators / jobs),
            **(static if allocation == "static" else {}),
        }


class Computation(experiments.Parameters):
    """The computation of a worker of VGG16, which follows from the paper."""

    images: int = Field(ge=1)
    """Images of a worker in an iteration."""
    images_per_s: float = Field(gt=0)
    """The paper's speed of a worker of VGG16 whose job runs beside another one."""
    beside_another: float = Field(gt=0, le=1)
    """That speed as a share of the speed alone."""
    overlap: float = Field(ge=0, le=1)
    """Share of the computation in which tensors become ready."""
    tensors: int = Field(ge=1)
    """Tensors of a gradient."""
    compute_spread: float = Field(ge=0)
    """Standard deviation of the time to compute, as a share of its mean."""

    def compute_ms(self) -> float:
        """The time of an iteration of a job alone, which computes almost all the time."""
        return self.images / (self.images_per_s / self.beside_another) * 1e3

    def work(self, compute_ms: float) -> dict[str, Any]:
        """The keys of a job that computes that long in an iteration."""
        return {
            "tensors": self.tensors,
            "compute_ns": round(compute_ms * 1e6),
            "compute_spread": self.compute_spread,
            "overlap": self.overlap,
        }


class Training(Testbed, Computation):
    """A job that trains (ATP §5.1), scaled."""

    megabytes: float = Field(gt=0)
    """Bytes of the gradient, in millions."""
    packets: int = Field(ge=1)
    """Packets of a scaled gradient."""

    def scale(self) -> float:
        """What bytes and rate are divided by."""
        return self.megabytes * 1e6 / (self.packets * PACKET_BYTES)

    def job(self, name: str, iterations: int) -> dict[str, Any]:
        """A job of the model; its workers and options are the caller's."""
        return {
            "name": name,
            "engine": "atp",
            "model_bytes": self.packets * PACKET_BYTES,
            "iterations": iterations,
            **self.work(self.compute_ms()),
        }


def offsets_ns(seed: int, jobs: int, within_ns: float) -> list[int]:
    """When each job begins, drawn by the seed."""
    draw = random.Random(seed)
    return [round(draw.random() * within_ns) for _ in range(jobs)]


def run(
    network: Mapping[str, Any],
    jobs: Sequence[Mapping[str, Any]],
    seed: int,
    *,
    aggregators: int = 16_384,
    server: Mapping[str, Any] | None = None,
) -> Outcome:
    """Run jobs over a network. Raises RunError where one fails."""
    switch = {
        "atp": {"aggregators": aggregators, "jobs": 64},
        "atp_server": {"jobs": max(8, len(jobs)), **(server or {})},
    }
    outcome = simulate(plain({"network": network, "switch": switch, "jobs": list(jobs)}), seed)
    for job in outcome.jobs:
        if job.failed is not None:
            raise RunError(f"job {job.name}: {job.failed}")
    return outcome


def iteration_ns(job: Job, warm_up: int) -> float:
    """Mean time of the iterations after the first ones."""
    kept = job.iterations[warm_up:]
    return (kept[-1].end_ns - kept[0].begin_ns) / len(kept)
