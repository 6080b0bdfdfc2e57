"""Cases of a figure for the simulator: ``olaf simulate mina`` with the same options."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import Field

from olaf.errors.outcome import RunError
from olaf.experiments import Parameters, Spread
from olaf.experiments.catalog import Says
from olaf.experiments.mina.data import Data, DataChoice
from olaf.processes import machine
from olaf.schedule.mixes import Mix
from olaf.schedule.reading import Job
from olaf.schedule.simulation import (
    Cluster,
    Costs,
    Join,
    Network,
    Outcome,
    Window,
    placement_policy,
    simulate,
    trees_policy,
)
from olaf.schedule.summary import Summary, summarize

Conflicts = Literal["capacity", "switch"]
Sharing = Literal["none", "greedy", "mina", "plan"]

Policies = tuple[str, str, Sharing]
BASELINE: Policies = ("first-fit", "first", "greedy")
"""(placement, trees, sharing) of the paper's baseline (MINA §V-A)."""
SKIP: Policies = ("first-fit", "first-gain", "greedy")
"""The baseline, but without trees for jobs that gain nothing by them."""
AUTHORS: Policies = ("fragments", "mina", "mina")
OURS: Policies = ("fragments", "gain", "plan")
"""Our policies on the pages. `olaf simulate mina` shares greedily by default: see mina/settings."""

RANDOM = ("random", "mina", "gain")
"""Policies with random choices: their result depends on the seed."""


def default_join() -> Join:
    """Default of ``join`` for our trees, as in the core."""
    join: Join = trees_policy("gain")["join"]
    return join


class Given(Parameters):
    """The data and the cluster, the same in every figure."""

    data: DataChoice
    """``auto``, ``own``, ``authors`` or a folder: see `olaf.experiments.mina.data`."""
    topology: str
    """Topology as for `olaf simulate mina --topology`: ``fat-tree:16``."""
    bandwidth_gbit: float = Field(gt=0)
    """Bandwidth of a host-only all-reduce in Gbit/s."""
    speedup: float = Field(ge=1)
    """Speed of an all-reduce in the switches relative to host-only."""
    latency_us: float = Field(ge=0)
    """Fixed time of each all-reduce, microseconds."""
    compute_speed: float = Field(gt=0)
    """Speed of the jobs' computation relative to the data's."""

    def case(self, placement: str, trees: str, sharing: Sharing, **more: Any) -> Case:
        """The case with these policies on this cluster."""
        return Case(
            placement, trees, sharing, topology=self.topology, bandwidth_gbit=self.bandwidth_gbit,
            speedup=self.speedup, latency_us=self.latency_us, compute_speed=self.compute_speed,
            **more,
        )  # fmt: skip


class Listed(Given):
    """The setting, and one list of jobs for all seeds."""

    job_list: str
    """Name of the list in the data."""
    jobs: int = Field(ge=1)
    """Number of its first jobs that are used."""
    mix: Mix
    """Mix of the drawn jobs, if the data has no such list."""

    def first(self, count: int) -> list[Job]:
        """Jobs of the list; drawn from the mix if the data has none."""
        return self.data.given(self.job_list, self.mix, count)

    @property
    def comparable(self) -> bool:
        """True if these are the jobs of the paper's numbers."""
        return self.data.comparable and self.job_list in self.data.lists

    @property
    def words(self) -> str:
        """Description of the data and the jobs."""
        return f"{self.data.words}. Jobs: {self.data.whence(self.job_list)}"


@dataclass(frozen=True)
class Case:
    """A cluster and its policies, in the words of the command line."""

    placement: str
    trees: str
    sharing: Sharing
    topology: str
    bandwidth_gbit: float
    speedup: float
    latency_us: float
    compute_speed: float
    capacity: str = "port:1"
    conflicts: Conflicts = "capacity"
    candidates: int | None = None
    """Candidate trees per job; 0: all; None: the policy's default."""
    price: float | None = None
    """Price of changing a running job's tree, as a fraction of its gain; None: the policy's
    default."""
    join: Join | None = None
    """Groups with which a job without a tree of its own takes turns; None: the policy's default."""
    migration_ms: float = 0.0
    keep: bool = False
    """True if MINA's existing trees count in the next choice; in the paper they do not."""

    @property
    def words(self) -> str:
        """``fragments / mina / mina``."""
        return f"{self.placement} / {self.trees} / {self.sharing}"

    @property
    def draws(self) -> bool:
        """True if it depends on the seed: with all candidates none is drawn."""
        return self.placement in RANDOM or (self.trees in RANDOM and self.candidates != 0)

    def cluster(self, data: Data, seed: int) -> Cluster:
        """The setting for the simulator."""
        return Cluster(
            topology={"word": self.topology},
            capacity=self.capacity,
            conflicts=self.conflicts,
            placement=placement_policy(self.placement, seed=seed),
            trees=self.trees_policy(),
            sharing=self.sharing,
            network=Network(
                bytes_per_second=round(self.bandwidth_gbit * 1e9 / 8),
                speedup_millis=round(self.speedup * 1000),
                latency_ns=round(self.latency_us * 1000),
            ),
            compute_speed_millis=round(self.compute_speed * data.speed * 1000),
            migration_ns=round(self.migration_ms * 1e6),
            seed=seed,
        )

    def trees_policy(self) -> dict[str, Any]:
        """The policy for trees, for the simulator."""
        price_millis = None if self.price is None else round(self.price * 1000)
        policy = trees_policy(
            self.trees, candidates=self.candidates, price_millis=price_millis, join=self.join
        )
        return {**policy, "keep": self.keep} if self.trees == "mina" else policy


@dataclass(frozen=True)
class Ran:
    """One simulation."""

    summary: Summary
    cpu_s: float
    """CPU seconds of the whole run."""
    trees_s: float
    """CPU seconds of choosing trees."""
    costs: Costs

    @property
    def score(self) -> float:
        """The score. Raises RunError if no job can gain."""
        if self.summary.score is None:
            raise RunError(
                "no job can gain by the switches in this setting; "
                "lower bandwidth_gbit or raise compute_speed"
            )
        return self.summary.score

    @property
    def utilisation(self) -> float:
        """Utilisation of the switches by a job, mean over jobs."""
        return self.summary.utilisation

    @property
    def migrations(self) -> float:
        """A job."""
        return self.summary.migrations.per_job


def run_case(case: Case, data: Data, jobs: Sequence[Job], seed: int) -> Ran:
    """Simulate one case, on the calling thread."""
    begin_s = time.thread_time()
    outcome, costs = simulate(case.cluster(data, seed), data.patterns, jobs)
    cpu_s = time.thread_time() - begin_s
    trees_s = (sum(costs.trees_ns) + sum(costs.leave_ns)) / 1e9
    return Ran(summarize(outcome, [job.hosts for job in jobs]), cpu_s, trees_s, costs)


def run_with_lines(
    case: Case, data: Data, jobs: Sequence[Job], seed: int
) -> tuple[Outcome, dict[str, Any]]:
    """Like `run_case`, with the hosts and trees of each job."""
    # Only uses of the switches in the first nanosecond are kept.
    outcome, _ = simulate(
        case.cluster(data, seed), data.patterns, jobs, timeline=Window(from_ns=0, to_ns=1)
    )
    if outcome.timeline is None:
        raise RunError("the simulator kept no timeline")
    return outcome, outcome.timeline


class Bench:
    """Runs cases by seed, one per core at a time; equal cases run once."""

    def __init__(self, data: Data, seeds: Sequence[int], say: Says) -> None:
        self._data = data
        self._seeds = list(seeds)
        self._say = say
        self._wanted: dict[tuple[Case, str, int], Sequence[Job]] = {}
        self._done: dict[tuple[Case, str, int], Ran] = {}

    def want(self, case: Case, name: str, jobs: Callable[[int], Sequence[Job]]) -> None:
        """Request a case on a list for each seed; lists of one name and seed are the same list."""
        for seed in self._seeds:
            self._wanted.setdefault(self._key(case, name, seed), jobs(seed))

    def want_given(self, case: Case, name: str, jobs: Sequence[Job]) -> None:
        """Request a case on a list that does not depend on the seed."""
        self.want(case, f"={name}", lambda seed: jobs)

    def run(self) -> None:
        """Run all requested cases. Raises RunError if one cannot be simulated."""
        todo = [key for key in self._wanted if key not in self._done]
        # Long runs go first, so that no core waits for the last one.
        todo.sort(key=lambda key: (not key[0].draws, key[2]))
        with ThreadPoolExecutor(machine.cores()) as pool:
            runs = [
                (key, pool.submit(run_case, key[0], self._data, self._wanted[key], key[2]))
                for key in todo
            ]
            try:
                for at, (key, running) in enumerate(runs):
                    self._say(f"seed {key[2]}: {key[0].words}", at / len(runs))
                    self._done[key] = running.result()
            finally:
                for _, running in runs:
                    running.cancel()

    def of(self, case: Case, name: str) -> list[Ran]:
        """The runs of a case on a list of that name, by seed."""
        return [self._done[self._key(case, name, seed)] for seed in self._seeds]

    def of_given(self, case: Case, name: str) -> list[Ran]:
        """The runs of a case on a list that does not depend on the seed."""
        return self.of(case, f"={name}")

    def _key(self, case: Case, name: str, seed: int) -> tuple[Case, str, int]:
        alike = name.startswith("=") and not case.draws
        return case, name, self._seeds[0] if alike else seed


def spread(runs: Iterable[Ran], of: Callable[[Ran], float]) -> Spread:
    """One value per seed."""
    return Spread.of([of(run) for run in runs])


def at_speed(case: Case, compute_speed: float, speedup: float) -> Case:
    """The same setting, with a network that matters more."""
    return replace(case, compute_speed=compute_speed, speedup=speedup)
