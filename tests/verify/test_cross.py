"""Every prover against every run of small instances, and against runs at real times."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from crosscheck import PATIENCE_S, PROVERS, disagreements, greatest_of, questions, values_of
from instances import draw, families, kept, told
from reference import Outcome, TooManyError, outcomes
from simulation import departures, simulated

from olaf.verify.events import Events
from olaf.verify.instance import Control, Instance, Kind, Objective, Sender
from olaf.verify.prover import NoRun
from olaf.verify.schedule import value
from olaf.verify.sweep import Sweep
from olaf.verify.timeline import Timeline

MOST_STATES = 3_000
"""Of an instance in these tests: larger ones are for `crosscheck.py`."""


def small(seed: int, **kind: bool) -> tuple[Instance, set[Outcome]]:
    """The first instance from a seed on that has few enough runs, and these."""
    random = Random(seed)
    while True:
        instance = draw(random, longest=5, most_workers=3, **kind)
        try:
            return instance, outcomes(instance, MOST_STATES)
        except TooManyError:
            continue


FAMILIES = {
    "phases": ({"jitter": False, "control": False}, 6),
    "late": ({"jitter": True, "control": False}, 4),
    "controlled": ({"jitter": False, "control": True}, 5),
    "late and controlled": ({"jitter": True, "control": True}, 3),
}
"""With how many tens of instances each."""
QUICK = [("phases", 0), ("late", 0), ("controlled", 0)]
"""The tens that `make test` runs; `make check` runs all."""
TENS = [
    pytest.param(
        name, ten, id=f"{name}-{ten}", marks=[] if (name, ten) in QUICK else [pytest.mark.slow]
    )
    for name, (_, tens) in FAMILIES.items()
    for ten in range(tens)
]
SLOW = (Kind.WORST_PEAK, Kind.FAIR_AGE, Kind.STARVATION)


@pytest.fixture(scope="module")
def counts() -> Iterator[Counter[str]]:
    """What was compared, printed in the end (`pytest -s`)."""
    found: Counter[str] = Counter()
    yield found
    print(f"\n{told(found)}")


@pytest.mark.parametrize(("name", "ten"), TENS)
def test_provers_say_what_all_runs_say(name: str, ten: int, counts: Counter[str]) -> None:
    kind, _ = FAMILIES[name]
    for number in range(10 * ten, 10 * ten + 10):
        instance, runs = small(1000 * len(name) + number, **kind)
        asked = questions(instance)
        # The timeline takes longest, for it looks for proofs for ever: one kind of each instance,
        # and those it takes longest for more rarely.
        of_timeline = asked[number // 2 % len(asked)].kind
        if of_timeline in SLOW and number % 2:
            of_timeline = (Kind.LOSS, Kind.NO_AVERAGE, Kind.LOSS)[SLOW.index(of_timeline)]
        for objective in asked:
            provers = PROVERS if objective.kind is of_timeline else (Sweep, Events)
            wrong = disagreements(instance, runs, objective, provers)
            assert not wrong, f"{wrong}\n{instance!r}"
            for prover in provers:
                takes = prover.takes(instance, objective) is None
                counts[f"maxima that {prover.name} found"] += takes
        counts.update(["instances", *families(instance)])


VECTORS = sorted((Path(__file__).parents[2] / "vectors" / "verify").glob("*.json"))
assert VECTORS, "the cases that were found are gone"


@pytest.mark.parametrize("file", VECTORS, ids=[file.stem for file in VECTORS])
def test_what_a_prover_was_wrong_about(file: Path) -> None:
    instance, kind, largest = kept(file)
    runs = outcomes(instance)
    objective = next(each for each in questions(instance) if each.kind == kind)
    scale = instance.tick_ns if objective.kind.is_time else 1
    values = values_of(runs, instance, objective)
    assert values[-1:] == ([] if largest is None else [Fraction(largest) * scale])
    assert disagreements(instance, runs, objective) == []


@pytest.mark.slow
def test_no_real_time_exceeds_what_is_true_of_ticks() -> None:
    close = 0
    for seed in range(30):
        instance, runs = small(50_000 + seed)
        asked = [each for each in questions(instance) if each.kind is not Kind.FAIR_AGE]
        largest = {o.kind: max(values_of(runs, instance, o), default=None) for o in asked}
        random = Random(seed)
        for _ in range(60):
            run, own = simulated(instance, random)
            assert departures(run) == sorted(own)
            for objective in asked:
                reached, most = value(run, objective), largest[objective.kind]
                if reached is not None:
                    assert most is not None, instance
                    assert reached <= most, (objective.kind, instance, run)
                    close += reached > 0 and reached > most * Fraction(99, 100)
    assert close > 100, "runs come near to the bounds, or nothing was tested"


LARGE = [
    (Sender(0, 4, 0), Sender(1, 6, 0), Sender(2, 6, 0)),
    (Sender(0, 3, 1), Sender(1, 4, 1), Sender(2, 3, 0)),
    (Sender(0, 4, 1), Sender(1, 4, 1)),
]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Kind.FAIR_PEAK, Kind.WORST_PEAK, Kind.LOSS])
@pytest.mark.parametrize("senders", LARGE)
def test_no_real_time_exceeds_a_proof(senders: tuple[Sender, ...], kind: Kind) -> None:
    clusters = 1 + max(sender.cluster for sender in senders)
    control = Control(3, 1, 2, 6, 9) if clusters == 2 else None
    instance = Instance(
        tick_ns=1_000_000,
        service=2,
        slots=2,
        horizon=12 if clusters < 3 or not senders[0].jitter else 9,
        clusters=tuple("abcd"[:clusters]),
        alike=tuple(range(clusters)),
        senders=senders,
        control=control,
        answer_delay=1 if control else 0,
    )
    objective = Objective(kind, Fraction(0), tuple(range(clusters)))
    proved = greatest_of(Timeline(instance, objective), instance, objective)
    assert proved is not None
    assert isinstance(Timeline(instance, objective).exists(proved, soon()), NoRun)
    random = Random(7)
    reached = [value(simulated(instance, random)[0], objective) for _ in range(300)]
    assert max(each for each in reached if each is not None) <= proved


def soon() -> float:
    return time.monotonic() + PATIENCE_S
