"""The flat vector: where each weight stands, and that views are views."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olaf.rl.actor_critic import Layout, backward, forward, orthogonal

layouts = st.builds(
    Layout,
    st.integers(1, 20),
    st.lists(st.integers(1, 20), min_size=1, max_size=3).map(tuple),
    st.integers(1, 6),
    st.booleans(),
)


def test_lunar_lander_fits_one_frame() -> None:
    layout = Layout(8, (40, 40), 4)
    assert layout.size == 2205
    assert layout.size * 4 == 8820


@given(layouts)
def test_entries_tile_the_vector_without_gaps(layout: Layout) -> None:
    marks = np.zeros(layout.size, np.float32)
    for view in layout.views(marks).values():
        view[...] = view + 1
    assert (marks == 1).all()
    offsets = [entry.offset for entry in layout.entries]
    assert offsets == sorted(offsets)


@given(layouts)
def test_views_write_through_and_read_back(layout: Layout) -> None:
    flat = np.arange(layout.size, dtype=np.float32)
    views = layout.views(flat)
    again = np.concatenate([views[entry.name].ravel() for entry in layout.entries])
    assert (again == flat).all()
    views["heads.bias"][-1] = -7
    assert -7 in flat


def test_a_vector_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="2205"):
        Layout(8, (40, 40), 4).views(np.zeros(2204, np.float32))


@pytest.mark.parametrize("shape", [(8, 40), (40, 8), (40, 40)])
def test_orthogonal_weights_are_orthogonal(shape: tuple[int, int]) -> None:
    matrix = orthogonal(np.random.default_rng(1), shape, 2.0)
    assert matrix.shape == shape
    gram = matrix @ matrix.T if shape[0] <= shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(gram, 4 * np.eye(min(shape)), atol=1e-12)


def test_a_first_policy_is_nearly_uniform_and_its_value_is_not_flat() -> None:
    layout = Layout(8, (40, 40), 4)
    views = layout.views(layout.initial(np.random.default_rng(0)))
    seen = np.random.default_rng(1).standard_normal((50, 8)).astype(np.float32)
    outputs, _ = forward(layout, views, seen)
    assert np.abs(outputs[:, :-1]).max() < 0.1
    assert outputs[:, -1].std() > 0.1


def test_backward_agrees_with_finite_differences() -> None:
    layout = Layout(3, (5, 4), 2)
    rng = np.random.default_rng(2)
    flat = rng.standard_normal(layout.size)
    seen, direction = rng.standard_normal((7, 3)), rng.standard_normal((7, 3))
    outputs, activations = forward(layout, layout.views(flat), seen)
    assert outputs.shape == (7, 3)
    gradient = np.zeros(layout.size)
    backward(layout, layout.views(flat), activations, direction, layout.views(gradient))

    def loss(weights: np.ndarray) -> float:
        return float((forward(layout, layout.views(weights), seen)[0] * direction).sum())

    numeric = np.array([(loss(flat + s) - loss(flat - s)) / 2e-6 for s in 1e-6 * np.eye(flat.size)])
    np.testing.assert_allclose(gradient, numeric, atol=1e-7)
