"""Figures 2, 3 and 8 in virtual time: nothing but settings and seed decides what they come to."""

from __future__ import annotations

from typing import Any

import pytest

from olaf.errors.usage import ConfigurationError
from olaf.experiments.catalog import find, plan
from olaf.experiments.olaf import fig2, fig8
from olaf.experiments.training import Trained
from olaf.experiments.virtual import Job, train, train_all, update_bits
from olaf.jobs.progress import Push


def quiet(text: str, share: float | None = None) -> None:
    """Nothing is said."""


def tables(seed: int = 0, **server: Any) -> dict[str, dict[str, Any]]:
    return {
        "learner": {"environment": "CartPole-v1", "steps_per_update": 60},
        "train": {
            "workers": 3, "clusters": 2, "updates": 18, "until_reward": "off", "seed": seed,
        },
        "server": server,
    }  # fmt: skip


def told(one: Trained) -> tuple[object, ...]:
    return one.result, one.pushes


def ended(rewards: list[float]) -> list[Trained]:
    """A run of one worker and one push a seed."""
    return [Trained({"workers": 1}, [Push(0.0, 0, 1, reward)]) for reward in rewards]


def test_the_same_run_comes_to_the_same_alone_and_beside_others() -> None:
    jobs = [Job("a", tables(1)), Job("b", tables(2)), Job("c", tables(1))]
    first, other, again = train_all(jobs, quiet)
    assert told(first) == told(again)
    assert told(first) != told(other)
    assert told(train(jobs[0])) == told(first)
    assert len(first.pushes) == 18
    assert first.result["time_s"] > 0


def test_faster_machines_push_more_often() -> None:
    one = train(Job("apart", tables(), speeds=4.0))
    pushed = [sum(push.worker == worker for push in one.pushes) for worker in range(3)]
    assert pushed[0] < pushed[2]


def test_a_round_takes_one_update_of_every_worker() -> None:
    one = train(Job("rounds", tables(aggregate="round"), speeds=4.0))
    pushed = [sum(push.worker == worker for push in one.pushes) for worker in range(3)]
    assert max(pushed) - min(pushed) <= 1
    assert one.result["aggregate"]["rounds_short"] == 0


def test_what_workers_offer_counts_every_push_and_a_point_every_turn() -> None:
    by_pass = train(Job("passes", tables()))
    by_turn = train(Job("turns", {**tables(), "worker": {"push_every": "turn"}}))
    assert len(by_pass.pushes) == len(by_turn.pushes) == 18
    assert by_turn.updates_per_s * by_turn.result["time_s"] == pytest.approx(18)
    pushed = by_pass.updates_per_s * by_pass.result["time_s"]
    assert 2 * 18 < pushed <= 4 * 18


def test_a_narrow_uplink_loses_updates() -> None:
    free = train(Job("free", tables()))
    assert free.result["loss"] == 0
    offered_bps = free.updates_per_s * update_bits(free)
    narrow = {**tables(), "switch": {"queue": "fifo", "slots": 1}}
    lossy = train(Job("narrow", narrow, uplink_bps=0.2 * offered_bps))
    assert lossy.result["loss"] > 0.2


def test_a_key_that_cannot_be_is_named() -> None:
    with pytest.raises(ConfigurationError, match="aggregate"):
        train(Job("wrong", tables(aggregate="seldom")))


def test_both_queues_of_figure_8_have_the_same_uplink() -> None:
    given = plan(find("olaf/fig8"), quick=True).parameters
    assert isinstance(given, fig8.Parameters)
    link = [fig8.job(given, queue, 3, (queue, 1e6)) for queue in ("fifo", "olaf")]
    assert link[0].uplink_bps == link[1].uplink_bps == 1e6
    assert [job.tables["switch"]["queue"] for job in link] == ["fifo", "olaf"]
    assert link[0].tables["train"] == link[1].tables["train"]


def test_how_far_olaf_is_above_fifo_has_the_spread_of_both() -> None:
    given = plan(find("olaf/fig8"), overrides=["last=1"]).parameters
    assert isinstance(given, fig8.Parameters)
    above = fig8.above_percent(ended([180.0, 180.0]), ended([100.0, 100.0]), given)
    assert above.values == pytest.approx([80.0, 80.0])
    # From -100 to -50 is up, by half of 100.
    above = fig8.above_percent(ended([-50.0, -50.0]), ended([-100.0, -100.0]), given)
    assert above.values == pytest.approx([50.0, 50.0])
    # OLAF does not vary, FIFO does: so does the ratio.
    above = fig8.above_percent(ended([180.0, 180.0]), ended([50.0, 150.0]), given)
    assert above.mean == pytest.approx(80.0)
    assert above.sd > 50


def test_figure_2_compares_over_the_time_that_all_modes_trained() -> None:
    def ran(mode_ends_s: float, reward: float) -> list[Trained]:
        pushes = [Push(float(at), 0, at + 1, reward * (at + 1)) for at in range(int(mode_ends_s))]
        return [Trained({"workers": 1, "time_s": mode_ends_s}, pushes)]

    runs: fig2.Runs = {
        (1.0, "each"): ran(2.0, 1.0), (1.0, "periodic"): ran(4.0, 1.0),
        (1.0, "round"): ran(8.0, 2.0), (1.0, "passes"): ran(3.0, 4.0),
    }  # fmt: skip
    means = fig2.by_time(runs, 1.0)
    # Over the first two seconds: rewards 1 and 2, or twice that.
    assert means == {"each": [1.5], "periodic": [1.5], "round": [3.0], "passes": [6.0]}
