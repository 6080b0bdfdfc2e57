"""Runs the same training once per arm and seed. Arms are queues of a switch, and two baselines.

`push-less-often` is FIFO whose workers push the sum of k turns; k is chosen so that it uses no more
of the uplink than our queue did. `tcp` is a plain TCP parameter server without a switch, behind a
link of the same rate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from olaf.errors.outcome import Exit, RunError
from olaf.jobs.settings import LearnerSettings, Settings
from olaf.jobs.tcp_settings import check_transport

Result = Mapping[str, Any]

PUSH_LESS_OFTEN = "push-less-often"
TCP = "tcp"
PLAIN_QUEUES = ("fifo",)
"""Queues that are not ours."""


@dataclass(frozen=True)
class Planned:
    """One run of a comparison."""

    name: str
    arm: str
    settings: Settings


def arm_of(result: Result) -> str:
    """The arm of a result; a record from before there were arms has only its queue."""
    return str(result.get("arm") or result["queue"])


def arms_of(settings: Settings) -> list[str]:
    """The arms in the order in which they run: queues, then baselines.

    Raises RunError for an impossible baseline that the user asked for. An impossible default
    baseline is left out.
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
    """Our queue that sets the uplink use of `push-less-often`."""
    ours = [queue for queue in settings.compare.queues if queue not in PLAIN_QUEUES]
    return "olaf" if "olaf" in ours else next(iter(ours), None)


def plan(settings: Settings, out: Path, results: Sequence[Result]) -> Iterator[Planned]:
    """All runs, seed by seed, so that an interrupted comparison still compares; folders in ``out``.

    results: of the finished runs. The caller keeps adding to them: later runs may depend on them.
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
        # Time ends a run, not the number of updates: the arms push at different rates.
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
    """The number of turns per push at which as many updates cross the uplink as in this result.

    Rounded up, so that the baseline never sends more bytes than that run. Turns that are whole
    episodes have no fixed length: there each push counts as one turn.
    """
    turns, departed = result["fates"]["pushed"], carried(result)
    if not learner.episodes_per_update:
        turns = result["env_steps"] / learner.steps_per_update
    return max(math.ceil(turns / departed), 1) if departed else 1


def carried(result: Result) -> int:
    """Updates, merged or not, that crossed the uplink (a model of n segments counts n each)."""
    switches = result["switches"]
    if switches:
        return int(switches[-1]["departures"])
    fates = result["fates"]["rows"]
    return sum(row["count"] for row in fates if row["fate"].startswith("delivered"))


def _clusters(settings: Settings) -> int:
    """The number of clusters that was set; by default, no more than there are workers."""
    clusters = settings.compare.clusters
    if "clusters" in settings.compare.model_fields_set:
        return clusters
    return min(clusters, settings.train.workers)
