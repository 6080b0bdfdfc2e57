"""What aggregation gains for a model and these links, against a ring and a parameter server.

The prediction counts bytes on the slowest link and round trips. It has no computation of ends and
switches, no loss recovery and no overlap of computation with communication.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

WORTH = 0.05
"""A step that is shorter by less than this share is called no gain."""

Answer = Literal["nothing", "gains"]


@dataclass(frozen=True)
class Job:
    """A training job and its links."""

    model_bytes: int
    workers: int
    compute_s: float
    """Seconds of computation between two exchanges."""
    link_bps: float
    """Bits a second of a worker's link."""
    switch_bps: float
    """Bits a second into the switch, in each direction, of all its links together.

    Example: a switch program on a machine with one port has the rate of that port. A switch with a
    port for each worker has the sum of the ports.
    """
    uplink_bps: float
    """Bits a second from the switch to the parameter server, or into a server without a switch."""
    round_trip_s: float


@dataclass(frozen=True)
class Step:
    """Seconds of one synchronous step: computation, and the exchange after it."""

    switch_s: float
    ring_s: float
    server_s: float


@dataclass(frozen=True)
class Prediction:
    """What to expect."""

    step: Step
    synchronous: Answer
    synchronous_gain: float
    """Step of the better of ring and server, divided by that with the switch, minus 1."""
    synchronous_why: str
    load: float
    """What asynchronous workers push, as a multiple of the uplink."""
    asynchronous: Answer
    lost_by_fifo: float
    """Share of the updates that a queue without merging loses at this load."""
    asynchronous_why: str


def predict(job: Job) -> Prediction:
    """The gain of a switch that sums (``olaf.connect_sum``), and of one that merges updates."""
    step = steps(job)
    best = min(step.ring_s, step.server_s)
    # One worker that computes for no time has a step of no length.
    gain = best / step.switch_s - 1 if step.switch_s > 0 else 0.0
    answer: Answer = "gains" if gain >= WORTH else "nothing"
    load = offered(job)
    lost = max(0.0, 1 - 1 / load) if load > 0 else 0.0
    return Prediction(
        step=step,
        synchronous=answer,
        synchronous_gain=gain,
        synchronous_why=_why(job, step, gain),
        load=load,
        asynchronous="gains" if load > 1 else "nothing",
        lost_by_fifo=lost,
        asynchronous_why=_why_merge(load, lost),
    )


def steps(job: Job) -> Step:
    """The times of one step.

    Ring: each worker sends 2 (N - 1) / N of the model in 2 (N - 1) turns of half a round trip.
    Server and switch: each worker's bytes cross its own link once in each direction, and those of
    all cross the link of the server or the switch. Blocks follow each other without a pause.
    """
    bits, n = job.model_bytes * 8, job.workers
    if n == 1:
        alone = job.compute_s
        return Step(alone, alone, alone)
    ring = 2 * (n - 1) / n * bits / job.link_bps + (n - 1) * job.round_trip_s
    own = bits / job.link_bps
    server = max(own, n * bits / job.uplink_bps) + job.round_trip_s
    switch = max(own, n * bits / job.switch_bps) + job.round_trip_s
    return Step(job.compute_s + switch, job.compute_s + ring, job.compute_s + server)


def offered(job: Job) -> float:
    """What asynchronous workers push in a second, as a multiple of the uplink."""
    own = min(job.model_bytes * 8 / job.compute_s, job.link_bps) if job.compute_s else job.link_bps
    return job.workers * own / job.uplink_bps


def _why(job: Job, step: Step, gain: float) -> str:
    if job.workers == 1:
        return "one worker has nobody to sum with"
    other, name = min((step.ring_s, "a ring"), (step.server_s, "a parameter server"))
    if gain >= WORTH:
        return f"a step is {gain:.0%} faster than with {name}"
    if job.compute_s / other > 1 - WORTH:
        return f"computation takes {job.compute_s / other:.0%} of a step with {name}"
    if job.workers * job.link_bps > job.switch_bps:
        return (
            f"the switch's link carries the model {job.workers} times, and {name} takes no longer: "
            "give the switch a faster link, or a port for each worker (--switch-link)"
        )
    return f"a step takes as long with {name}"


def _why_merge(load: float, lost: float) -> str:
    if load > 1:
        return (
            f"workers push {load:.1f} times what the uplink carries: a FIFO queue loses {lost:.0%} "
            "of the updates, and merging sums them instead"
        )
    return f"the uplink carries all updates (load {load:.0%}): nothing waits, so nothing merges"
