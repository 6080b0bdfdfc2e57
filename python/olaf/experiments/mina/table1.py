"""MINA §V-B, Table I: placement, trees and sharing, each by MINA or by the baseline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from pydantic import Field

from olaf.experiments import Baseline, Chart, Column, Goal, Result, Row, Series, Spread, Table, Task
from olaf.experiments.mina.measuring import (
    AUTHORS,
    BASELINE,
    OURS,
    SKIP,
    Bench,
    Case,
    Conflicts,
    Listed,
    Ran,
    at_speed,
    spread,
)

RULES: dict[Conflicts, str] = {"switch": "by switch", "capacity": "by port"}
HEADLINES = ("---", "+--", "++-", "+++")
SCORE_GOAL, HARD_GOAL, SWITCH_GOAL = 0.999, 0.975, 0.95
MISSED = 0.05
"""A score that is less than the paper's by more is told of."""
CPU_GOAL_S, WITHOUT_TREES_GOAL_S, MIGRATIONS_GOAL = 8.0, 2.0, 1.0


class Parameters(Listed):
    """The cluster, the jobs, and the harder settings."""

    switch_jobs: int = Field(ge=1)
    """The same where a switch serves one job."""
    hard_compute_speed: float = Field(gt=0)
    """Speed of the jobs' computation relative to the record, in the harder setting."""
    hard_speedup: float = Field(ge=1)
    """Speed of an all-reduce in the switches relative to host-only, in the harder setting."""


@dataclass(frozen=True)
class Cases:
    """Everything that is run."""

    authors: dict[Conflicts, dict[str, Case]]
    """By rule and by which of the three are MINA's: ``+-+``."""
    ours: dict[Conflicts, Case]
    skip: Case
    """The baseline by port, but jobs that gain nothing by a tree get none."""
    untreed: Case
    """As ours, but no tree changes once a job has it."""
    hard: dict[str, Case]
    """``authors by switch``, ``authors by port``, ``ours``."""
    per_switch: dict[str, Case]
    """One job a switch: as `authors`, and ``ours``."""


def run(task: Task[Parameters]) -> Result:
    """All rows under both rules, then the harder settings."""
    given = task.parameters
    cases = cases_of(given)
    jobs = given.first(given.jobs)
    fewer = given.first(given.switch_jobs)
    bench = Bench(given.data, task.seeds, task.say)
    for case in [
        *(case for by_rule in cases.authors.values() for case in by_rule.values()),
        *cases.ours.values(), *cases.hard.values(), cases.untreed, cases.skip,
    ]:  # fmt: skip
        bench.want_given(case, "all", jobs)
    for case in cases.per_switch.values():
        bench.want_given(case, "fewer", fewer)
    bench.run()

    def all_jobs(case: Case) -> list[Ran]:
        return bench.of_given(case, "all")

    def fewer_jobs(case: Case) -> list[Ran]:
        return bench.of_given(case, "fewer")

    comparable = given.comparable
    told = Told(task.paper, comparable)
    return Result(
        rows=[
            *told.ablation(cases, all_jobs),
            *told.easy(cases, all_jobs),
            *told.goals(cases, all_jobs),
            *told.hard(cases, all_jobs),
            *told.per_switch(cases, fewer_jobs, given),
        ],
        data=given.words,
        charts=[bars(cases, all_jobs, task.paper["score"] if comparable else {})],
        tables=[table(cases, all_jobs), costs(cases, all_jobs)],
        differences=told.differences(cases, all_jobs),
    )


def cases_of(given: Parameters) -> Cases:
    """By the parameters."""

    def ablation(**more: Any) -> dict[str, Case]:
        return {
            "".join("-+"[mina] for mina in (place, trees, share)): given.case(
                (AUTHORS if place else BASELINE)[0],
                (AUTHORS if trees else BASELINE)[1],
                (AUTHORS if share else BASELINE)[2],
                **more,
            )
            for place, trees, share in product((False, True), repeat=3)
        }

    authors = {rule: ablation(conflicts=rule) for rule in RULES}
    ours = {rule: given.case(*OURS, conflicts=rule) for rule in RULES}
    hard = {
        "authors by switch": authors["switch"]["+++"],
        "authors by port": authors["capacity"]["+++"],
        "ours": ours["capacity"],
    }
    switches = ablation(capacity="switch:1")
    return Cases(
        authors=authors,
        ours=ours,
        skip=given.case(*SKIP),
        untreed=replace(ours["capacity"], trees="first"),
        hard={
            name: at_speed(case, given.hard_compute_speed, given.hard_speedup)
            for name, case in hard.items()
        },
        per_switch={
            **{which: switches[which] for which in HEADLINES},
            "ours": replace(ours["capacity"], capacity="switch:1"),
        },
    )


@dataclass(frozen=True)
class Told:
    """Rows, beside what the paper prints."""

    paper: dict[str, Any]
    comparable: bool
    """Whether the jobs are the paper's."""

    def ablation(self, cases: Cases, runs: Callable[[Case], list[Ran]]) -> list[Row]:
        """Scores under both rules, and utilisation under that of the paper's table."""
        rows = []
        for rule, name in RULES.items():
            by_which = cases.authors[rule]
            base = spread(runs(by_which["---"]), lambda ran: ran.score)
            printed = self.paper["score"] if rule == "switch" else {}
            revision = {} if rule == "switch" else self.paper["revision"]["port"]
            for which in in_order(by_which):
                case = by_which[which]
                rows.append(
                    self.row(
                        "score", f"{name}: {case.words}", printed.get(which),
                        spread(runs(case), lambda ran: ran.score), digits=4,
                        baseline=None if which == "---" else Baseline(
                            name="the baseline", paper=printed.get("---"), ours=base
                        ),
                        headline=which in HEADLINES and rule == "switch",
                        note=theirs(revision.get(which)),
                    )
                )  # fmt: skip
            rows.append(
                self.row(
                    "score", f"{name}: {cases.ours[rule].words} (ours)", None,
                    spread(runs(cases.ours[rule]), lambda ran: ran.score), digits=4,
                    goal=SCORE_GOAL if rule == "capacity" else None,
                )
            )  # fmt: skip
        used = cases.authors["switch"]
        rows += [
            self.row(
                "utilisation of the switches by a job", f"by switch: {used[which].words}",
                self.paper["utilisation"].get(which),
                spread(runs(used[which]), lambda ran: ran.utilisation), digits=3, headline=False,
            )
            for which in in_order(used)
        ]  # fmt: skip
        return rows

    def easy(self, cases: Cases, runs: Callable[[Case], list[Ran]]) -> list[Row]:
        """The small possible gain on this list, and a simple baseline that gets all of it."""
        skip = runs(cases.skip)
        return [
            self.row(
                "score", f"by port: {cases.skip.words} (skips jobs that gain nothing)", None,
                spread(skip, lambda ran: ran.score), digits=4,
            ),
            self.row(
                "what all aggregation together is worth, of the jobs' time", "whatever the policy",
                None, spread(skip, lambda ran: 100 * ran.summary.headroom), unit="%", digits=2,
            ),
        ]  # fmt: skip

    def goals(self, cases: Cases, runs: Callable[[Case], list[Ran]]) -> list[Row]:
        """Migrations and time of the whole."""
        ours = runs(cases.ours["capacity"])
        cpu, moved = self.paper["revision"]["cpu_s"], self.paper["revision"]["migrations"]
        by_port = f"by port: {cases.ours['capacity'].words} (ours)"
        return [
            self.row(
                "changes of a tree a job", by_port, None,
                spread(ours, lambda ran: ran.migrations), at_most=MIGRATIONS_GOAL,
                note=f"authors' code: {moved['paper']:g}, newer revision: {moved['revision']:g}",
            ),
            self.row(
                "CPU of the whole simulation", by_port, None, spread(ours, lambda ran: ran.cpu_s),
                unit="s", at_most=CPU_GOAL_S,
                note=f"authors' code: {cpu['paper']:g} s, newer revision: {cpu['revision']:g} s",
            ),
            self.row(
                "CPU of the whole simulation, trees kept as they are",
                f"by port: {cases.untreed.words}", None,
                spread(runs(cases.untreed), lambda ran: ran.cpu_s), unit="s",
                at_most=WITHOUT_TREES_GOAL_S,
                note=f"authors' code without choosing trees: {cpu['without_trees']:g} s",
            ),
        ]  # fmt: skip

    def hard(self, cases: Cases, runs: Callable[[Case], list[Ran]]) -> list[Row]:
        """Jobs that compute faster, and switches that help less."""
        theirs_by = self.paper["revision"]["hard"]
        return [
            self.row(
                "score, harder setting", f"{name}: {case.words}", None,
                spread(runs(case), lambda ran: ran.score), digits=4,
                goal=HARD_GOAL if name == "ours" else None,
                note=theirs(theirs_by.get(name.rpartition(" ")[2])),
            )
            for name, case in cases.hard.items()
        ]  # fmt: skip

    def per_switch(
        self, cases: Cases, runs: Callable[[Case], list[Ran]], given: Parameters
    ) -> list[Row]:
        """One job a switch."""
        revision = self.paper["revision"]["switch_capacity"]
        return [
            self.row(
                f"score, one job a switch, {given.switch_jobs:,} jobs",
                case.words + (" (ours)" if which == "ours" else ""), None,
                spread(runs(case), lambda ran: ran.score), digits=4,
                goal=SWITCH_GOAL if which == "ours" else None, headline=which in ("+++", "ours"),
                note=theirs(revision.get(which)),
            )
            for which, case in cases.per_switch.items()
        ]  # fmt: skip

    def differences(self, cases: Cases, runs: Callable[[Case], list[Ran]]) -> list[str]:
        """Where the paper's table is not met, and what is seen of the reason."""
        ran = runs(cases.authors["switch"]["+++"])
        score, printed = spread(ran, lambda each: each.score).mean, self.paper["score"]["+++"]
        if not self.comparable or score > printed - MISSED:
            return []
        none = spread(ran, lambda each: each.summary.trees.without).mean
        many = ran[0].summary.jobs - ran[0].summary.trees.one_host
        by_port = spread(runs(cases.authors["capacity"]["+++"]), lambda each: each.score).mean
        return [
            f"By switch, MINA's trees and sharing come to {score:.3f} here, to {printed:g} in the "
            f"paper. On average {none:.0f} of the {many:,} jobs of two hosts and more never have "
            "a tree: two jobs in one rack conflict whatever their trees, and a job that conflicts "
            f"with several groups joins none. By port they come to {by_port:.3f}: the authors' "
            "code may have judged MINA's trees by ports and first trees by switches; "
            "docs/design/016-mina-simulator.md. The sharing rule by itself is as good as the "
            "paper's (mina/fig12)."
        ]

    def row(
        self, quantity: str, where: str, paper: float | None, ours: Spread, *,
        goal: float | None = None, at_most: float | None = None, note: str = "", **more: Any,
    ) -> Row:  # fmt: skip
        """The row, with a goal only for the jobs that the goal is set for."""
        kept = None
        if self.comparable and (goal is not None or at_most is not None):
            kept = Goal(at_least=goal, at_most=at_most)
        return Row(
            quantity=quantity, where=where, paper=paper, ours=ours, goal=kept,
            comparable=self.comparable or paper is None, note=note if self.comparable else "",
            **more,
        )  # fmt: skip


def theirs(score: float | None) -> str:
    """Beside ours, where their code was run."""
    return "" if score is None else f"authors' code: {score:g}"


def in_order(by_which: dict[str, Case]) -> list[str]:
    """As the paper's table: one after the other, then without one each, then the rest."""
    printed = ["---", "+--", "++-", "+++", "-++", "+-+"]
    return [*printed, *(which for which in by_which if which not in printed)]


def bars(cases: Cases, runs: Callable[[Case], list[Ran]], printed: dict[str, float]) -> Chart:
    """The eight rows under both rules."""
    order = in_order(cases.authors["switch"])

    def series(name: str, rule: Conflicts) -> Series:
        spreads = [
            spread(runs(cases.authors[rule][which]), lambda ran: ran.score) for which in order
        ]
        return Series(
            name=name,
            points=[(float(at), each.mean) for at, each in enumerate(spreads)],
            low=[each.low for each in spreads],
            high=[each.high for each in spreads],
        )

    return Chart(
        title="Score by which of placement, trees and sharing are MINA's",
        x="", y="score", kind="bars", from_zero=True,
        ticks=["\n".join(words) for words in (name_of(which) for which in order)],
        series=[
            *([Series(name="the paper", of="paper",
                      points=[(float(at), printed[which]) for at, which in enumerate(order)
                              if which in printed])] if printed else []),
            series("ours, conflicts by switch", "switch"),
            series("ours, conflicts by port", "capacity"),
        ],
    )  # fmt: skip


def name_of(which: str) -> Sequence[str]:
    """``placement, trees`` for ``++-``, a line each."""
    names = [name for name, sign in zip(("placement", "trees", "sharing"), which, strict=True)
             if sign == "+"]  # fmt: skip
    return names or ["none"]


def every_case(cases: Cases) -> list[tuple[str, Case]]:
    """By the list of all jobs, with the rule's name."""
    return [
        (name, case)
        for rule, name in RULES.items()
        for case in (
            *(cases.authors[rule][which] for which in in_order(cases.authors[rule])),
            cases.ours[rule],
            *([cases.skip] if rule == "capacity" else []),
        )
    ]


def table(cases: Cases, runs: Callable[[Case], list[Ran]]) -> Table:
    """Every measure of every case."""

    def of(case: Case, value: Callable[[Ran], float | None]) -> Spread | None:
        values = [value(ran) for ran in runs(case)]
        known = [each for each in values if each is not None]
        return Spread.of(known) if len(known) == len(values) else None

    return Table(
        title="All measures",
        columns=[
            Column(name="conflicts"), Column(name="placement / trees / sharing"),
            Column(name="score", digits=4), Column(name="by hosts", digits=4),
            Column(name="worst decile", digits=3), Column(name="utilisation", digits=3),
            Column(name="by hosts", digits=3), Column(name="tree changes a job", digits=2),
            Column(name="jobs with a tree of their own", digits=0),
            Column(name="sharing one", digits=0), Column(name="without", digits=0),
        ],
        rows=[
            [
                name, case.words,
                of(case, lambda ran: ran.score), of(case, lambda ran: ran.summary.score_by_hosts),
                of(case, lambda ran: ran.summary.worst_decile),
                of(case, lambda ran: ran.utilisation),
                of(case, lambda ran: ran.summary.utilisation_by_hosts),
                of(case, lambda ran: ran.migrations),
                of(case, lambda ran: ran.summary.trees.own),
                of(case, lambda ran: ran.summary.trees.shared),
                of(case, lambda ran: ran.summary.trees.without),
            ]
            for name, case in every_case(cases)
        ],
        note="*By hosts* counts a job once for each of its hosts; *worst decile* is the mean score "
        "of the tenth of the jobs that gain least of what they could. Jobs of one host are not "
        "among the last three columns.",
    )  # fmt: skip


def costs(cases: Cases, runs: Callable[[Case], list[Ran]]) -> Table:
    """The cost of the runs."""
    return Table(
        title="What a run takes",
        columns=[
            Column(name="conflicts"), Column(name="placement / trees / sharing"),
            Column(name="CPU, s", digits=2), Column(name="to choose trees, s", digits=2),
            Column(name="to place, s", digits=3), Column(name="events", digits=0),
        ],
        rows=[
            [
                name, case.words, spread(runs(case), lambda ran: ran.cpu_s),
                spread(runs(case), lambda ran: ran.trees_s),
                spread(runs(case), lambda ran: sum(ran.costs.placement_ns) / 1e9),
                spread(runs(case), lambda ran: ran.summary.events),
            ]
            for name, case in every_case(cases)
        ],
        note="Times are of one thread, on the processor.",
    )  # fmt: skip
