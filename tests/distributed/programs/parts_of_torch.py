"""Parts of torch that stand on the collectives: DDP's hooks and `join`, the compiler.

Run by torchrun; see `checking`.
"""

import os
import time
from datetime import timedelta
from typing import Any

import torch
import torch.distributed
from checking import alike, check, main, mine

dist: Any = torch.distributed

DDP = torch.nn.parallel.DistributedDataParallel


@check
def the_hook_power_sgd(_: Any) -> None:
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

    torch.manual_seed(1)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 48))
    state = powerSGD_hook.PowerSGDState(
        process_group=None, matrix_approximation_rank=1, start_powerSGD_iter=2
    )
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    for step in range(4):
        model.zero_grad()
        model(mine(64 * 8, torch.float32, step).view(8, 64)).square().mean().backward()
        alike(model.module.weight.grad)


@check
def the_built_in_hook_fp16_compress(_: Any) -> None:
    """It is C++, and asks for a future of `list[Tensor]`."""
    torch.manual_seed(1)
    model: Any = DDP(torch.nn.Linear(4, 3))
    model._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS)
    for _ in range(2):
        model.zero_grad()
        model(torch.full((2, 4), float(dist.get_rank()))).sum().backward()
    assert (model.module.weight.grad == dist.get_world_size() - 1).all()


@check
def the_hooks_that_compress(gloo: Any) -> None:
    """The gradients that gloo gives."""
    from torch.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, register_ddp_comm_hook

    for kind in ("ALLREDUCE", "FP16_COMPRESS", "BF16_COMPRESS"):
        gradients = []
        for group in (None, gloo):
            torch.manual_seed(1)
            model: Any = DDP(torch.nn.Linear(33, 7), process_group=group)
            register_ddp_comm_hook(DDPCommHookType[kind], model, state=group)
            model(mine(33 * 8, torch.float32).view(8, 33)).square().mean().backward()
            gradients.append(model.module.weight.grad)
        torch.testing.assert_close(*gradients, rtol=2e-2, atol=1e-3)


@check
def join_divides_by_the_ranks_that_are_left(_: Any) -> None:
    """DDP's reducer, which is C++, holds the handle that tells it how many these are."""
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model: Any = DDP(torch.nn.Linear(4, 3))
    with model.join(divide_by_initial_world_size=False):
        for step in range(1 + 2 * rank):
            model.zero_grad()
            model(torch.full((2, 4), float(rank))).sum().backward()
            left = [other for other in range(size) if 1 + 2 * other > step]
            mean = torch.full((3, 4), 2.0 * sum(left) / len(left))
            torch.testing.assert_close(model.module.weight.grad, mean)


@check
def a_handle_that_only_torch_holds_waits(_: Any) -> None:
    """Also when this program has begun many others since."""
    rank, size = dist.get_rank(), dist.get_world_size()
    model: Any = DDP(torch.nn.Linear(1, 1))
    loss = model(torch.full((1, 1), float(rank))).sum()
    divisor = dist.all_reduce(torch.full((1,), 2.0), async_op=True)
    model.reducer._set_forward_pass_work_handle(divisor, False)
    del divisor
    for _ in range(100):
        dist.all_reduce(torch.ones(1), async_op=True)
    loss.backward()
    assert model.module.weight.grad.item() == sum(range(size)) / (2.0 * size)


@check
def a_forked_child_is_told_whose_the_group_is(_: Any) -> None:
    """As the workers of a data loader, it ends without an end of the interpreter."""
    dist.all_reduce(torch.ones(1))
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        for wait in (True, False):
            try:
                dist.all_reduce(torch.ones(1), async_op=not wait)
            except RuntimeError as error:
                os.write(writing, f"{error}\n".encode())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    os.close(writing)
    with os.fdopen(reading) as said:
        assert said.read().count(f"belongs to process {os.getpid()}") == 2
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    assert tensor.item() == dist.get_world_size()


@check
def each_device_has_its_own_backend(_: Any) -> None:
    size = dist.get_world_size()
    for backends, through_switch in (("cpu:gloo,cuda:olaf", False), ("cpu:olaf,cuda:gloo", True)):
        group = dist.new_group(backend=backends)
        for call in (dist.all_reduce, lambda tensor, group: dist.broadcast(tensor, 0, group)):
            tensor = torch.full((5,), 2.0)
            call(tensor, group=group)
        dist.barrier(group)
        assert (tensor == 2).all()
        dist.all_reduce(tensor, group=group)
        assert (tensor == 2 * size).all()
        # A group joins the switch with its first sum there.
        assert (group._made is not None) == through_switch
        dist.destroy_process_group(group)
    try:
        dist.new_group(backend="cpu:olaf,cuda:ucc")
    except ValueError as error:
        said = str(error)
    else:
        said = "nothing"
    assert "must be 'gloo', or 'nccl'" in said, said


@check
def the_profiler_sees_one_event_a_call(_: Any) -> None:
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
    ) as seen:
        dist.all_reduce(torch.ones(7, 3))
        dist.all_reduce(torch.ones(5), async_op=True).wait()
        dist.broadcast(torch.ones(4), 0)
        dist.reduce_scatter_tensor(torch.ones(2), torch.ones(2 * dist.get_world_size()))
    events = [
        (event.name, event.input_shapes)
        for event in seen.events()
        if event.name.startswith("olaf:")
    ]
    assert events == [
        ("olaf:all_reduce", [[7, 3]]),
        ("olaf:all_reduce", [[5]]),
        ("olaf:broadcast", [[4]]),
        ("olaf:reduce_scatter", [[2]] * dist.get_world_size()),
    ], events


@check
def a_group_that_is_split(_: Any) -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    halves = [list(range(0, size, 2)), list(range(1, size, 2))]
    group = dist.split_group(split_ranks=halves)
    tensor = torch.full((3,), float(rank))
    dist.all_reduce(tensor, group=group)
    assert (tensor == sum(halves[rank % 2])).all()
    assert dist.get_backend(group) == "olaf"
    assert group._made is not None, "it went through gloo"
    dist.destroy_process_group(group)
    alone = dist.split_group(split_ranks=[[0]])
    assert (alone is dist.GroupMember.NON_GROUP_MEMBER) == (rank != 0)


@check
def barriers_and_time_outs(_: Any) -> None:
    dist.monitored_barrier(timeout=timedelta(seconds=20), wait_all_ranks=True)
    group = dist.group.WORLD
    before = group._timeout
    dist.distributed_c10d._set_pg_timeout(timedelta(seconds=20))
    assert group._timeout == timedelta(seconds=20)
    dist.distributed_c10d._set_pg_timeout(before)


@check
def a_group_that_is_destroyed_with_work_in_flight(_: Any) -> None:
    """Each handle ends, with its sum or with an error. No rank waits for the others' time-out."""
    size = dist.get_world_size()
    for _ in range(3):
        group = dist.new_group()
        warm = torch.ones(1)
        dist.all_reduce(warm, group=group)
        tensors = [torch.ones(500_000) for _ in range(4)]
        works = [dist.all_reduce(tensor, group=group, async_op=True) for tensor in tensors]
        began = time.monotonic()
        dist.destroy_process_group(group)
        assert time.monotonic() - began < 10
        for work, tensor in zip(works, tensors, strict=True):
            said = ""
            try:
                work.wait()
            except dist.DistBackendError as error:
                said = str(error)
            named = "all_reduce (sum) of 500000 x float32" in said
            assert named or (not said and (tensor == size).all()), said
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    assert (tensor == size).all()


@check
def compiled_programs(_: Any) -> None:
    import torch._dynamo

    rank, size = dist.get_rank(), dist.get_world_size()
    half = dist.new_group([0, 1])

    def sums(values: torch.Tensor) -> torch.Tensor:
        doubled = values * 2
        dist.all_reduce(doubled, async_op=True).wait()
        return doubled + 1

    def broadcasts(values: torch.Tensor) -> torch.Tensor:
        doubled = values * 2
        dist.broadcast(doubled, size - 1)
        dist.barrier()
        return doubled + 1

    def sums_in_a_group(values: torch.Tensor) -> torch.Tensor:
        doubled = values * 2
        if rank < 2:
            dist.all_reduce(doubled, group=half)
        return doubled + 1

    total = size * (size + 1) / 2
    wanted = {sums: 2 * total + 1, broadcasts: 2 * size + 1}
    wanted[sums_in_a_group] = 7.0 if rank < 2 else 2.0 * (rank + 1) + 1
    for function, result in wanted.items():
        compiled = torch.compile(function, backend="aot_eager")
        for _ in range(2):
            assert (compiled(torch.full((3,), rank + 1.0)) == result).all(), function.__name__
    model: Any = torch.compile(DDP(torch.nn.Linear(4, 3)), backend="aot_eager")
    for _ in range(2):
        model.zero_grad()
        model(torch.full((2, 4), float(rank))).sum().backward()
    assert (model.module.weight.grad == size - 1).all()
    torch._dynamo.reset()


if __name__ == "__main__":
    main()
