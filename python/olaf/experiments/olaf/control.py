"""Our own study: the effect of transmission control in every setting of OLAF §8.3.

The table and the bound of ``docs/design/009-transmission-control.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from pydantic import field_validator

from olaf.experiments import Bound, Column, Goal, Result, Row, Spread, Table, Task
from olaf.experiments.multihop import (
    FAIR,
    FRESHEST,
    FRESHEST_FAIR,
    GROUPS,
    OLAF,
    PAPER,
    VIEWS,
    Measured,
    Network,
    View,
    age_ms,
    fairness,
    jain_of_groups,
    measure,
    measure_settings,
    worker_ms,
    worst_change,
)

SHORT = {
    OLAF: ("olaf", "off"),
    PAPER: ("olaf", "paper"),
    FAIR: ("olaf", "fair"),
    FRESHEST: ("freshest", "off"),
    FRESHEST_FAIR: ("freshest", "fair"),
}
"""A variant: queue and control."""

FAIRNESS_GOAL = 0.99
WORSE_GOAL = 10.0
"""Percent."""

Changes: TypeAlias = dict[str, dict[str, int | float]]


class Parameters(Network):
    """The network, and the settings as changes to it."""

    settings: Changes
    """Settings of the paper, to which the goal applies."""
    others: Changes
    """More settings."""
    knobs: dict[str, list[float]]
    """Tested values of the fair control's ``rounds`` and ``yields``, one at a time."""
    knobs_in: list[str]
    """Settings of these tests."""

    @field_validator("settings", "others")
    @classmethod
    def _known(cls, settings: Changes) -> Changes:
        for name, changes in settings.items():
            for key in changes:
                if key not in Network.model_fields:
                    raise ValueError(f"{name}: the network has no `{key}`")
        return settings

    @field_validator("knobs")
    @classmethod
    def _turnable(cls, knobs: dict[str, list[float]]) -> dict[str, list[float]]:
        if not set(knobs) <= {"rounds", "yields"}:
            raise ValueError("the fair control has `rounds` and `yields`")
        return knobs

    def networks(self, settings: Changes) -> dict[str, Network]:
        """The network of each setting."""
        base = self.model_dump(include=set(Network.model_fields))
        return {name: Network.model_validate(base | new) for name, new in settings.items()}


def run(task: Task[Parameters]) -> Result:
    """Measure plain OLAF and both controls in all settings, then the bound for missed goals."""
    given = task.parameters
    networks = given.networks(given.settings) | given.networks(given.others)
    measured = measure_settings(task.each_seed(), networks, list(SHORT))
    rows: list[Row] = []
    limits: list[Limit] = []
    for view, by_setting in measured.items():
        for name, runs in by_setting.items():
            if name in given.settings:
                rows += goal_rows(view, name, runs)
                if fairness(dict(runs)[FAIR]).mean < FAIRNESS_GOAL:
                    limits.append(Limit(view, name, networks[name], runs, task.seeds))
    return Result(
        rows=rows,
        tables=[
            *(table(view, by_setting) for view, by_setting in measured.items()),
            *([limits_table(limits)] if limits else []),
            knobs_table(given, networks, measured["ns-3"], task.seeds),
        ],
        bounds=[limit.bound() for limit in limits if limit.proves],
        notes=[note(measured["ns-3"])],
    )


def goal_rows(view: View, setting: str, measured: Measured) -> list[Row]:
    """Both sides of the goal for the fair control."""
    known = dict(measured)
    where = f"{setting}, {FAIR.name}, {view} view"
    return [
        Row(
            quantity="fairness", where=where, ours=fairness(known[FAIR]),
            goal=Goal(at_least=FAIRNESS_GOAL), headline=view == "ns-3",
        ),
        Row(
            quantity="AoM of the cluster that lost most, against plain OLAF",
            where=where, unit="%", ours=worst_change(known[FAIR], known[OLAF]),
            goal=Goal(at_most=WORSE_GOAL), headline=False,
        ),
    ]  # fmt: skip


def table(view: View, by_setting: dict[str, Measured]) -> Table:
    """Every setting with every control."""
    rows: list[list[Spread | float | str | None]] = []
    for setting, measured in by_setting.items():
        plain = dict(measured)[OLAF]
        for variant, outcomes in measured:
            rows.append([
                setting, *SHORT[variant],
                *(age_ms(outcomes, group) for group in GROUPS),
                None if variant is OLAF else worst_change(outcomes, plain),
                fairness(outcomes),
                *(worker_ms(outcomes, group).mean for group in GROUPS),
            ])  # fmt: skip
    return Table(
        title=f"Every setting: {VIEWS[view]}",
        columns=[
            Column(name="setting"), Column(name="queue"), Column(name="control"),
            Column(name="AoM S1, ms"), Column(name="AoM S2, ms"),
            Column(name="the cluster that lost most, %", digits=1),
            Column(name="fairness", digits=4),
            Column(name="each worker's own S1, ms"), Column(name="each worker's own S2, ms"),
        ],
        rows=rows,
    )  # fmt: skip


class Limit:
    """The largest fairness of a setting if no cluster of S2 gets 10 % worse than with plain
    OLAF."""

    def __init__(
        self, view: View, setting: str, network: Network, measured: Measured, seeds: Sequence[int]
    ) -> None:
        known = dict(measured)
        self.view = view
        self.setting = setting
        self.fair = fairness(known[FAIR])
        self.s2_ms = age_ms(known[OLAF], "S2").mean * (1 + WORSE_GOAL / 100)
        s1, s3 = network.service_ms(network.sw1_bps), network.service_ms(network.sw3_bps)
        self.clusters, self.service_ms, self.last_ms = network.clusters, s1, s3
        self.best_ms = network.clusters * s1 / 2 + s1 + s3
        alone = [
            age_ms(measure(seeds, network, variant, view, groups=["S1"]), "S1").mean
            for variant in SHORT
            if variant is not PAPER
        ]
        self.alone_ms = min(alone)

    @property
    def proven(self) -> float:
        """Largest possible Jain index, for any queue and control."""
        return self._jain(self.best_ms)

    @property
    def measured(self) -> float:
        """Jain's index if S1 had the network to itself and S2 kept its age."""
        return self._jain(self.alone_ms)

    @property
    def proves(self) -> bool:
        """True if the goal is provably impossible."""
        return self.proven < FAIRNESS_GOAL

    def _jain(self, s1_ms: float) -> float:
        return jain_of_groups(s1_ms, self.s2_ms) if s1_ms > self.s2_ms else 1.0

    def bound(self) -> Bound:
        """The proof in words."""
        return Bound(
            quantity=f"fairness at {self.setting}, at most ({self.view} view)",
            value=round(self.proven, 4),
            why=f"SW1's link takes {self.service_ms:.1f} ms for an update and serves "
            f"{self.clusters} clusters, so that in the mean over them one's updates leave it at "
            f"best {self.clusters} such times apart, and its age rises by half of that in the "
            f"mean. Each is at least {self.service_ms:.1f} + {self.last_ms:.1f} ms old when it "
            f"arrives. So no queue and no control brings S1's mean AoM below {self.best_ms:.1f} "
            f"ms, while S2 may not exceed {self.s2_ms:.1f} ms, 10 % above plain OLAF as measured.",
        )


def limits_table(limits: list[Limit]) -> Table:
    """Proof and measurement for a missed fairness goal."""
    return Table(
        title="Where the goal for fairness is missed",
        columns=[
            Column(name="setting"), Column(name="view"),
            Column(name="fairness reached", digits=4),
            Column(name="S2 at most, ms"),
            Column(name="proof: S1 at least, ms"),
            Column(name="proof: fairness at most", digits=4),
            Column(name="measured: S1 with S2 silent, ms"),
            Column(name="measured: fairness then", digits=4),
        ],
        rows=[
            [
                limit.setting, limit.view, limit.fair, limit.s2_ms, limit.best_ms, limit.proven,
                limit.alone_ms, limit.measured,
            ]
            for limit in limits
        ],
        note="The proof holds for any queue and any control. The measurement is no proof: it is "
        "the youngest S1 that the olaf queue, the fair control or the freshest queue reach with "
        "S2 silent, set beside S2 at 110 % of its age under plain OLAF.",
    )  # fmt: skip


def knobs_table(
    given: Parameters,
    networks: dict[str, Network],
    by_setting: dict[str, Measured],
    seeds: Sequence[int],
) -> Table:
    """The fair control with other values of its two parameters."""
    turned = [replace(FAIR, rounds=value) for value in given.knobs.get("rounds", [])]
    turned += [replace(FAIR, yields=value) for value in given.knobs.get("yields", [])]
    rows: list[list[Spread | float | str | None]] = []
    for setting in given.knobs_in:
        plain = dict(by_setting[setting])[OLAF]
        for variant in turned:
            outcomes = measure(seeds, networks[setting], variant, "ns-3")
            rows.append([
                setting, variant.rounds, variant.yields,
                *(age_ms(outcomes, group) for group in GROUPS),
                worst_change(outcomes, plain), fairness(outcomes),
            ])  # fmt: skip
    return Table(
        title="The fair control's two numbers, one turned at a time, the other at its default (-): "
        + VIEWS["ns-3"],
        columns=[
            Column(name="setting"), Column(name="rounds"), Column(name="yields"),
            Column(name="AoM S1, ms"), Column(name="AoM S2, ms"),
            Column(name="the cluster that lost most, %", digits=1),
            Column(name="fairness", digits=4),
        ],
        rows=rows,
    )  # fmt: skip


def note(by_setting: dict[str, Measured]) -> str:
    """The cost of the fair control."""
    known = dict(next(iter(by_setting.values())))
    setting = next(iter(by_setting))
    plain, fair = (worker_ms(known[variant], "S1").mean for variant in (OLAF, FAIR))
    delivered = [
        sum(o.fates.delivered for o in known[v]) / sum(o.fates.generated for o in known[v]) * 100
        for v in (OLAF, FAIR)
    ]
    return (
        "What it costs: of a cluster's workers one sends a round, and the others carry what they "
        f"have into their next update. In the setting of {setting} each worker's own newest "
        f"contribution at the server is {fair:.0f} ms old in the mean, under plain OLAF "
        f"{plain:.0f} ms; in return {delivered[1]:.1f} % of all contributions arrive instead of "
        f"{delivered[0]:.1f} %."
    )
