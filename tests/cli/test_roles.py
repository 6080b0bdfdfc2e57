"""What a role's process does around the core, with a core that is in memory."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from waiting import until

from olaf.cli.main import run
from olaf.cli.roles import _human
from olaf.errors.outcome import Exit, RunError
from olaf.jobs import roles
from olaf.jobs.reading import read_settings
from olaf.jobs.training import worker_job
from olaf.processes.lines import Control, Reporter

Array = NDArray[np.float32]


class Client:
    """A worker's end with nobody at the other."""

    def __init__(self, address: str, **told: Any) -> None:
        self.told = told
        self.worker = 3 if told["worker"] is None else told["worker"]
        self.local_address = "127.0.0.1:1"
        self.pushes = 0
        self.news = [json.dumps({"event": "switch_silent", "address": address, "at_ns": 1})]

    def join(self, weights: Sequence[Array], timeout_s: float, layout: str | None = None) -> int:
        return 1

    def push(self, parts: Sequence[Array], *, reward: float, weight: float = 1.0) -> int:
        self.pushes += 1
        return self.pushes - 1

    def pull(self, parts: Sequence[Array], newer_than: int) -> int | None:
        return None

    def wait(self, newer_than: int, timeout_s: float) -> int | None:
        return None

    def awaits_end(self) -> bool:
        return False

    def refresh(self) -> None:
        pass

    def refreshed(self, timeout_s: float) -> bool:
        return True

    def holding(self) -> bool:
        return False

    def flush(self, timeout_s: float) -> bool:
        return True

    def stats(self) -> str:
        return json.dumps({"contributions": self.pushes})

    def events(self) -> list[str]:
        news, self.news = self.news, []
        return news

    def leave(self) -> None:
        pass


class Endpoint:
    """A switch or server that counts how often it is asked."""

    address = "127.0.0.1:7"

    def __init__(self, core: str) -> None:
        self.asked = 0
        self.calls: list[str] = []

    def start(self) -> None:
        self.calls.append("start")

    def stats(self) -> str:
        self.asked += 1
        return json.dumps({"asked": self.asked})

    def events(self) -> list[str]:
        return []

    def model(self, job: int) -> tuple[int, Array]:
        return 4, np.arange(3, dtype=np.float32)

    def finish(self) -> None:
        self.calls.append("finish")

    def stop(self) -> None:
        self.calls.append("stop")


@pytest.fixture(autouse=True)
def _core(monkeypatch: pytest.MonkeyPatch) -> None:
    core: Any = types.ModuleType("olaf._olaf")
    core.Client, core.Switch, core.Server = Client, Endpoint, Endpoint
    monkeypatch.setitem(sys.modules, "olaf._olaf", core)


def heard(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def reporter(out: io.StringIO) -> Reporter:
    return Reporter(as_json=True, out=out, human=lambda message: "")


def task(*overrides: str) -> roles.WorkerJob:
    settings = read_settings(
        overrides=[
            "learner.environment='CartPole-v1'",
            "learner.environments=1",
            "learner.steps_per_update=50",
            "worker.push_every=turn",
            *overrides,
        ]
    )
    return worker_job(settings, switch="127.0.0.1:5", worker=6, cluster=1, seed=2)


def test_a_worker_reports_each_push_and_its_last_word() -> None:
    out = io.StringIO()
    roles.run_worker(task("worker.updates=3"), reporter(out), Control())
    messages = heard(out)
    assert [m["event"] for m in messages] == [
        "ready",
        "joined",
        "switch_silent",
        "update",
        "update",
        "update",
        "stopped",
    ]
    ready, updates, stopped = messages[0], messages[3:6], messages[-1]
    assert (ready["worker"], ready["cluster"]) == (6, 1)
    assert ready["reward_threshold"] == 475.0
    assert sum(int(np.prod(shape)) for shape in ready["shapes"]) == ready["parameters"]
    assert [u["updates"] for u in updates] == [1, 2, 3]
    assert [u["stats"]["contributions"] for u in updates] == [1, 2, 3]
    assert updates[-1]["steps"] == 150
    assert (stopped["why"], stopped["flushed"]) == ("done", True)
    assert stopped["stats"] == {"contributions": 3}


class Joining(Client):
    """It tells of its join, and of a second one after the server's restart."""

    def join(self, weights: Sequence[Array], timeout_s: float, layout: str | None = None) -> int:
        joined = [json.dumps({"event": "joined", "job": 1, "version": v}) for v in (1, 9)]
        self.news = [joined[0], *self.news, joined[1]]
        return 1


def test_a_worker_tells_of_each_join_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["olaf._olaf"], "Client", Joining)
    out = io.StringIO()
    roles.run_worker(task("worker.updates=2"), reporter(out), Control())
    joins = [message for message in heard(out) if message["event"] == "joined"]
    assert [join["version"] for join in joins] == [1, 9]
    assert joins[0]["worker"] == 6


def test_a_worker_that_is_asked_to_stop_ends_after_its_turn() -> None:
    out, control = io.StringIO(), Control()
    control.stop("asked to")
    roles.run_worker(task(), reporter(out), control)
    assert heard(out)[-1]["why"] == "asked to"


def test_an_unknown_environment_is_a_usage_error() -> None:
    with pytest.raises(RunError, match="CartPole-v1") as error:
        roles.run_worker(
            task("learner.environment='CartPol-v1'"), reporter(io.StringIO()), Control()
        )
    assert error.value.code == Exit.USAGE


def test_a_worker_divides_by_the_servers_learning_rate_unless_told_otherwise() -> None:
    assert task("server.learning_rate=0.5").learner["gamma"] == 0.5
    assert task("server.learning_rate=0.5", "learner.gamma=0.1").learner["gamma"] == 0.1
    assert task("server.segment_lanes=7").client["segment_lanes"] == 7


def test_what_a_worker_is_told_survives_json() -> None:
    from dataclasses import asdict

    told = task("learner.hidden=[8, 4]")
    out = io.StringIO()
    again = roles.WorkerJob(**json.loads(json.dumps(asdict(told))))
    roles.run_worker(roles.WorkerJob(**{**asdict(again), "updates": 1}), reporter(out), Control())
    assert heard(out)[-1]["stats"] == {"contributions": 1}


def test_a_server_reports_on_request_and_keeps_its_model(tmp_path: Path) -> None:
    out, control, file = io.StringIO(), Control(), tmp_path / "deep" / "model.npz"
    thread = threading.Thread(
        target=roles.run_server,
        args=("{}", 60.0, reporter(out), control),
        kwargs={"model_file": str(file)},
    )
    thread.start()
    control._stats_wanted = True
    control._wake()
    until(lambda: '"stats"' in out.getvalue(), what="statistics")
    control.stop("SIGTERM")
    thread.join(timeout=20)
    messages = heard(out)
    assert messages[0] == {"event": "listening", "address": "127.0.0.1:7", "pid": os.getpid()}
    assert messages[-1]["why"] == "SIGTERM"
    saved = np.load(file)
    assert int(saved["version"]) == 4
    np.testing.assert_array_equal(saved["parameters"], [0, 1, 2])


def test_a_reader_that_left_is_no_reason_to_fail() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as stream:
        quiet = Reporter(as_json=True, out=stream, human=lambda message: "")
        quiet.say("one")
        quiet.say("two")


def test_people_read_sentences_and_not_every_update() -> None:
    out = io.StringIO()
    human = Reporter(as_json=False, out=out, human=_human("worker", every_s=1e9))
    roles.run_worker(task("worker.updates=3"), human, Control())
    lines = [line.split(": ", 1)[1] for line in out.getvalue().splitlines()]
    assert lines[0].startswith("plays CartPole-v1 with")
    assert lines[2] == "switch 127.0.0.1:5 is silent"
    assert sum(line.startswith("update ") for line in lines) == 1
    assert lines[-1] == "stopped (done): 3 contributions"


def test_a_finished_worker_stays_in_the_job_until_it_is_told_to_stop() -> None:
    out, control = io.StringIO(), Control()
    control.finishing = True
    thread = threading.Thread(target=roles.run_worker, args=(task(), reporter(out), control))
    thread.start()
    until(lambda: '"finished"' in out.getvalue(), what="the worker to finish")
    assert '"stopped"' not in out.getvalue()
    control.stop("asked to")
    thread.join(timeout=20)
    events = [m["event"] for m in heard(out)]
    assert events[-1] == "stopped"
    assert "update" not in events


@pytest.mark.parametrize("role", ["switch", "server", "worker"])
def test_the_configuration_is_printed_to_stdout_with_json_too(
    role: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([role, "--json", "--print-config"]) == 0
    assert f"[{role}]" in capsys.readouterr().out
