"""A worker's end of a job, for the training loop you already have.

An update is what is to be *added* to the model: the server does ``w += learning_rate * update``.
So push the gradient of what should grow (``(-loss).backward()``), or the change that local
training made, divided by the server's learning rate.

No copy is made that need not be: float32 arrays and CPU tensors are read and written where they
lie, with the GIL released; other dtypes, devices and layouts go through one float32 copy.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from typing import Self

    from olaf._olaf import Client

Parts = list[NDArray[np.float32]]

Parameters = Any
"""An array, a torch tensor, a sequence of them, or a torch module."""


@dataclass(frozen=True)
class Model:
    """A whole model as it was at one version of the server."""

    version: int
    parts: Parts
    """Arrays of the shapes that were joined with, in their order."""


def connect(
    address: str,
    *,
    job: int = 1,
    cluster: int = 0,
    worker: int | None = None,
    **config: int | str,
) -> Connection:
    """Open a connection to the switch (or server) at ``udp://host:port``; nothing is sent yet.

    job: the job to take part in; workers of one job train one model.
    cluster: workers of one cluster share a slot of the switch's queue and hear the same answers.
    worker: this worker's id, unique in the job; None draws one.
    config: ``segment_lanes``, ``keepalive_ms``, ``silent_after_ms``, ``seed``, ``mtu_bytes``; of
        transmission control (OLAF §5) ``transmission`` ("off", "paper" or "fair"), ``unsent``
        ("carry", "discard" or "retry"), ``threshold_ms``, ``slope``, ``retry_ms``.

    Raises ValueError for an address or a key that cannot be used.
    """
    from olaf._olaf import Client

    for name, value in (("job", job), ("cluster", cluster), ("worker", worker)):
        if value is not None and not 0 <= value < 2**32 - 1:
            raise ValueError(f"{name} = {value}: must be from 0 to 4294967294")
    client = Client(address, job=job, cluster=cluster, worker=worker, config=json.dumps(config))
    return Connection(client)


class Connection:
    """Join, push, pull, leave. Made by `connect`; a context manager that leaves at its end.

    Not for several threads at once. Only `join`, `wait` and `flush` wait, each to its deadline.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._shapes: list[tuple[int, ...]] = []
        self._version = 0

    def join(self, weights: Parameters, timeout_s: float = 10.0) -> int:
        """Join the job and return the model's version; ``weights`` then hold the job's model.

        The first worker's weights become the job's first model. Later ones receive the model as
        it is, written into ``weights`` in place (weights that are read-only stay as they are:
        `pull` brings the model).

        Raises UnreachableError at the deadline, naming the peer, and RefusedError with the reason
        (id in use, model of another size, ..).
        """
        parts = _readable(weights)
        version = self._client.join(parts, timeout_s)
        self._shapes = [part.shape for part in parts]
        targets = _Targets.of(weights)
        if targets is not None:
            self._version = targets.fill(self._client, self._version) or self._version
        return version

    def push(self, gradients: Parameters, *, reward: float = 0.0, weight: float = 1.0) -> int:
        """Send one update and return its sequence number. Never waits for an answer.

        gradients: as `join` took weights, of the same sizes; of a torch module, the ``.grad`` of
        each parameter (zeros where there is none).
        reward: mean episode reward behind this update; the switch's reward gate compares it.
        weight: how much it counts when it is merged with others.
        """
        parts = _readable(gradients, gradient=True)
        return self._client.push(parts, reward=reward, weight=weight)

    @overload
    def pull(self, into: None = None) -> Model | None: ...
    @overload
    def pull(self, into: Parameters) -> int | None: ...
    def pull(self, into: Parameters = None) -> Model | int | None:
        """Take the newest whole model, if there is a newer one than last time. Never waits.

        Without ``into`` returns a `Model` of fresh arrays, or None. With ``into`` (arrays,
        tensors or a module) writes the model there in place and returns its version, or None.
        A torn mixture of two versions is never written.
        """
        if into is not None:
            targets = _Targets.of(into)
            if targets is None:
                raise ValueError("pull(into=..): an array there is read-only; pass a writable one")
            version = targets.fill(self._client, self._version)
            if version is not None:
                self._version = version
            return version
        if not self._shapes:
            raise ValueError("pull() before join(): join first, so that the model's size is known")
        parts = [np.empty(shape, np.float32) for shape in self._shapes]
        version = self._client.pull(parts, self._version)
        if version is None:
            return None
        self._version = version
        return Model(version, parts)

    def wait(self, timeout_s: float) -> bool:
        """Wait until there is a newer model than the one last taken; False at the deadline."""
        return self._client.wait(self._version, timeout_s) is not None

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Wait until everything pushed has left this machine; False at the deadline."""
        return self._client.flush(timeout_s)

    def move_to(self, cluster: int) -> None:
        """Go on in another cluster of the job; what is pushed from here on is that cluster's."""
        self._client.move_to(cluster)

    def leave(self) -> None:
        """Tell the job, then close. Calling it again does nothing."""
        self._client.leave()

    @property
    def version(self) -> int:
        """Version of the model last taken; 0 before the first."""
        return self._version

    @property
    def worker(self) -> int:
        """This worker's id in the job."""
        return self._client.worker

    def stats(self) -> dict[str, Any]:
        """Counters of this end, as in ``docs/reference/statistics.md#worker``."""
        stats: dict[str, Any] = json.loads(self._client.stats())
        return stats

    def events(self) -> list[dict[str, Any]]:
        """What happened since the last call: peers gone silent or back, .."""
        return [json.loads(event) for event in self._client.events()]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.leave()


class _Targets:
    """Where a model is written: arrays in place, then whatever has to be copied from them."""

    def __init__(self, parts: Parts, copies: list[Callable[[], object]]) -> None:
        self.parts = parts
        self._copies = copies

    @classmethod
    def of(cls, into: Parameters) -> _Targets | None:
        """The targets that ``into`` offers, or None if something in it cannot be written."""
        parts: Parts = []
        copies: list[Callable[[], object]] = []
        for item in _items(into):
            array = _shared(item)
            if array is not None and _is_plain(array):
                if not array.flags.writeable:
                    return None
                parts.append(array)
                continue
            # Another dtype, device or layout: receive as float32 here, convert over there.
            staging = np.empty(tuple(item.shape), np.float32)
            parts.append(staging)
            if _is_tensor(item):
                copies.append(partial(_copy_to_tensor, item, staging))
            elif item.flags.writeable:
                copies.append(partial(np.copyto, item, staging, "unsafe"))
            else:
                return None
        return cls(parts, copies)

    def fill(self, client: Client, newer_than: int) -> int | None:
        """Write the newest model, if it is newer; its version or None."""
        version = client.pull(self.parts, newer_than)
        if version is not None:
            for copy in self._copies:
                copy()
        return version


def _readable(values: Parameters, *, gradient: bool = False) -> Parts:
    """The values as contiguous float32 arrays, shared where that is what they are."""
    return [_contiguous(item) for item in _items(values, gradient=gradient)]


def _contiguous(item: Any) -> NDArray[np.float32]:
    array = _shared(item)
    if array is None:  # a tensor that numpy cannot see: another device, or bfloat16
        array = item.detach().float().cpu().numpy()
    if array.dtype.kind not in "fiu":
        raise ValueError(f"parameters must be real numbers, not {array.dtype}")
    return array if _is_plain(array) else np.ascontiguousarray(array, np.float32)


def _items(values: Parameters, *, gradient: bool = False) -> Sequence[Any]:
    """The arrays and tensors that ``values`` is made of, in order."""
    if _is_module(values):
        parameters = list(values.parameters())
        if not gradient:
            return parameters
        if all(p.grad is None for p in parameters):
            raise ValueError("the module has no gradients: call backward() before push()")
        return [
            np.zeros(tuple(p.shape), np.float32) if p.grad is None else p.grad for p in parameters
        ]
    if _is_tensor(values) or isinstance(values, np.ndarray):
        return [values]
    if isinstance(values, Iterable) and not isinstance(values, str | bytes | dict):
        items = list(values)
        if items and all(_is_tensor(item) or isinstance(item, np.ndarray) for item in items):
            return items
    raise ValueError(
        "expected an array, a torch tensor, a sequence of them or a torch module, "
        f"not {type(values).__name__}"
    )


def _shared(item: Any) -> NDArray[Any] | None:
    """The memory of an array or CPU tensor as numpy sees it, or None where numpy cannot."""
    if isinstance(item, np.ndarray):
        return item
    try:
        array: NDArray[Any] = item.detach().numpy()
    except (TypeError, RuntimeError):
        return None
    return array


def _is_plain(array: NDArray[Any]) -> bool:
    return array.dtype == np.float32 and array.flags.c_contiguous and array.dtype.isnative


def _copy_to_tensor(tensor: Any, staging: NDArray[np.float32]) -> None:
    torch = sys.modules["torch"]
    tensor.detach().copy_(torch.from_numpy(staging))


# torch is looked up, never imported: who has no tensor pays nothing for it.
def _is_tensor(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_module(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)
