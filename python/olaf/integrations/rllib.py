"""RLlib: several algorithms train one policy, each with its own environment runners.

    from olaf.integrations.rllib import OlafPPOTorchLearner

    config = PPOConfig().environment("CartPole-v1").learners(
        learner_class=OlafPPOTorchLearner,
        learner_config_dict={"olaf": {"address": "udp://10.0.0.1:5555", "cluster": 0}},
    )

This is for RLlib's new API stack. The learner joins when it is built. It pushes the optimiser's
change from ``apply_gradients``, after every 16 steps (``every``), and at the end of each update.
Then it takes the job's newest model. The optimiser's state stays local.
"""

# mypy checks this file with and without the framework; without it everything of it is Any.
# mypy: disable-error-code="import-untyped,import-not-found,misc,unused-ignore"

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from olaf import extras
from olaf.integrations.member import Member

extras.need("rllib", what="olaf.integrations.rllib")

from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner  # noqa: E402

__all__ = ["OlafLearner", "OlafPPOTorchLearner"]

EVERY = 16
"""Default number of optimiser steps between two exchanges (``every``)."""

EPISODES = 100
"""The reward of a push is the mean over this many last episodes."""

OPEN = 10_000
"""Most unfinished episodes; older ones are forgotten."""


class OlafLearner:
    """Mixin for a ``TorchLearner``: ``class Mine(OlafLearner, PPOTorchLearner): pass``.

    ``learner_config_dict["olaf"]`` holds ``address``, and optionally ``every`` (16), ``job``,
    ``cluster``, ``worker``, ``patience_s``, ``join_timeout_s`` and other arguments of
    `olaf.connect`.
    """

    _olaf_member: Member | None = None
    _olaf_every: int
    _olaf_steps: int
    _olaf_rewards: Rewards

    def build(self) -> None:
        """Build as RLlib does, then join the job and take its model."""
        base: Any = super()
        base.build()
        self._olaf_join()

    def apply_gradients(self, gradients_dict: Any) -> None:
        """Step the optimiser; push the change every ``every`` steps."""
        base: Any = super()
        base.apply_gradients(gradients_dict)
        self._olaf_steps += 1
        if self._olaf_steps >= self._olaf_every:
            self._olaf_exchange()

    def after_gradient_based_update(self, *, timesteps: dict[str, Any]) -> None:
        """Push the rest, so that the environment runners get the job's newest model."""
        base: Any = super()
        base.after_gradient_based_update(timesteps=timesteps)
        if self._olaf_steps:
            self._olaf_exchange()

    def update(self, *given: Any, **named: Any) -> Any:
        """Update as RLlib does; read the episodes' rewards for the pushes."""
        data = named.get("training_data")
        if data is not None and getattr(data, "episodes_refs", None) is not None:
            data.solve_refs()
        self._olaf_rewards.see(getattr(data, "episodes", None) or named.get("episodes") or ())
        base: Any = super()
        return base.update(*given, **named)

    def set_state(self, state: Any) -> None:
        """Load a checkpoint's optimiser and counters; the weights stay the job's."""
        base: Any = super()
        base.set_state(state)
        if self._olaf_member is not None:
            self._olaf_member.return_to_job()
            self._olaf_steps = 0

    def shutdown(self) -> None:
        """Leave the job."""
        if self._olaf_member is not None:
            self._olaf_member.close()
        base: Any = super()
        if hasattr(base, "shutdown"):
            base.shutdown()

    def _olaf_join(self) -> None:
        if self._olaf_member is not None:
            return  # built already
        learner: Any = self
        if learner.config.num_learners > 1:
            raise ValueError(
                f"num_learners = {learner.config.num_learners}: an Olaf learner is one worker; "
                "take 0 or 1, and start the program several times"
            )
        options = dict(_options(learner.config.learner_config_dict))
        self._olaf_every = int(options.pop("every", EVERY))
        if self._olaf_every < 1:
            raise ValueError(f"olaf: every = {self._olaf_every}: must be at least 1 step")
        self._olaf_steps = 0
        self._olaf_rewards = Rewards()
        member = Member(**options)
        parameters = [
            parameter
            for name in sorted(learner.module.keys())
            for parameter in learner.get_parameters(learner.module[name])
        ]
        member.join(parameters)
        self._olaf_member = member

    def _olaf_exchange(self) -> None:
        self._olaf_steps = 0
        if self._olaf_member is not None:
            self._olaf_member.exchange(reward=self._olaf_rewards.mean())


class OlafPPOTorchLearner(OlafLearner, PPOTorchLearner):
    """RLlib's PPO learner as one worker of an Olaf job."""


class Rewards:
    """Mean reward of the episodes that ended last, from RLlib's pieces of episodes."""

    def __init__(self) -> None:
        self._so_far: dict[str, float] = {}
        self._ended: deque[float] = deque(maxlen=EPISODES)

    def see(self, pieces: Iterable[Any]) -> None:
        """Take in pieces of episodes: rewards of ended episodes, and parts of running ones."""
        for piece in pieces:
            total = self._so_far.pop(piece.id_, 0.0) + float(piece.get_return())
            if piece.is_done:
                self._ended.append(total)
            else:
                self._so_far[piece.id_] = total
        while len(self._so_far) > OPEN:
            del self._so_far[next(iter(self._so_far))]

    def mean(self) -> float:
        """The mean; 0 before the first episode ends."""
        return sum(self._ended) / len(self._ended) if self._ended else 0.0


def _options(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    options = settings.get("olaf")
    if not isinstance(options, Mapping) or "address" not in options:
        raise ValueError(
            "learner_config_dict has no address for Olaf: write config.learners(learner_class=.., "
            'learner_config_dict={"olaf": {"address": "udp://HOST:PORT", "cluster": 0}})'
        )
    return options
