"""Views on torch models: shared memory, and a clear word where it cannot be shared."""

import importlib
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.torch


@pytest.fixture
def torch() -> Any:
    return importlib.import_module("torch")


@pytest.fixture
def module(torch: Any) -> Any:
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))


def test_what_is_written_into_the_arrays_is_in_the_module(torch: Any, module: Any) -> None:
    from olaf.torch import parameters

    parts = parameters(module)
    assert [part.shape for part in parts] == [(4, 3), (4,), (2, 4), (2,)]
    for part in parts:
        assert part.flags.c_contiguous
        part[...] = 0
    parts[-1][...] = (5, 7)
    assert module(torch.randn(1, 3)).tolist() == [[5, 7]]


def test_an_optimiser_s_step_is_seen_through_the_arrays(torch: Any, module: Any) -> None:
    from olaf.torch import gradients, parameters, step

    parts = parameters(module)
    before = [part.copy() for part in parts]
    optimiser = torch.optim.SGD(module.parameters(), lr=0.5)
    module(torch.ones(1, 3)).sum().backward()
    pushed = [part.copy() for part in gradients(module)]
    optimiser.step()
    for now, old, gradient, given in zip(parts, before, pushed, step(before, module), strict=True):
        np.testing.assert_allclose(now, old - 0.5 * gradient, atol=1e-6)
        np.testing.assert_allclose(given, -0.5 * gradient, atol=1e-6)


def test_gradients_are_views_and_zeros_where_there_is_none(torch: Any, module: Any) -> None:
    from olaf.torch import gradients

    with pytest.raises(ValueError, match="backward"):
        gradients(module)
    module[2](torch.ones(1, 4)).sum().backward()
    parts = gradients(module)
    assert (parts[0] == 0).all()
    assert (parts[3] == 1).all()
    parts[3][...] = 9
    assert module[2].bias.grad.tolist() == [9, 9]


def test_frozen_parameters_stay_at_home(module: Any) -> None:
    from olaf.torch import parameters

    module[0].weight.requires_grad = False
    assert len(parameters(module)) == 3
    assert len(parameters(module, trainable=False)) == 4


def test_what_cannot_be_shared_is_named(torch: Any, module: Any) -> None:
    from olaf.torch import parameters, views

    with pytest.raises(ValueError, match=r"parameter '0.weight' is torch.float64"):
        parameters(module.double())
    with pytest.raises(ValueError, match=r"tensor 1 is torch.float32 on cpu, not contiguous"):
        views([torch.zeros(2, 3), torch.zeros(2, 3).T])
