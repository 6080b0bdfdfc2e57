"""Moments of observations and returns: their sums, their travel, and learning with them."""

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from olaf.rl import LearnerConfig, LearnerError, make_learner
from olaf.rl.moments import Carried, ObservationMoments, ReturnMoments, is_unscaled, rough_scales
from olaf.rl.virtual_job import JobConfig, Link, LocalJob

KINDS = ["numpy", pytest.param("torch", marks=pytest.mark.torch)]
SMALL = LearnerConfig(environment="CartPole-v1", steps_per_update=128, minibatch=64, epochs=2)


class Scaled(gym.ObservationWrapper[Any, Any, Any]):
    """An environment whose observations are a thousand times as large."""

    def __init__(self, name: str) -> None:
        super().__init__(gym.make(name))
        shape = self.env.observation_space.shape
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, shape, np.float32)

    def observation(self, observation: Any) -> Any:
        return 1000 * observation


@pytest.fixture(autouse=True)
def scaled() -> Any:
    made = {"OlafLargeCartPole-v0": "CartPole-v1", "OlafLargeLander-v0": "LunarLander-v3"}
    for name, of in made.items():
        make: Any = partial(Scaled, of)
        gym.register(name, make)
    yield
    for name in made:
        del gym.registry[name]


def test_sums_give_the_mean_and_the_spread_of_all_rows() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal([1000, -3, 0.001], [50, 2, 0.0001], (4, 100, 3)).astype(np.float32)
    moments = ObservationMoments(np.array(rough_scales(rows[0])).reshape(-1, 2))
    for some in rows:
        moments.array += moments.of(some, turns=0.7)
    moments.refresh()
    every = rows.reshape(-1, 3).astype(np.float64)
    np.testing.assert_allclose(moments.shift, every.mean(axis=0), rtol=1e-4)
    np.testing.assert_allclose(1 / moments.factor, every.std(axis=0), rtol=1e-3)
    seen = moments.normalised(rows[0])
    np.testing.assert_allclose(seen.mean(axis=0), 0, atol=0.3)
    np.testing.assert_allclose(seen.std(axis=0), 1, atol=0.2)
    assert moments.normalised(np.full(3, 1e9, np.float32)).max() == 10


def test_a_scaled_update_only_weighs_its_steps() -> None:
    moments = ObservationMoments(np.array([[0.0, 1.0]]))
    one, other = np.array([[1.0], [3.0]], np.float32), np.array([[8.0], [8.0]], np.float32)
    moments.array += 0.25 * moments.of(one, turns=1)
    moments.array += 0.75 * moments.of(other, turns=1)
    moments.refresh()
    assert moments.shift[0] == pytest.approx(0.25 * 2 + 0.75 * 8)
    variance = 0.25 * 5 + 0.75 * 64 - moments.shift[0] ** 2
    assert 1 / moments.factor[0] == pytest.approx(np.sqrt(variance), rel=1e-5)


def test_a_wild_batch_counts_less_and_stays_small() -> None:
    moments = ObservationMoments(np.array([[0.0, 1.0], [0.0, 1.0]]))
    wild = np.array([[1e15, 1.0], [-1e15, 2.0]], np.float32)
    added = moments.of(wild, turns=1)
    assert np.abs(added).max() <= 1
    moments.array += added
    moments.refresh()
    assert 1 / moments.factor[0] == pytest.approx(1e15, rel=1e-3)
    assert moments.shift[1] == pytest.approx(1.5)


def test_a_feature_that_never_changes_is_zero() -> None:
    rows = np.full((50, 1), 1000, np.float32)
    moments = ObservationMoments(np.array(rough_scales(rows)).reshape(-1, 2))
    assert moments.normalised(rows).max() == 0
    moments.array += moments.of(rows, turns=1)
    moments.refresh()
    assert np.abs(moments.normalised(rows)).max() < 1e-3


def test_a_factor_on_rewards_is_one_over_the_spread_of_returns() -> None:
    rng = np.random.default_rng(7)
    moments, discounted, seen = ReturnMoments(2, 0.9), np.zeros(2), []
    assert moments.factor(np.zeros(3, np.float32)) == 1.0
    for _ in range(20):
        rewards = 5 * rng.standard_normal((30, 2)).astype(np.float32)
        ends = rng.random((30, 2)) < 0.1
        moments.array += moments.of(rewards, ends, turns=1)
        for reward, end in zip(rewards, ends, strict=True):
            discounted = discounted * 0.9 + reward
            seen.append(discounted)
            discounted = np.where(end, 0.0, discounted)
    factor = moments.factor(np.zeros(3, np.float32))
    assert factor == pytest.approx(1 / np.std(seen), rel=1e-4)


@pytest.mark.parametrize(
    ("rows", "unscaled"),
    [
        ([[0.5, 1.0], [-0.5, 0.0]], False),
        ([[500.0, 1.0], [-500.0, 0.0]], True),
        ([[0.001, 1.0], [-0.001, 0.0]], True),
        ([[0.0, 7.0], [0.0, 6.0]], False),  # a feature that is 0 is not small
        ([[1000.0, 1.0], [1000.0, 0.0]], True),
    ],
)
def test_large_and_small_features_are_unscaled(rows: Any, unscaled: bool) -> None:
    assert is_unscaled(np.array(rows)) is unscaled


@pytest.mark.parametrize(
    "name",
    ["CartPole-v1", "LunarLander-v3", "LunarLanderContinuous-v3", "Acrobot-v1", "Pendulum-v1"],
)
def test_known_environments_are_left_as_they_are(name: str) -> None:
    for seed in range(3):
        learner: Any = make_learner(SMALL.replaced(environment=name, seed=seed))
        assert learner.config.normalise == "off"
        assert learner.parameters == learner.layout.size


@pytest.mark.parametrize("kind", KINDS)
def test_weights_and_moments_move_by_gamma_times_the_update(kind: str) -> None:
    config = SMALL.replaced(
        learner=kind, environment="OlafLargeCartPole-v0", gamma=0.5, strength=0.5
    )
    learner: Any = make_learner(config)
    assert learner.config.normalise == "on"
    assert learner.parameters == learner.layout.size + 4 * 5 + 3
    assert list(learner.named_parts())[-2:] == ["observations.moments", "rewards.moments"]
    before = [part.copy() for part in learner.parts()]
    learner.collect()
    for passes in (1, 1):
        turn = learner.learn(passes)
        assert turn.passes == passes
        for old, new, update in zip(before, learner.parts(), turn.update, strict=True):
            np.testing.assert_allclose(old + 0.5 * update, new, atol=1e-6 * np.abs(new).max())
        before = [part.copy() for part in learner.parts()]
    counts = learner.named_parts()["observations.moments"][:, 0]
    assert counts == pytest.approx(0.5 * 2.0**-40)  # one turn, of which half was kept


@pytest.mark.parametrize("kind", KINDS)
def test_a_raw_gradient_moves_the_moments_of_the_server_alone(kind: str) -> None:
    config = SMALL.replaced(
        learner=kind, environment="OlafLargeCartPole-v0", gradient_kind="gradient"
    )
    learner = make_learner(config)
    before = [part.copy() for part in learner.parts()]
    update = learner.iterate().update
    assert update[-2][:, 0] == pytest.approx(2.0**-40)
    for old, new in zip(before, learner.parts(), strict=True):
        assert (old == new).all()


class Told:
    """Remembers what all workers of a job added to the moments."""

    def __init__(self, job: LocalJob) -> None:
        self.rows: list[np.ndarray[Any, Any]] = []
        for loop in job._loops:
            carried: Carried = loop._learner._carried  # type: ignore[attr-defined]
            see = carried.see

            def remember(seen: Any, rewards: Any, done: Any, see: Any = see) -> float:
                self.rows.append(seen.copy())
                factor: float = see(seen, rewards, done)
                return factor

            carried.see = remember  # type: ignore[method-assign,assignment]


@pytest.mark.parametrize(
    ("queue", "loss", "fate"),
    [("olaf", 0.0, "merged"), ("fifo", 0.0, "dropped"), ("olaf", 0.05, "merged")],
)
def test_moments_merged_by_the_network_are_those_of_all_steps(
    queue: str, loss: float, fate: str
) -> None:
    config = JobConfig(
        learner=SMALL.replaced(environment="OlafLargeCartPole-v0", seed=1),
        server={"staleness_power": 0.0},
        switch={"queue": queue, "uplink_bps": 8_000_000, "slots": 8},
        workers=4,
        clusters=2,
        edge=Link(loss=loss),
    )
    job = LocalJob(config)
    told = Told(job)
    outcome = job.run(400)
    assert outcome.fates[fate] > 10
    moments = ObservationMoments(np.ones((4, 2)))
    moments.array[:] = outcome.weights[-23:-3].reshape(4, 5)
    moments.refresh()
    every = np.concatenate(told.rows).astype(np.float64)
    spread = every.std(axis=0)
    np.testing.assert_allclose((moments.shift - every.mean(axis=0)) / spread, 0, atol=0.05)
    np.testing.assert_allclose(1 / moments.factor / spread, 1, atol=0.05)


@pytest.mark.parametrize("change", [{"scales": (0.0, 1.0)}, {"scales": (0.0, 1.0, 3.0)}])
def test_scales_that_do_not_fit_are_refused(change: Any) -> None:
    with pytest.raises(LearnerError, match="scales"):
        make_learner(SMALL.replaced(normalise="on", **change))


def test_an_off_switch_carries_nothing() -> None:
    learner: Any = make_learner(
        SMALL.replaced(environment="OlafLargeCartPole-v0", normalise="off", reward_scale=0.1)
    )
    assert learner.parameters == learner.layout.size


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mark", "limit"),
    [("OlafLargeCartPole-v0", 200, 60_000), ("OlafLargeLander-v0", 200, 400_000)],
)
def test_features_of_a_thousand_are_learnt(name: str, mark: float, limit: float) -> None:
    config = JobConfig(learner=LearnerConfig(environment=name), server={"staleness_power": 0.33})
    outcome = LocalJob(config).run(10**6, until_reward=mark, step_limit=limit)
    assert outcome.steps_to is not None
