"""Real training runs for figures: processes and sockets as with `olaf train`, without a display."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from olaf.drawing.charts import Series
from olaf.errors.outcome import Exit, RunError
from olaf.experiments.catalog import Says
from olaf.jobs.progress import Happening, Progress, Push
from olaf.jobs.rehearsal import rehearse
from olaf.jobs.result import conclude
from olaf.jobs.settings import Settings
from olaf.jobs.training import Training
from olaf.processes.lines import Control

SAY_EVERY_S = 5.0


@dataclass(frozen=True)
class Trained:
    """One run: its result as in run.json, and the last push of every turn."""

    result: dict[str, Any]
    pushes: list[Push]
    rewards: list[tuple[float, float]] = field(default_factory=list)
    """``(seconds since the launch, mean reward of the last episodes)``, a point per report."""

    @property
    def workers(self) -> int:
        """Number of updates."""
        return int(self.result["workers"])

    @property
    def updates_per_s(self) -> float:
        """Updates per second that all workers together pushed."""
        return float(self.result["updates_per_s"] or 0.0)

    def reward_at_end(self, iterations: int) -> float:
        """Mean of the rewards that workers pushed in their last ``iterations`` iterations."""
        last = max(push.iteration for push in self.pushes)
        late = [push.reward for push in self.pushes if push.iteration > last - iterations]
        return sum(late) / len(late)

    def reward_until(self, time_s: float) -> float:
        """Mean reward of the pushes until then, each weighted by the time until the worker's next
        push: the height of the curve over time, not over pushes."""
        total = lasted = 0.0
        for own in self._by_worker().values():
            until = [push.at_s for push in own[1:]] + [time_s]
            for push, end in zip(own, until, strict=True):
                length = min(end, time_s) - push.at_s
                if length > 0:
                    total += push.reward * length
                    lasted += length
        if lasted == 0:
            raise ValueError(f"no worker pushed before {time_s} s")
        return total / lasted

    def curve_by_time(self, points: int, smoothing: int) -> list[tuple[float, float]]:
        """(seconds, mean reward) at evenly spread times, from the last pushes of each worker."""
        end_s = max(push.at_s for push in self.pushes)
        curve = []
        for at in range(1, points + 1):
            now_s = end_s * at / points
            rewards = [
                push.reward
                for own in self._by_worker().values()
                for push in [push for push in own if push.at_s <= now_s][-smoothing:]
            ]
            if rewards:
                curve.append((now_s, sum(rewards) / len(rewards)))
        return curve

    def _by_worker(self) -> dict[int, list[Push]]:
        by_worker: dict[int, list[Push]] = {}
        for push in self.pushes:
            by_worker.setdefault(push.worker, []).append(push)
        return by_worker

    def curve(self, smoothing: int) -> list[tuple[float, float]]:
        """(iteration, mean over workers of the pushed reward), smoothed over ``window``
        iterations."""
        by_iteration: dict[int, list[float]] = {}
        for push in self.pushes:
            by_iteration.setdefault(push.iteration, []).append(push.reward)
        # Slower workers never pushed their last iterations: half of the workers must have.
        whole = [
            k for k, rewards in sorted(by_iteration.items()) if 2 * len(rewards) > self.workers
        ]
        points = []
        for at in whole:
            near = [k for k in range(at - smoothing + 1, at + 1) if k in by_iteration]
            rewards = [reward for k in near for reward in by_iteration[k]]
            points.append((float(at), sum(rewards) / len(rewards)))
        return points


def train_with(settings: Settings, *, name: str, say: Says) -> Trained:
    """Run one job to its end, in the folder of the settings (``train.out``).

    Raises RunError if the run fails, is interrupted, or its accounts do not match.
    """
    settings = rehearse(settings)
    # No signal handler: Ctrl-C raises in the figure's own process, which ends its children.
    outcome = Training(settings, _Quiet(name, say), Control()).run()
    result = conclude(outcome)
    if outcome.kind in ("failed", "interrupted"):
        raise RunError(f"{name}: {outcome.reason}", Exit(outcome.code))
    if not result["fates"]["matches"]:
        raise RunError(f"{name}: the accounts do not match: {result['fates']['discrepancies']}")
    history = [(s.at_s, s.reward) for s in outcome.progress.samples if s.reward is not None]
    return Trained(result, outcome.progress.pushes, history)


def mean_over(pushes: Sequence[Push]) -> float:
    """The mean reward of all pushes."""
    return sum(push.reward for push in pushes) / len(pushes)


class _Quiet:
    """Reports the progress of a run every few seconds, and its errors."""

    def __init__(self, name: str, say: Says) -> None:
        self._name = name
        self._say = say
        self._due = time.monotonic() + SAY_EVERY_S

    def happened(self, happening: Happening) -> None:
        if happening.trouble and not happening.echo:
            self._say(f"{self._name}: {happening.text}")

    def stands(self, progress: Progress, phase: str) -> None:
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + SAY_EVERY_S
        reward = "-" if progress.reward_so_far is None else f"{progress.reward_so_far:.0f}"
        self._say(f"{self._name}: {progress.updates} updates, reward {reward}, {phase}")


def band(name: str, curves: Sequence[Sequence[tuple[float, float]]], **more: Any) -> Series:
    """One line from a curve per seed: mean, lowest and highest where all of them have a value."""
    known = [dict(curve) for curve in curves]
    shared = sorted(set.intersection(*(set(curve) for curve in known)))
    values = [[curve[x] for curve in known] for x in shared]
    return Series(
        name=name,
        points=[(x, round(sum(v) / len(v), 3)) for x, v in zip(shared, values, strict=True)],
        low=[round(min(v), 3) for v in values],
        high=[round(max(v), 3) for v in values],
        **more,
    )
