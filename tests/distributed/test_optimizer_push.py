"""A wrapped optimizer in mode "push": the queue merges the changes, the job's model comes back."""

# The types of torch differ between releases, and without it there are none.
# mypy: disable-error-code="no-untyped-call,operator,misc,union-attr,unused-ignore"

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from wrapped import PATIENCE_S, batch, flat, network  # noqa: E402

import olaf  # noqa: E402
from olaf.torch import DistributedOptimizer  # noqa: E402

pytestmark = pytest.mark.torch

STEPS = 20


@pytest.fixture
def job() -> Iterator[olaf.LocalJob]:
    with olaf.local() as job:
        yield job


def loss_of(model: nn.Module, data: tuple[Any, Any]) -> Any:
    return nn.functional.mse_loss(model(data[0]), data[1])


def train(model: nn.Module, optimizer: Any, worker: int = 0, steps: int = STEPS) -> None:
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(model, batch(step + 1000 * worker)).backward()
        optimizer.step()


def test_one_worker_is_the_bare_optimizer(job: olaf.LocalJob) -> None:
    """The change travels as float32: a rounding for each push, and no more."""
    model, reference = network(), network()
    bare = torch.optim.Adam(reference.parameters(), lr=0.01)
    train(reference, bare)
    with olaf.connect(job.address, quiet=True) as connection:
        optimizer = DistributedOptimizer(
            torch.optim.Adam(model.parameters(), lr=0.01),
            through=connection,
            mode="push",
            patience_s=PATIENCE_S,
        )
        train(model, optimizer)
        optimizer.close()
        torch.testing.assert_close(flat(model), flat(reference), rtol=1e-5, atol=1e-6)
        assert connection.stats()["updates"] == STEPS
    found = job.model()
    assert found is not None
    torch.testing.assert_close(
        torch.from_numpy(found.parts[0]), flat(reference), rtol=1e-5, atol=1e-6
    )


def test_every_third_step_pushes_and_the_end_pushes_the_rest(job: olaf.LocalJob) -> None:
    model = network()
    with olaf.connect(job.address, quiet=True) as connection:
        optimizer = DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.01),
            through=connection,
            mode="push",
            every=3,
            patience_s=PATIENCE_S,
        )
        train(model, optimizer, steps=8)
        assert connection.stats()["updates"] == 2
        optimizer.close()
        assert connection.stats()["updates"] == 3
        optimizer.close()
        assert connection.stats()["updates"] == 3


def test_workers_take_each_others_changes(job: olaf.LocalJob) -> None:
    """Each has one half of the data, and the model fits both."""
    models: list[nn.Module] = [network(seed=rank) for rank in range(2)]
    errors: list[BaseException] = []
    turn = threading.Barrier(2)  # the one that is last would forget the data of the other

    def work(rank: int) -> None:
        try:
            with olaf.connect(job.address, cluster=rank, worker=rank, quiet=True) as connection:
                model = models[rank]
                optimizer = DistributedOptimizer(
                    torch.optim.SGD(model.parameters(), lr=0.05),
                    through=connection,
                    mode="push",
                )
                optimizer.reward = 1.0
                for _ in range(150):
                    turn.wait(PATIENCE_S)
                    optimizer.zero_grad()
                    loss_of(model, batch(rank)).backward()
                    optimizer.step()
                optimizer.close()
        except BaseException as error:
            turn.abort()
            errors.append(error)

    threads = [threading.Thread(target=work, args=(rank,), daemon=True) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "a worker hangs"
    assert not errors, errors
    found = job.model()
    assert found is not None
    both = network()
    before = [float(loss_of(both, batch(rank)).detach()) for rank in range(2)]
    nn.utils.vector_to_parameters(torch.from_numpy(found.parts[0]), both.parameters())
    after = [float(loss_of(both, batch(rank)).detach()) for rank in range(2)]
    assert after[0] < 0.8 * before[0]
    assert after[1] < 0.8 * before[1]


def test_a_server_that_is_gone_holds_no_step_up() -> None:
    model = network()
    with olaf.local(restarts=0) as job, olaf.connect(job.address, quiet=True) as connection:
        optimizer = DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.01),
            through=connection,
            mode="push",
            patience_s=0.05,
        )
        train(model, optimizer, steps=2)
        job.close()
        before, began = flat(model), time.monotonic()
        train(model, optimizer, steps=3)
        assert time.monotonic() - began < 5, "three steps wait 0.05 s each"
        assert not torch.equal(before, flat(model))


def test_without_a_network_it_is_the_bare_optimizer() -> None:
    model, reference = network(), network()
    train(reference, torch.optim.Adam(reference.parameters(), lr=0.01))
    optimizer = DistributedOptimizer(
        torch.optim.Adam(model.parameters(), lr=0.01), through=None, mode="push", every=3
    )
    optimizer.reward = 3.0
    train(model, optimizer)
    optimizer.close()
    assert torch.equal(flat(model), flat(reference))


def test_what_cannot_be_is_refused_by_name(job: olaf.LocalJob) -> None:
    bare = torch.optim.SGD(network().parameters(), lr=0.1)
    with olaf.connect(job.address, quiet=True) as connection:
        for options, said in (
            ({"every": 0}, "every = 0"),
            ({"patience_s": -1.0}, r"patience_s = -1\.0"),
            ({"timeout_s": 0.0}, r"join_timeout_s = 0\.0"),
            ({"staleness": 2}, "staleness is an option of mode = 'pipeline'"),
        ):
            with pytest.raises(ValueError, match=said):
                DistributedOptimizer(bare, through=connection, mode="push", **options)  # type: ignore[arg-type]
        with pytest.raises(
            TypeError, match=r"mode = 'sum' needs a connection of olaf\.connect_sum"
        ):
            DistributedOptimizer(bare, through=connection)
        optimizer = DistributedOptimizer(bare, through=connection, mode="push")
        with pytest.raises(ValueError, match="a group cannot be added"):
            optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(1))]})
