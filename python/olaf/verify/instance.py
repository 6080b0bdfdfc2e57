"""What is verified, in whole ticks: the form in which every prover reads it.

The model, its tie rules and what it repairs of the paper stand in ``docs/design/010-verifier.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction


class Ties(StrEnum):
    """What two events of one tick mean."""

    CONTINUOUS = "continuous"
    """Phases and lateness are real numbers, and a tick stands for the instants that round to it:
    which of two events in it comes first is open, within what real times allow."""
    GRID = "grid"
    """Every event falls on a tick exactly: a departure comes before an arrival at its end (rule 1
    of the queue), arrivals of one instant come in any order."""


class Hears(StrEnum):
    """Who hears the answer to an update that left the queue."""

    SHARED = "shared"
    """The workers that have a part in it."""
    CLUSTER = "cluster"
    """Every worker of its cluster."""


@dataclass(frozen=True)
class Sender:
    """A worker: update n is ready at ``phase + n * interval + late``, late in 0 .. ``jitter``."""

    cluster: int
    """Index of its cluster in `Instance.clusters`."""
    interval: int
    """Ticks between its updates, at least 1."""
    jitter: int
    """Ticks that an update may be late, each on its own, below ``interval``."""


@dataclass(frozen=True)
class Control:
    """What stands for the paper's P_s in the congestion regime (OLAF §5): a quota and a deadline.

    An update that is ready while its worker has heard nothing yet, or nothing for more than
    ``forced`` ticks, is sent. Otherwise it may be held back, and of each ``window`` ready ones in
    a row at least ``at_least`` are sent. While the last answer is at most ``threshold`` ticks old,
    an update is sent only if that makes at most ``at_most`` of the last ``window``.

    Where ties are continuous and whole ticks leave open whether an answer was heard, is more than
    ``forced`` or at most ``threshold`` old, a sender may take it either way: what is proved of
    these holds for senders that know it exactly.
    """

    window: int
    at_least: int
    at_most: int
    threshold: int
    """The paper's threshold Delta_T, ticks."""
    forced: int
    """Silence, ticks, from which on P_s = 1: threshold + (1 - Qmax/N) / v."""


@dataclass(frozen=True)
class Instance:
    """Clusters that share a queue, observed from an empty queue at tick 0 to ``horizon``."""

    tick_ns: int
    """Length of a tick, nanoseconds."""
    service: int
    """Ticks that the link takes for an update: the paper's p/C."""
    slots: int
    """Updates the queue holds, the one on the wire included: the paper's Qmax."""
    horizon: int
    """Last tick observed."""
    clusters: tuple[str, ...]
    """Names. Their number is the paper's F."""
    alike: tuple[int, ...]
    """Of each cluster a number that equal clusters share: they may change places."""
    senders: tuple[Sender, ...]
    ties: Ties = Ties.CONTINUOUS
    control: Control | None = None
    """None: every update is sent (N <= Qmax, or no control)."""
    answer_delay: int = 0
    """Ticks from a departure to the workers that hear of it: the paper's R."""
    hears: Hears = Hears.SHARED

    @property
    def deterministic(self) -> bool:
        """Whether phases alone decide a run: no lateness, nothing held back."""
        return self.control is None and all(sender.jitter == 0 for sender in self.senders)

    def senders_of(self, cluster: int) -> list[int]:
        """Indices of a cluster's senders."""
        return [i for i, sender in enumerate(self.senders) if sender.cluster == cluster]


class Kind(StrEnum):
    """What an objective bounds. Each has a value in every run; it holds where none exceeds it."""

    FAIR_PEAK = "fair_peak"
    """Largest difference between two clusters' mean peak AoM, ns (OLAF §6)."""
    FAIR_AGE = "fair_age"
    """Largest difference between two clusters' average AoM, ns."""
    WORST_PEAK = "worst_peak"
    """Largest age that a cluster reaches from its first delivery on, ns."""
    STARVATION = "starvation"
    """Longest time without a delivery of a cluster, from tick 0 and to the end included, ns."""
    LOSS = "loss"
    """Updates that found the queue full, over those sent, all clusters together, 0 to 1."""
    NO_AVERAGE = "no_average"
    """Clusters without a mean peak, by fewer than two deliveries: the clause that the fair
    objectives need, for a cluster that never delivers has no average to be unfair by."""

    @property
    def is_time(self) -> bool:
        """Whether its values are nanoseconds."""
        return self not in (Kind.LOSS, Kind.NO_AVERAGE)


@dataclass(frozen=True)
class Objective:
    """No run has a value above ``limit``."""

    kind: Kind
    limit: Fraction
    """Nanoseconds, or a share for LOSS."""
    clusters: tuple[int, ...]
    """The clusters it is about; for the fair ones every pair of these."""
