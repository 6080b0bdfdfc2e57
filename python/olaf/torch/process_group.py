"""The backend `olaf` of `torch.distributed`: sums through the switch, the rest by gloo.

    import olaf.torch
    dist.init_process_group("olaf", init_method="env://")   # OLAF_SWITCH=host:port

`SumProcessGroup` is a process group in Python, as torch's extension point `register_backend`
allows. A gloo group is registered under it, so what it does not override goes by gloo.
"""

# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore,misc"

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from olaf.sums.protocols import PROTOCOLS
from olaf.torch import calls, detail, devices, expecting, paths, profiling
from olaf.torch.compiling import uncompiled
from olaf.torch.connecting import connect, fresh
from olaf.torch.devices import NAME
from olaf.torch.distributed import Gloo, Store, Work, dist
from olaf.torch.fall_back import FallBack
from olaf.torch.options import Settings, SumOptions, settings
from olaf.torch.sums import Sums

if TYPE_CHECKING:
    from olaf.sums.collective import Op, SumConnection

Tensors: TypeAlias = torch.Tensor | Sequence[torch.Tensor]


class SumProcessGroup(dist.ProcessGroup):
    """`all_reduce`, `reduce_scatter`, `broadcast` go through the switch if the tensor allows it."""

    def __init__(
        self,
        store: Store,
        rank: int,
        size: int,
        timeout: timedelta,
        chosen: Settings,
        *,
        is_world: bool,
        backends: Mapping[str, str],
    ) -> None:
        """backends: the backend of each device; ours is that of one of them at least."""
        try:
            super().__init__(store, rank, size)
        except TypeError:
            # torch 2.11 cannot make an object of a subclass together with a store. Our group uses
            # the store that it keeps itself.
            super().__init__(rank, size)
        store = self._store = fresh(store, size)
        self._timeout = timeout
        self._settings = chosen
        self._is_world = is_world
        self._is_alone = size == 1
        self._protocol = PROTOCOLS[chosen.protocol]
        self._lock = threading.Lock()
        self._made: Sums | None = None
        self._gloo = _gloo("gloo", store, rank, size, timeout)
        self._comparison = None
        if size > 1 and detail.is_wanted():
            self._comparison = detail.Comparison(_gloo("detail", store, rank, size, timeout))
        self._backends = dict(backends)
        self._devices = frozenset(device for device, name in backends.items() if name == NAME)
        self._beside = devices.beside(backends, self._gloo, store, timeout)
        for device, name in backends.items():
            kind = dist.Backend.backend_type_map["gloo" if name == NAME else name]
            self._register_backend(torch.device(device), kind, self._other_for(device))
        self._set_default_backend(dist.ProcessGroup.BackendType.GLOO)
        # A subgroup joins with its first sum: many programs make groups that never sum.
        if is_world and size > 1:
            self._sums()

    @uncompiled
    def allreduce(
        self, tensors: Tensors, opts: Any = None, op: Any = None, timeout: Any = None
    ) -> Work:
        """All-reduce one tensor in place. Like torch's groups, it takes options or an operation."""
        tensors, opts = _listed(tensors), _options(dist.AllreduceOptions, opts, timeout, op=op)
        operation = self._operation(tensors, opts)
        if operation is None or len(tensors) != 1:
            return self._other_for(tensors).allreduce(tensors, opts)
        with self._seen("all_reduce", operation, tensors, opts):
            return self._sums(wait=_waits(opts)).all_reduce(
                tensors, operation, timeout_s=self._limit(opts), wait=_waits(opts)
            )

    @uncompiled
    def allreduce_coalesced(self, tensors: Tensors, opts: Any = None) -> Work:
        """All-reduce several tensors in place. Small ones become one operation."""
        tensors, opts = _listed(tensors), opts or dist.AllreduceCoalescedOptions()
        operation = self._operation(tensors, opts)
        if operation is None:
            return self._other_for(tensors).allreduce_coalesced(tensors, opts)
        with self._seen("all_reduce_coalesced", operation, tensors, opts):
            return self._sums(wait=_waits(opts)).all_reduce(
                tensors, operation, timeout_s=self._limit(opts), wait=_waits(opts)
            )

    @uncompiled
    def broadcast(
        self, tensors: Tensors, opts: Any = None, root: int | None = None, timeout: Any = None
    ) -> Work:
        """Give every rank the tensor of the root."""
        tensors, opts = _listed(tensors), _options(dist.BroadcastOptions, opts, timeout, root=root)
        if not self._broadcasts(tensors) or len(tensors) != 1:
            return self._other_for(tensors).broadcast(tensors, opts)
        with self._seen("broadcast", f"from rank {opts.rootRank}", tensors, opts):
            return self._sums(wait=_waits(opts)).broadcast(
                tensors[0], opts.rootRank, timeout_s=self._limit(opts), wait=_waits(opts)
            )

    @uncompiled
    def reduce_scatter(
        self, outputs: Tensors, inputs: Any, opts: Any = None, op: Any = None, timeout: Any = None
    ) -> Work:
        """Reduce a list of parts, of any sizes; each rank gets the part at its place."""
        if isinstance(outputs, torch.Tensor):
            inputs = [inputs]
        outputs, opts = (
            _listed(outputs),
            _options(dist.ReduceScatterOptions, opts, timeout, op=op),
        )
        parts = [list(each) for each in inputs]
        rank, size = self.rank(), self.size()
        fits = len(parts) == len(outputs) and all(
            len(each) == size and each[rank].numel() == output.numel()
            for each, output in zip(parts, outputs, strict=True)
        )
        operation = self._scatters(outputs, parts, opts) if fits else None
        if operation is None:
            return self._other_for(outputs).reduce_scatter(outputs, parts, opts)
        return self._reduce_scattered("reduce_scatter", outputs, parts, operation, opts)

    @uncompiled
    def reduce_scatter_single(
        self, output: torch.Tensor, input_tensor: torch.Tensor, opts: Any = None
    ) -> Work:
        """Reduce a tensor; each rank gets the part at its place."""
        opts = _options(dist.ReduceScatterOptions, opts, None)
        operation = self._scatters([output], [[input_tensor]], opts)
        if operation is None or input_tensor.numel() != output.numel() * self.size():
            other = self._other_for(output)
            # Releases of torch before 2.15 have the other name alone.
            named = getattr(other, "reduce_scatter_single", None) or other._reduce_scatter_base
            return named(output, input_tensor, opts)
        parts = [list(input_tensor.detach().reshape(-1).chunk(self.size()))]
        return self._reduce_scattered("reduce_scatter", [output], parts, operation, opts)

    _reduce_scatter_base = reduce_scatter_single

    @uncompiled
    def reduce_scatter_single_coalesced(
        self, outputs: Tensors, inputs: Tensors, opts: Any = None
    ) -> Work:
        """Reduce several tensors. Small ones become one operation."""
        outputs, inputs = _listed(outputs), _listed(inputs)
        opts = _options(dist.ReduceScatterOptions, opts, None)
        fits = len(outputs) == len(inputs) and all(
            given.numel() == output.numel() * self.size()
            for given, output in zip(inputs, outputs, strict=True)
        )
        operation = self._scatters(outputs, [inputs], opts) if fits else None
        if operation is None:
            other = self._other_for(outputs)
            named = getattr(other, "reduce_scatter_single_coalesced", None)
            return (named or other.reduce_scatter_tensor_coalesced)(outputs, inputs, opts)
        parts = [list(given.detach().reshape(-1).chunk(self.size())) for given in inputs]
        return self._reduce_scattered("reduce_scatter_coalesced", outputs, parts, operation, opts)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def _scatters(
        self, outputs: list[torch.Tensor], inputs: Sequence[Sequence[torch.Tensor]], opts: Any
    ) -> Op | None:
        """The operation's name if the switch can do it. CUDA tensors go by gloo."""
        every = [*outputs, *(tensor for each in inputs for tensor in each)]
        alike = {(tensor.dtype, tensor.device.type) for tensor in every}
        if len(alike) != 1 or every[0].device.type != "cpu":
            return None
        return self._operation(every, opts)

    def _reduce_scattered(
        self,
        kind: str,
        outputs: list[torch.Tensor],
        inputs: list[list[torch.Tensor]],
        operation: Op,
        opts: Any,
    ) -> Work:
        with self._seen(kind, operation, [part for each in inputs for part in each], opts):
            return self._sums(wait=_waits(opts)).reduce_scatter(
                outputs,
                inputs,
                operation,
                rank=self.rank(),
                timeout_s=self._limit(opts),
                wait=_waits(opts),
            )

    @uncompiled
    def barrier(self, *args: Any, **options: Any) -> Work:
        """Gloo's barrier, behind the sums that have begun: as gloo's waits for its own."""
        with self._lock:
            made = self._made
        if made is not None:
            made.wait_for_all()
        device = getattr(next(iter(args), None), "device", None)
        return self._other_for(device.type if device else "cpu").barrier(*args, **options)

    def set_timeout(self, timeout: timedelta) -> None:
        """Change the time-out of the operations that follow."""
        super().set_timeout(timeout)
        self._timeout = timeout

    def split_group(
        self,
        ranks: Sequence[int],
        timeout: timedelta | None = None,
        opts: object = None,
        group_name: str | None = None,
        group_desc: str | None = None,
        **_: object,
    ) -> SumProcessGroup | None:
        """The group of these ranks; None at the others. opts: as `pg_options`."""
        if self.rank() not in ranks:
            return None
        part = SumProcessGroup(
            dist.PrefixStore(f"split/{group_name}", self._store),
            ranks.index(self.rank()),
            len(ranks),
            timeout or self._timeout,
            settings(opts) if isinstance(opts, SumOptions) else self._settings,
            is_world=False,
            backends=self._backends,
        )
        part._set_group_name(group_name or "")
        part._set_group_desc(group_desc or "")
        return part

    def shutdown(self) -> None:
        """Leave the job at the switch, and end gloo."""
        with self._lock:
            made, self._made = self._made, None
        if made is not None:
            made.close(self._timeout.total_seconds())
        for backend in {self._gloo, *self._beside.values()}:
            backend.shutdown()

    def getBackendName(self) -> str:  # noqa: N802 - torch's name
        """The name under which the backend is registered."""
        return NAME

    def __repr__(self) -> str:
        return f"{type(self).__name__}(rank={self.rank()}, size={self.size()})"

    def _seen(self, kind: str, which: str, tensors: list[torch.Tensor], opts: Any) -> Any:
        """A context for the call: the profiler sees it, and DETAIL compares it with the others'."""
        if self._comparison is not None:
            limit = timedelta(seconds=self._limit(opts))
            self._comparison.check(detail.signature(kind, which, tensors), limit)
        return profiling.event(f"{NAME}:{kind}", tensors)

    def _sums(self, *, wait: bool = True) -> Sums:
        """The connection; made at the first use, by all ranks together.

        wait: the caller waits for its result anyway, and so for the other ranks. Otherwise the
        group's lane makes the connection.
        """
        with self._lock:
            if self._made is None or self._made.could_not_join:
                # A fall-back's watcher and its lane need the connection from the start.
                is_late = not wait and not self._settings.falls_back
                own = _own_client(self._store) if is_late else None
                self._made = self._connect() if own is None else self._join_later(own)
            return self._made

    def _join_later(self, store: Store) -> Sums:
        return Sums(lambda: self._join(store), self._settings, size=self.size())

    def _join(self, store: Store) -> SumConnection:
        rank, size = self.rank(), self.size()
        connection = connect(
            self._settings,
            store,
            rank=rank,
            size=size,
            timeout=self._timeout,
            is_world=self._is_world,
        )
        if self._is_world and rank == 0:
            chosen = self._settings
            said = paths.announcement(size, chosen.switch, chosen.job, chosen.protocol)
            if chosen.protocol == "reduce":
                # The packets of the other protocols carry less.
                said += f"\nolaf: {expecting.expected(connection.stats(), size)}"
            print(said, file=sys.stderr, flush=True)
        # At the exit of a program that does not destroy its groups: the others then need not wait
        # until this worker counts as dead.
        weakref.finalize(self, connection.close)
        return connection

    def _connect(self) -> Sums:
        rank, size = self.rank(), self.size()
        connection = self._join(self._store)
        if not self._settings.falls_back:
            return Sums(connection, self._settings, size=size)
        spare = _gloo("spare", self._store, rank, size, self._timeout)
        return Sums(
            connection,
            self._settings,
            size=size,
            fall_back=lambda lane: FallBack(
                connection,
                lane,
                dist.PrefixStore("fall-back", self._store),
                spare,
                switch=self._settings.switch,
            ),
        )

    def _operation(self, tensors: Sequence[torch.Tensor], opts: Any) -> Op | None:
        """The operation's name if the switch can do it with these tensors."""
        if not self._carries(tensors):
            return None
        dtypes = [tensor.dtype for tensor in tensors]
        return paths.reduces(self._protocol, int(opts.reduceOp.op), dtypes)

    def _other_for(self, what: Any) -> devices.Backend:
        """What does a call that does not go through the switch: by device, or by the tensors'."""
        if not self._beside:
            return self._gloo
        device = what if isinstance(what, str) else devices.device_of(what)
        return self._beside.get(str(device), self._gloo)

    def _broadcasts(self, tensors: Sequence[torch.Tensor]) -> bool:
        dtypes = [tensor.dtype for tensor in tensors]
        return self._carries(tensors) and paths.broadcasts(self._protocol, dtypes)

    def _carries(self, tensors: Sequence[torch.Tensor]) -> bool:
        """The switch takes tensors like these in this group, if their types allow it."""
        if self._is_alone or not all(map(calls.carried, tensors)):
            return False
        if tensors and tensors[0].device.type not in self._devices:
            return False
        # The numbers of subgroups do not fit the packets of some protocols.
        return self._is_world or self._protocol.largest_job == 2**32 - 1

    def _limit(self, opts: Any) -> float:
        """Seconds that this operation may take; an unset time-out is negative."""
        timeout: timedelta = opts.timeout
        return (timeout if timeout > timedelta(0) else self._timeout).total_seconds()


THROUGH_GLOO = (
    *("monitored_barrier", "send", "recv", "recv_anysource"),
    *("reduce", "gather", "gather_single", "gather_into_tensor", "scatter"),
    *("allgather", "_allgather_base", "allgather_coalesced"),
    *("all_gather_single", "all_gather_single_coalesced"),
    *("alltoall", "alltoall_base", "all_to_all_single"),
)
"""Calls that gloo does. Not every version of torch has all of them."""


def _through_gloo(name: str) -> Any:
    """The method that hands a call to gloo.

    A method of `ProcessGroup` that a Python class does not override runs with the GIL held. It
    waits for a lock of gloo, whose threads wait for the GIL to free a tensor: a deadlock. Gloo's
    own methods release the GIL.
    """

    def call(self: SumProcessGroup, *args: Any, **options: Any) -> Any:
        other = self._other_for([*args, *options.values()])
        return getattr(other, name)(*args, **options)

    call.__name__ = name
    return uncompiled(call)


for _name in THROUGH_GLOO:
    if hasattr(dist.ProcessGroup, _name) and hasattr(dist.ProcessGroupGloo, _name):
        setattr(SumProcessGroup, _name, _through_gloo(_name))


def register() -> None:
    """Make `dist.init_process_group("olaf")` known to torch; once a process."""
    if not hasattr(dist.Backend, NAME.upper()):
        dist.Backend.register_backend(NAME, _make, extended_api=True, devices=list(calls.DEVICES))


def _make(options: Any, given: object) -> SumProcessGroup:
    return SumProcessGroup(
        options.store,
        options.group_rank,
        options.group_size,
        options.timeout,
        settings(given),
        # Only the world's list of ranks is empty.
        is_world=not options.global_ranks_in_group,
        backends=devices.asked(),
    )


def _gloo(name: str, store: Store, rank: int, size: int, timeout: timedelta) -> Gloo:
    return dist.ProcessGroupGloo(dist.PrefixStore(name, store), rank, size, timeout)


def _own_client(store: Store) -> Store | None:
    """A client of the store for another thread; None where this release of torch has no `clone`.

    Two threads that share a client wait for each other: a call that waits for a key keeps it.
    """
    clone = getattr(store, "clone", None)
    return None if clone is None else clone()


def _listed(tensors: Tensors) -> list[torch.Tensor]:
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)


def _options(kind: Any, given: Any, timeout: Any, *, op: Any = None, root: Any = None) -> Any:
    """Torch's options. Its groups also take the operation or the root in their place."""
    if isinstance(given, kind):
        return given
    options = kind()
    if kind is not dist.BroadcastOptions:
        options.reduceOp = next(one for one in (op, given, dist.ReduceOp.SUM) if one is not None)
    else:
        options.rootRank = next(one for one in (root, given, 0) if one is not None)
        options.rootTensor = 0
    if timeout is not None:
        options.timeout = timeout
    return options


def _waits(opts: Any) -> bool:
    """The caller waits anyway. Older releases of torch do not say."""
    return not getattr(opts, "asyncOp", True)
