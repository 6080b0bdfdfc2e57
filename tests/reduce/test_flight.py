"""`olaf flight` says where the workers of a job differ, who is missing, and who waits."""

from __future__ import annotations

import contextlib
import io
import json
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import olaf as invoked
from workers import PATIENCE_S, Worker, switch_here, switch_process, together

import olaf
from olaf.cli.main import run
from olaf.doctor import flight as reading
from olaf.sums import flight

WORKERS = 3


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the workers write to."""
    folder = tmp_path / "flight"
    monkeypatch.setenv(flight.VARIABLE, str(folder))
    monkeypatch.setenv("OLAF_CHECK", "1")
    return folder


@contextmanager
def job() -> Iterator[list[Worker]]:
    """Workers in processes of their own, which have done four operations."""
    with ExitStack() as stack:
        _, address = stack.enter_context(switch_process())
        made = [Worker(address, workers=WORKERS, rank=rank) for rank in range(WORKERS)]
        for worker in made:
            stack.callback(worker.end)
        for worker in made:
            worker.answer()
        for _ in range(4):
            all_do(made, size=100)
        yield made


def all_do(workers: list[Worker], **order: Any) -> list[dict[str, Any]]:
    for worker in workers:
        worker.tell(**{"do": "sum", **order})
    return [worker.answer() for worker in workers]


def said_by(*argv: str) -> tuple[int, str]:
    """The exit code of `olaf flight` and its output."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = run(["flight", *argv])
    return code, out.getvalue()


def shown(folder: Path, *options: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and what it says of the only job."""
    code, out = said_by(str(folder), "--json", *options)
    told = json.loads(out)
    assert told["left_out"] == []
    (only,) = told["jobs"]
    return code, only


def text(folder: Path) -> str:
    return said_by(str(folder))[1]


def test_a_job_that_runs_has_no_difference(folder: Path) -> None:
    with job():
        code, told = shown(folder)
        said = text(folder)
    assert (code, told["good"], told["difference"]) == (0, True, None)
    assert "no operation differs, and none has failed" in said
    assert said.count("all_reduce(sum) of float32[100]") == 4
    assert "worker.py:" in said, "the line of the program"


def test_two_sums_in_another_order_have_their_lines(folder: Path) -> None:
    with job() as workers:
        workers[0].tell(do="sum", size=100)
        workers[1].tell(do="sum", size=100, elsewhere=True)
        workers[2].tell(do="sum", size=100)
        assert [worker.answer()["reason"] for worker in workers] == ["mismatch"] * 3
        code, told = shown(folder)
        said = text(folder)
    first = told["difference"]
    assert (code, first["number"]) == (1, 5)
    one, other = first["calls"]
    assert (one["ranks"], other["ranks"]) == ([0, 2], [1])
    assert one["call"] == other["call"] == "all_reduce(sum) of float32[100]"
    assert one["place"] != other["place"]
    assert told["failure"]["states"]["0"]["culprit"] == 1
    assert "operation 5 is the first one that differs: ranks 0, 2:" in said
    marked = [line.split() for line in said.splitlines() if line.startswith("  >")]
    assert [line[1] for line in marked] == ["5", "1"]


def test_a_worker_that_has_not_begun_an_operation_is_named_and_who_waits(folder: Path) -> None:
    with job() as workers:
        workers[0].tell(do="max", size=7)
        workers[2].tell(do="max", size=7)
        # Until then it may only be the moment.
        while (code := (found := shown(folder))[0]) == 0:
            assert found[1]["difference"] is None
        told, said = found[1], text(folder)
        assert (told["absent"], told["stale"]) == ([], [])
        workers[1].tell(do="max", size=7)
        assert all("value" in worker.answer() for worker in workers)
        code_then, _ = shown(folder)
    first = told["difference"]
    assert (code, first["number"], first["missing"]) == (1, 5, [1])
    assert sorted(first["waiting_s"]) == ["0", "2"]
    assert all(since > 0.9 for since in first["waiting_s"].values())
    assert "operation 5: rank 1 has not begun it" in said
    assert "operation 5: ranks 0, 2 wait for it" in said
    assert code_then == 0, "it was the moment after all"


def test_a_worker_that_left_without_an_operation_is_named(folder: Path) -> None:
    with job() as workers:
        workers[0].tell(do="sum", size=7)
        workers[2].tell(do="sum", size=7)
        workers[1].do(do="close")
        assert workers[0].answer()["reason"] == workers[2].answer()["reason"] == "worker_left"
        code, told = shown(folder)
        said = text(folder)
    assert (code, told["difference"]["missing"]) == (1, [1])
    assert "not begun, and it has left" in said


def test_a_worker_that_was_killed_is_named(folder: Path) -> None:
    with job() as workers:
        workers[1].process.kill()
        workers[1].process.wait()
        workers[0].tell(do="sum", size=7)
        workers[2].tell(do="sum", size=7)
        assert workers[0].answer()["reason"] == workers[2].answer()["reason"] == "worker_died"
        code, told = shown(folder)
        said = text(folder)
    assert (code, told["stale"], told["failure"]["number"]) == (1, [1], 5)
    assert told["difference"] is None, "what it began before its end is not known"
    assert "rank 1 did not answer" in said
    assert "worker_died (worker 1) at ranks 0, 2" in said
    assert "not known" in said


def test_a_call_that_began_no_operation_is_shown(folder: Path) -> None:
    with job() as workers:
        assert workers[1].do(do="sum", size=7, timeout_s=-1)["kind"] == "ValueError"
        code, told = shown(folder)
        all_do(workers, size=100)
        _, after = shown(folder)
    assert (code, told["difference"]) == (1, None)
    assert [(one["rank"], one["number"]) for one in told["refused"]] == [(1, 5)]
    assert "timeout_s = -1" in told["refused"][0]["error"]
    assert after["difference"] is None, "the next operation has the number"


@pytest.mark.usefixtures("folder")
def test_the_numbers_fit_each_other_after_failures() -> None:
    ready = threading.Barrier(WORKERS)

    def work(connection: olaf.SumConnection) -> list[dict[str, Any]]:
        # One worker has begun more operations than the others when the first one fails.
        odd = connection.rank == 0
        count, size = (3, 8) if odd else (1, 9)
        if not odd:
            ready.wait(PATIENCE_S)
        begun = [connection.all_reduce_async(np.ones(size, np.float32)) for _ in range(count)]
        if odd:
            ready.wait(PATIENCE_S)
        for future in begun:
            with pytest.raises(olaf.SumError):
                future.wait()
        while len(connection.operations()) < 3:
            with pytest.raises(olaf.SumError):
                connection.all_reduce(np.ones(9, np.float32))
        connection.all_reduce(np.ones(9, np.float32))
        return connection.operations()

    with switch_here() as switch:
        every = together(switch.address, WORKERS, work)
    for operations in every:
        assert [one["number"] for one in operations] == [1, 2, 3, 4]
        assert [one["state"] for one in operations] == [*["mismatch"] * 3, "done"]


def test_the_ring_keeps_the_last_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(flight.SIZE_VARIABLE, "3")

    def work(connection: olaf.SumConnection) -> list[dict[str, Any]]:
        for size in range(1, 6):
            connection.all_reduce(np.ones(size, np.int32), "max")
        connection.broadcast(np.ones(4, np.float64).astype(np.float16), 1)
        return connection.operations()

    with switch_here() as switch:
        operations = together(switch.address, 2, work)[0]
    assert [one["number"] for one in operations] == [4, 5, 6]
    first, _, last = operations
    assert (first["kind"], first["op"], first["type"], first["size"]) == (
        *("all_reduce", "max", "int32", 4),
    )
    assert (last["kind"], last["op"], last["type"], last["root"]) == (
        *("broadcast", None, "float16", 1),
    )
    assert all(one["file"] is None for one in operations), "only with OLAF_CHECK"
    assert all(one["begun_ns"] < one["ended_ns"] for one in operations)


def test_an_end_that_the_program_has_not_asked_for_is_none_that_is_waited_for() -> None:
    def work(connection: olaf.SumConnection) -> list[list[str]]:
        futures = [connection.all_reduce_async(np.ones(4, np.float32)) for _ in range(2)]
        del futures[0]
        connection.all_reduce(np.ones(4, np.float32))
        before = [one["state"] for one in connection.operations()]
        futures[0].wait()
        return [before, [one["state"] for one in connection.operations()]]

    with switch_here() as switch:
        before, after = together(switch.address, 2, work)[0]
    assert before == ["ended", "ended", "done"]
    assert after == ["ended", "done", "done"]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (flight.SIZE_VARIABLE, "many", "OLAF_FLIGHT_SIZE = 'many'"),
        (flight.SIZE_VARIABLE, "100001", "0 to 100000"),
        (flight.VARIABLE, "/proc/none/here", "OLAF_FLIGHT = '/proc/none/here'"),
    ],
)
def test_a_wrong_setting_is_named_and_the_worker_leaves(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with switch_here() as switch:
        monkeypatch.setenv(name, value)
        with pytest.raises(ValueError, match=said):
            olaf.connect_sum(switch.address, workers=1)
        monkeypatch.delenv(name)
        with olaf.connect_sum(switch.address, workers=1, timeout_s=5) as connection:
            assert connection.rank == 0


def test_a_forked_child_writes_nothing(folder: Path) -> None:
    with switch_here() as switch, olaf.connect_sum(switch.address, workers=1) as connection:
        connection.all_reduce(np.ones(3, np.float32))
        (file,) = folder.glob("*" + flight.SUFFIX)
        before = file.read_text()
        child = os.fork()
        if child == 0:
            connection._flight.write("a child")
            connection.close()
            os._exit(0)
        os.waitpid(child, 0)
        assert file.read_text() == before
    assert json.loads(file.read_text())["why"] == "left"


def test_files_of_strangers_are_left_out_with_a_reason(folder: Path) -> None:
    with switch_here() as switch, olaf.connect_sum(switch.address, workers=1) as connection:
        connection.all_reduce(np.ones(3, np.float32))
    (good,) = folder.glob("*" + flight.SUFFIX)
    told = json.loads(good.read_text())
    steering = json.loads(good.read_text())
    steering["operations"][0]["type"] = "\x1b[31mred"
    wrong: dict[str, Any] = {
        "deep": "[" * 100_000,
        "other": json.dumps({"format": "olaf flight 2"}),
        "rank": json.dumps({**told, "rank": -1}),
        "list": json.dumps({**told, "operations": 7}),
        "entry": json.dumps({**told, "operations": [7]}),
        "number": json.dumps({**told, "operations": [{**told["operations"][0], "number": "x"}]}),
    }
    for name, written in wrong.items():
        (folder / (name + flight.SUFFIX)).write_text(written)
    jobs, left_out = reading.read(folder)
    assert len(jobs) == 1
    assert sorted(line.partition(".")[0] for line in left_out) == sorted(wrong)
    (folder / ("deep" + flight.SUFFIX)).write_text(json.dumps({**steering, "rank": 1}))
    assert "\x1b" not in text(folder)


def test_a_folder_without_files_says_what_to_do(tmp_path: Path) -> None:
    ran = invoked("flight", str(tmp_path))
    assert ran.returncode == 2
    assert f"start the workers with OLAF_FLIGHT={tmp_path}" in ran.stderr


def test_a_worker_that_came_later_is_not_compared(folder: Path) -> None:
    with switch_here() as switch, olaf.connect_sum(switch.address, workers=1) as connection:
        for _ in range(3):
            connection.all_reduce(np.ones(3, np.float32))
    (first,) = folder.glob("*" + flight.SUFFIX)
    told = json.loads(first.read_text())
    later = {
        **{**told, "rank": 1, "operations": told["operations"][:1]},
        "joined_ns": told["joined_ns"] + 60 * 10**9,
    }
    (folder / ("later" + flight.SUFFIX)).write_text(json.dumps(later))
    (both,), _ = reading.read(folder)
    assert (both.late, both.difference) == ([1], None)
    later["joined_ns"] = told["joined_ns"]
    (folder / ("later" + flight.SUFFIX)).write_text(json.dumps(later))
    (both,), _ = reading.read(folder)
    assert both.difference is not None
    assert (both.difference.number, both.difference.missing) == (2, [1])


def test_ranks_are_named_in_short() -> None:
    assert reading.named([3, 0, 1, 2, 7]) == "0-3, 7"
    assert reading.named([]) == ""
