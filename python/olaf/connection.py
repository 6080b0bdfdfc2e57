"""A worker's end of a job, for the training loop you already have.

Three calls push, and each says what it means:

- ``push_delta(before, after)``: the model should move by ``after - before``;
- ``push_gradient(module, learning_rate=..)``: a descent step, ``-learning_rate * gradient``;
- ``push(update)``: the primitive under both.

The server does ``model += factor * k^-power * update``, while k workers push. The
factor is 1 unless the server was told otherwise; `Connection.rule` holds what it said at ``join``.

No copy is made that need not be: float32 arrays and CPU tensors are read and written where they
lie, with the GIL released; other dtypes, devices and layouts go through one float32 copy.
"""

from __future__ import annotations

import json
import logging
import math
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from olaf.movement import Movement
from olaf.parameters import (
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
from olaf.rule import Rule
from olaf.telling import tell

if TYPE_CHECKING:
    from typing import Self

    from olaf._olaf import Client


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
    quiet: bool = False,
    **config: int | str,
) -> Connection:
    """Open a connection to the switch (or server) at ``udp://host:port``; nothing is sent yet.

    job: the job to take part in; workers of one job train one model.
    cluster: workers of one cluster share a slot of the switch's queue and hear the same answers.
    worker: this worker's id, unique in the job; None draws one.
    quiet: say only warnings. Otherwise ``join`` says in one line what a push will do, through the
        logger ``olaf``, and on standard error where the program has not configured logging.
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
    return Connection(client, address=address, job=job, quiet=quiet)


class Connection:
    """Join, push, pull, close. Made by `connect`; a context manager that closes at its end.

    Use a connection from one thread at a time; ``stats`` and ``events`` may be called from any.
    Only `join`, `wait` and `flush` wait, each to its deadline.
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

    def join(self, weights: Parameters, timeout_s: float = 10.0) -> int:
        """Join the job and return the model's version; ``weights`` then hold the job's model.

        The first worker's weights become the job's first model. Later workers receive the model as
        it is, written into ``weights`` in place (read-only weights stay as they are: `pull` brings
        the model). The server keeps names and shapes for its checkpoints. Of a torch module the
        parameters travel; buffers, such as the running means of a batch norm, do not.

        Raises UnreachableError at the deadline, naming the peer, and RefusedError with the reason
        (id in use, model of another size, ..).
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
        """Push ``after - before``: the model should move by it. Returns the sequence number.

        before: a copy of the model from before the local training, `olaf.snapshot(model)`.
        after: the model now: arrays, tensors or a torch module.
        reward, weight: as of `push`.

        The server applies the change at its factor, 1 unless told otherwise: one worker alone moves
        the job's model to exactly ``after``. Never waits for an answer. The first call allocates
        one float32 buffer of the model's size; later calls use it again.

        Raises ValueError where the shapes differ, or where both are the same memory.
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

        gradients_of: a torch module or its parameters, whose ``.grad`` are taken after
            ``loss.backward()`` (zeros for a parameter that has none), or the gradients themselves
            as arrays or tensors.
        learning_rate: size of the step, above 0; the server's factor multiplies it.
        reward, weight: as of `push`.

        The loss goes down: push the gradient of the loss, not its negative. Never waits for an
        answer. The first call allocates one float32 buffer of the model's size.

        Raises ValueError where there is no gradient, or for a learning rate that cannot be.
        """
        if not (math.isfinite(learning_rate) and learning_rate > 0):
            raise ValueError(f"learning_rate = {learning_rate}: must be a number above 0")
        found = gradients(gradients_of)
        return self._send(self._scratch.scaled(found, -learning_rate), reward, weight)

    def push(self, update: Parameters, *, reward: float = 0.0, weight: float = 1.0) -> int:
        """Push what is to be added to the model. Returns the sequence number.

        The server does ``model += factor * k^-power * update``, while k workers push; factor and
        power are those of `rule`. `push_delta` and `push_gradient` make such an update.

        update: arrays or tensors as `join` took weights, of the same sizes. A torch module is
            refused, because it could mean its weights or its gradients.
        reward: mean episode reward behind this update; reward gates compare it.
        weight: how much the update counts when it is merged with others, above 0.

        Float32 arrays and CPU tensors are sent from where they lie. Never waits for an answer.
        """
        found = items(update)
        if is_module(update) or any(is_parameter(item) for item in found):
            raise ValueError(
                "push(update) takes what is to be added to the model, not a module or its "
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
        """Take the newest whole model, if there is a newer one than last time. Never waits.

        Without ``into`` returns a `Model` of fresh arrays, or None. With ``into`` (arrays,
        tensors or a module) writes the model there in place and returns its version, or None.
        A torn mixture of two versions is never written.
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
        """Wait until there is a newer model than the one last taken; False at the deadline."""
        return self._client.wait(self._version, timeout_s) is not None

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Wait until it is known what became of each update sent so far; False at the deadline.

        True: each update reached the server, or is known to have ended on the way (a newer one took
        its place, a queue was full). False: an update or its answer was lost, or is on its way.
        """
        return self._client.flush(timeout_s)

    def move_to(self, cluster: int) -> None:
        """Go on in another cluster of the job; what is pushed from here on is that cluster's."""
        self._client.move_to(cluster)

    def close(self) -> None:
        """Tell the job that this worker leaves, then close. Calling it again does nothing."""
        self._client.leave()

    leave = close

    @property
    def rule(self) -> Rule | None:
        """What the server does with a push, as it said at ``join``; None before, or from a server
        that does not say it. ``str(connection.rule)`` is one sentence."""
        return self._rule

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
        self.close()

    def _join(self, parts: Parts, timeout_s: float, named: str) -> int:
        try:
            return self._client.join(parts, timeout_s, named)
        except ValueError as error:
            if not str(error).startswith("layout: "):
                raise
            # A name that no file can hold is no reason to stay out of the job.
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
            advice = "start the server with --learning-rate 1 to apply them as they are"
            tell(
                logging.WARNING,
                f"{who}; pushes are applied at {rule.factor:g}, not at 1: {rule}; {advice}",
            )
        else:
            tell(logging.WARNING, f"{who}; most pushes will not change the model: {rule}")


def _rule_of(client: Client) -> Rule | None:
    """The rule that the newest welcome carried."""
    said = client.rule()
    return None if said is None else Rule.from_json(said)
