"""What a run's curves and log consist of: samples, episodes, events, and the earlier sessions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from olaf.jobs.evaluation import Evaluation
from olaf.values.printable import printable


@dataclass(frozen=True)
class Happening:
    """An event that deserves a line in the log."""

    at_s: float
    who: str
    text: str
    trouble: bool = False
    echo: bool = False
    """Another worker has just reported the same: for the record, not for the display."""
    printed: bool = False
    """A line that the process printed itself, after its name."""

    def __post_init__(self) -> None:
        """A worker's text is the user's code's: none of it may steer a terminal."""
        object.__setattr__(self, "who", printable(self.who))
        object.__setattr__(self, "text", printable(self.text, keep="\n\t"))


@dataclass(frozen=True)
class Sample:
    """The run at one moment, for the curves."""

    at_s: float
    updates: int
    steps: int
    reward: float | None
    queue_used: int
    version: int
    ages_s: dict[int, float]
    """Age-of-Model of each cluster at this moment, in seconds."""
    counts: dict[str, int]
    """Cumulative contributions by fate at the switch."""
    losses: dict[str, float] = field(default_factory=dict)
    """The learners' numbers, see `olaf.jobs.instruments.Readings`, as are the two below."""
    episode_steps: float | None = None
    episode_numbers: dict[str, float] = field(default_factory=dict)


class Episode(NamedTuple):
    """A training episode that ended."""

    at_s: float
    worker: int
    reward: float
    steps: int
    """Environment steps of all workers when the episode was reported."""
    length: int | None = None
    """Environment steps of the episode; None in journals of earlier versions."""


@dataclass(frozen=True)
class Earlier:
    """Totals of the earlier sessions of a resumed run."""

    sessions: list[dict[str, Any]] = field(default_factory=list)
    """The record of each session's start, in order."""
    samples: list[Sample] = field(default_factory=list)
    episodes: list[Episode] = field(default_factory=list)
    happenings: list[Happening] = field(default_factory=list)
    evaluations: list[Evaluation] = field(default_factory=list)
    trained_s: float = 0.0
    best_reward: float | None = None

    @property
    def at_s(self) -> float:
        """Seconds that the run has lasted."""
        return self.samples[-1].at_s if self.samples else 0.0

    @property
    def updates(self) -> int:
        """Updates that the workers pushed."""
        return self.samples[-1].updates if self.samples else 0

    @property
    def steps(self) -> int:
        """Environment steps that the workers took."""
        return self.samples[-1].steps if self.samples else 0

    @property
    def version(self) -> int:
        """The newest version of the model that was reported."""
        return max((sample.version for sample in self.samples), default=0)

    @property
    def counts(self) -> dict[str, int]:
        """Contributions by fate at the switch; updates that waited there are lost."""
        counts = self.samples[-1].counts if self.samples else {}
        return {fate: count for fate, count in counts.items() if fate != "waiting"}


@dataclass(frozen=True)
class Push:
    """One update, as its worker reports it."""

    at_s: float
    """Time on a clock that all processes of this machine share; its zero has no meaning. An update
    from another machine has the time at which its report arrived."""
    worker: int
    iteration: int
    """The worker's number of the update, from 1, through all its restarts."""
    reward: float


@dataclass
class Cluster:
    """A server's statistics of one cluster."""

    age_s: float | None
    mean_s: float | None
    peak_s: float | None
    deliveries: int
    contributions: int
    staleness_mean: float | None
    staleness_max: int
    clock_error_s: float | None


def clusters_of(job: Mapping[str, Any] | None) -> dict[int, Cluster]:
    """The clusters in a server's statistics of a job."""
    return {
        c["cluster"]: Cluster(
            age_s=_seconds(c["aom_now_ns"]),
            mean_s=_seconds(c["aom_mean_ns"]),
            peak_s=_seconds(c["aom_peak_mean_ns"]),
            deliveries=c["deliveries"],
            contributions=c["contributions"],
            staleness_mean=c["staleness_mean"],
            staleness_max=c["staleness_max"],
            clock_error_s=_seconds(c["clock_error_ns"]),
        )
        for c in (job["clusters"] if job else ())
    }


def _seconds(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e9
