"""Answering a switch that asks: the program that is asked, its deadline, and what people read."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import message_of, olaf
from waiting import until

from olaf import _olaf
from olaf.errors.outcome import Exit
from olaf.jobs.admission import Admission, Answer, Policy, Program, Question, WireCluster
from olaf.jobs.reading import read_settings
from olaf.jobs.words import sentence

POLICY = """
[queue]
slots = 2
service_ms = 2

[[cluster]]
name = "listed"
interval_ms = 100
ids = [3]

[[cluster]]
name = "slow"
interval_ms = 300
ids = [5]

[[objective]]
kind = "fair_peak"
epsilon_ms = 100
"""


def question(left_s: float = 20.0) -> Question:
    return Question(WireCluster(1, 4), (WireCluster(1, 3),), time.time() + left_s)


def program(code: str) -> Program:
    return Program([sys.executable, "-c", code], "running.toml")


def test_the_program_is_told_the_question_and_its_answer_is_taken() -> None:
    echo = program(
        "import json, sys; told = json.load(sys.stdin);"
        "print(json.dumps({'answer': 'admit', 'reason': json.dumps(told)}))"
    )
    asked = question()
    answer = echo.ask(asked)
    assert answer.answer == "admit"
    assert json.loads(answer.reason) == {
        "file": "running.toml",
        "newcomer": [1, 4],
        "running": [[1, 3]],
        "until_s": asked.until_s,
    }


def test_a_program_that_takes_too_long_is_killed_with_all_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    slow = program(
        "import os, subprocess, sys, time;"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}');"
        "time.sleep(600)"
    )
    began = time.monotonic()
    answer = slow.ask(question(left_s=2.0))
    assert answer == Answer("undecided", "no answer within 2.0 s")
    assert time.monotonic() - began < 10.0
    for pid in pids.read_text().split():
        until(lambda: is_gone(int(pid)), what=f"process {pid} to be gone")  # noqa: B023


def is_gone(pid: int) -> bool:
    """No process, or one that waits only for its parent to notice."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (
            "import sys; sys.exit('running.toml: queue is missing')",
            "running.toml: queue is missing",
        ),
        ("import os; os._exit(7)", "the verifier exited with 7"),
        ("import os; os.kill(os.getpid(), 9)", "the verifier was killed by SIGKILL"),
        ("print('yes')", "the verifier printed 'yes', which is no answer"),
        ('print(\'{"answer": "perhaps", "reason": ""}\')', "the verifier answered 'perhaps'"),
    ],
)
def test_what_is_no_answer_is_undecided_and_says_why(code: str, reason: str) -> None:
    assert program(code).ask(question()) == Answer("undecided", reason)


def test_a_program_that_is_not_there_is_named() -> None:
    answer = Program(["/nowhere/verifier"], "running.toml").ask(question())
    assert answer == Answer(
        "undecided", "cannot start /nowhere/verifier: No such file or directory"
    )


class Switch:
    """A switch that takes answers to one question."""

    def __init__(self, *, in_time: bool = True) -> None:
        self.in_time = in_time
        self.heard: list[tuple[int, int, bool | None]] = []

    def decide(self, job: int, cluster: int, admitted: bool | None) -> bool:
        self.heard.append((job, cluster, admitted))
        return self.in_time


class Says:
    """Whoever knows at once."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.asked: list[Question] = []

    def ask(self, question: Question) -> Answer:
        self.asked.append(question)
        return self._answer

    def stop(self) -> None:
        pass


WANTED = {
    "event": "admission_wanted",
    "job": 1,
    "cluster": 4,
    "worker": 9,
    "address": "127.0.0.1:9",
    "running": [{"job": 1, "cluster": 3}],
    "at_ns": 1_700_000_000_000_000_000,
}


def settled(answer: Answer, unanswered: str, *, in_time: bool = True) -> tuple[Switch, Any]:
    switch, says = Switch(in_time=in_time), Says(answer)
    desk = Admission(Policy("running.toml", 5.0, unanswered), switch.decide, says)
    desk.take(WANTED)
    [message] = until(desk.settled, what="an answer")
    assert says.asked == [Question(WireCluster(1, 4), (WireCluster(1, 3),), 1_700_000_005.0)]
    return switch, message


def test_an_answer_reaches_the_switch_and_is_told_with_its_reason() -> None:
    switch, message = settled(Answer("admit", "proved for ever"), "refuse")
    assert switch.heard == [(1, 4, True)]
    assert (message["event"], message["answer"]) == ("cluster_admitted", "admit")
    assert sentence(message) == "cluster 4 of job 1 admitted after 0.0 s: proved for ever"
    switch, message = settled(Answer("refuse", "fits at 250 ms"), "admit")
    assert switch.heard == [(1, 4, False)]
    assert sentence(message) == "cluster 4 of job 1 refused after 0.0 s: fits at 250 ms"


@pytest.mark.parametrize("unanswered", ["admit", "refuse"])
def test_who_does_not_know_leaves_it_to_the_stated_answer(unanswered: str) -> None:
    switch, message = settled(Answer("undecided", "too many ticks"), unanswered)
    assert switch.heard == [(1, 4, None)]
    assert (
        message["event"] == {"admit": "cluster_admitted", "refuse": "cluster_refused"}[unanswered]
    )
    assert message["reason"] == f"too many ticks; without an answer in time: {unanswered}"


def test_an_answer_that_comes_too_late_does_not_claim_to_have_counted() -> None:
    _, message = settled(Answer("admit", "proved"), "refuse", in_time=False)
    assert (message["event"], message["answer"]) == ("cluster_refused", "undecided")
    assert message["reason"].startswith("too late: admit, proved; ")


def test_a_switch_that_stops_waits_for_no_answer() -> None:
    switch = Switch()
    slow = program("import time; time.sleep(600)")
    desk = Admission(Policy("running.toml", 600.0, "admit"), switch.decide, slow)
    desk.take({**WANTED, "at_ns": time.time_ns()})
    began = time.monotonic()
    desk.stop()
    assert time.monotonic() - began < 10.0
    assert (switch.heard, desk.settled()) == ([], [])


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    file = tmp_path / "running.toml"
    file.write_text(POLICY)
    return file


def test_the_settings_say_what_core_and_role_are_told(policy: Path) -> None:
    settings = read_settings(overrides=[f"switch.admission={str(policy)!r}"]).switch
    core = json.loads(settings.to_core())
    assert (core["admission_timeout_ms"], core["admission_unanswered"]) == (5000, "refuse")
    told = settings.to_admission()
    assert told is not None
    assert Policy.told(json.loads(json.dumps(told))).timeout_s == 5.0
    leaf = read_settings(overrides=[f"leaf.admission={str(policy)!r}"]).leaf
    assert leaf.at("127.0.0.1:0", "127.0.0.1:1").to_admission() == told
    off = read_settings().switch
    assert "admission_timeout_ms" not in json.loads(off.to_core())
    assert off.to_admission() is None


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--admission", "running.toml"], "running.toml: no cluster could join by it"),
        (["--admission", "gone.toml"], "gone.toml: No such file"),
        (["--admission-timeout", "5"], "'5' is not a time: write 100ms, 1.5s"),
        (["--admission-unanswered", "perhaps"], "admit"),
        (["--admission-mismatch", "perhaps"], "say"),
    ],
)
def test_what_cannot_be_stops_the_switch_before_it_starts(
    policy: Path, options: list[str], complaint: str
) -> None:
    policy.write_text(POLICY.replace("ids = ", "# "))
    ended = olaf("switch", *options, folder=policy.parent)
    assert ended.returncode == Exit.USAGE
    assert complaint in ended.stderr


def test_a_switch_that_is_not_the_policys_does_not_start_where_that_is_refused(
    policy: Path,
) -> None:
    own = ("--admission", str(policy), "--slots", "4", "--admission-mismatch", "refuse")
    ended = olaf("switch", *own)
    assert ended.returncode == Exit.USAGE
    assert "the switch has 4 slots, and the policy's queue has 2" in ended.stderr


@pytest.fixture
def asking_switch(policy: Path) -> Iterator[subprocess.Popen[str]]:
    server = _olaf.Server(json.dumps({"listen": "127.0.0.1:0"}))
    server.start()
    options = ["--listen", "127.0.0.1:0", "--upstream", server.address, "--admission", str(policy)]
    process = subprocess.Popen(
        [sys.executable, "-m", "olaf", "switch", *options, "--admission-timeout", "60s", "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    yield process
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    server.stop()


def test_a_running_switch_asks_the_policy_whose_clusters_may_join(
    asking_switch: subprocess.Popen[str],
) -> None:
    address = message_of(asking_switch, "listening")["address"]
    mismatch = message_of(asking_switch, "admission_mismatch")
    assert mismatch["reason"] == "the switch has 8 slots, and the policy's queue has 2"
    weights = [np.zeros(4, np.float32)]

    listed = _olaf.Client(address, job=1, cluster=3)
    assert listed.join(weights, 50.0) == 1
    admitted = message_of(asking_switch, "cluster_admitted")
    assert (admitted["cluster"], admitted["answer"], admitted["running"]) == (3, "admit", [])

    other = _olaf.Client(address, job=1, cluster=8)
    with pytest.raises(_olaf.RefusedError, match="admission policy refused cluster 8 of job 1"):
        other.join(weights, 50.0)
    refused = message_of(asking_switch, "cluster_refused")
    assert "running.toml does not list cluster 8" in refused["reason"]
    assert refused["running"] == [{"job": 1, "cluster": 3}]

    # The verifier's own word: mean peaks of 100 and 300 ms are further apart than 100 ms.
    slow = _olaf.Client(address, job=1, cluster=5)
    with pytest.raises(_olaf.RefusedError, match="admission policy refused cluster 5 of job 1"):
        slow.join(weights, 50.0)
    refused = message_of(asking_switch, "cluster_refused")
    assert (refused["cluster"], refused["answer"]) == (5, "refuse")
    assert "fair_peak of at most 100 ms is violated: a run has mean peaks" in refused["reason"]
    for client in (listed, other, slow):
        client.leave()
