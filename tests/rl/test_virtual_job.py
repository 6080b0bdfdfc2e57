"""A whole job in virtual time: the real loop, engine and server, and that it learns."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from olaf._olaf import update_bytes
from olaf.jobs.accounts import settle
from olaf.jobs.incarnation import Incarnation
from olaf.rl.compute import Steady, speeds
from olaf.rl.learner import LearnerConfig
from olaf.rl.virtual_job import Alone, JobConfig, Link, LocalJob, Outcome
from olaf.rl.worker_loop import LoopConfig

SMALL = JobConfig(
    learner=LearnerConfig(environment="CartPole-v1", steps_per_update=64, minibatch=32),
    workers=4,
    speeds=13 / 7,
)
PARAMETERS = 4 * 40 + 40 + 40 * 40 + 40 + 40 * 3 + 3


def constrained(updates_per_s: float, **more: Any) -> JobConfig:
    """An uplink that carries a given number of updates a second."""
    rate = round(update_bytes(PARAMETERS) * 8 * updates_per_s)
    switch = {"uplink_bps": rate, "slots": 3, **more.pop("switch", {})}
    return replace(SMALL, switch=switch, clusters=2, **more)


def test_a_job_twice_is_the_same_job() -> None:
    lossy = Link(delay_s=0.002, jitter_s=0.001, loss=0.05)
    config = constrained(60, edge=lossy, core=lossy)
    one, two = LocalJob(config).run(60), LocalJob(config).run(60)
    assert one.weights.tobytes() == two.weights.tobytes()
    assert one.curve == two.curve
    assert json.dumps(one.stats) == json.dumps(two.stats)
    assert one.stats["links"]["edge_up"]["lost"] > 0
    other = replace(config, learner=SMALL.learner.replaced(seed=1))
    assert LocalJob(other).run(60).weights.tobytes() != one.weights.tobytes()


def accounts(stats: dict[str, Any]) -> Any:
    def last(name: str, counted: dict[str, Any]) -> Incarnation:
        return Incarnation(name, 0, counted, final=True)

    workers = [last(f"worker {n}", one) for n, one in enumerate(stats["workers"])]
    return settle(workers, [last("switch", stats["switch"])], [last("server", stats["server"])])


def test_every_update_has_one_fate() -> None:
    config = constrained(60, workers=6)
    job = LocalJob(config)
    outcome = job.run(200)
    job.job.run_until(job.job.now_ns + 5_000_000_000)
    settled = accounts(json.loads(job.job.stats()))
    assert settled.matches, settled.to_json()
    assert settled.pushed >= 200
    assert settled.lost == settled.count("dropped")
    assert outcome.fates["merged"] > 0


def test_what_the_links_lose_is_accounted_for() -> None:
    config = replace(constrained(60), edge=Link(loss=0.2))
    job = LocalJob(config)
    job.run(200)
    job.job.run_until(job.job.now_ns + 5_000_000_000)
    settled = accounts(json.loads(job.job.stats()))
    assert settled.matches, settled.to_json()
    assert settled.count("lost worker to switch") > 10


@pytest.mark.parametrize("by", [-1, 1])
def test_a_count_that_one_end_has_wrong_is_found_among_losses(by: int) -> None:
    lossy = Link(loss=0.2)
    job = LocalJob(replace(constrained(60), edge=lossy, core=lossy))
    job.run(100)
    job.job.run_until(job.job.now_ns + 5_000_000_000)
    text = job.job.stats()
    notes = [row.note for row in accounts(json.loads(text)).rows if row.fate.startswith("lost")]
    assert all("numbers that never came" in note for note in notes), notes

    def off(change: Callable[[dict[str, Any]], None]) -> bool:
        """Whether the sums do not match when one count is changed."""
        stats = json.loads(text)
        change(stats)
        return not accounts(stats).matches

    def received(stats: dict[str, Any]) -> None:
        stats["switch"]["received"] += by
        stats["switch"]["fates"]["replaced"] += by

    def sent(stats: dict[str, Any]) -> None:
        for count in ("sent", "contributions"):
            stats["workers"][0][count] += by

    def departed(stats: dict[str, Any]) -> None:
        stats["switch"]["departed"][0]["datagrams"] += by
        stats["switch"]["departures"] += by

    def delivered(stats: dict[str, Any]) -> None:
        (job,) = stats["server"]["jobs"]
        job["received"] += by
        job["fates"]["delivered_merged"] += by

    def arrived(stats: dict[str, Any]) -> None:
        stats["switch"]["arrivals"]["hops"][0]["datagrams"] += by

    assert not off(lambda stats: None)
    assert [off(change) for change in (received, sent, departed, delivered, arrived)] == [True] * 5


def test_fifo_drops_where_olaf_merges() -> None:
    def run(queue: str) -> dict[str, int]:
        return LocalJob(constrained(60, switch={"queue": queue})).run(200).fates

    assert run("fifo")["dropped"] > 50
    assert run("olaf")["dropped"] == 0


def test_patience_makes_updates_less_stale() -> None:
    way = Link(delay_s=0.002)
    config = replace(SMALL, edge=way, core=way)
    hasty = LocalJob(replace(config, loop=LoopConfig(patience_s=0))).run(200)
    patient = LocalJob(replace(config, loop=LoopConfig(waiting_share=1.0))).run(200)
    assert hasty.staleness_mean > patient.staleness_mean + 0.5


def test_a_turn_pushed_as_one_is_a_round_of_the_others_old() -> None:
    turns = LocalJob(replace(SMALL, loop=LoopConfig(push_every="turn"))).run(100)
    assert turns.staleness_mean == pytest.approx(3, abs=0.7)


def test_patience_ends_with_the_answer() -> None:
    """Two links of 2 ms up and down: a turn is 8 ms longer, not the whole patience.

    With less patience than that, the answer to the update before is there when it pushes.
    """
    way = Link(delay_s=0.002)
    config = replace(SMALL, workers=1, edge=way, core=way, compute=Steady(wobble=0.0))
    for patience_s, waited_s in [(0.5, 0.008), (0.003, 0.0), (0.0, 0.0)]:
        loop = LoopConfig(push_every="turn", patience_s=patience_s, waiting_share=1.0)
        job = LocalJob(replace(config, loop=loop))
        first, *_, last = job.progress(11)
        turn_s = 64 / 5000
        assert last.time_s - first.time_s == pytest.approx(10 * (turn_s + waited_s), rel=1e-6)
        waited = last.progress.seconds_network - first.progress.seconds_network
        assert waited == pytest.approx(10 * waited_s, rel=1e-6)


@pytest.mark.slow
def test_passes_make_updates_less_stale() -> None:
    turns = LocalJob(replace(SMALL, loop=LoopConfig(push_every="turn"))).run(400)
    passes = LocalJob(SMALL).run(400)
    assert passes.updates == pytest.approx(turns.updates, abs=3)  # a turn is never cut
    assert passes.staleness_mean < 0.7 * turns.staleness_mean


def test_over_a_long_way_each_pass_and_its_turn_wait_for_a_model() -> None:
    way = Link(delay_s=0.002)
    config = replace(SMALL, workers=1, edge=way, core=way, compute=Steady(wobble=0.0))
    loop = LoopConfig(patience_s=0.5, waiting_share=1.0)
    first, *_, last = LocalJob(replace(config, loop=loop)).progress(44)
    # Once for the newest model, and for the answers to four updates.
    assert last.time_s - first.time_s == pytest.approx(10 * (64 / 5000 + 5 * 0.008), rel=1e-6)


@pytest.mark.slow
def test_on_a_narrow_uplink_a_worker_has_one_update_under_way_until_its_turn_ends() -> None:
    narrow = LocalJob(constrained(60)).run(400)
    assert narrow.fates["replaced"] < 0.1 * narrow.updates
    turns = narrow.steps / 64
    assert turns < narrow.updates < 3 * turns


@pytest.mark.slow
def test_patience_costs_no_more_than_its_share_of_the_time() -> None:
    way = Link(delay_s=0.02)
    config = replace(SMALL, workers=1, edge=way, core=way, compute=Steady(wobble=0.0))
    first, *_, last = LocalJob(replace(config, loop=LoopConfig(patience_s=0.01))).progress(1000)
    waited_s = last.progress.seconds_network - first.progress.seconds_network
    assert waited_s == pytest.approx(0.2 * (last.time_s - first.time_s), rel=0.05)


def test_a_lost_update_does_not_end_the_pushing_of_passes() -> None:
    config = replace(SMALL, edge=Link(delay_s=0.0001, loss=0.05), core=Link(delay_s=0.0001))
    points = list(LocalJob(config).progress(1200))
    late = points[len(points) // 2 :]
    assert np.mean([len(point.progress.pushes_at_s) for point in late]) > 3


def test_in_rounds_all_workers_wait_for_one_another() -> None:
    server = {"aggregate": "round", "aggregate_ms": 10_000}
    loop = LoopConfig(push_every="turn", wait_for_model_s=30.0)
    config = replace(SMALL, server=server, loop=loop)
    points = list(LocalJob(config).progress(40))
    assert [sorted(p.progress.worker for p in points[n : n + 4]) for n in range(0, 40, 4)] == (
        10 * [[0, 1, 2, 3]]
    )
    assert all(point.progress.unanswered == 0 for point in points)
    outcome = LocalJob(config).run(40)
    assert outcome.staleness_mean == 0
    # The slowest worker sets the pace: its speed is 0.7.
    slowest_s = 64 / 5000 / 0.7
    assert outcome.time_s == pytest.approx(10 * slowest_s, rel=0.12)


def test_a_worker_whose_round_is_lost_goes_on_when_its_time_is_over() -> None:
    server = {"aggregate": "round", "aggregate_ms": 60_000}
    config = replace(
        SMALL,
        workers=2,
        server=server,
        loop=LoopConfig(wait_for_model_s=1.0),
        core=Link(loss=0.3),
    )
    points = list(LocalJob(config).progress(30))
    unanswered = sum(last.progress.unanswered for last in points[-2:])
    assert 0 < unanswered < 30
    assert points[-1].time_s > unanswered / 2


def test_faster_workers_push_more() -> None:
    counts = [0] * 4
    for point in LocalJob(SMALL).progress(200):
        counts[point.progress.worker] += 1
    assert counts == sorted(counts)
    assert counts[3] > 1.5 * counts[0]


def test_speeds_are_evenly_spread_about_one() -> None:
    four = speeds(4, 2.5)
    assert four[3] / four[0] == pytest.approx(2.5)
    assert np.mean(four) == pytest.approx(1.0)
    assert np.allclose(np.diff(four, 2), 0)
    assert speeds(1, 2.5) == [1.0]
    assert speeds(3, 1.0) == [1.0, 1.0, 1.0]


def test_one_worker_alone_has_no_staleness_with_patience() -> None:
    assert LocalJob(replace(SMALL, workers=1)).run(20).staleness_mean == 0


def test_a_model_of_many_segments_is_the_same_job() -> None:
    """One worker waits for each answer: how its model is cut changes nothing but the times."""
    config = replace(SMALL, workers=1, loop=LoopConfig(patience_s=1.0, waiting_share=1.0))
    whole = LocalJob(config).run(20)
    cut = LocalJob(replace(config, worker={"segment_lanes": 100}, switch={"slots": 40})).run(20)
    assert cut.stats["server"]["jobs"][0]["segments"] == -(-PARAMETERS // 100)
    assert cut.applied == 20 * -(-PARAMETERS // 100)
    assert cut.weights.tobytes() == whole.weights.tobytes()
    assert cut.curve[-1][2] == whole.curve[-1][2]


def test_a_machine_alone_is_its_learner_in_virtual_time() -> None:
    config = replace(SMALL, compute=Steady(steps_per_s=1000, wobble=0.0))
    outcome = Alone(config).run(10)
    assert outcome.time_s == pytest.approx(0.64)
    assert (outcome.steps, outcome.updates) == (640, 10)
    again = Alone(config).run(10)
    assert again.curve == outcome.curve
    assert again.weights.tobytes() == outcome.weights.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_eight_workers_learn_cartpole(seed: int) -> None:
    config = JobConfig(learner=LearnerConfig(environment="CartPole-v1", seed=seed), speeds=13 / 7)
    outcome: Outcome = LocalJob(config).run(400, until_reward=200)
    assert outcome.curve[5][2] < 60
    assert outcome.steps_to is not None
    assert outcome.time_to_s == outcome.time_s
    assert outcome.refused == 0


def test_the_rule_read_literally_takes_few_updates() -> None:
    config = JobConfig(
        learner=LearnerConfig(environment="CartPole-v1"), server={"rule": "paper-literal"}
    )
    outcome = LocalJob(config).run(100)
    assert outcome.refused > 3 * outcome.applied > 0


def test_a_key_that_cannot_be_is_named() -> None:
    with pytest.raises(ValueError, match="uplink_bps"):
        LocalJob(replace(SMALL, switch={"uplink_bps": 0}))
