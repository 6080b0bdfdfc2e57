"""From a configuration to the learner that it names."""

from __future__ import annotations

from collections.abc import Callable

from olaf.rl.learner import Learner, LearnerConfig


def make_learner(
    config: LearnerConfig, worker: int = 0, clock: Callable[[], float] | None = None
) -> Learner:
    """Make the learner that ``config`` names. Its randomness comes from (config.seed, worker).

    clock: seconds, for the times that an ``Iteration`` reports; None takes the process's own.
    Raises ``LearnerError`` (for an environment its kind ``UnusableEnvironmentError``), whose
    message is for people.
    """
    config.check()
    if config.learner == "torch":
        from olaf.rl.ppo_torch import TorchLearner

        return TorchLearner(config, worker=worker, clock=clock)
    from olaf.rl.ppo_numpy import NumpyLearner

    return NumpyLearner(config, worker=worker, clock=clock)
