"""Any optimizer of torch, with the gradients of all workers.

    job = olaf.connect_sum("10.0.0.1:5555", workers=4)
    olaf.torch.broadcast_parameters(model, job)
    optimizer = olaf.torch.DistributedOptimizer(optimizer, through=job)

`backward` then leaves the mean over all workers in each gradient; nothing else changes. Two other
modes wait for nobody.
"""

# mypy: disable-error-code="import-untyped,import-not-found,misc,no-any-return,override"

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Literal, NoReturn, Self

import torch

from olaf.push_pull.connection import Connection
from olaf.push_pull.following import PATIENCE_S
from olaf.sums.collective import SumConnection
from olaf.torch import pipelined
from olaf.torch.gradient_sums import GradientSums
from olaf.torch.ways import Pushed, Summed, Way

BUCKET_BYTES = 1 << 20
"""Small enough that the sum of the last layers begins early, large enough for the line rate."""
OPTIONS: dict[str, dict[str, Any]] = {
    "sum": {"overlap": True, "bucket_bytes": BUCKET_BYTES, "exact": False},
    "pipeline": {"iterations": None, "staleness": 3, "iteration": 0, "scheduler": None},
    "push": {"every": 1, "patience_s": PATIENCE_S},
}
"""Mode -> the options that it alone has, with their defaults."""


class DistributedOptimizer(torch.optim.Optimizer):
    """The wrapped optimizer of a worker: its steps are those of a job.

    It is a `torch.optim.Optimizer`, for learning-rate schedulers and `torch.amp.GradScaler`.
    Groups, state and `state_dict` are those of the wrapped optimizer: a checkpoint fits both.
    """

    _step_supports_amp_scaling = False  # of a fused optimizer: GradScaler then unscales itself

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        *,
        through: SumConnection | Connection | None,
        mode: Literal["sum", "pipeline", "push"] = "sum",
        timeout_s: float | None = None,
        overlap: bool | None = None,
        bucket_bytes: int | None = None,
        exact: bool | None = None,
        iterations: int | None = None,
        staleness: int | None = None,
        iteration: int | None = None,
        scheduler: Any = None,
        every: int | None = None,
        patience_s: float | None = None,
    ) -> None:
        """Every worker wraps the same parameters in the same order.

        optimizer: any, except those that need a closure.
        through: the worker's connection: of `olaf.connect_sum` for "sum" and "pipeline", of
        `olaf.connect` for "push". None for a single worker, without a switch.
        mode: "sum", each step applies the mean gradient of all workers;
        "pipeline", Algorithm 1 of iSwitch (§4.1): a step sends a gradient and waits for nobody,
        and a thread applies the mean of each iteration;
        "push", OLAF: each step is this worker's own, its change of the model goes to the queue, and
        the job's model comes back.
        timeout_s: time limit of each sum; None uses ``operation_timeout_ms`` of the connection.
        With "push" that of the join, 10 s by default.

        Options of "sum":
        overlap (True): the sums begin while `backward` runs, and its end waits for them. With False
        `step` sums, and `backward` leaves this worker's own gradients.
        bucket_bytes (1 MiB): bytes that are summed together, at least 1.
        exact (False): the same bits in every run, see `SumConnection.all_reduce`; "reduce" alone.

        Options of "pipeline":
        iterations: updates of the weights until `is_over`; it has no default.
        staleness (3): a gradient is sent if at most this number of iterations have ended since its
        copy of the weights (S of the paper).
        iteration (0): updates that this worker's weights have already. All workers begin with the
        weights, the state of optimizer and scheduler, and the iteration of the furthest worker.
        scheduler (None): a `torch.optim.lr_scheduler` of the bare optimizer. It is stepped once an
        iteration, at all workers alike; the program does not step it.

        Options of "push":
        every (1): steps between two pushes. patience_s (0.05): seconds that a push waits for its
        answer; 0 never waits. The model joins the job here, and then holds the job's model.

        Raises ValueError and TypeError for an argument that cannot be; "pipeline" raises as
        `SumConnection.broadcast` does, and "push" as `Connection.join` does.
        """
        # differs: Optimizer.__init__ is not called: groups and state are the wrapped optimizer's.
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise TypeError(
                f"optimizer is {type(optimizer).__name__}: must be a torch.optim.Optimizer"
            )
        if isinstance(optimizer, DistributedOptimizer):
            raise ValueError("optimizer is a DistributedOptimizer already: wrap it once")
        if isinstance(optimizer, torch.optim.LBFGS):
            raise ValueError(f"optimizer is LBFGS, which needs a closure: {NO_CLOSURE}")
        self._optimizer = optimizer
        self._mode = mode
        given = {
            "overlap": overlap,
            "bucket_bytes": bucket_bytes,
            "exact": exact,
            "iterations": iterations,
            "staleness": staleness,
            "iteration": iteration,
            "scheduler": scheduler,
            "every": every,
            "patience_s": patience_s,
        }
        chosen = _options(mode, {name: value for name, value in given.items() if value is not None})
        self._way = _way(optimizer, mode, _checked(mode, through), timeout_s, chosen)

    def step(self, closure: None = None) -> None:
        """One step of the wrapped optimizer, through the network.

        "sum": with the mean gradients. It sums first what `backward` has not: gradients from
        inside `no_sync`, or with ``overlap=False``, or after an error. Raises as
        `SumConnection.all_reduce` does; nothing has been applied then.
        "pipeline": send the gradient, then copy the newest weights into the model. A worker that
        is ahead waits for the next iteration (`surplus` and `without_sum` of `gradients`). Raises
        SumError if an iteration failed, the same one at all workers; the model then has the weights
        after the last iteration.
        "push": a step of this worker, and an exchange. Nobody is waited for longer than
        ``patience_s``, also when switch or server do not answer.
        """
        if closure is not None:
            raise ValueError(f"step(closure) is not possible: {NO_CLOSURE}")
        self._way.step()

    def synchronize(self) -> None:
        """Mode "sum": replace the gradients by their means now, if they are not yet. ::

            with optimizer.no_sync():
                loss.backward()  # this worker's own gradients
            optimizer.synchronize()  # means
            optimizer.step()

        Mode "push": exchange now. Mode "pipeline": ValueError. Raises as `step` does.
        """
        self._way.synchronize()

    def no_sync(self) -> AbstractContextManager[None]:
        """`backward` inside adds to this worker's own gradients, and sums nothing."""
        return self._way.no_sync()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """See `torch.optim.Optimizer.zero_grad`."""
        self._way.zero_grad(set_to_none)

    def close(self) -> None:
        """End the work of the wrapper, before the connection is closed. Idempotent.

        "pipeline": give the optimizer back, with the newest weights in the model. Before the last
        iteration the training fails at the other workers.
        "push": push what was not pushed yet, and wait for up to 2 s until it has arrived.

        The end of a `with` calls it: ``with DistributedOptimizer(..) as optimizer:``.
        """
        self._way.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def is_over(self) -> bool:
        """Mode "pipeline": the last `step` found all iterations done, or failed, or `close` came.

        The model then has the weights after `iteration`, which are equal at all workers.
        """
        return self._pipeline.is_over

    @property
    def iteration(self) -> int:
        """Mode "pipeline": updates of the weights so far. It may change at any time."""
        return self._pipeline.iteration

    @property
    def gradients(self) -> dict[str, int]:
        """Mode "pipeline": gradients of this worker by fate, see `PipelinedTraining.commit`."""
        return self._pipeline.gradients

    @property
    def staleness(self) -> dict[int, int]:
        """Mode "pipeline": staleness in iterations -> number of gradients that had it."""
        return self._pipeline.staleness

    def newest(self) -> AbstractContextManager[None]:
        """Mode "pipeline": inside, the model has the newest weights, and no update comes. ::

        with optimizer.newest():
            torch.save([model.state_dict(), optimizer.state_dict(), optimizer.iteration], path)
        """
        return self._pipeline.held()

    @property
    def reward(self) -> float:
        """Mode "push": mean reward of an episode, for queue and server; set it before `step`."""
        self._need_push()
        return self._way.reward

    @reward.setter
    def reward(self, reward: float) -> None:
        self._need_push()
        self._way.reward = reward

    def state_dict(self) -> dict[str, Any]:
        """The wrapped optimizer's, which either of the two can load."""
        return self._way.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """See `torch.optim.Optimizer.load_state_dict`."""
        self._way.load_state_dict(state_dict)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, at all workers at the same point of the program."""
        self._way.add_param_group(param_group)

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The wrapped optimizer's groups; read-only while a pipeline runs."""
        return self._way.groups

    @property
    def state(self) -> Any:
        """The wrapped optimizer's state of each parameter."""
        return self._optimizer.state

    @property
    def defaults(self) -> dict[str, Any]:
        """The wrapped optimizer's default options."""
        return self._optimizer.defaults

    @property
    def wrapped(self) -> torch.optim.Optimizer:
        """The wrapped optimizer."""
        return self._optimizer

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> Any:
        """The hook gets the wrapped optimizer, whose gradients are means."""
        self._way.check_hook()
        return self._optimizer.register_step_pre_hook(hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> Any:
        """The hook gets the wrapped optimizer."""
        self._way.check_hook()
        return self._optimizer.register_step_post_hook(hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Any:
        """The hook gets the wrapped optimizer."""
        return self._optimizer.register_state_dict_pre_hook(hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Any:
        """The hook gets the wrapped optimizer."""
        return self._optimizer.register_state_dict_post_hook(hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> Any:
        """The hook gets the wrapped optimizer."""
        return self._optimizer.register_load_state_dict_pre_hook(hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> Any:
        """The hook gets the wrapped optimizer."""
        return self._optimizer.register_load_state_dict_post_hook(hook, prepend)

    @property
    def _pipeline(self) -> pipelined.Pipelined | pipelined.Alone:
        if not isinstance(self._way, pipelined.Pipelined | pipelined.Alone):
            raise ValueError(f'mode = {self._mode!r}: only mode = "pipeline" has iterations')
        return self._way

    def _need_push(self) -> None:
        if self._mode != "push":
            raise ValueError(f'mode = {self._mode!r}: only mode = "push" sends a reward')

    def __getattr__(self, name: str) -> Any:
        """Options and methods of its own that the wrapped optimizer has."""
        if name == "_optimizer":  # before __init__ has set it
            raise AttributeError(name)
        return getattr(self._optimizer, name)

    def __getstate__(self) -> NoReturn:
        raise TypeError(
            "a DistributedOptimizer belongs to its connection and cannot be copied or pickled: "
            "save optimizer.state_dict()"
        )

    def __repr__(self) -> str:
        return f"DistributedOptimizer({self._optimizer!r})"


def _options(mode: str, given: dict[str, Any]) -> dict[str, Any]:
    """The options of the mode. Raises ValueError."""
    if mode not in OPTIONS:
        raise ValueError(f"mode = {mode!r}: must be one of {', '.join(OPTIONS)}")
    for name in given:
        if name not in OPTIONS[mode]:
            (owner,) = (other for other, options in OPTIONS.items() if name in options)
            raise ValueError(f"{name} is an option of mode = {owner!r}, and mode is {mode!r}")
    chosen = OPTIONS[mode] | given
    if chosen.get("iterations", 0) is None:
        raise ValueError(
            'mode = "pipeline" needs iterations, the number of updates until the training is over: '
            "it is the same at all workers"
        )
    if chosen.get("bucket_bytes", 1) < 1:
        raise ValueError(f"bucket_bytes = {chosen['bucket_bytes']}: must be at least 1")
    return chosen


def _checked(mode: str, through: Any) -> SumConnection | Connection | None:
    """The connection; None for a single worker. Raises TypeError for one of another kind."""
    wanted, call = (Connection, "connect") if mode == "push" else (SumConnection, "connect_sum")
    if through is not None and not isinstance(through, wanted):
        raise TypeError(
            f"through is {type(through).__name__}: mode = {mode!r} needs a connection of "
            f"olaf.{call}, or None for a single worker"
        )
    if isinstance(through, SumConnection) and through.is_alone:
        return None
    return through


def _way(
    optimizer: torch.optim.Optimizer,
    mode: str,
    through: SumConnection | Connection | None,
    timeout_s: float | None,
    options: dict[str, Any],
) -> Way:
    if isinstance(through, Connection):
        return Pushed(optimizer, through, join_timeout_s=timeout_s, **options)
    if mode == "pipeline":
        if through is None:
            names = ("iterations", "iteration", "scheduler")
            return pipelined.Alone(optimizer, *(options[name] for name in names))
        return pipelined.Pipelined(optimizer, through, timeout_s=timeout_s, **options)
    if through is None:
        return Way(optimizer)
    return Summed(optimizer, GradientSums(optimizer, through, timeout_s=timeout_s, **options))


NO_CLOSURE = (
    "the optimizer would call it a number of times that may differ between the workers; call "
    "loss.backward() before step()"
)
