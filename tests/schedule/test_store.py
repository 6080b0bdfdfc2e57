"""The file: what is refused, what is kept."""

import contextlib
import json
import random
import shutil
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from services import SPEC, Service

from olaf.errors.outcome import Exit
from olaf.errors.usage import ConfigurationError
from olaf.schedule.controller import Controller, KeyTakenError
from olaf.schedule.store import VERSION, Store, StoreError

JOB = {"name": "a", "hosts": 2, "units": 1}


def earlier(join: str) -> dict[str, Any]:
    """The spec that an earlier Olaf wrote for `serve --topology fat-tree:4`, for `several`."""
    trees = {"candidates": 64, "join": join, "price_millis": 50, "depth": 3, "work": 100_000}
    return {
        "topology": {"word": "fat-tree:4"},
        "capacity": "port:1",
        "placement": {"policy": "fragments", "alpha_millis": 500},
        "trees": {"policy": "gain", **trees},
        "seed": 0,
        "most_queued": 10_000,
        "most_ended": 1_000,
    }


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
    with pytest.raises(StoreError, match="not a database"):
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


@pytest.mark.slow
def test_a_store_of_an_earlier_olaf_is_gone_on_with(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    Store(file, earlier("several")).close()
    for options in ((), ("--trees", "gain"), ("--join", "several")):
        with Service(file, "--topology", "fat-tree:4", *options) as service:
            status = json.loads(service.olaf("status", "--json").stdout)
            assert status["trees"]["join"] == "several"
            assert service.end(signal.SIGTERM) == 0
    with pytest.raises(AssertionError, match=r'made for trees .*"several"'):
        Service(file, "--topology", "fat-tree:4", "--join", "none")


def test_a_store_that_says_nobody_says_none(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    Store(file, earlier("none")).close()
    edited(file, "UPDATE facts SET value = replace(value, '\"none\"', '\"nobody\"')")
    store = Store(file, earlier("none"))
    assert store.spec == earlier("none")
    store.close()
    with pytest.raises(ConfigurationError, match="made for trees"):
        Store(file, earlier("several"))
    Store(file, earlier("several"), left_out=["join"]).close()
    Store(file, {**earlier("none"), "trees": {"policy": "first"}}, left_out=["trees"]).close()
    with pytest.raises(ConfigurationError, match="made for trees"):
        Store(file, {**earlier("none"), "trees": {"policy": "first"}}, left_out=["join"])


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


def of_a_killed_service(folder: Path, commands: int) -> Path:
    """The files of a service that was killed after these commands: nothing of it was closed."""
    made = folder / "made"
    made.mkdir()
    store = Store(made / "s.db", SPEC)
    controller = Controller(store)
    for _ in range(commands):
        controller.submit(JOB, 0, None).result(30)
    killed = folder / "killed"
    shutil.copytree(made, killed)
    controller.close()
    return killed / "s.db"


def test_one_flipped_bit_loses_no_command_silently(tmp_path: Path) -> None:
    file = of_a_killed_service(tmp_path, 54)
    log = file.with_name("s.db-wal")
    whole = log.read_bytes()
    kept = file.read_bytes()
    assert len(whole) > 54 * 4096
    drawn = random.Random(7)
    places = [drawn.randrange(8 * len(whole)) for _ in range(60)]
    # In the log's header, in the first frame, and in the last one.
    places += [8 * byte for byte in (0, 17, 25, 33, 45, 3000, len(whole) - 4100, len(whole) - 5)]
    refused = 0
    for place in places:
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        log.write_bytes(damaged)
        file.write_bytes(kept)
        file.with_name("s.db-shm").unlink(missing_ok=True)
        with contextlib.ExitStack() as ends:
            try:
                store = Store(file, None)
                ends.callback(store.close)
                commands = len(store.load().commands)
            except (StoreError, ConfigurationError):
                refused += 1
            else:
                assert commands == 54, f"bit {place} took commands with it"
    assert refused > len(places) // 2


def test_a_store_that_lost_commands_says_which_and_how_to_go_on(tmp_path: Path) -> None:
    file = of_a_killed_service(tmp_path, 5)
    log = file.with_name("s.db-wal")
    damaged = bytearray(log.read_bytes())
    damaged[-5] ^= 1
    log.write_bytes(damaged)
    store = Store(file, None)
    with pytest.raises(StoreError, match="ends with command 4, and command 5 was written") as told:
        Controller(store)
    store.close()
    assert file.with_name("s.db-wal-damaged").read_bytes() == damaged
    named = file.with_name("s.db-acknowledged")
    assert str(named) in str(told.value)
    named.unlink()
    controller = Controller(Store(file, None))
    assert controller.replayed == 4
    controller.submit(JOB, 0, None).result(30)
    controller.close()
    assert named.exists()


def test_a_changed_command_is_refused(tmp_path: Path) -> None:
    file = of_a_killed_service(tmp_path, 5)
    edited(file, """UPDATE commands SET at_ms = at_ms + 1 WHERE id = 2""")
    store = Store(file, None)
    with pytest.raises(StoreError, match="up to 5 are not those that were written"):
        Controller(store)
    store.close()


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
