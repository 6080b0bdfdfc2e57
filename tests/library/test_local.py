"""`olaf.local`: a switch and a server for a block, and nothing of them afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from waiting import until

import olaf


@pytest.fixture
def job() -> Iterator[olaf.LocalJob]:
    with olaf.local() as job:
        yield job


def is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


def run(tmp_path: Path, script: str, *, stdin: int = subprocess.DEVNULL) -> list[str]:
    """Run a stranger's script in an empty folder; what it printed."""
    file = tmp_path / "script.py"
    file.write_text(textwrap.dedent(script))
    ran = subprocess.run(
        [sys.executable, str(file)],
        cwd=tmp_path,
        stdin=stdin,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_one_worker_alone_moves_the_model_to_where_it_went() -> None:
    with olaf.local(queue="olaf", slots=8) as job, olaf.connect(job.address) as switch:
        weights = [np.full((2, 3), 5.0, np.float32), np.arange(4, dtype=np.float32)]
        switch.join(weights)
        assert job.model() is not None
        for turn in range(1, 6):
            before = olaf.snapshot(weights)
            weights[0] += np.float32(0.1)
            weights[1] *= np.float32(1.5)
            after = olaf.snapshot(weights)
            switch.push_delta(before, weights, reward=float(turn))
            for part in weights:
                part[...] = -1.0
            assert switch.wait(timeout_s=30)
            assert switch.pull(into=weights) == turn + 1
            np.testing.assert_allclose(weights[0], after[0], rtol=1e-6)
            np.testing.assert_allclose(weights[1], after[1], rtol=1e-6)
        model = job.model()
        assert model is not None
        assert model.version == 6
        flat = np.concatenate([part.reshape(-1) for part in model.parts])
        np.testing.assert_array_equal(flat, np.concatenate([p.reshape(-1) for p in weights]))


def test_a_gradient_moves_the_model_downhill(job: olaf.LocalJob) -> None:
    with olaf.connect(job.address) as switch:
        weights = np.array([3.0, -2.0], np.float32)  # of the loss (w * w).sum() / 2
        switch.join(weights)
        for _ in range(5):
            switch.push_gradient(weights.copy(), learning_rate=0.5)
            assert switch.wait(timeout_s=30)
            switch.pull(into=weights)
        np.testing.assert_allclose(weights, [3.0 / 32, -2.0 / 32], rtol=1e-5)


def test_the_servers_factor_is_known_at_join(caplog: pytest.LogCaptureFixture) -> None:
    with (
        olaf.local(
            learning_rate=0.25, server={"staleness_power": 0.0}, switch={"silent_after": "3s"}
        ) as job,
        olaf.connect(job.address) as switch,
    ):
        weights = np.zeros(2, np.float32)
        switch.join(weights)
        switch.push_delta(weights, np.ones(2, np.float32))
        assert switch.wait(timeout_s=30)
        switch.pull(into=weights)
        np.testing.assert_array_equal(weights, [0.25, 0.25])
        assert switch.rule == olaf.Rule("delta", "each", "overlap", "none", 0.25, 0.0)
        assert "applied at 0.25, not at 1" in caplog.text


@pytest.mark.torch
def test_a_name_that_no_checkpoint_can_hold_is_said_and_joins_all_the_same(
    job: olaf.LocalJob, caplog: pytest.LogCaptureFixture
) -> None:
    torch = pytest.importorskip("torch")
    with olaf.connect(job.address) as switch:
        assert switch.join(torch.nn.ModuleDict({"olaf": torch.nn.Linear(2, 1)})) == 1
    assert 'layout: name "olaf.weight"' in caplog.text
    assert "as one flat array" in caplog.text


def test_counters_and_events_are_there_to_see(job: olaf.LocalJob) -> None:
    with olaf.connect(job.address, worker=5) as switch:
        switch.join(np.zeros(2, np.float32))
        switch.push(np.ones(2, np.float32))
        assert switch.wait(timeout_s=30)
        stats = job.stats()
        assert stats["server"]["jobs"][0]["received"] == 1
        assert stats["switch"]["fates"]["sent_alone"] == 1
    seen = [(e["who"], e["event"], e.get("worker")) for e in job.events()]
    assert ("server", "worker_joined", 5) in seen
    assert job.address in repr(job)


def test_counters_may_be_read_from_another_thread(job: olaf.LocalJob) -> None:
    with olaf.connect(job.address) as switch:
        weights = np.zeros(1000, np.float32)
        switch.join(weights)
        ended = threading.Event()
        seen: list[int] = []

        def look() -> None:
            while not ended.is_set():
                switch.events()
                seen.append(switch.stats()["contributions"])

        thread = threading.Thread(target=look)
        thread.start()
        for _ in range(200):
            switch.push_delta(weights, weights + 1)
            switch.pull(into=weights)
        until(lambda: bool(seen) and seen[-1] == 200)
        ended.set()
        thread.join()
        assert seen == sorted(seen)


def test_nothing_is_left_after_the_block() -> None:
    with olaf.local() as job:
        pids = job.pids
        assert len(set(pids.values())) == 2
        assert not any(is_gone(pid) for pid in pids.values())
    assert all(is_gone(pid) for pid in pids.values())
    job.close()
    with pytest.raises(olaf.UnreachableError, match="closed"):
        job.stats()


def test_who_is_killed_comes_back_where_it_was(
    job: olaf.LocalJob, caplog: pytest.LogCaptureFixture
) -> None:
    before = job.pids
    with olaf.connect(job.address) as switch:
        weights = np.zeros(2, np.float32)
        switch.join(weights)
        os.kill(before["switch"], signal.SIGKILL)
        until(lambda: job.pids["switch"] != before["switch"])

        def moved() -> bool:
            switch.push(np.ones(2, np.float32))
            return switch.wait(timeout_s=0.2)

        until(moved)
    (ended,) = [event for event in job.events() if event["event"] == "ended"]
    assert (ended["who"], ended["how"]) == ("switch", "killed by SIGKILL")
    assert "the switch was killed by SIGKILL; it starts again in" in caplog.text
    assert job.pids["server"] == before["server"]


def test_who_dies_too_often_is_said() -> None:
    with olaf.local(restarts=0) as job:
        os.kill(job.pids["server"], signal.SIGKILL)
        with pytest.raises(olaf.UnreachableError, match="server was killed by SIGKILL and is not"):
            job.stats()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"queue": "lifo"},
            r"local\(queue='lifo'\): `switch\.queue` = 'lifo': must be one of olaf",
        ),
        ({"slots": 0}, r"`switch\.slots` = 0: .*greater than or equal to 1"),
        ({"uplink": "quick"}, r"`switch\.uplink` = 'quick'"),
        ({"learning_rate": 0.0}, r"`server\.learning_rate` = 0\.0: .*greater than 0"),
        ({"server": {"stale_power": 1}}, r"did you mean `server\.staleness_power`"),
        ({"switch": {"gait": 1}}, r"did you mean `switch\.gate`"),
        ({"switch": {"silent_after": "2 apples"}}, r"`switch\.silent_after"),
        ({"switch": {"listen": "203.0.113.1:5555"}}, r"203\.0\.113\.1:5555"),
    ],
)
def test_a_setting_that_cannot_be_is_named(settings: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        olaf.local(**settings)  # type: ignore[arg-type]


def test_a_plain_script_needs_no_guard_and_sees_what_a_push_does(tmp_path: Path) -> None:
    # A file beside it has the name of a module that the roles import.
    (tmp_path / "click.py").write_text("raise SystemExit('the wrong click')")
    script = """
        import sys, numpy, olaf
        sys.stderr = sys.stdout
        with olaf.local() as job, olaf.connect(job.address) as switch:
            switch.join(numpy.zeros(2, numpy.float32))
        print("done")
        """
    said, done = run(tmp_path, script)
    assert said.startswith("olaf: joined job 1 at 127.0.0.1:")
    assert "pushes are applied at 1.0: the server does model += 1 * " in said
    assert done == "done"


def test_a_base_installation_is_enough(tmp_path: Path) -> None:
    script = """
        import sys, olaf
        with olaf.local() as job, olaf.connect(job.address):
            heavy = {"gymnasium", "torch", "matplotlib", "rich", "tensorboardX"}
            print(heavy & set(sys.modules))
        """
    assert run(tmp_path, script) == ["set()"]


def test_it_starts_in_any_thread_and_takes_no_signals() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    found: list[str] = []

    def work() -> None:
        with olaf.local() as job:
            found.append(job.address)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert len(found) == 1
    after = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert before == after


KILLED = """
    import multiprocessing, os, signal, sys, time, olaf

    def outlive():
        print(os.getpid(), flush=True)
        time.sleep(600)

    job = olaf.local()
    print(*job.pids.values())
    context = multiprocessing.get_context("fork")
    child = context.Process(target=outlive)
    child.start()
    time.sleep(600)
    """


def test_both_end_with_a_killed_parent_even_if_a_fork_of_it_lives(tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text(textwrap.dedent(KILLED))
    parent = subprocess.Popen(
        [sys.executable, "-u", str(file)], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert parent.stdout is not None
    roles = [int(pid) for pid in parent.stdout.readline().split()]
    fork = int(parent.stdout.readline())
    try:
        assert len(roles) == 2
        parent.kill()
        parent.wait()
        until(lambda: all(is_gone(pid) for pid in roles))
        assert not is_gone(fork)
    finally:
        os.kill(fork, signal.SIGKILL)
        parent.stdout.close()


def test_a_fork_does_not_end_what_its_parent_started(tmp_path: Path) -> None:
    script = """
        import os, olaf
        with olaf.local() as job:
            if (child := os.fork()) == 0:
                job.close()
                os._exit(0)
            os.waitpid(child, 0)
            print(sorted(job.stats()))
        """
    assert run(tmp_path, script) == ["['server', 'switch']"]
