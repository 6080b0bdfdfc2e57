"""The pure parts of the plain TCP job: the bucket, the ages, and what the server decides."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olaf import _olaf
from olaf.tcp.ages import AgeOfModel, jain
from olaf.tcp.bucket import Bucket
from olaf.tcp.frames import Join, Push
from olaf.tcp.job import Job, RefusedError
from olaf.tcp.rule import Rule, RuleConfig

RATE = 1000.0
BURST = 100.0


@given(st.lists(st.tuples(st.floats(0, 2), st.integers(1, 500)), min_size=1, max_size=60))
def test_no_stretch_of_time_carries_more_than_rate_and_burst(
    steps: list[tuple[float, int]],
) -> None:
    bucket, now, passed = Bucket(RATE, BURST), 0.0, list[tuple[float, int]]()
    for after, count in steps:
        now += after
        passed.append((now + bucket.take(now, count), count))
    passed.sort()
    for first in range(len(passed)):
        carried = 0
        for at, count in passed[first:]:
            carried += count
            # The first chunk of a stretch may have begun before it.
            most = RATE * (at - passed[first][0]) + BURST + passed[first][1]
            assert carried <= most + 1e-6


def test_a_link_that_is_busy_carries_all_of_its_rate() -> None:
    bucket, now = Bucket(RATE, BURST), 0.0
    for _ in range(100):
        now += bucket.take(now, 50) + 0.01  # 10 ms late each time, within the burst
    assert 5000 / now == pytest.approx(RATE, rel=0.05)


def test_the_average_age_is_the_area_of_the_sawtooth_over_its_length() -> None:
    age = AgeOfModel()
    assert (age.now_ns(5), age.mean_ns(5), age.peak_mean_ns()) == (None, None, None)
    age.deliver(10, 4)
    age.deliver(20, 15)
    age.deliver(25, 3)  # older news changes nothing
    # As in crates/olaf-host/src/age.rs: 6 to 16 over 10, then 5 to 15 over 10.
    assert age.mean_ns(30) == 210 / 20
    assert age.peak_mean_ns() == 16.0
    assert age.now_ns(30) == 15


def test_fairness_is_that_of_the_core() -> None:
    assert jain([3.0, 3.0, 3.0]) == 1.0
    assert jain([4.0, 0.0, 0.0, 0.0]) == 0.25
    assert jain([]) is None


def job(**rule: object) -> Job:
    made = Job(1, RuleConfig(**rule), most_parameters=10, most_workers=2)  # type: ignore[arg-type]
    made.join(Join(7, 0, 2))
    made.start(np.zeros(2, np.float32))
    return made


def push(sequence: int, value: float, *, version: int = 1, pushed_ns: int = 0) -> Push:
    return Push(sequence, version, 5.0, 1.0, pushed_ns, np.full(2, value, np.float32))


@pytest.mark.parametrize("rule", [{}, {"staleness_power": 0.0}, {"learning_rate": 0.25}])
def test_updates_change_the_model_as_the_core_s_rule_does(rule: dict[str, float]) -> None:
    made = job(**rule)
    made.join(Join(8, 1, 2))
    rng = np.random.default_rng(3)
    weights = np.zeros(2, np.float32)
    for number in range(20):
        worker = 7 + number % 2
        values = rng.standard_normal(2).astype(np.float32)
        version = max(made.version - int(rng.integers(4)), 1)
        behind = made.version - version
        told = json.dumps({"listen": "127.0.0.1:0", **rule})
        overlapped = float(max(behind, number > 0))  # the first worker is alone at first
        _olaf.apply_rule(told, weights, [(values, 1.0, 5.0, behind, 1, overlapped)])
        made.apply(worker, Push(number // 2, version, 5.0, 1.0, 0, values), 100)
        assert made.weights is not None
        np.testing.assert_allclose(made.weights, weights, rtol=1e-5, atol=1e-6)
    found = made.statistics(200)
    assert found["received"] == found["fates"]["delivered_alone"] == 20
    assert [c["contributions"] for c in found["clusters"]] == [10, 10]


@pytest.mark.parametrize(
    "rule",
    [
        {"rule": "paper-literal", "learning_rate": 0.5},
        {"gate": "best", "gate_margin": 1.0},
        {"gate": "recent"},
        {"step": "sum", "staleness_power": 1.5},
    ],
)
def test_the_rule_is_that_of_the_core_with_its_state(rule: dict[str, object]) -> None:
    """The same stream of updates, at once through the core and one by one through ours."""
    rng = np.random.default_rng(5)
    stream = [
        (rng.standard_normal(2).astype(np.float32), float(rng.uniform(0.5, 3)),
         float(rng.normal()), int(rng.integers(5)))
        for _ in range(40)
    ]  # fmt: skip
    weights = np.ones(2, np.float32)
    told = json.dumps({"listen": "127.0.0.1:0", **rule})
    # The core is given sums, ours what a worker pushed: its update and its weight.
    sums = [
        (update * np.float32(weight), weight, reward, behind, 1, float(behind))
        for update, weight, reward, behind in stream
    ]
    applied = _olaf.apply_rule(told, weights, sums)
    ours = Rule(RuleConfig(**rule))  # type: ignore[arg-type]
    ours.start(np.ones(2, np.float32))
    taken = [ours.apply(u, weight=w, reward=r, behind=b) for u, w, r, b in stream]
    assert taken == applied
    assert ours.version == 1 + sum(applied)
    np.testing.assert_allclose(ours.weights, weights, rtol=1e-4, atol=1e-5)  # type: ignore[arg-type]


def test_what_cannot_be_is_refused_by_name() -> None:
    made = job()
    for join, said in (
        (Join(8, 0, 3), "a model of 3 parameters; the job's has 2"),
        (Join(8, 0, 11), "the limit is 10"),
        (Join(7, 0, 2), "worker 7 is connected already"),
    ):
        with pytest.raises(RefusedError, match=said):
            made.join(join)
    made.join(Join(8, 0, 2))
    with pytest.raises(RefusedError, match="2 workers are connected"):
        made.join(Join(9, 0, 2))
    made.apply(7, push(0, 1.0), 10)
    with pytest.raises(RefusedError, match="update 2 of worker 7 instead of 1"):
        made.apply(7, push(2, 1.0), 20)


def test_a_worker_that_comes_again_begins_anew_and_the_model_stays() -> None:
    made = job()
    made.apply(7, push(0, 1.0), 10)
    made.leave(7)
    made.join(Join(7, 0, 2))
    assert made.model(7).version == 2
    assert made.model(7).last_sequence == -1
    made.apply(7, push(0, 1.0, version=2), 20)
    assert made.statistics(30)["received"] == 2
