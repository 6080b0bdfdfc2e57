"""The emulated job: the server's rules, the queue between, and that it learns."""

import numpy as np
import pytest

from olaf.rl.learner import LearnerConfig
from olaf.rl.local_job import (
    JobConfig,
    LocalJob,
    Message,
    NetworkConfig,
    RuleConfig,
    Server,
    Uplink,
)
from olaf.rl.worker_loop import LoopConfig


def update(
    value: float, *, reward: float = 0.0, version: int = 1, worker: int = 0, cluster: int = 0
) -> Message:
    return Message(cluster, np.full(2, value, np.float32), 1.0, reward, version, version, [worker])


def server(**rule: object) -> Server:
    made = Server(RuleConfig(**{"learning_rate": 0.001, **rule}))  # type: ignore[arg-type]
    made.start(np.zeros(2, np.float32))
    return made


def moved(made: Server) -> float:
    assert made.weights is not None
    return float(made.weights[0])


def test_the_first_worker_s_weights_start_the_job() -> None:
    made = server()
    made.start(np.ones(2, np.float32))
    assert (moved(made), made.version) == (0.0, 1)


@pytest.mark.parametrize(("step", "expected"), [("mean", 0.003), ("sum", 0.006)])
def test_a_merge_of_two_is_one_step_or_two(step: str, expected: float) -> None:
    made = server(step=step)
    assert made.apply(Message(0, np.full(2, 6, np.float32), 2.0, 0.0, 1, 1, [0, 1]))
    assert moved(made) == pytest.approx(expected)
    assert made.version == 2


def test_a_stale_update_is_scaled_down() -> None:
    made = server(staleness_power=1.0)
    made.version = 4
    made.apply(update(8, version=1))
    assert moved(made) == pytest.approx(0.002)
    assert made.staleness == [3]


def test_a_merge_is_as_stale_as_its_contributors_in_the_middle() -> None:
    made = server()
    made.version = 10
    made.apply(Message(0, np.zeros(2, np.float32), 2.0, 0.0, 3, 8, [0, 1]))
    assert made.staleness == [4]


def test_gate_best_refuses_what_is_below_the_best_less_the_margin() -> None:
    made = server(gate="best", gate_margin=2.0)
    rewards = [10.0, 9.0, 7.9, 8.0, 20.0, 10.0]
    assert [made.apply(update(1, reward=r)) for r in rewards] == [
        True, True, False, True, True, False,
    ]  # fmt: skip
    assert (made.applied, made.refused, made.version) == (4, 2, 5)


def test_gate_recent_follows_the_mean_down_again() -> None:
    made = server(gate="recent", recent=0.5)
    rewards = [10.0, 0.0, 4.9, 4.95, 5.0]
    assert [made.apply(update(1, reward=r)) for r in rewards] == [True, False, False, True, True]


def test_paper_literal_averages_and_takes_only_a_new_best() -> None:
    made = server(rule="paper-literal")
    assert made.apply(update(4, reward=-200))
    assert moved(made) == pytest.approx(0.004)
    assert not made.apply(update(4, reward=-200))
    assert made.apply(update(8, reward=-100))
    assert moved(made) == pytest.approx(0.004 + 0.001 * (4 + 8) / 2)
    assert not made.apply(update(100, reward=-150))
    assert made.apply(update(0, reward=0))
    assert moved(made) == pytest.approx(0.010 + 0.001 * (6 + 0) / 2)


def test_olaf_replaces_merges_appends_and_drops() -> None:
    uplink = Uplink(NetworkConfig(queue="olaf", slots=2))
    uplink.arrive(update(1, worker=0, cluster=0, reward=1))
    uplink.arrive(update(2, worker=0, cluster=0, reward=2, version=5))
    uplink.arrive(update(4, worker=1, cluster=0, reward=6, version=3))
    uplink.arrive(update(3, worker=2, cluster=1))
    uplink.arrive(update(3, worker=3, cluster=2))
    assert uplink.begin()
    assert not uplink.begin()
    sent = uplink.finish()
    assert (sent.sum[0], sent.weight, sent.reward) == (6.0, 2.0, 4.0)
    assert (sent.oldest, sent.newest) == (3, 5)
    assert sent.workers == [0, 1]
    assert uplink.fates == {"alone": 0, "merged": 2, "replaced": 1, "dropped": 1}


def test_the_head_is_locked_while_it_is_sent_and_keeps_its_slot() -> None:
    uplink = Uplink(NetworkConfig(queue="olaf", slots=2))
    uplink.arrive(update(1, worker=0))
    uplink.begin()
    uplink.arrive(update(2, worker=1))
    uplink.arrive(update(2, worker=2, cluster=1))
    assert uplink.fates["dropped"] == 1
    assert uplink.finish().workers == [0]
    uplink.begin()
    assert uplink.finish().workers == [1]


def test_fifo_never_merges() -> None:
    uplink = Uplink(NetworkConfig(queue="fifo", slots=2))
    for worker in (0, 0, 1):
        uplink.arrive(update(1, worker=worker))
    assert uplink.fates == {"alone": 0, "merged": 0, "replaced": 0, "dropped": 1}


SMALL = JobConfig(
    learner=LearnerConfig(environment="CartPole-v1", steps_per_update=64, minibatch=32),
    workers=4,
)


def test_a_job_twice_is_the_same_job() -> None:
    network = NetworkConfig(updates_per_s=100, clusters=2)
    config = JobConfig(learner=SMALL.learner, network=network, workers=4)
    one, two = LocalJob(config).run(60), LocalJob(config).run(60)
    assert one.weights.tobytes() == two.weights.tobytes()
    assert one.curve == two.curve
    other = JobConfig(learner=SMALL.learner.replaced(seed=1), network=network, workers=4)
    assert LocalJob(other).run(60).weights.tobytes() != one.weights.tobytes()


def test_every_update_has_one_fate() -> None:
    network = NetworkConfig(updates_per_s=60, clusters=2, slots=3)
    config = JobConfig(learner=SMALL.learner, network=network, workers=6)
    job = LocalJob(config)
    outcome = job.run(200)
    fates = outcome.fates
    assert fates["merged"] > 0
    waiting = sum(len(message.workers) for message in job.uplink._queue)
    sending = len(job.uplink._sending.workers) if job.uplink._sending else 0
    assert 200 <= sum(fates.values()) + waiting + sending <= 200 + config.workers


def test_fifo_drops_where_olaf_merges() -> None:
    def run(queue: str) -> dict[str, int]:
        network = NetworkConfig(queue=queue, updates_per_s=60, clusters=2, slots=3)  # type: ignore[arg-type]
        return LocalJob(JobConfig(learner=SMALL.learner, network=network)).run(200).fates

    assert run("fifo")["dropped"] > 50
    assert run("olaf")["dropped"] == 0


def test_patience_makes_updates_less_stale() -> None:
    config = JobConfig(learner=SMALL.learner, loop=LoopConfig(patience_s=0), workers=4)
    hasty = LocalJob(config).run(100)
    patient = LocalJob(SMALL).run(100)
    assert patient.staleness_mean == pytest.approx(3, abs=0.7)  # one round of the other three
    assert hasty.staleness_mean > patient.staleness_mean + 2


def test_faster_workers_push_more() -> None:
    counts = [0] * 4
    for point in LocalJob(SMALL).progress(200):
        counts[point.progress.worker] += 1
    assert counts == sorted(counts)
    assert counts[3] > 1.5 * counts[0]


def test_one_worker_alone_has_no_staleness_with_patience() -> None:
    config = JobConfig(learner=SMALL.learner, workers=1)
    assert LocalJob(config).run(20).staleness_mean == 0


@pytest.mark.parametrize("seed", [0, 1])
def test_eight_workers_learn_cartpole(seed: int) -> None:
    config = JobConfig(learner=LearnerConfig(environment="CartPole-v1", seed=seed))
    job = LocalJob(config)
    outcome = job.run(400, until_reward=200)
    assert outcome.curve[5][2] < 60
    assert outcome.steps_to is not None
    assert job.server.refused == 0


def test_the_rule_read_literally_takes_few_updates() -> None:
    config = JobConfig(
        learner=LearnerConfig(environment="CartPole-v1"), rule=RuleConfig(rule="paper-literal")
    )
    outcome = LocalJob(config).run(100)
    assert outcome.refused > 5 * outcome.applied > 0
