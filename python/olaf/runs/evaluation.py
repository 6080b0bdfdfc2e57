"""Evaluates a saved model: plays episodes greedily, and computes their mean reward."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from olaf.numbers import counted
from olaf.rl.environments import make_environment

if TYPE_CHECKING:
    from olaf.runs.filming import Camera

TOGETHER = 16
"""Number of episodes that are played in parallel, so that one matrix product serves them all."""

RESAMPLES = 10_000
CONFIDENCE = 0.95

ENOUGH = 10
"""Episodes that an interval needs: a bootstrap over fewer is too narrow."""


@dataclass(frozen=True)
class Episode:
    """One finished episode."""

    seed: int
    """The seed with which the environment was reset."""
    reward: float
    steps: int
    is_cut: bool = False
    """True if it had not ended within the largest number of steps."""


@dataclass(frozen=True)
class Score:
    """Statistics of the episodes."""

    episodes: int
    mean: float
    std: float
    """Standard deviation of the episodes' rewards (n - 1); 0 for a single episode."""
    min: float
    max: float
    low: float | None
    high: float | None
    """The 95 % confidence interval of the expected reward, by bootstrap; None with fewer than
    `ENOUGH` episodes."""
    steps_mean: float

    def to_json(self) -> dict[str, Any]:
        """The output of `olaf evaluate --json`."""
        return {
            "episodes": self.episodes,
            "mean": self.mean,
            "std": self.std,
            "min": self.min,
            "max": self.max,
            "confidence": CONFIDENCE,
            "low": self.low,
            "high": self.high,
            "steps_mean": self.steps_mean,
        }


def play(
    learner: Any,
    name: str,
    *,
    episodes: int,
    seed: int,
    is_sampled: bool = False,
    most_steps: int | None = None,
) -> Iterator[Episode]:
    """Play episodes of environment ``name``; yield each when it has ended.

    Episode i is reset with seed + i. Greedily, nothing else is random: the same model and seed give
    the same episodes, in whatever order they end. ``is_sampled``: actions are drawn as in training,
    with numbers from the seed. ``most_steps``: cut an episode that has not ended by then.
    """
    rng = np.random.default_rng(seed)

    def act(seen: NDArray[np.float32]) -> list[Any]:
        return learner.sampled(seen, rng) if is_sampled else learner.greedy(seen)

    flat = not learner.spaces.seen
    count = min(episodes, TOGETHER)
    environments = [make_environment(name, flat=flat) for _ in range(count)]
    try:
        tables = [_Table(env, number, seed) for number, env in enumerate(environments)]
        following = count
        while tables:
            seen = np.array([table.seen for table in tables], np.float32)
            for table, action in zip(list(tables), act(seen), strict=True):
                ended = table.step(action, most_steps)
                if ended is None:
                    continue
                yield ended
                if following < episodes:
                    table.begin(following)
                    following += 1
                else:
                    tables.remove(table)
    finally:
        for env in environments:
            env.close()


class _Table:
    """One copy of the environment, and its running episode."""

    def __init__(self, env: Any, number: int, seed: int) -> None:
        self._env, self._seed = env, seed
        self.begin(number)

    def begin(self, number: int) -> None:
        self.number = self._seed + number
        self.seen: NDArray[Any] = self._env.reset(seed=self.number)[0]
        self._reward, self._steps = 0.0, 0

    def step(self, action: Any, most_steps: int | None) -> Episode | None:
        self.seen, reward, over, cut, _ = self._env.step(action)
        self._reward += float(reward)
        self._steps += 1
        is_over = over or cut
        if is_over or self._steps == most_steps:
            return Episode(self.number, self._reward, self._steps, is_cut=not is_over)
        return None


def watch(
    learner: Any,
    name: str,
    *,
    episodes: int,
    seed: int,
    camera: Camera | None = None,
) -> Iterator[Episode]:
    """Play episodes one after the other, and draw them to a camera or in a window."""
    mode = "human" if camera is None else "rgb_array"
    env = make_environment(name, flat=not learner.spaces.seen, render_mode=mode)

    def draw() -> None:
        picture = env.render()
        if camera is not None:
            camera.take(picture)

    try:
        if camera is not None and env.metadata.get("render_fps"):
            camera.frames_per_s = env.metadata["render_fps"]
        for number in range(episodes):
            seen, _ = env.reset(seed=seed + number)
            total, steps, over = 0.0, 0, False
            draw()
            while not over:
                (action,) = learner.greedy(np.array([seen], np.float32))
                seen, reward, ended, cut, _ = env.step(action)
                total, steps, over = total + float(reward), steps + 1, ended or cut
                draw()
            yield Episode(seed + number, total, steps)
    finally:
        env.close()


def score(episodes: list[Episode], *, seed: int = 0) -> Score:
    """Mean, spread and confidence interval of the episodes' rewards.

    The interval is a percentile bootstrap, since rewards of episodes are rarely normal (a lander
    lands, or it does not).
    """
    rewards = np.array([episode.reward for episode in episodes])
    low = high = None
    if len(rewards) >= ENOUGH:
        rng = np.random.default_rng([seed, len(rewards)])
        drawn = rng.integers(len(rewards), size=(RESAMPLES, len(rewards)))
        tail = 100 * (1 - CONFIDENCE) / 2
        ends = np.percentile(rewards[drawn].mean(axis=1), [tail, 100 - tail])
        low, high = float(ends[0]), float(ends[1])
    return Score(
        episodes=len(rewards),
        mean=float(rewards.mean()),
        std=float(rewards.std(ddof=1)) if len(rewards) > 1 else 0.0,
        min=float(rewards.min()),
        max=float(rewards.max()),
        low=low,
        high=high,
        steps_mean=float(np.mean([episode.steps for episode in episodes])),
    )


def against(threshold: float, found: Score) -> str:
    """The score compared with a threshold, in words."""
    if found.low is not None and found.low >= threshold:
        return f"above {threshold:g}, with 95 % confidence"
    if found.high is not None and found.high < threshold:
        return f"below {threshold:g}, with 95 % confidence"
    side = "above" if found.mean >= threshold else "below"
    episodes = counted(found.episodes, "episode")
    return f"{side} {threshold:g}, but {episodes} cannot settle it: play more"


def verdict(found: Score, threshold: float | None) -> Mapping[str, Any]:
    """The threshold, whether the mean reaches it, and the confidence of that."""
    if threshold is None:
        return {"threshold": None, "reached": None, "verdict": "this environment has no threshold"}
    return {
        "threshold": threshold,
        "reached": found.mean >= threshold,
        "verdict": against(threshold, found),
    }
