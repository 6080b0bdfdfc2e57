"""A run hands its key to all its processes, and makes one where it listens beyond this machine."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_doubles import Watcher

import olaf
from olaf import _olaf
from olaf.cli.main import run
from olaf.errors.outcome import Exit, RunError
from olaf.errors.usage import ConfigurationError
from olaf.jobs.places.slurm_batch import write_batch
from olaf.jobs.reading import read_settings
from olaf.jobs.run_keys import run_keys
from olaf.jobs.settings import Settings
from olaf.jobs.supervisor import Occurrence, Program, Said, Supervisor
from olaf.jobs.training import Training
from olaf.processes.lines import Control


@pytest.fixture(autouse=True)
def _no_key_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OLAF_KEY_FILE", raising=False)


@pytest.fixture
def key(tmp_path: Path) -> str:
    """A job's key, good for any job."""
    file = tmp_path / "job.key"
    _olaf.new_key(file)
    return str(file)


def settings_of(*overrides: str) -> Settings:
    return read_settings(overrides=list(overrides))


def secret(text: str | None) -> str:
    assert text is not None
    found: str = json.loads(text)["secret"]
    return found


def test_on_this_machine_nothing_needs_a_key() -> None:
    keys = run_keys(settings_of())
    assert (keys.server, keys.switch, keys.worker) == ([], [], None)


@pytest.mark.parametrize(
    ("said", "open_roles"),
    [("switch", ["switch"]), ("server", ["server"]), ("train", ["server", "switch"])],
)
def test_one_role_without_a_key_does_not_open_the_other(said: str, open_roles: list[str]) -> None:
    keys = run_keys(settings_of("server.listen=0.0.0.0:0", f"{said}.insecure=true"))
    told = {role: keys.core(role, '{"insecure": false}') for role in ("server", "switch")}
    assert [role for role, core in told.items() if json.loads(core)["insecure"]] == open_roles


@pytest.mark.parametrize("where", ["train.on=ray", "train.on=srun", "switch.listen=0.0.0.0:0"])
def test_a_run_that_can_be_reached_makes_a_key_of_its_own_each_time(where: str) -> None:
    one, other = run_keys(settings_of(where)), run_keys(settings_of(where))
    assert one.server == [one.worker]
    assert json.loads(one.server[0])["job"] == 1
    assert json.loads(one.switch[0])["kind"] == "switch"
    assert secret(one.switch[0]) != secret(one.worker) != secret(other.worker)
    assert run_keys(settings_of(where, "train.insecure=true")).server == []
    assert secret(one.worker) not in repr(one)


@pytest.mark.parametrize("by", ["option", "environment"])
def test_the_key_that_is_named_reaches_every_role(
    key: str, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by == "environment":
        monkeypatch.setenv("OLAF_KEY_FILE", key)
    named = [f"train.key_file='{key}'"] if by == "option" else []
    keys = run_keys(settings_of(*named))
    assert keys.server == [keys.worker] == [_olaf.key_text(key)]
    assert keys.switch == [_olaf.switch_key_text(_olaf.key_text(key))]
    # A path of this machine stands in nothing that goes to another one.
    core = json.loads(keys.core("server", settings_of(*named).server.to_core()))
    assert (core["key_files"], core["keys"]) == ([], keys.server)
    assert keys.client({"ecn": True, "key_file": key}) == {"ecn": True, "key": keys.worker}


def test_a_file_that_is_no_private_key_is_named(key: str, tmp_path: Path) -> None:
    os.chmod(key, 0o644)
    for file, told in ((key, "chmod 600"), (str(tmp_path / "none.key"), "none.key")):
        with pytest.raises(ConfigurationError, match=told):
            run_keys(settings_of(f"train.key_file='{file}'"))


def test_a_plain_tcp_server_has_no_keys_and_stays_on_this_machine() -> None:
    tcp = "train.transport=tcp"
    assert run_keys(settings_of(tcp)).server == []
    with pytest.raises(RunError, match="has no keys") as error:
        run_keys(settings_of(tcp, "server.listen=0.0.0.0:0"))
    assert error.value.code == Exit.USAGE
    assert run_keys(settings_of(tcp, "server.listen=0.0.0.0:0", "train.insecure=true")).insecure


def test_a_batch_job_finds_the_key_from_every_folder(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    batch = write_batch(settings_of("train.key_file=job.key", "train.on=slurm"), tmp_path / "run")
    assert read_settings(batch.configuration).train.key_file == key
    assert secret(_olaf.key_text(key)) not in batch.configuration.read_text()


class Recording(Supervisor):
    """Notes what each process is told, and its newest counters."""

    def __init__(self) -> None:
        super().__init__()
        self.told: dict[str, dict[str, Any]] = {}
        self.stats: dict[str, dict[str, Any]] = {}

    def poll(self, timeout_s: float) -> list[Occurrence]:
        occurrences = super().poll(timeout_s)
        for one in occurrences:
            if isinstance(one, Said) and "stats" in one.message:
                self.stats[one.name] = one.message["stats"]
        return occurrences

    def start(self, program: Program) -> None:
        self.told[program.name] = json.loads(program.first_line)
        super().start(program)


def train(tmp_path: Path, place: Supervisor, *overrides: str) -> None:
    settings = settings_of(
        f"train.out='{tmp_path / 'run'}'",
        "train.workers=2",
        "train.updates=6",
        "train.until_reward=off",
        "train.every_s=0.05",
        "learner.environment=CartPole-v1",
        *overrides,
    )
    assert Training(settings, Watcher(), Control(), place=place).run().code == Exit.OK


def test_a_run_that_listens_everywhere_trains_behind_its_own_key(tmp_path: Path) -> None:
    place = Recording()
    train(tmp_path, place, "switch.listen=0.0.0.0:0", "train.leaves=2")
    keys = {
        name: json.loads(told["core"])["keys"]
        for name, told in place.told.items()
        if "core" in told
    }
    one = keys["server"]
    assert len(one) == 1
    for switch in ("switch", "leaf 0", "leaf 1"):
        assert keys[switch] == [_olaf.switch_key_text(one[0])]
    for worker in ("worker 0", "worker 1"):
        assert place.told[worker]["client"]["key"] == one[0]
    for name in keys:
        assert place.stats[name]["keys"]["opened"] > 0
        assert place.stats[name]["keys"]["refused"] == {}
    # The run's folder can be shown to anybody.
    for file in (tmp_path / "run").rglob("*"):
        if file.is_file():
            assert secret(one[0]).encode() not in file.read_bytes(), file


def test_the_option_of_the_command(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["train", "--key-file", key, "--insecure", "--print-config"]) == 0
    (tmp_path / "printed.toml").write_text(capsys.readouterr().out)
    train = read_settings(tmp_path / "printed.toml").train
    assert (train.key_file, train.insecure) == (key, True)


def test_a_local_job_that_can_be_reached_makes_a_key_for_its_workers() -> None:
    reached = {"listen": "0.0.0.0:0"}
    with olaf.local(switch=reached) as job:
        assert job.key_file is not None
        assert os.stat(job.key_file).st_mode & 0o777 == 0o600
        address = f"127.0.0.1:{job.address.rpartition(':')[2]}"
        told = "only workers with the key"
        with olaf.connect(address) as one, pytest.raises(olaf.UnreachableError, match=told):
            one.join([np.zeros(4, np.float32)], timeout_s=1.0)
        with olaf.connect(address, key_file=job.key_file) as worker:
            assert worker.join([np.zeros(4, np.float32)], timeout_s=10.0) == 1
        assert job.stats()["switch"]["keys"]["refused"]["no_seal"] > 0
    assert not os.path.exists(job.key_file)


def test_a_local_job_takes_the_key_that_is_named(key: str) -> None:
    with olaf.local(key_file=key) as job, olaf.connect(job.address, key_file=key) as worker:
        assert job.key_file == key
        assert worker.join([np.zeros(4, np.float32)], timeout_s=10.0) == 1
    with olaf.local() as job:
        assert job.key_file is None
    with pytest.raises(ValueError, match="nowhere"):
        olaf.local(key_file="nowhere")
