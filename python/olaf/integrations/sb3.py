"""Stable-Baselines3: several processes train one policy, each with its own environments.

    from olaf.integrations.sb3 import OlafCallback

    model = PPO("MlpPolicy", "CartPole-v1")
    model.learn(100_000, callback=OlafCallback("udp://10.0.0.1:5555", cluster=0))

The callback joins with the parameters of ``model.policy``. After each rollout's training it pushes
the change of the parameters, with the mean reward of the last episodes, and takes the job's newest
model. The moments of ``VecNormalize`` are those of all workers. The optimiser's state stays local,
and so do the running means of a batch norm.

`distribute` is the other way: each optimizer step applies the mean gradient of all workers.
"""

# mypy checks this file with and without the framework; without it everything of it is Any.
# mypy: disable-error-code="import-untyped,import-not-found,misc,unused-ignore"

from __future__ import annotations

import logging
import math
from typing import Any

from olaf import extras
from olaf.errors.telling import tell
from olaf.integrations.member import Member, need_module

extras.need("sb3", "stable_baselines3", what="olaf.integrations.sb3")

from stable_baselines3.common.callbacks import BaseCallback  # noqa: E402
from stable_baselines3.common.monitor import Monitor  # noqa: E402
from stable_baselines3.common.vec_env import VecMonitor, is_vecenv_wrapped  # noqa: E402

from olaf.integrations.sb3_distribute import distribute, is_distributed  # noqa: E402
from olaf.integrations.sb3_moments import Shared  # noqa: E402

__all__ = ["OlafCallback", "distribute"]


class OlafCallback(BaseCallback):
    """Trains a Stable-Baselines3 model as one worker of an Olaf job."""

    def __init__(self, address: str, *, every: int = 1, verbose: int = 0, **options: Any) -> None:
        """address: address of the switch (or server), ``udp://host:port``.

        every: number of rollouts between exchanges. On-policy algorithms train once per rollout.
        For off-policy ones a rollout is ``train_freq`` steps: use a larger number, such as 100.
        options: ``job``, ``cluster``, ``worker``, ``patience_s``, ``join_timeout_s`` and other
        arguments of `olaf.connect`.
        """
        super().__init__(verbose)
        if every < 1:
            raise ValueError(f"every = {every}: must be at least 1 rollout")
        self._every = every
        self._member = Member(address, **options)
        self._rollouts = 0
        self._shared: Shared | None = None

    @property
    def connection(self) -> Any:
        """The `olaf.Connection`, while ``learn`` runs."""
        return self._member.connection

    def _on_training_start(self) -> None:
        policy = need_module(self.model.policy, "model.policy", "OlafCallback")
        if is_distributed(self.model):
            raise ValueError(
                "the model is distributed (olaf.integrations.sb3.distribute): its steps are those "
                "of all workers already, so leave OlafCallback out"
            )
        if not monitored(self.model.get_env()):
            tell(
                logging.WARNING,
                "the environments of this model have no Monitor, so the rewards of its episodes "
                "are unknown: pushes carry reward 0. Make the environments with make_vec_env, or "
                "wrap them in stable_baselines3.common.vec_env.VecMonitor",
            )
        self._rollouts = 0
        normalise = self.model.get_vec_normalize_env()
        self._shared = Shared(policy, normalise) if normalise else None
        version = self._member.join(self._shared or policy)
        if self._shared:
            self._shared.take()
        if self.verbose:
            print(f"olaf: joined as worker {self.connection.worker}, model version {version}")

    def _on_rollout_end(self) -> None:
        # Before `learning_starts`, off-policy algorithms only fill their buffer.
        if self.model.num_timesteps > getattr(self.model, "learning_starts", 0):
            self._rollouts += 1

    def _on_rollout_start(self) -> None:
        # The training after the last rollout is over: this is the first hook after it.
        if self._rollouts >= self._every:
            self._exchange()

    def _on_training_end(self) -> None:
        if self._rollouts:
            self._exchange()
        self._member.close()

    def _on_step(self) -> bool:
        return True

    def _exchange(self) -> None:
        self._rollouts = 0
        mean = self.mean_reward()
        if self._shared:
            self._shared.add()
        version = self._member.exchange(reward=0.0 if math.isnan(mean) else mean)
        if self._shared:
            self._shared.take()
        self.logger.record("olaf/model_version", version or self.connection.version)

    def mean_reward(self) -> float:
        """Mean reward of the last 100 episodes (``stats_window_size``).

        It is nan while none is known: before the first ends, and in environments without Monitor.
        """
        episodes = self.model.ep_info_buffer
        if not episodes:
            return math.nan
        return float(sum(episode["r"] for episode in episodes) / len(episodes))


def monitored(environments: Any) -> bool:
    """Whether the rewards of episodes are counted: by the vector or by each of its environments."""
    return environments is None or (
        is_vecenv_wrapped(environments, VecMonitor) or all(environments.env_is_wrapped(Monitor))
    )
