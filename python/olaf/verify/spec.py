"""A SPEC.toml: clusters, a queue, transmission control, and objectives.

Times are milliseconds with at most three decimals. A file may write them with their unit
(`olaf.values.units`): ``interval = "12ms"`` is ``interval_ms = 12``. Keys name the paper's symbol
if there is one (OLAF §5 and Table 4).
"""

from __future__ import annotations

import difflib
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator

from olaf.values.united import United
from olaf.values.units import key_of
from olaf.verify.instance import Hears, Kind, Ties


def _to_the_microsecond(value: Decimal) -> Decimal:
    if (value * 1000) % 1:
        raise ValueError("is finer than a microsecond: round it to 0.001")
    return value


Milliseconds = Annotated[Decimal, Field(ge=0, le=1_000_000), AfterValidator(_to_the_microsecond)]
"""0 to 1,000,000 in steps of 0.001."""
PositiveMilliseconds = Annotated[Milliseconds, Field(gt=0)]


class Table(United):
    """Base of the tables of a SPEC.toml."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class QueueSpec(Table):
    """The queue before the narrow link."""

    slots: int = Field(ge=1, le=64, strict=True)
    """Number of updates that it holds, including the one on the wire (Qmax)."""
    service_ms: PositiveMilliseconds | None = None
    """Time of an update on the link (p/C); or give rate and bytes."""
    rate: str | None = None
    """Bandwidth of the link (C), in tc's units: 1.9mbit."""
    bytes: int | None = Field(default=None, ge=1, strict=True)
    """Bytes of an update on the link (p)."""
    discipline: Literal["olaf"] = "olaf"
    """Queue discipline; the verifier knows only this one."""

    @model_validator(mode="after")
    def _one_way_to_say_it(self) -> QueueSpec:
        if (self.service_ms is None) == (self.rate is None and self.bytes is None):
            raise ValueError("give service, or else rate and bytes")
        if self.service_ms is None and (self.rate is None or self.bytes is None):
            raise ValueError("rate and bytes go together: give both, or service")
        return self


class ClusterSpec(Table):
    """Equal clusters."""

    name: str = Field(min_length=1, max_length=40, pattern=r"^[^,\s\"\x00-\x1f\x7f]+$")
    """Name of the cluster; several get numbers: name-1, name-2 .."""
    count: int = Field(default=1, ge=1, le=64, strict=True)
    """Number of these clusters."""
    workers: int = Field(default=1, ge=1, le=16, strict=True)
    """Number of workers in each."""
    interval_ms: PositiveMilliseconds
    """Time between two updates of a worker."""
    jitter_ms: Milliseconds = Decimal(0)
    """Largest lateness of an update, below the interval."""
    ids: list[Annotated[int, Field(strict=True)]] = Field(default_factory=list)
    """Ids of these clusters on the wire, for a switch that asks before a cluster joins."""

    @model_validator(mode="after")
    def _late_but_in_order(self) -> ClusterSpec:
        if self.jitter_ms >= self.interval_ms:
            raise ValueError(
                f"jitter, {self.jitter_ms} ms, must be below interval, {self.interval_ms} ms: a "
                "worker's updates do not overtake each other"
            )
        return self


class ControlSpec(Table):
    """Transmission control for more clusters than slots (OLAF §5)."""

    kind: Literal["off", "paper"] = "off"
    """off: send always; paper: with P_s = min(Qmax/N + f, 1), modelled as a quota."""
    threshold_ms: PositiveMilliseconds = Decimal(400)
    """Age at which an answer is obsolete (Delta_T)."""
    slope: Literal["urgency", "fairness"] | Annotated[Decimal, Field(gt=0)] = "urgency"
    """v. urgency: 1/threshold; fairness: the threshold in seconds; or a number per second."""
    window: int | None = Field(default=None, ge=1, le=64, strict=True)
    """Length of the quota: of this many ready updates in a row a worker sends the fraction Qmax/N,
    rounded down and up. Default: the shortest for which that is a whole number."""


class AnswersSpec(Table):
    """The way back to the workers."""

    delay_ms: Milliseconds = Decimal(0)
    """Time from a departure to the workers that hear its answer (R)."""
    to: Hears = Hears.SHARED
    """shared: the workers that contributed to the update; cluster: all its workers."""


class TimeSpec(Table):
    """Length and resolution of the observation."""

    horizon_ms: PositiveMilliseconds | None = None
    """Length of the observed runs, from an empty queue on, rounded up to a whole tick. Default: six
    times the longest interval, at least two deliveries of every cluster, and twice the longest
    limit."""
    tick_ms: PositiveMilliseconds | None = None
    """Length of a tick. Times that it does not divide are rounded (`olaf.verify.rounding`).
    Default: the longest tick that divides all times; without one, the tick that rounds least."""
    ties: Ties = Ties.CONTINUOUS
    """continuous: phases are real numbers; grid: every event falls on a tick exactly."""


def _with_a_limit(kind: Any) -> Any:
    """The clause `no_average` is a kind for the verifier alone."""
    if not isinstance(kind, str) or kind not in LIMIT_KEYS:
        near = difflib.get_close_matches(str(kind), LIMIT_KEYS, n=1)
        raise ValueError(
            f"must be one of {', '.join(LIMIT_KEYS)}"
            + (f"; did you mean {near[0]}?" if near else "")
        )
    return kind


class ObjectiveSpec(Table):
    """A property of every run."""

    kind: Annotated[Kind, BeforeValidator(_with_a_limit)]
    epsilon_ms: Milliseconds | None = None
    """fair_peak, fair_age: largest difference between two clusters' means (epsilon)."""
    bound_ms: PositiveMilliseconds | None = None
    """worst_peak: largest age of a cluster."""
    within_ms: PositiveMilliseconds | None = None
    """starvation: longest time without a delivery of a cluster. Default: the horizon."""
    at_most: Annotated[Decimal, Field(ge=0, le=1)] | None = None
    """loss: largest share of the sent updates that finds the queue full."""
    clusters: list[str] = Field(default_factory=list)
    """Names of its clusters; empty: all clusters."""

    @model_validator(mode="after")
    def _its_own_limit(self) -> ObjectiveSpec:
        needs = LIMIT_KEYS[self.kind]
        given = {key for key in LIMIT_KEYS.values() if getattr(self, key) is not None}
        if self.kind is not Kind.STARVATION and not given:
            raise ValueError(f"{self.kind} needs {key_of(needs)}")
        if given - {needs}:
            wrong = ", ".join(key_of(key) for key in given - {needs})
            raise ValueError(f"{self.kind} takes {key_of(needs)}, not {wrong}")
        return self


LIMIT_KEYS = {
    Kind.FAIR_PEAK: "epsilon_ms",
    Kind.FAIR_AGE: "epsilon_ms",
    Kind.WORST_PEAK: "bound_ms",
    Kind.STARVATION: "within_ms",
    Kind.LOSS: "at_most",
}
"""Kind -> the key of its limit."""


class Spec(Table):
    """A SPEC.toml."""

    queue: QueueSpec
    cluster: list[ClusterSpec] = Field(min_length=1, max_length=64)
    control: ControlSpec = ControlSpec()
    answers: AnswersSpec = AnswersSpec()
    time: TimeSpec = TimeSpec()
    objective: list[ObjectiveSpec] = Field(default_factory=list)
    newcomer: ClusterSpec | None = None
    """Description of a cluster that asks to join and whose id is not listed."""

    @model_validator(mode="after")
    def _names_are_unique(self) -> Spec:
        names = [name for group in self.cluster for name in names_of(group)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two clusters are named {', '.join(twice)}: give each its own name")
        for objective in self.objective:
            unknown = [n for n in objective.clusters if n not in names and n not in self._groups()]
            if unknown:
                raise ValueError(
                    f"objective {objective.kind} names {', '.join(unknown)}; the clusters are "
                    f"{', '.join(names)}"
                )
        return self

    def _groups(self) -> set[str]:
        return {group.name for group in self.cluster}


def names_of(group: ClusterSpec) -> list[str]:
    """Names of its clusters."""
    if group.count == 1:
        return [group.name]
    return [f"{group.name}-{number}" for number in range(1, group.count + 1)]
