"""Records the all-reduces of a PyTorch program's step, without a change to its model.

A program that trains with DistributedDataParallel:

    recorder = Recorder(steps=20, warmup=5)
    recorder.watch(ddp_model)
    for batch in loader:
        ...                                # the loop as it was
        if recorder.complete:
            recorder.write("mine.json", model="mine", batch=32)
            break

A program that calls ``torch.distributed.all_reduce`` itself:

    with recorder.calls():
        for batch in loader:
            ...                            # the loop as it was
            recorder.step()

``olaf.schedule.recording`` defines the measurement, docs/patterns.md explains the numbers.
"""

# mypy checks this file with and without torch; without it everything of torch is Any.
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
    """Observes the launch of all-reduces and the waits for them, and makes a pattern.

    steps: number of steps for the median. warmup: number of steps to skip first; DDP arranges its
    buckets again after the first step, and allocators and caches settle in a few more.

    clock: "wall", or "cpu": the CPU time of the training thread, which other programs on the same
    cores do not lengthen. Valid only for a program that computes in that thread alone, on the CPU.

    Every process of a job may have a recorder; each records its own, and one of them writes.
    """

    def __init__(self, *, steps: int = 20, warmup: int = 5, clock: str = "wall") -> None:
        if clock not in CLOCKS:
            raise ValueError(f"clock = {clock!r}: must be one of {', '.join(CLOCKS)}")
        self._recording = Recording(steps, warmup)
        self._clock = clock
        self._device = torch.device("cpu")
        self._dtypes: set[str] = set()
        self._by_hand = False
        self._in_backward = False
        self._in_hook = False

    @property
    def complete(self) -> bool:
        """True once all steps are recorded."""
        return self._recording.complete

    @property
    def count(self) -> int:
        """Number of observed steps, including the warm-up."""
        return self._recording.count

    def watch(
        self, model: DistributedDataParallel, hook: Hook = allreduce_hook, state: Any = None
    ) -> None:
        """Record the gradients' all-reduces of a model; each of its buckets is one.

        hook, state: the function that sums the buckets, as for ``register_comm_hook``. DDP takes
        only one hook, so a program with a hook must pass it here. Default: the mean, as without a
        hook. If a hook sends less than a bucket, the bucket is recorded.

        A step ends with each backward pass that sums gradients; those under ``no_sync()`` are part
        of the step. After the last step nothing is measured; the hook stays, and sums. Raises
        RuntimeError, from torch, if the model has a hook already.
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

        A call without a handle is waited for at once; with ``async_op=True`` the program waits when
        it calls the handle's ``wait``. Call ``step()`` once per step. A name that was imported from
        torch.distributed before the block is not observed.
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
        """Mark the end of a step, at any point after its last wait.

        After the first call, only these calls count steps; use it for programs whose step has more
        than one backward pass.
        """
        if not self._by_hand:
            self._by_hand = True
            self._recording.restart()
        self._recording.stepped(self._now_ns())

    def pattern(self) -> Pattern:
        """The recorded pattern. Raises RecordingError if there is none, or not yet."""
        return self._recording.result()

    def write(self, path: Path | str, **about: Any) -> Pattern:
        """Write the pattern file, with a description.

        about: ``model="resnet18", batch=8`` and other facts that identify the recording.
        Raises RecordingError if the observations make no pattern, or not yet.
        """
        pattern = self.pattern()
        pattern.write(path, **self.circumstances(), **about)
        return pattern

    def circumstances(self) -> dict[str, Any]:
        """The setting of the recording: dtype, device, clock, threads, processes, version of
        torch."""
        return {
            "dtype": ", ".join(sorted(self._dtypes)),
            "device": self._device.type,
            "clock": self._clock,
            "threads": torch.get_num_threads(),
            "processes": dist.get_world_size() if dist.is_initialized() else 1,
            "torch": torch.__version__,
        }

    def _ready(self, buffer: torch.Tensor) -> None:
        """Take a bucket whose gradients are ready."""
        self._launched(buffer)
        if not self._in_backward:
            # DDP waits in a callback of the engine, which it queues when the last bucket is ready.
            # So our callback, queued at the first, runs before it, and one queued by ours runs
            # after it.
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
        """The time at which all work launched so far on the device is done."""
        if self._device.type != "cpu":
            # Launching runs ahead of computing; wait only for this stream, so that sums still
            # overlap.
            torch.accelerator.current_stream().synchronize()
        return CLOCKS[self._clock]()


class _Watched:
    """An all-reduce under way, like torch's handle, that reports when it is waited for."""

    def __init__(self, work: Any, recorder: Recorder) -> None:
        self._work = work
        self._recorder = recorder

    def wait(self, *arguments: Any, **named: Any) -> Any:
        with self._recorder._wait():
            return self._work.wait(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)
