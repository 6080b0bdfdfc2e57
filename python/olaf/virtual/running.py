"""Runs of a plan, in separate processes."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel, ConfigDict

from olaf.drawing.inline import thinned
from olaf.errors.outcome import Exit, RunError
from olaf.jobs.accounts import Accounts, settle
from olaf.jobs.incarnation import Incarnation
from olaf.rl import process_environment
from olaf.rl.learner import LearnerConfig, LearnerError
from olaf.rl.recorded import record
from olaf.rl.virtual_job import Alone, LocalJob, Outcome
from olaf.virtual.plan import ALONE, Plan

DRAIN_NS = 5_000_000_000
"""Virtual seconds after the end in which remaining datagrams arrive, to settle the accounts."""
POINTS = 400
"""Number of points of a curve that are kept."""
SAY_EVERY_S = 5.0
NEVER = 2**62


class Run(BaseModel):
    """The result of one run. Times are virtual."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    machines: int
    """0: one machine without a network."""
    seed: int
    reached: bool
    time_s: float
    """Seconds until the target reward, or until the run was stopped."""
    steps: int
    """Environment steps of all machines until then."""
    updates: int
    reward: float
    """Mean reward of the last 100 episodes."""
    staleness_mean: float | None = None
    staleness_max: int | None = None
    age_of_model_s: float | None = None
    """Mean over the clusters of each cluster's time-average age."""
    merged: float | None = None
    """Share of the pushed contributions that reached the server merged with others."""
    replaced: float | None = None
    """Share of them that a newer one of the same worker replaced, in the queue or before it."""
    lost: float | None = None
    """Share of them that the queue dropped or a link lost."""
    uplink_bps: int | None = None
    """Bandwidth of the uplink in bit/s; None: nothing ever waits."""
    fates: dict[str, Any] | None = None
    """As in run.json: every contribution has a fate."""
    curve: list[tuple[int, float, float]]
    """(environment steps of all machines, seconds, mean reward of the last 100 episodes)."""


class _Shared:
    """State that the processes of a pool share."""

    steps: Any = None
    """Environment steps of all runs so far."""


def _share(steps: Any) -> None:
    _Shared.steps = steps


def _counted(plan: Plan, machines: int, seed: int) -> Run:
    """One run in a process of the pool; its steps are counted as it goes on."""
    before = 0

    def count(steps: int) -> None:
        nonlocal before
        with _Shared.steps.get_lock():
            _Shared.steps.value += steps - before
        before = steps

    return run_one(plan, machines, seed, count)


def run_one(
    plan: Plan, machines: int, seed: int, on_steps: Callable[[int], None] = lambda steps: None
) -> Run:
    """Run one job, or one machine alone, to the target reward or the limit.

    on_steps: called after each turn with the environment steps of all machines.
    """
    config = plan.job(machines, seed)
    limits: dict[str, Any] = {
        "until_reward": plan.until_reward,
        "step_limit": plan.step_limit,
        "on_steps": on_steps,
    }
    if machines == ALONE:
        outcome = Alone(config).run(NEVER, **limits)
        return Run(machines=ALONE, seed=seed, **_course(outcome))
    job = LocalJob(config)
    outcome = job.run(NEVER, **limits)
    (served,) = outcome.stats["server"]["jobs"]
    ages = [c["aom_mean_ns"] for c in served["clusters"] if c["aom_mean_ns"] is not None]
    job.job.run_until(job.job.now_ns + DRAIN_NS)
    accounts = settled(json.loads(job.job.stats()))
    pushed = max(accounts.pushed, 1)
    return Run(
        machines=machines,
        seed=seed,
        staleness_mean=served["staleness_mean"],
        staleness_max=served["staleness_max"],
        age_of_model_s=sum(ages) / len(ages) / 1e9 if ages else None,
        merged=accounts.count("delivered merged") / pushed,
        replaced=sum(map(accounts.count, ("replaced", "replaced at worker"))) / pushed,
        lost=accounts.lost / pushed,
        uplink_bps=config.switch.get("uplink_bps"),
        fates=accounts.to_json(),
        **_course(outcome),
    )


def _course(outcome: Outcome) -> dict[str, Any]:
    reached = outcome.time_to_s is not None
    return {
        "reached": reached,
        "time_s": outcome.time_to_s if reached else outcome.time_s,
        "steps": outcome.steps_to if reached else outcome.steps,
        "updates": outcome.updates,
        "reward": outcome.reward,
        "curve": list(thinned(outcome.curve, POINTS)),
    }


def settled(stats: dict[str, Any]) -> Accounts:
    """The accounts of a virtual job, from its parties' counters."""

    def last(name: str, counted: dict[str, Any]) -> Incarnation:
        return Incarnation(name, 1, counted, final=True)

    workers = [last(f"worker {number}", one) for number, one in enumerate(stats["workers"])]
    return settle(workers, [last("switch", stats["switch"])], [last("server", stats["server"])])


def run_all(
    plan: Plan,
    machines: Sequence[int],
    seeds: Sequence[int],
    jobs: int,
    say: Callable[[str], None],
) -> list[Run]:
    """Run every number of machines with every seed, ``jobs`` at a time; return them in order.

    Raises RunError for an invalid learner.
    """
    tasks = [(count, seed) for count in machines for seed in seeds]
    # The longest first, so that no long run starts last.
    order = sorted(tasks, key=lambda task: (-task[0], task[1]))
    begin = time.monotonic()
    done: dict[tuple[int, int], Run] = {}
    context = multiprocessing.get_context("spawn")
    steps = context.Value("q", 0)
    with _pool(jobs, initializer=_share, initargs=(steps,)) as pool:
        waiting: dict[Future[Run], tuple[int, int]] = {
            pool.submit(_counted, plan, *task): task for task in order
        }
        while waiting:
            over, _ = wait(waiting, timeout=SAY_EVERY_S, return_when=FIRST_COMPLETED)
            elapsed = f"{time.monotonic() - begin:7.1f} s  "
            for future in over:
                task = waiting.pop(future)
                done[task] = run = future.result()
                count = f"{len(done)} of {len(tasks)} runs"
                say(f"{elapsed}{count}: {named(run.machines)}, seed {run.seed}: {_came_to(run)}")
            if not over:
                taken = f"{steps.value:,} environment steps"
                say(f"{elapsed}{len(done)} of {len(tasks)} runs ended, {taken} so far")
    return [done[task] for task in tasks]


def named(machines: int) -> str:
    """``1 machine, no network``, ``4 machines``."""
    if machines == ALONE:
        return "1 machine, no network"
    return f"{machines} machine{'s' if machines > 1 else ''}"


def _came_to(run: Run) -> str:
    found = "reached" if run.reached else f"not reached (at {run.reward:.1f})"
    return f"{found} after {run.time_s:.1f} virtual s, {run.steps:,} steps"


def time_turns(config: LearnerConfig, turns: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Record turns of a learner that has none in the package. Raises RunError as `run_all`."""
    say(f"{config.environment}: timing {turns} turns of this learner, which has no record")
    with _pool(1) as pool:
        return pool.submit(record, [config], turns).result()


@contextmanager
def _pool(jobs: int, **more: Any) -> Iterator[ProcessPoolExecutor]:
    """Processes with one thread each; an interrupt or an error does not wait for their work."""
    before = {name: os.environ.get(name) for name in process_environment()}
    os.environ.update(process_environment())
    pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"), **more)
    try:
        yield pool
    except BaseException as error:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        if isinstance(error, LearnerError):
            raise RunError(str(error), Exit.USAGE) from None
        raise
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
    pool.shutdown()
