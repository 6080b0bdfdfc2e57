"""Asynchronous training in virtual time: what a parameter server and Algorithm 1 must give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from olaf.experiments import Task
from olaf.experiments.catalog import find, plan
from olaf.experiments.iswitch import asynchronous, fig13, learners, table1, table5
from olaf.experiments.iswitch.asynchronous import Times, Training
from olaf.experiments.iswitch.networks import Dense, softmax

NEVER = 1e9


def training(workers: int = 4, most: int = 40, algorithm: str = "A2C") -> Training:
    return Training(algorithm, workers, seed=0, mark=NEVER, most=most)


def task(name: str) -> Task[Any]:
    def say(text: str, share: float | None = None) -> None:
        del text, share

    figure = find(name)
    given = plan(figure, quick=True, overrides=[]).parameters
    return Task(given, figure.paper, (0,), None, say, quick=True)  # type: ignore[arg-type]


def test_the_gradient_of_a_network_is_that_of_finite_differences() -> None:
    random = np.random.default_rng(1)
    network = Dense([3, 5, 4, 2])
    weights = network.initial(random)
    inputs = random.normal(size=(6, 3)).astype(np.float32)
    slope = random.normal(size=(6, 2)).astype(np.float32)

    def loss(weights: Any, inputs: Any) -> float:
        return float((network.forward(weights, inputs)[-1] * slope).sum())

    gradient, by_inputs = network.backward(weights, network.forward(weights, inputs), slope)
    step = 1e-2
    for at in range(0, network.size, 5):
        moved = [weights.copy(), weights.copy()]
        moved[0][at] += step
        moved[1][at] -= step
        about = (loss(moved[0], inputs) - loss(moved[1], inputs)) / (2 * step)
        assert gradient[at] == pytest.approx(about, rel=0.02, abs=2e-3)
    near = [inputs.copy(), inputs.copy()]
    near[0][2, 1] += step
    near[1][2, 1] -= step
    about = (loss(weights, near[0]) - loss(weights, near[1])) / (2 * step)
    assert by_inputs[2, 1] == pytest.approx(about, rel=0.02, abs=2e-3)


@pytest.mark.parametrize("name", learners.LEARNERS)
def test_a_learner_descends(name: str) -> None:
    """Steps along its gradients change the weights, and no value leaves the floats."""
    of = learners.LEARNERS[name]
    learner, weights = of(3), of.initial(np.random.default_rng(0))
    for _ in range(30):
        before = weights.copy()
        gradient = learner.gradient(weights)
        assert np.array_equal(before, weights), "a learner leaves the weights alone"
        assert gradient.dtype == np.float32
        assert gradient.shape == weights.shape
        assert np.isfinite(gradient).all()
        weights = weights - np.float32(0.01) * gradient
    assert learner.returns


@pytest.mark.parametrize("name", ["A2C", "PPO"])
def test_an_action_with_an_advantage_becomes_likelier(name: str) -> None:
    of = learners.LEARNERS[name]
    learner, weights = of(0), of.initial(np.random.default_rng(0))
    states = np.full((8, 4), 0.5, np.float32)
    actions = np.array([0, 1] * 4)
    own = weights[: of.actor.size]
    before = softmax(of.actor.forward(own, states[:1])[-1])[0]
    rollout = learners.Rollout(
        states, actions, before[actions], np.where(actions, 1.0, -1.0), np.full(8, 3.0)
    )
    descent = learner._descent(weights, rollout, clips=name == "PPO")
    moved = weights - np.float32(0.1) * descent
    after = softmax(of.actor.forward(moved[: of.actor.size], states[:1])[-1])[0]
    assert after[1] > before[1]
    worth = [of.critic.forward(w[of.actor.size :], states[:1])[-1] for w in (weights, moved)]
    assert abs(worth[1] - 3) < abs(worth[0] - 3)


def test_a_clipped_ratio_has_no_gradient() -> None:
    learner, weights = learners.Ppo(0), learners.Ppo.initial(np.random.default_rng(0))
    states, actions = np.zeros((2, 4), np.float32), np.array([0, 1])
    # The first one was drawn with a chance of 0.1, and has about 0.5 now: it went up enough.
    rollout = learners.Rollout(
        states, actions, np.array([0.1, 0.9]), np.array([1.0, -1.0]), np.zeros(2)
    )
    gradient = learner._descent(weights, rollout, clips=True)[: learners.Ppo.actor.size]
    assert np.abs(gradient).max() < 1e-3, "what is left is that of the entropy"
    assert np.abs(learner._descent(weights, rollout, clips=False)).max() > 0.1


def test_ddpgs_actor_climbs_what_its_critic_likes() -> None:
    learner, weights = learners.Ddpg(0), learners.Ddpg.initial(np.random.default_rng(0))
    descent = learner.gradient(weights)
    size = learners.Ddpg.actor.size
    moved = weights.copy()
    moved[:size] -= np.float32(0.05) * descent[:size] / np.linalg.norm(descent[:size])
    states = learner._replay._rows[:200, :3]

    def liked(of: Any) -> float:
        return float(learner._judges(weights, states, learner._acts(of, states)[-1])[-1].mean())

    assert liked(moved) > liked(weights)


def test_dqn_comes_nearer_to_its_targets() -> None:
    learner, weights = learners.Dqn(0), learners.Dqn.initial(np.random.default_rng(0))

    def apart(weights: Any) -> float:
        states, actions, followed, rewards, ends = np.split(
            learner._replay._rows[:200], learner._replay._cuts, axis=1
        )
        rows = np.arange(len(states))
        best = learner.network.forward(weights, followed)[-1].argmax(1)
        worth = learner.network.forward(learner._target, followed)[-1][rows, best]
        wanted = rewards[:, 0] + learners.DISCOUNT * (1 - ends[:, 0]) * worth
        values = learner.network.forward(weights, states)[-1][rows, actions[:, 0].astype(int)]
        return float(np.abs(values - wanted).mean())

    weights = weights - np.float32(0.05) * learner.gradient(weights)
    before = apart(weights)
    for _ in range(20):
        weights = weights - np.float32(0.05) * learner.gradient(weights)
    assert apart(weights) < before


def test_a_server_of_one_link_is_limited_by_it() -> None:
    """Computing is short: vectors follow one another on the server's link, in either direction."""
    course = asynchronous.parameter_server(training(), Times(0.001, 0.010), bound=99, seed=0)
    assert course.iteration_s == pytest.approx(0.010, rel=0.1)
    assert course.gradients == course.iterations == 40
    assert course.stale == 0
    # Its own cycle is four vectors long, and the three others' come in between.
    assert course.ages[-8:] == [3] * 8


def test_a_server_without_a_queue_takes_a_workers_cycle_over_the_workers() -> None:
    course = asynchronous.parameter_server(training(), Times(0.100, 0.010), bound=99, seed=0)
    assert course.iteration_s == pytest.approx((0.100 + 2 * 0.010) / 4, rel=0.15)


def test_a_pipeline_takes_the_time_of_a_gradient() -> None:
    """The sum of an iteration is on its way while the next gradients are computed."""
    course = asynchronous.pipelined(training(), Times(0.020, 0.010), bound=3, seed=0)
    assert course.iteration_s == pytest.approx(0.020, rel=0.1)
    assert course.gradients == 4 * course.iterations == 160
    # Its weights were copied before the last sum was there: one iteration old.
    assert set(course.ages[8:]) == {1}


def test_a_pipeline_is_limited_by_a_slow_link() -> None:
    course = asynchronous.pipelined(training(), Times(0.001, 0.010), bound=10_000, seed=0)
    assert course.iteration_s == pytest.approx(0.010, rel=0.1)


def test_gradients_above_the_bound_are_dropped_and_counted() -> None:
    loose = asynchronous.parameter_server(training(), Times(0.001, 0.010), bound=3, seed=0)
    tight = asynchronous.parameter_server(training(), Times(0.001, 0.010), bound=2, seed=0)
    assert loose.stale == 0
    assert tight.stale > 0
    assert max(tight.ages) <= 2


def test_computing_spreads_as_it_is_told() -> None:
    drawn = asynchronous.computing(Times(2.0, 0.0, spread=0.25), seed=1, rank=0)
    values = [next(drawn) for _ in range(4000)]
    assert np.mean(values) == pytest.approx(2.0, rel=0.02)
    assert np.std(values) == pytest.approx(0.5, rel=0.05)


def test_synchronous_approaches_differ_by_rounding_alone_at_first() -> None:
    kept = {}
    for approach in ("ps", "ring", "iswitch"):
        course = asynchronous.synchronous(
            training(most=3), 0.5, fig13.orders_of(approach, 4, 0), keep=[1]
        )
        assert course.seconds == 1.5
        kept[approach] = course.kept[1]
    for approach in ("ring", "iswitch"):
        np.testing.assert_allclose(kept[approach], kept["ps"], rtol=1e-3, atol=1e-5)
    orders = fig13.orders_of("ring", 4, 0)(0)
    assert orders == [[1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2], [0, 1, 2, 3]]


def test_the_rows_follow_from_the_courses() -> None:
    given = task("iswitch/table5")
    runs = table5.train_all(given)
    for model in runs:
        (ps,), (isw,) = runs[model]["ps"], runs[model]["iswitch"]
        by_quantity = {row.quantity: row for row in table5.rows(given, runs, model)}
        speed = by_quantity["speed-up of asynchronous training"]
        assert speed.ours.mean == pytest.approx(ps.seconds / isw.seconds)
        fewer = by_quantity["fewer iterations to the mark"]
        assert fewer.ours.mean == pytest.approx(100 * (1 - isw.iterations / ps.iterations))
    dqn = table5.rows(given, runs, "DQN")
    assert dqn[0].paper == pytest.approx(3.709, abs=1e-3)
    assert dqn[1].paper == pytest.approx(44.4, abs=0.1)


def test_sizes_are_those_of_the_layers() -> None:
    models = task("iswitch/table1").parameters.models
    assert {name: table1.count(layers) for name, layers in models.items()} == {
        "DQN": 1_681_062,
        "A2C": 866_439,
        "PPO": 10_244,
        "DDPG": 40_327,
    }
