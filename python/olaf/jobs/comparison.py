"""The same training once with each arm and seed: the queues of a switch, and two baselines.

The baselines are what a sceptic would do instead. `push-less-often` is FIFO whose workers push the
summed change of k turns, with k so that it needs no more of the uplink than our queue took.
`tcp` is a plain TCP parameter server without a switch, behind a link of the same rate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from olaf.jobs.settings import LearnerSettings, Settings
from olaf.jobs.tcp_settings import check_transport
from olaf.outcome import Exit, RunError

Result = Mapping[str, Any]

PUSH_LESS_OFTEN = "push-less-often"
TCP = "tcp"
PLAIN_QUEUES = ("fifo",)
"""Queues of a switch that are no work of ours."""


@dataclass(frozen=True)
class Planned:
    """One run of a comparison."""

    name: str
    arm: str
    settings: Settings


def arm_of(result: Result) -> str:
    """The arm that a result is of; that of a record of before there were arms is its queue."""
    return str(result.get("arm") or result["queue"])


def arms_of(settings: Settings) -> list[str]:
    """The arms in the order they are run: queues, then baselines.

    Raises RunError for a baseline that was asked for and cannot be; one that is only the default is
    left out.
    """
    compare = settings.compare
    arms: list[str] = list(compare.queues)
    asked = "baselines" in compare.model_fields_set
    for baseline in compare.baselines:
        why = _obstacle(settings, baseline)
        if why is None:
            arms.append(baseline)
        elif asked:
            raise RunError(f"--baselines {baseline}: {why}", Exit.USAGE)
    return arms


def _obstacle(settings: Settings, baseline: str) -> str | None:
    if baseline == TCP:
        try:
            check_transport(_over_tcp(settings))
        except ValueError as error:
            return str(error)
    elif settings.compare.turns_per_push is None and _model_of(settings) is None:
        return (
            "its pushes are as many as OLAF's departures: add olaf to --queues, or give "
            "--turns-per-push"
        )
    return None


def _model_of(settings: Settings) -> str | None:
    """The queue of ours whose use of the uplink `push-less-often` is given."""
    ours = [queue for queue in settings.compare.queues if queue not in PLAIN_QUEUES]
    return "olaf" if "olaf" in ours else next(iter(ours), None)


def plan(settings: Settings, out: Path, results: Sequence[Result]) -> Iterator[Planned]:
    """All runs, seed by seed, so that a comparison cut short still compares; folders in ``out``.

    results: of the runs so far, which the caller goes on filling: a later run may depend on them.
    """
    for seed in settings.compare.seeds:
        for arm in arms_of(settings):
            yield _planned(settings, out, arm, seed, results)


def _planned(
    settings: Settings, out: Path, arm: str, seed: int, results: Sequence[Result]
) -> Planned:
    compare = settings.compare
    name = f"{arm}-seed{seed}"
    train: dict[str, Any] = {
        "seed": seed,
        "clusters": _clusters(settings),
        "time_limit_s": compare.time_limit_s,
        "out": str(out / name),
        "against": None,
    }
    if "updates" not in settings.train.model_fields_set:
        # Time ends a run, not the number of updates: the arms do not push alike.
        train["updates"] = None
    switch: dict[str, Any] = {"slots": compare.slots}
    if arm in compare.queues:
        switch["queue"] = arm
    else:
        switch["queue"] = "fifo"
    if settings.switch.credits is None:
        switch["uplink"] = compare.uplink
    worker: dict[str, Any] = {}
    if arm == PUSH_LESS_OFTEN:
        worker["push_every"] = "turn"
        worker["turns_per_push"] = compare.turns_per_push or _turns(settings, seed, results)
    made = settings.model_copy(
        update={
            "train": settings.train.model_copy(update=train),
            "switch": settings.switch.model_copy(update=switch),
            "worker": settings.worker.model_copy(update=worker),
        }
    )
    return Planned(name, arm, _over_tcp(made) if arm == TCP else made)


def _over_tcp(settings: Settings) -> Settings:
    train = settings.train.model_copy(update={"transport": "tcp"})
    return settings.model_copy(update={"train": train})


def _turns(settings: Settings, seed: int, results: Sequence[Result]) -> int:
    model = _model_of(settings)
    of_seed = [one for one in results if arm_of(one) == model and one["seed"] == seed]
    if not of_seed:
        raise RunError(f"{PUSH_LESS_OFTEN}: the run of {model} with seed {seed} is not there")
    return turns_per_push(of_seed[-1], settings.learner)


def turns_per_push(result: Result, learner: LearnerSettings) -> int:
    """The turns to push at once, so that as many updates cross the uplink as crossed it here.

    Rounded up: not more bytes than those of the run it is compared with. Turns of whole episodes
    have no fixed length: there each push counts as one.
    """
    turns, departed = result["fates"]["pushed"], carried(result)
    if not learner.episodes_per_update:
        turns = result["env_steps"] / learner.steps_per_update
    return max(math.ceil(turns / departed), 1) if departed else 1


def carried(result: Result) -> int:
    """Updates, merged or not, that crossed the uplink (of a model of n segments: n each)."""
    switches = result["switches"]
    if switches:
        return int(switches[-1]["departures"])
    fates = result["fates"]["rows"]
    return sum(row["count"] for row in fates if row["fate"].startswith("delivered"))


def _clusters(settings: Settings) -> int:
    """As many as were asked for; where nobody asked, no more than there are workers."""
    clusters = settings.compare.clusters
    if "clusters" in settings.compare.model_fields_set:
        return clusters
    return min(clusters, settings.train.workers)
