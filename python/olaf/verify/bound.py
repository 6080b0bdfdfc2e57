"""The prover that computes: a bound on every run of a queue with room for all clusters.

Let a queue have more slots than clusters, and let every update be sent. Then

1. nothing is dropped: at most one update of each cluster waits, and the one on the wire may be
   another of the same cluster;
2. an update leaves at most ``(N + 1) s`` after it was sent, with N clusters and service time s:
   ahead of it are the rest of the one on the wire and one of each other cluster. A later update
   that takes its place in the queue leaves at the same time;
3. each worker sends an update at most ``T + J`` after its last one (interval T, jitter J), and the
   first one at most ``T + J`` after the start.

So a cluster is never older than ``T + J + (N + 1) s``, with the smallest ``T + J`` of its workers.
The bound holds for any number of workers and for every time; it need not be the smallest one.
"""

from __future__ import annotations

from fractions import Fraction

from olaf.verify.instance import Instance, Kind, Objective
from olaf.verify.prover import NoRun, UndecidedError


class Bound:
    """The closed form as a prover."""

    name = "bound"

    def __init__(self, instance: Instance, objective: Objective) -> None:
        self._instance = instance
        self._objective = objective

    @staticmethod
    def takes(instance: Instance, objective: Objective) -> str | None:
        """Why it has no bound for the question, or None."""
        if instance.control is not None:
            return "updates may be held back"
        if instance.slots <= len(instance.clusters):
            return "it needs more slots than clusters"
        if at_most(instance, objective) is None:
            return "the horizon is too short for two deliveries of every cluster"
        return None

    def exists(self, above: Fraction, deadline: float) -> NoRun:
        """A proof that no run is above. Raises UndecidedError if the bound is."""
        found = at_most(self._instance, self._objective)
        if found is None or found > above:
            raise UndecidedError(f"its bound is {found}")
        # Rounding makes T + J and s longer, never shorter: the exact bound is not above this one.
        return NoRun(forever=True, bears_rounding=True, at_most=found)


def at_most(instance: Instance, objective: Objective) -> Fraction | None:
    """A value that no run exceeds, in ns or as a share; None if the closed form has none."""
    if instance.control is not None or instance.slots <= len(instance.clusters):
        return None
    tick_ns, service = instance.tick_ns, instance.service
    oldest = max((_oldest(instance, cluster) for cluster in objective.clusters), default=0)
    match objective.kind:
        case Kind.WORST_PEAK | Kind.STARVATION:
            # A cluster delivers again before it reaches this age, and at first after this time.
            return Fraction(oldest * tick_ns)
        case Kind.FAIR_PEAK:
            # A peak comes two services or more after the update that it is the age of.
            return Fraction(max(oldest - 2 * service, 0) * tick_ns)
        case Kind.FAIR_AGE:
            return Fraction(max(oldest - service, 0) * tick_ns)
        case Kind.LOSS:
            return Fraction(0)
        case Kind.NO_AVERAGE:
            # Two deliveries fit the horizon.
            return Fraction(0) if instance.horizon >= 2 * oldest else None


def _oldest(instance: Instance, cluster: int) -> int:
    """``T + J + (N + 1) s`` of a cluster, in ticks."""
    senders = [instance.senders[at] for at in instance.senders_of(cluster)]
    soonest = min(sender.interval + sender.jitter for sender in senders)
    return soonest + (len(instance.clusters) + 1) * instance.service
