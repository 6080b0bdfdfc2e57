"""What a tree wins a job is the same after a restart: bandwidth, speed-up and patterns are kept."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from services import Service

from olaf.errors.usage import ConfigurationError
from olaf.schedule.known import NETWORK, Known, contents
from olaf.schedule.worth import Worth, united

NEW = ("--topology", "fat-tree:4", "--capacity", "switch:1")


def pattern(folder: Path, size: int) -> Path:
    """``own.json``: a step of 100 ms and one all-reduce."""
    folder.mkdir(exist_ok=True)
    step = {"duration": 0.1, "allreduces": [{"start": 0.08, "size": size}]}
    (folder / "own.json").write_text(json.dumps(step))
    return folder


def gain(service: Service, name: str) -> int:
    """Of a job submitted now; it ends again, so that hosts stay free."""
    submitted = service.olaf("submit", "j", "--hosts", "3", "--pattern", name, "--json")
    assert submitted.returncode == 0, submitted.stderr
    job: dict[str, Any] = json.loads(submitted.stdout)
    assert service.olaf("finish", str(job["job"])).returncode == 0
    return int(job["gain"])


@pytest.mark.slow
def test_a_restart_with_the_store_alone_gives_the_same_gains(tmp_path: Path) -> None:
    store, folder = tmp_path / "s.db", pattern(tmp_path / "mine", 30_000_000)
    given = ("--bandwidth", "1gbit", "--speedup", "3", "--patterns", str(folder))
    with Service(store, *NEW, *given) as service:
        first = {name: gain(service, name) for name in ("own", "resnet18")}
        service.end(signal.SIGKILL)
    assert min(first.values()) > 0
    shutil.rmtree(folder)  # its contents are in the store
    for how in (signal.SIGTERM, signal.SIGKILL):  # the first leaves a snapshot
        with Service(store) as service:
            assert {name: gain(service, name) for name in first} == first
            told = json.loads(service.olaf("status", "--json").stdout)
            assert told["network"]["bytes_per_second"] == 125_000_000
            service.end(how)
    with Service(tmp_path / "other.db", *NEW) as service:  # the settings do matter
        assert gain(service, "resnet18") != first["resnet18"]


@pytest.mark.slow
def test_a_pattern_that_came_later_is_kept_with_the_job_that_named_it(tmp_path: Path) -> None:
    store, folder = tmp_path / "s.db", tmp_path / "mine"
    folder.mkdir()
    with Service(store, *NEW, "--bandwidth", "1gbit", "--patterns", str(folder)) as service:
        pattern(folder, 30_000_000)
        first = gain(service, "own")
        pattern(folder, 60_000_000)
        assert gain(service, "own") == first
        service.end(signal.SIGKILL)
    with Service(store) as service:
        assert gain(service, "own") == first


@pytest.mark.slow
def test_a_store_of_version_1_is_read_and_completed(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    with Service(store, *NEW) as service:
        gain(service, "mlp")
        service.end(signal.SIGTERM)
    database = sqlite3.connect(store, isolation_level=None)
    database.executescript(
        "DROP TABLE patterns; DELETE FROM facts WHERE name = 'network'; PRAGMA user_version = 1;"
    )
    database.close()
    with Service(store, "--bandwidth", "1gbit") as service:
        said = service.line()
        assert (said["event"], said["network"]["bytes_per_second"]) == ("completed", 125_000_000)
        first = gain(service, "mlp")
        service.end(signal.SIGTERM)
    with Service(store) as service:
        assert gain(service, "mlp") == first


def test_other_values_are_refused_with_both_and_taken_when_that_is_said(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    small = contents([pattern(tmp_path / "a", 1000)])
    large = contents([pattern(tmp_path / "b", 2000)])
    kept, _ = united(file, None, Worth({"speedup_millis": 3000}, small), {}, change=False)
    assert kept.network == NETWORK | {"speedup_millis": 3000}
    assert united(file, kept, Worth(), {"own": large["own"]}, change=False) == (kept, [])
    with pytest.raises(ConfigurationError, match=r"--speedup 3, now 2: .*--change"):
        united(file, kept, Worth({"speedup_millis": 2000}), {}, change=False)
    with pytest.raises(ConfigurationError, match=r"--bandwidth 100 Gbit/s, now 1 Gbit/s"):
        united(file, kept, Worth({"bytes_per_second": 125_000_000}), {}, change=False)
    with pytest.raises(ConfigurationError, match=r"own \(1 all-reduces, 1000 .* now .* 2000 bytes"):
        united(file, kept, Worth(patterns=large), {}, change=False)
    changed, said = united(file, kept, Worth({"speedup_millis": 2000}, large), {}, change=True)
    assert changed == Worth(dict(NETWORK), large)
    assert said[0] == "--speedup 3 -> 2"
    assert len(said) == 2


def test_a_file_that_is_no_pattern_is_named_when_a_job_names_it(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    assert contents([tmp_path]) == {}
    assert Known([tmp_path]).names() == ["broken"]
