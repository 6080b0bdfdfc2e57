"""Roles that a fork server has forked: as processes that were started anew, but sooner."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from occurring import Heard
from waiting import is_gone, until

from olaf.errors.outcome import Exit
from olaf.jobs import forking
from olaf.jobs.forking import Forked, ForkServer
from olaf.jobs.processes import Executed
from olaf.jobs.supervisor import Ended, Printed, Program, Said, Started, Supervisor
from olaf.rl import process_environment

pytestmark = pytest.mark.skipif(not forking.can_fork(), reason="this system starts anew")

OURS = [sys.executable, "-m", "olaf"]
SWITCH = ["switch", "--json", "--attached"]
CORE = {"listen": "127.0.0.1:0", "upstream": "127.0.0.1:9"}
TOLD = json.dumps({"core": json.dumps(CORE), "every_s": 60.0})

WITNESS = """
import atexit, json, os, sys
import gymnasium as gym
import numpy as np

class Witness(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (2,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self):
        found = {
            "pid": os.getpid(), "group": os.getpgrp(), "parent": os.getppid(),
            "folder": os.getcwd(), "path": sys.path[0],
            "main": sys.modules["__main__"].__spec__.name,
            "argv": sys.argv[1:], "colour": os.environ.get("COLOUR"),
            "threads": len(os.listdir("/proc/self/task")),
            "open": sorted(os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
                           if os.path.exists(f"/proc/self/fd/{fd}")),
            "stdin": sys.stdin.read(),
            "comm": open("/proc/self/comm").read().strip(),
        }
        print("printed by the environment")
        atexit.register(print, "printed at the end")
        with open("witness.json", "w") as file:
            json.dump(found, file)

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), 1.0, False, False, {}
"""

REHEARSAL = [sys.executable, "-m", "olaf.jobs.attached", "rehearsal"]


def told(environment: str) -> str:
    return json.dumps({"learner": {"environment": environment}, "seed": 0})


@pytest.fixture
def server() -> Iterator[ForkServer]:
    with forking.opened():
        found = forking.current()
        assert found is not None
        yield found


@pytest.fixture
def supervisor(server: ForkServer) -> Iterator[Supervisor]:
    with Supervisor(restarts=2, restart_delay_s=0.01) as made:
        yield made


def environment() -> dict[str, str]:
    return {**os.environ, **process_environment()}


def role(name: str, *argv: str, told: str = "") -> Program:
    return Program(name, [*OURS, *argv], told, process_environment())


def parent_of(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    return int(stat.rpartition(")")[2].split()[1])


def test_a_role_is_as_one_that_was_started_anew(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder, its environment, its group, its pipes and what it can import are its own."""
    (tmp_path / "mine.py").write_text(WITNESS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    given = {**environment(), "COLOUR": "green"}
    supervisor.start(Program("rehearsal", REHEARSAL, told("mine:Witness"), given))
    heard = Heard(supervisor)
    pid = heard.of(Started).pid
    heard.of(Printed, text="printed by the environment")
    assert heard.of(Said).message["event"] == "rehearsed"
    heard.of(Printed, text="printed at the end")
    ended = heard.of(Ended)
    assert (ended.code, ended.expected) == (0, True)
    found = json.loads((tmp_path / "witness.json").read_text())
    assert found["pid"] == found["group"] == pid
    assert found["parent"] != os.getpid()
    assert found["folder"] == found["path"] == str(tmp_path)
    assert (found["argv"], found["colour"], found["stdin"]) == (["rehearsal"], "green", "")
    assert found["main"] == "olaf.jobs.attached"
    assert found["comm"] == "olaf rehearsal"
    # Nothing of the fork server, or of another role, stays open in it.
    assert not [name for name in found["open"] if "socket" in name]


def test_each_role_ends_with_its_own_code(supervisor: Supervisor) -> None:
    heard = Heard(supervisor)
    supervisor.start(role("version", "--version"))
    supervisor.start(role("wrong", "switch", "--nonsense"))
    for child in supervisor._children.values():
        assert isinstance(child.process, Forked)
    assert heard.of(Ended, name="version").expected
    wrong = heard.of(Ended, name="wrong")
    assert (wrong.code, wrong.back_in_s) == (Exit.USAGE, None)


def test_a_role_that_cannot_begin_says_why(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "getcwd", lambda: "/there/is/none")
        supervisor.start(role("version", "--version"))
    heard = Heard(supervisor)
    error = "FileNotFoundError: [Errno 2] No such file or directory: '/there/is/none'"
    heard.of(Printed, text=error)
    ended = heard.of(Ended)
    assert (ended.code, ended.expected) == (1, False)


@pytest.mark.parametrize(
    ("how", "code", "said"),
    [
        ("sys.exit(5)", 5, None),
        ("sys.exit('not today')", 1, "not today"),
        ("raise ValueError('odd')", 1, "ValueError: odd"),
        ("os.kill(os.getpid(), 9)", -9, None),
    ],
)
def test_every_way_out_has_pythons_code(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
    code: int,
    said: str | None,
) -> None:
    from olaf.jobs import fork_server

    (tmp_path / "way.py").write_text(f"import os, sys\n{how}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("atexit._run_exitfuncs", lambda: None)
    child = os.fork()
    if child == 0:
        with (tmp_path / "said").open("w") as sys.stderr:
            os._exit(fork_server._ended(fork_server.Task("way", [])))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == code
    assert said is None or (tmp_path / "said").read_text().strip().endswith(said)


def test_a_killed_role_is_named_and_comes_back(supervisor: Supervisor, server: ForkServer) -> None:
    heard = Heard(supervisor)
    supervisor.start(role("switch", *SWITCH, told=TOLD))
    pid = heard.of(Started).pid
    assert parent_of(pid) != os.getpid()
    assert os.getpgid(pid) == pid
    os.kill(pid, signal.SIGKILL)
    assert heard.of(Ended).how == "killed by SIGKILL"
    assert heard.of(Started, incarnation=2).pid != pid
    used_s = supervisor.cpu_s()
    assert used_s is not None
    assert used_s > 0


def test_what_a_role_has_started_ends_with_it(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "keeper.py").write_text(
        "import os, subprocess, time\n"
        "def make():\n"
        "    held = subprocess.Popen(['sleep', '4242'])\n"
        "    print('held', held.pid)\n"
        "    time.sleep(600)\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    supervisor.start(Program("rehearsal", REHEARSAL, told("keeper:make"), environment()))
    heard = Heard(supervisor)

    def held() -> int:
        lines = [one.text for one in heard.occurrences if isinstance(one, Printed)]
        heard.occurrences += supervisor.poll(0.05)
        return next((int(text.split()[1]) for text in lines if text.startswith("held")), 0)

    pid = until(held, what="the program that the environment starts")
    assert not is_gone(pid)
    supervisor.close()
    until(lambda: is_gone(pid), what="the program to end")


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "PYTHONPATH", "PYTHONOPTIMIZE"])
def test_a_variable_that_changes_imports_makes_a_process_anew(
    server: ForkServer, name: str
) -> None:
    argv = [*OURS, "--version"]
    assert server.start("version", argv, {**environment(), name: "2"}) is None
    assert server.start("version", [sys.executable, "-c", "1"], environment()) is None
    assert server.start("version", ["srun", *argv], environment()) is None
    process = server.start("version", argv, {**environment(), "COLOUR": "2"})
    assert isinstance(process, Forked)
    assert process.reap(60)[0] == 0
    process.let_go()


def test_a_server_with_threads_forks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "threads.py").write_text(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    with forking.opened(), Supervisor(restarts=0) as supervisor:
        server = forking.current()
        assert server is not None
        server._prepare(("threads",))
        assert server.start("version", [*OURS, "--version"], environment()) is None
        supervisor.start(role("version", "--version"))
        heard = Heard(supervisor)
        assert isinstance(supervisor._children["version"].process, Executed)
        assert heard.of(Ended).expected


def test_without_its_server_a_role_goes_on_and_the_next_is_started_anew(
    supervisor: Supervisor, server: ForkServer
) -> None:
    heard = Heard(supervisor)
    supervisor.start(role("switch", *SWITCH, told=TOLD))
    assert heard.of(Said).message["event"] == "listening"
    os.kill(server._process.pid, signal.SIGKILL)
    server._process.wait()
    supervisor.tell("switch", "stop")
    ended = heard.of(Ended)
    assert ended.back_in_s is not None  # its code is lost, so that it counts as a death
    supervisor.start(role("version", "--version"))
    assert isinstance(supervisor._children["version"].process, Executed)
    assert heard.of(Ended, name="version").expected


def test_the_servers_life_is_that_of_its_users() -> None:
    with forking.opened():
        server = forking.current()
        assert server is not None
        pid = server._process.pid
        with forking.opened():
            assert forking.current() is server
        assert not is_gone(pid)
    assert forking.current() is None
    assert is_gone(pid)


def test_a_killed_parent_leaves_neither_server_nor_roles(tmp_path: Path) -> None:
    code = (
        "import json, os, sys\n"
        "from olaf.jobs import forking\n"
        "from olaf.jobs.supervisor import Program, Said, Supervisor\n"
        "with forking.opened(), Supervisor() as supervisor:\n"
        "    from olaf.rl import process_environment\n"
        f"    argv, told = {[*OURS, *SWITCH]!r}, {TOLD!r}\n"
        "    supervisor.start(Program('switch', argv, told, process_environment()))\n"
        "    while True:\n"
        "        for one in supervisor.poll(1):\n"
        "            if isinstance(one, Said):\n"
        "                print(one.message['pid'], forking.current()._process.pid, flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as own:
        assert own.stdout is not None
        role, server = map(int, own.stdout.readline().split())
        assert parent_of(role) == server
        own.kill()
    until(lambda: is_gone(role) and is_gone(server), what="the end of both processes")


def test_a_fork_of_the_user_is_not_the_servers_parent(server: ForkServer) -> None:
    child = os.fork()
    if child == 0:
        os._exit(0 if forking.current() is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    process = server.start("version", [*OURS, "--version"], environment())
    assert process is not None
    assert process.reap(60)[0] == 0
    process.let_go()
