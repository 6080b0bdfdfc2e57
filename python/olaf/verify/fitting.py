"""Searches for a change to a newcomer, or to the queue, with which every objective is proved.

Only a proved change is suggested. A longer interval does not always help (two clusters may be
further apart with it), so no interval says anything about another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from olaf.errors.usage import ConfigurationError
from olaf.verify.instance import Instance, Kind, Objective
from olaf.verify.portfolio import Portfolio
from olaf.verify.reading import checked
from olaf.verify.spec import ClusterSpec, ObjectiveSpec, Spec, names_of
from olaf.verify.ticks import instance_of, objective_of
from olaf.verify.verdict import Answer, Verdict
from olaf.verify.verifying import FAIR, decide
from olaf.verify.words import is_mean, reach

PROBE_SHARE = 0.25
"""Share of the remaining time for one candidate change."""
DOUBLINGS = (2, 4, 8, 16, 32, 64)
"""Longest interval that a newcomer is asked for, as a multiple of its own."""


@dataclass(frozen=True)
class Suggestion:
    """A change with which all objectives are proved."""

    key: str
    """The key in the TOML file: ``cluster.interval_ms``, ``control.window``, ``queue.slots``."""
    value: Decimal | int
    text: str
    verdicts: tuple[Verdict, ...]


def joined(newcomer: ClusterSpec, running: Spec) -> Spec:
    """The running clusters and the newcomer. Raises ConfigurationError."""
    told = running.model_dump()
    told["cluster"] = [*told["cluster"], newcomer.model_dump()]
    return checked(told, Spec, f"with {newcomer.name}")


def objectives_of(spec: Spec) -> list[ObjectiveSpec]:
    """The objectives that can be asked: fair ones need two clusters."""
    alone = sum(len(names_of(group)) for group in spec.cluster) < 2
    return [each for each in spec.objective if not (alone and each.kind in FAIR)]


class Asked:
    """The questions of one admission: their time limit, and their verdicts."""

    def __init__(self, portfolio: Portfolio, deadline: float) -> None:
        self._portfolio = portfolio
        self._deadline = deadline

    @property
    def left_s(self) -> float:
        """Remaining seconds; 0 once it was stopped."""
        return 0.0 if self._portfolio.stop.is_set() else self._deadline - time.monotonic()

    def all_of(
        self, spec: Spec, within_s: float, first: Kind | None = None, *, stubborn: bool = True
    ) -> tuple[Verdict, ...]:
        """Verdicts up to the first violated one; ``first`` is asked before the others.

        stubborn: continue after an undecided one, since the next may be violated.
        """
        instance = instance_of(spec)
        asked = [objective_of(each, spec, instance) for each in objectives_of(spec)]
        asked.sort(key=lambda objective: objective.kind is not first)
        ends = min(time.monotonic() + within_s, self._deadline)
        verdicts: list[Verdict] = []
        for number, objective in enumerate(asked):
            part_s = max(ends - time.monotonic(), 0.0) / (len(asked) - number)
            verdicts.append(self._one(instance, objective, part_s))
            answer = verdicts[-1].answer
            if answer is Answer.VIOLATED or (answer is Answer.UNDECIDED and not stubborn):
                break
        return tuple(verdicts)

    def holds_without(self, running: Spec, broken: Verdict) -> bool | None:
        """Whether the violated objective holds for the running clusters alone."""
        names = {name for group in running.cluster for name in (group.name, *names_of(group))}
        spec = running.model_copy(
            update={
                "objective": [
                    each.model_copy(update={"clusters": [n for n in each.clusters if n in names]})
                    for each in running.objective
                    if each.kind is broken.objective.kind
                    and (not each.clusters or names & set(each.clusters))
                ]
            }
        )
        if not running.cluster or not objectives_of(spec) or self.left_s <= 0:
            return None
        try:
            verdicts = self.all_of(spec, PROBE_SHARE * self.left_s)
        except ConfigurationError:  # a fair objective about one of these and the newcomer
            return None
        answers = {verdict.answer for verdict in verdicts}
        if Answer.VIOLATED in answers:
            return False
        return None if Answer.UNDECIDED in answers else True

    def fits(self, spec: Spec, first: Kind) -> tuple[Verdict, ...] | None:
        """The verdicts if all objectives hold, otherwise None."""
        if self.left_s <= 0:
            return None
        try:
            verdicts = self.all_of(spec, PROBE_SHARE * self.left_s, first, stubborn=False)
        except ConfigurationError:  # too many ticks
            return None
        hold = all(verdict.answer is Answer.HOLDS for verdict in verdicts)
        return verdicts if hold else None

    def _one(self, instance: Instance, objective: Objective, part_s: float) -> Verdict:
        return decide(self._portfolio, instance, objective, timeout_s=part_s, edge=False)


def search(
    newcomer: ClusterSpec, running: Spec, asked: Asked, broken: Verdict
) -> Suggestion | None:
    """The first change that fits, starting with the smallest demands on the other clusters."""
    ways = [_interval, _quota, _slots]
    if broken.objective.kind is Kind.LOSS:
        ways = [_interval, _slots, _quota]
    for way in ways:
        suggestion = way(newcomer, running, asked, broken)
        if suggestion is not None:
            return suggestion
    return None


def _interval(
    newcomer: ClusterSpec, running: Spec, asked: Asked, broken: Verdict
) -> Suggestion | None:
    """Double the interval until it fits, then halve the distance to one that does not."""
    kind, now_ms = broken.objective.kind, newcomer.interval_ms
    proved: dict[Decimal, tuple[Verdict, ...]] = {}

    def fits(interval_ms: Decimal) -> bool:
        changed = newcomer.model_copy(update={"interval_ms": interval_ms})
        verdicts = asked.fits(joined(changed, running), kind)
        if verdicts is not None:
            proved[interval_ms] = verdicts
        return verdicts is not None

    doubled = [now_ms * factor for factor in DOUBLINGS]
    first = next((at for at, interval_ms in enumerate(doubled) if fits(interval_ms)), None)
    if first is not None:
        low = doubled[first - 1] if first else now_ms
        _halve(low, doubled[first], Decimal(broken.instance.tick_ns) / 1_000_000, fits)
    elif kind in FAIR:
        # The interval of a cluster that is present already.
        known = sorted({group.interval_ms for group in running.cluster}, reverse=True)
        any(fits(interval_ms) for interval_ms in known if interval_ms > newcomer.jitter_ms)
    if not proved:
        return None
    best = min(proved, key=lambda interval_ms: abs(interval_ms - now_ms))
    return _suggestion("cluster.interval_ms", best, f"an update every {best:f} ms", proved[best])


def _halve(low: Decimal, high: Decimal, tick: Decimal, fits: Callable[[Decimal], bool]) -> None:
    """Narrow down from an interval that does not fit and one that does to one tick apart."""
    while high - low > tick:
        middle = low + ((high - low) / tick // 2) * tick
        if fits(middle):
            high = middle
        else:
            low = middle


def _quota(
    newcomer: ClusterSpec, running: Spec, asked: Asked, broken: Verdict
) -> Suggestion | None:
    """Turn control on; if it is on, try quotas of few updates, then of twice as many."""
    joint = joined(newcomer, running)
    share = Fraction(joint.queue.slots, len(broken.instance.clusters))
    if share >= 1:
        return None
    for window in (share.denominator, 2 * share.denominator):
        control = joint.control.model_copy(update={"kind": "paper", "window": window})
        same = broken.instance.control is not None and broken.instance.control.window == window
        if same or window > 64:
            continue
        verdicts = asked.fits(joint.model_copy(update={"control": control}), broken.objective.kind)
        if verdicts is not None:
            of = f"a quota of {int(share * window)} of {window} updates"
            if joint.control.kind == "off":
                of = f'control.kind = "paper" with {of}'
            return _suggestion("control.window", window, of, verdicts)
    return None


def _slots(
    newcomer: ClusterSpec, running: Spec, asked: Asked, broken: Verdict
) -> Suggestion | None:
    """More slots, as few as fit: one per cluster and one on the wire always suffice."""
    joint = joined(newcomer, running)
    low, high = joint.queue.slots, min(len(broken.instance.clusters) + 1, 64)
    best: tuple[int, tuple[Verdict, ...]] | None = None
    tried = high
    while low < high and asked.left_s > 0:
        queue = joint.queue.model_copy(update={"slots": tried})
        verdicts = asked.fits(joint.model_copy(update={"queue": queue}), broken.objective.kind)
        if verdicts is not None:
            best, high = (tried, verdicts), tried
        elif best is None:
            return None
        else:
            low = tried
        if high - low <= 1:
            break
        tried = (low + high) // 2
    if best is None:
        return None
    return _suggestion("queue.slots", best[0], f"{best[0]} slots", best[1])


def _suggestion(
    key: str, value: Decimal | int, what: str, verdicts: tuple[Verdict, ...]
) -> Suggestion:
    return Suggestion(key, value, f"{what} would fit, proved {reach_of(verdicts)}", verdicts)


def reach_of(verdicts: Sequence[Verdict]) -> str:
    """The range in which all of them hold."""
    return reach(min(verdicts, key=lambda verdict: (verdict.forever, not is_mean(verdict))))
