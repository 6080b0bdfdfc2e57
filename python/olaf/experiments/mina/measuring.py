"""Cases of a figure, run by the simulator: ``olaf simulate mina`` with the same options."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import Field

from olaf import machine
from olaf.experiments import Parameters, Spread
from olaf.experiments.catalog import Says
from olaf.experiments.mina.data import Data, DataChoice
from olaf.outcome import RunError
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
"""Placement, trees, sharing (MINA §V-A)."""
SKIP: Policies = ("first-fit", "first-gain", "greedy")
"""The baseline, but a job that gains nothing by a tree gets none."""
AUTHORS: Policies = ("fragments", "mina", "mina")
OURS: Policies = ("fragments", "gain", "plan")
"""As the pages have it. The default of `olaf simulate mina` shares greedily: see mina/settings."""

RANDOM = ("random", "mina", "gain")
"""Policies that draw: what they come to depends on the seed."""


def default_join() -> Join:
    """Of our trees, as the core has it."""
    join: Join = trees_policy("gain")["join"]
    return join


class Given(Parameters):
    """The data and the cluster, as every figure has them."""

    data: DataChoice
    """``auto``, ``own``, ``authors`` or a folder: see `olaf.experiments.mina.data`."""
    topology: str
    """As `olaf simulate mina --topology` has it: ``fat-tree:16``."""
    bandwidth_gbit: float = Field(gt=0)
    """Gbit/s at which an all-reduce among hosts alone moves its bytes."""
    speedup: float = Field(ge=1)
    """How much faster that is when the switches sum."""
    latency_us: float = Field(ge=0)
    """Of each all-reduce, microseconds."""
    compute_speed: float = Field(gt=0)
    """How much faster than the data's the jobs compute."""

    def case(self, placement: str, trees: str, sharing: Sharing, **more: Any) -> Case:
        """These policies on this cluster."""
        return Case(
            placement, trees, sharing, topology=self.topology, bandwidth_gbit=self.bandwidth_gbit,
            speedup=self.speedup, latency_us=self.latency_us, compute_speed=self.compute_speed,
            **more,
        )  # fmt: skip


class Listed(Given):
    """And one list of jobs, the same for every seed."""

    job_list: str
    """Of the data: its name."""
    jobs: int = Field(ge=1)
    """Of it, so many from the first on."""
    mix: Mix
    """Of the jobs, where the data has no such list."""

    def first(self, count: int) -> list[Job]:
        """Jobs of the list; drawn from the mix if the data has none."""
        return self.data.given(self.job_list, self.mix, count)

    @property
    def comparable(self) -> bool:
        """Whether they are those of the paper's numbers."""
        return self.data.comparable and self.job_list in self.data.lists

    @property
    def words(self) -> str:
        """What is measured with."""
        return f"{self.data.words}. Jobs: {self.data.whence(self.job_list)}"


@dataclass(frozen=True)
class Case:
    """A cluster and its policies, by the words of the command line."""

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
    """Trees of each job that are looked at; 0: all; None: as many as the policy does by itself."""
    price: float | None = None
    """Of changing a running job's tree, in parts of what it gains; None: the policy's own."""
    join: Join | None = None
    """With whom a job takes turns that finds no tree of its own; None: the policy's own."""
    migration_ms: float = 0.0
    keep: bool = False
    """Whether MINA's trees that are there weigh in the next choice; in the paper they do not."""

    @property
    def words(self) -> str:
        """``fragments / mina / mina``."""
        return f"{self.placement} / {self.trees} / {self.sharing}"

    @property
    def draws(self) -> bool:
        """Whether it depends on the seed: with all candidates none is drawn."""
        return self.placement in RANDOM or (self.trees in RANDOM and self.candidates != 0)

    def cluster(self, data: Data, seed: int) -> Cluster:
        """For the simulator."""
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
        """For the simulator."""
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
    """Of the whole of it."""
    trees_s: float
    """Of which so much to choose trees."""
    costs: Costs

    @property
    def score(self) -> float:
        """Raises RunError where no job can gain."""
        if self.summary.score is None:
            raise RunError(
                "no job can gain by the switches in this setting; "
                "lower bandwidth_gbit or raise compute_speed"
            )
        return self.summary.score

    @property
    def utilisation(self) -> float:
        """Of the switches by a job, mean over jobs."""
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
    """As `run_case`; who sat where and had which tree."""
    # No use of the switches is kept but those of the first nanosecond.
    outcome, _ = simulate(
        case.cluster(data, seed), data.patterns, jobs, timeline=Window(from_ns=0, to_ns=1)
    )
    if outcome.timeline is None:
        raise RunError("the simulator kept no timeline")
    return outcome, outcome.timeline


class Bench:
    """Runs cases by seed, as many at once as there are cores; equal ones once."""

    def __init__(self, data: Data, seeds: Sequence[int], say: Says) -> None:
        self._data = data
        self._seeds = list(seeds)
        self._say = say
        self._wanted: dict[tuple[Case, str, int], Sequence[Job]] = {}
        self._done: dict[tuple[Case, str, int], Ran] = {}

    def want(self, case: Case, name: str, jobs: Callable[[int], Sequence[Job]]) -> None:
        """A case on a list by seed; lists of one name and seed are the same list."""
        for seed in self._seeds:
            self._wanted.setdefault(self._key(case, name, seed), jobs(seed))

    def want_given(self, case: Case, name: str, jobs: Sequence[Job]) -> None:
        """A case on the same list whatever the seed."""
        self.want(case, f"={name}", lambda seed: jobs)

    def run(self) -> None:
        """All that is wanted and not run yet. Raises RunError where one cannot be."""
        todo = [key for key in self._wanted if key not in self._done]
        # What takes long goes first, so that no core waits for the last one.
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
        """What a case came to on a list of that name, by seed."""
        return [self._done[self._key(case, name, seed)] for seed in self._seeds]

    def of_given(self, case: Case, name: str) -> list[Ran]:
        """The same of a list that does not depend on the seed."""
        return self.of(case, f"={name}")

    def _key(self, case: Case, name: str, seed: int) -> tuple[Case, str, int]:
        alike = name.startswith("=") and not case.draws
        return case, name, self._seeds[0] if alike else seed


def spread(runs: Iterable[Ran], of: Callable[[Ran], float]) -> Spread:
    """One value a seed."""
    return Spread.of([of(run) for run in runs])


def at_speed(case: Case, compute_speed: float, speedup: float) -> Case:
    """The same where the network matters more."""
    return replace(case, compute_speed=compute_speed, speedup=speedup)
