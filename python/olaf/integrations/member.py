"""What the integrations share: a model that trains locally and is kept with the job's."""

# mypy checks this file with and without torch; without it everything of torch is Any.
# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore"

from __future__ import annotations

from typing import Any

import olaf

PATIENCE_S = 0.05
"""How long an exchange waits for the answer to its push. The answer brings what others learnt. On a
quick network it spares the worker a turn on an old model; without an answer training goes on."""


class Member:
    """One worker of a job. Joins with a module, then keeps the module and the job's model together.

    Connects when it joins, so that it can be made, copied and pickled before.
    """

    def __init__(
        self,
        address: str,
        *,
        job: int = 1,
        cluster: int = 0,
        worker: int | None = None,
        patience_s: float = PATIENCE_S,
        join_timeout_s: float = 10.0,
        **config: int | str,
    ) -> None:
        """address, job, cluster, worker, config: as `olaf.connect` takes them.

        patience_s: how long `exchange` waits for the answer to its push; 0 never waits.
        join_timeout_s: how long `join` tries.
        """
        if not isinstance(address, str) or not address:
            raise ValueError(f"address = {address!r}: the switch's, as in 'udp://10.0.0.1:5555'")
        if patience_s < 0 or not join_timeout_s > 0:
            raise ValueError(
                f"patience_s = {patience_s} must be at least 0, and join_timeout_s = "
                f"{join_timeout_s} above 0"
            )
        self._address = address
        self._options: dict[str, Any] = {
            "job": job,
            "cluster": cluster,
            "worker": worker,
            **config,
        }
        self._patience_s, self._join_timeout_s = patience_s, join_timeout_s
        self._connection: olaf.Connection | None = None
        self._module: Any = None
        self._before: Any = None

    @property
    def connection(self) -> olaf.Connection:
        """The connection, from `join` to `close`. Raises ValueError at other times."""
        if self._connection is None:
            raise ValueError("not in a job: training has not started, or is over")
        return self._connection

    def join(self, module: Any) -> int:
        """Join the job with a torch module or a list of parameters; they then hold its model.

        Returns the model's version. Raises UnreachableError and RefusedError as
        `olaf.Connection.join` does.
        """
        self.close(flush_timeout_s=0.0)  # training that ended by an exception may have left it open
        connection = olaf.connect(self._address, **self._options)
        try:
            version = connection.join(module, self._join_timeout_s)
        except BaseException:
            connection.close()
            raise
        self._connection, self._module = connection, module
        self._before = olaf.snapshot(module)
        return version

    def exchange(self, *, reward: float = 0.0) -> int | None:
        """Push what training changed since the last exchange, then take the newest model.

        Returns the version taken; None where there is no newer one, and the module stays as it is.
        """
        connection = self.connection
        connection.push_delta(self._before, self._module, reward=reward)
        if self._patience_s > 0:
            connection.wait(self._patience_s)
        version: int | None = connection.pull(into=self._module)
        self._before = olaf.snapshot(self._module)
        return version

    def return_to_job(self) -> None:
        """Write the job's model, as it was last taken, over what the module holds now.

        For a framework that has loaded other weights: they are not what training changed.
        """
        from torch import from_numpy, no_grad

        parameters = getattr(self._module, "parameters", None)
        with no_grad():
            for tensor, part in zip(
                parameters() if parameters else self._module, self._before, strict=True
            ):
                tensor.copy_(from_numpy(part))

    def close(self, flush_timeout_s: float = 2.0) -> None:
        """Let the last push arrive, then leave the job. Calling it again does nothing."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.flush(flush_timeout_s)
            connection.close()


def need_module(value: object, what: str, owner: str) -> Any:
    """The value if it is a torch module with parameters. Raises ValueError that names ``what``."""
    from torch import nn

    if not isinstance(value, nn.Module):
        raise ValueError(
            f"{what} is {type(value).__name__}, not a torch.nn.Module: {owner} needs the model "
            "whose parameters are trained, made already"
        )
    if not any(True for _ in value.parameters()):
        raise ValueError(f"{what} has no parameters: there is nothing to train together")
    return value
