"""What `olaf compare` plans and concludes: arms, k, ratios with intervals, and the verdict."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olaf.errors.outcome import RunError
from olaf.jobs.comparison import arms_of, plan, turns_per_push
from olaf.jobs.reading import read_settings
from olaf.jobs.summary import best_of_ours, ratios, summarize, verdict
from olaf.statistics import intervals


def result(
    arm: str, seed: int, reached_s: float | None = None, *, reward: float = 100.0, **more: Any
) -> dict[str, Any]:
    return {
        "arm": arm, "queue": "fifo", "seed": seed, "reached_s": reached_s,
        "wall_s": 60.0 if reached_s is None else reached_s, "reward": {"mean": reward},
        "updates": 100, "loss": 0.0, "env_steps": 1000, "env_steps_per_s": 10.0, "cpu_s": 5.0,
        "age_of_model": {"mean_s": 0.5, "peak_mean_s": 1.0}, "staleness": {"mean": 1.0},
        "fairness": 1.0, "uplink": "200kbit", "slots": 8, "uplink_bytes": 1000,
        "switches": [{"departures": 25}], "fates": {"pushed": 100, "rows": []}, **more,
    }  # fmt: skip


SEEDS = range(5)


def test_the_pushes_of_a_seed_are_as_many_as_olaf_s_departures(tmp_path: Path) -> None:
    settings = read_settings(overrides=["compare.seeds=[4]", "compare.uplink=1mbit"])
    results: list[dict[str, Any]] = []
    told = {}
    for planned in plan(settings, tmp_path, results):
        told[planned.arm] = planned.settings
        departures = {"fifo": 10, "olaf": 30}.get(planned.arm, 1)
        # A hundred turns of 500 steps.
        ran = result(planned.arm, 4, env_steps=50_000, switches=[{"departures": departures}])
        results.append(ran)
    assert list(told) == ["fifo", "olaf", "push-less-often", "tcp"]
    less = told["push-less-often"]
    assert (less.worker.turns_per_push, less.switch.queue) == (4, "fifo")  # 100 over 30, upwards
    assert [own.worker.turns_per_push for own in told.values()] == [1, 1, 4, 1]
    assert [own.train.transport for own in told.values()] == ["udp", "udp", "udp", "tcp"]
    assert {own.switch.uplink for own in told.values()} == {"1mbit"}
    assert {own.train.seed for own in told.values()} == {4}


@given(st.integers(1, 10_000), st.integers(1, 10_000))
def test_k_never_asks_for_more_of_the_uplink(turns: int, departures: int) -> None:
    learner = read_settings().learner
    steps = turns * learner.steps_per_update
    # Each turn had four pushes; k counts turns.
    run = result(
        "olaf", 0, env_steps=steps, switches=[{"departures": departures}],
        fates={"pushed": 4 * turns},
    )  # fmt: skip
    k = turns_per_push(run, learner)
    assert turns / k <= departures or k == 1
    assert k == 1 or turns / (k - 1) > departures


def test_a_baseline_that_cannot_be_is_refused_only_where_it_was_asked_for() -> None:
    queues = "compare.queues=['fifo']"
    assert arms_of(read_settings(overrides=[queues])) == ["fifo", "tcp"]
    with pytest.raises(RunError, match="add olaf to --queues, or give --turns-per-push"):
        arms_of(read_settings(overrides=[queues, "compare.baselines=['push-less-often']"]))
    own = ["compare.baselines=['push-less-often']", "compare.turns_per_push=3"]
    assert arms_of(read_settings(overrides=[queues, *own])) == ["fifo", "push-less-often"]
    assert arms_of(read_settings(overrides=["switch.credits=4"])) == [
        "fifo", "olaf", "push-less-often",
    ]  # fmt: skip
    with pytest.raises(RunError, match=r"`switch\.credits` = 4 does not go with"):
        arms_of(read_settings(overrides=["switch.credits=4", "compare.baselines=['tcp']"]))


def test_the_best_of_ours_reached_most_often_then_soonest() -> None:
    soon = [result("olaf", s, 10.0) for s in SEEDS[:4]] + [result("olaf", 4)]
    late = [result("freshest", s, 30.0) for s in SEEDS]
    fifo = [result("fifo", s, 1.0) for s in SEEDS]
    assert best_of_ours(soon + late + fifo) == "freshest"
    assert best_of_ours(fifo) is None
    none = [result("olaf", 0, reward=5.0), result("freshest", 0, reward=7.0)]
    assert best_of_ours(none) == "freshest"


def both(ours: list[float], theirs: list[float]) -> list[dict[str, Any]]:
    pairs = zip(SEEDS, ours, theirs, strict=False)
    return [r for s, a, b in pairs for r in (result("olaf", s, a), result("tcp", s, b))]


def test_the_verdict_follows_the_interval() -> None:
    apart = both([10, 11, 9, 10, 12], [20, 23, 19, 22, 21])
    said = verdict(summarize(apart), apart)
    assert "tcp: 2.02x the time of OLAF to the reward [1." in said
    assert said.endswith("OLAF is faster.")
    near = both([10, 14, 9, 16, 8], [12, 10, 14, 9, 15])
    said = verdict(summarize(near), near)
    assert "no difference that five seeds can show" in said
    assert "faster" not in said
    slower = both([20, 23, 19, 22, 21], [10, 11, 9, 10, 12])
    assert verdict(summarize(slower), slower).endswith("tcp is faster.")


def test_with_few_seeds_there_is_no_interval_and_it_says_how_many_are_needed() -> None:
    few = both([10, 11], [20, 23])
    said = verdict(summarize(few), few)
    assert "2.05x the time of OLAF to the reward (two seeds)" in said
    assert "An interval needs five seeds: --seeds 0,1,2,3,4." in said
    found = ratios(few)
    assert found is not None
    assert found["of"]["tcp"]["measures"]["until_s"]["low"] is None


def test_a_run_that_did_not_reach_the_reward_makes_the_ratio_a_bound() -> None:
    runs = both([10, 11, 9, 10, 12], [20, 23, 19, 22, 21])
    runs[-1].update(reached_s=None, wall_s=60.0)
    assert "tcp: at least 2." in verdict(summarize(runs), runs)
    for run in runs:
        run.update(reached_s=None, reward={"mean": -50.0 - 10 * (run["arm"] == "tcp")})
    said = verdict(summarize(runs), runs)
    # Neither reached it: the rewards are compared, and rewards below 0 by their difference.
    assert "tcp: -10.0 of reward at the end, to OLAF [-10.0, -10.0]" in said
    assert said.endswith("OLAF learns more in the time.")


def test_ratios_are_paired_by_seed() -> None:
    """Seeds that differ by far, and each pair by the same factor: the interval is that factor."""
    runs = both([1, 10, 100, 3, 30], [2, 20, 200, 6, 60])
    found = ratios(runs)
    assert found is not None
    one = found["of"]["tcp"]["measures"]["until_s"]
    assert (one["value"], one["low"], one["high"]) == pytest.approx((2.0, 2.0, 2.0))


def test_the_spread_of_the_baseline_is_in_the_interval() -> None:
    ours = [10.0] * 5
    steady = intervals.ratio([20.0] * 5, ours)
    wild = intervals.ratio([10.0, 30.0, 12.0, 28.0, 20.0], ours)
    assert steady is not None
    assert wild is not None
    assert (steady.low, steady.high) == (2.0, 2.0)
    assert wild.low is not None
    assert wild.high is not None
    assert wild.value == 2.0
    assert wild.low < 1.5
    assert wild.high > 2.5


def test_the_interval_covers_what_it_says_with_five_seeds() -> None:
    """No difference in truth: about one in twenty intervals leaves 1 out, as a plain bootstrap
    over five seeds would in one of six."""
    rng = np.random.default_rng(11)
    covered = 0
    for _ in range(200):
        one, other = rng.lognormal(0.0, 0.3, (2, 5))
        found = intervals.ratio(list(one), list(other))
        assert found is not None
        covered += bool(found.includes_one)
    assert covered / 200 >= 0.88


def test_student_s_t_is_that_of_the_tables() -> None:
    tables = {1: 12.706, 2: 4.303, 4: 2.776, 9: 2.262, 30: 2.042}
    for degrees, value in tables.items():
        assert intervals.student_t(0.975, degrees) == pytest.approx(value, abs=5e-4)


def test_nothing_and_zero_have_no_ratio() -> None:
    assert intervals.ratio([], []) is None
    assert intervals.ratio([0.0, 1.0], [1.0, 1.0]) is None
    assert intervals.mean([]) is None
