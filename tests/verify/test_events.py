"""The prover over events: against every run there is, drawn ones, and on the paper's cases."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from fractions import Fraction

import pytest
from brute import Brute
from event_reference import Ready, Reference

from olaf.verify.events import Events
from olaf.verify.instance import Control, Hears, Instance, Kind, Objective, Sender, Ties
from olaf.verify.prover import NoRun, UndecidedError
from olaf.verify.schedule import Run, value
from olaf.verify.spec import Spec
from olaf.verify.ticks import instance_of
from olaf.verify.witness import confirm

MS = 1_000_000
LINEAR = [kind for kind in Kind if kind is not Kind.FAIR_AGE]


def largest(instance: Instance, objective: Objective) -> Fraction | None:
    """The value that no run exceeds, by one prover asked again and again; the engine confirms."""
    assert Events.takes(instance, objective) is None
    prover = Events(instance, objective)
    reached: Fraction | None = None
    while True:
        above = Fraction(-1) if reached is None else reached
        found = prover.exists(above, time.monotonic() + 100)
        if isinstance(found, NoRun):
            return reached
        reached = confirm(instance, objective, above, found, prover.name).value


def instance(
    draw: random.Random, *, late: bool = False, control: bool = False, longest: int = 12
) -> Instance:
    clusters = draw.choice([1, 2, 2, 3])
    senders: list[Sender] = []
    alike: list[int] = []
    kinds: dict[tuple[int, int, int], int] = {}
    for cluster in range(clusters):
        interval = draw.randint(2 if late else 1, 4)
        jitter = draw.randint(0, interval - 1) if late else 0
        workers = draw.choice([1, 1, 2]) if clusters < 3 else 1
        senders += [Sender(cluster, interval, jitter)] * workers
        alike.append(kinds.setdefault((interval, jitter, workers), len(kinds)))
    quota = None
    if control:
        window, threshold = draw.randint(1, 3), draw.randint(0, 5)
        at_least = draw.randint(0, window)
        at_most = draw.randint(max(at_least, 1), window)
        quota = Control(window, at_least, at_most, threshold, threshold + draw.randint(0, 4))
    return Instance(
        tick_ns=MS,
        service=draw.randint(1, 3),
        slots=draw.randint(1, 3),
        horizon=draw.randint(4, longest),
        clusters=tuple("abc"[:clusters]),
        alike=tuple(alike),
        senders=tuple(senders),
        control=quota,
        answer_delay=draw.randint(0, 2) if control else 0,
        hears=draw.choice(list(Hears)),
    )


def objective(draw: random.Random, of: Instance) -> Objective:
    kinds = [kind for kind in LINEAR if kind is not Kind.FAIR_PEAK or len(of.clusters) > 1]
    return Objective(draw.choice(kinds), Fraction(0), tuple(range(len(of.clusters))))


# These seeds draw large instances: they take longer than all others together.
SLOW = {11, 13, 21}
SEEDS = [pytest.param(seed, marks=pytest.mark.slow if seed in SLOW else []) for seed in range(24)]


@pytest.mark.timeout(600)  # a busy machine takes minutes for the large ones
@pytest.mark.parametrize("seed", SEEDS)
def test_without_lateness_it_finds_what_every_phase_and_rank_finds(seed: int) -> None:
    draw = random.Random(seed)
    small = instance(draw)
    asked = objective(draw, small)
    brute = Brute(small, asked).exists(Fraction(-1), time.monotonic() + 400)
    want = None
    if not isinstance(brute, NoRun):
        want = confirm(small, asked, Fraction(-1), brute, "brute").value
    assert largest(small, asked) == want


@pytest.mark.parametrize("seed", range(12))
def test_no_drawn_run_exceeds_what_it_proved(seed: int) -> None:
    draw = random.Random(2000 + seed)
    small = instance(draw, late=True, control=seed % 2 == 1, longest=9)
    asked = objective(draw, small)
    proved = largest(small, asked)
    reached = [value(drawn(small, draw), asked) for _ in range(1500)]
    best = max((each for each in reached if each is not None), default=None)
    assert best is None or (proved is not None and best <= proved)


def drawn(of: Instance, draw: random.Random) -> Run:
    """A run at real times: a tick is what they round down to, a rank their fraction."""
    updates: list[Ready] = []
    for index, sender in enumerate(of.senders):
        phase = Fraction(draw.randrange(8 * sender.interval), 8)
        for due in range(0, of.horizon + 1, sender.interval):
            at = phase + due + Fraction(draw.randint(0, 8 * sender.jitter), 8)
            # No two workers have the same fraction.
            at += Fraction(index + 1, 100) if sender.jitter == 0 else Fraction(0)
            updates.append(((at.numerator // at.denominator, at % 1), index))
    often = draw.random()
    return Reference(of, lambda: draw.random() < often).run(updates)


def paper(interval_ms: int, slots: int, horizon_ms: int, *, jitter_ms: int = 0) -> Instance:
    """The paper's two clusters, 100 ms against ``interval_ms``, p/C = 2 ms."""
    clusters = [
        {"name": "a", "interval_ms": 100, "jitter_ms": jitter_ms},
        {"name": "b", "interval_ms": interval_ms, "jitter_ms": jitter_ms},
    ]
    tables = {
        "queue": {"slots": slots, "service_ms": 2},
        "cluster": clusters,
        "control": {"kind": "paper", "threshold_ms": 400},
        "time": {"horizon_ms": horizon_ms},
    }
    return instance_of(Spec.model_validate(tables))


@pytest.mark.parametrize(
    ("interval_ms", "slots", "edge_ms"), [(100, 2, 2), (300, 2, 202), (100, 1, 0)]
)
def test_the_papers_clusters(interval_ms: int, slots: int, edge_ms: int) -> None:
    of = paper(interval_ms, slots, 1200)
    fair = Objective(Kind.FAIR_PEAK, Fraction(0), (0, 1))
    assert largest(of, fair) == edge_ms * MS
    assert largest(of, replace(fair, kind=Kind.NO_AVERAGE)) == 0


def test_the_papers_clusters_when_the_slot_is_one_and_one_is_slow() -> None:
    of = paper(300, 1, 1200)
    fair = Objective(Kind.FAIR_PEAK, Fraction(0), (0, 1))
    found = Events(of, fair).exists(Fraction(MS, 10), time.monotonic() + 100)
    assert not isinstance(found, NoRun)
    assert found.held
    assert confirm(of, fair, Fraction(MS, 10), found, "events").value > 200 * MS


def test_it_says_what_it_does_not_take() -> None:
    of = paper(300, 2, 600)
    worst = Objective(Kind.WORST_PEAK, Fraction(0), (0, 1))
    assert Events.takes(of, worst) is None
    assert "not linear" in str(Events.takes(of, replace(worst, kind=Kind.FAIR_AGE)))
    assert "grid" in str(Events.takes(replace(of, ties=Ties.GRID), worst))
    assert "shorten the horizon" in str(Events.takes(replace(of, horizon=9_000), worst))


def test_it_gives_up_when_its_time_is_up() -> None:
    of = paper(300, 2, 1200, jitter_ms=50)
    loss = Objective(Kind.LOSS, Fraction(0), (0, 1))
    with pytest.raises(UndecidedError, match="out of time"):
        Events(of, loss).exists(Fraction(0), time.monotonic())
