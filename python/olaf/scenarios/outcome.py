"""The result of one run of a scenario, as the core returns it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Fates(_Data):
    """Fates of contributions from worker to server: ``generated`` is the sum of all others."""

    generated: int
    delivered: int
    replaced: int
    filtered: int
    dropped: int
    rejected: int
    discarded: int
    """Not sent by their workers, and discarded."""
    held: int
    """Not sent by their workers yet."""
    on_the_way: int


class Cluster(_Data):
    """One cluster. Peaks are None before its first delivery.

    The mean age of every cluster counts from the scenario's first delivery. It is None only if
    nothing was delivered at all.
    """

    group: str
    cluster: int
    age_mean_ns: float | None
    age_peak_mean_ns: float | None
    age_peak_max_ns: int | None
    worker_age_mean_ns: float | None
    """Mean over its workers of each worker's own age."""
    workers_unheard: int
    packets: int
    contributions: int


class Switch(_Data):
    """One switch: contributions by fate, and datagrams under ``packets_``."""

    name: str
    received: int
    sent_alone: int
    merged: int
    replaced: int
    filtered: int
    dropped: int
    rejected: int
    waiting: int
    packets_received: int
    packets_merged: int
    packets_dropped: int
    packets_sent: int


class Outcome(_Data):
    """The whole scenario, see ``docs/reference/scenarios.md``."""

    fates: Fates
    packets_sent: int
    packets_dropped: int
    packets_delivered: int
    packets_merged: int
    loss_packets: float
    """Datagrams dropped over datagrams sent, 0 to 1."""
    loss_contributions: float
    """Contributions in dropped datagrams over contributions sent, 0 to 1."""
    fairness: float | None
    """Jain's index over the clusters' mean ages; None without any delivery."""
    clusters: list[Cluster]
    switches: list[Switch]
    probability_mean: float
    """Mean probability with which a worker sent an update."""
    fan_in: list[int]
    """Delivered datagrams with 0, 1, 2 .. contributions."""
