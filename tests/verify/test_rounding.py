"""What is proved of rounded times holds for the exact ones."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from specs import SMALL, written

from olaf import _olaf
from olaf.errors.usage import ConfigurationError
from olaf.verify import instance_of, objective_of, read, verify
from olaf.verify.rounding import Exact, best, rounded
from olaf.verify.verdict import Answer

US = st.integers(1, 40)


@given(
    service=st.fractions(Fraction(1, 3), 20, max_denominator=9),
    kinds=st.lists(st.tuples(st.integers(20, 200), st.integers(0, 9)), min_size=1, max_size=3),
    horizon=st.integers(1, 900),
    tick_us=st.none() | US,
    draw=st.randoms(use_true_random=False),
)
def test_each_exact_run_is_a_rounded_one(
    service: Fraction,
    kinds: list[tuple[int, int]],
    horizon: int,
    tick_us: int | None,
    draw: Random,
) -> None:
    senders = tuple((Fraction(interval), Fraction(jitter)) for interval, jitter in kinds)
    exact = Exact(service, Fraction(horizon), senders)
    times = best(exact) if tick_us is None else rounded(exact, tick_us)
    if times is None:
        return
    scale = times.stretch / times.tick_us
    assert service * scale == times.service, "the service is exact"
    assert times.stretch >= 1, "no age is shorter"
    assert horizon * scale <= times.horizon, "the whole horizon is observed"
    for (interval, jitter), (whole, late) in zip(senders, times.senders, strict=True):
        phase = interval * Fraction(draw.randrange(1_000), 1_000)
        for number in range(10_000):
            ready = (phase + number * interval + jitter * draw.choice([0, 1])) * scale
            if ready > times.horizon:
                break
            lateness = ready - (min(phase * scale, Fraction(whole)) + number * whole)
            assert 0 <= lateness <= late < whole


GIGABIT = """
[queue]
slots = {slots}
rate = "1gbit"
bytes = 8960
[[cluster]]
name = "a"
interval_ms = 0.31
[[cluster]]
name = "b"
interval_ms = 0.47
[time]
horizon_ms = 2
[[objective]]
kind = "worst_peak"
bound_ms = {bound_ms}
"""


@pytest.mark.parametrize(("slots", "bound_ms"), [(3, 0.7), (2, 2)])
def test_no_exact_run_is_older_than_what_is_proved(
    slots: int, bound_ms: float, tmp_path: Path
) -> None:
    spec = read(written(tmp_path, GIGABIT.format(slots=slots, bound_ms=bound_ms)))
    instance = instance_of(spec)
    assert "rounded" in instance.rounding
    objective = objective_of(spec.objective[0], spec, instance)
    verdict = verify(instance, objective, timeout_s=20)
    is_closed_form = verdict.prover == "bound"
    assert verdict.forever == is_closed_form, "the added lateness is that of the horizon"
    if verdict.answer is not Answer.HOLDS:
        assert slots == 2
        return
    assert verdict.at_most is not None
    draw, oldest_ns = Random(0), 0
    for _ in range(100):
        until_ns = 10_000_000 if verdict.forever else 2_000_000
        oldest_ns = max(oldest_ns, _worst_ns(draw, slots, tmp_path / "exact.csv", until_ns))
    assert 0.8 * float(verdict.at_most) < oldest_ns <= verdict.at_most


def _worst_ns(draw: Random, slots: int, trace: Path, until_ns: int) -> int:
    """The oldest age of a run at exact times: to the nanosecond, 71.68 us are whole."""
    rows = []
    for name, interval_ns in (("a", 310_000), ("b", 470_000)):
        for number, at_ns in enumerate(range(draw.randrange(interval_ns), until_ns, interval_ns)):
            rows.append((at_ns, f"{name},w{name},{number},0,8960"))
    lines = [f"{at_ns},{rest}" for at_ns, rest in sorted(rows)]
    trace.write_text("t_ns,cluster,worker,seq,reward,bytes\n" + "\n".join(lines) + "\n")
    told = json.loads(_olaf.replay(str(trace), engine="olaf", slots=slots, rate="1gbit"))
    ages = [0]
    for name in "ab":
        left = [each for each in told["departures"] if each["cluster"] == name]
        assert all(each["end_ns"] - each["start_ns"] == 71_680 for each in left)
        ages += [b["end_ns"] - a["newest_ns"] for a, b in pairwise(left)]
    return max(ages)


def test_times_with_a_common_tick_are_exact(tmp_path: Path) -> None:
    instance = instance_of(read(written(tmp_path, SMALL)))
    assert (instance.rounding, instance.tick_ns) == ("", 1_000_000)
    assert all(sender.jitter == 0 for sender in instance.senders)


def test_a_tick_that_is_asked_for_rounds(tmp_path: Path) -> None:
    text = SMALL.replace("interval_ms = 6", "interval_ms = 6.5") + "tick_ms = 1\n"
    instance = instance_of(read(written(tmp_path, text)))
    # Six and a half ticks: half a tick more at each of the five updates by the horizon.
    assert [(s.interval, s.jitter) for s in instance.senders] == [(4, 0), (6, 3)]
    assert instance.horizon == 24


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("tick_ms = 3", "half as long again"),
        ('tick_ms = 0.7\nties = "grid"', "every event falls on one"),
        ('tick_ms = 0.7\n[answers]\ndelay_ms = 1\n[control]\nkind = "paper"', "delay of answers"),
    ],
)
def test_what_cannot_be_rounded_is_refused(change: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=what):
        instance_of(read(written(tmp_path, SMALL + change + "\n")))
