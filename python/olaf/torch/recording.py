"""Records what a PyTorch program communicates in a step, without a change to its model.

A program that trains with DistributedDataParallel:

    recorder = Recorder(steps=20, warmup=5)
    recorder.watch(ddp_model)
    for batch in loader:
        ...                                # the loop as it was
        if recorder.complete:
            recorder.write("mine.json", model="mine", batch=32)
            break

One that calls ``torch.distributed.all_reduce`` itself:

    with recorder.calls():
        for batch in loader:
            ...                            # the loop as it was
            recorder.step()

See ``olaf.schedule.recording`` for what is measured, docs/patterns.md for what the numbers mean.
"""

# Checked with torch installed and without: then everything torch is Any.
# mypy: disable-error-code="import-untyped,import-not-found,no-any-return,misc"
# mypy: disable-error-code="name-defined,attr-defined,no-untyped-call"
# No `from __future__ import annotations` here: torch reads the hook's annotations as types.

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.autograd.variable import Variable
from torch.distributed import distributed_c10d
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

from olaf.schedule.recording import Pattern, Recording, RecordingError

__all__ = ["Recorder", "RecordingError"]

Hook = Callable[[Any, dist.GradBucket], torch.futures.Future[torch.Tensor]]


CLOCKS = {"wall": time.perf_counter_ns, "cpu": time.thread_time_ns}


class Recorder:
    """Sees all-reduces being launched and waited for, and makes a pattern of it.

    steps: to keep and take the median of. warmup: to forget first; DDP arranges its buckets anew
    after the first step, and allocators and caches settle in some more.

    clock: "wall", or "cpu": what the training thread computed, which does not grow when others
    want the same cores. Right only for a program that computes in that thread alone, on the CPU.

    Every process of a job may have one; each records its own, and one of them writes.
    """

    def __init__(self, *, steps: int = 20, warmup: int = 5, clock: str = "wall") -> None:
        if clock not in CLOCKS:
            raise ValueError(f"clock = {clock!r}: one of {', '.join(CLOCKS)}")
        self._recording = Recording(steps, warmup)
        self._clock = clock
        self._device = torch.device("cpu")
        self._dtypes: set[str] = set()
        self._by_hand = False
        self._in_backward = False
        self._in_hook = False

    @property
    def complete(self) -> bool:
        """Has it seen all the steps that it wants?"""
        return self._recording.complete

    @property
    def count(self) -> int:
        """Steps seen so far, those for warming up among them."""
        return self._recording.count

    def watch(
        self, model: DistributedDataParallel, hook: Hook = allreduce_hook, state: Any = None
    ) -> None:
        """Record the gradients' all-reduces of a model, each of its buckets one.

        hook, state: how its buckets are summed, as for ``register_comm_hook``: DDP takes one hook,
        so a program that has one gives it to us. Default: the mean, as without a hook. What a hook
        sends may be less than a bucket; it is the bucket that is recorded.

        A step ends with each backward pass that sums gradients; those under ``no_sync()`` are part
        of the step. Once complete nothing is measured any more; the hook stays, and sums.
        Raises RuntimeError, from torch, if the model has a hook already.
        """

        def recorded(state: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
            if not self.complete:
                self._ready(bucket.buffer())
            self._in_hook = True
            try:
                return hook(state, bucket)
            finally:
                self._in_hook = False

        model.register_comm_hook(state, recorded)

    @contextmanager
    def calls(self) -> Iterator["Recorder"]:
        """Record each call of ``torch.distributed.all_reduce`` until the end of the block.

        A call that does not return a handle is waited for at once; with ``async_op=True`` the
        program waits when it calls the handle's ``wait``. Call ``step()`` once a step. A name that
        was imported from torch.distributed before the block is not seen.
        """
        original = dist.all_reduce

        def all_reduce(
            tensor: torch.Tensor,
            op: Any = dist.ReduceOp.SUM,
            group: Any = None,
            async_op: bool = False,
        ) -> Any:
            if self._in_hook or self.complete:
                return original(tensor, op, group, async_op)
            self._launched(tensor)
            if async_op:
                work = original(tensor, op, group, async_op)
                return work if work is None else _Watched(work, self)
            with self._wait():
                return original(tensor, op, group, async_op)

        dist.all_reduce = distributed_c10d.all_reduce = all_reduce
        try:
            yield self
        finally:
            dist.all_reduce = distributed_c10d.all_reduce = original

    def step(self) -> None:
        """Say that a step is over, anywhere after its last wait.

        From the first call on these calls alone count steps: for programs whose step has more than
        one backward pass, too.
        """
        if not self._by_hand:
            self._by_hand = True
            self._recording.restart()
        self._recording.stepped(self._now_ns())

    def pattern(self) -> Pattern:
        """What was recorded. Raises RecordingError if it makes no pattern, or not yet."""
        return self._recording.result()

    def write(self, path: Path | str, **about: Any) -> Pattern:
        """Write the pattern file, and say in it what it is a pattern of.

        about: ``model="resnet18", batch=8`` and whatever else tells recordings apart.
        Raises RecordingError if what was seen makes no pattern, or not yet.
        """
        pattern = self.pattern()
        pattern.write(path, **self.circumstances(), **about)
        return pattern

    def circumstances(self) -> dict[str, Any]:
        """On what was recorded: dtype, device, clock, threads, processes, version of torch."""
        return {
            "dtype": ", ".join(sorted(self._dtypes)),
            "device": self._device.type,
            "clock": self._clock,
            "threads": torch.get_num_threads(),
            "processes": dist.get_world_size() if dist.is_initialized() else 1,
            "torch": torch.__version__,
        }

    def _ready(self, buffer: torch.Tensor) -> None:
        """A bucket's gradients are there."""
        self._launched(buffer)
        if not self._in_backward:
            # DDP waits in a callback of the engine, which it queues when the last bucket is ready.
            # So ours, queued at the first, runs before it, and one that ours queues after it.
            self._in_backward = True
            Variable._execution_engine.queue_callback(self._backward_waits)

    def _backward_waits(self) -> None:
        self._recording.waiting(self._now_ns())
        Variable._execution_engine.queue_callback(self._backward_waited)

    def _backward_waited(self) -> None:
        now_ns = self._now_ns()
        self._in_backward = False
        self._recording.waited(now_ns)
        if not self._by_hand:
            self._recording.stepped(now_ns)

    def _launched(self, tensor: torch.Tensor) -> None:
        self._device = tensor.device
        self._dtypes.add(str(tensor.dtype).removeprefix("torch."))
        self._recording.started(self._now_ns(), tensor.numel() * tensor.element_size())

    @contextmanager
    def _wait(self) -> Iterator[None]:
        self._recording.waiting(self._now_ns())
        try:
            yield
        finally:
            self._recording.waited(self._now_ns())

    def _now_ns(self) -> int:
        """The time when everything that was launched so far on the device is computed."""
        if self._device.type != "cpu":
            # Launching runs ahead of computing; only this stream, so that sums still overlap.
            torch.accelerator.current_stream().synchronize()
        return CLOCKS[self._clock]()


class _Watched:
    """An all-reduce under way, as torch's handle, that tells when it is waited for."""

    def __init__(self, work: Any, recorder: Recorder) -> None:
        self._work = work
        self._recorder = recorder

    def wait(self, *arguments: Any, **named: Any) -> Any:
        with self._recorder._wait():
            return self._work.wait(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)
