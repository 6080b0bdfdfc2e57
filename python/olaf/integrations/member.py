"""Shared by the integrations: a model that trains locally and follows the job's."""

# mypy checks this file with and without torch; without it everything of torch is Any.
# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore"

from __future__ import annotations

from typing import Any

import olaf
from olaf.push_pull.following import PATIENCE_S, Follower, check_waits

NOT_IN_A_JOB = "not in a job: training has not started, or is over"


class Member:
    """One worker of a job. It joins with a module, and keeps the module at the job's model.

    It connects when it joins, so it can be made, copied and pickled before.
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
        """address, job, cluster, worker, config: arguments of `olaf.connect`.

        patience_s: seconds that `exchange` waits for the answer to its push; 0 never waits.
        join_timeout_s: time limit of `join` in seconds.
        """
        if not isinstance(address, str) or not address:
            raise ValueError(
                f"address = {address!r}: must be a switch's, as in 'udp://10.0.0.1:5555'"
            )
        check_waits(patience_s, join_timeout_s)
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
        self._follower: Follower | None = None

    @property
    def connection(self) -> olaf.Connection:
        """The connection, from `join` to `close`; at other times raises ValueError."""
        if self._connection is None:
            raise ValueError(NOT_IN_A_JOB)
        return self._connection

    def join(self, module: Any) -> int:
        """Join the job with a torch module or a list of parameters; they then hold its model.

        Returns the model's version. Raises UnreachableError and RefusedError as
        `olaf.Connection.join` does.
        """
        self.close(flush_timeout_s=0.0)  # a training that raised may have left it open
        connection = olaf.connect(self._address, **self._options)
        try:
            follower = Follower(
                connection,
                module,
                patience_s=self._patience_s,
                join_timeout_s=self._join_timeout_s,
            )
        except BaseException:
            connection.close()
            raise
        self._connection, self._module, self._follower = connection, module, follower
        return follower.joined_at

    def exchange(self, *, reward: float = 0.0) -> int | None:
        """Push the change since the last exchange, then take the newest model.

        Returns the version taken; None if there is no newer one, and the module stays unchanged.
        """
        return self._following.exchange(reward=reward)

    def return_to_job(self) -> None:
        """Overwrite the module with the last model taken from the job.

        For a framework that has loaded other weights, which are not a change by training.
        """
        from torch import from_numpy, no_grad

        parameters = getattr(self._module, "parameters", None)
        with no_grad():
            for tensor, part in zip(
                parameters() if parameters else self._module, self._following.before, strict=True
            ):
                tensor.copy_(from_numpy(part))

    def close(self, flush_timeout_s: float = 2.0) -> None:
        """Let the last push arrive, then leave the job. A second call does nothing."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.flush(flush_timeout_s)
            connection.close()

    @property
    def _following(self) -> Follower:
        if self._connection is None or self._follower is None:
            raise ValueError(NOT_IN_A_JOB)
        return self._follower


def need_module(value: object, what: str, owner: str) -> Any:
    """The value if it is a torch module with parameters. Raises ValueError, which names
    ``what``."""
    from torch import nn

    if not isinstance(value, nn.Module):
        raise ValueError(
            f"{what} is {type(value).__name__}, not a torch.nn.Module: {owner} needs the "
            "existing model whose parameters are trained"
        )
    if not any(True for _ in value.parameters()):
        raise ValueError(f"{what} has no parameters: there is nothing to train together")
    return value
