"""Recorded lengths of the default learner's turns, for virtual time.

A worker draws its turns from the recorded ones, with replacement, by (seed, worker). Turns thus
vary as real ones do, and a run does not depend on the load of the machine that computes it.
``python -m olaf.rl.recorded > turns.json`` records the environments that the package knows.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from olaf.processes.machine import processor
from olaf.rl import process_environment
from olaf.rl.compute import Compute
from olaf.rl.learner import LearnerConfig
from olaf.rl.making import make_learner

SHIPPED = ("LunarLander-v3", "CartPole-v1", "Acrobot-v1", "Pendulum-v1")
TURNS = 60
WARM_UP = 3
"""First turns that are left out: caches fill, memory pages are touched."""

SAME = ("learner", "module", "device", "environments", "hidden", "minibatch", "gradient_kind")
"""Fields of a learner that change the time of a step; steps and epochs are scaled."""


@dataclass(frozen=True)
class Recorded(Compute):
    """Recorded turns of one environment."""

    turns_s: tuple[tuple[float, float], ...]
    """For each turn: seconds per collected step, and seconds of learning per step and epoch."""
    epochs: int
    """Epochs of the timed learner."""
    source: Mapping[str, Any]
    """Origin of the record: ``cpu``, ``recorded_at``, .."""

    def turns(self, seed: int, worker: int) -> "RecordedTurns":
        """The turns of one worker."""
        return RecordedTurns(self, np.random.default_rng([seed, 2**31, worker]))

    def mean_s(self, steps: int) -> float:
        """Mean seconds of a turn of ``steps`` steps."""
        return float(np.mean([sum(self.seconds(n, steps)) for n in range(len(self.turns_s))]))

    def seconds(self, index: int, steps: int) -> tuple[float, float]:
        """Seconds of collecting and learning of the turn ``index``, scaled to ``steps`` steps."""
        collecting_s, learning_s = self.turns_s[index]
        return steps * collecting_s, steps * self.epochs * learning_s


class RecordedTurns:
    """One worker's turns, drawn from the recorded ones."""

    def __init__(self, recorded: Recorded, rng: np.random.Generator) -> None:
        self._recorded, self._rng = recorded, rng

    def next(self, steps: int) -> tuple[float, float]:
        """Seconds of collecting and of learning."""
        index = int(self._rng.integers(len(self._recorded.turns_s)))
        return self._recorded.seconds(index, steps)


def shipped(config: LearnerConfig) -> Recorded | None:
    """The package's turns for this learner, or None if it has none.

    They were recorded with the default settings; steps and epochs are scaled. A learner that
    differs in `SAME` has no turns in the package.
    """
    record = _shipped()
    timed = record["environments"].get(config.environment)
    default = LearnerConfig()
    alike = all(getattr(config, name) == getattr(default, name) for name in SAME)
    return reread(config, record, timed) if timed and alike else None


def reread(
    config: LearnerConfig, record: Mapping[str, Any], timed: Mapping[str, Sequence[float]]
) -> Recorded:
    """The turns of one environment of a record, for this learner."""
    epochs = record["learner"]["epochs"]
    columns = zip(timed["steps"], timed["collect_s"], timed["learn_s"], strict=True)
    turns = tuple((collect / steps, learn / steps / epochs) for steps, collect, learn in columns)
    source = {key: value for key, value in record.items() if key not in ("environments", "learner")}
    return Recorded(turns, config.epochs, {**source, "turns": len(turns)})


def written(config: LearnerConfig, recorded: Recorded) -> dict[str, Any]:
    """Turns as a record for `reread`: it gives the same runs on every machine."""
    steps = config.steps_per_update
    turns = [recorded.seconds(index, steps) for index in range(len(recorded.turns_s))]
    return {
        **recorded.source,
        "learner": _learner_of(config),
        "environments": {
            config.environment: {
                "steps": [steps] * len(turns),
                "collect_s": [collect_s for collect_s, _ in turns],
                "learn_s": [learn_s for _, learn_s in turns],
            }
        },
    }


def _learner_of(config: LearnerConfig) -> dict[str, Any]:
    return {
        **{name: getattr(config, name) for name in SAME},
        "steps_per_update": config.steps_per_update,
        "epochs": config.epochs,
    }


def record(
    configs: Sequence[LearnerConfig],
    turns: int = TURNS,
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Time turns of learners that differ only in their environment, in CPU seconds of this thread.

    CPU time, not wall time: other work on the machine lengthens it only a little (caches, a sibling
    thread on the same core).
    """
    environments: dict[str, Any] = {}
    for config in configs:
        with closing(make_learner(config, clock=time.thread_time)) as learner:
            for _ in range(WARM_UP):
                learner.iterate()
            timed = []
            for turn in range(turns):
                timed.append(learner.iterate())
                if turn % 10 == 9 or turn + 1 == turns:
                    say(f"{config.environment}: {turn + 1} of {turns} turns timed")
        environments[config.environment] = {
            "steps": [turn.steps for turn in timed],
            "collect_s": [round(turn.seconds_env, 7) for turn in timed],
            "learn_s": [round(turn.seconds_learn, 7) for turn in timed],
        }
    return {
        "cpu": processor(),
        "recorded_at": datetime.now(UTC).date().isoformat(),
        "clock": "time.thread_time",
        "numpy": np.__version__,
        "learner": _learner_of(configs[0]),
        "environments": environments,
    }


@cache
def _shipped() -> dict[str, Any]:
    file = resources.files("olaf.rl").joinpath("recorded_turns.json")
    read: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return read


def as_text(record: Mapping[str, Any]) -> str:
    """A record as JSON, one line per list."""
    head = {key: value for key, value in record.items() if key != "environments"}
    lines = [f"{json.dumps(head)[:-1]},", '"environments": {']
    for name, timed in record["environments"].items():
        columns = [f'  "{column}": {json.dumps(values)}' for column, values in timed.items()]
        comma = "" if name == list(record["environments"])[-1] else ","
        lines += [f' "{name}": {{', ",\n".join(columns), f" }}{comma}"]
    return "\n".join([*lines, "}}"]) + "\n"


def main() -> None:
    """Record the environments of the command line and print the record as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", nargs="*", default=SHIPPED)
    parser.add_argument("--turns", type=int, default=TURNS)
    given = parser.parse_args()
    configs = [LearnerConfig(environment=name) for name in given.env]
    print(as_text(record(configs, given.turns)), end="")


if __name__ == "__main__":
    missing = process_environment().items() - os.environ.items()
    if missing:
        # The algebra library has read them already, when it was loaded.
        names = ", ".join(f"{name}={value}" for name, value in sorted(missing))
        raise SystemExit(f"start it with {names}")
    main()
