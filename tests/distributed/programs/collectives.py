"""Checks of the backend `olaf`, run by torchrun. Each rank writes the outcome of each check.

The results of the collectives are compared with those of a gloo group of the same ranks.
"""

import os
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed
import torch.distributed._functional_collectives as functional
from checking import alike, check, main, mine, same

dist: Any = torch.distributed


CARRIED = (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64)
OTHERS = (torch.float64, torch.uint8, torch.int8)
OPERATIONS = (dist.ReduceOp.SUM, dist.ReduceOp.MIN, dist.ReduceOp.MAX, dist.ReduceOp.PRODUCT)
SIZES = (1, 2, 63, 64, 2_221, 65_537)


@check
def all_reduce_of_every_type_operation_and_size(gloo: Any) -> None:
    for dtype in CARRIED + OTHERS:
        for operation in OPERATIONS:
            for size in SIZES:
                ours, theirs = mine(size, dtype, size), mine(size, dtype, size)
                dist.all_reduce(ours, operation)
                dist.all_reduce(theirs, operation, group=gloo)
                same(ours, theirs)
        alike(ours)


@check
def the_mean(gloo: Any) -> None:
    for dtype in CARRIED[:3]:
        ours, theirs = mine(1001, dtype), mine(1001, dtype).float()
        dist.all_reduce(ours, dist.ReduceOp.AVG)
        dist.all_reduce(theirs, group=gloo)
        same(ours, (theirs / dist.get_world_size()).to(dtype))
        alike(ours)


@check
def a_mean_of_halves_is_rounded_once(_: Any) -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype in (torch.float16, torch.bfloat16):
        chance = torch.Generator().manual_seed(3)
        every = (torch.rand(size, 501, generator=chance) * 1e4 + 5e4).to(dtype)
        wanted = every.double().mean(0)
        for tensor in (every[rank].clone(), every[rank].repeat(2, 1).t()[:, 0]):
            dist.all_reduce(tensor, dist.ReduceOp.AVG)
            # At most half a step, and the rounding of float32.
            step = torch.finfo(dtype).eps * 2**15
            assert ((tensor.double() - wanted).abs() <= 0.501 * step).all()
            alike(tensor.contiguous())


@check
def elements_that_share_memory_are_refused_before_the_sum(_: Any) -> None:
    for wait in (True, False):
        try:
            dist.all_reduce(torch.ones(1).expand(4), async_op=not wait)
        except dist.DistBackendError as error:
            said = str(error)
        else:
            said = "nothing"
        assert "share memory" in said, said
    tensor = torch.ones(4)
    dist.all_reduce(tensor)
    assert (tensor == dist.get_world_size()).all()


@check
def bitwise_operations(gloo: Any) -> None:
    for operation in (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR):
        ours, theirs = mine(100, torch.int32), mine(100, torch.int32)
        dist.all_reduce(ours, operation)
        dist.all_reduce(theirs, operation, group=gloo)
        same(ours, theirs)


@check
def a_mean_of_integers_is_torch_s_error(_: Any) -> None:
    try:
        dist.all_reduce(torch.ones(2, dtype=torch.int32), dist.ReduceOp.AVG)
    except RuntimeError:
        return
    raise AssertionError("no error")


@check
def empty_scalar_and_strided_tensors(_: Any) -> None:
    size = dist.get_world_size()
    images = torch.ones(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    tensors = (
        *(torch.ones(0), torch.tensor(1.0), torch.ones(1), images),
        *(torch.ones(2, 3).t(), torch.ones(9)[::2], torch.ones(4, 4)[:, 1]),
    )
    for tensor in tensors:
        dist.all_reduce(tensor)
        assert (tensor == size).all()
        tensor.fill_(dist.get_rank())
        dist.broadcast(tensor, size - 1)
        assert (tensor == size - 1).all()


@check
def a_tensor_that_is_strided_at_one_rank_only(_: Any) -> None:
    values = torch.arange(12.0).reshape(3, 4)
    tensor = values.t().contiguous().t() if dist.get_rank() == 0 else values.clone()
    dist.all_reduce(tensor)
    assert torch.equal(tensor, values * dist.get_world_size())


@check
def a_parameter_that_needs_a_gradient(_: Any) -> None:
    parameter = torch.nn.Parameter(torch.ones(5))
    dist.all_reduce(parameter)
    dist.broadcast(parameter, 0)
    assert (parameter == dist.get_world_size()).all()
    assert parameter.requires_grad


@check
def complex_numbers(_: Any) -> None:
    tensor = torch.full((7,), 1 + 2j)
    dist.all_reduce(tensor)
    assert (tensor == dist.get_world_size() * (1 + 2j)).all()


@check
def a_large_tensor(gloo: Any) -> None:
    ours, theirs = mine(3_000_001, torch.float32), mine(3_000_001, torch.float32)
    dist.all_reduce(ours)
    dist.all_reduce(theirs, group=gloo)
    same(ours, theirs)
    alike(ours)


@check
def the_group_s_own_calls(_: Any) -> None:
    group, size = dist.group.WORLD, dist.get_world_size()
    tensor = torch.ones(4)
    group.allreduce([tensor]).wait()
    assert (tensor == size).all()
    group.allreduce(tensor, dist.ReduceOp.MAX).wait()
    group.allreduce_coalesced([tensor]).wait()
    assert (tensor == size * size).all()
    tensor.fill_(dist.get_rank())
    group.broadcast(tensor, root=1).wait()
    assert (tensor == 1).all()


@check
def many_small_ones(_: Any) -> None:
    size = dist.get_world_size()
    for at in range(500):
        tensor = torch.full((3,), float(at))
        dist.all_reduce(tensor)
        assert (tensor == at * size).all()


@check
def handles(_: Any) -> None:
    size = dist.get_world_size()
    tensors = [torch.full((1000 * at + 1,), float(at)) for at in range(20)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for work in reversed(works):
        assert work.wait()
        assert work.is_completed()
        assert work.is_success()
        assert work.exception() is None
    for at, tensor in enumerate(tensors):
        assert (tensor == at * size).all()


@check
def a_handle_that_waits_with_a_limit(_: Any) -> None:
    tensor = torch.ones(10)
    assert dist.all_reduce(tensor, async_op=True).wait(timedelta(seconds=30))
    assert (tensor == dist.get_world_size()).all()


@check
def futures(_: Any) -> None:
    work = dist.all_reduce(torch.ones(3), async_op=True)
    doubled = work.get_future().then(lambda done: done.value()[0] * 2)
    assert (doubled.wait() == 2 * dist.get_world_size()).all()
    assert work.get_future() is work.get_future()
    sent = dist.broadcast(torch.ones(3), 0, async_op=True)
    assert (sent.get_future().wait()[0] == 1).all()


@check
def a_callback_begins_and_awaits_other_sums(_: Any) -> None:
    """As the hook PowerSGD does. The callback must not keep the others from ending."""
    size = dist.get_world_size()

    def begin_another(done: Any) -> torch.Tensor:
        second = dist.all_reduce(done.value()[0] * 2, async_op=True).get_future()
        third = dist.all_reduce(torch.ones(70_000), async_op=True)
        assert third.wait(timedelta(seconds=20))
        result: torch.Tensor = second.wait()[0]
        return result

    first = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(begin_another)
    assert (first.wait() == 2 * size * size).all()


@check
def the_future_of_an_empty_tensor(_: Any) -> None:
    empty = torch.ones(0)
    assert dist.all_reduce(empty, async_op=True).get_future().wait()[0] is empty


@check
def what_is_completed_has_its_result(_: Any) -> None:
    strided = torch.ones(200, 300).t()
    work = dist.all_reduce(strided, async_op=True)
    until = time.monotonic() + 20
    while not work.is_completed():
        assert time.monotonic() < until
    assert (strided == dist.get_world_size()).all()


@check
def a_barrier_waits_for_sums_that_have_begun(_: Any) -> None:
    size = dist.get_world_size()
    large, strided = torch.ones(2_000_000), torch.ones(700, 900).t()
    works = [dist.all_reduce(tensor, async_op=True) for tensor in (large, strided)]
    dist.barrier()
    assert all((tensor == size).all() for tensor in (large, strided))
    assert all(work.is_success() for work in works)


@check
def coalesced(_: Any) -> None:
    size = dist.get_world_size()
    for shapes in ([3, 5, 7], [300_000, 2, 1], [100_000, 200_000]):
        tensors = [torch.full((shape,), float(at + 1)) for at, shape in enumerate(shapes)]
        for wait in (True, False):
            with dist.distributed_c10d._coalescing_manager(async_ops=not wait) as together:
                for tensor in tensors:
                    dist.all_reduce(tensor)
            if not wait:
                together.wait()
        for at, tensor in enumerate(tensors):
            assert (tensor == (at + 1) * size * size).all()


def sums_of_world() -> int:
    """The number of the last sum through the switch."""
    numbers = [one["number"] for one in dist.group.WORLD._sums()._connection.operations()]
    return numbers[-1] if numbers else 0


@check
def reduce_scatters(gloo: Any) -> None:
    size = dist.get_world_size()
    for dtype in CARRIED + OTHERS:
        for operation in OPERATIONS:
            for length in (1, 63, 16_385):
                before = sums_of_world()
                given, ours = mine(length * size, dtype, length), torch.zeros(length, dtype=dtype)
                kept, theirs = given.clone(), torch.zeros(length, dtype=dtype)
                dist.reduce_scatter_tensor(ours, given, operation)
                assert torch.equal(given, kept), "the input stays as it was"
                goes = dtype in CARRIED and operation != dist.ReduceOp.PRODUCT
                assert sums_of_world() == before + goes
                dist.reduce_scatter_tensor(theirs, given, operation, group=gloo)
                same(ours, theirs)


@check
def the_mean_in_parts(gloo: Any) -> None:
    size = dist.get_world_size()
    for dtype in CARRIED[:3]:
        given, ours = mine(70 * size, dtype), torch.zeros(70, dtype=dtype)
        theirs = torch.zeros(70)
        dist.reduce_scatter_tensor(ours, given, dist.ReduceOp.AVG)
        dist.reduce_scatter_tensor(theirs, given.float(), group=gloo)
        same(ours, (theirs / size).to(dtype))


@check
def parts_of_any_size_and_layout(gloo: Any) -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    for lengths in (range(size), range(3, size + 3), [5] * size):
        given = [mine(length, torch.float32, at) for at, length in enumerate(lengths)]
        ours, theirs = torch.zeros(lengths[rank]), torch.zeros(lengths[rank])
        dist.reduce_scatter(ours, given)
        totals = [part.clone() for part in given]
        for total in totals:
            dist.all_reduce(total, group=gloo)
        theirs = totals[rank]
        same(ours, theirs)
    whole = torch.arange(6.0 * size).reshape(2 * size, 3)
    columns, wanted = torch.zeros(3, 2).t(), whole[2 * rank : 2 * rank + 2] * size
    dist.reduce_scatter_tensor(columns, whole.t().contiguous().t())
    assert torch.equal(columns, wanted)
    # As FSDP does: the result takes the place of this rank's part.
    place = whole[2 * rank : 2 * rank + 2]
    dist.reduce_scatter_tensor(place, whole)
    assert torch.equal(place, wanted)
    assert torch.equal(whole[2 * rank : 2 * rank + 2], wanted)


@check
def parts_of_several_tensors_and_their_handles(_: Any) -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    given = [torch.full((4 * size,), 1.0 + rank), torch.ones(100_000 * size)]
    parts = [torch.zeros(4), torch.zeros(100_000)]
    totals = [size * (size + 1) / 2, size]
    with dist.distributed_c10d._coalescing_manager(async_ops=True) as together:
        for part, whole in zip(parts, given, strict=True):
            dist.reduce_scatter_tensor(part, whole)
    together.wait()
    assert all((part == total).all() for part, total in zip(parts, totals, strict=True))
    work = dist.reduce_scatter_tensor(parts[0].zero_(), given[0], async_op=True)
    until = time.monotonic() + 20
    while not work.is_completed():
        assert time.monotonic() < until
    assert (parts[0] == totals[0]).all(), "completed means: the memory has the result"
    (result,) = work.get_future().wait()
    assert result is parts[0]
    scattered = functional.reduce_scatter_tensor(given[0], "sum", 0, dist.group.WORLD)
    assert (scattered + 0 == totals[0]).all()


@check
def parts_that_do_not_fit_are_torch_s_error(_: Any) -> None:
    size = dist.get_world_size()
    before = sums_of_world()
    for part, length in ((torch.zeros(3), 3 * size + 1), (torch.zeros(1).expand(3), 3 * size)):
        try:
            dist.reduce_scatter_tensor(part, torch.zeros(length))
        except (RuntimeError, ValueError):
            continue
        raise AssertionError("no error")
    assert sums_of_world() == before, "refused before the sum"


@check
def functional_collectives(_: Any) -> None:
    total = functional.all_reduce(torch.ones(4), "sum", dist.group.WORLD)
    assert (total + 0 == dist.get_world_size()).all()


@check
def broadcasts(gloo: Any) -> None:
    for dtype in (*CARRIED, *OTHERS, torch.bool):
        for root in range(dist.get_world_size()):
            ours, theirs = mine(2_221, dtype, root), mine(2_221, dtype, root)
            dist.broadcast(ours, root)
            dist.broadcast(theirs, root, group=gloo)
            assert torch.equal(ours, theirs)


@check
def everything_else(gloo: Any) -> None:
    """The collectives that gloo does underneath, and those of objects."""
    rank, size = dist.get_rank(), dist.get_world_size()
    values = torch.full((3,), float(rank))
    gathered = [torch.zeros(3) for _ in range(size)]
    dist.all_gather(gathered, values)
    assert [int(each[0]) for each in gathered] == list(range(size))
    joined = torch.zeros(3 * size)
    dist.all_gather_into_tensor(joined, values)
    assert torch.equal(joined, torch.cat(gathered))
    dist.reduce(values, 0)
    assert rank or (values == size * (size - 1) / 2).all()
    dist.gather(torch.ones(3), gathered if rank == 0 else None, 0)
    part = torch.zeros(3)
    dist.scatter(part, gathered if rank == 0 else None, 0)
    assert (part == 1).all()
    dist.reduce_scatter_tensor(part, torch.ones(3 * size))
    assert (part == size).all()
    swapped = torch.zeros(size)
    dist.all_to_all_single(swapped, torch.full((size,), float(rank)))
    assert swapped.tolist() == list(range(size))
    if rank == 0:
        dist.send(torch.ones(3), 1)
    elif rank == 1:
        dist.recv(part, 0)
        assert (part == 1).all()
    objects = [{"rank": rank}]
    dist.broadcast_object_list(objects, 0)
    assert objects == [{"rank": 0}]
    dist.barrier()


@check
def sparse_tensors(gloo: Any) -> None:
    place, value = torch.tensor([[dist.get_rank()]]), torch.ones(1)
    values = torch.sparse_coo_tensor(place, value, (8,))
    dist.all_reduce(values)
    assert values.to_dense().sum() == dist.get_world_size()


@check
def groups(_: Any) -> None:
    """Two halves at the same time, the whole, and a group of one."""
    rank, size = dist.get_rank(), dist.get_world_size()
    halves = [dist.new_group(list(range(half, size, 2))) for half in (0, 1)]
    alone = [dist.new_group([member]) for member in range(size)]
    group = halves[rank % 2]
    for at in range(5):
        tensor = torch.full((5_000,), float(rank))
        dist.all_reduce(tensor, group=group)
        assert (tensor == sum(range(rank % 2, size, 2))).all()
        dist.broadcast(tensor, rank % 2 + 2, group=group)
        dist.all_reduce(tensor.fill_(at))
        assert (tensor == at * size).all()
    dist.all_reduce(tensor, group=alone[rank])
    dist.destroy_process_group(group)


@check
def first_sums_of_groups_in_opposite_order(_: Any) -> None:
    """As in pipelines: each rank begins with another group, and waits for the results later."""
    rank, size = dist.get_rank(), dist.get_world_size()
    groups = [dist.new_group() for _ in range(2)]
    tensors = [torch.full((1_000,), float(at + 1)) for at in range(2)]
    order = [0, 1] if rank % 2 else [1, 0]
    # Beyond the first call of each group, too: they wait behind it.
    works = [
        dist.all_reduce(tensors[at], group=groups[at], async_op=True)
        for at in order
        for _ in range(2)
    ]
    world = torch.ones(10)
    dist.all_reduce(world)
    assert (world == size).all()
    for work in works:
        work.wait()
    for at, tensor in enumerate(tensors):
        assert (tensor == (at + 1) * size**2).all()
        dist.all_reduce(tensor.fill_(1.0), group=groups[at])
        assert (tensor == size).all()
        dist.destroy_process_group(groups[at])


@check
def destroyed_and_made_again(_: Any) -> None:
    """Runs last: the world of the other checks is gone."""
    dist.destroy_process_group()
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    # A file, because no port is sure to be free: other tests run at the same time.
    meeting = Path(sys.argv[1]) / "store"
    patience = timedelta(seconds=30)
    dist.init_process_group(
        "olaf", init_method=f"file://{meeting}", rank=rank, world_size=size, timeout=patience
    )
    tensor = torch.ones(100)
    dist.all_reduce(tensor)
    assert (tensor == size).all()


if __name__ == "__main__":
    main()
