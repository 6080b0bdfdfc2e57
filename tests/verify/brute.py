"""The slow, obvious prover: every phase of every sender, one after the other, by the engine."""

import time
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product

from olaf.verify.instance import Instance, Kind, Objective, Ties
from olaf.verify.prover import NoRun, UndecidedError
from olaf.verify.schedule import Schedule, Send, on_ticks, replay, value


class Brute:
    """Phases alone, in whole ticks and every rank within them."""

    name = "brute"

    def __init__(self, instance: Instance, objective: Objective) -> None:
        self._instance = instance
        self._objective = objective
        self._values: list[tuple[Fraction, Schedule]] | None = None

    @staticmethod
    def takes(instance: Instance, objective: Objective) -> str | None:
        return None if instance.deterministic else "only phases"

    def exists(self, above: Fraction, deadline: float) -> Schedule | NoRun:
        if self._values is None:
            self._values = self._all(deadline)
        if self._values and self._values[0][0] > above:
            return self._values[0][1]
        return NoRun()

    def _all(self, deadline: float) -> list[tuple[Fraction, Schedule]]:
        known = []
        instance = self._instance
        ranks = range(len(instance.senders))
        continuous = instance.ties is Ties.CONTINUOUS
        # Hardly below the interval counts as the interval, and is before 0 within its tick.
        first = int(continuous and self._objective.kind.is_share)
        ranges = [range(first, each.interval + continuous) for each in instance.senders]
        for phases in product(*ranges):
            ends = [i for i in ranks if phases[i] == instance.senders[i].interval]
            begins = [i for i in ranks if phases[i] == 0]
            for rank in permutations(ranks) if continuous else [[0] * 99]:
                if any(rank[end] > rank[begin] for end, begin in product(ends, begins)):
                    continue
                if time.monotonic() > deadline:
                    raise UndecidedError("out of time")
                sends = [
                    Send(at, rank[index], index)
                    for index, sender in enumerate(instance.senders)
                    for at in range(phases[index], instance.horizon + 1, sender.interval)
                ]
                schedule = Schedule(tuple(sorted(sends)))
                run = replay(instance, schedule)
                known += self._valued(schedule)
                last_ns = max((d.end_ns for each in run.deliveries for d in each), default=0)
                at_end = last_ns // instance.tick_ns == instance.horizon
                if (
                    continuous
                    and self._objective.kind is Kind.FAIR_PEAK
                    and at_end
                    and all(last_ns % instance.tick_ns > rank[end] for end in ends)
                ):
                    known += self._valued(replace(schedule, last_counts=False))
        return sorted(known, key=lambda pair: pair[0], reverse=True)

    def _valued(self, schedule: Schedule) -> list[tuple[Fraction, Schedule]]:
        run = on_ticks(self._instance, replay(self._instance, schedule))
        reached = value(run, self._objective)
        return [] if reached is None else [(reached, schedule)]


class Slow(Brute):
    """Thinks until the deadline and beyond."""

    def exists(self, above: Fraction, deadline: float) -> Schedule | NoRun:
        time.sleep(600)
        raise AssertionError


class Tiring(Brute):
    """Thinks until the deadline of a horizon above 12 ticks."""

    def exists(self, above: Fraction, deadline: float) -> Schedule | NoRun:
        if self._instance.horizon > 12:
            time.sleep(600)
        return super().exists(above, deadline)


class Broken(Brute):
    def exists(self, above: Fraction, deadline: float) -> Schedule | NoRun:
        raise RuntimeError("no such luck")


class Liar(Brute):
    """Finds runs that no sender can do."""

    def exists(self, above: Fraction, deadline: float) -> Schedule | NoRun:
        return Schedule((Send(0, 0, 0),))


class Exaggerator(Brute):
    """Finds runs, but none above what was asked."""

    def exists(self, above: Fraction, deadline: float) -> Schedule | NoRun:
        found = super().exists(Fraction(-1), deadline)
        assert isinstance(found, Schedule)
        return found


class Denier(Brute):
    """Proves whatever it is asked."""

    def exists(self, above: Fraction, deadline: float) -> Schedule | NoRun:
        return NoRun(forever=True)


class Bounded(Brute):
    """Proves whatever it is asked, up to the horizon."""

    def exists(self, above: Fraction, deadline: float) -> Schedule | NoRun:
        return NoRun()


class Late(Brute):
    """Proves for ever, a little after the brute."""

    def exists(self, above: Fraction, deadline: float) -> Schedule | NoRun:
        answer = super().exists(above, deadline)
        time.sleep(0.5)
        return NoRun(forever=True) if isinstance(answer, NoRun) else answer


class LateFind(Brute):
    """Finds a run, a little later than others prove that there is none."""

    def exists(self, above: Fraction, deadline: float) -> Schedule | NoRun:
        time.sleep(0.5)
        return super().exists(above, deadline)
