"""OLAF §6: the two cases that the paper verifies, in every reading, and how the time grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from pydantic import Field

from olaf.experiments import Column, Goal, Result, Row, Spread, Table, Task
from olaf.experiments.olaf.verify_growth import (
    Growth,
    Line,
    Questions,
    Taken,
    asked,
    charts,
    instance_of,
    limit_of,
    table,
)
from olaf.verify import Answer, Kind, Spec, Verdict, objective_of, verify
from olaf.verify import instance_of as instance_of_spec
from olaf.verify.words import amount, reach

INTERVAL_MS = 100
"""Interval of the first cluster, in both cases."""
CASE_GOAL_S = 1.0
CASE_TIMEOUT_S = 30.0
LIKELY = (2, 2)
"""The examples' p/C in ms, and their slots."""
GOALS = (
    Line(name="phases free, fair", group="phases", kind="fair_peak", prover="all", slots="all",
         limit="reached"),
    Line(name="phases free, fair, half the slots", group="phases", kind="fair_peak", prover="all",
         slots="half", limit="reached"),
    Line(name="jitter, worst peak", group="jitter", kind="worst_peak", prover="all", slots="all",
         limit="reached"),
    Line(name="control, starvation", group="control", kind="starvation", prover="all",
         slots="half", limit="reached"),
)  # fmt: skip


class Parameters(Growth):
    """The paper's cases and the questions of the growth."""

    other_interval_ms: list[int] = Field(min_length=1)
    """Between updates of the second cluster: a case each."""
    threshold_ms: int = Field(ge=1)
    """Delta_T."""
    service_ms: list[int] = Field(min_length=1)
    """Readings of p/C = 2."""
    slots: list[int] = Field(min_length=1)
    """Readings of Qmax."""
    epsilon_ms: list[Decimal] = Field(min_length=1)
    """Readings of epsilon = 0.1."""


@dataclass
class Reading:
    """One case, read in one way but for epsilon."""

    other_ms: int
    service_ms: int
    slots: int
    verdicts: dict[Decimal, list[Verdict]] = field(default_factory=dict)
    """By epsilon, one a seed."""
    edge: Verdict | None = None
    """The verdict on the largest epsilon, with its smallest limit."""

    @property
    def case(self) -> str:
        """``100/300 ms``."""
        return f"{INTERVAL_MS}/{self.other_ms} ms"

    @property
    def words(self) -> str:
        """The whole of it."""
        return f"{self.case}, p/C = {self.service_ms} ms, Qmax = {self.slots}"

    def ask(self, given: Parameters) -> None:
        """Once more, with each epsilon, by what `olaf verify` asks."""
        spec = spec_of(self, given)
        instance = instance_of_spec(spec)
        for epsilon, each in zip(given.epsilon_ms, spec.objective, strict=True):
            objective = objective_of(each, spec, instance)
            verdict = verify(instance, objective, timeout_s=CASE_TIMEOUT_S)
            self.verdicts.setdefault(epsilon, []).append(verdict)
            if self.edge is None:
                tight = verdict.tight or verdict.clause is not None
                self.edge = verdict if tight else self._edge(verdict)

    @staticmethod
    def _edge(verdict: Verdict) -> Verdict:
        return verify(verdict.instance, verdict.objective, timeout_s=CASE_TIMEOUT_S, tightest=True)

    def seconds(self, of: str) -> list[float]:
        """Seconds of the slowest epsilon, by seed."""
        each = [[getattr(v, of) for v in verdicts] for verdicts in self.verdicts.values()]
        return [max(seed) for seed in zip(*each, strict=True)]


def run(task: Task[Parameters]) -> Result:
    """Every reading and the goal once a seed, the growth once an interval."""
    given = task.parameters
    readings = [
        Reading(other, service, slots)
        for other in given.other_interval_ms
        for service in given.service_ms
        for slots in given.slots
    ]
    questions = Questions(given)
    goals: list[list[Taken]] = [[] for _ in GOALS]
    for turn, seed in enumerate(task.each_seed()):
        for reading in readings:
            task.say(f"seed {seed}: {reading.words}")
            reading.ask(given)
        for line, taken in zip(GOALS, goals, strict=True):
            before = turn - len(given.intervals)
            if before >= 0 and taken[before].answer == "gave up":
                taken.append(taken[before])
                continue
            task.say(f"seed {seed}: the goal, {line.name}")
            taken.append(goal_of(line, turn, given))
        for text in questions.ask(turn):
            task.say(f"seed {seed}: {text}")
    return Result(
        rows=[*case_rows(readings, task.paper), *goal_rows(goals, given)],
        tables=[case_table(readings), table(questions.points, given.timeout_s)],
        charts=charts(questions.points, given),
        notes=notes(readings),
    )


def spec_of(reading: Reading, given: Parameters) -> Spec:
    """The spec for `olaf verify`."""
    return Spec.model_validate(
        {
            "queue": {"slots": reading.slots, "service_ms": reading.service_ms},
            "cluster": [
                {"name": "a", "interval_ms": INTERVAL_MS},
                {"name": "b", "interval_ms": reading.other_ms},
            ],
            "control": {"kind": "paper", "threshold_ms": given.threshold_ms},
            "objective": [
                {"kind": "fair_peak", "epsilon_ms": epsilon} for epsilon in given.epsilon_ms
            ],
        }
    )


def goal_of(line: Line, turn: int, given: Parameters) -> Taken:
    """The goal's question, to all provers."""
    instance = instance_of(line, given.goal_clusters, given.goal_horizon, turn, given)
    limit = limit_of(line, instance)
    if limit is None:
        return Taken("holds", 0.0, 0.0)
    return asked(line, instance, limit, given.goal_timeout_s)


def case_rows(readings: Sequence[Reading], paper: dict[str, float]) -> list[Row]:
    """The paper's time beside ours, then the goal for each reading."""
    likely = [each for each in readings if (each.service_ms, each.slots) == LIKELY]
    rows = []
    if likely:
        both = [sum(seed) for seed in zip(*(r.seconds("seconds") for r in likely), strict=True)]
        rows.append(
            Row(
                quantity="time to verify both cases", unit="s", paper=paper["seconds"],
                where=f"p/C = {LIKELY[0]} ms, Qmax = {LIKELY[1]}, the slowest epsilon",
                ours=Spread.of(both), note="by the clock; another model, solver and machine",
            )
        )  # fmt: skip
    for reading in readings:
        edge = "" if reading.edge is None else edge_text(reading.edge)
        rows.append(
            Row(
                quantity="CPU time to a verdict, the slowest epsilon", where=reading.words,
                unit="s", ours=Spread.of(reading.seconds("cpu_seconds")),
                goal=Goal(at_most=CASE_GOAL_S), headline=reading in likely,
                note=f"smallest epsilon that holds: {edge}",
            )
        )  # fmt: skip
    return rows


def goal_rows(goals: Sequence[Sequence[Taken]], given: Parameters) -> list[Row]:
    """Whether as many clusters are decided in time, whatever the interval."""
    return [
        Row(
            quantity=f"answered within {given.goal_timeout_s:g} s, all provers",
            where=f"{given.goal_clusters} clusters, {given.goal_horizon} ticks: {line.name}",
            unit="%", goal=Goal(at_least=100.0),
            ours=Spread.of([100.0 * (each.answer != "gave up") for each in taken]),
            note="; ".join(
                f"every {interval} ticks: {goal_text(taken[turn :: len(given.intervals)])}"
                for turn, interval in enumerate(given.intervals[: len(taken)])
            ),
        )
        for line, taken in zip(GOALS, goals, strict=True)
    ]  # fmt: skip


def goal_text(taken: Sequence[Taken]) -> str:
    """``holds in 0.5 .. 0.9 s``, by the clock."""
    answers = ", ".join(dict.fromkeys(each.answer for each in taken))
    low, high = (end(each.wall_s for each in taken) for end in (min, max))
    return f"{answers} in {low:.1f} s" + (f" .. {high:.1f} s" if high - low > 0.1 else "")


def case_table(readings: Sequence[Reading]) -> Table:
    """Every reading's verdicts."""
    rows: list[list[Spread | float | str | None]] = []
    for reading in readings:
        for epsilon, verdicts in reading.verdicts.items():
            verdict = verdicts[0]
            rows.append([
                reading.case, float(reading.service_ms), float(reading.slots),
                float(epsilon), answer_text(verdict), verdict.prover or None,
                "-" if reading.edge is None else edge_text(reading.edge),
                Spread.of([v.cpu_seconds for v in verdicts]),
                Spread.of([v.seconds for v in verdicts]),
            ])  # fmt: skip
    return Table(
        title="The paper's two cases, mean peak ages at most epsilon apart",
        columns=[
            Column(name="updates every"), Column(name="p/C, ms"), Column(name="Qmax", digits=0),
            Column(name="epsilon, ms"), Column(name="verdict"), Column(name="by"),
            Column(name="smallest epsilon that holds"), Column(name="CPU, s", digits=2),
            Column(name="wall, s", digits=2),
        ],
        rows=rows,
        note="*By* is the prover that answered first; *sample* that one of the few runs that are "
        "tried before any prover violates it. Times are to the verdict, all processes started "
        "anew, without the time for the smallest epsilon.",
    )  # fmt: skip


def answer_text(verdict: Verdict) -> str:
    """``holds up to 600 ms and in the long run``, ``violated: starves``."""
    if verdict.clause is not None:
        return "violated: starves"
    if verdict.answer is not Answer.HOLDS:
        return verdict.answer.value
    return f"holds {reach(verdict)}"


def edge_text(verdict: Verdict) -> str:
    """The smallest epsilon that holds, or between what it is."""
    if verdict.clause is not None:
        return "none: starves"
    best = None if verdict.witness is None else verdict.witness.value
    if best is None:
        return "-"
    text = amount(Kind.FAIR_PEAK, best)
    if not verdict.tight:
        most = verdict.at_most
        above = "" if most is None else f", at most {amount(Kind.FAIR_PEAK, most)}"
        return f"at least {text}{above}"
    if verdict.edge_forever:
        return text
    return f"{text} up to {amount(Kind.WORST_PEAK, verdict_horizon(verdict))}"


def verdict_horizon(verdict: Verdict) -> Fraction:
    """The observed horizon, ns."""
    return Fraction(verdict.instance.horizon * verdict.instance.tick_ns)


def notes(readings: Sequence[Reading]) -> list[str]:
    """A summary of the readings."""
    told = []
    for other in dict.fromkeys(reading.other_ms for reading in readings):
        verdicts = [
            verdict[0]
            for reading in readings
            if reading.other_ms == other
            for verdict in reading.verdicts.values()
        ]
        count = {answer: sum(v.answer is answer for v in verdicts) for answer in Answer}
        starved = sum(v.clause is not None for v in verdicts)
        told.append(
            f"{INTERVAL_MS}/{other} ms: of {len(verdicts)} readings {count[Answer.HOLDS]} hold, "
            f"{count[Answer.VIOLATED]} are violated ({starved} because a cluster starves) and "
            f"{count[Answer.UNDECIDED]} are undecided."
        )
    return told
