"""Actions of a policy in the environment's form, and observations that become vectors."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from olaf.rl import environments
from olaf.rl.environments import UnusableEnvironmentError, describe

INF = float("inf")


class With(gym.Env[Any, Any]):
    """An environment of any spaces, which is never stepped."""

    def __init__(self, actions: Any, observations: Any = None) -> None:
        self.action_space = actions
        self.observation_space = observations or spaces.Box(-1, 1, (2,), np.float32)


def mapped(box: spaces.Box, *values: float) -> list[Any]:
    found = describe("it", With(box))
    given = np.repeat(np.array(values, np.float32)[:, None], found.actions, axis=1)
    actions = found.to_environment(given)
    for action in actions:
        assert box.contains(action), action
    return [action.ravel().tolist() for action in actions]


def test_actions_are_scaled_to_bounds_and_clipped() -> None:
    assert mapped(spaces.Box(-2, 2, (1,)), -1, 0, 0.5, 3) == [[-2], [0], [1], [2]]


def test_actions_without_bounds_pass_unchanged() -> None:
    assert mapped(spaces.Box(-INF, INF, (1,)), -7.5, 7.5) == [[-7.5], [7.5]]


def test_a_bound_on_one_side_holds() -> None:
    assert mapped(spaces.Box(0, INF, (1,)), -3, -1, 0, 7) == [[0], [0], [1], [8]]
    assert mapped(spaces.Box(-INF, 5, (1,)), -7, 0, 1, 3) == [[-3], [4], [5], [5]]


def test_each_dimension_has_bounds_of_its_own() -> None:
    low, high = np.array([0, -INF, -1, -INF]), np.array([INF, 0, 1, INF])
    box = spaces.Box(low.astype(np.float32), high.astype(np.float32))
    assert mapped(box, -9, 9) == [[0, -10, -1, -9], [10, 0, 1, 9]]


def test_the_largest_float_is_no_bound() -> None:
    largest = float(np.finfo(np.float32).max)
    assert mapped(spaces.Box(-largest, largest, (1,)), 2.5) == [[2.5]]


def test_whole_numbers_are_rounded_and_stay_within_bounds() -> None:
    box = spaces.Box(0, 10, (2, 1), np.int32)
    assert mapped(box, -4, -1, 0.12, 0.13, 4) == [[0, 0], [0, 0], [6, 6], [6, 6], [10, 10]]
    [action] = describe("it", With(box)).to_environment(np.zeros((1, 2), np.float32))
    assert (action.dtype, action.shape) == (np.int32, (2, 1))
    assert mapped(spaces.Box(0, 255, (1,), np.uint8), 9) == [[255]]


def test_bounds_of_doubles_are_not_exceeded_by_their_rounding() -> None:
    box = spaces.Box(-0.1, 0.1, (1,), np.float64)
    assert mapped(box, -1, 1) == [[-0.1], [0.1]]
    assert describe("it", With(box)).to_environment(np.ones((1, 1)))[0].dtype == np.float64


def test_a_discrete_action_is_an_int_from_its_start() -> None:
    found = describe("it", With(spaces.Discrete(3, start=-1)))
    assert (found.actions, found.discrete, found.starts) == (3, (3,), (-1,))
    assert not found.continuous
    actions = found.to_environment(np.array([0, 2]))
    assert actions == found.to_environment(np.array([[0], [2]])) == [-1, 1]
    assert [type(action) for action in actions] == [int, int]


@pytest.fixture
def several(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = (spaces.Discrete, spaces.Box, spaces.MultiDiscrete, spaces.MultiBinary)
    monkeypatch.setattr(environments, "ACTIONS", kinds)


@pytest.mark.usefixtures("several")
def test_several_choices_have_parts() -> None:
    start = np.array([[0, 1], [0, -2]])
    space = spaces.MultiDiscrete(np.array([[2, 3], [4, 5]]), start=start)
    found = describe("it", With(space))
    assert (found.actions, found.discrete, found.starts) == (14, (2, 3, 4, 5), (0, 1, 0, -2))
    [action] = found.to_environment(np.array([[1, 2, 3, 4]]))
    assert space.contains(action)
    assert action.tolist() == [[1, 3], [3, 2]]


@pytest.mark.usefixtures("several")
def test_bits_are_parts_of_two_choices() -> None:
    space = spaces.MultiBinary([2, 2])
    found = describe("it", With(space))
    assert (found.actions, found.discrete, found.shape) == (8, (2, 2, 2, 2), (2, 2))
    [action] = found.to_environment(np.array([[1, 0, 0, 1]]))
    assert space.contains(action)
    assert action.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    "space",
    [
        spaces.Tuple([spaces.Discrete(2)]),
        spaces.Dict({"a": spaces.Discrete(2)}),
        spaces.Box(0, 1, (0,)),
    ],
)
def test_other_action_spaces_are_refused(space: Any) -> None:
    with pytest.raises(UnusableEnvironmentError, match="action space"):
        describe("it", With(space))


@pytest.mark.parametrize(
    ("space", "floats"),
    [
        (spaces.MultiBinary(3), 3),
        (spaces.MultiDiscrete([2, 3]), 5),
        (spaces.Discrete(4), 4),
        (spaces.Box(-1, 1, ()), 1),
        (spaces.Box(-1, 1, (2, 3)), 6),
        (spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Box(-1, 1, (3,))}), 5),
        (spaces.Tuple([spaces.MultiBinary([2, 2]), spaces.Discrete(2)]), 6),
    ],
)
def test_observations_become_vectors(space: Any, floats: int) -> None:
    class Seen(With):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return space.sample(), {}

        def step(self, action: Any) -> Any:
            return space.sample(), 0.0, False, False, {}

    gym.register("OlafSeen-v0", lambda **_: Seen(spaces.Discrete(2), space))
    try:
        env = environments.make_environment("OlafSeen-v0")
        assert describe("it", env).observation == floats
        seen = np.asarray(env.reset()[0], np.float32)
    finally:
        del gym.registry["OlafSeen-v0"]
    assert seen.shape == (floats,)
