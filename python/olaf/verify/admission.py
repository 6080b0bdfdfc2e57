"""Decides whether a cluster may join the running ones; if not, says why and what would fit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event
from typing import Literal

from olaf.errors.usage import ConfigurationError
from olaf.verify.fitting import Asked, Suggestion, joined, objectives_of, reach_of, search
from olaf.verify.portfolio import Portfolio, Says
from olaf.verify.spec import ClusterSpec, Spec
from olaf.verify.verdict import Answer, Verdict
from olaf.verify.words import amount, found

ANSWER_SHARE = 0.6
"""Share of the time for the answer; the rest is for a suggestion."""


@dataclass(frozen=True)
class Admission:
    """The decision about a newcomer."""

    answer: Literal["admit", "refuse", "undecided"]
    reason: str
    """The objective, its clusters, the value and the limit; and a change that would fit."""
    verdicts: tuple[Verdict, ...]
    """Verdicts for running clusters and newcomer together, up to the first violated one."""
    suggestion: Suggestion | None = None
    running_holds: bool | None = None
    """Whether the violated objective holds without the newcomer; None: unknown."""


def admit(
    newcomer: ClusterSpec,
    running: Spec,
    *,
    timeout_s: float,
    say: Says | None = None,
    stop: Event | None = None,
    provers: Sequence[str] | None = None,
) -> Admission:
    """Whether the objectives of ``running`` hold with the newcomer among its clusters.

    An objective without clusters includes the newcomer. timeout_s: time limit in seconds for
    everything. Raises ConfigurationError if the two cannot be verified together.
    """
    begin = time.monotonic()
    joint = joined(newcomer, running)
    if not objectives_of(joint):
        raise ConfigurationError("there is no [[objective]] about these clusters: add one")
    with Portfolio(provers, say, stop) as portfolio:
        asked = Asked(portfolio, begin + timeout_s)
        verdicts = asked.all_of(joint, ANSWER_SHARE * timeout_s)
        last = verdicts[-1]
        if all(verdict.answer is Answer.HOLDS for verdict in verdicts):
            return Admission("admit", _all_hold(newcomer, verdicts), verdicts)
        if last.answer is not Answer.VIOLATED:
            open_ = next(v for v in verdicts if v.answer is Answer.UNDECIDED)
            reason = f"{_about(open_)} is undecided: {open_.reason}"
            return Admission("undecided", reason, verdicts)
        reason = _broken(last)
        holds = asked.holds_without(running, last)
        if holds is False:
            reason += "; it does not hold without the newcomer either"
            return Admission("refuse", reason, verdicts, None, holds)
        suggestion = search(newcomer, running, asked, last)
        if suggestion is not None:
            reason += f"; {suggestion.text}"
        elif asked.left_s > 0:
            reason += "; no change was found that would fit"
        else:
            reason += "; there was no time left to try all changes that might fit"
        return Admission("refuse", reason, verdicts, suggestion, holds)


def _all_hold(newcomer: ClusterSpec, verdicts: Sequence[Verdict]) -> str:
    count = len(verdicts)
    what = "the objective holds" if count == 1 else f"all {count} objectives hold"
    return f"with {newcomer.name} {what}, proved {reach_of(verdicts)}"


def _broken(verdict: Verdict) -> str:
    if verdict.clause is not None:
        return f"{verdict.objective.kind}: {found(verdict)}"
    return f"{_about(verdict)} is violated: a run has {found(verdict)}"


def _about(verdict: Verdict) -> str:
    kind = verdict.objective.kind
    return f"{kind} of at most {amount(kind, verdict.objective.limit)}"
