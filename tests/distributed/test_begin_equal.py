"""Weights, buffers and moments begin equal, and running statistics become those of all workers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from wrapped import ENGINES, batch, flat, network, together  # noqa: E402

import olaf  # noqa: E402
from olaf import SumConnection  # noqa: E402
from olaf.torch import (  # noqa: E402
    DistributedOptimizer,
    broadcast_optimizer_state,
    broadcast_parameters,
    furthest,
)

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("protocol", ENGINES)
def test_every_tensor_becomes_the_roots_bit_for_bit(protocol: str) -> None:
    def values(seed: int) -> dict[str, Any]:
        generator = torch.Generator().manual_seed(seed)
        return {
            "large": torch.randn(1000, generator=generator) * 1e30,
            "strange": torch.tensor([float("nan"), float("-inf"), -0.0, 1e-45]) * (seed + 1),
            "double": torch.randn(3, dtype=torch.float64, generator=generator),
            "half": torch.randn(5, generator=generator).to(torch.bfloat16),
            "batches": torch.tensor(2**40 + seed),
            "mask": torch.tensor([seed == 1, seed != 1]),
            "empty": torch.zeros(0),
            "turned": torch.randn(4, 3, generator=generator).t(),
            "name": "no tensor",
        }

    def work(job: SumConnection) -> Any:
        mine = values(job.rank)
        broadcast_parameters(mine, job, root=1)
        return mine

    wanted = values(1)
    for found in together(work, protocol=protocol):
        for name, tensor in wanted.items():
            if name == "name":
                continue
            assert found[name].dtype == tensor.dtype
            same = [t.contiguous().reshape(-1).view(torch.uint8) for t in (found[name], tensor)]
            assert torch.equal(*same), name


def test_a_module_has_its_buffers_broadcast_and_averaged() -> None:
    def work(job: SumConnection) -> Any:
        model = nn.BatchNorm1d(5)
        model.train()
        model(batch(job.rank)[0])
        olaf.average_state(model, job)
        mean, batches = model.running_mean, model.num_batches_tracked
        averaged = None if mean is None else mean.clone()
        if job.rank == 0 and mean is not None and batches is not None:
            mean.fill_(7.0)
            batches.fill_(9)
        broadcast_parameters(model, job)
        return averaged, model.running_mean, model.num_batches_tracked

    expected = 0.1 * (batch(0)[0].mean(0) + batch(1)[0].mean(0)) / 2
    for averaged, mean, batches in together(work):
        torch.testing.assert_close(averaged, expected)
        assert mean.tolist() == [7.0] * 5
        assert batches.item() == 9


@pytest.mark.parametrize("protocol", ENGINES)
def test_models_that_differ_are_named_at_all_before_anything_is_overwritten(protocol: str) -> None:
    def work(job: SumConnection) -> None:
        model = nn.Linear(2 + job.rank, 1)
        before = flat(model)
        with pytest.raises(ValueError, match="of rank 1 have other names, types or shapes"):
            broadcast_parameters(model, job)
        assert torch.equal(flat(model), before)

    together(work, protocol=protocol)


@pytest.mark.parametrize("protocol", ["reduce", "trio"])
def test_an_optimizers_state_comes_to_one_that_has_none(protocol: str) -> None:
    def work(job: SumConnection) -> Any:
        model = network()
        bare = torch.optim.Adam(model.parameters(), lr=0.1 if job.rank == 0 else 0.5)
        if job.rank == 0:
            for _ in range(3):
                model(batch(0)[0]).mean().backward()
                bare.step()
        optimizer = DistributedOptimizer(bare, through=job)
        broadcast_optimizer_state(optimizer, job)
        broadcast_parameters(model, job)
        model(batch(1)[0]).mean().backward()
        optimizer.step()
        state = bare.state[model[0].weight]
        return optimizer.param_groups[0]["lr"], state["step"].item(), flat(model)

    first, second = together(work, protocol=protocol)
    assert first[:2] == second[:2] == (0.1, 4.0)
    assert torch.equal(first[2], second[2])


@pytest.mark.parametrize("protocol", ENGINES)
def test_the_furthest_worker_is_found(protocol: str) -> None:
    def work(job: SumConnection) -> list[int]:
        each = [(3, 5), (2**62 + 1, 2**62), (7, 7)]
        return [furthest(job, steps[job.rank]) for steps in each]

    assert together(work, protocol=protocol) == [[1, 0, 0]] * 2


@pytest.mark.parametrize("protocol", ENGINES)
def test_moments_become_those_of_all_values(protocol: str) -> None:
    """As of a VecNormalize. The mean is large beside the deviation."""
    rng = np.random.default_rng(0)
    seen = [10 + rng.normal(size=(size, 3)) * 0.1 for size in (1000, 250)]

    def work(job: SumConnection) -> Any:
        own = seen[job.rank]
        moments = SimpleNamespace(mean=own.mean(0), var=own.var(0), count=float(len(own)))
        olaf.average_state(moments, job)
        olaf.average_state(moments, job)  # a second time changes nothing
        return moments

    every = np.concatenate(seen)
    for moments in together(work, protocol=protocol):
        np.testing.assert_allclose(moments.mean, every.mean(0), rtol=1e-6)
        np.testing.assert_allclose(moments.var, every.var(0), rtol=1e-3)
        assert moments.count == 625


def test_arrays_are_averaged_and_others_refused() -> None:
    def work(job: SumConnection) -> Any:
        array, tensor = np.full((2, 2), job.rank, np.float64), torch.full((3,), float(job.rank))
        counts = np.array([job.rank])
        olaf.average_state({"a": array, "b": tensor, "c": counts}, job)
        olaf.average_state(nn.Linear(2, 2), job)  # has no statistics
        for state, said in (("text", TypeError), ([1.0], TypeError), (counts, ValueError)):
            with pytest.raises(said):
                olaf.average_state(state, job)
        return array.tolist(), tensor.tolist(), counts.tolist()

    for rank, found in enumerate(together(work)):
        assert found == ([[0.5, 0.5], [0.5, 0.5]], [0.5] * 3, [rank])


def test_a_state_that_the_protocol_cannot_carry_is_an_error() -> None:
    def work(job: SumConnection) -> None:
        with pytest.raises(OverflowError, match="trio"):
            olaf.average_state(np.full(3, 1000.0, np.float32), job)

    together(work, protocol="trio")


def test_a_rank_that_does_not_exist_is_refused() -> None:
    def work(job: SumConnection) -> None:
        with pytest.raises(ValueError, match="root = 2: must be a rank, from 0 to 1"):
            broadcast_parameters({"a": torch.zeros(1)}, job, root=2)
        with pytest.raises(ValueError, match="no tensors"):
            broadcast_parameters({}, job)

    together(work)
