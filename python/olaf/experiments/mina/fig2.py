"""MINA §II-B, Figure 2: conflicts of trees and fragments of hosts, as jobs come and go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from olaf.errors.outcome import RunError
from olaf.experiments import Baseline, Chart, Result, Row, Series, Spread, Task
from olaf.experiments.mina.measuring import Given, run_with_lines
from olaf.schedule.mixes import Mix, draw
from olaf.schedule.simulation import Outcome

Floats = NDArray[np.float64]

FIRST_FIT = "first-fit"
POINTS = 200
"""Number of points of a drawn curve."""
EACH = 20
"""Number of points of a run in the scatter plot."""


class Parameters(Given):
    """The cluster, and the jobs that ask for its hosts."""

    jobs: int = Field(ge=2)
    """Arrivals."""
    window: int = Field(ge=2)
    """Number of arrivals in an average."""
    drawn: int = Field(ge=1)
    """Number of averages from the first on."""
    mix: Mix
    """Numbers of hosts that the jobs ask for."""
    placements: list[str] = Field(min_length=1)
    """Placement policies, including the paper's."""

    @field_validator("placements")
    @classmethod
    def _has_the_papers(cls, placements: list[str]) -> list[str]:
        if FIRST_FIT not in placements:
            raise ValueError(f"{FIRST_FIT} is the paper's placement and must be included")
        return placements


@dataclass(frozen=True)
class Seen:
    """Averages over each window of arrivals, for one seed."""

    arrivals: Floats
    """The middle of each window."""
    conflicts: Floats
    """Share of the arrivals on two hosts or more that got no tree."""
    fragments: Floats
    """Fragments of used hosts and of free hosts."""

    @property
    def correlation(self) -> float:
        """Pearson's correlation of the two over the windows."""
        return float(np.corrcoef(self.fragments, self.conflicts)[0, 1])


def run(task: Task[Parameters]) -> Result:
    """Simulate each seed and placement, and observe every arrival."""
    given = task.parameters
    seen: dict[str, list[Seen]] = {placement: [] for placement in given.placements}
    for seed in task.each_seed():
        for placement, of_it in seen.items():
            of_it.append(measure(given, placement, seed))
    return Result(
        rows=rows(task, seen),
        data=given.data.words,
        charts=[over_arrivals(seen[FIRST_FIT][0], task.seeds[0]), against(seen)],
    )


def measure(given: Parameters, placement: str, seed: int) -> Seen:
    """The case: first trees, one job per switch."""
    data = given.data
    model = next(
        (name for name in data.pattern_names() if name.startswith("opt-350m")),
        max(data.patterns, key=lambda pattern: pattern.compute_ns).name,
    )
    jobs = draw(given.mix, [model], given.jobs, seed)
    case = given.case(placement, "first", "greedy", capacity="switch:1")
    outcome, timeline = run_with_lines(case, data, jobs, seed)
    asked = np.array([job.hosts for job in jobs])
    without = np.array([line["trees"][0]["root"] is None for line in timeline["jobs"]])
    counted = asked > 1
    fragments = by_arrival(outcome, timeline, shape_of(given.topology))
    window = np.ones(given.window)
    share = np.convolve(without & counted, window, "valid") / np.convolve(counted, window, "valid")
    mean = np.convolve(fragments, window / given.window, "valid")
    middle = np.arange(len(mean), dtype=np.float64) + given.window / 2
    last = min(given.drawn, len(mean))
    return Seen(middle[:last], share[:last], mean[:last])


def rows(task: Task[Parameters], seen: dict[str, list[Seen]]) -> list[Row]:
    """The correlation, along a run and over the placements."""
    given = task.parameters
    together = [
        float(
            np.corrcoef(
                np.concatenate([one.fragments for one in seed]),
                np.concatenate([one.conflicts for one in seed]),
            )[0, 1]
        )
        for seed in zip(*seen.values(), strict=True)
    ]
    zero = Baseline(name="0", ours=task.paper["least"])
    first_fit = seen[FIRST_FIT]
    told = [
        Row(
            quantity="correlation of conflicts and fragments",
            where=f"first fit, averages over {given.window} arrivals",
            ours=Spread.of([one.correlation for one in first_fit]), baseline=zero,
            direction="above", comparable=given.data.comparable, digits=3,
            note="the paper: strong and positive",
        ),
        Row(
            quantity="correlation of conflicts and fragments",
            where=f"{', '.join(seen)} together", digits=3, ours=Spread.of(together),
        ),
    ]  # fmt: skip
    for placement, of_it in seen.items():
        told += [
            Row(
                quantity="arrivals without a tree", where=f"{placement}, all windows", unit="%",
                ours=Spread.of([100.0 * float(one.conflicts.mean()) for one in of_it]),
                headline=False, digits=1,
            ),
            Row(
                quantity="fragments", where=f"{placement}, all windows", headline=False, digits=1,
                ours=Spread.of([float(one.fragments.mean()) for one in of_it]),
            ),
        ]  # fmt: skip
    return told


def shape_of(topology: str) -> tuple[int, int, int]:
    """Pods, racks a pod, hosts a rack of ``fat-tree:DEGREE``."""
    kind, _, degree = topology.partition(":")
    if kind != "fat-tree" or not degree.isdigit():
        raise RunError(f"topology = {topology!r}: fragments are counted on fat-tree:DEGREE")
    return int(degree), int(degree) // 2, int(degree) // 2


def by_arrival(outcome: Outcome, timeline: dict[str, Any], shape: tuple[int, int, int]) -> Floats:
    """Fragments after the start of each job, in order of arrival."""
    used = np.zeros(outcome.hosts, dtype=bool)
    ends = sorted((job.end_ns, number) for number, job in enumerate(outcome.jobs))
    ended = 0
    counts = np.empty(len(outcome.jobs))
    first = 0
    while first < len(outcome.jobs):
        now_ns = outcome.jobs[first].start_ns
        while ended < len(ends) and ends[ended][0] <= now_ns:
            used[timeline["jobs"][ends[ended][1]]["hosts"]] = False
            ended += 1
        after = first
        while after < len(outcome.jobs) and outcome.jobs[after].start_ns == now_ns:
            used[timeline["jobs"][after]["hosts"]] = True
            after += 1
        pods = used.reshape(shape)
        counts[first:after] = fragments_of(pods) + fragments_of(~pods)
        first = after
    return counts


def fragments_of(pods: NDArray[np.bool_]) -> int:
    """MINA §III-B: the smallest number of whole pods, racks and hosts that are exactly these hosts.

    pods: by pod, rack and host, true if the host is one of them.
    """
    if pods.all():
        return 1
    racks = np.logical_and.reduce(pods, axis=2)
    whole = np.logical_and.reduce(racks, axis=1)
    rack_alone = racks & ~whole[:, None]
    host_alone = pods & ~racks[:, :, None]
    return int(whole.sum() + rack_alone.sum() + host_alone.sum())


def over_arrivals(seen: Seen, seed: int) -> Chart:
    """The paper's plot."""
    at = np.unique(np.linspace(0, len(seen.arrivals) - 1, POINTS).astype(int))

    def line(values: Floats) -> list[tuple[float, float]]:
        return [(float(seen.arrivals[i]), float(values[i])) for i in at]

    return Chart(
        title=f"Conflicts and fragments as jobs come and go (seed {seed})",
        x="arrivals", y="arrivals without a tree, %", right="fragments",
        series=[
            Series(name="arrivals without a tree", points=line(100.0 * seen.conflicts)),
            Series(name="fragments of hosts", points=line(seen.fragments), right=True),
        ],
    )  # fmt: skip


def against(seen: dict[str, list[Seen]]) -> Chart:
    """The scatter plot of all seeds."""

    def points(of_it: Sequence[Seen]) -> list[tuple[float, float]]:
        return [
            (float(one.fragments[i]), 100.0 * float(one.conflicts[i]))
            for one in of_it
            for i in range(0, len(one.fragments), max(1, len(one.fragments) // EACH))
        ]

    return Chart(
        name="correlation",
        title="The same, one against the other, by placement",
        x="fragments of hosts", y="arrivals without a tree, %", kind="points",
        series=[
            Series(name=placement, points=points(of_it)) for placement, of_it in seen.items()
        ],
    )  # fmt: skip
