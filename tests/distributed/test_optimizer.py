"""A wrapped optimizer does what the bare one does with the gradients of all workers' data."""

# The types of torch differ between releases, and without it there are none.
# mypy: disable-error-code="no-untyped-call,operator,misc,union-attr,unused-ignore"

from __future__ import annotations

import copy
import threading
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from wrapped import (  # noqa: E402
    ENGINES,
    PATIENCE_S,
    batch,
    flat,
    flat_gradient,
    network,
    share,
    together,
)

from olaf import SumConnection  # noqa: E402
from olaf.torch import DistributedOptimizer  # noqa: E402

pytestmark = pytest.mark.torch

STEPS = 6
SCHEDULES: dict[str, dict[str, Any]] = {
    "StepLR": {"step_size": 2},
    "OneCycleLR": {"max_lr": 0.5, "total_steps": 10},
    "ReduceLROnPlateau": {"patience": 0},
}


def loss_of(model: nn.Module, data: tuple[Any, Any]) -> Any:
    return nn.functional.mse_loss(model(data[0]), data[1])


def alone(steps: int = STEPS, model: nn.Module | None = None) -> nn.Module:
    """What the bare optimizer makes of the whole batches."""
    model = model or network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(model, batch(step)).backward()
        optimizer.step()
    return model


def trained(job: SumConnection, **options: Any) -> Any:
    """The weights after the same training of two workers, half a batch each."""
    model = network()
    bare = torch.optim.Adam(model.parameters(), lr=0.05)
    optimizer = DistributedOptimizer(bare, through=job, **options)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss_of(model, share(job, step)).backward()
        optimizer.step()
    return flat(model)


@pytest.mark.parametrize("through", ["nothing", "a job of one", "a switch"])
def test_one_worker_is_the_bare_optimizer_bit_for_bit(through: str) -> None:
    def work(job: SumConnection) -> Any:
        assert job.is_alone == (through != "a switch")
        weights = trained(job)
        assert bool(job.operations()) == (through == "a switch")
        return weights

    if through == "nothing":
        model = network()
        optimizer = DistributedOptimizer(
            torch.optim.Adam(model.parameters(), lr=0.05), through=None
        )
        for step in range(STEPS):
            optimizer.zero_grad()
            loss_of(model, batch(step)).backward()
            optimizer.step()
        weights = flat(model)
    else:
        (weights,) = together(work, workers=1, elastic=through == "a switch")
    assert torch.equal(weights, flat(alone()))


@pytest.mark.parametrize("protocol", ENGINES)
@pytest.mark.parametrize("overlap", [True, False])
def test_two_workers_are_one_with_twice_the_batch(protocol: str, overlap: bool) -> None:
    first, second = together(lambda job: trained(job, overlap=overlap), protocol=protocol)
    assert torch.equal(first, second)
    torch.testing.assert_close(first, flat(alone()), rtol=1e-4, atol=1e-5)


def test_the_size_of_the_buckets_changes_nothing() -> None:
    every = together(lambda job: [trained(job, bucket_bytes=size) for size in (1, 200, 1 << 20)])
    for weights in every:
        assert torch.equal(weights[0], weights[1])
        assert torch.equal(weights[0], weights[2])


def test_sums_begin_while_backward_runs() -> None:
    def work(job: SumConnection) -> tuple[int, int]:
        model = network()
        optimizer = DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.1), through=job, bucket_bytes=1
        )
        seen: list[int] = []
        # The first layer's gradient is the last one; it is not complete yet when this is called.
        model[0].weight.register_hook(lambda _: seen.append(len(job.operations())))
        loss_of(model, share(job, 0)).backward()
        optimizer.step()
        return seen[0], len(job.operations())

    # Four parameters. At least those of the second layer have begun before.
    for begun, all_of_them in together(work):
        assert 2 <= begun <= 3
        assert all_of_them == 4


def test_the_order_of_the_sums_is_not_that_of_the_hooks() -> None:
    def work(job: SumConnection) -> list[float]:
        a, b = nn.Parameter(torch.zeros(100)), nn.Parameter(torch.zeros(100))
        optimizer = DistributedOptimizer(
            torch.optim.SGD([a, b], lr=1.0), through=job, bucket_bytes=1
        )
        # Autograd goes back from what was computed last.
        order = [(a, 1.0), (b, 10.0)] if job.rank else [(b, 10.0), (a, 1.0)]
        terms = [(parameter * factor).sum() for parameter, factor in order]
        (terms[0] + terms[1]).backward()
        optimizer.step()
        return [a.tolist()[0], b.tolist()[0]]

    assert together(work) == [[-1.0, -10.0]] * 2


def test_two_optimizers_of_one_connection_keep_their_order() -> None:
    def work(job: SumConnection) -> list[float]:
        a, b = nn.Parameter(torch.zeros(50)), nn.Parameter(torch.zeros(50))
        first = DistributedOptimizer(torch.optim.SGD([a], lr=1.0), through=job)
        second = DistributedOptimizer(torch.optim.SGD([b], lr=1.0), through=job)
        order = [(a, 1.0), (b, 10.0)] if job.rank else [(b, 10.0), (a, 1.0)]
        terms = [(parameter * factor * (job.rank + 1)).sum() for parameter, factor in order]
        (terms[0] + terms[1]).backward()
        first.step()
        second.step()
        return [a.tolist()[0], b.tolist()[0]]

    assert together(work) == [[-1.5, -15.0]] * 2


def test_a_training_goes_on_from_a_state_dict() -> None:
    """Also with the bare optimizer's: the two are the same."""

    def work(job: SumConnection) -> bool:
        states: list[Any] = []
        model, optimizer, schedule = made(job)
        for step in range(STEPS):
            if step == STEPS // 2:
                states = [copy.deepcopy(x.state_dict()) for x in (model, optimizer, schedule)]
            one_step(job, step, model, optimizer, schedule)
        resumed = made(job)
        assert states[1].keys() == resumed[1].wrapped.state_dict().keys()
        for part, state in zip(resumed, states, strict=True):
            part.load_state_dict(state)
        for step in range(STEPS // 2, STEPS):
            one_step(job, step, *resumed)
        same = torch.equal(flat(model), flat(resumed[0]))
        return bool(same and optimizer.param_groups[0]["lr"] == resumed[1].param_groups[0]["lr"])

    def made(job: SumConnection) -> tuple[Any, Any, Any]:
        model = network()
        optimizer = DistributedOptimizer(torch.optim.Adam(model.parameters()), through=job)
        return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)

    def one_step(job: SumConnection, step: int, model: Any, optimizer: Any, schedule: Any) -> None:
        optimizer.zero_grad(set_to_none=step % 2 == 0)
        loss_of(model, share(job, step)).backward()
        optimizer.step()
        schedule.step()

    assert together(work) == [True, True]


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_scheduler_takes_it_for_an_optimizer(name: str) -> None:
    def schedule(optimizer: Any) -> list[float]:
        made = getattr(torch.optim.lr_scheduler, name)(optimizer, **SCHEDULES[name])
        rates = []
        for _ in range(STEPS):
            optimizer.step()
            made.step(1.0) if name == "ReduceLROnPlateau" else made.step()
            rates.append(optimizer.param_groups[0]["lr"])
        return rates

    def work(job: SumConnection) -> list[float]:
        model = network()
        wrapped = DistributedOptimizer(torch.optim.SGD(model.parameters(), 0.1, 0.9), through=job)
        assert isinstance(wrapped, torch.optim.Optimizer)
        return schedule(wrapped)

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # one says that no step came before the scheduler's
        bare = schedule(torch.optim.SGD(network().parameters(), 0.1, 0.9))
        assert together(work) == [bare, bare]
    assert bare[0] != bare[-1]


@pytest.mark.parametrize("protocol", [p for p in ENGINES if p != "trio"])
@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_a_step_that_a_scaler_skips_is_skipped_everywhere(protocol: str, value: float) -> None:
    def work(job: SumConnection) -> tuple[bool, float, bool]:
        model = network()
        scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
        # GradScaler leaves the unscaling to a fused optimizer, but not to a wrapped one.
        bare = torch.optim.SGD(model.parameters(), lr=0.1, fused=protocol == "reduce")
        optimizer = DistributedOptimizer(bare, through=job)
        assert not optimizer._step_supports_amp_scaling
        before = flat(model)
        for is_bad in (True, False):
            optimizer.zero_grad()
            loss = loss_of(model, share(job, 0))
            scaler.scale(loss * value if is_bad and job.rank else loss).backward()
            scaler.unscale_(optimizer)
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1e6)
            scaler.step(optimizer)
            scaler.update()
            if is_bad:
                unmoved = torch.equal(flat(model), before)
        reference = network()
        loss_of(reference, batch(0)).backward()
        torch.testing.assert_close(
            norm,
            nn.utils.get_total_norm([p.grad for p in reference.parameters()]),
            rtol=1e-4,
            atol=1e-5,
        )
        return unmoved, float(scaler.get_scale()), torch.equal(flat(model), before)

    assert together(work, protocol=protocol) == [(True, 32.0, False)] * 2


def test_gradients_accumulate_without_sums() -> None:
    def work(job: SumConnection) -> tuple[Any, int]:
        model = network()
        optimizer = DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), through=job)
        inputs, wanted = share(job, 0)
        with optimizer.no_sync():
            (loss_of(model, (inputs[:2], wanted[:2])) / 2).backward()
        assert not job.operations()
        (loss_of(model, (inputs[2:], wanted[2:])) / 2).backward()
        optimizer.step()
        operations = len(job.operations())
        return flat(model), operations

    reference = network()
    optimizer = torch.optim.SGD(reference.parameters(), lr=0.1)
    loss_of(reference, batch(0)).backward()
    optimizer.step()
    for weights, operations in together(work):
        torch.testing.assert_close(weights, flat(reference), rtol=1e-5, atol=1e-6)
        assert operations == 1  # one bucket


def test_two_backward_passes_without_no_sync_are_right_too() -> None:
    def work(job: SumConnection) -> Any:
        model = network()
        optimizer = DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), through=job)
        for step in (0, 1):
            loss_of(model, share(job, step)).backward()
        optimizer.synchronize()
        return flat_gradient(model)

    reference = network()
    for step in (0, 1):
        loss_of(reference, batch(step)).backward()
    for gradient in together(work):
        torch.testing.assert_close(gradient, flat_gradient(reference), rtol=1e-5, atol=1e-6)


def test_what_comes_after_the_sum_is_summed_in_step() -> None:
    def work(job: SumConnection) -> list[float]:
        parameter = nn.Parameter(torch.zeros(1))
        optimizer = DistributedOptimizer(torch.optim.SGD([parameter], lr=1.0), through=job)
        (parameter.sum() * job.rank).backward()
        with optimizer.no_sync():
            (parameter.sum() * job.rank * 10).backward()
        optimizer.step()
        found: list[float] = parameter.tolist()
        return found

    assert together(work) == [[-5.5]] * 2


def test_a_gradient_is_clipped_after_the_sum_or_before() -> None:
    def work(job: SumConnection) -> tuple[Any, Any]:
        model = network()
        optimizer = DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), through=job)
        loss_of(model, share(job, 0)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.synchronize()  # they are means already
        after = flat_gradient(model)
        optimizer.zero_grad()
        with optimizer.no_sync():
            loss_of(model, share(job, 0)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        own = flat_gradient(model)
        optimizer.synchronize()
        return after, (own, flat_gradient(model))

    reference = network()
    loss_of(reference, batch(0)).backward()
    nn.utils.clip_grad_norm_(reference.parameters(), 0.1)
    (first, (mine, mean)), (second, (others, other_mean)) = together(work)
    assert torch.equal(first, second)
    torch.testing.assert_close(first, flat_gradient(reference), rtol=1e-4, atol=1e-6)
    assert torch.equal(mean, other_mean)
    assert not torch.equal(mine, others)
    torch.testing.assert_close(mean, (mine + others) / 2)


def test_a_parameter_without_a_gradient_counts_as_zeros_and_unused_everywhere_has_none() -> None:
    def work(job: SumConnection) -> tuple[Any, Any, Any]:
        everyones, mine, nobodys = (nn.Parameter(torch.ones(3)) for _ in range(3))
        optimizer = DistributedOptimizer(
            # With weight decay a gradient of zeros would move the weights.
            torch.optim.SGD([everyones, mine, nobodys], lr=1.0, weight_decay=0.5),
            through=job,
        )
        loss = everyones.sum() + (mine.sum() * 4 if job.rank == 0 else 0.0)
        loss.backward()
        assert nobodys.grad is None
        optimizer.step()
        return everyones.tolist(), mine.tolist(), nobodys.tolist()

    assert together(work) == [([-0.5] * 3, [-1.5] * 3, [1.0] * 3)] * 2


def test_parameters_that_come_later_take_part() -> None:
    def work(job: SumConnection) -> list[float]:
        first, later, frozen = (nn.Parameter(torch.zeros(2)) for _ in range(3))
        frozen.requires_grad_(False)
        optimizer = DistributedOptimizer(torch.optim.SGD([first, frozen], lr=1.0), through=job)
        (first.sum() * job.rank).backward()
        optimizer.step()
        optimizer.add_param_group({"params": [later], "lr": 0.1})
        frozen.requires_grad_(True)
        optimizer.zero_grad()
        ((first + later + frozen).sum() * job.rank).backward()
        optimizer.step()
        return [parameter.tolist()[0] for parameter in (first, later, frozen)]

    for found in together(work):
        assert found == pytest.approx([-1.0, -0.05, -0.5])


@pytest.mark.parametrize("exact", [True, False])
def test_small_gradients_keep_their_digits(exact: bool) -> None:
    """Marks of 1 travel beside the gradients, but not in an exact sum."""

    def work(job: SumConnection) -> Any:
        parameter, unused = nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(2))
        optimizer = DistributedOptimizer(
            torch.optim.SGD([unused, parameter], lr=1.0), through=job, exact=exact
        )
        (parameter * torch.tensor([1.0, 2.0, 3.0]) * 1e-12).sum().backward()
        optimizer.step()
        assert unused.grad is None
        assert len(job.operations()) == (2 if exact else 1)
        return -parameter.detach()

    for found in together(work):
        torch.testing.assert_close(found, torch.tensor([1e-12, 2e-12, 3e-12]), rtol=1e-6, atol=0)


def test_halves_and_doubles_are_averaged_in_their_own_type() -> None:
    def work(job: SumConnection) -> list[Any]:
        types = (torch.float16, torch.bfloat16, torch.float64)
        every = [nn.Parameter(torch.zeros(4, dtype=dtype)) for dtype in types]
        optimizer = DistributedOptimizer(torch.optim.SGD(every, lr=1.0), through=job)
        sum((p.float() * (1 + job.rank)).sum() for p in every).backward()
        optimizer.step()
        return [(p.dtype, p.tolist()) for p in every]

    for found in together(work):
        assert [values for _, values in found] == [[-1.5] * 4] * 3


def test_what_cannot_be_is_refused_by_name() -> None:
    model = network()
    bare = torch.optim.SGD(model.parameters(), lr=0.1)
    wrapped = DistributedOptimizer(bare, through=None)
    with pytest.raises(ValueError, match="closure"):
        wrapped.step(lambda: 1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="LBFGS, which needs a closure"):
        DistributedOptimizer(torch.optim.LBFGS(model.parameters()), through=None)
    with pytest.raises(ValueError, match="wrap it once"):
        DistributedOptimizer(wrapped, through=None)
    with pytest.raises(ValueError, match="mode = 'mean': must be one of sum, pipeline, push"):
        DistributedOptimizer(bare, through=None, mode="mean")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="optimizer is Sequential"):
        DistributedOptimizer(model, through=None)  # type: ignore[arg-type,unused-ignore]
    with pytest.raises(TypeError, match=r"through is str: .* needs a connection of"):
        DistributedOptimizer(bare, through="127.0.0.1:5555")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="bucket_bytes = 0"):
        DistributedOptimizer(bare, through=None, bucket_bytes=0)
    with pytest.raises(TypeError, match=r"save optimizer\.state_dict"):
        copy.deepcopy(wrapped)


@pytest.mark.parametrize("overlap", [True, False])
def test_a_sparse_gradient_is_refused_by_name(overlap: bool) -> None:
    def work(job: SumConnection) -> str:
        embedding = nn.Embedding(5, 2, sparse=True)
        optimizer = DistributedOptimizer(
            torch.optim.SparseAdam(list(embedding.parameters())), through=job, overlap=overlap
        )
        with pytest.raises(ValueError, match="is sparse") as error:  # noqa: PT012
            embedding(torch.tensor([1])).sum().backward()
            optimizer.step()
        assert not job.operations()
        return str(error.value)

    assert "parameter 0 of group 0, (5, 2) is sparse" in together(work)[0]


def test_a_complex_parameter_is_refused_by_name() -> None:
    def work(job: SumConnection) -> None:
        parameter = nn.Parameter(torch.zeros(2, dtype=torch.complex64))
        with pytest.raises(ValueError, match=r"parameter 0 of group 0, .* is complex"):
            DistributedOptimizer(torch.optim.SGD([parameter], lr=1.0), through=job)

    together(work)


def test_a_backward_pass_that_failed_is_forgotten() -> None:
    def work(job: SumConnection) -> list[float]:
        a, b = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))
        optimizer = DistributedOptimizer(
            torch.optim.SGD([a, b], lr=1.0), through=job, bucket_bytes=1
        )

        def fail(_: Any) -> None:
            raise ZeroDivisionError("of the program")

        handle = a.register_hook(fail)
        with pytest.raises(ZeroDivisionError):
            (a.sum() + b.sum()).backward()
        handle.remove()
        with pytest.raises(RuntimeError, match="changed while it was being summed"):
            (a.sum() + b.sum()).backward()
        optimizer.zero_grad()
        (a.sum() * job.rank + b.sum()).backward()
        optimizer.step()
        return [a.tolist()[0], b.tolist()[0]]

    assert together(work) == [[-0.5, -1.0]] * 2


def test_an_optimizer_that_is_gone_sums_nothing() -> None:
    def work(job: SumConnection) -> int:
        model = network()
        DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), through=job)
        loss_of(model, share(job, 0)).backward()
        return len(job.operations())

    assert together(work) == [0, 0]


def test_values_that_trio_cannot_carry_are_an_error_at_all() -> None:
    meeting = threading.Barrier(2)

    def work(job: SumConnection) -> tuple[str, list[float]]:
        parameter = nn.Parameter(torch.zeros(3))
        optimizer = DistributedOptimizer(torch.optim.SGD([parameter], lr=1.0), through=job)
        with pytest.raises(OverflowError, match="parameter 0 of group 0"):
            (parameter.sum() * (100.0 if job.rank else 1.0)).backward()
        own = parameter.grad.tolist() if parameter.grad is not None else []
        optimizer.zero_grad()
        meeting.wait(PATIENCE_S)
        (parameter.sum() * job.rank).backward()
        optimizer.step()
        return str(own), parameter.tolist()

    first, second = together(work, protocol="trio")
    assert first == ("[1.0, 1.0, 1.0]", [-0.5] * 3)
    assert second == ("[100.0, 100.0, 100.0]", [-0.5] * 3)
