"""The closed form against every run of small instances, and on many workers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from crosscheck import questions, values_of
from instances import draw
from reference import TooManyError, outcomes

from olaf.verify import instance_of, objective_of, read
from olaf.verify.bound import Bound, at_most
from olaf.verify.instance import Control, Instance, Kind, Objective, Sender, Ties
from olaf.verify.verdict import Answer
from olaf.verify.verifying import verify

MOST_STATES = 3_000


def with_room(random: Random, *, jitter: bool) -> Instance:
    """A random instance with one slot more than clusters, and without control."""
    instance = draw(random, longest=5, most_workers=3, jitter=jitter, control=False)
    return replace(instance, slots=len(instance.clusters) + 1, control=None)


@pytest.mark.parametrize("jitter", [False, True])
def test_no_run_of_small_instances_is_above_the_bound(jitter: bool) -> None:
    compared = 0
    closest: dict[Kind, int] = {}
    for seed in range(60):
        instance = with_room(Random(seed), jitter=jitter)
        try:
            runs = outcomes(instance, MOST_STATES)
        except TooManyError:
            continue
        for objective in questions(instance):
            bound, reached = at_most(instance, objective), values_of(runs, instance, objective)
            if bound is None or not reached:
                continue
            assert reached[-1] <= bound, f"{objective.kind} of seed {seed}: {instance}"
            compared += 1
            left = int((bound - reached[-1]) / (instance.tick_ns * instance.service))
            closest[objective.kind] = min(closest.get(objective.kind, left), left)
    assert compared > 50
    # A bound that were two services lower would be wrong: this test would see it.
    assert closest[Kind.WORST_PEAK] < 2


def instance(**changes: object) -> Instance:
    """Ten clusters of ten workers at 11 slots: an update each 300 ms, and 1 ms on the link."""
    senders = tuple(Sender(cluster, 300, 20) for cluster in range(10) for _ in range(10))
    names = tuple(f"c{number}" for number in range(10))
    whole = Instance(1_000_000, 1, 11, 1920, names, (0,) * 10, senders)
    return replace(whole, **changes)  # type: ignore[arg-type]


ALL = tuple(range(10))


def test_a_hundred_workers_are_decided_at_once() -> None:
    verdict = verify(instance(), Objective(Kind.WORST_PEAK, Fraction(331_000_000), ALL))
    assert (verdict.answer, verdict.prover, verdict.forever) == (Answer.HOLDS, "bound", True)
    assert verdict.at_most == 331_000_000
    assert verdict.witness is not None
    lossless = verify(instance(), Objective(Kind.LOSS, Fraction(0), ALL))
    assert lossless.answer is Answer.HOLDS
    assert lossless.at_most == 0


def test_it_holds_for_ever_for_real_rates_and_sizes(tmp_path: Path) -> None:
    file = tmp_path / "spec.toml"
    file.write_text(
        '[queue]\nslots = 4\nrate = "1gbit"\nbytes = 8960\n[[cluster]]\nname = "a"\ncount = 3\n'
        'workers = 9\ninterval = "10ms"\njitter = "1ms"\n'
        '[[objective]]\nkind = "worst_peak"\nbound = "13ms"\n'
    )
    spec = read(file)
    rounded = instance_of(spec)
    assert rounded.rounding
    question = objective_of(spec.objective[0], spec, rounded)
    verdict = verify(rounded, question, timeout_s=5)
    assert (verdict.answer, verdict.prover, verdict.forever) == (Answer.HOLDS, "bound", True)
    # T + J + (N + 1) p/C of the exact times, and no more than a tenth above.
    exact = (10 + 1 + 4 * Fraction(8960 * 8, 10**6)) * 10**6
    assert verdict.at_most is not None
    assert exact <= verdict.at_most < exact * Fraction(11, 10)


def test_below_its_bound_it_decides_nothing_and_says_what_it_knows() -> None:
    question = Objective(Kind.WORST_PEAK, Fraction(330_999_999), ALL)
    verdict = verify(instance(), question, timeout_s=5)
    assert verdict.answer is Answer.UNDECIDED
    assert "no run is above 331 ms" in verdict.reason


def test_it_knows_where_it_has_no_bound() -> None:
    about = Objective(Kind.WORST_PEAK, Fraction(0), ALL)
    assert "slots" in str(Bound.takes(instance(slots=10), about))
    held = instance(control=Control(2, 1, 2, 10, 20))
    assert "held back" in str(Bound.takes(held, about))
    twice = replace(about, kind=Kind.NO_AVERAGE)
    assert "two deliveries" in str(Bound.takes(instance(horizon=661), twice))
    assert Bound.takes(instance(horizon=662, ties=Ties.GRID), twice) is None
