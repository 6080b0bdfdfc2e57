"""``python -m olaf.verify.ask``: asks the verifier a switch's question.

Reads one JSON object from stdin: ``file`` (the policy, a SPEC.toml whose clusters have ``ids``),
``newcomer`` and ``running`` (clusters as [job, cluster], their numbers on the wire) and ``until_s``
(Unix time). Writes ``answer`` (admit, refuse or undecided) and ``reason`` to stdout.
`olaf.jobs.admission` starts it, and kills it at the time limit.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from olaf.errors.outcome import Exit, RunError
from olaf.errors.usage import ConfigurationError
from olaf.verify.instance import Kind
from olaf.verify.reading import read
from olaf.verify.spec import ClusterSpec, ObjectiveSpec, Spec, names_of

Wire = tuple[int, int]
"""A cluster as job and cluster id."""

SPARE_SHARE = 0.3
"""Seconds kept in reserve: on a busy machine provers need a second to stop, and a refusal must not
be lost because the search for a suggestion took too long."""


class Admission(Protocol):
    """The verifier's answer about a newcomer."""

    @property
    def answer(self) -> str:
        """``admit``, ``refuse`` or ``undecided``."""

    @property
    def reason(self) -> str:
        """The reason, and what would fit."""


class Admits(Protocol):
    """A function that decides, from the newcomer, the present clusters, and the time."""

    def __call__(self, newcomer: ClusterSpec, running: Spec, *, timeout_s: float) -> Admission:
        """Whether the newcomer fits."""


@dataclass(frozen=True)
class Case:
    """A question in the verifier's terms."""

    newcomer: ClusterSpec
    running: Spec


@dataclass(frozen=True)
class Known:
    """An answer that needs no proof."""

    answer: str
    reason: str


def read_policy(file: Path) -> Spec:
    """Read a policy. Raises ConfigurationError if it cannot answer any question."""
    spec = read(file)
    ids = [cluster for group in spec.cluster for cluster in group.ids]
    twice = sorted({cluster for cluster in ids if ids.count(cluster) > 1})
    if twice:
        raise ConfigurationError(f"{file}: cluster.ids {twice[0]} is listed twice: list it once")
    if spec.newcomer and spec.newcomer.name in {group.name for group in spec.cluster}:
        raise ConfigurationError(
            f"{file}: newcomer and a cluster are both named {spec.newcomer.name}: rename one"
        )
    if not ids and spec.newcomer is None:
        raise ConfigurationError(
            f"{file}: no cluster could join by it: give clusters their ids = [..] on the wire, or "
            "add a table [newcomer] for clusters that are not listed"
        )
    if not spec.objective:
        raise ConfigurationError(
            f"{file}: has no [[objective]]: say what must hold once a cluster has joined"
        )
    return spec


def case_of(spec: Spec, newcomer: Wire, running: Iterable[Wire], file: str) -> Case | Known:
    """The policy with only the present clusters, and the cluster that wants to join."""
    profile = _profile(spec, newcomer)
    if profile is None:
        return Known(
            "refuse",
            f"{file} does not list cluster {newcomer[1]}: add it to the ids of a like cluster, or "
            "add [newcomer] for all that are not listed",
        )
    here: dict[str, int] = {}
    for one in running:
        likes = _profile(spec, one)
        if likes is None:
            return Known(
                "undecided",
                f"cluster {one[1]} of job {one[0]} is here, but {file} does not list it: add it to "
                "the ids of a like cluster",
            )
        here[likes.name] = here.get(likes.name, 0) + 1
    groups = [*spec.cluster, *([spec.newcomer] if spec.newcomer else [])]
    clusters = [
        group.model_copy(update={"count": here[group.name]})
        for group in groups
        if group.name in here
    ]
    taken = {name for group in clusters for name in (group.name, *names_of(group))}
    named = profile.model_copy(update={"name": _free_name(newcomer, taken), "count": 1})
    objectives = _that_apply(spec.objective, clusters, profile.name, named.name)
    if not objectives:
        return Known("admit", "no objective is about it and the present clusters")
    # Not validated: objectives name the newcomer, which is not among the clusters yet.
    update = {"cluster": clusters, "objective": objectives, "newcomer": None}
    return Case(named, spec.model_copy(update=update))


def answer(case: Case | Known, timeout_s: float, admits: Callable[[], Admits]) -> Known:
    """A known answer, or the verifier's."""
    if isinstance(case, Known):
        return case
    said = admits()(case.newcomer, case.running, timeout_s=timeout_s)
    return Known(str(said.answer), said.reason)


def _profile(spec: Spec, cluster: Wire) -> ClusterSpec | None:
    """The cluster in the policy with this id; ids are the same in every job."""
    listed = (group for group in spec.cluster if cluster[1] in group.ids)
    return next(listed, spec.newcomer)


def _free_name(cluster: Wire, taken: set[str]) -> str:
    name = f"cluster-{cluster[1]}"
    while name in taken:
        name += "'"
    return name


def _that_apply(
    objectives: Iterable[ObjectiveSpec], clusters: list[ClusterSpec], profile: str, name: str
) -> list[ObjectiveSpec]:
    """Objectives of the present clusters and the newcomer, which counts to its group."""
    groups = {group.name: names_of(group) for group in clusters}
    names = {one for group in groups.values() for one in group}
    kept = []
    for objective in objectives:
        wanted = [one for one in objective.clusters if one in groups or one in names]
        if profile in objective.clusters:
            wanted.append(name)
        if objective.clusters and not wanted:
            continue
        each = {one for want in wanted for one in groups.get(want, [want])} or names | {name}
        if objective.kind in (Kind.FAIR_PEAK, Kind.FAIR_AGE) and len(each) < 2:
            continue
        kept.append(objective.model_copy(update={"clusters": wanted}))
    return kept


def _verifier() -> Admits:
    """The verifier's admission control; it takes a second to import, so only on demand."""
    from olaf.verify.admission import admit

    return admit


def main() -> int:
    """Answer the question on stdin."""
    # Trainings on this machine have priority.
    os.nice(5)
    told: dict[str, Any] = json.load(sys.stdin)
    file = told["file"]
    try:
        spec = read_policy(Path(file))
        job, cluster = told["newcomer"]
        running = [(int(job), int(cluster)) for job, cluster in told["running"]]
        case = case_of(spec, (job, cluster), running, Path(file).name)
        left_s = max(told["until_s"] - time.time(), 0.1)
        known = answer(case, left_s * (1 - SPARE_SHARE), _verifier)
    except RunError as error:
        sys.stderr.write(f"{' '.join(str(error).split())}\n")
        return int(Exit.USAGE)
    print(json.dumps({"answer": known.answer, "reason": known.reason}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
