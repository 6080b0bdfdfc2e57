"""Floods of joins that echo nothing leave no state at the engines that sum, and slow no job."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from parties import Party
from sum_flooding import join, senders
from sum_formats import Format, Name
from sum_parties import Stranger, Training, ended, refused, sums
from waiting import until

ADDRESSES, JOINS = 4_000, 16_000
AHEAD = 200
"""Joins that may wait in the switch's socket: the kernel drops none."""


def awaits_datagrams(switch: Party, engine: str, count: int) -> None:
    """Waits until an engine has received that many, in its life."""
    until(lambda: switch.stats()[engine]["io"]["received_datagrams"] >= count, "the joins")


def test_a_flood_of_joins_leaves_no_state(
    party: Callable[..., Party], stranger: Callable[..., Stranger], form: Format
) -> None:
    switch = sums(party, form)
    training = Training([switch.address] * 2, form.name)
    for engine in form.engines:
        came = switch.stats()[engine]["io"]["received_datagrams"]
        before = switch.memory_mib()
        crowd: list[Stranger] = []
        for number in range(JOINS):
            if number % AHEAD == 0:
                awaits_datagrams(switch, engine, came + number - AHEAD)
                for one in crowd:
                    one.close()
                crowd = senders(switch.place_of(engine), AHEAD * ADDRESSES // JOINS)
            crowd[number % len(crowd)].say(form.join(join(form, number)))
        for one in crowd:
            one.close()
        training.goes_on()
        assert switch.memory_mib() - before < 8
        found = switch.stats()[engine]
        assert {job["job"] for job in found["jobs"]} == {1}
        assert sum(job.get("waiting_workers", 0) for job in found["jobs"]) == 0
    assert ended(switch, form) == {}
    training.stop()
    # There is room for everybody who echoes.
    stranger(switch.place).enters(form, Name(job=7, workers=1))


TURNS, TURN_S = 5, 1.5
COMPUTES_S = 0.01


@contextmanager
def flooding(switch: Party, form: Format) -> Iterator[Callable[[str], int]]:
    """A flooder of its own process; `flood` or `burn` for a turn returns its number of joins."""
    program = Path(__file__).with_name("sum_flooding.py")
    support = str(Path(__file__).parents[1] / "support")
    host, port = switch.place
    argv = [sys.executable, str(program), f"{host}:{port}", form.name]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        argv, stdin=pipe, stdout=pipe, text=True, env=environment(support)
    ) as process:
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None
        assert stdout is not None

        def turn(what: str) -> int:
            stdin.write(f"{what} {TURN_S}\n")
            stdin.flush()
            return int(stdout.readline())

        try:
            assert stdout.readline() == "ready\n"
            yield turn
        finally:
            process.kill()


def environment(support: str) -> dict[str, str]:
    """This process's, with the modules of the tests."""
    return os.environ | {"PYTHONPATH": os.pathsep.join([support, *sys.path])}


@pytest.mark.slow
@pytest.mark.alone
def test_beside_a_flood_of_joins_a_job_makes_nine_tenths_of_its_rounds(
    party: Callable[..., Party], form: Format
) -> None:
    """Turns with the flood and turns with the same work for the machine, in turn."""
    switch = sums(party, form)
    training = Training([switch.address] * 2, form.name, computes_s=COMPUTES_S)
    rounds, sent = {"burn": 0, "flood": 0}, 0
    with flooding(switch, form) as flooder:
        flooder("burn")
        for what in ("burn", "flood") * TURNS:
            before = training.rounds
            sent += flooder(what)
            rounds[what] += training.rounds - before
    ratio = rounds["flood"] / rounds["burn"]
    print(f"{form.name}: {ratio:.3f} of undisturbed: {rounds}, {sent} joins")
    found = switch.stats()[form.engines[0]]
    assert found["io"]["received_datagrams"] > sent / 2, "this is no flood"
    assert ratio >= 0.9, rounds
    assert ended(switch, form) == {}
    training.stop()
    assert refused(switch, form.engines[0]).get("full", 0) == 0
