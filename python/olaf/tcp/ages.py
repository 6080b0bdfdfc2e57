"""Age and staleness of a cluster, as Olaf's server measures them, for a server in Python.

The definitions are those of ``crates/olaf-host/src/age.rs`` (OLAF §2.2, §6), so both servers report
the same quantity under the same name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class AgeOfModel:
    """The sawtooth age of one cluster: now minus the push time of the newest delivered update.

    Observed from the first delivery on. Times are nanoseconds of one clock.
    """

    _first_ns: int | None = None
    _newest_ns: int = 0
    _changed_ns: int = 0
    _integral: float = 0.0
    _peaks_ns: int = 0
    _drops: int = 0

    def deliver(self, now_ns: int, generated_ns: int) -> None:
        """Record the delivery of an update pushed at ``generated_ns``; ignore older updates."""
        if self._first_ns is None:
            self._first_ns = self._changed_ns = now_ns
            self._newest_ns = generated_ns
        elif generated_ns > self._newest_ns:
            self._peaks_ns += self._age_ns(now_ns)
            self._drops += 1
            self._integral = self._integral_until(now_ns)
            self._changed_ns = max(self._changed_ns, now_ns)
            self._newest_ns = generated_ns

    def now_ns(self, now_ns: int) -> int | None:
        """The age in nanoseconds; None before the first delivery."""
        return None if self._first_ns is None else self._age_ns(now_ns)

    def mean_ns(self, now_ns: int) -> float | None:
        """Time average of the age since the first delivery."""
        if self._first_ns is None or now_ns <= self._first_ns:
            return None
        return self._integral_until(now_ns) / (now_ns - self._first_ns)

    def peak_mean_ns(self) -> float | None:
        """Mean of the ages just before each drop; None if the age never dropped."""
        return self._peaks_ns / self._drops if self._drops else None

    def _age_ns(self, at_ns: int) -> int:
        return max(at_ns - self._newest_ns, 0)

    def _integral_until(self, end_ns: int) -> float:
        length = float(max(end_ns - self._changed_ns, 0))
        return self._integral + length * (self._age_ns(self._changed_ns) + length / 2)


@dataclass
class Staleness:
    """For each delivered contribution, the model versions since its model."""

    count: int = 0
    total: int = 0
    most: int = 0

    def take(self, behind: int) -> None:
        """Add one contribution."""
        self.count += 1
        self.total += behind
        self.most = max(self.most, behind)

    @property
    def mean(self) -> float | None:
        """The mean; None before the first."""
        return self.total / self.count if self.count else None


@dataclass
class Cluster:
    """All measures of one cluster."""

    age: AgeOfModel = field(default_factory=AgeOfModel)
    staleness: Staleness = field(default_factory=Staleness)
    workers: set[int] = field(default_factory=set)
    last_reward: float | None = None


def jain(values: Iterable[float]) -> float | None:
    """Jain's fairness index: 1 when all are equal, 1/n when one has all; None for no values."""
    known = list(values)
    if not known:
        return None
    squares = sum(value * value for value in known)
    return 1.0 if squares == 0 else sum(known) ** 2 / (len(known) * squares)
