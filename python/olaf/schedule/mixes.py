"""Random job lists from a mix: weights for numbers of hosts.

Models and numbers of steps are uniform. A seed gives the same list on every machine: numpy's PCG64
draws whole numbers, one job after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from olaf.schedule.reading import Job

STEPS = tuple(range(10, 101, 10))
"""Default numbers of steps of a job, as in MINA's job lists."""


class Mix(BaseModel):
    """Numbers of hosts and their weights."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    hosts: list[int] = Field(min_length=1)
    """Numbers of hosts, each once."""
    weights: list[int] = Field(min_length=1)
    """Weight of each number; its probability is the weight divided by their sum."""

    @model_validator(mode="after")
    def _fits(self) -> Mix:
        if len(self.hosts) != len(self.weights):
            raise ValueError(
                f"{len(self.hosts)} numbers of hosts with {len(self.weights)} weights; one each"
            )
        if min(self.hosts) < 1 or len(set(self.hosts)) != len(self.hosts):
            raise ValueError("hosts: each number once, from 1")
        if min(self.weights) < 0 or not 0 < sum(self.weights) < 1 << 63:
            raise ValueError("weights: from 0, not all of them")
        return self

    @classmethod
    def parse(cls, text: str) -> Mix:
        """``1:10,2:5,4:5``, hosts and weight. Raises ValueError, which says what is wrong."""
        try:
            pairs = [tuple(map(int, part.split(":"))) for part in text.split(",")]
            hosts, weights = zip(*pairs, strict=True)
        except ValueError:
            raise ValueError(f"{text!r}: write HOSTS:WEIGHT,.. as in 1:10,2:5,4:5") from None
        try:
            return cls(hosts=list(hosts), weights=list(weights))
        except ValidationError as error:
            about = str(error.errors(include_url=False)[0]["msg"]).removeprefix("Value error, ")
            raise ValueError(f"{text!r}: {about}") from None


def draw(
    mix: Mix, patterns: Sequence[str], count: int, seed: int, *, steps: Sequence[int] = STEPS
) -> list[Job]:
    """``count`` jobs, each of one of the ``patterns`` for one of the numbers of ``steps``."""
    chance = np.random.Generator(np.random.PCG64(seed))
    below = list(accumulate(mix.weights))
    jobs = []
    for line in range(1, count + 1):
        pattern = patterns[int(chance.integers(len(patterns)))]
        drawn = int(chance.integers(below[-1]))
        hosts = mix.hosts[next(at for at, bound in enumerate(below) if drawn < bound)]
        jobs.append(Job(pattern, hosts, steps[int(chance.integers(len(steps)))], line))
    return jobs


def text(jobs: Iterable[Job]) -> str:
    """A job list as `olaf.schedule.reading.read_jobs` reads it."""
    return "".join(f"{job.pattern} {job.hosts} {job.steps}\n" for job in jobs)
