"""Says in words when a number of the learners leaves its usual range, and what to try.

Pure: numbers in, sentences out. `RULES` is the one table of ranges. The limits are well outside
the ranges of healthy runs of LunarLander, CartPole, Pendulum and Acrobot (1 to 8 workers, half a
minute each, also long after they were solved); tests/cli/test_warnings.py has the figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from olaf.values.numbers import percent, short

TURNS = 20
"""Turns of each worker over which a number is averaged, and that a rule waits before it judges."""

MOST: Mapping[str, float] = {"kl": 1.0, "explained_variance": 1.0}
"""Single values beyond these count as these: one outlier says little, and may be infinite."""

LEAST: Mapping[str, float] = {"explained_variance": -1.0}


@dataclass(frozen=True)
class Reading:
    """What the rules judge: means over the last turns, and over the first ones."""

    now: Mapping[str, float]
    first: Mapping[str, float]
    most_gradient: float
    """``learner.max_gradient_norm``."""
    discrete: bool
    """True if actions are chosen from a list: only then is an entropy of 0 its least."""
    has_risen: bool
    """True if the mean reward is above that of the first episodes."""

    def ratio(self, name: str) -> float:
        """A number by what it was at first."""
        first = self.first.get(name, 0.0)
        return self.now[name] / first if first > 0 else 1.0


class Rule(NamedTuple):
    """One usual range, why it ends there, and what a run outside of it is told."""

    name: str
    needs: tuple[str, ...]
    """The numbers that it reads; without one of them it is silent."""
    turns: int
    """Turns of each worker that a run must stay outside before it is told."""
    is_out: Callable[[Reading], bool]
    reason: str
    """Why the range ends there."""
    says: Callable[[Reading], str]
    try_this: str


RULES: tuple[Rule, ...] = (
    Rule(
        "kl",
        ("kl",),
        5,
        lambda r: r.now["kl"] > 0.1,
        "healthy runs stay below 0.05; PPO's bound holds only for small steps",
        lambda r: f"each pass changes the policy much: KL {short(r.now['kl'])} (usual: below 0.1)",
        "a lower learner.learning_rate, fewer learner.epochs, or more learner.steps_per_update",
    ),
    Rule(
        "clipped",
        ("clipped",),
        5,
        lambda r: r.now["clipped"] > 0.4,
        "healthy runs stay below 0.3; a clipped step teaches nothing",
        lambda r: (
            f"{percent(r.now['clipped'], 0)} of the steps are beyond learner.clip (usual: "
            "below 40 %), and teach nothing"
        ),
        "a lower learner.learning_rate or fewer learner.epochs",
    ),
    Rule(
        "entropy",
        ("entropy",),
        5,
        lambda r: r.discrete and not r.has_risen and r.ratio("entropy") < 0.03,
        "healthy runs keep 6 % of the first entropy for long, and their reward has risen by then",
        lambda r: (
            f"the policy hardly tries other actions any more (entropy "
            f"{short(r.now['entropy'])}, at first {short(r.first['entropy'])}), and the reward has "
            "not risen"
        ),
        "a higher learner.entropy, or a lower learner.learning_rate",
    ),
    Rule(
        "explained_variance",
        ("explained_variance", "value"),
        100,
        lambda r: r.now["explained_variance"] < 0 and r.ratio("value") > 0.5,
        "below 0 the value head is worse than a constant. A solved CartPole is there, too, because "
        "its returns are all alike: but there the value loss has fallen to nothing",
        lambda r: (
            f"the value head predicts worse than a constant would (explained variance "
            f"{short(r.now['explained_variance'])}), and its loss does not fall"
        ),
        "a higher learner.value, wider layers (learner.hidden), or another learner.reward_scale",
    ),
    Rule(
        "gradient_norm",
        ("gradient_norm",),
        20,
        lambda r: r.now["gradient_norm"] > 20 * r.most_gradient,
        "healthy runs stay below 5 times the limit; far above it all steps have the same length",
        lambda r: (
            f"gradients are {short(r.now['gradient_norm'] / r.most_gradient)} times as long "
            f"as learner.max_gradient_norm ({r.most_gradient:g}) allows, and all are cut to it"
        ),
        "a smaller learner.reward_scale, or learner.normalise = on for unscaled observations",
    ),
    Rule(
        "value",
        ("value", "explained_variance"),
        50,
        lambda r: r.ratio("value") > 5 and r.now["explained_variance"] < 0.2,
        "it grows with the returns in healthy runs, too, but there the value head explains them",
        lambda r: (
            f"the value loss grows: {short(r.now['value'])}, at first "
            f"{short(r.first['value'])}, and the value head explains "
            f"{percent(max(r.now['explained_variance'], 0.0), 0)} of the returns"
        ),
        "a lower learner.learning_rate, or a smaller learner.reward_scale",
    ),
)


class Warned(NamedTuple):
    """The beginning of a warning, or its end."""

    rule: Rule
    text: str
    is_over: bool = False


class Heard(NamedTuple):
    """A warning of a run, for its record."""

    name: str
    at_s: float
    text: str
    over_s: float | None = None


ENDLESS = "endless"
ENDLESS_STEPS = 20_000
"""Environment steps of one copy without an end of an episode, after which a run is told."""


def endless(steps: float) -> str:
    """The warning that no episode has ended in ``steps`` steps of each copy of the environment."""
    return (
        f"no episode has ended in {steps:,.0f} steps of each environment, so there is no reward to "
        "report. Try a limit: --set learner.max_episode_steps=1000, or end episodes in the "
        "environment (truncated)."
    )


class _State:
    """How long a rule's numbers have been outside, or inside again, in reports."""

    def __init__(self) -> None:
        self.outside = self.inside = 0
        self.is_said = self.is_over = False


class Watch:
    """Follows the reports of all workers; each warning begins once and ends once."""

    def __init__(self, workers: int, most_gradient: float) -> None:
        self.workers = max(workers, 1)
        self._most_gradient = most_gradient
        self._window = TURNS * self.workers
        self._reports = 0
        self._now: dict[str, float] = {}
        self._counts: dict[str, int] = {}
        self._first: dict[str, float] = {}
        self._first_reward: float | None = None
        self._states = {rule.name: _State() for rule in RULES}

    def take(
        self, losses: Mapping[str, float], reward: float | None, *, discrete: bool
    ) -> list[Warned]:
        """Take in the losses of a worker's turn; return the warnings that begin or end.

        reward: the mean of the last episodes, once there are enough of them.
        """
        if not losses:
            return []
        if self._first_reward is None:
            self._first_reward = reward
        for name, value in losses.items():
            self._average(name, value)
        self._reports += 1
        if self._reports < self._window:
            return []
        risen = reward is not None and reward > (self._first_reward or 0.0)
        reading = Reading(self._now, self._first, self._most_gradient, discrete, risen)
        told = (self._judge(rule, reading) for rule in RULES)
        return [warned for warned in told if warned is not None]

    def _average(self, name: str, value: float) -> None:
        if math.isnan(value):
            return
        value = max(min(value, MOST.get(name, 1e30)), LEAST.get(name, -1e30))
        count = self._counts[name] = self._counts.get(name, 0) + 1
        mean = self._now.get(name, 0.0)
        self._now[name] = mean + (value - mean) / min(count, self._window)
        if count <= self._window:
            self._first[name] = self._now[name]

    def _judge(self, rule: Rule, reading: Reading) -> Warned | None:
        state = self._states[rule.name]
        is_out = all(name in reading.now for name in rule.needs) and rule.is_out(reading)
        state.outside = state.outside + 1 if is_out else 0
        state.inside = 0 if is_out else state.inside + 1
        if not state.is_said and state.outside >= rule.turns * self.workers:
            state.is_said = True
            return Warned(rule, f"{rule.says(reading)}. Try {rule.try_this}.")
        if state.is_said and not state.is_over and state.inside >= self._window:
            state.is_over = True
            return Warned(rule, f"{NAMES[rule.name]} is in its usual range again.", is_over=True)
        return None


NAMES: Mapping[str, str] = {
    "kl": "the KL divergence",
    "clipped": "the share of clipped steps",
    "entropy": "the entropy",
    "explained_variance": "the explained variance",
    "gradient_norm": "the gradient norm",
    "value": "the value loss",
}
"""The rules in words."""
