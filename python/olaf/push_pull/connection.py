"""A worker's connection to a job, for your existing training loop.

Three calls push an update:

- ``push_delta(before, after)``: the model should move by ``after - before``;
- ``push_gradient(module, learning_rate=..)``: a descent step, ``-learning_rate * gradient``;
- ``push(update)``: the primitive under both.

The server computes ``model += factor * k^-power * update`` while k workers push. The factor is 1
unless the server is configured otherwise; `Connection.rule` holds the rule after ``join``.

Copies are avoided: float32 arrays and CPU tensors are read and written in place, with the GIL
released. Other dtypes, devices and layouts go through one float32 copy.
"""

from __future__ import annotations

import json
import logging
import math
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np

from olaf.errors.telling import tell
from olaf.files.keyfile import with_key
from olaf.memory.parameters import (
    Parameters,
    Parts,
    Scratch,
    Targets,
    gradients,
    is_module,
    is_parameter,
    items,
    layout,
    readable,
)
from olaf.processes import forking
from olaf.push_pull.movement import Movement
from olaf.push_pull.rule import Rule

if TYPE_CHECKING:
    from typing import Self

    from olaf._olaf import Client


@dataclass(frozen=True)
class Model:
    """A whole model at one version of the server."""

    version: int
    parts: Parts
    """Float32 arrays with the shapes and the order of the joined model."""


def connect(
    address: str,
    *,
    job: int = 1,
    cluster: int = 0,
    worker: int | None = None,
    quiet: bool = False,
    **config: int | str,
) -> Connection:
    """Open a connection to the switch (or server) at ``udp://host:port``; nothing is sent yet.

    job: number of the job; the workers of one job train one model.
    cluster: number of this worker's cluster; its workers share a slot of the switch's queue and
    receive the same answers.
    worker: number of this worker, unique in the job; None draws a random one.
    quiet: log only warnings. Otherwise ``join`` logs one line about the effect of a push to the
    logger ``olaf``, or to stderr if the program has not configured logging.
    config: ``segment_lanes``, ``keepalive_ms``, ``silent_after_ms``, ``seed``, ``mtu_bytes``,
    ``ecn``, ``key_file`` (the key of the job, `olaf keys`; without it OLAF_KEY_FILE of the
    environment); for transmission control (OLAF §5) ``transmission`` ("off", "paper" or "fair"),
    ``unsent`` ("carry", "discard" or "retry"), ``threshold_ms``, ``slope``, ``retry_ms``.

    Raises ValueError for an invalid address or key.
    """
    from olaf._olaf import Client

    for name, value in (("job", job), ("cluster", cluster), ("worker", worker)):
        if value is not None and not 0 <= value < 2**32 - 1:
            raise ValueError(f"{name} = {value}: must be from 0 to 4294967294")
    told = json.dumps(with_key(config))
    client = Client(address, job=job, cluster=cluster, worker=worker, config=told)
    return Connection(client, address=address, job=job, quiet=quiet)


class Connection:
    """Join, push, pull, close. `connect` makes it; a context manager that closes at its end.

    Use a connection from one thread at a time; only ``stats`` and ``events`` may be called from any
    thread. Only `join`, `wait` and `flush` wait, each until its deadline.

    A connection belongs to the process that made it. In a child that `os.fork` made later each use
    raises RuntimeError, and the end of the child tells nobody anything.
    """

    def __init__(
        self, client: Client, *, address: str = "", job: int = 1, quiet: bool = False
    ) -> None:
        self._client = client
        self._address = address.removeprefix("udp://")
        self._job = job
        self._quiet = quiet
        self._shapes: list[tuple[int, ...]] = []
        self._version = 0
        self._rule: Rule | None = None
        self._scratch = Scratch()
        self._movement = Movement()
        forking.register(self)

    def __forked__(self) -> None:
        """In a child that was forked: the connection is its parent's."""
        forking.abandon(self._client)
        self._client = cast("Client", forking.Inert())

    def join(self, weights: Parameters, timeout_s: float = 10.0) -> int:
        """Join the job and return the model's version; ``weights`` then hold the job's model.

        The first worker's weights become the job's first model. Later workers receive the present
        model in ``weights``, in place. Read-only weights stay unchanged: use `pull`. The server
        keeps names and shapes for its checkpoints. Only the parameters of a torch module are sent;
        buffers, such as the running means of a batch norm, are not.

        Raises UnreachableError at the deadline, with the peer's name, and RefusedError with the
        reason (id in use, model of another size, ..).
        """
        found = items(weights)
        parts = readable(self._scratch.hosted(found))
        version = self._join(parts, timeout_s, layout(weights, parts))
        self._shapes = [part.shape for part in parts]
        self._movement = Movement()
        targets = Targets.of(found, self._scratch)
        if targets is not None:
            self._version = targets.fill(self._client, self._version) or self._version
            self._movement.joined(targets.parts)
        self._rule = _rule_of(self._client)
        self._say_what_a_push_does(version)
        return version

    def push_delta(
        self, before: Parameters, after: Parameters, *, reward: float = 0.0, weight: float = 1.0
    ) -> int:
        """Push ``after - before``, the change of the model. Returns the sequence number.

        before: a copy of the model from before the local training, `olaf.snapshot(model)`.
        after: the model now: arrays, tensors or a torch module.
        reward, weight: see `push`.

        The server applies the change with its factor, by default 1: a single worker moves the job's
        model to exactly ``after``. Never waits for an answer. The first call allocates one float32
        buffer of the model's size; later calls reuse it.

        Raises ValueError if the shapes differ, or if both are the same memory.
        """
        return self._send(self._scratch.difference(before, after), reward, weight)

    def push_gradient(
        self,
        gradients_of: Parameters,
        *,
        learning_rate: float,
        reward: float = 0.0,
        weight: float = 1.0,
    ) -> int:
        """Push a descent step, ``-learning_rate * gradient``. Returns the sequence number.

        gradients_of: a torch module or its parameters, whose ``.grad`` are used after
        ``loss.backward()`` (zeros for a parameter without one), or the gradients as arrays or
        tensors.
        learning_rate: size of the step, above 0; the server's factor multiplies it.
        reward, weight: see `push`.

        The loss goes down: push the gradient of the loss, not its negative. Never waits for an
        answer. The first call allocates one float32 buffer of the model's size.

        Raises ValueError if there is no gradient, or for an invalid learning rate.
        """
        if not (math.isfinite(learning_rate) and learning_rate > 0):
            raise ValueError(f"learning_rate = {learning_rate}: must be a number above 0")
        found = gradients(gradients_of)
        return self._send(self._scratch.scaled(found, -learning_rate), reward, weight)

    def push(self, update: Parameters, *, reward: float = 0.0, weight: float = 1.0) -> int:
        """Push an update that is added to the model. Returns the sequence number.

        The server computes ``model += factor * k^-power * update`` while k workers push; `rule` has
        factor and power. `push_delta` and `push_gradient` compute such an update.

        update: arrays or tensors with the sizes of the joined weights. A torch module is refused,
        because it could mean its weights or its gradients.
        reward: mean episode reward of this update; reward gates compare it.
        weight: weight of the update in a merge with others, above 0.

        Float32 arrays and CPU tensors are sent without a copy. Never waits for an answer.
        """
        found = items(update)
        if is_module(update) or any(is_parameter(item) for item in found):
            raise ValueError(
                "push(update) takes an update that is added to the model, not a module or its "
                "parameters: after loss.backward() call push_gradient(module, learning_rate=..); "
                "after local training call push_delta(before, module), where before = "
                "olaf.snapshot(module) was taken before it"
            )
        return self._send(readable(self._scratch.hosted(found)), reward, weight)

    @overload
    def pull(self, into: None = None) -> Model | None: ...
    @overload
    def pull(self, into: Parameters) -> int | None: ...
    def pull(self, into: Parameters = None) -> Model | int | None:
        """Take the newest whole model, if it is newer than the last one. Never waits.

        Without ``into``, returns a `Model` of new arrays, or None. With ``into`` (arrays, tensors
        or a module), writes the model there in place and returns its version, or None. Two versions
        are never mixed.
        """
        if into is not None:
            targets = Targets.of(into, self._scratch)
            if targets is None:
                raise ValueError("pull(into=..): an array there is read-only; pass a writable one")
            version = targets.fill(self._client, self._version)
            self._took(version, targets.parts)
            return version
        if not self._shapes:
            raise ValueError("pull() before join(): join first, so that the model's size is known")
        parts = [np.empty(shape, np.float32) for shape in self._shapes]
        version = self._client.pull(parts, self._version)
        self._took(version, parts)
        return None if version is None else Model(version, parts)

    def wait(self, timeout_s: float) -> bool:
        """Wait until there is a model newer than the last one taken; False at the deadline."""
        return self._client.wait(self._version, timeout_s) is not None

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Wait until the fate of each update so far is known; False at the deadline.

        True: each update reached the server, or is known to have ended on the way (a newer one
        replaced it, a queue was full). False: an update or its answer was lost, or is on its way.
        """
        return self._client.flush(timeout_s)

    def move_to(self, cluster: int) -> None:
        """Move to another cluster of the job; later pushes belong to it."""
        self._client.move_to(cluster)

    def close(self) -> None:
        """Leave the job, then close the socket. A second call does nothing."""
        self._client.leave()

    leave = close

    @property
    def rule(self) -> Rule | None:
        """The server's rule for a push, as received at ``join``; None before, or if the server does
        not send it. ``str(connection.rule)`` is one sentence."""
        return self._rule

    @property
    def version(self) -> int:
        """Version of the last model taken; 0 before the first."""
        return self._version

    @property
    def worker(self) -> int:
        """This worker's id in the job."""
        return self._client.worker

    def stats(self) -> dict[str, Any]:
        """Counters of this connection, see ``docs/reference/statistics.md#worker``."""
        stats: dict[str, Any] = json.loads(self._client.stats())
        return stats

    def events(self) -> list[dict[str, Any]]:
        """The events since the last call: silent peers, returned peers, .."""
        return [json.loads(event) for event in self._client.events()]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _join(self, parts: Parts, timeout_s: float, named: str) -> int:
        try:
            return self._client.join(parts, timeout_s, named)
        except ValueError as error:
            if not str(error).startswith("layout: "):
                raise
            # Names that a file cannot hold are no reason to stay out of the job.
            tell(logging.WARNING, f"{error}; checkpoints will hold the model as one flat array")
            return self._client.join(parts, timeout_s)

    def _send(self, parts: Parts, reward: float, weight: float) -> int:
        number = self._client.push(parts, reward=reward, weight=weight)
        if not self._movement.over:
            self._movement.pushed(parts)
            self._judge()
        return number

    def _took(self, version: int | None, parts: Parts) -> None:
        if version is not None:
            self._version = version
        if not self._movement.over:
            self._movement.pulled(None if version is None else parts)
            self._judge()

    def _judge(self) -> None:
        told = self._movement.verdict(self._rule)
        if told is not None:
            tell(logging.WARNING, f"worker {self.worker} of job {self._job}: {told}")

    def _say_what_a_push_does(self, version: int) -> None:
        rule = self._rule
        if rule is None:
            return
        who = f"joined job {self._job} at {self._address} (model version {version})"
        if rule.is_plain:
            if not self._quiet:
                tell(logging.INFO, f"{who}; pushes are applied at {rule.factor}: {rule}")
        elif rule.kind == "delta":
            advice = "start the server with --learning-rate 1 to apply them unchanged"
            tell(
                logging.WARNING,
                f"{who}; pushes are applied at {rule.factor:g}, not at 1: {rule}; {advice}",
            )
        else:
            tell(logging.WARNING, f"{who}; most pushes will not change the model: {rule}")


def _rule_of(client: Client) -> Rule | None:
    """The rule in the newest welcome."""
    said = client.rule()
    return None if said is None else Rule.from_json(said)
