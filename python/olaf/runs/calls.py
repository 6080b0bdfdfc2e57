"""Functions of the caller that a run calls: ``on_update`` and ``on_evaluation`` of `olaf.train`.

The run has a thread of its own, which only notes what there is to say. The caller's thread makes
the calls while it waits for the run, so a slow function holds nothing up: it gets the newest state
when it has returned.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from olaf.jobs.evaluation import Evaluation, Played, best_of
from olaf.jobs.progress import Happening, Progress
from olaf.processes.lines import Control

MOST = 1000
"""Most evaluations that wait for their call."""


@dataclass(frozen=True)
class TrainUpdate:
    """The state of a run while it trains, of all workers together."""

    seconds: float
    """Seconds since the run began, without the time between its sessions."""
    steps: int
    """Environment steps."""
    updates: int
    version: int
    """Version of the model."""
    episodes: int
    """Training episodes that have ended."""
    reward: float | None
    """Mean reward of the last training episodes (`train.reward_window`, or as many as there are);
    None before the first."""
    losses: Mapping[str, float] = field(default_factory=dict)
    """The learners' numbers since the update before (`olaf.rl.learner.Iteration.losses`); empty if
    there are none."""


@dataclass(frozen=True)
class TrainEvaluation:
    """An evaluation of the model (`train.evaluate_every`)."""

    seconds: float
    steps: int
    """Environment steps of the run when the model was taken."""
    updates: int
    version: int
    """Version of the model."""
    greedy: Played
    """``mean``, ``std``, ``min``, ``max`` of the rewards, ``episodes``, ``steps_mean``, ``cut``."""
    sampled: Played
    """The same with sampled actions."""
    is_best: bool
    """True if no earlier evaluation was as good; the model is then kept as best.npz."""


OnUpdate = Callable[[TrainUpdate], object]
OnEvaluation = Callable[[TrainEvaluation], object]


class Calls:
    """Notes what a run has to say, as an observer; says it in the thread that calls `wait`.

    A function that returns False ends the run in order. So does an exception of a function; `error`
    keeps it. After either there are no more calls.
    """

    def __init__(
        self, on_update: OnUpdate | None, on_evaluation: OnEvaluation | None, control: Control
    ) -> None:
        self._on_update, self._on_evaluation = on_update, on_evaluation
        self._control = control
        self._awake = threading.Event()
        self._ended = False
        self._newest: TrainUpdate | None = None
        self._evaluations: deque[TrainEvaluation] = deque(maxlen=MOST)
        self._progress: Progress | None = None
        self._samples = self._told = 0
        self._is_over = False
        self.error: BaseException | None = None

    # In the run's thread.

    def happened(self, happening: Happening) -> None:
        """Do nothing: the functions get states and evaluations."""

    def stands(self, progress: Progress, phase: str) -> None:
        """Note a new sample, and new evaluations."""
        if self._progress is None:
            self._progress = progress
            self._samples = len(progress.earlier.samples)
            self._told = len(progress.earlier.evaluations)
        # The baseline of train.against has a progress of its own, and no calls.
        if progress is not self._progress or progress.first_update_s is None:
            return
        is_new = len(progress.samples) > self._samples or len(progress.evaluations) > self._told
        if len(progress.samples) > self._samples:
            self._samples = len(progress.samples)
            self._newest = _state(progress)
        for number in range(self._told, len(progress.evaluations)):
            self._evaluations.append(_evaluation(progress.evaluations, number))
        self._told = len(progress.evaluations)
        if is_new:
            self._awake.set()

    def end(self) -> None:
        """The run has ended: `wait` makes the last calls and returns."""
        self._ended = True
        self._awake.set()

    # In the caller's thread.

    def wait(self) -> None:
        """Make the calls until the run has ended.

        Raises nothing but KeyboardInterrupt, SystemExit and the like, at once.
        """
        while True:
            self._awake.wait()
            self._awake.clear()
            ended = self._ended
            self._make()
            if ended:
                return

    def _make(self) -> None:
        while self._evaluations and not self._is_over:
            evaluation = self._evaluations.popleft()
            if self._on_evaluation is not None:
                self._call("on_evaluation", self._on_evaluation, evaluation)
        newest, self._newest = self._newest, None
        if newest is not None and self._on_update is not None and not self._is_over:
            self._call("on_update", self._on_update, newest)

    def _call(self, name: str, function: Callable[..., object], told: object) -> None:
        try:
            goes_on = function(told) is not False
        except Exception as error:
            self.error, self._is_over = error, True
            self._control.stop(f"{type(error).__name__} in {name}")
            return
        if not goes_on:
            self._is_over = True
            self._control.conclude(f"{name} returned False")


def stop_when_stalled(updates: int, *, min_delta: float = 0.0) -> Callable[[TrainEvaluation], bool]:
    """An ``on_evaluation`` that ends a run whose evaluations no longer rise. ::

        olaf.train(.., evaluate_every=500, on_evaluation=olaf.stop_when_stalled(3000))

    updates: end the run if the greedy mean has not risen for so many updates. min_delta: a rise
    counts if it is larger than this.
    """
    best: float | None = None
    risen_at = 0

    def goes_on(evaluation: TrainEvaluation) -> bool:
        nonlocal best, risen_at
        if best is None or evaluation.greedy.mean > best + min_delta:
            best, risen_at = evaluation.greedy.mean, evaluation.updates
        return evaluation.updates - risen_at < updates

    return goes_on


def _state(progress: Progress) -> TrainUpdate:
    sample = progress.samples[-1]
    return TrainUpdate(
        seconds=sample.at_s,
        steps=sample.steps,
        updates=sample.updates,
        version=sample.version,
        episodes=len(progress.episodes),
        reward=progress.reward_so_far,
        losses=dict(sample.losses),
    )


def _evaluation(evaluations: list[Evaluation], number: int) -> TrainEvaluation:
    one = evaluations[number]
    return TrainEvaluation(
        seconds=one.at_s,
        steps=one.steps,
        updates=one.updates,
        version=one.version,
        greedy=one.greedy,
        sampled=one.sampled,
        is_best=best_of(evaluations[: number + 1]) is one,
    )


def evaluations_of(evaluations: list[Evaluation]) -> list[TrainEvaluation]:
    """All evaluations of a run, as ``on_evaluation`` gets them."""
    return [_evaluation(evaluations, number) for number in range(len(evaluations))]
