"""What came of a run, as the core writes it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Iteration(_Data):
    """An iteration of a job."""

    begin_ns: int
    """The first worker began to compute."""
    end_ns: int
    """The last worker had updated its model."""
    compute_ns: float
    """Mean time to compute, over the workers."""
    wait_ns: float
    """Mean time from a worker's last tensor to the last tensor of the slowest worker."""
    aggregation_ns: float
    """Mean time from then to the worker's last sum."""
    degraded: int
    """Operations of workers that ended with the sum of some workers."""


class Job(_Data):
    """A job; all its workers had joined at ``begin_ns``."""

    name: str
    engine: str
    workers: int
    model_bytes: int
    failed: str | None
    """Why it failed; None: it did not."""
    begin_ns: int
    end_ns: int
    iterations: list[Iteration]
    """Those that ended at all workers."""
    iteration_ns: float
    """Mean time of an iteration, over workers and iterations: the sum of the four parts below."""
    compute_ns: float
    wait_ns: float
    aggregation_ns: float
    update_ns: float
    goodput_bps: float | None
    """Bits of the gradient over the mean time of waiting and aggregation."""
    packets: int
    """Data packets that workers sent for the first time."""
    resent: int
    """Data packets that workers sent again."""
    exact: int
    """Operations of workers that ended with the sum of all workers, bit for bit."""
    degraded: int
    """Operations of workers that ended with the sum of some workers."""
    at_server: int
    """Packets of single workers that the server of ATP added, for all jobs of ATP together."""
    collisions: int
    """Packets that found the place of their sum taken, for all jobs of ATP together."""


class Link(_Data):
    """One direction of a link.

    ``offered`` is the sum of ``delivered``, ``lost``, ``dropped`` and ``on_the_way``.
    """

    name: str
    """Its ends: ``host0 to rack0``."""
    rate_bps: int
    offered: int
    delivered: int
    lost: int
    dropped: int
    """Frames that found no room in its queue."""
    on_the_way: int
    marked: int
    bytes: int
    """With headers."""
    busy: float
    """Share of the time in which it was busy."""
    longest_wait_ns: int


class Outcome(_Data):
    """A run."""

    seed: int
    jobs: list[Job]
    links: list[Link]
    """Each direction of each link that carried something."""
    end_ns: int
    events: int
    """Arrivals, wake-ups and alarms that were carried out."""

    def job(self, name: str) -> Job:
        """The job of that name."""
        return next(job for job in self.jobs if job.name == name)
