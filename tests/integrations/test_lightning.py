"""Lightning through a real switch and server."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import olaf

pytestmark = pytest.mark.torch


def callback(*given: Any, **options: Any) -> Any:
    return importlib.import_module("olaf.integrations.lightning").OlafCallback(*given, **options)


def line() -> Any:
    """A module that fits y = 2 x."""
    torch = importlib.import_module("torch")
    lightning = importlib.import_module("lightning")

    class Line(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def training_step(self, batch: Any) -> Any:
            loss = (self.layer(batch) - 2 * batch).square().mean()
            self.log("gain", -loss.detach())
            return loss

        def train_dataloader(self) -> Any:
            return torch.ones(7, 4, 1)

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    return Line()


def fit(module: Any, hook: Any, **options: Any) -> None:
    lightning = importlib.import_module("lightning")
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    quiet["enable_model_summary"] = False
    trainer = lightning.Trainer(
        accelerator="cpu", devices=1, max_epochs=1, callbacks=[hook], **quiet, **options
    )
    trainer.fit(module)


@pytest.mark.timeout(600)
def test_two_workers_train_one_module_to_200(train: Callable[..., list[float]]) -> None:
    assert min(train("lightning_cartpole.py")) >= 200


def test_alone_the_jobs_model_is_what_the_module_became(job: olaf.LocalJob) -> None:
    module = line()
    fit(module, callback(job.address, every=3, reward="gain", patience_s=5.0))
    kept = job.model()
    assert kept is not None
    assert kept.version == 1 + 3  # after 3, after 6, and the batch that was left
    now = np.concatenate([part.ravel() for part in olaf.snapshot(module)])
    np.testing.assert_allclose(kept.parts[0], now, atol=1e-6)


def test_a_metric_that_is_not_logged_is_named(job: olaf.LocalJob) -> None:
    with pytest.raises(ValueError, match=r"'rewards': the module logs no such metric .*: gain"):
        fit(line(), callback(job.address, reward="rewards"))


def test_what_cannot_be_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="every = 0"):
        callback("127.0.0.1:5555", every=0)
    trainer = type("Trainer", (), {"world_size": 2})()
    with pytest.raises(ValueError, match="2 processes"):
        callback("127.0.0.1:5555").on_train_start(trainer, line())
