"""An environment of your own. In this folder: `olaf train --env mine:Dot --until-reward 0.7`.

A dot on a line is pushed left or right until it stands at 0. Each worker imports this file and
makes its own copies.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

State = NDArray[np.float32]


class Dot(gymnasium.Env[State, np.int64]):
    """Reward 1 for reaching 0, less 0.1 for each step; the optimum is about 0.7."""

    # What step and reset return must fit; values near -1..1 are learnt soonest.
    observation_space = Box(-2.0, 2.0, (2,), np.float32)
    action_space = Discrete(2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[State, dict[str, Any]]:
        super().reset(seed=seed)  # gives self.np_random, the only source of chance
        self.place, self.speed = self.np_random.uniform(-1.0, 1.0), 0.0
        self.steps = 0
        return self._seen(), {}

    def step(self, action: np.int64) -> tuple[State, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        self.speed = 0.5 * self.speed + (0.2 if action == 1 else -0.2)
        self.place = float(np.clip(self.place + self.speed, -2.0, 2.0))
        terminated = abs(self.place) < 0.1  # it is done
        truncated = self.steps >= 30  # a time limit, without which a bad policy never ends
        reward = float(terminated) - 0.1
        return self._seen(), reward, terminated, truncated, {"is_success": terminated}

    def close(self) -> None:
        """Here a simulator would be stopped."""

    def _seen(self) -> State:
        return np.array([self.place, self.speed], np.float32)
