"""Workers that call different operations under one number: the one that differs is named.

All ends then stand at the same operation: the next one is right.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from workers import PATIENCE_S, together

import olaf
from olaf import SumConnection, _olaf
from olaf.sums.protocols import PROTOCOLS

Call = Callable[[SumConnection], object]
WORKERS = 3
HEARD_WITHIN_S = 5.0
"""Milliseconds on an idle machine, and far below the time limit of 60 s."""


def array(size: int, kind: str = "float32") -> np.ndarray[Any, Any]:
    """Ones."""
    return np.ones(size, kind)


def sums(op: Any, size: int = 100, kind: str = "float32", **options: Any) -> Call:
    """A call of `all_reduce`."""
    return lambda connection: connection.all_reduce(array(size, kind), op, **options)


def broadcasts(root: int, size: int = 100) -> Call:
    """A call of `broadcast`."""
    return lambda connection: connection.broadcast(array(size), root)


SUM = "all_reduce(sum) of float32[100]"


@dataclass(frozen=True)
class Case:
    """What one worker calls, and what the others call."""

    one: Call
    others: Call
    one_calls: str
    """As the error says it."""
    others_call: str = SUM


CASES = {
    "mean": Case(sums("mean"), sums("sum"), "all_reduce(mean) of float32[100]"),
    "max": Case(sums("max"), sums("sum"), "all_reduce(max) of float32[100]"),
    "type": Case(sums("sum", 100, "int32"), sums("sum"), "all_reduce(sum) of int32[100]"),
    "size": Case(sums("sum", 200), sums("sum"), "all_reduce(sum) of float32[200]"),
    "large": Case(sums("sum", 200_000), sums("sum"), "all_reduce(sum) of float32[200000]"),
    "empty": Case(sums("sum", 0), sums("sum"), "all_reduce(sum) of an empty float32 array"),
    "empty and one": Case(
        *(sums("sum", 0), sums("sum", 1), "all_reduce(sum) of an empty float32 array"),
        others_call="all_reduce(sum) of float32[1]",
    ),
    "exact": Case(
        *(sums("sum", exact=True), sums("sum"), "all_reduce(sum, exact=True) of float32"),
    ),
    "broadcast by a worker that is no root": Case(
        broadcasts(1), sums("sum"), "broadcast(root=1) of float32[100]"
    ),
}


def outcome(connection: SumConnection, call: Call) -> tuple[str | None, int | None, str]:
    """Reason, culprit and text of the error; nothing: it succeeded."""
    try:
        call(connection)
    except olaf.SumError as error:
        return error.reason, error.culprit, str(error)
    return None, None, ""


def following(connection: SumConnection) -> float:
    """The result of the next operation.

    Workers whose own call has a result may begin the next one before they hear that the generation
    has ended. It then fails at all workers, and the one after it is right.
    """
    for _ in range(2):
        values = array(50) * (connection.rank + 1)
        try:
            return float(connection.all_reduce(values)[0])
        except olaf.SumError as error:
            if error.reason != "mismatch":
                raise
    return 0.0


def switch_of(protocol: str) -> _olaf.Switch:
    """A switch in this process."""
    engines = [PROTOCOLS[protocol].engine, *PROTOCOLS[protocol].beside]
    switch = _olaf.Switch(json.dumps({"engines": engines, "listen": "127.0.0.1:0"}))
    switch.start()
    return switch


def after(
    protocol: str, case: Case, odd: int, **options: Any
) -> list[tuple[tuple[str | None, int | None, str], float]]:
    """What the workers hear, by rank, and the result of their next operation."""
    barrier = threading.Barrier(WORKERS)

    def work(connection: SumConnection) -> tuple[tuple[str | None, int | None, str], float]:
        connection.all_reduce(array(64))
        barrier.wait(PATIENCE_S)
        heard = outcome(connection, case.one if connection.rank == odd else case.others)
        barrier.wait(PATIENCE_S)
        return heard, following(connection)

    switch = switch_of(protocol)
    try:
        return together(switch.address, WORKERS, work, protocol=protocol, **options)
    finally:
        switch.stop()


@pytest.mark.parametrize("odd", [0, 2])
@pytest.mark.parametrize("name", CASES)
def test_the_worker_that_differs_is_named_with_both_calls(name: str, odd: int) -> None:
    case = CASES[name]
    for (reason, culprit, text), result in after("reduce", case, odd):
        assert (reason, culprit) == ("mismatch", odd), text
        assert f"{case.one_calls}, and the others {case.others_call};" in text
        assert result == 6, "all ends stand at the same operation"


def test_roots_that_differ_are_named_by_who_differs() -> None:
    case = Case(broadcasts(2), broadcasts(0), "broadcast(root=2) of float32[100]")
    heard = after("reduce", case, 1)
    assert [what[1] for what in heard] == [6, 6, 6]
    # The others have the right array: that of the root whom they named.
    assert heard[0][0] == heard[2][0] == (None, None, "")
    reason, culprit, text = heard[1][0]
    assert (reason, culprit) == ("mismatch", 1)
    assert "broadcast(root=2) of float32[100], and the others broadcast(root=0)" in text


def test_a_broadcast_that_nobody_takes_itself_for_the_root_of_is_named() -> None:
    # Worker 0 names 2, and workers 1 and 2 name 0.
    case = Case(broadcasts(2), broadcasts(0), "broadcast(root=2) of float32[100]")
    for (reason, culprit, text), result in after("reduce", case, 0):
        assert (reason, culprit, result) == ("mismatch", 0, 6), text


def test_empty_arrays_are_operations_of_all_workers() -> None:
    def work(connection: SumConnection) -> float:
        empty = array(0)
        assert connection.all_reduce(empty) is empty
        assert connection.all_reduce_async(empty).wait() is empty
        return float(connection.all_reduce(array(10))[0])

    switch = switch_of("reduce")
    try:
        assert together(switch.address, WORKERS, work) == [3, 3, 3]
    finally:
        switch.stop()


def in_another_order(connection: SumConnection) -> str:
    """Two sums of one size, which the last worker calls in another order."""
    first, second = array(100), 2 * array(100)

    def one() -> None:
        connection.all_reduce(first)

    def other() -> None:
        connection.all_reduce(second)

    order = (other, one) if connection.rank == WORKERS - 1 else (one, other)
    for call in order:
        try:
            call()
        except olaf.SumError as error:
            return f"{error.reason} {error.culprit} {error}"
    return "mixed"


def test_two_sums_in_another_order_are_named_by_the_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    switch = switch_of("reduce")
    try:
        assert together(switch.address, WORKERS, in_another_order) == ["mixed"] * WORKERS
        monkeypatch.setenv("OLAF_CHECK", "1")
        for heard in together(switch.address, WORKERS, in_another_order):
            assert heard.startswith("mismatch 2 ")
            assert "all_reduce(sum) of float32[100] (tag " in heard
    finally:
        switch.stop()


PAPERS = {
    "mean": (sums("mean"), sums("sum")),
    "sum": (sums("sum"), sums("mean")),
    "empty": (sums("sum", 0), sums("sum")),
    "size": (sums("sum", 200), sums("sum")),
    "large": (sums("sum", 50_000), sums("sum")),
}


@pytest.mark.parametrize("odd", [0, 2])
@pytest.mark.parametrize("name", PAPERS)
@pytest.mark.parametrize("protocol", ["iswitch", "trio", "atp"])
def test_the_protocols_of_papers_name_the_worker_that_differs(
    protocol: str, name: str, odd: int
) -> None:
    case = Case(*PAPERS[name], one_calls="")
    for (reason, culprit, text), result in after(protocol, case, odd):
        # The switch of iSwitch names whoever differs from the first packet, as its hardware does.
        assert reason == "mismatch", text
        assert culprit in (range(WORKERS) if protocol == "iswitch" else (odd,)), text
        assert "called another operation than the others" in text
        assert result == 6, "all ends stand at the same operation"


LACKING = {
    "max": (sums("max"), "all_reduce(max)"),
    "min": (sums("min"), "all_reduce(min)"),
    "type": (sums("sum", 100, "int32"), "all_reduce of another type than float32"),
    "exact": (sums("sum", exact=True), "an operation"),
    "wide": (sums("sum", exact="wide"), "all_reduce(max)"),
    "broadcast": (broadcasts(1), "broadcast"),
}
"""Calls that a protocol does not have, as the error names them."""


def refused(connection: SumConnection, call: Call) -> tuple[str | None, int | None, str]:
    """As `outcome`, of a call that this worker's protocol does not have."""
    with pytest.raises(ValueError, match="all_reduce: "):
        call(connection)
    return "refused", None, ""


@pytest.mark.parametrize("odd", [0, 2])
@pytest.mark.parametrize("name", LACKING)
@pytest.mark.parametrize("protocol", ["iswitch", "trio", "atp"])
def test_a_call_that_the_protocol_does_not_have_is_named_to_the_others(
    protocol: str, name: str, odd: int
) -> None:
    call, called = LACKING[name]
    if name == "broadcast" and PROTOCOLS[protocol].broadcasts:
        return
    barrier = threading.Barrier(WORKERS)

    def work(connection: SumConnection) -> tuple[tuple[str | None, int | None, str], float, float]:
        connection.all_reduce(array(64))
        barrier.wait(PATIENCE_S)
        began = time.monotonic()
        is_odd = connection.rank == odd
        heard = refused(connection, call) if is_odd else outcome(connection, sums("sum"))
        took = time.monotonic() - began
        barrier.wait(PATIENCE_S)
        return heard, float(connection.all_reduce(array(50) * (connection.rank + 1))[0]), took

    switch = switch_of(protocol)
    try:
        heard = together(switch.address, WORKERS, work, protocol=protocol)
    finally:
        switch.stop()
    for rank, ((reason, culprit, text), result, took) in enumerate(heard):
        if rank != odd:
            assert (reason, culprit) == ("mismatch", odd), text
            assert f"{called}, which this protocol does not have, and the others" in text
            assert "all_reduce(sum) of float32" in text
        assert result == 6, "all ends stand at the same operation"
        assert took < HEARD_WITHIN_S, took


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_call_that_all_workers_refuse_fails_at_all(protocol: str) -> None:
    def work(connection: SumConnection) -> float:
        for _ in range(2):
            refused(connection, sums("mean", 10, "int32"))
        return float(connection.all_reduce(array(10))[0])

    switch = switch_of(protocol)
    try:
        assert together(switch.address, WORKERS, work, protocol=protocol) == [3, 3, 3]
    finally:
        switch.stop()


@pytest.mark.parametrize(("one", "others"), [(2, 0), (0, 2), (1, 2)])
def test_iswitch_hears_roots_that_differ_before_it_sums(one: int, others: int) -> None:
    case = Case(broadcasts(one), broadcasts(others), "")
    for (reason, culprit, text), result in after("iswitch", case, 1):
        assert (reason, culprit, result) == ("mismatch", 1, 6), text
        assert f"broadcast(root={one}) of float32" in text
        assert f"the others broadcast(root={others}) of float32" in text


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_calls_that_change_together_are_right(protocol: str) -> None:
    def work(connection: SumConnection) -> None:
        for size in (1, 50, 400, 3000):
            for op in ("sum", "mean", "mean", "sum"):
                result = connection.all_reduce(array(size) * (connection.rank + 1), op)
                assert (result == (2 if op == "mean" else 6)).all()
            if PROTOCOLS[protocol].broadcasts:
                result = connection.broadcast(array(size) * connection.rank, 2)
                assert (result == 2).all()

    switch = switch_of(protocol)
    try:
        together(switch.address, WORKERS, work, protocol=protocol)
    finally:
        switch.stop()


def test_a_late_worker_that_calls_something_else_hears_of_it() -> None:
    """The others went on without it, and it has their result before it calls anything."""
    late = threading.Event()

    def work(connection: SumConnection) -> tuple[tuple[str | None, int | None, str], float]:
        if connection.rank == WORKERS - 1:
            late.wait(PATIENCE_S)
            heard = outcome(connection, sums("sum", partial=True))
        else:
            heard = outcome(connection, sums("mean", partial=True))
            if connection.rank == 0:
                late.set()
        met.wait(PATIENCE_S)
        return heard, following(connection)

    met = threading.Barrier(WORKERS)
    switch = switch_of("reduce")
    try:
        heard = together(switch.address, WORKERS, work, deadline_s=1.0)
    finally:
        switch.stop()
    assert [result for _, result in heard] == [6, 6, 6]
    assert heard[0][0] == heard[1][0] == (None, None, "")
    reason, culprit, text = heard[2][0]
    assert (reason, culprit) == ("mismatch", 2)
    assert "all_reduce(sum) of float32[100], and the others all_reduce(mean)" in text


@pytest.mark.parametrize("odd", [0, 2])
def test_a_sum_beside_a_broadcast_is_named(odd: int) -> None:
    """The root's array may reach those that agree with it before the sum comes."""
    case = Case(sums("sum"), broadcasts(1), SUM)
    for rank, ((reason, culprit, text), result) in enumerate(after("reduce", case, odd)):
        if rank == odd or reason is not None:
            assert (reason, culprit) == ("mismatch", odd), text
            assert f"{SUM}, and the others broadcast(root=1) of float32[100];" in text
        assert result == 6
