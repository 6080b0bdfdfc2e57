"""A model that trains locally and follows the job's: one exchange is a push and a pull."""

from __future__ import annotations

from typing import cast

from olaf.memory.parameters import Parameters, Parts, snapshot
from olaf.push_pull.connection import Connection

PATIENCE_S = 0.05
"""Seconds that an exchange waits for the answer to its push, which brings the other workers'
changes. On a fast network it avoids a turn on an old model; without an answer training goes on."""


class Follower:
    """One worker's model in its job. It joins when it is made."""

    def __init__(
        self,
        connection: Connection,
        model: Parameters,
        *,
        patience_s: float = PATIENCE_S,
        join_timeout_s: float = 10.0,
    ) -> None:
        """model: what `olaf.connect` takes; it then holds the job's model. It must be writable.

        patience_s: seconds that `exchange` waits for the answer to its push; 0 never waits.
        Raises UnreachableError and RefusedError as `olaf.Connection.join` does.
        """
        check_waits(patience_s, join_timeout_s)
        self._connection, self._model = connection, model
        self._patience_s = patience_s
        self.joined_at = connection.join(model, join_timeout_s)
        """The model's version at the join."""
        self._before = snapshot(model)

    @property
    def before(self) -> Parts:
        """The model after the last exchange, as float32 arrays."""
        return self._before

    def exchange(self, *, reward: float = 0.0) -> int | None:
        """Push the change since the last exchange, then take the newest model.

        Returns the version taken; None if there is no newer one, and the model stays unchanged.
        """
        connection = self._connection
        connection.push_delta(self._before, self._model, reward=reward)
        if self._patience_s > 0:
            connection.wait(self._patience_s)
        version = connection.pull(into=self._model)
        self._before = snapshot(self._model)
        return cast("int | None", version)


def check_waits(patience_s: float, join_timeout_s: float) -> None:
    """Raise ValueError for times that cannot be waited."""
    if not patience_s >= 0 or not join_timeout_s > 0:
        raise ValueError(
            f"patience_s = {patience_s} must be at least 0, and join_timeout_s = "
            f"{join_timeout_s} above 0"
        )
