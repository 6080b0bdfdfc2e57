"""Makes the learner that a configuration names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from olaf.rl.learner import Learner, LearnerConfig

if TYPE_CHECKING:
    from olaf.rl.ppo_numpy import NumpyLearner


def make_learner(
    config: LearnerConfig, worker: int = 0, clock: Callable[[], float] | None = None
) -> Learner:
    """Make the learner that ``config`` names. Its random numbers come from (config.seed, worker).

    clock: returns seconds, for the times in an ``Iteration``; None uses the process's clock.
    Raises ``LearnerError``, and for an environment its subclass ``UnusableEnvironmentError``; the
    message is for people.
    """
    return _made(resolved(config), worker, clock)


def resolved(config: LearnerConfig) -> LearnerConfig:
    """The checked configuration, with what ``normalise`` needs measured in the environment.

    Raises ``LearnerError``.
    """
    config.check()
    if config.is_resolved:
        return config
    from olaf.rl.moments import resolve

    # Worker 1 has other numbers, which do not count here, and leaves it to worker 0 to warn.
    trial = _made(config.replaced(normalise="off"), 1, None)
    try:
        return resolve(config, trial)
    finally:
        trial.close()


def _made(config: LearnerConfig, worker: int, clock: Callable[[], float] | None) -> NumpyLearner:
    if config.learner == "torch":
        from olaf.rl.ppo_torch import TorchLearner

        if config.recurrent == "lstm":
            from olaf.rl.ppo_recurrent import RecurrentLearner

            return RecurrentLearner(config, worker=worker, clock=clock)
        return TorchLearner(config, worker=worker, clock=clock)
    from olaf.rl.ppo_numpy import NumpyLearner

    return NumpyLearner(config, worker=worker, clock=clock)
