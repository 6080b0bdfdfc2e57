"""Two programs with one job number: they are kept apart, and who is turned away hears why."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from workers import switch_here, together

import olaf
from olaf import _olaf
from olaf.sums.program import LARGEST, NOT_SAID, VARIABLE, named, program_of

TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "7",
    "MASTER_ADDR": "host",
    "MASTER_PORT": "29500",
    "WORLD_SIZE": "4",
}
SLURM = {"SLURM_JOB_ID": "12", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "4"}
OPENMPI = {"PMIX_NAMESPACE": "prterun-host-3@1", "OMPI_COMM_WORLD_SIZE": "4"}


@contextmanager
def switch_here_of(engine: str) -> Iterator[_olaf.Switch]:
    """A switch of that engine in this process."""
    switch = _olaf.Switch(json.dumps({"engines": [engine], "listen": "127.0.0.1:0"}))
    switch.start()
    try:
        yield switch
    finally:
        switch.stop()


def run(address: str, sums: dict[Any, float | str], name: Any, **options: Any) -> threading.Thread:
    """A worker in a thread: ``sums[name]`` is what it gets, or its error."""

    def work() -> None:
        try:
            with olaf.connect_sum(address, workers=2, timeout_s=20, **options) as job:
                value = np.full(10, name[0], np.float32)
                sums[name] = float(job.all_reduce(value)[0])
        except olaf.OlafError as error:
            sums[name] = f"{getattr(error, 'reason', None)}: {error}"

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_programs_with_names_are_never_mixed() -> None:
    for _ in range(3):
        sums: dict[Any, float | str] = {}
        with switch_here() as switch:
            threads = [
                run(switch.address, sums, (value, rank), rank=rank, program=f"program {value}")
                for rank in range(2)
                for value in (1, 100)
            ]
            for thread in threads:
                thread.join(30)
        right = {(value, rank): 2.0 * value for value in (1, 100) for rank in range(2)}
        wrong = {name: got for name, got in sums.items() if isinstance(got, float)}
        assert len(sums) == 4
        assert all(right[name] == got for name, got in wrong.items()), sums
        told = [got for got in sums.values() if isinstance(got, str)]
        assert all("another program uses job 1" in text for text in told), sums
        assert len(told) in (0, 2), "one program sums, or both do, one after the other"


def test_programs_without_names_hear_that_there_are_two() -> None:
    sums: dict[Any, float | str] = {}
    with switch_here() as switch:
        threads = [
            run(switch.address, sums, (value, rank), rank=rank)
            for rank in range(2)
            for value in (1, 100)
        ]
        for thread in threads:
            thread.join(30)
    assert len(sums) == 4
    for (value, rank), got in sums.items():
        # On a busy machine a program may be late: it is told of its rank, or sums after the other.
        wanted = f"rank {rank} of job 1 is wanted by two live workers"
        taken = f"worker {rank} of job 1 lives"
        assert got == 2.0 * value or wanted in str(got) or taken in str(got), sums


def test_a_rank_that_is_taken_is_named_at_once() -> None:
    told = threading.Event()

    def work(job: olaf.SumConnection) -> float:
        if job.rank != 0:
            assert told.wait(30), "rank 1 lives until the other one has heard"
            return 0.0
        began = time.monotonic()
        try:
            with pytest.raises(olaf.RefusedError, match="worker 1 of job 1 lives"):
                olaf.connect_sum(address, workers=2, rank=1, program="one", timeout_s=20)
            return time.monotonic() - began
        finally:
            told.set()

    with switch_here() as switch:
        address = switch.address
        took, _ = together(address, 2, work, program="one")
    assert 0 < took < 2.5


@pytest.mark.parametrize("told", [TORCHRUN, SLURM, OPENMPI])
def test_a_launcher_names_the_program_of_its_workers(told: dict[str, str]) -> None:
    program = program_of(None, 4, told)
    assert program not in (NOT_SAID, program_of(None, 4, told | dict.fromkeys(list(told)[:1], "9")))
    assert program_of(None, 3, told) == NOT_SAID, "it has started others, too"
    assert program_of(None, None, told) == NOT_SAID
    for missing in told:
        less = {name: value for name, value in told.items() if name != missing}
        assert program_of(None, 4, less) == NOT_SAID, missing


def test_what_the_caller_says_goes_before_what_the_environment_says() -> None:
    environment = TORCHRUN | {VARIABLE: "mine"}
    assert program_of(None, 4, environment) == named("mine")
    assert program_of("yours", 4, environment) == named("yours") != named("mine")
    assert program_of(5, 4, environment) == 5
    assert program_of(0, 4, environment) == NOT_SAID
    assert program_of(None, 4, {VARIABLE: ""}) == NOT_SAID
    for program in (-1, LARGEST + 1):
        with pytest.raises(ValueError, match=f"program = {program}: must be from 0"):
            program_of(program, 4, {})


def test_a_nan_in_a_sum_of_integers_names_its_worker() -> None:
    """Trio-ML has no place for it. The next sum is right, so all workers stand at one operation."""

    def work(job: olaf.SumConnection) -> str:
        value = np.ones(2000, np.float32)
        if job.rank == 1:
            value[1234] = np.nan
        with pytest.raises(olaf.SumError, match="worker 1 of job 1 gave a sum") as error:
            job.all_reduce(value)
        assert error.value.culprit == 1
        value[:] = 2
        assert (job.all_reduce(value) == 4).all()
        return str(error.value.reason)

    with switch_here_of("trio") as switch:
        assert together(switch.address, 2, work, protocol="trio") == ["refused", "not_finite"]

        def printed(job: olaf.SumConnection) -> float:
            return float(job.all_reduce(np.full(1, np.nan, np.float32))[0])

        passed = together(switch.address, 2, printed, job=2, protocol="trio", non_finite="pass")
    assert passed[0] == passed[1] == pytest.approx(-21.47, abs=0.01)
