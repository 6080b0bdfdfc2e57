"""The results of evaluations while a run trains: what was played, and which model was best."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from olaf.values.numbers import counted, score, short


@dataclass(frozen=True)
class Played:
    """The rewards of the episodes that one policy played."""

    episodes: int
    mean: float
    std: float
    """Standard deviation of the episodes' rewards; 0 for a single episode."""
    min: float
    max: float
    steps_mean: float
    cut: int = 0
    """Episodes that had not ended within `train.evaluate_steps`."""

    @classmethod
    def told(cls, message: Mapping[str, Any]) -> Played:
        """From a message of the evaluator, or a line of a journal."""
        return cls(**{key: message[key] for key in cls.__dataclass_fields__ if key in message})


@dataclass(frozen=True)
class Evaluation:
    """One model, played with on its own seeds."""

    at_s: float
    updates: int
    """Updates of the run when the model was taken."""
    steps: int
    """Environment steps of the run when the model was taken."""
    version: int
    greedy: Played
    """With the most likely action at each step."""
    sampled: Played
    """With actions drawn from the policy, as in training."""

    @classmethod
    def told(cls, line: Mapping[str, Any]) -> Evaluation:
        """From a line of a journal."""
        policies = {key: Played.told(line[key]) for key in ("greedy", "sampled")}
        return cls(**{**line, **policies})


def best_of(evaluations: Iterable[Evaluation]) -> Evaluation | None:
    """The evaluation with the largest greedy mean; if several have it, the largest sampled one.

    The first of them, if they are equal in both.
    """
    return max(evaluations, key=lambda one: (one.greedy.mean, one.sampled.mean), default=None)


def sentence(evaluation: Evaluation, *, is_best: bool) -> str:
    """An evaluation as a line of a log."""
    greedy, sampled = evaluation.greedy, evaluation.sampled
    text = (
        f"evaluated model version {evaluation.version:,}: greedy {score(greedy.mean)} "
        f"(standard deviation {short(greedy.std)}), sampled {score(sampled.mean)} "
        f"({short(sampled.std)}), {counted(greedy.episodes, 'episode')} each"
    )
    if cut := greedy.cut + sampled.cut:
        text += f"; {cut} of them did not end within train.evaluate_steps"
    return text + ("; the best so far" if is_best else "")
