"""Lightning: several programs train one module, each with its own data.

    from olaf.integrations.lightning import OlafCallback

    Trainer(callbacks=[OlafCallback("udp://10.0.0.1:5555", every=16)]).fit(module)

The callback joins with the module's parameters when training starts. After every ``every`` batches
it pushes the change of the parameters, and takes the job's newest model. The optimiser's state
stays local, and so do buffers (the running means of a batch norm).
"""

# mypy checks this file with and without the framework; without it everything of it is Any.
# mypy: disable-error-code="import-untyped,import-not-found,misc,unused-ignore"

from __future__ import annotations

from typing import Any

from olaf import extras
from olaf.integrations.member import Member, need_module

extras.need("lightning", "lightning", what="olaf.integrations.lightning")

from lightning.pytorch.callbacks import Callback  # noqa: E402

__all__ = ["OlafCallback"]


class OlafCallback(Callback):
    """Trains a Lightning module as one worker of an Olaf job."""

    def __init__(
        self, address: str, *, every: int = 1, reward: str | None = None, **options: Any
    ) -> None:
        """address: address of the switch (or server), ``udp://host:port``.

        every: number of training batches between exchanges.
        reward: name of a metric that the module logs. Its newest value is the reward of each push,
        for reward gates. None pushes with reward 0. options: ``job``, ``cluster``, ``worker``,
        ``patience_s``, ``join_timeout_s`` and other arguments of `olaf.connect`.
        """
        super().__init__()
        if every < 1:
            raise ValueError(f"every = {every}: must be at least 1 batch")
        self._every, self._reward = every, reward
        self._member = Member(address, **options)
        self._batches = 0

    @property
    def connection(self) -> Any:
        """The `olaf.Connection`, while the module trains."""
        return self._member.connection

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Join; the module then holds the job's model, which replaces a checkpoint's weights."""
        if trainer.world_size > 1:
            raise ValueError(
                f"the trainer has {trainer.world_size} processes: OlafCallback makes each program "
                "one worker; take devices=1 and start the program several times"
            )
        self._batches = 0
        self._member.join(need_module(pl_module, "the module", "OlafCallback"))

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        """Exchange after every ``every`` batches."""
        self._batches += 1
        if self._batches >= self._every:
            self._exchange(trainer)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Push the rest, then leave the job."""
        if self._batches:
            self._exchange(trainer)
        self._member.close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Leave the job, so that the others do not wait for this worker."""
        self._member.close()

    def _exchange(self, trainer: Any) -> None:
        self._batches = 0
        logged = trainer.callback_metrics.get(self._reward) if self._reward else None
        if self._reward and logged is None and trainer.global_step > self._every:
            known = ", ".join(sorted(trainer.callback_metrics)) or "none"
            raise ValueError(
                f"reward = {self._reward!r}: the module logs no such metric (logged: {known}); "
                f"call self.log({self._reward!r}, value) in training_step"
            )
        self._member.exchange(reward=0.0 if logged is None else float(logged))
