"""A SPEC.toml: clusters, a queue, how its senders are controlled, and what must hold.

Times are milliseconds, to the microsecond; a file may write them with their unit (`olaf.units`):
``interval = "12ms"`` is ``interval_ms = 12``. The paper's symbol stands with each key that has one
(OLAF §5 and Table 4).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from olaf.united import United
from olaf.units import key_of
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
    """Updates it holds, the one on the wire included (Qmax)."""
    service_ms: PositiveMilliseconds | None = None
    """What the link takes for an update (p/C); or else give rate and bytes."""
    rate: str | None = None
    """Of the link (C), as tc writes it: 1.9mbit."""
    bytes: int | None = Field(default=None, ge=1, strict=True)
    """Of an update on the link (p)."""
    discipline: Literal["olaf"] = "olaf"
    """The one whose rules the verifier knows."""

    @model_validator(mode="after")
    def _one_way_to_say_it(self) -> QueueSpec:
        if (self.service_ms is None) == (self.rate is None and self.bytes is None):
            raise ValueError("give service, or else rate and bytes")
        if self.service_ms is None and (self.rate is None or self.bytes is None):
            raise ValueError("rate and bytes go together: give both, or service")
        return self


class ClusterSpec(Table):
    """Clusters that are alike."""

    name: str = Field(min_length=1, max_length=40, pattern=r"^[^,\s\"\x00-\x1f\x7f]+$")
    """Of several the first part: name-1, name-2 .."""
    count: int = Field(default=1, ge=1, le=64, strict=True)
    """So many of them."""
    workers: int = Field(default=1, ge=1, le=16, strict=True)
    """Workers of each."""
    interval_ms: PositiveMilliseconds
    """A worker has an update ready so often."""
    jitter_ms: Milliseconds = Decimal(0)
    """Each update is ready up to so much later, below the interval."""
    ids: list[Annotated[int, Field(strict=True)]] = Field(default_factory=list)
    """Numbers of these clusters on the wire, for a switch that asks before a cluster joins."""

    @model_validator(mode="after")
    def _late_but_in_order(self) -> ClusterSpec:
        if self.jitter_ms >= self.interval_ms:
            raise ValueError(
                f"jitter, {self.jitter_ms} ms, must be below interval, {self.interval_ms} ms: a "
                "worker's updates do not overtake each other"
            )
        return self


class ControlSpec(Table):
    """When senders send, once there are more clusters than slots (OLAF §5)."""

    kind: Literal["off", "paper"] = "off"
    """off: always; paper: with P_s = min(Qmax/N + f, 1), for which a quota stands."""
    threshold_ms: PositiveMilliseconds = Decimal(400)
    """Older answers are obsolete (Delta_T)."""
    slope: Literal["urgency", "fairness"] | Annotated[Decimal, Field(gt=0)] = "urgency"
    """v: urgency is 1/threshold, fairness the threshold's seconds; or so much per second."""
    window: int | None = Field(default=None, ge=1, le=64, strict=True)
    """Of so many ready updates in a row a worker sends Qmax/N, to the nearest whole numbers below
    and above. Not given: the fewest for which that is a whole number."""


class AnswersSpec(Table):
    """The way back."""

    delay_ms: Milliseconds = Decimal(0)
    """From a departure to who hears of it (R)."""
    to: Hears = Hears.SHARED
    """shared: who has a part in the update; cluster: all its workers."""


class TimeSpec(Table):
    """How time is looked at."""

    horizon_ms: PositiveMilliseconds | None = None
    """Runs are observed for so long, rounded up to a whole tick, from an empty queue on. Not given:
    six times the longest interval, at least until everybody could deliver twice, and twice the
    longest limit."""
    tick_ms: PositiveMilliseconds | None = None
    """Must divide all intervals, jitters, delays and the service. Not given: the largest that
    does."""
    ties: Ties = Ties.CONTINUOUS
    """continuous: phases are real numbers; grid: everything falls on a tick exactly."""


class ObjectiveSpec(Table):
    """What must hold in every run."""

    kind: Kind
    epsilon_ms: Milliseconds | None = None
    """fair_peak, fair_age: means of two clusters are at most so far apart (epsilon)."""
    bound_ms: PositiveMilliseconds | None = None
    """worst_peak: no cluster is ever older."""
    within_ms: PositiveMilliseconds | None = None
    """starvation: every cluster delivers at least this often. Not given: once in the horizon."""
    at_most: Annotated[Decimal, Field(ge=0, le=1)] | None = None
    """loss: the share of the updates sent that may find the queue full."""
    clusters: list[str] = Field(default_factory=list)
    """Names it is about; none: all."""

    @model_validator(mode="after")
    def _its_own_limit(self) -> ObjectiveSpec:
        needs = LIMIT_KEYS.get(self.kind)
        if needs is None:
            raise ValueError(f"kind must be one of {', '.join(LIMIT_KEYS)}")
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
"""Under which key a kind's limit stands."""


class Spec(Table):
    """A SPEC.toml."""

    queue: QueueSpec
    cluster: list[ClusterSpec] = Field(min_length=1, max_length=64)
    control: ControlSpec = ControlSpec()
    answers: AnswersSpec = AnswersSpec()
    time: TimeSpec = TimeSpec()
    objective: list[ObjectiveSpec] = Field(default_factory=list)
    newcomer: ClusterSpec | None = None
    """What a cluster is taken for that asks to join and whose id is not listed."""

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
                    f"objective {objective.kind} names {', '.join(unknown)}; there are "
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
