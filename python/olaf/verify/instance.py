"""The question in whole ticks, the form in which every prover reads it.

``docs/design/010-verifier.md`` describes the model, its tie rules and its repairs to the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction


class Ties(StrEnum):
    """The meaning of two events in one tick."""

    CONTINUOUS = "continuous"
    """Phases and lateness are real numbers, and a tick stands for the instants that round to it.
    Either of two events in a tick may come first, within the limits of real times."""
    GRID = "grid"
    """Every event falls on a tick exactly. A departure comes before an arrival at its end (rule 1
    of the queue); arrivals of one instant come in any order."""


class Hears(StrEnum):
    """Receivers of the answer to an update that left the queue."""

    SHARED = "shared"
    """The workers that contributed to it."""
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
    """Largest lateness of an update in ticks, below ``interval``; each update has its own."""


@dataclass(frozen=True)
class Control:
    """A quota and a deadline instead of the paper's P_s in the congestion regime (OLAF §5).

    An update must be sent if its worker has heard no answer yet, or none for more than ``forced``
    ticks. Otherwise it may be held back, but of each ``window`` ready updates in a row at least
    ``at_least`` are sent. While the last answer is at most ``threshold`` ticks old, an update is
    sent only if at most ``at_most`` of the last ``window`` are then sent.

    With continuous ties, whole ticks may leave open whether an answer was heard, is more than
    ``forced`` or at most ``threshold`` old. A sender may then take it either way, so a proof also
    holds for senders that know it exactly.
    """

    window: int
    at_least: int
    at_most: int
    threshold: int
    """The paper's threshold Delta_T, in ticks."""
    forced: int
    """Ticks without an answer after which P_s = 1: threshold + (1 - Qmax/N) / v."""


@dataclass(frozen=True)
class Instance:
    """Clusters that share a queue, observed from an empty queue at tick 0 to ``horizon``."""

    tick_ns: int
    """Length of a tick, nanoseconds."""
    service: int
    """Ticks of an update on the link: the paper's p/C."""
    slots: int
    """Updates that the queue holds, including the one on the wire: the paper's Qmax."""
    horizon: int
    """Last tick of the observation."""
    clusters: tuple[str, ...]
    """Names of the clusters. Their number is the paper's F."""
    alike: tuple[int, ...]
    """A number for each cluster; equal clusters share it and may change places."""
    senders: tuple[Sender, ...]
    ties: Ties = Ties.CONTINUOUS
    control: Control | None = None
    """None: every update is sent (N <= Qmax, or no control)."""
    answer_delay: int = 0
    """Ticks from a departure to the workers that hear its answer: the paper's R."""
    hears: Hears = Hears.SHARED
    rounding: str = ""
    """How the times were rounded, a clause; empty: they are exact. See `olaf.verify.rounding`."""

    @property
    def deterministic(self) -> bool:
        """True if only phases determine a run: no lateness, no held updates."""
        return self.control is None and all(sender.jitter == 0 for sender in self.senders)

    def senders_of(self, cluster: int) -> list[int]:
        """Indices of a cluster's senders."""
        return [i for i, sender in enumerate(self.senders) if sender.cluster == cluster]


class Kind(StrEnum):
    """What an objective bounds. It holds if no run has a value above the limit."""

    FAIR_PEAK = "fair_peak"
    """Largest difference between two clusters' mean peak AoM, ns (OLAF §6)."""
    FAIR_AGE = "fair_age"
    """Largest difference between two clusters' average AoM, ns."""
    WORST_PEAK = "worst_peak"
    """Largest age that a cluster reaches after its first delivery, ns."""
    STARVATION = "starvation"
    """Longest time without a delivery of a cluster, from tick 0 to the end, ns."""
    LOSS = "loss"
    """Updates that found the queue full, divided by those sent, all clusters together, 0 to 1."""
    NO_AVERAGE = "no_average"
    """Number of clusters without a mean peak, with fewer than two deliveries. The fair objectives
    need this clause, since a cluster that never delivers has no average to compare."""

    @property
    def is_time(self) -> bool:
        """True if its values are nanoseconds."""
        return self not in (Kind.LOSS, Kind.NO_AVERAGE)

    @property
    def is_share(self) -> bool:
        """True if it counts updates up to the horizon.

        With continuous ties such phases are 1 to the interval: a tick stands for the real times
        just up to it. With phase 0, workers would also have an update just after the horizon.
        """
        return self is Kind.LOSS


@dataclass(frozen=True)
class Objective:
    """No run has a value above ``limit``."""

    kind: Kind
    limit: Fraction
    """Nanoseconds, or a share for LOSS."""
    clusters: tuple[int, ...]
    """Its clusters; a fair objective compares every pair of these."""
