"""MINA §V-C, Figure 12: groups of jobs that share one tree, and no other resource."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import combinations_with_replacement, product
from typing import Annotated

from pydantic import Field

from olaf.errors.outcome import RunError
from olaf.experiments import (
    Baseline,
    Bound,
    Chart,
    Column,
    Result,
    Row,
    Series,
    Spread,
    Table,
    Task,
)
from olaf.experiments.mina.measuring import Given, Sharing
from olaf.processes import machine

POLICIES: dict[Sharing, str] = {"greedy": "greedy", "mina": "MINA's rule", "plan": "ours"}
GOOD = 0.95

Group = tuple[int, ...]
"""Indices of patterns, in the order of the jobs."""


class Parameters(Given):
    """The network, the groups, and the length of the runs."""

    hosts: int = Field(ge=2)
    """Hosts of each job."""
    seconds: float = Field(gt=0)
    """Virtual time of a pair's run."""
    group_seconds: float = Field(gt=0)
    """Virtual time of a larger group's run."""
    sizes: list[Annotated[int, Field(ge=3, le=6)]]
    """Sizes of larger groups: all combinations of this many patterns."""


@dataclass(frozen=True)
class Shared:
    """The result of a group."""

    score: float | None
    """None if no job in it can gain."""
    bound: float | None
    """Upper bound on the long-run score of every policy."""


Shares = dict[Sharing, dict[Group, list[Shared]]]
"""Results by policy and group, one per seed."""


def run(task: Task[Parameters]) -> Result:
    """Pairs in their order, larger groups in any order."""
    given = task.parameters
    number = range(len(given.data.patterns))
    pairs = list(product(number, repeat=2))
    larger = {size: list(combinations_with_replacement(number, size)) for size in given.sizes}
    shares: Shares = {policy: {} for policy in POLICIES}
    # A rotated pair is another pair of the list, and a group rotated often enough is itself.
    once: dict[tuple[Sharing, Group], Shared] = {}
    with ThreadPoolExecutor(machine.cores()) as pool:
        for turn, seed in enumerate(task.each_seed()):
            for groups, seconds in [
                (pairs, given.seconds),
                *((each, given.group_seconds) for each in larger.values()),
            ]:
                for policy, by_group in shares.items():
                    task.say(f"seed {seed}: {POLICIES[policy]}, {len(groups[0])} jobs")
                    ordered = [turned(group, turn) for group in groups]
                    new = [group for group in ordered if (policy, group) not in once]
                    asked = [pool.submit(share, given, policy, group, seconds) for group in new]
                    for group, answer in zip(new, asked, strict=True):
                        once[policy, group] = answer.result()
                    for group, order in zip(groups, ordered, strict=True):
                        by_group.setdefault(group, []).append(once[policy, order])
    return Result(
        rows=[*pair_rows(task, shares, pairs), *group_rows(shares, larger, task)],
        data=given.data.words,
        charts=[
            heat_map(given, policy, shares[policy], pairs) for policy in ("mina", "plan", "greedy")
        ],
        tables=[table(shares, {2: pairs, **larger})],
        bounds=bounds(shares, pairs),
    )


def turned(group: Group, turn: int) -> Group:
    """The same jobs, rotated by ``turn``."""
    at = turn % len(group)
    return group[at:] + group[:at]


def share(given: Parameters, policy: Sharing, group: Group, seconds: float) -> Shared:
    """Simulate a group in the core."""
    from olaf._olaf import share_group

    cluster = given.case("first-fit", "none", policy).cluster(given.data, seed=0)
    answer = share_group(
        json.dumps(
            {
                "policy": policy,
                "network": cluster.network.model_dump(),
                "compute_speed_millis": cluster.compute_speed_millis,
                "jobs": [
                    {"pattern": asdict(given.data.patterns[at]), "hosts": given.hosts}
                    for at in group
                ],
                "until": {"ns": round(seconds * 1e9)},
            }
        )
    )
    told = json.loads(answer)
    return Shared(told["score"], told["bound"])


def known(
    groups: Iterable[Group],
    by_group: dict[Group, list[Shared]],
    of: Callable[[Shared], float | None],
) -> list[list[float]]:
    """The average per seed, over all groups with a score."""
    listed = [by_group[group] for group in groups]
    values = [[of(shared) for shared in seed] for seed in zip(*listed, strict=True)]
    kept = [[value for value in seed if value is not None] for seed in values]
    if not all(kept):
        raise RunError(
            "no job can gain by the switches; raise compute_speed or lower bandwidth_gbit"
        )
    return kept


def score_of(shared: Shared) -> float | None:
    """The score of a group."""
    return shared.score


def bound_of(shared: Shared) -> float | None:
    """The bound of a group; at most 1."""
    return shared.bound


def averages(seeds: Sequence[Sequence[float]]) -> Spread:
    """The average of each seed."""
    return Spread.of([statistics.fmean(seed) for seed in seeds])


def good(seeds: Sequence[Sequence[float]]) -> Spread:
    """For each seed, the share of the groups above `GOOD` in %."""
    return Spread.of([100.0 * sum(value > GOOD for value in seed) / len(seed) for seed in seeds])


def pair_rows(task: Task[Parameters], shares: Shares, pairs: Sequence[Group]) -> list[Row]:
    """The paper's average and count, beside every policy's."""
    paper, comparable = task.paper, task.parameters.data.comparable
    rows = []
    for policy, words in POLICIES.items():
        scores = known(pairs, shares[policy], score_of)
        printed = policy == "mina"
        rows += [
            Row(
                quantity="score, average of all pairs", where=words, digits=3,
                paper=paper["average"] if printed else None, ours=averages(scores),
                baseline=Baseline(name="0.5", paper=paper["baseline"], ours=0.5),
                comparable=comparable or not printed,
            ),
            Row(
                quantity=f"pairs with a score above {GOOD:g}", where=words, unit="%", digits=1,
                paper=100.0 * paper["above_95"] / paper["pairs"] if printed else None,
                ours=good(scores), comparable=comparable or not printed,
                note=f"{paper['above_95']} of {paper['pairs']}" if printed and comparable else "",
            ),
            Row(
                quantity="score, worst pair", where=words, digits=3,
                ours=Spread.of([min(seed) for seed in scores]), headline=False,
            ),
        ]  # fmt: skip
    return rows


def group_rows(shares: Shares, larger: dict[int, list[Group]], task: Task[Parameters]) -> list[Row]:
    """Groups of three jobs and more."""
    return [
        Row(
            quantity=f"score, average of all groups of {size}", where=words, digits=3,
            ours=averages(known(groups, shares[policy], score_of)),
        )
        for size, groups in larger.items()
        for policy, words in POLICIES.items()
    ]  # fmt: skip


def heat_map(
    given: Parameters, policy: Sharing, by_group: dict[Group, list[Shared]], pairs: Sequence[Group]
) -> Chart:
    """The paper's matrix."""
    names = given.data.pattern_names()
    cells: dict[int, list[tuple[float, float]]] = {at: [] for at in range(len(names))}
    for first, second in pairs:
        scores = [shared.score for shared in by_group[first, second] if shared.score is not None]
        if scores:
            cells[first].append((float(second), statistics.fmean(scores)))
    return Chart(
        name="" if policy == "mina" else policy, kind="map", x="second job", y="first job",
        title=f"Score of pairs that share a tree: {POLICIES[policy]}",
        ticks=[name.removesuffix("-4") for name in names],
        series=[
            Series(name=name.removesuffix("-4"), points=cells[at]) for at, name in enumerate(names)
        ],
    )  # fmt: skip


def table(shares: Shares, groups: dict[int, list[Group]]) -> Table:
    """By size of the group, with the bound."""
    return Table(
        title="All groups",
        columns=[
            Column(name="jobs", digits=0), Column(name="groups", digits=0), Column(name="sharing"),
            Column(name="average", digits=4), Column(name="lowest", digits=3),
            Column(name=f"above {GOOD:g}, %", digits=1),
            Column(name="bound, average", digits=4), Column(name="lowest bound", digits=3),
        ],
        rows=[
            [
                float(size), float(len(scores[0])), words, averages(scores),
                Spread.of([min(seed) for seed in scores]), good(scores), averages(limits),
                Spread.of([min(seed) for seed in limits]),
            ]
            for size, each in groups.items()
            for policy, words in POLICIES.items()
            for scores, limits in [
                (known(each, shares[policy], score_of), known(each, shares[policy], bound_of))
            ]
        ],
        note="The bound is of the group, whatever the policy.",
    )  # fmt: skip


def bounds(shares: Shares, pairs: Sequence[Group]) -> list[Bound]:
    """The bound on every policy."""
    limits = known(pairs, shares["plan"], bound_of)
    return [
        Bound(
            quantity="score, average of all pairs", value=averages(limits).mean,
            why="Two jobs on one tree never use it for longer than there is time, and what each "
            "gains needs some of it: no policy exceeds the average of the pairs' bounds in the "
            "long run.",
        )
    ]  # fmt: skip
