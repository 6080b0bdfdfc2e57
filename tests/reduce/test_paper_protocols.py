"""The protocols of the papers, through the same front as `reduce`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from workers import Worker, switch_process, together

import olaf
from olaf import SumConnection, _olaf
from olaf.sums.protocols import PROTOCOLS

PAPERS = [name for name, protocol in PROTOCOLS.items() if protocol.sums_floats]
SIZES = [1, 366, 2_560, 100_000, 825_000]


@contextmanager
def switch_here(engine: str, loss: float = 0.0, **config: Any) -> Iterator[_olaf.Switch]:
    """A switch in this process. config: keys of ``[switch.<engine>]``."""
    engines = [engine, *PROTOCOLS[engine].beside]
    told: dict[str, Any] = {"engines": engines, "listen": "127.0.0.1:0", engine: config}
    if loss:
        told["receive_loss"] = {"probability": loss, "seed": 5}
    switch = _olaf.Switch(json.dumps(told))
    switch.start()
    try:
        yield switch
    finally:
        switch.stop()


def own(rank: int, size: int) -> NDArray[np.float32]:
    """An array whose values depend on the rank and on the place. Fixed point ends at 21.47."""
    return ((np.arange(size) % 100 + 10 * rank) / 64).astype(np.float32)


def total(size: int, workers: int) -> NDArray[np.float32]:
    """The sum of all workers' arrays."""
    result: NDArray[np.float32] = np.sum([own(rank, size) for rank in range(workers)], axis=0)
    return result


def same(found: NDArray[Any], expected: NDArray[Any]) -> None:
    """The arrays are equal within the error of sums in fixed point."""
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("protocol", PAPERS)
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_sums_and_means_are_right_at_every_size(protocol: str, workers: int) -> None:
    def work(connection: SumConnection) -> None:
        for size in SIZES:
            array = connection.all_reduce(own(connection.rank, size))
            same(array, total(size, workers))
            array = connection.all_reduce(own(connection.rank, size), "mean")
            same(array, total(size, workers) / workers)

    with switch_here(protocol) as switch:
        together(switch.address, workers, work, protocol=protocol)


@pytest.mark.parametrize("protocol", PAPERS)
def test_several_operations_may_be_open(protocol: str) -> None:
    def work(connection: SumConnection) -> None:
        arrays = [own(connection.rank, 20_000 + at) for at in range(8)]
        futures = [connection.all_reduce_async(array) for array in arrays]
        for at, future in enumerate(futures):
            same(future.wait(), total(20_000 + at, 3))

    with switch_here(protocol) as switch:
        together(switch.address, 3, work, protocol=protocol)


@pytest.mark.parametrize("protocol", PAPERS)
def test_sums_are_right_whatever_is_lost(protocol: str) -> None:
    def work(connection: SumConnection) -> None:
        for _ in range(4):
            array = connection.all_reduce(own(connection.rank, 50_000))
            same(array, total(50_000, 2))

    loss = {"probability": 0.01, "seed": 6}
    with switch_here(protocol, loss=0.01) as switch:
        together(switch.address, 2, work, protocol=protocol, receive_loss=loss)
        counted = json.loads(switch.stats())[protocol]
        assert counted["io"]["lost_on_purpose"] > 0
        pieces = dict(counted["pieces"])
        received, refused = pieces.pop("received"), pieces.pop("refused", {})
        assert received == sum(pieces.values()) + sum(refused.values())


@pytest.mark.parametrize("protocol", PAPERS)
def test_processes_sum_through_the_command(protocol: str) -> None:
    engines = ",".join([protocol, *PROTOCOLS[protocol].beside])
    with switch_process("--engines", engines) as (_, address):
        workers = [Worker(address, workers=2, rank=rank, protocol=protocol) for rank in range(2)]
        try:
            assert [worker.answer()["rank"] for worker in workers] == [0, 1]
            for worker in workers:
                worker.tell(do="sum", size=100_000)
            for worker in workers:
                answer = worker.answer()
                assert (answer["value"], answer["differ"]) == (3.0, 0), answer
        finally:
            for worker in workers:
                worker.end()


@pytest.mark.parametrize("protocol", PAPERS)
def test_a_dead_worker_ends_the_operation_with_its_name(protocol: str) -> None:
    with switch_here(protocol, silence="500ms") as switch:
        workers = [
            Worker(switch.address, workers=2, rank=rank, protocol=protocol) for rank in range(2)
        ]
        try:
            assert [worker.answer()["rank"] for worker in workers] == [0, 1]
            workers[1].process.kill()
            failed = workers[0].do(do="sum", size=1_000, timeout_s=20)
            assert (failed["reason"], failed["culprit"]) == ("worker_died", 1), failed
        finally:
            for worker in workers:
                worker.end()


@pytest.mark.parametrize("protocol", PAPERS)
def test_a_dead_switch_is_named(protocol: str) -> None:
    with switch_here(protocol) as switch:
        connection = olaf.connect_sum(switch.address, workers=1, protocol=protocol, silence_ms=500)
        switch.stop()
        with connection, pytest.raises(olaf.SumError, match="has not been heard") as error:
            connection.all_reduce(np.ones(1_000, np.float32))
        assert error.value.reason == "switch_silent"
        assert f"--engines {protocol}" in str(error.value)


@pytest.mark.parametrize("protocol", PAPERS)
def test_what_a_protocol_cannot_do_is_said(protocol: str) -> None:
    with switch_here(protocol) as switch:
        with pytest.raises(ValueError, match=f"the protocol {protocol} needs the number"):
            olaf.connect_sum(switch.address, protocol=protocol)
        with olaf.connect_sum(switch.address, workers=1, protocol=protocol) as connection:
            with pytest.raises(ValueError, match="all_reduce: "):
                connection.all_reduce(np.ones(10, np.float32), "max")
            with pytest.raises(ValueError, match="all_reduce: "):
                connection.all_reduce(np.ones(10, np.int32))
