"""Asynchronous training through the switch (iSwitch §4.1), in processes as a user starts them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from olaf import _olaf

pytestmark = pytest.mark.timeout(150)

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
EXAMPLE = ROOT / "examples" / "pipelined_rl.py"
MEASURED = PROGRAMS / "pipelined_rl_measured.py"
PROGRAM = PROGRAMS / "pipelined.py"
PAGE = (ROOT / "docs/paper-protocols.md").read_text(encoding="utf-8")
SLOWER_MS = 150
"""The slow worker needs about five times as long for a gradient as the others."""


@contextmanager
def switch_here(**config: Any) -> Iterator[_olaf.Switch]:
    switch = _olaf.Switch(
        json.dumps({"engines": ["iswitch"], "listen": "127.0.0.1:0", "iswitch": config})
    )
    switch.start()
    try:
        yield switch
    finally:
        switch.stop()


def started(program: Path, *argv: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(program), *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """The lines that a process printed."""
    output, error = process.communicate(timeout=100)
    assert process.returncode == 0, error[-3000:]
    return [json.loads(line) for line in output.splitlines()]


def trained(*options: str) -> list[dict[str, Any]]:
    """What two workers and a slow one said at the end."""
    with switch_here() as switch:
        arguments = (switch.address, "--workers", "3", "--iterations", "60", *options)
        slower = ("--slower-ms", str(SLOWER_MS))
        processes = [
            started(MEASURED, *arguments, "--rank", str(rank), *(slower if rank == 2 else ()))
            for rank in range(3)
        ]
        return [ended(process)[0] for process in processes]


def test_the_example_learns_and_ends_with_equal_weights() -> None:
    with switch_here() as switch:
        processes = [started(EXAMPLE, switch.address, "2") for _ in range(2)]
        told = [process.communicate(timeout=100) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], told
    lines = [output.splitlines() for output, _ in told]
    assert lines[0][-1] == lines[1][-1]
    scores = [float(line.split()[-2]) for line in lines[0][:-1]]
    assert max(scores[-10:]) > 3 * scores[0]


def test_a_slow_worker_costs_no_time_and_little_score() -> None:
    pipelined, synchronous = trained(), trained("--synchronous")
    for said in (pipelined, synchronous):
        assert len({tuple(worker["weights"]) for worker in said}) == 1, "bit for bit"
    # Without learning the score is about 20.
    assert pipelined[0]["score"] > 100
    assert pipelined[0]["score"] > 0.5 * synchronous[0]["score"]
    assert synchronous[0]["seconds"] > 60 * SLOWER_MS / 1000
    assert pipelined[0]["seconds"] < 0.6 * synchronous[0]["seconds"]


def test_the_fast_workers_make_up_for_the_slow_one_and_the_bound_holds() -> None:
    said = trained("--staleness", "1")
    sent = [worker["gradients"]["sent"] for worker in said]
    # H = 3 gradients for each iteration; some may come too late for theirs.
    assert sum(sent) >= 3 * 60
    assert sent[0] > 60
    assert sent[1] > 60
    # Several iterations end while the slow worker computes: most of its gradients are too old.
    slow = said[2]["gradients"]
    assert slow["stale"] > sum(slow.values()) / 2, slow
    # LGC of a fast worker does not wait for the slow one: not for one of its gradients.
    assert max(worker["longest_wait_s"] for worker in said[:2]) < SLOWER_MS / 1000


def test_training_goes_on_after_a_death_and_a_restart() -> None:
    iterations = 1500
    with switch_here(silence="500ms") as switch:

        def worker(rank: int) -> subprocess.Popen[str]:
            return started(PROGRAM, switch.address, "3", str(rank), str(iterations))

        processes = [worker(rank) for rank in range(3)]
        victim = processes[0]
        assert victim.stdout is not None
        assert json.loads(victim.stdout.readline()) == {"began": 0}
        reached = until(lambda: iterations_of(switch, 150), "150 iterations")
        victim.kill()
        victim.communicate()
        processes[0] = worker(0)
        said = [ended(process) for process in processes]
    for lines in said[1:]:
        assert lines[-1]["errors"] == [["worker_died", 0]], lines
        assert lines[0]["began"] == 0
    went_on = {lines[-2]["began"] for lines in said}
    assert len(went_on) == 1, "all go on from the same iteration"
    # Nothing that had ended is done again. How far the others came since depends on the machine.
    assert reached <= went_on.pop() < iterations
    assert len({tuple(lines[-1]["bits"]) for lines in said}) == 1, "bit for bit"
    assert {lines[-1]["ended"] for lines in said} == {iterations}
    assert said[0][-1]["largest"] < 0.2, "it learnt"


def iterations_of(switch: _olaf.Switch, least: int) -> int:
    """Iterations that the switch has summed, two packets each; 0 below ``least``."""
    jobs = json.loads(switch.stats())["iswitch"]["jobs"]
    done = jobs[0]["packets"] // 2 if jobs else 0
    return done if done >= least else 0


def test_the_snippet_of_the_page_runs(tmp_path: Path) -> None:
    snippets = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (snippet,) = [snippet for snippet in snippets if ".pipeline(" in snippet]
    with switch_here() as switch:
        program = tmp_path / "mine.py"
        program.write_text(snippet.replace("127.0.0.1:5555", switch.address), encoding="utf-8")
        processes = [
            subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        outputs = [process.communicate(timeout=60)[0] for process in processes]
    assert outputs[0] == outputs[1]
    assert [round(float(word)) for word in re.findall(r"-?\d+\.\d*", outputs[0])] == [3, -1]
