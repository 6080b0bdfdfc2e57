"""Training runs for figures in virtual time: real learners, switch and server, recorded compute.

A run depends on its settings and seed alone. What else the machine does changes when it is done,
never what it comes to; several processes share the runs of a figure.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from olaf.errors.outcome import Exit, RunError
from olaf.experiments.catalog import Says
from olaf.experiments.training import Trained
from olaf.jobs.progress import Push
from olaf.jobs.reading import read_settings
from olaf.jobs.rehearsal import rehearse
from olaf.jobs.settings import Settings
from olaf.processes import machine
from olaf.virtual.plan import Plan, Uplink, learner_of, simulable
from olaf.virtual.running import NEVER, time_turns

if TYPE_CHECKING:
    from olaf.rl.learner import LearnerConfig
    from olaf.rl.recorded import Recorded
    from olaf.rl.virtual_job import LocalJob

LEFT_OUT = (
    "Virtual time with recorded compute: workers, switch and server are the real ones, the "
    "learners learn, and every datagram takes its time on simulated links; how long a turn takes "
    "is drawn from recorded turns of one worker on an idle core. This leaves out how processes, "
    "cores and memory get in each other's way, the operating system's delays, and the time that "
    "the switch and the server compute. In exchange a run does not depend on what else the "
    "machine does, and its workers have a machine each."
)
"""The sentence of every page that such runs made."""

PROCESSES = 2
TURNS = 20
"""Number of turns to time for a learner without recorded turns in the package."""


@dataclass(frozen=True)
class Job:
    """One run to make."""

    name: str
    tables: Mapping[str, Mapping[str, Any]]
    """A configuration as `olaf config` prints it; the run ends after ``train.updates`` turns."""
    uplink_bps: float | None = None
    """Bits a second of UDP payload; None: no limit."""
    speeds: float = 1.0
    """The fastest machine's speed divided by the slowest's; the mean speed is 1."""


def train_all(jobs: Sequence[Job], say: Says) -> list[Trained]:
    """Make all runs, in the order given; as many at once as there are cores, at most two.

    Raises RunError where a run cannot be made.
    """
    plans = [_plan(job, say) for job in jobs]
    processes = min(PROCESSES, machine.cores(), len(jobs))
    if processes < 2:
        return [_train(plan) for plan in plans]
    done = 0
    # Not forked: the parent may have threads, and the algebra library was loaded with its own.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(_train, plan): job for plan, job in zip(plans, jobs, strict=True)}
        for one in as_completed(waiting):
            one.result()
            done += 1
            say(f"{waiting[one].name} is done, {done} of {len(jobs)} runs", done / len(jobs))
        return [one.result() for one in waiting]


def train(job: Job) -> Trained:
    """Make one run. Its result has the keys of run.json that the figures read."""
    return _train(_plan(job, lambda text, share=None: None))


def update_bits(one: Trained) -> int:
    """Bits of UDP payload that an update takes on the uplink."""
    from olaf._olaf import update_bytes

    return 8 * update_bytes(int(one.result["model"]["parameters"]))


def _plan(job: Job, say: Says) -> Plan:
    options = {
        f"{table}.{key}": (job.name, value)
        for table, keys in job.tables.items()
        for key, value in keys.items()
    }
    settings = simulable(rehearse(read_settings(None, options)))
    bps = job.uplink_bps
    return Plan(
        settings=settings,
        # One record for all runs of a learner, whatever their seed.
        turns=_turns(learner_of(settings, 0), say),
        until_reward=math.inf,
        step_limit=NEVER,
        uplink=Uplink() if bps is None else Uplink("rate", bps),
        speeds=job.speeds,
    )


_timed: dict[LearnerConfig, Recorded] = {}


def _turns(learner: LearnerConfig, say: Says) -> Recorded:
    """The package's recorded turns, or where it has none for this learner, some timed now."""
    from olaf.rl.recorded import reread, shipped

    if learner not in _timed:
        known = shipped(learner)
        if known is None:
            made = time_turns(learner, TURNS, say)
            known = reread(learner, made, made["environments"][learner.environment])
        _timed[learner] = known
    return _timed[learner]


def _train(plan: Plan) -> Trained:
    from olaf.rl.virtual_job import LocalJob

    train = plan.settings.train
    assert train.updates is not None, "figures end a run by the turns of all workers"
    local = LocalJob(plan.job(train.workers, train.seed))
    with closing(local):
        points = list(itertools.islice(local.progress(sys.maxsize), train.updates))
    turns = [
        Push(point.time_s, point.progress.worker, point.progress.turns, point.progress.reward)
        for point in points
    ]
    # A turn has up to as many updates as the learner has passes.
    updates = sum(len(point.progress.pushes_at_s) for point in points)
    return Trained(_result(local, plan.settings, updates), turns)


def _parameters(local: LocalJob) -> int:
    model = local.job.model()
    if model is None:
        raise RunError("a run in virtual time ended without a model", Exit.FAILED)
    return int(model[1].size)


def _result(local: LocalJob, settings: Settings, updates: int) -> dict[str, Any]:
    stats = json.loads(local.job.stats())
    (served,) = stats["server"]["jobs"]
    switch = stats["switch"]
    ages = [one["aom_mean_ns"] for one in served["clusters"] if one["aom_mean_ns"] is not None]
    dropped = sum(switch["fates"]["dropped"].values())
    time_s = local.now()
    return {
        "workers": settings.train.workers,
        "time_s": time_s,
        "updates_per_s": updates / time_s,
        "loss": dropped / switch["received"] if switch["received"] else 0.0,
        "received": switch["received"],
        "fates": switch["fates"],
        "age_of_model": {"mean_s": sum(ages) / len(ages) / 1e9 if ages else None},
        "staleness": {"mean": served["staleness_mean"]},
        "fairness": served["fairness"],
        "aggregate": {
            "collections": served["collections"],
            "rounds_short": served["rounds_short"],
        },
        "model": {"parameters": _parameters(local)},
    }
