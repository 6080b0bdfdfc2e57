"""Makes the learner that a configuration names."""

from __future__ import annotations

from collections.abc import Callable

from olaf.rl.learner import Learner, LearnerConfig


def make_learner(
    config: LearnerConfig, worker: int = 0, clock: Callable[[], float] | None = None
) -> Learner:
    """Make the learner that ``config`` names. Its random numbers come from (config.seed, worker).

    clock: returns seconds, for the times in an ``Iteration``; None uses the process's clock.
    Raises ``LearnerError``, and for an environment its subclass ``UnusableEnvironmentError``; the
    message is for people.
    """
    config.check()
    if config.learner == "torch":
        from olaf.rl.ppo_torch import TorchLearner

        return TorchLearner(config, worker=worker, clock=clock)
    from olaf.rl.ppo_numpy import NumpyLearner

    return NumpyLearner(config, worker=worker, clock=clock)
