"""OLAF §8.1's traffic, shared by Table 1 and Figure 6: bursts of packets through a queue."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from olaf import _olaf
from olaf.outcome import RunError

Order = Literal["rounds", "lockstep", "random"]


class Traffic(BaseModel):
    """Who sends what, and when. Rates in bit/s of the packets' bytes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    workers: int = Field(ge=1)
    clusters: int = Field(ge=1)
    packets: int = Field(ge=1)
    """Of each worker."""
    bytes: int = Field(ge=1)
    """Of a packet."""
    average: str
    """Rate over bursts and silences together."""
    burst: int = Field(ge=1)
    """Packets that follow each other at the peak rate; then the link is silent until the next."""
    peak: str
    order: Order
    """``rounds``: every worker once in each round, in an order drawn anew; ``lockstep``: always in
    the same order; ``random``: all packets shuffled."""

    @property
    def total(self) -> int:
        """Packets of all workers."""
        return self.workers * self.packets

    def cluster(self, worker: int) -> int:
        """Of a worker."""
        return worker % self.clusters

    def schedule(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """When each packet comes, ns, int64, and of which worker, int64; both of shape (total,)."""
        chance = np.random.default_rng(seed)
        bits = 8 * self.bytes
        at = np.arange(self.total)
        period = self.burst * bits * 1e9 / _olaf.parse_rate(self.average)
        gap = min(bits * 1e9 / _olaf.parse_rate(self.peak), period / self.burst)
        # Where in its period the first burst begins is chance: else all seeds of one order are one.
        phase = chance.uniform(0, period)
        times = phase + (at // self.burst) * period + (at % self.burst) * gap
        return times.astype(np.int64), self._who(chance)

    def _who(self, chance: np.random.Generator) -> np.ndarray:
        if self.order == "lockstep":
            return np.tile(np.arange(self.workers), self.packets)
        if self.order == "random":
            return chance.permutation(np.repeat(np.arange(self.workers), self.packets))
        return np.concatenate([chance.permutation(self.workers) for _ in range(self.packets)])


@dataclass(frozen=True)
class Counts:
    """What a queue made of the traffic."""

    received: int
    """Updates that arrived at the server."""
    aggregated: int
    """Contributions that others took along or replaced: neither lost nor received by themselves."""
    loss: float
    """Dropped contributions, 0 to 1."""
    age_ns: float
    """Mean over the clusters of their average Age-of-Model."""
    contributors: list[int]
    """Of each update that left, merged ones; empty unless asked for."""


def write_trace(path: Path, traffic: Traffic, seed: int) -> None:
    """As `olaf replay` reads it."""
    times, who = traffic.schedule(seed)
    sent = [0] * traffic.workers
    with path.open("w", encoding="utf-8") as file:
        file.write("t_ns,cluster,worker,seq,reward,bytes\n")
        for at, worker in zip(times.tolist(), who.tolist(), strict=True):
            cluster = traffic.cluster(worker)
            file.write(f"{at},{cluster},{worker},{sent[worker]},0,{traffic.bytes}\n")
            sent[worker] += 1


def replay(
    trace: Path, queue: str, slots: int, rate: str, *, head: str = "locked", full: bool = False
) -> Counts:
    """Replay a trace through a queue before a link of that rate."""
    text = _olaf.replay(str(trace), engine=queue, slots=slots, rate=rate, head=head, full=full)
    told: dict[str, Any] = json.loads(text)
    summary = told["summary"]
    return Counts(
        received=summary["departures"],
        aggregated=summary["arrivals"] - summary["dropped"] - summary["departures"],
        loss=summary["loss"],
        age_ns=mean_age_ns(summary["clusters"], queue),
        contributors=[len(left["contributors"]) for left in told.get("departures", [])],
    )


def mean_age_ns(clusters: Sequence[dict[str, Any]], what: str) -> float:
    """Mean over the clusters of their average age, those that starve included; an error where
    nothing but one update departed, for then no time has passed."""
    ages: list[float | None] = [cluster["aom_mean_ns"] for cluster in clusters]
    known = [age for age in ages if age is not None]
    if not ages or len(known) < len(ages):
        raise RunError(f"{what}: at most one update departed: let there be more packets")
    return sum(known) / len(known)
