"""`olaf.verify.sweep`: every run, by the engine; nothing missed, nothing made up."""

import time
from dataclasses import replace
from fractions import Fraction

import pytest
from brute import Brute
from hypothesis import given, settings
from hypothesis import strategies as st

from olaf.verify.instance import Control, Instance, Kind, Objective, Sender, Ties
from olaf.verify.prover import NoRun, UndecidedError
from olaf.verify.schedule import Schedule, on_ticks, replay, value
from olaf.verify.sweep import Sweep

TICK_NS = 1_000_000
ANY = Fraction(-1)


def soon() -> float:
    return time.monotonic() + 60


def instance_of(
    *intervals: int, service: int = 1, slots: int = 2, horizon: int = 24, workers: int = 1
) -> Instance:
    """A cluster of each interval; `workers` is the size of the first one."""
    senders = [Sender(0, intervals[0], 0)] * (workers - 1)
    senders += [Sender(cluster, interval, 0) for cluster, interval in enumerate(intervals)]
    alike = tuple(
        0 if cluster == 0 and workers > 1 else each for cluster, each in enumerate(intervals)
    )
    names = tuple("abcdefgh"[: len(intervals)])
    return Instance(TICK_NS, service, slots, horizon, names, alike, tuple(senders))


def objective_of(kind: Kind, clusters: int) -> Objective:
    return Objective(kind, Fraction(0), tuple(range(clusters)))


@st.composite
def questions(draw: st.DrawFn) -> tuple[Instance, Objective]:
    intervals = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    instance = instance_of(
        *intervals,
        service=draw(st.integers(1, 3)),
        slots=draw(st.integers(1, 3)),
        horizon=draw(st.integers(6, 16)),
        workers=draw(st.integers(1, 2)) if len(intervals) < 3 else 1,
    )
    return instance, objective_of(draw(st.sampled_from(list(Kind))), len(intervals))


@settings(max_examples=60, deadline=None)
@given(questions())
def test_the_engine_shows_the_maximum(question: tuple[Instance, Objective]) -> None:
    instance, objective = question
    found = Sweep(instance, objective).maximum(soon())
    if found.value is None:
        return
    assert found.schedule is not None
    assert value(on_ticks(instance, replay(instance, found.schedule)), objective) == found.value


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(questions())
def test_nothing_is_missed(question: tuple[Instance, Objective]) -> None:
    instance, objective = question
    brute = Brute(instance, objective).exists(ANY, soon())
    found = Sweep(instance, objective).maximum(soon())
    if isinstance(brute, Schedule):
        best = value(on_ticks(instance, replay(instance, brute)), objective)
    else:
        best = None
    assert found.value == best


def test_a_run_that_is_asked_for_stops_it_early() -> None:
    sweep = Sweep(instance_of(6, 6, 6, 6, 6, slots=3), objective_of(Kind.WORST_PEAK, 5))
    assert isinstance(sweep.exists(ANY, soon()), Schedule)
    done, classes, _ = sweep.progress()
    assert done < classes
    best = sweep.maximum(soon()).value
    assert best is not None
    assert sweep.progress()[0] == classes
    _, _, runs = sweep.progress()
    above = sweep.exists(best - 1, soon())
    assert isinstance(above, Schedule)
    assert isinstance(sweep.exists(best, soon()), NoRun)
    assert sweep.progress()[2] == runs, "what is known is not swept again"


def test_what_repeats_itself_holds_for_ever() -> None:
    """Two clusters of one interval and a slot: the one that comes second is never served."""
    instance = instance_of(4, 4, service=3, slots=1)
    starving = Sweep(instance, objective_of(Kind.STARVATION, 2))
    assert starving.maximum(soon()).value == instance.horizon * TICK_NS
    found = starving.for_ever(soon())
    assert found is not None
    assert found.value is None, "infinite"
    assert starving.exists(Fraction(instance.horizon * TICK_NS), soon()) == NoRun(forever=False)
    mute = Sweep(instance, objective_of(Kind.NO_AVERAGE, 2)).maximum(soon())
    assert mute.value == 1
    assert mute.forever


def test_a_peak_for_ever_is_the_peak_of_a_long_run() -> None:
    instance = instance_of(3, 4, 6, service=2, slots=4, horizon=20)
    objective = objective_of(Kind.WORST_PEAK, 3)
    sweep = Sweep(instance, objective)
    found = sweep.for_ever(soon())
    assert found is not None
    assert found.value is not None
    assert sweep.exists(found.value, soon()) == NoRun(forever=True)
    long = replace(instance, horizon=found.begin + 2 * found.period)
    assert Sweep(long, objective).maximum(soon()).value == found.value
    assert not Sweep(instance, objective, forever=False).maximum(soon()).forever


def test_work_is_shared_without_a_difference() -> None:
    instance = instance_of(5, 5, 5, 4, slots=2)
    objective = objective_of(Kind.FAIR_PEAK, 4)
    alone, together = (Sweep(instance, objective, threads=count) for count in (1, 3))
    assert alone.maximum(soon()).value == together.maximum(soon()).value
    assert alone.progress() == together.progress()


@pytest.mark.slow
def test_in_a_hurry_it_asks_for_the_horizon_only() -> None:
    """Runs until they repeat themselves take ten times as long here."""
    instance = instance_of(5, 7, 7, 7, 8, service=3, slots=2, horizon=70)
    sweep = Sweep(instance, objective_of(Kind.STARVATION, 5), threads=1)
    with pytest.raises(UndecidedError):
        sweep.maximum(time.monotonic() + 0.1)
    assert sweep.for_ever(time.monotonic() + 60) is None
    assert not sweep.maximum(soon()).forever


def test_out_of_time_it_says_how_far_it_came() -> None:
    sweep = Sweep(instance_of(*[9] * 8, slots=4), objective_of(Kind.LOSS, 8))
    with pytest.raises(UndecidedError, match=r"out of time, after \d+ of 12870 classes of phases"):
        sweep.maximum(time.monotonic())


def test_what_it_cannot_take_has_a_reason() -> None:
    instance = instance_of(4, 4)
    objective = objective_of(Kind.LOSS, 2)
    assert Sweep.takes(instance, objective) is None
    late = replace(instance, senders=(Sender(0, 4, 1), Sender(1, 4, 0)))
    assert "late" in (Sweep.takes(late, objective) or "")
    control = replace(instance, control=Control(4, 1, 1, 4, 8))
    assert "held back" in (Sweep.takes(control, objective) or "")
    assert "instant" in (Sweep.takes(replace(instance, ties=Ties.GRID), objective) or "")
    many = instance_of(*range(1000, 1008))
    assert "classes of phases" in (Sweep.takes(many, objective) or "")
    long = replace(instance, horizon=2_000_000)
    assert "lengthen the tick" in (Sweep.takes(long, objective) or "")
