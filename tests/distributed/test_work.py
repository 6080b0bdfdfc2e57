"""Handles, the lane, and which calls become which operations; no switch takes part."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from waiting import until

pytestmark = pytest.mark.torch


@pytest.fixture
def torch() -> Any:
    return importlib.import_module("torch")


class ByHand:
    """An operation that ends when the test says so."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._error: Exception | None = None
        self._calls: list[Callable[[Any], None]] = []

    def end(self, error: Exception | None = None) -> None:
        self._error = error
        self._ended.set()
        for call in self._calls:
            call(self)

    def wait(self, timeout_s: float | None = None) -> None:
        if not self._ended.wait(timeout_s):
            raise TimeoutError
        if self._error is not None:
            raise self._error

    def done(self) -> bool:
        return self._ended.is_set()

    def add_done_callback(self, call: Callable[[Any], None], /) -> None:
        self._calls.append(call)


def test_a_handle_ends_with_the_last_of_its_operations(torch: Any) -> None:
    from olaf.torch.work import SumWork

    first, second = ByHand(), ByHand()
    finished: list[int] = []
    tensor = torch.ones(2)
    work = SumWork([tensor], [first, second], finish=lambda: finished.append(1))
    future = work.get_future()
    first.end()
    assert not work.is_completed()
    assert not future.done()
    second.end()
    assert work.wait()
    assert work.is_success()
    assert future.wait()[0] is tensor
    assert finished == [1]


def test_an_error_comes_out_of_the_handle_and_of_its_future(torch: Any) -> None:
    from olaf.torch.failing import failure
    from olaf.torch.work import SumWork

    class DeadError(RuntimeError):
        culprit = 2

    pending = ByHand()
    work = SumWork([torch.ones(2)], [pending], explain=lambda error: failure(error, "the sum"))
    future = work.get_future()
    pending.end(DeadError("silent for 2 s"))
    with pytest.raises(torch.distributed.DistBackendError, match=r"the sum failed: .* \(rank 2\)"):
        work.wait()
    assert not work.is_success()
    assert isinstance(work.exception(), torch.distributed.DistBackendError)
    with pytest.raises(RuntimeError, match="rank 2"):
        future.wait()


def test_an_error_comes_out_of_a_future_of_half_precision(torch: Any) -> None:
    """Its type is known to C++ code: `test_collectives.py` has a hook that needs it."""
    from olaf.torch.work import SumWork

    pending = ByHand()
    future = SumWork([torch.ones(2, dtype=torch.float16)], [pending]).get_future()
    pending.end(RuntimeError("rank 2 died"))
    with pytest.raises(RuntimeError, match="rank 2 died"):
        future.wait()


def test_errors_advise_what_a_program_of_torch_can_do() -> None:
    """The texts of the core name its own options. Each of them stands there."""
    from pathlib import Path

    from olaf.torch.failing import ADVICE, advised

    source = Path(__file__).parents[2] / "crates" / "olaf-net" / "src" / "sum" / "error.rs"
    # A text of several lines has a backslash at the end of each.
    words = " ".join(source.read_text(encoding="utf-8").replace("\\\n", " ").split())
    for there, here in ADVICE.items():
        assert there in words, "the core says it in other words now"
        assert advised(f"the reason: {there}") == f"the reason: {here}"


def test_a_wait_with_a_limit_ends_and_the_operation_goes_on(torch: Any) -> None:
    from olaf.torch.work import SumWork

    pending = ByHand()
    work = SumWork([torch.ones(2)], [pending])
    with pytest.raises(torch.distributed.DistBackendError, match="the operation goes on"):
        work.wait(timedelta(milliseconds=1))
    pending.end()
    assert work.wait()


def test_a_handle_without_operations_has_ended(torch: Any) -> None:
    from olaf.torch.work import SumWork

    assert SumWork([]).is_completed()
    assert SumWork([]).get_future().wait() == []


def test_the_lane_keeps_the_order_and_survives_an_error() -> None:
    from olaf.torch.lane import Lane

    lane, seen, gate = Lane("test"), list[int](), threading.Event()

    def fail() -> None:
        raise ValueError("mine")

    first = lane.submit(lambda: gate.wait(30))
    failed = lane.submit(fail)
    rest = [lane.submit(partial(seen.append, at)) for at in range(3)]
    assert not lane.idle
    gate.set()
    first.result(30)
    with pytest.raises(ValueError, match="mine"):
        failed.result(30)
    for each in rest:
        each.result(30)
    assert seen == [0, 1, 2]
    until(lambda: lane.idle, "the lane to be idle")
    lane.stop()


def test_the_thread_of_a_lane_ends_when_nothing_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group of another backend that is destroyed tells the hook's lane nothing."""
    from olaf.torch import lane as module

    def threads() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name == "test-idle"]

    monkeypatch.setattr(module, "IDLE_S", 0.05)
    lane, seen = module.Lane("test-idle"), list[int]()
    assert not threads(), "no task, no thread"
    for at in range(3):
        lane.submit(partial(seen.append, at)).result(30)
        assert len(threads()) <= 1
        until(lambda: not threads(), "the thread to end")
    assert seen == [0, 1, 2]
    gate = threading.Event()
    first, later = lane.submit(lambda: gate.wait(30)), lane.submit(partial(seen.append, 3))
    lane.stop()
    gate.set()
    later.result(30)
    assert first.done()
    until(lambda: not threads(), "the thread to end")
    lane.submit(partial(seen.append, 4)).result(30)
    assert seen == [0, 1, 2, 3, 4]


def test_a_partial_sum_is_scaled_and_integers_have_none(torch: Any) -> None:
    from olaf.torch.calls import MAX, MEAN, SUM, all_reduce

    real = all_reduce(torch.ones(2), SUM, timeout_s=1, partial=True, size=4)
    assert (real.operation, real.partial, real.scale) == (MEAN, True, 4)
    real.finish()
    assert real.lanes.tolist() == [4, 4]
    whole = all_reduce(torch.ones(2).int(), SUM, timeout_s=1, partial=True, size=4)
    assert (whole.operation, whole.partial, whole.scale) == (SUM, False, 1)
    largest = all_reduce(torch.ones(2), MAX, timeout_s=1, partial=True, size=4)
    assert (largest.partial, largest.scale) == (True, 1)
    assert str(largest) == "all_reduce (max) of 2 x float32"


def test_which_tensors_go_through_the_switch(torch: Any) -> None:
    from olaf.torch.calls import carried

    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64):
        assert carried(torch.zeros(2, dtype=dtype))
    for dtype in (torch.float64, torch.bool, torch.uint8, torch.complex64):
        assert not carried(torch.zeros(2, dtype=dtype))
    assert not carried(torch.zeros(2).to_sparse())
    assert not carried(torch.zeros(2, device="meta"))


def test_tensors_on_a_gpu_are_staged(torch: Any) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no GPU here: the staging of CUDA tensors did NOT run")
    from olaf.torch.staging import Staging

    device = torch.device("cuda", 0)
    staging = Staging(device)
    for size in (3, 1000, 10):  # a larger one needs a larger buffer
        tensor = torch.arange(float(size), device=device)
        ready = staging.ready(tensor)
        staging.through(tensor, ready, lambda host: host.mul_(2))
        staging.stream.synchronize()
        assert torch.equal(tensor.cpu(), torch.arange(float(size)) * 2)


def test_every_call_that_gloo_does_runs_without_the_gil() -> None:
    from olaf.torch.process_group import THROUGH_GLOO, SumProcessGroup

    torch_names = vars(importlib.import_module("torch.distributed").ProcessGroup)
    inherited = [
        name for name in THROUGH_GLOO if name in torch_names and name not in vars(SumProcessGroup)
    ]
    assert not inherited, "these would hold the GIL while they wait for gloo's lock"
    assert "barrier" in vars(SumProcessGroup)
