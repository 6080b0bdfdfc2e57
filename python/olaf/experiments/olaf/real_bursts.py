"""The traffic of `bursts`, slowed down, from real workers through a real switch process."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from olaf import _olaf
from olaf.errors.outcome import Exit, RunError
from olaf.experiments.olaf.bursts import Counts, Traffic, mean_age_ns
from olaf.experiments.olaf.latency import HEADER
from olaf.experiments.processes import Roles

JOB = 1


class Real(BaseModel):
    """How the traffic is adapted to the machine's speed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    slower: float = Field(ge=1)
    """Divisor of all rates."""
    packets: int = Field(ge=1)
    """Packets of each worker."""
    rates: list[str]
    """Rates of the uplink, before the division."""
    timeout_s: float = Field(gt=0)
    """Time limit for a join, and for the queue to empty at the end."""


@dataclass(frozen=True)
class Measured:
    """One run."""

    counts: Counts
    missing: int
    """Updates that were pushed and never reached the switch."""
    late_ms: float
    """By how much the packets came later than planned: the 99th percentile."""
    control: int
    """Joins, fetches and the like that took time of the same uplink."""


def on_time(every: list[Measured]) -> str:
    """A sentence on the plan's lateness."""
    late, control = [one.late_ms for one in every], [one.control for one in every]
    missing = sum(one.missing for one in every)
    return (
        f"On sockets 99 % of a run's packets came at most {min(late):.1f} ms late in the best run "
        f"and {max(late):.1f} ms in the worst, and {missing} of all never reached the switch. "
        "Packets that are late come closer together than planned, which makes the bursts harder. "
        "The uplink also carries the workers' joins and questions for models, "
        f"{min(control)} to {max(control)} datagrams of 40 to 64 bytes a run, ahead of updates: at "
        "the narrowest uplink that is a share of it that one sees."
    )


def measure(
    traffic: Traffic, real: Real, seed: int, *, queue: str, slots: int, rate: str
) -> Measured:
    """Run a server, a switch and all workers; the switch's counts and the server's ages."""
    scaled = traffic.model_copy(update={"packets": real.packets})
    times, who = scaled.schedule(seed)
    due = (times - times[0]) * real.slower / 1e9
    lanes = (traffic.bytes - HEADER) // 4
    if lanes < 1:
        raise RunError(f"traffic.bytes = {traffic.bytes}: at least {HEADER + 4}", Exit.USAGE)
    with Roles() as roles:
        server = roles.start("server")
        uplink = max(1, round(_olaf.parse_rate(rate) / real.slower))
        switch = roles.start("switch", upstream=server, queue=queue, slots=slots, uplink_bps=uplink)
        clients = [_join(switch, scaled, worker, lanes, real) for worker in range(traffic.workers)]
        try:
            late = _push(clients, due, who, lanes)
            ages = roles.statistics("server")
            told = _drained(roles, real.timeout_s)
        finally:
            for client in clients:
                client.leave()
    return _measured(scaled, told, ages, late)


def _join(switch: str, traffic: Traffic, worker: int, lanes: int, real: Real) -> _olaf.Client:
    client = _olaf.Client(
        switch,
        job=JOB,
        cluster=traffic.cluster(worker),
        worker=worker,
        config=json.dumps({"segment_lanes": lanes}),
    )
    client.join([np.zeros(lanes, np.float32)], real.timeout_s)
    return client


def _push(clients: list[_olaf.Client], due: np.ndarray, who: np.ndarray, lanes: int) -> np.ndarray:
    """Each packet when it is due, or as soon after as can be; how late they were, seconds."""
    update = [np.full(lanes, 1e-9, np.float32)]
    late = np.empty(len(due))
    began = time.perf_counter() + 0.05
    for at, (when, worker) in enumerate(zip(due.tolist(), who.tolist(), strict=True)):
        while (left := began + when - time.perf_counter()) > 0:
            # Sleeping is not exact to less than this.
            if left > 0.002:
                time.sleep(left - 0.002)
        late[at] = -left
        clients[worker].push(update, reward=0.0)
    return late


def _drained(roles: Roles, timeout_s: float) -> dict[str, Any]:
    """The switch's counters once its queue is empty."""
    deadline = time.monotonic() + timeout_s
    received = -1
    while True:
        told = roles.statistics("switch")
        if told["fates"]["waiting"] == 0 and told["received"] == received:
            return told
        received = told["received"]
        if time.monotonic() > deadline:
            raise RunError(
                f"the switch's queue was not empty within {timeout_s:g} s", Exit.UNREACHABLE
            )
        time.sleep(0.05)


def _measured(
    traffic: Traffic, switch: dict[str, Any], server: dict[str, Any], late: np.ndarray
) -> Measured:
    dropped = sum(switch["fates"]["dropped"].values())
    rejected = sum(switch["fates"]["rejected"].values())
    clusters = [cluster for job in server["jobs"] for cluster in job["clusters"]]
    if len(clusters) < traffic.clusters:
        raise RunError(f"the server heard of {len(clusters)} of {traffic.clusters} clusters only")
    return Measured(
        counts=Counts(
            received=switch["departures"],
            aggregated=switch["received"] - dropped - rejected - switch["departures"],
            loss=dropped / max(1, switch["received"]),
            age_ns=mean_age_ns(clusters, "real sockets"),
            contributors=[],
        ),
        missing=traffic.total - switch["received"],
        late_ms=1e3 * float(np.quantile(late, 0.99)),
        control=switch["forwarded"]["up"],
    )
