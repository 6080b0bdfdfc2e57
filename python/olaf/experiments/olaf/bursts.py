"""The traffic of OLAF §8.1 for Table 1 and Figure 6: bursts of packets through a queue."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from olaf import _olaf
from olaf.errors.outcome import RunError

Order = Literal["rounds", "lockstep", "random"]


class Traffic(BaseModel):
    """The senders and their timing. Rates are in bit/s of the packets' bytes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    workers: int = Field(ge=1)
    clusters: int = Field(ge=1)
    packets: int = Field(ge=1)
    """Packets of each worker."""
    bytes: int = Field(ge=1)
    """Bytes of a packet."""
    average: str
    """Mean rate over bursts and silences."""
    burst: int = Field(ge=1)
    """Packets per burst at the peak rate; the link is silent until the next burst."""
    peak: str
    order: Order
    """``rounds``: every worker once per round, in a new random order; ``lockstep``: always in the
    same order; ``random``: all packets shuffled."""

    @property
    def total(self) -> int:
        """Packets of all workers."""
        return self.workers * self.packets

    def cluster(self, worker: int) -> int:
        """Cluster of a worker."""
        return worker % self.clusters

    def schedule(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """(time in ns, worker) of each packet, both int64 of shape (total,)."""
        chance = np.random.default_rng(seed)
        bits = 8 * self.bytes
        at = np.arange(self.total)
        period = self.burst * bits * 1e9 / _olaf.parse_rate(self.average)
        gap = min(bits * 1e9 / _olaf.parse_rate(self.peak), period / self.burst)
        # The first burst begins at a random point of its period: otherwise all seeds would be
        # equal.
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
    """The result of the traffic in a queue."""

    received: int
    """Updates that arrived at the server."""
    aggregated: int
    """Contributions that were merged or replaced: neither lost nor received separately."""
    loss: float
    """Dropped contributions divided by all, 0 to 1."""
    age_ns: float
    """Mean over the clusters of their average Age-of-Model."""
    contributors: list[int]
    """Contributions of each departed update; empty unless requested."""


def write_trace(path: Path, traffic: Traffic, seed: int) -> None:
    """The trace for `olaf replay`."""
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
    """Replay a trace through a queue before a link of this rate."""
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
    """Mean over the clusters of their average age, including starved ones. Raises an error if only
    one update departed, since no time has then passed."""
    ages: list[float | None] = [cluster["aom_mean_ns"] for cluster in clusters]
    known = [age for age in ages if age is not None]
    if not ages or len(known) < len(ages):
        raise RunError(f"{what}: at most one update departed: let there be more packets")
    return sum(known) / len(known)
