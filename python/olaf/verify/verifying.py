"""Asks the provers until an objective is decided, then for its edge; the engine confirms it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from threading import Event

from olaf.verify.bound import Bound, at_most
from olaf.verify.instance import Instance, Kind, Objective
from olaf.verify.portfolio import DisagreementError, Portfolio, Says, StoppedError
from olaf.verify.prover import NoRun, UndecidedError
from olaf.verify.verdict import Answer, Verdict, Witness
from olaf.verify.witness import confirm, sampled
from olaf.verify.words import amount

FAIR = (Kind.FAIR_PEAK, Kind.FAIR_AGE)
CLOSED = (Kind.WORST_PEAK, Kind.STARVATION)
"""Kinds whose value only grows with the horizon: a violation in a shorter one counts."""
ANY = Fraction(-1)
"""Below every value."""
EDGE_S = 2.0
EDGE_SHARE = 0.1
"""Share of the timeout, at least `EDGE_S`, for the edge if the caller did not ask for it."""
WITNESS_SHARE = 0.15


def verify(
    instance: Instance,
    objective: Objective,
    *,
    timeout_s: float = 60.0,
    tightest: bool = False,
    provers: Sequence[str] | None = None,
    say: Says | None = None,
    stop: Event | None = None,
) -> Verdict:
    """Whether no run of the instance has a value above the objective's limit.

    timeout_s: time limit in seconds for everything. tightest: use the remaining time to find the
    smallest limit that holds. provers, say, stop: see `olaf.verify.portfolio.Portfolio`. Ctrl-C and
    stop end it with the results so far. Raises DisagreementError for a bug of ours.
    """
    with Portfolio(provers, say, stop) as portfolio:
        return decide(portfolio, instance, objective, timeout_s=timeout_s, tightest=tightest)


def decide(
    portfolio: Portfolio,
    instance: Instance,
    objective: Objective,
    *,
    timeout_s: float,
    tightest: bool = False,
    edge: bool = True,
) -> Verdict:
    """Like `verify`, for several questions in turn. edge: whether to look for it."""
    case = _Case(portfolio, instance, objective, timeout_s)
    try:
        case.sample()
        case.decide()
        case.find_edge(wanted=edge or tightest, tightest=tightest)
    except StoppedError as error:
        case.give_up(str(error))
    except KeyboardInterrupt:
        portfolio.stop.set()
        case.give_up("interrupted")
    return case.verdict()


class _Case:
    """The state of one objective."""

    def __init__(
        self, portfolio: Portfolio, instance: Instance, objective: Objective, timeout_s: float
    ) -> None:
        self._portfolio = portfolio
        self._instance = instance
        self._objective = objective
        self._timeout_s = timeout_s
        self._begin = time.monotonic()
        self._cpu_begin = time.process_time() + portfolio.cpu_seconds
        self._deadline = self._begin + timeout_s
        self._answer = Answer.UNDECIDED
        self._reason = ""
        self._clause: Kind | None = None
        self._averages_forever = True
        """No cluster stops delivering, or lacks a mean, beyond the horizon."""
        self._forever = False
        self._edge_forever = False
        self._who: list[str] = []
        self._best: Witness | None = None
        self._at_most: Fraction | None = None
        self._seconds: float | None = None
        self._cpu_seconds = 0.0

    def sample(self) -> None:
        """Find a run or two to begin with."""
        self._best = sampled(self._instance, self._objective)

    def decide(self) -> None:
        """Find the answer."""
        if self._portfolio.samples and self._best and self._best.value > self._objective.limit:
            self._violated("sample")
        elif self._everybody_has_an_average():
            self._within_the_limit()
        self._stop_the_clock()

    def find_edge(self, *, wanted: bool, tightest: bool) -> None:
        """Find how close to the limit a run comes, or how far beyond a violated one."""
        if self._clause is not None or self._answer is Answer.UNDECIDED:
            return
        if self._answer is Answer.HOLDS and self._best is None:
            self._show_that_there_is_a_run()
        if wanted and (self._answer is Answer.HOLDS or tightest):
            share_s = max(EDGE_S, EDGE_SHARE * self._timeout_s)
            ends = self._deadline if tightest else time.monotonic() + share_s
            self._narrow(min(ends, self._deadline))

    def give_up(self, reason: str) -> None:
        """Stop here; an answer that was found stays."""
        if self._answer is Answer.HOLDS and self._best is None:
            self._answer = Answer.UNDECIDED
        self._reason = self._reason or reason + self._up_to()

    def verdict(self) -> Verdict:
        """The verdict so far."""
        self._stop_the_clock()
        assert self._seconds is not None
        return Verdict(
            instance=self._instance,
            objective=self._objective,
            answer=self._answer,
            forever=self._forever,
            prover="+".join(self._who),
            seconds=self._seconds,
            cpu_seconds=self._cpu_seconds,
            witness=self._best,
            at_most=self._at_most,
            reason="" if self._answer is Answer.HOLDS else self._reason,
            clause=self._clause,
            edge_forever=self._edge_forever,
            edge_seconds=time.monotonic() - self._begin - self._seconds,
        )

    def _stop_the_clock(self) -> None:
        if self._seconds is None:
            self._seconds = time.monotonic() - self._begin
            now = time.process_time() + self._portfolio.cpu_seconds
            self._cpu_seconds = now - self._cpu_begin

    def _everybody_has_an_average(self) -> bool:
        """Decide the clause of the fair kinds; True if they can then be asked."""
        if self._objective.kind not in FAIR:
            return True
        if self._objective.kind is Kind.FAIR_AGE and not self._is_taken():
            return False
        clause = replace(self._objective, kind=Kind.NO_AVERAGE, limit=Fraction(0))
        half = (self._begin + self._deadline) / 2
        try:
            found = self._ask(clause, Fraction(0), half, forever=self._instance.deterministic)
        except UndecidedError as error:
            self._reason = f"whether every cluster delivers twice, so that it has a mean: {error}"
            return True
        if isinstance(found, NoRun):
            self._averages_forever = self._is_forever(found)
            return True
        self._best = found
        assert found.pair is not None
        name = self._instance.clusters[found.pair[0]]
        count = len(found.run.deliveries[found.pair[0]])
        times = ("never delivers", "delivers once only")[count]
        self._clause = Kind.NO_AVERAGE
        self._answer = Answer.VIOLATED
        self._reason = f"{name} {times} within the horizon: it starves, and has no mean to compare"
        return False

    def _is_taken(self) -> bool:
        """Whether any prover can decide the question: most do not know the mean age."""
        asked = [self._instance], self._objective, None, self._deadline
        try:
            self._portfolio.ask(*asked, f"can it decide {self._objective.kind}")
        except UndecidedError as error:
            self._reason = str(error)
            if self._best and self._best.value > self._objective.limit:
                self._violated("sample")
            return False
        return True

    def _within_the_limit(self) -> None:
        limit = self._objective.limit
        # Without a run so far, keep time to find one, as evidence that the premises can be met.
        kept_s = 0.0 if self._best else WITNESS_SHARE * self._timeout_s
        try:
            ends = self._deadline - kept_s
            # Only these have proofs for ever.
            forever = self._objective.kind in CLOSED or self._instance.deterministic
            found = self._ask(self._objective, limit, ends, self._shorter(), forever=forever)
        except UndecidedError as error:
            if self._best and self._best.value > limit:
                self._violated("sample")
            else:
                self._reason = self._reason or str(error) + self._up_to() + self._computed_limit()
            return
        if isinstance(found, Witness):
            self._best = found
            self._violated()
            return
        self._below(limit if found.at_most is None else found.at_most, found)
        self._forever = self._is_forever(found) and self._averages_forever
        horizon_ns = self._instance.horizon * self._instance.tick_ns
        if self._objective.kind in CLOSED and not found.forever and limit >= horizon_ns:
            reach = amount(self._objective.kind, limit)
            self._reason = (
                f"no age can exceed the horizon, which is not above {reach}: set "
                "time.horizon_ms to at least twice the limit"
            )
            return
        if self._reason:  # the clause is open
            self._reason = f"no two means are further apart, but undecided is {self._reason}"
        else:
            self._answer = Answer.HOLDS

    def _up_to(self) -> str:
        """The proved part of the horizon, if it is not the whole."""
        ticks = self._portfolio.up_to
        if not ticks or self._at_most is not None:
            return ""
        horizon = amount(Kind.WORST_PEAK, Fraction(ticks * self._instance.tick_ns))
        return f"; it holds up to {horizon}"

    def _violated(self, prover: str | None = None) -> None:
        if prover is not None:
            self._who = [prover]
        self._answer = Answer.VIOLATED
        self._reason = ""
        self._forever = self._objective.kind in CLOSED

    def _show_that_there_is_a_run(self) -> None:
        """A vacuous answer, about runs in which nothing happens, is no proof."""
        try:
            found = self._ask(self._objective, ANY, self._deadline)
        except UndecidedError as error:
            self.give_up(f"proved, but no run was found that has a value at all: {error}")
            return
        if isinstance(found, NoRun):
            self.give_up("no run up to the horizon has anything to measure: lengthen the horizon")
            return
        self._best = found

    def _narrow(self, ends: float) -> None:
        """Halve the distance between the best run and the proved bound; then climb from the run."""
        assert self._best is not None
        step = Fraction(self._instance.tick_ns if self._objective.kind.is_time else Fraction(1, 64))
        jump = step
        while self._best.value != self._at_most:
            low = self._best.value
            if self._at_most is None:
                above = low if jump == step else low + jump
            elif self._at_most - low <= step:
                above = low
            else:
                above = (low + self._at_most) / 2
            try:
                found = self._ask(self._objective, above, ends)
            except UndecidedError:
                return
            if isinstance(found, Witness):
                self._best = found
                jump *= 2
            elif self._answer is Answer.HOLDS and self._forever and not found.forever:
                return  # the answer reaches further than this would
            else:
                self._below(above, found)

    def _below(self, above: Fraction, proof: NoRun) -> None:
        self._at_most = above
        self._edge_forever = self._is_forever(proof) and self._averages_forever
        if self._best is not None and self._best.value > above:
            raise DisagreementError(
                f"{'+'.join(self._who)} proved that no {self._objective.kind} is above {above}, "
                f"and there is a run with {self._best.value}. Please report this, with the "
                f"instance and the schedule:\n{self._instance}\n{self._objective}\n"
                f"{self._best.schedule}"
            )

    def _is_forever(self, proof: NoRun) -> bool:
        # The lateness that stands for rounding is that of the horizon.
        return proof.forever and (proof.bears_rounding or not self._instance.rounding)

    def _shorter(self) -> list[Instance]:
        """Shorter horizons in which a violation can occur, and is found sooner."""
        if self._objective.kind not in CLOSED:
            return []
        needs = self._objective.limit / self._instance.tick_ns
        horizons = (self._instance.horizon // part for part in (4, 2))
        return [replace(self._instance, horizon=h) for h in horizons if h > needs]

    def _ask(
        self,
        objective: Objective,
        above: Fraction,
        deadline: float,
        shorter: Sequence[Instance] = (),
        *,
        forever: bool = False,
    ) -> Witness | NoRun:
        if time.monotonic() >= deadline:
            raise UndecidedError("out of time")
        quick = self._computed(objective, above)
        if quick is not None:
            return quick
        what = f"{objective.kind} above {amount(objective.kind, above)}"
        if objective.kind is Kind.NO_AVERAGE:
            what = "a cluster without a mean"
        if above == ANY:
            what = "any run"
        instances = [*shorter, self._instance]
        answer, who = self._portfolio.ask(
            instances, objective, above, deadline, what, forever=forever
        )
        self._credit(who)
        if isinstance(answer, NoRun):
            return answer
        return confirm(answer.instance, objective, above, answer.schedule, who)

    def _computed_limit(self) -> str:
        """The limit that the closed form proves, if it has one."""
        limit = at_most(self._instance, self._objective) if self._portfolio.computes else None
        if limit is None:
            return ""
        return f"; no run is above {amount(self._objective.kind, limit)}"

    def _computed(self, objective: Objective, above: Fraction) -> NoRun | None:
        """The answer of the closed form, which needs no process of its own."""
        if not self._portfolio.computes or Bound.takes(self._instance, objective) is not None:
            return None
        try:
            found = Bound(self._instance, objective).exists(above, self._deadline)
        except UndecidedError:
            return None
        self._credit(Bound.name)
        return found

    def _credit(self, who: str) -> None:
        """Note who answered, until the question is decided."""
        if self._seconds is None and who not in self._who:
            self._who.append(who)
