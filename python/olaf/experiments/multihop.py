"""The network of OLAF §8.3: two groups, SW1 and SW2, and SW3 below both.

A figure's parameters are a `Network`. A `Variant` is a queue and a transmission control. A view
says whether an update on the wire keeps its slot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

from pydantic import Field

from olaf import experiments, scenarios
from olaf.errors.outcome import RunError
from olaf.experiments import Spread
from olaf.scenarios import Outcome
from olaf.scenarios.outcome import Cluster
from olaf.scenarios.summary import NS_PER_MS, group_mean

NS_PER_S = 1e9
Group: TypeAlias = Literal["S1", "S2"]
GROUPS: tuple[Group, Group] = ("S1", "S2")

View: TypeAlias = Literal["ns-3", "hardware"]
VIEWS: dict[View, str] = {
    "ns-3": "the update on the wire has left its slot (ns-3)",
    "hardware": "the update on the wire keeps its slot (hardware)",
}


class Network(experiments.Parameters):
    """Rates, slots and senders of OLAF §8.3."""

    duration_s: float = Field(gt=0)
    """Simulated time in seconds."""
    clusters: int = Field(ge=1)
    """Clusters in each of the two groups."""
    workers: int = Field(ge=1)
    """Workers in each cluster."""
    s1_interval_ms: float = Field(gt=0)
    """Interval between updates of a worker in group S1."""
    s2_interval_ms: float = Field(gt=0)
    """Interval between updates of a worker in group S2."""
    late_ms: float = Field(ge=0)
    """Largest lateness of an update."""
    packet_bytes: int = Field(ge=1)
    """Bytes of an update on a link."""
    edge_slots: int = Field(ge=1)
    """Slots of SW1 and of SW2 each."""
    core_slots: int = Field(ge=1)
    """Slots of SW3."""
    sw1_bps: int = Field(ge=1)
    """Bandwidth of SW1's uplink, bits per second."""
    sw2_bps: int = Field(ge=1)
    """Bandwidth of SW2's uplink, bits per second."""
    sw3_bps: int = Field(ge=1)
    """Bandwidth of SW3's uplink, bits per second."""
    answer_delay_ms: float = Field(ge=0)
    """Delay from the server to the workers."""
    threshold_ms: float = Field(gt=0)
    """For the paper's control: age at which feedback is obsolete."""

    def service_ms(self, rate_bps: int) -> float:
        """Time of an update on a link of this bandwidth."""
        return self.packet_bytes * 8e3 / rate_bps


@dataclass(frozen=True)
class Variant:
    """A queue in the switches and a control in the workers."""

    name: str
    queue: str = "olaf"
    control: Literal["off", "paper", "fair"] = "off"
    slope: Literal["urgency", "fairness"] = "urgency"
    answers_to: Literal["shared", "cluster"] = "shared"
    unsent: Literal["carry", "discard"] = "carry"
    rounds: float | None = None
    """For the fair control; None: its default."""
    yields: float | None = None


FIFO = Variant("FIFO", queue="fifo")
OLAF = Variant("OLAF")
FRESHEST = Variant("freshest queue", queue="freshest")
FRESHEST_FAIR = Variant("freshest queue, fair control", queue="freshest", control="fair")
PAPER = Variant("OLAF, the paper's control", control="paper")
FAIR = Variant("OLAF, fair control", control="fair")


K = TypeVar("K")

Measured: TypeAlias = list[tuple[Variant, list[Outcome]]]
"""Outcomes by seed, for each variant."""


def paper_variants() -> list[Variant]:
    """The paper's control with every choice that the paper leaves open."""
    hear = {"shared": "contributors hear", "cluster": "the cluster hears"}
    return [
        Variant(
            f"OLAF, paper: {slope}, {hear[answers_to]}, {unsent}", "olaf", "paper",
            slope, answers_to, unsent,  # type: ignore[arg-type]
        )
        for slope in ("urgency", "fairness")
        for answers_to in hear
        for unsent in ("carry", "discard")
    ]  # fmt: skip


def scenario_of(
    network: Network, variant: Variant, view: View, *, groups: Sequence[Group] = GROUPS
) -> scenarios.Scenario:
    """The scenario for the core; without one of the groups, that group is silent."""

    def switch(name: str, rate_bps: int, slots: int, **more: str) -> dict[str, object]:
        return {"name": name, "queue": variant.queue, "slots": slots, "rate_bps": rate_bps, **more}

    return {
        "seed": 0,
        "duration_ns": int(network.duration_s * NS_PER_S),
        "head_keeps_slot": view == "hardware",
        "switches": [
            switch("SW1", network.sw1_bps, network.edge_slots, upstream="SW3"),
            switch("SW2", network.sw2_bps, network.edge_slots, upstream="SW3"),
            switch("SW3", network.sw3_bps, network.core_slots),
        ],
        "groups": [
            {
                "name": group,
                "switch": {"S1": "SW1", "S2": "SW2"}[group],
                "clusters": network.clusters,
                "workers": network.workers,
                "interval_ns": int(
                    (network.s1_interval_ms if group == "S1" else network.s2_interval_ms)
                    * NS_PER_MS
                ),
                "late_ns": int(network.late_ms * NS_PER_MS),
                "packet_bytes": network.packet_bytes,
            }
            for group in groups
        ],
        "answers": {"delay_ns": int(network.answer_delay_ms * NS_PER_MS), "to": variant.answers_to},
        "control": {
            "kind": variant.control,
            "slope": variant.slope,
            "unsent": variant.unsent,
            "threshold_ns": int(network.threshold_ms * NS_PER_MS),
            **{
                key: value
                for key, value in (("rounds", variant.rounds), ("yields", variant.yields))
                if value is not None
            },
        },
    }


def measure(
    seeds: Iterable[int],
    network: Network,
    variant: Variant,
    view: View,
    *,
    groups: Sequence[Group] = GROUPS,
) -> list[Outcome]:
    """Run the network once per seed."""
    scenario = scenario_of(network, variant, view, groups=groups)
    return [scenarios.run(scenario, seed) for seed in seeds]


def measure_all(
    seeds: Iterable[int], network: Network, variants: Sequence[Variant]
) -> dict[View, Measured]:
    """Run every variant in both views."""
    found = measure_settings(seeds, {"": network}, variants)
    return {view: by_setting[""] for view, by_setting in found.items()}


def measure_settings(
    seeds: Iterable[int], settings: Mapping[K, Network], variants: Sequence[Variant]
) -> dict[View, dict[K, Measured]]:
    """Run every variant in every setting and view; seeds are the outermost loop, for progress."""
    found: dict[View, dict[K, Measured]] = {
        view: {key: [(variant, []) for variant in variants] for key in settings} for view in VIEWS
    }
    for seed in seeds:
        for view, by_setting in found.items():
            for key, measured in by_setting.items():
                for variant, outcomes in measured:
                    outcomes.extend(measure([seed], settings[key], variant, view))
    return found


def age_ms(
    outcomes: Sequence[Outcome],
    group: Group,
    of: Callable[[Cluster], float | None] = lambda cluster: cluster.age_mean_ns,
) -> Spread:
    """A group's mean over its clusters, once per seed; by default of their average ages."""
    values = [group_mean(outcome, group, of) for outcome in outcomes]
    return Spread.of([_heard(value, group) / NS_PER_MS for value in values])


def peak_ms(outcomes: Sequence[Outcome], group: Group) -> Spread:
    """The group's mean of mean peaks."""
    return age_ms(outcomes, group, lambda cluster: cluster.age_peak_mean_ns)


def worker_ms(outcomes: Sequence[Outcome], group: Group) -> Spread:
    """The group's mean of each worker's own age."""
    return age_ms(outcomes, group, lambda cluster: cluster.worker_age_mean_ns)


def fairness(outcomes: Sequence[Outcome]) -> Spread:
    """Jain's index of the clusters' average ages."""
    return Spread.of([_heard(outcome.fairness, "S1 or S2") for outcome in outcomes])


def _heard(value: float | None, group: str) -> float:
    if value is None:
        raise RunError(
            f"nothing of a cluster of {group} reached the server: simulate longer (duration_s)"
        )
    return value


def percent(outcomes: Sequence[Outcome], of: Callable[[Outcome], float]) -> Spread:
    """A share, in percent."""
    return Spread.of([of(outcome) * 100 for outcome in outcomes])


def worst_change(outcomes: Sequence[Outcome], plain: Sequence[Outcome]) -> Spread:
    """By how many percent the average age of the cluster with most losses rose, seed by seed."""

    def change(one: Outcome, other: Outcome) -> float:
        pairs = zip(one.clusters, other.clusters, strict=True)
        return max(
            _heard(c.age_mean_ns, c.group) / _heard(p.age_mean_ns, p.group) - 1 for c, p in pairs
        )

    pairs = zip(outcomes, plain, strict=True)
    return Spread.of([change(one, other) * 100 for one, other in pairs])


def jain_of_groups(first: float, second: float) -> float:
    """The largest possible Jain index of two equally large groups with these mean ages.

    It is reached when the clusters of a group are equal: then the sum of squares is smallest for a
    given sum.
    """
    return (first + second) ** 2 / (2 * (first**2 + second**2))
