"""The file: what is refused, what is kept."""

import sqlite3
from pathlib import Path

import pytest
from services import SPEC

from olaf.jobs.outcome import Exit
from olaf.jobs.usage import ConfigurationError
from olaf.schedule.controller import Controller, KeyTakenError
from olaf.schedule.store import VERSION, Store, StoreError

JOB = {"name": "a", "hosts": 2, "units": 1}


def edited(file: Path, statement: str) -> None:
    database = sqlite3.connect(file, isolation_level=None)
    database.execute(statement)
    database.close()


def test_a_file_that_is_not_there_needs_a_topology(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="give --topology too"):
        Store(tmp_path / "none.db", None)


def test_a_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    edited(file, "CREATE TABLE theirs (x)")
    before = file.read_bytes()
    with pytest.raises(StoreError, match="another program") as refused:
        Store(file, SPEC)
    assert refused.value.code == Exit.USAGE
    assert file.read_bytes() == before
    text = tmp_path / "text"
    text.write_text("no database at all, " * 100)
    with pytest.raises(StoreError, match="no database"):
        Store(text, SPEC)


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    Store(file, SPEC).close()
    edited(file, f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(StoreError, match="use the newer Olaf"):
        Store(file, None)


def test_a_store_is_for_one_cluster(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    Store(file, SPEC).close()
    with pytest.raises(ConfigurationError, match="made for capacity"):
        Store(file, SPEC | {"capacity": "switch:1"})
    Store(file, None).close()


def test_one_process_has_it(tmp_path: Path) -> None:
    first = Store(tmp_path / "s.db", SPEC)
    with pytest.raises(StoreError, match="another service has it"):
        Store(tmp_path / "s.db", None)
    first.close()


def test_a_key_submits_once_across_restarts_and_snapshots(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    for repeated in (False, True, True):
        controller = Controller(Store(file, SPEC))  # closing leaves a snapshot
        done = controller.submit(JOB, 5, "k").result(30)
        assert done.job is not None
        assert (done.job["job"], done.repeated) == (1, repeated)
        with pytest.raises(KeyTakenError):
            controller.submit(JOB | {"hosts": 3}, 5, "k").result(30)
        controller.close()


def test_events_keep_their_numbers(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    controller = Controller(Store(file, SPEC))
    for _ in range(3):
        controller.submit(JOB, 0, None).result(30)
    before = controller.events
    controller.close()
    controller = Controller(Store(file, SPEC))
    assert (controller.events, controller.replayed) == (before, 0)
    controller.submit(JOB, 0, None).result(30)
    controller.close()
    assert controller.events > before > 0


def test_another_decision_than_before_is_said_and_nothing_is_done(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    store = Store(file, SPEC)
    controller = Controller(store)
    controller.submit(JOB, 0, None).result(30)
    controller._since_snapshot = 0  # as if it were killed: no snapshot
    controller.close()
    edited(file, "UPDATE commands SET digest = 1")
    with pytest.raises(StoreError, match="decided differently"):
        Controller(Store(file, None))


def test_a_full_disk_fails_the_request_and_nothing_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "s.db", SPEC)
    controller = Controller(store)
    append = store.append

    def full(accepted: object) -> None:
        raise StoreError("database or disk is full")

    monkeypatch.setattr(store, "append", full)
    with pytest.raises(StoreError, match="disk is full"):
        controller.submit(JOB, 0, "k").result(30)
    monkeypatch.setattr(store, "append", append)
    done = controller.submit(JOB, 0, "k").result(30)
    assert done.job is not None
    assert (done.job["job"], done.repeated) == (1, False)
    controller.close()
