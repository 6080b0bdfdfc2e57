"""MINA's jobs on a cluster in virtual time; the core (``crates/olaf-sim/src/mina``) runs them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from olaf.errors.usage import ConfigurationError
from olaf.schedule.reading import Job, Pattern
from olaf.values.united import United

SLICE_S = 0.1
"""Virtual time of one call of the core, between two checks for Ctrl-C."""

Join = Literal["none", "one", "several"]
"""Number of sharing groups with which a job without a tree of its own may take turns."""

Tagged = dict[str, Any]
"""A policy as the core reads it: ``{"policy": name, ..its parameters}``."""


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Network(United, _Data):
    """Time of an all-reduce: latency + bytes / (bandwidth x speed-up, in the network)."""

    bytes_per_second: int = 12_500_000_000
    """100 Gbit/s, as in MINA §V."""
    speedup_millis: int = 2000
    """Speed of an all-reduce in the switches relative to host-only, in thousandths."""
    latency_ns: int = 50_000


class Window(_Data):
    """A part of a run."""

    from_ns: int
    to_ns: int


class Cluster(_Data):
    """The cluster of a simulation, and its policies."""

    topology: Tagged = {"word": "fat-tree:16"}
    """``{"word": ..}`` or ``{"graph": ..}``, see `olaf.schedule.reading.read_topology`."""
    capacity: str = "port:1"
    conflicts: Literal["capacity", "switch"] = "capacity"
    placement: Tagged = {"policy": "fragments", "alpha_millis": 500}
    trees: Tagged = {"policy": "first"}
    sharing: Literal["none", "greedy", "mina", "plan"] = "greedy"
    """docs/design/017-sharing-in-time.md explains the default."""
    network: Network = Network()
    compute_speed_millis: int = 1000
    migration_ns: int = 0
    ties: Literal["together", "forwards", "backwards"] = "together"
    """Order of jobs that end at the same instant: all leave, then others arrive; or one after the
    other, in the list's order or in reverse."""
    seed: int = 0


def placement_policy(name: str, *, alpha_millis: int = 500, seed: int = 0) -> Tagged:
    """``first-fit``, ``random`` or ``fragments``, as the core reads it."""
    match name:
        case "random":
            return {"policy": "random", "seed": seed}
        case "fragments":
            return {"policy": "fragments", "alpha_millis": alpha_millis}
        case _:
            return {"policy": name.replace("-", "_")}


def trees_policy(
    name: str,
    *,
    candidates: int | None = None,
    price_millis: int | None = None,
    join: Join | None = None,
) -> Tagged:
    """The policy for trees as the core reads it: ``none``, ``first``, ``first-gain`` and so on.

    candidates, price_millis, join: None uses the policy's own value
    (``crates/olaf-sched/src/trees/policy.rs``). Raises ConfigurationError for an unknown policy,
    and for a parameter that the policy does not have.
    """
    from olaf._olaf import trees_policy as resolve

    asked = {"trees": name, "candidates": candidates, "price_millis": price_millis, "join": join}
    try:
        resolved: Tagged = json.loads(resolve(json.dumps(asked)))
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    return resolved


class JobOutcome(_Data):
    """One job; times in nanoseconds of virtual time."""

    queued_ns: int
    """Time at which it reached the head of the queue."""
    start_ns: int
    end_ns: int
    none_ns: int
    """Its duration if none of its all-reduces is in the network."""
    all_ns: int
    """Its duration if all of them are."""
    in_network_ns: int
    """Time in which the switches summed for it."""
    operations_with: int
    """Number of all-reduces in the switches."""
    operations_without: int
    tree_ns: int
    """Time in which it had a tree."""
    shared_ns: int
    """Time in which its tree conflicted with another job's."""
    moved: int
    """Number of changes from one tree to another while it ran."""
    gained: int
    lost: int


class Costs(_Data):
    """Nanoseconds of CPU time that decisions took."""

    placement_ns: list[int]
    """One value per job."""
    trees_ns: list[int]
    """One value per arrival of jobs together."""
    leave_ns: list[int]
    """One value per end of a job."""


class Outcome(_Data):
    """The result of a run: whole numbers, the same on every platform."""

    hosts: int
    """Number of hosts in the cluster."""
    jobs: list[JobOutcome]
    makespan_ns: int
    operations: int
    events: int
    """Number of events taken from the queue: fewer than two per all-reduce."""
    rebuilds: int
    """Number of instants at which jobs arrived and trees were chosen."""
    most_running: int
    timeline: dict[str, Any] | None


def simulate(
    cluster: Cluster,
    patterns: Sequence[Pattern],
    jobs: Sequence[Job],
    *,
    timeline: Window | None = None,
    say: Callable[[int, int, int], None] = lambda over, running, now_ns: None,
    solve: Callable[[str], str | None] | None = None,
) -> tuple[Outcome, Costs]:
    """Run all jobs to their ends.

    patterns: those that the jobs name. solve: an `olaf.schedule.ilp.Solver`, which ``exact`` trees
    call for a better choice whenever jobs arrive. say: is called about ten times per second with
    (ended jobs, running jobs, virtual time). Ctrl-C ends the run within a tenth of a second or one
    choice of trees. Raises ConfigurationError for an invalid setting.
    """
    from olaf._olaf import MinaSimulation

    number = {pattern.name: at for at, pattern in enumerate(patterns)}
    setting = {
        **cluster.model_dump(mode="json"),
        "patterns": [asdict(pattern) for pattern in patterns],
        "jobs": [
            {"pattern": number[job.pattern], "hosts": job.hosts, "steps": job.steps} for job in jobs
        ],
        "timeline": None if timeline is None else timeline.model_dump(),
    }
    try:
        simulation = MinaSimulation(json.dumps(setting), solve)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    all_over = False
    while not all_over:
        over, running, now_ns, all_over = simulation.advance(SLICE_S)
        say(over, running, now_ns)
    finished = json.loads(simulation.finish())
    return Outcome.model_validate(finished["outcome"]), Costs.model_validate(finished["costs"])


def record(outcome: Outcome, jobs: Sequence[Job]) -> Tagged:
    """The record for `olaf.schedule.timeline`: jobs on hosts, their trees, and kept uses.

    Requires a run with a ``timeline``.
    """
    told = outcome.timeline
    if told is None:
        raise ValueError("this run kept no timeline: simulate(.., timeline=Window(..))")
    lines, uses = [], []
    for number, (job, ran, line) in enumerate(zip(jobs, outcome.jobs, told["jobs"], strict=True)):
        lines.append(
            {
                "job": number,
                "pattern": job.pattern,
                "hosts": line["hosts"],
                "queued_ns": ran.queued_ns,
                "start_ns": ran.start_ns,
                "end_ns": ran.end_ns,
                "steps": job.steps,
                "placement": line["placement"],
                "trees": line["trees"],
            }
        )
        uses += [{"job": number, **use} for use in line["uses"]]
    return {
        "hosts": told["hosts"],
        "switches": told["switches"],
        "tor_of": told["tor_of"],
        "window": told["window"],
        "jobs": lines,
        "uses": uses,
    }
