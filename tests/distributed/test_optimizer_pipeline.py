"""A wrapped optimizer in mode "pipeline": Algorithm 1 of iSwitch under the program's own loop."""

# The types of torch differ between releases, and without it there are none.
# mypy: disable-error-code="no-untyped-call,operator,misc,union-attr,unused-ignore"

from __future__ import annotations

import threading
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from wrapped import PATIENCE_S, batch, flat, network, share, together  # noqa: E402

import olaf  # noqa: E402
from olaf import SumConnection  # noqa: E402
from olaf.torch import DistributedOptimizer  # noqa: E402

pytestmark = pytest.mark.torch

ITERATIONS = 30


def loss_of(model: nn.Module, data: tuple[Any, Any]) -> Any:
    return nn.functional.mse_loss(model(data[0]), data[1])


def run(model: nn.Module, optimizer: Any) -> int:
    """The loop of a program; its number of steps.

    All workers have the same data: on a busy machine the gradients may come from one of them alone.
    """
    steps = 0
    while not optimizer.is_over:
        optimizer.zero_grad(set_to_none=steps % 2 == 0)
        loss_of(model, batch(0)).backward()
        optimizer.step()
        steps += 1
    return steps


def test_one_worker_is_the_bare_optimizer_bit_for_bit() -> None:
    model, reference = network(), network()
    bare = torch.optim.Adam(reference.parameters(), lr=0.05)
    for _ in range(ITERATIONS):
        bare.zero_grad()
        loss_of(reference, batch(0)).backward()
        bare.step()
    optimizer = DistributedOptimizer(
        torch.optim.Adam(model.parameters(), lr=0.05),
        through=None,
        mode="pipeline",
        iterations=ITERATIONS,
    )
    assert run(model, optimizer) == ITERATIONS
    assert torch.equal(flat(model), flat(reference))
    assert optimizer.gradients["sent"] == optimizer.staleness[0] == ITERATIONS
    with pytest.raises(ValueError, match="are over: 30 of 30"):
        optimizer.step()


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_all_end_with_the_same_bits_and_learn(name: str) -> None:
    def work(job: SumConnection) -> Any:
        model = network(seed=job.rank)  # they begin equal all the same
        bare = getattr(torch.optim, name)(model.parameters(), lr=0.05)
        optimizer = DistributedOptimizer(
            bare, through=job, mode="pipeline", iterations=ITERATIONS, staleness=2
        )
        steps = run(model, optimizer)
        done = [float(entry["step"]) for entry in bare.state.values() if "step" in entry]
        assert sum(optimizer.gradients.values()) == steps
        assert max(optimizer.staleness, default=0) <= 2 or optimizer.gradients["stale"]
        looked_at = optimizer.gradients["sent"] + optimizer.gradients["stale"]
        assert sum(optimizer.staleness.values()) == looked_at
        assert optimizer.iteration == ITERATIONS
        assert {id(p) for g in bare.param_groups for p in g["params"]} == {
            id(parameter) for parameter in model.parameters()
        }, "the optimizer has the model's parameters again"
        # Bare again: it trains on from here.
        before = flat(model)
        loss_of(model, batch(1)).backward()
        bare.step()
        assert not torch.equal(before, flat(model))
        return before, done, optimizer.gradients["sent"]

    (first, steps, sent), (second, others, others_sent) = together(work, protocol="iswitch")
    assert torch.equal(first, second)
    assert steps == others == ([float(ITERATIONS)] * 4 if name == "Adam" else [])
    assert sent + others_sent >= 2 * ITERATIONS, "H = 2 gradients an iteration"
    reference = network()
    loss = [float(loss_of(reference, batch(0)).detach())]
    nn.utils.vector_to_parameters(first, reference.parameters())
    loss.append(float(loss_of(reference, batch(0)).detach()))
    assert loss[1] < 0.8 * loss[0]


def test_a_checkpoint_in_the_middle_is_of_one_iteration_and_goes_on() -> None:
    """Weights, moments and the number fit, and a worker that has nothing takes those of the other.

    Gradients of a constant: after n iterations the weight is n times the step.
    """
    meeting = threading.Barrier(2)

    def work(job: SumConnection) -> tuple[list[float], float]:
        parameter = nn.Parameter(torch.zeros(1))
        bare = torch.optim.SGD([parameter], lr=1.0, momentum=0.5)
        optimizer = DistributedOptimizer(bare, through=job, mode="pipeline", iterations=40)
        found = []
        while not optimizer.is_over:
            optimizer.zero_grad()
            parameter.sum().backward()
            optimizer.step()
            if not optimizer.is_over:
                with optimizer.newest():
                    (state,) = optimizer.state_dict()["state"].values() or [{}]
                    at = optimizer.iteration
                    momentum = state["momentum_buffer"].item() if state else 0.0
                    found.append((at, parameter.item(), momentum))
        for at, weight, momentum in found:
            assert momentum == pytest.approx(2 - 0.5 ** (at - 1) if at else 0.0), at
            assert weight == pytest.approx(-(2 * at - momentum)), at
        meeting.wait(PATIENCE_S)
        if job.rank:
            parameter = nn.Parameter(torch.full((1,), 7.0))
            bare = torch.optim.SGD([parameter], lr=3.0, momentum=0.5)
        optimizer = DistributedOptimizer(
            bare,
            through=job,
            mode="pipeline",
            iterations=41,
            iteration=0 if job.rank else 40,
        )
        assert optimizer.iteration >= 40
        optimizer.zero_grad()
        while not optimizer.is_over:
            optimizer.step()  # of zeros: the momentum alone moves the weight
        return parameter.tolist(), bare.param_groups[0]["lr"]

    for weights, rate in together(work, protocol="iswitch"):
        assert weights == pytest.approx([-79.0])
        assert rate == 1.0


SCHEDULES: dict[str, dict[str, Any]] = {
    "StepLR": {"step_size": 10, "gamma": 0.5},
    "MultiStepLR": {"milestones": [5, 25], "gamma": 0.1},
    "OneCycleLR": {"max_lr": 0.5, "total_steps": ITERATIONS + 1},
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_scheduler_is_stepped_once_an_iteration(name: str) -> None:
    def made(model: nn.Module) -> tuple[Any, Any]:
        bare = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
        return bare, getattr(torch.optim.lr_scheduler, name)(bare, **SCHEDULES[name])

    def work(job: SumConnection) -> tuple[Any, Any]:
        model = network()
        bare, scheduler = made(model)
        optimizer = DistributedOptimizer(
            bare, through=job, mode="pipeline", iterations=ITERATIONS, scheduler=scheduler
        )
        with pytest.raises(ValueError, match="before the optimizer is wrapped"):
            optimizer.register_step_post_hook(print)  # an iteration may be over already
        run(model, optimizer)
        options = {k: v for k, v in bare.param_groups[0].items() if k != "params"}
        assert type(bare.param_groups[0]) is dict
        return options, flat(model)

    reference, schedule = made(network())
    for _ in range(ITERATIONS):
        reference.step()
        schedule.step()
    (options, weights), (others, other_weights) = together(work, protocol="iswitch")
    assert options == others
    assert options["lr"] == reference.param_groups[0]["lr"]
    assert options["momentum"] == reference.param_groups[0]["momentum"]
    assert torch.equal(weights, other_weights)


def test_a_worker_that_comes_later_has_the_scheduler_of_the_others() -> None:
    """Its own would lower the rate ten iterations after theirs."""

    def work(job: SumConnection) -> tuple[float, int]:
        model = network()
        bare = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.MultiStepLR(bare, [15], 0.1)
        if job.rank == 0:
            for _ in range(10):
                bare.step()
                scheduler.step()
        optimizer = DistributedOptimizer(
            bare,
            through=job,
            mode="pipeline",
            iterations=20,
            iteration=0 if job.rank else 10,
            scheduler=scheduler,
        )
        run(model, optimizer)
        return bare.param_groups[0]["lr"], scheduler.last_epoch

    for rate, epoch in together(work, protocol="iswitch"):
        assert rate == pytest.approx(0.01)
        assert epoch == 20


def test_a_group_that_the_program_changes_is_refused() -> None:
    """Each worker steps another number of times, and would change it at another iteration."""

    def work(job: SumConnection) -> Any:
        model = network()
        bare = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(bare, 1, 0.5)
        optimizer = DistributedOptimizer(bare, through=job, mode="pipeline", iterations=ITERATIONS)
        for name in ("lr", "momentum"):
            with pytest.raises(ValueError, match="wrap this one with scheduler="):
                bare.param_groups[0][name] = 0.01
        with pytest.raises(ValueError, match="wrap this one with scheduler="):
            scheduler.step()
        run(model, optimizer)
        bare.param_groups[0]["lr"] = 0.01
        return flat(model)

    first, second = together(work, protocol="iswitch")
    assert torch.equal(first, second)


def test_frozen_parameters_stay_whatever_gradient_they_have() -> None:
    def work(job: SumConnection) -> Any:
        model = network()
        model[0].weight.grad = torch.full((16, 5), float(job.rank + 1))
        model[0].weight.requires_grad_(False)
        before = model[0].weight.detach().clone()
        bare = torch.optim.Adam(model.parameters(), lr=0.05)
        optimizer = DistributedOptimizer(bare, through=job, mode="pipeline", iterations=ITERATIONS)
        run(model, optimizer)
        assert torch.equal(before, model[0].weight)
        assert model[0].weight.grad is not None, "it is the program's own"
        assert len(bare.state) == 3
        return flat(model)

    first, second = together(work, protocol="iswitch")
    assert torch.equal(first, second)


def test_an_optimizer_that_a_pipeline_has_is_not_wrapped_again() -> None:
    """After an error of the program, for example: its model would train no more."""

    def work(job: SumConnection) -> Any:
        model = network()
        bare = torch.optim.SGD(model.parameters(), lr=0.1)
        options: dict[str, Any] = {"through": job, "mode": "pipeline", "iterations": ITERATIONS}
        with pytest.raises(ZeroDivisionError):  # noqa: PT012, SIM117
            with DistributedOptimizer(bare, **options) as optimizer:
                with pytest.raises(ValueError, match=r"call its close\(\)"):
                    DistributedOptimizer(bare, **options)
                turn.wait(PATIENCE_S)
                raise ZeroDivisionError
        assert optimizer.is_over
        assert bare.param_groups[0]["params"][0] is model[0].weight
        turn.wait(PATIENCE_S)
        again = DistributedOptimizer(bare, **options)
        run(model, again)
        return flat(model)

    turn = threading.Barrier(2)
    first, second = together(work, protocol="iswitch")
    assert torch.equal(first, second)


def test_the_end_does_not_wait_for_itself() -> None:
    def work(job: SumConnection) -> Any:
        model = network()
        bare = torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer = DistributedOptimizer(bare, through=job, mode="pipeline", iterations=ITERATIONS)
        with optimizer.newest():
            kept = optimizer.state_dict()
            with pytest.raises(ValueError, match="inside of newest"):
                optimizer.close()
        run(model, optimizer)
        assert kept["param_groups"][0]["lr"] == 0.1
        with torch.no_grad():
            model[0].weight.zero_()
        with optimizer.newest():
            assert not model[0].weight.any(), "the model is the program's again"

    together(work, protocol="iswitch")


def test_iterations_that_differ_are_named() -> None:
    def work(job: SumConnection) -> None:
        bare = torch.optim.SGD(network().parameters(), lr=0.1)
        with pytest.raises(ValueError, match="iterations is 30 at rank 0 and 31 at rank 1"):
            DistributedOptimizer(bare, through=job, mode="pipeline", iterations=30 + job.rank)

    together(work, protocol="iswitch")


def test_a_worker_that_leaves_ends_it_at_all_with_the_weights_of_one_iteration() -> None:
    left = threading.Event()

    def work(job: SumConnection) -> Any:
        model = network()
        bare = torch.optim.Adam(model.parameters(), lr=0.01)
        optimizer = DistributedOptimizer(bare, through=job, mode="pipeline", iterations=100_000)
        if job.rank == 2:
            while optimizer.iteration < 20:
                loss_of(model, share(job, 0)).backward()
                optimizer.step()
            optimizer.close()
            optimizer.close()  # idempotent
            left.set()
            return None
        with pytest.raises(olaf.SumError):
            run(model, optimizer)
        assert left.wait(PATIENCE_S)
        assert optimizer.is_over
        with pytest.raises(ValueError, match="wrap the optimizer again"):
            optimizer.step()
        (step,) = {float(entry["step"]) for entry in bare.state.values()}
        assert step == optimizer.iteration >= 20
        return step, flat(model)

    first, second, _ = together(work, workers=3, protocol="iswitch")
    assert first[0] == second[0]
    assert torch.equal(first[1], second[1])


def test_a_scaler_reads_the_models_gradients() -> None:
    def work(job: SumConnection) -> tuple[Any, float]:
        model = network()
        scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
        optimizer = DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.1),
            through=job,
            mode="pipeline",
            iterations=10,
        )
        with pytest.raises(TypeError):
            optimizer.param_groups[0]["lr"] = 1.0  # it would count at this worker alone
        steps = 0
        while not optimizer.is_over:
            optimizer.zero_grad()
            loss = loss_of(model, share(job, 0))
            scaler.scale(loss * (float("inf") if steps == 0 else 1.0)).backward()
            scaler.unscale_(optimizer)
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1e6)
            assert steps == 0 or norm < 10
            scaler.step(optimizer)
            scaler.update()
            steps += 1
        return flat(model), sum(optimizer.gradients.values()) - steps

    (first, left_out), (second, others) = together(work, protocol="iswitch")
    assert torch.equal(first, second)
    assert first.isfinite().all()
    assert left_out == others == -1, "the infinite gradient was not sent"


def test_what_cannot_be_is_refused_by_name() -> None:
    def work(job: SumConnection) -> None:
        model = network()
        bare = torch.optim.SGD(model.parameters(), lr=0.1)
        with pytest.raises(ValueError, match='needs protocol="iswitch"'):
            DistributedOptimizer(bare, through=job, mode="pipeline", iterations=3)
        assert job.operations() == []

    together(work)

    def running(job: SumConnection) -> None:
        half = torch.optim.SGD([nn.Parameter(torch.zeros(2, dtype=torch.float16))], lr=0.1)
        with pytest.raises(ValueError, match=r"shape \(2,\) is torch.float16"):
            DistributedOptimizer(half, through=job, mode="pipeline", iterations=3)
        model = network()
        bare = torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer = DistributedOptimizer(bare, through=job, mode="pipeline", iterations=3)
        for call in ("load_state_dict", "add_param_group"):
            with pytest.raises(ValueError, match=f"{call} in mode"):
                getattr(optimizer, call)({})
        with pytest.raises(ValueError, match="newest"):
            optimizer.synchronize()
        with pytest.raises(ValueError, match='only mode = "push" sends a reward'):
            optimizer.reward = 1.0
        model[0].weight.requires_grad_(False)
        with pytest.raises(ValueError, match=r"shape \(16, 5\) is frozen now"):
            optimizer.step()
        model[0].weight.requires_grad_(True)
        run(model, optimizer)

    together(running, protocol="iswitch")
    bare = torch.optim.SGD(network().parameters(), lr=0.1)
    with pytest.raises(ValueError, match="needs iterations"):
        DistributedOptimizer(bare, through=None, mode="pipeline")
    with pytest.raises(ValueError, match="overlap is an option of mode = 'sum'"):
        DistributedOptimizer(bare, through=None, mode="pipeline", iterations=3, overlap=False)
    with pytest.raises(ValueError, match='only mode = "pipeline" has iterations'):
        _ = DistributedOptimizer(bare, through=None).iteration
