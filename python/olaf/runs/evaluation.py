"""Evaluates a saved model: plays episodes greedily, and computes their mean reward."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from olaf.rl.checking import Copy
from olaf.rl.copies import Masks, close_all, mask_of
from olaf.rl.environments import make_environment
from olaf.rl.seeding import seed_everything
from olaf.rl.spaces import Spaces
from olaf.values.numbers import counted

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
    the same episodes, in whatever order they end. `random` and `np.random` are seeded, too, for an
    environment that draws from them. ``is_sampled``: actions are drawn as in training, with numbers
    from the seed. ``most_steps``: cut an episode that has not ended by then.
    """
    rng = np.random.default_rng(seed)
    seed_everything(seed, 0)
    flat = not learner.spaces.seen
    count = min(episodes, TOGETHER)
    environments: list[Any] = []
    try:
        how = {"options": learner.config.environment_options, "worker": learner.worker}
        for copy in range(count):
            environments.append(make_environment(name, flat=flat, copy=copy, copies=count, **how))
        tables = [
            _Table(env, name, learner, seed + number) for number, env in enumerate(environments)
        ]
        following = count
        while tables:
            actions = _actions(learner, tables, rng if is_sampled else None)
            for table, action in zip(list(tables), actions, strict=True):
                ended = table.step(action, most_steps)
                if ended is None:
                    continue
                yield ended
                if following < episodes:
                    table.begin(seed + following)
                    following += 1
                else:
                    tables.remove(table)
    finally:
        close_all(environments)


def _actions(learner: Any, tables: list[_Table], rng: np.random.Generator | None) -> list[Any]:
    """An action for each table: the likeliest, or drawn if there is a generator."""
    seen = np.array([table.seen for table in tables])
    masks: Masks | None = None
    if tables[0].mask is not None:
        masks = np.array([table.mask for table in tables])
    memory = np.array([table.memory for table in tables])
    actions: list[Any]
    if rng is not None:
        actions = learner.sampled(seen, rng, masks, memory)
    else:
        actions = learner.greedy(seen, masks, memory)
    for table, after in zip(tables, memory, strict=True):
        table.memory = after
    return actions


class _Table:
    """One copy of the environment, and its running episode."""

    def __init__(self, env: Any, name: str, learner: Any, seed: int) -> None:
        self._env, self._name = env, name
        self._spaces: Spaces = learner.spaces
        self._memory_size = learner.memory_size
        self.begin(seed)

    def begin(self, seed: int) -> None:
        """Begin the episode of that seed."""
        self.seed = seed
        shape = self._spaces.observation_shape
        self._copy = Copy(self._name, self._env, shape, f"seed {seed}")
        self.seen = self._copy.reset(seed)
        self._reward, self._steps = 0.0, 0
        self.memory = np.zeros(self._memory_size, np.float32)
        """What a policy with a memory remembers of the episode."""
        self._look()

    def step(self, action: Any, most_steps: int | None) -> Episode | None:
        """Take one step; return the episode if it has ended, or has ``most_steps``."""
        self.seen, reward, over, cut, _ = self._copy.step(action)
        self._reward += reward
        self._steps += 1
        is_over = over or cut
        if is_over or self._steps == most_steps:
            return Episode(self.seed, self._reward, self._steps, is_cut=not is_over)
        self._look()
        return None

    def _look(self) -> None:
        """Take the allowed actions of the present state."""
        copy, spaces = self._copy, self._spaces
        place = f"step {self._steps}"
        self.mask = mask_of(copy, copy.info, spaces, place) if spaces.discrete else None


def watch(
    learner: Any,
    name: str,
    *,
    episodes: int,
    seed: int,
    camera: Camera | None = None,
    most_steps: int | None = None,
) -> Iterator[Episode]:
    """Play episodes one after the other, and draw them to a camera or in a window.

    most_steps: as for `play`.
    """
    mode = "human" if camera is None else "rgb_array"
    seed_everything(seed, 0)
    env = make_environment(
        name,
        flat=not learner.spaces.seen,
        render_mode=mode,
        options=learner.config.environment_options,
        worker=learner.worker,
    )

    def draw() -> None:
        picture = env.render()
        if camera is not None:
            camera.take(picture)

    try:
        if camera is not None and env.metadata.get("render_fps"):
            camera.frames_per_s = env.metadata["render_fps"]
        for number in range(episodes):
            table = _Table(env, name, learner, seed + number)
            ended = None
            draw()
            while ended is None:
                (action,) = _actions(learner, [table], None)
                ended = table.step(action, most_steps)
                draw()
            yield ended
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
